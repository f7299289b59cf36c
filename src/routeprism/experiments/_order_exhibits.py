"""What every order shows: how many change the memory, which records survive, the worst orders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from routeprism.exhibits import (
    Chart,
    Results,
    Severity,
    Statement,
    Table,
    compose,
    format_row,
    make_table,
    name_chart,
    place_point,
    read_limits,
    shorten,
)
from routeprism.experiments._order_case import OrderCounts
from routeprism.experiments.statements import Phrase, compose_rows, join_phrases
from routeprism.landscape import format_count
from routeprism.printing import pluralise
from routeprism.runs import EstimateRow, Finding, Rows

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
    groups = Rows.of(rows).group("policy", "schedule")
    for (policy, arrival), quantities in groups.items():
        orders = counts.orders[policy, arrival]
        methods = [
            f"{method} in {pluralise(number, 'pool')}"
            for name, method in _METHODS.items()
            if (number := counts.methods[policy, arrival, name])
        ]
        failed = counts.failed[policy, arrival]
        parts = compose(
            "{phrases} ({orders} orders: {methods})",
            phrases=join_phrases([*_describe_failures(failed, orders), *_describe(quantities)]),
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


def _describe(quantities: Mapping[str, EstimateRow]) -> Iterator[Phrase]:
    if "order_change" in quantities:
        yield compose_rows(
            "in {share} of orders the memory keeps a different set of records from source order",
            share=quantities["order_change"],
        )
    across = quantities.get("support_kept.uniform") or quantities.get("support_kept.arrival")
    if across is not None:
        ends = (
            compose_rows("{value:value} {where}", value=quantities[name], where=where)
            for side, where in (("forward", "in source order"), ("reverse", "in reversal"))
            if (name := f"support_kept.{side}") in quantities
        )
        yield compose_rows(
            "some evidence is kept in {row} of orders, {ends} (labels: {row:labels})",
            row=across,
            ends=join_phrases(ends, ", "),
        )
    stale = quantities.get("stale_only.uniform") or quantities.get("stale_only.arrival")
    if stale is not None:
        yield compose_rows(
            "a question about an update ends with the old value alone in {share} of orders, "
            "{forward:value} in source order",
            share=stale,
            forward=quantities["stale_only.forward"],
        )
    if "mean_clusters" in quantities:
        yield compose_rows("{mean:value} clusters on average", mean=quantities["mean_clusters"])


def _describe_failures(failed: int, orders: int) -> Iterator[Phrase]:
    """Report errors first: few orders may be left to conclude anything from."""
    if failed:
        yield (
            f"the memory raises an error in {format_count(failed)} of {format_count(orders)} "
            f"orders, and the following numbers cover only the remaining "
            f"{format_count(orders - failed)}",
        )


def _group_reorderings(
    findings: Iterable[Finding], outcome: str
) -> dict[str, list[Mapping[str, object]]]:
    """Group the smallest reorderings that change an outcome by policy."""
    grouped: dict[str, list[Mapping[str, object]]] = {}
    for finding in findings:
        if finding.name == "smallest_reordering" and finding.value["outcome"] == outcome:
            grouped.setdefault(finding.policy, []).append(finding.value)
    return grouped


def _reordering_statements(findings: Iterable[Finding]) -> Iterator[Statement]:
    """Describe how small the reorderings are that lose, or save, evidence."""
    for policy, values in _group_reorderings(findings, "support").items():
        retained = [value for value in values if value["forward_keeps"]]
        lost = [value for value in retained if value["found"]]
        dropped = [value for value in values if not value["forward_keeps"]]
        saved = [value for value in dropped if value["found"]]
        neighbours = sum(value["inversions"] == 1 for value in lost)
        text = (
            f"of {len(retained)} questions with some evidence kept in source order, {len(lost)} "
            f"lose all of it in some order, {neighbours} of them if two neighbours change places; "
            f"of {len(dropped)} whose evidence is dropped in source order, {len(saved)} keep some "
            f"of it in some order"
            f"{_describe_search(values)}"
        )
        yield Statement((text,), "orders", policy)


def _stale_statements(findings: Iterable[Finding]) -> Iterator[Statement]:
    """Describe how small the reorderings are that leave the old value alone."""
    for policy, values in _group_reorderings(findings, "stale-only").items():
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
    """Describe where in source order the evidence is."""
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
                f"{questions['questions']} questions keep some evidence {_ENDS[side]} only; its "
                f"mean position is {questions['mean_position']:.3f}"
            )
            yield Statement((text,), "orders", finding.policy)


_ENDS = {"only_forward": "in source order", "only_reverse": "in reversal"}

_MOST_POOLS = 60
"""How many pools a survival map has rows for."""
_MOST_LINES = 500
_TABLES = {
    "smallest_reordering": (
        "Smallest reorderings",
        "The fewest inversions (pairs that arrive in the opposite of source order) that change the "
        "outcome of a question.",
    ),
    "worst_order": ("Worst orders", "For each pool, the order that is worst for the objective."),
}


_SHARES = {
    "order_change": "different records",
    "support_kept": "some evidence kept",
    "support_kept.forward": "in source order",
    "support_kept.reverse": "in reversal",
    "order_failed": "failed",
}
"""The columns of numbers; over all orders, the share that keeps evidence has two names."""


def tabulate_shares(results: Results) -> list[Table]:
    """Show for each policy and arrival model how often order changes what is kept."""
    rows = results.rows.where(experiment="orders", arm="")
    lines: list[tuple[str, str, dict[str, EstimateRow]]] = []
    for (policy, arrival), group in rows.group("policy", "schedule").items():
        across = group.get("support_kept.uniform") or group.get("support_kept.arrival")
        quantities = {**group, **({"support_kept": across} if across is not None else {})}
        lines.append((policy, arrival, quantities))
    columns = [name for name in _SHARES if any(name in quantities for *_, quantities in lines)]
    return make_table(
        "order-shares",
        "How often order changes the memory",
        "Share of orders that keep a different set of records from source order, and that keep at "
        "least one record with evidence for a question.",
        ("policy", "arrival", *(_SHARES[name] for name in columns)),
        [
            (policy, arrival, *(format_row(quantities.get(name)) for name in columns))
            for policy, arrival, quantities in lines
        ],
        names=2,
    )


def tabulate_orders(results: Results) -> list[Table]:
    """Show how often order changes the memory, and list the orders that matter most."""
    tables: list[Table] = tabulate_shares(results)
    for name, (title, caption) in _TABLES.items():
        findings = [f for f in results.findings.get(name, ()) if f.value.get("sentence")]
        findings.sort(key=lambda finding: _rank(finding.value))
        arrivals = any(finding.schedule for finding in findings)  # else it covers every order
        cells = [
            (
                finding.policy,
                *([finding.schedule or "every order"] if arrivals else []),
                # Elsewhere the sentence stands alone, so it begins with the user.
                *(finding.user, finding.value["sentence"].removeprefix(f"{finding.user}: ")),
                str(finding.value.get("inversions", "")),
                "exact" if finding.value.get("exact") else "searched",
            )
            for finding in findings[:_MOST_LINES]
        ]
        place = ("policy", *(["arrival"] if arrivals else []), "user", "what happens")
        columns = (*place, "inversions", "method")
        names = len(place)
        tables += make_table(name.replace("_", "-"), title, caption, columns, cells, names=names)
    return tables


def _rank(value: Mapping[str, Any]) -> tuple[float, ...]:
    """Put losses first: by the largest loss, or by the smallest reordering that causes it."""
    if "forward" in value and "value" in value:
        return (value["value"] - value["forward"],)
    keeps = value.get("forward_keeps") is not False
    return (not value.get("found", True), not keeps, value.get("inversions") or 0)


def chart_orders(results: Results) -> list[Chart]:
    """Draw the share of orders that change the memory, and a survival map of its records."""
    findings = results.findings
    return [
        *_chart_distribution(findings.get("order_distribution", ()), results),
        *_chart_survival(findings.get("survival", ())),
    ]


def _chart_distribution(findings: Sequence[Finding], results: Results) -> Iterator[Chart]:
    values: list[dict[str, Any]] = []
    described = []
    groups = results.rows.where(experiment="orders", arm="").group("policy", "schedule")
    pools: dict[tuple[str, str], int] = {}
    for finding in findings:
        place = (finding.policy, finding.schedule)
        pools[place] = pools.get(place, 0) + 1
        if finding.value.get("changed") is not None:
            label = " · ".join(map(shorten, place))
            share = finding.value["changed"]
            point = {"estimate": share, "jitter": place_point(pools[place])}
            values.append({"kind": "unit", "label": label, **point})
    for place in pools:
        row = groups.get(place, {}).get("order_change")
        if row is not None and row.estimate is not None:
            label = " · ".join(map(shorten, place))
            values.append({"kind": "mean", "label": label, **read_limits(row)})
            described.append(f"{label} {format_row(row)}")
    if values:
        yield Chart(
            "order-distribution",
            "Share of orders that keep a different set of records",
            f"One point for each pool, with the mean and its interval: {'; '.join(described)}.",
            "profile",
            tuple(values),
        )


def _chart_survival(findings: Sequence[Finding]) -> Iterator[Chart]:
    routes: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        routes.setdefault((finding.policy, finding.schedule), []).append(finding)
    for (policy, schedule), pools in routes.items():
        values = [
            {
                "user": shorten(finding.user, 24),
                "record": shorten(record),
                "position": position,
                "kept": probability,
            }
            for finding in pools[:_MOST_POOLS]
            for record, position, probability in finding.value
        ]
        if not values:
            continue
        shares = [value["kept"] for value in values]
        more = f"; the first {_MOST_POOLS} of {len(pools)} pools" * (len(pools) > _MOST_POOLS)
        yield Chart(
            f"survival-{name_chart(policy, schedule)}",
            f"Survival map: {shorten(policy)}, {shorten(schedule)}",
            f"Probability that a record is kept, by source position and pool: from "
            f"{min(shares):.2f} to {max(shares):.2f}, "
            f"{sum(shares) / len(shares):.2f} on average{more}.",
            "survival",
            tuple(values),
        )
