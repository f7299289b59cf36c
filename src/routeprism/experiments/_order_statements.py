"""Statements about orders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from routeprism.exhibits import Part, Severity, Statement, compose, join_parts
from routeprism.experiments._order_case import OrderCounts
from routeprism.experiments.statements import pluralise, show_estimate, show_value
from routeprism.landscape import format_count
from routeprism.runs import EstimateRow, Finding, Rows

__all__ = ["order_statements", "position_statements"]

_METHODS = {
    "enumerated": "every order",
    "merged": "every order, by merged states",
    "replayed": "every order, built one by one",
    "shared": "every order, with shared beginnings",
    "sampled": "drawn orders",
}


def order_statements(
    rows: Sequence[EstimateRow],
    counts: OrderCounts,
    findings: Iterable[Finding],
    *,
    synthetic: bool,
) -> Iterator[Statement]:
    """Describe for each policy and arrival model how often order changes what is kept."""
    grouped: dict[tuple[str, str], dict[str, EstimateRow]] = {}
    for row in Rows.of(rows).where(stratum="all", mask=""):
        grouped.setdefault((row.policy, row.schedule), {})[row.quantity] = row
    for (policy, arrival), quantities in grouped.items():
        orders = counts.orders[policy, arrival]
        methods = [
            f"{method} in {pluralise(number, 'pool')}"
            for name, method in _METHODS.items()
            if (number := counts.methods[policy, arrival, name])
        ]
        failed = counts.failed[policy, arrival]
        parts = compose(
            "{phrases} ({orders} orders: {methods})",
            phrases=join_parts("; ", [*_describe_failures(failed, orders), *_describe(quantities)]),
            orders=format_count(orders),
            methods=", ".join(methods),
        )
        change = quantities.get("order_change")
        severity: Severity = "good"
        if failed or (change is not None and change.estimate):
            severity = "problem"
        flags = ("synthetic",) if synthetic else ()
        yield Statement(parts, "orders", policy, arrival, severity, scope=arrival, flags=flags)
    findings = list(findings)
    yield from _reordering_statements(findings)
    yield from _stale_statements(findings)


def _describe(quantities: Mapping[str, EstimateRow]) -> Iterator[tuple[Part, ...]]:
    if "order_change" in quantities:
        yield compose(
            "in {share} of orders the memory keeps a different set of records from source order",
            share=show_estimate(quantities["order_change"]),
        )
    across = quantities.get("support_kept.uniform") or quantities.get("support_kept.arrival")
    if across is not None:
        ends = [
            compose("{value} {side}", value=show_value(quantities[name]), side=side)
            for side in ("forward", "reverse")
            if (name := f"support_kept.{side}") in quantities
        ]
        yield compose(
            "evidence is kept in {share} of orders, {ends} (labels: {labels})",
            share=show_estimate(across),
            ends=join_parts(", ", ends),
            labels=across.labels,
        )
    stale = quantities.get("stale_only.uniform") or quantities.get("stale_only.arrival")
    if stale is not None:
        yield compose(
            "a question about an update ends with the old value alone in {share} of orders, "
            "{forward} forward",
            share=show_estimate(stale),
            forward=show_value(quantities["stale_only.forward"]),
        )
    if "mean_clusters" in quantities:
        yield compose("{mean} clusters on average", mean=show_value(quantities["mean_clusters"]))


def _describe_failures(failed: int, orders: int) -> Iterator[tuple[Part, ...]]:
    """Report errors first: few orders may be left to conclude anything from."""
    if failed:
        yield (
            f"the memory raises an error in {format_count(failed)} of {format_count(orders)} "
            f"orders, and the following numbers cover only the remaining "
            f"{format_count(orders - failed)}",
        )


def _reordering_statements(findings: Iterable[Finding]) -> Iterator[Statement]:
    """Describe how small the reorderings are that lose, or save, support."""
    grouped: dict[str, list[Mapping[str, object]]] = {}
    for finding in findings:
        if finding.name == "smallest_reordering" and finding.value["outcome"] == "support":
            grouped.setdefault(finding.policy, []).append(finding.value)
    for policy, values in grouped.items():
        retained = [value for value in values if value["forward_keeps"]]
        lost = [value for value in retained if value["found"]]
        dropped = [value for value in values if not value["forward_keeps"]]
        saved = [value for value in dropped if value["found"]]
        neighbours = sum(value["inversions"] == 1 for value in lost)
        text = (
            f"of {len(retained)} questions whose evidence is kept in source order, {len(lost)} "
            f"lose it in some order, {neighbours} of them if two neighbours change places; of "
            f"{len(dropped)} whose evidence is dropped in source order, {len(saved)} keep it in "
            f"some order"
            f"{_describe_search(values)}"
        )
        yield Statement((text,), "orders", policy)


def _stale_statements(findings: Iterable[Finding]) -> Iterator[Statement]:
    """Describe how small the reorderings are that leave the old value alone."""
    grouped: dict[str, list[Mapping[str, object]]] = {}
    for finding in findings:
        if finding.name == "smallest_reordering" and finding.value["outcome"] == "stale-only":
            grouped.setdefault(finding.policy, []).append(finding.value)
    for policy, values in grouped.items():
        changed = [value for value in values if value["found"]]
        neighbours = sum(value["inversions"] == 1 for value in changed)
        text = (
            f"for {len(changed)} of {len(values)} questions about updates, order decides between "
            f"the old and the new value; for {neighbours} of them, two neighbours that change "
            f"places are enough"
            f"{_describe_search(values)}"
        )
        severity: Severity = "problem" if changed else "good"
        yield Statement((text,), "orders", policy, severity=severity)


def _describe_search(values: Sequence[Mapping[str, object]]) -> str:
    """Count the results that come from a search instead of a look at every order."""
    number = sum(not value["exact"] for value in values)
    if not number:
        return ""
    some = "these" if number == len(values) else f"{number} of {len(values)}"
    return f" ({some} are results of a search, which can miss reorderings)"


def position_statements(findings: Iterable[Finding], labels: str) -> Iterator[Statement]:
    """Describe where in the source support is."""
    for finding in findings:
        if finding.name != "support_position":
            continue
        value = finding.value
        if not finding.policy:
            bins = ", ".join(str(count) for *_, count in value["bins"])
            text = (
                f"The median position of the evidence is {value['quartiles'][1]:.3f}, from 0 for "
                f"the first record to 1 for the last ({value['instances']} instances, by quarters "
                f"{bins}; labels: {labels})"
            )
            yield Statement((text,), "orders")
            continue
        for side, questions in value.items():
            text = (
                f"{questions['questions']} questions keep their evidence {side[5:]} only; its mean "
                f"position is {questions['mean_position']:.3f}"
            )
            yield Statement((text,), "orders", finding.policy)
