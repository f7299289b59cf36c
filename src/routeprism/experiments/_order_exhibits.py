"""Tables and charts of every order: how many change the memory, which records survive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from routeprism.exhibits import (
    Chart,
    Results,
    Table,
    format_row,
    make_table,
    name_chart,
    place_point,
    read_limits,
    shorten,
)
from routeprism.runs import Finding

__all__ = ["chart_orders", "tabulate_orders"]

_MOST_POOLS = 60
"""How many pools a survival map has rows for."""
_MOST_LINES = 500
_TABLES = {
    "smallest_reordering": (
        "Smallest reorderings",
        "For each question, the reordering with the fewest inversions that changes the outcome. "
        "Numbers are source positions, counted from 0.",
    ),
    "worst_order": ("Worst orders", "For each pool, the order that is worst for the objective."),
}


def tabulate_orders(results: Results) -> list[Table]:
    """List the orders that matter most, each with its sentence."""
    tables: list[Table] = []
    for name, (title, caption) in _TABLES.items():
        findings = [f for f in results.findings.get(name, ()) if f.value.get("sentence")]
        findings.sort(key=lambda finding: _rank(finding.value))
        arrivals = any(finding.schedule for finding in findings)  # else it covers every order
        cells = [
            (
                finding.policy,
                *([finding.schedule or "every order"] if arrivals else []),
                *(finding.user, finding.value["sentence"]),
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
            {"user": shorten(finding.user, 24), "position": position, "kept": probability}
            for finding in pools[:_MOST_POOLS]
            for _, position, probability in finding.value
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
