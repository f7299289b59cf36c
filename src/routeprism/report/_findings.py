"""What experiments found that is no single number: every order, survival, curves of budgets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from routeprism.report._charts import Chart, chart_name, jitter, limits, short
from routeprism.report._published import printed_tables
from routeprism.report._table import Table, grouped, shown_interval
from routeprism.runs import EstimateRow, Finding, Stored

__all__ = ["Found", "arms_of", "finding_charts", "finding_tables", "read_findings"]

Found = Mapping[str, Sequence[Finding]]
"""Name → findings; only those that have a picture or a table of their own."""

_WANTED = {
    "orders": ("order_distribution", "survival", "worst_order", "smallest_reordering"),
    "mechanism": ("arms",),
    "retention": ("budget_curve", "retention_curve"),
    "reproduction": ("printed_table",),
}
_MOST_POOLS = 60
"""How many pools a survival map has rows for."""
_MOST_SAID = 500


def read_findings(stored: Stored) -> Found:
    """Read what is drawn."""
    there = stored.experiments()
    return {
        name: stored.findings(experiment, name)
        for experiment, names in _WANTED.items()
        if experiment in there
        for name in names
    }


def arms_of(found: Found) -> frozenset[str]:
    """Name the policies that are another one with some operations in source order."""
    return frozenset(
        arm["policy"]
        for one in found.get("arms", ())
        for arm in one.value
        if arm["policy"] != one.policy
    )


def finding_charts(found: Found, rows: Sequence[EstimateRow]) -> list[Chart]:
    """Draw what can be drawn."""
    return [
        *_distribution(found.get("order_distribution", ()), rows),
        *_survival(found.get("survival", ())),
        *_curves(found),
    ]


def _distribution(findings: Iterable[Finding], rows: Sequence[EstimateRow]) -> Iterable[Chart]:
    shown: list[dict[str, Any]] = []
    told = []
    estimates = grouped([row for row in rows if row.experiment == "orders"], ("policy", "schedule"))
    units: dict[tuple[str, str], int] = {}
    for one in findings:
        place = (one.policy, one.schedule)
        units[place] = units.get(place, 0) + 1
        if one.value.get("changed") is not None:
            shown.append(
                {
                    "kind": "unit",
                    "label": _label(one),
                    "estimate": one.value["changed"],
                    "jitter": jitter(units[place]),
                }
            )
    for place in units:
        row = estimates.get(place, {}).get("order_change")
        if row is not None and row.estimate is not None:
            label = " · ".join(map(short, place))
            shown.append({"kind": "mean", "label": label, **limits(row)})
            told.append(f"{label} {shown_interval(row)}")
    if shown:
        yield Chart(
            "order-distribution",
            "orders",
            "Share of orders that retain another set than forward",
            f"One point for each pool, with the mean and its interval: {'; '.join(told)}.",
            "profile",
            tuple(shown),
        )


def _survival(findings: Iterable[Finding]) -> Iterable[Chart]:
    by_route: dict[tuple[str, str], list[Finding]] = {}
    for one in findings:
        by_route.setdefault((one.policy, one.schedule), []).append(one)
    for (policy, schedule), pools in by_route.items():
        shown = [
            {"user": short(one.user, 24), "position": position, "kept": probability}
            for one in pools[:_MOST_POOLS]
            for _, position, probability in one.value
        ]
        if not shown:
            continue
        kept = [value["kept"] for value in shown]
        more = (
            f"; the first {_MOST_POOLS} of {len(pools)} pools" if len(pools) > _MOST_POOLS else ""
        )
        yield Chart(
            f"survival-{chart_name(policy, schedule)}",
            "orders",
            f"Survival map: {short(policy)}, {short(schedule)}",
            f"Probability that a record is retained, by source position and pool: from "
            f"{min(kept):.2f} to {max(kept):.2f}, {sum(kept) / len(kept):.2f} on average{more}.",
            "survival",
            tuple(shown),
        )


_LINES = (
    "overlap.retained",
    "overlap.exposed",
    "recall.retained.forward",
    "recall.retained.route",
    "recall.exposed.forward",
    "recall.exposed.route",
)


def _curves(found: Found) -> Iterable[Chart]:
    drawn: list[tuple[str, Finding, str, Sequence[Mapping[str, Any]]]] = [
        ("budget", one, str(one.value["parameter"]), one.value["points"])
        for one in found.get("budget_curve", ())
    ]
    drawn += [
        ("t", one, "records that have arrived", one.value)
        for one in found.get("retention_curve", ())
    ]
    for at, one, axis, points in drawn:
        shown = [
            {"x": point[at], "line": name, **dict(zip(_LIMITS, point[name], strict=True))}
            for point in points
            for name in _LINES
            if point.get(at) is not None and name in point
        ]
        if not shown:
            continue
        told = "; ".join(f"{v['line']} at {v['x']:g} {v['estimate']:.3f}" for v in shown[:18])
        yield Chart(
            f"curve-{at}-{chart_name(one.policy, one.schedule, one.interface)}",
            "curves",
            f"{short(one.policy)}, {short(one.schedule)}, {short(one.interface)}: by {axis}",
            f"Overlap and support recall by {axis}: {told}.",
            "curve",
            tuple(shown),
        )


_LIMITS = ("estimate", "lower", "upper")


def _label(one: Finding) -> str:
    return " · ".join(map(short, (one.policy, one.schedule)))


def finding_tables(found: Found) -> list[Table]:
    """List the orders that matter most, each with its sentence."""
    made = []
    for name, title, caption in (
        (
            "smallest_reordering",
            "Smallest reorderings",
            "For each question the reordering with the fewest inversions whose outcome is not "
            "forward's; numbers are source positions from 0.",
        ),
        ("worst_order", "Worst orders", "For each pool the order that is worst for the objective."),
    ):
        told = [one for one in found.get(name, ()) if one.value.get("sentence")]
        told.sort(key=lambda one: _place(one.value))
        cells = tuple(
            (
                one.policy,
                one.schedule,
                one.user,
                one.value["sentence"],
                str(one.value.get("inversions", "")),
                "exact" if one.value.get("exact") else "searched",
            )
            for one in told[:_MOST_SAID]
        )
        if cells:
            columns = ("policy", "arrival", "user", "what happens", "inversions", "found by")
            made.append(Table(name.replace("_", "-"), title, caption, columns, cells, names=4))
    return [*made, *printed_tables(found.get("printed_table", ()))]


def _place(value: Mapping[str, Any]) -> tuple[float, ...]:
    """Put what loses something first: by the least accident, or what loses most."""
    if "forward" in value and "value" in value:
        return (value["value"] - value["forward"],)
    kept = value.get("forward_keeps") is not False
    return (not value.get("found", True), not kept, value.get("inversions") or 0)
