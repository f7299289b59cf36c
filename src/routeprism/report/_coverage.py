"""Charts of what is left of the evidence: recall of support, forward and on the other order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from routeprism.report._charts import Chart, chart_name, limits, short
from routeprism.runs import EstimateRow

__all__ = ["coverage_charts"]

_WHERE = {"retained": "retained", "exposed": "shown to the question"}
_SIDES = ("forward", "route")


Cells = dict[tuple[str, str, str], EstimateRow]
"""(policy, kind of question, side) → its recall."""


def coverage_charts(rows: Sequence[EstimateRow], arms: Collection[str] = ()) -> list[Chart]:
    """Draw recall by policy, and by kind of question for each that is no `arm` of another."""
    found: dict[tuple[str, str], Cells] = {}
    for row in rows:
        quantity, _, rest = row.quantity.partition(".")
        where, _, side = rest.partition(".")
        plain = row.experiment == "retention" and not row.mask and not row.arm
        if plain and quantity == "recall" and side in _SIDES and row.estimate is not None:
            place = found.setdefault((row.schedule, where), {})
            place[row.policy, row.stratum, side] = row
    made: list[Chart] = []
    for (schedule, where), cells in found.items():
        if where == "retained" and _same(cells, found.get((schedule, "exposed"), {})):
            continue  # everything that is kept is shown
        policies = list(dict.fromkeys(policy for policy, _, _ in cells))
        name = chart_name(where, schedule)
        title = f"Support {_WHERE.get(where, where)}, {short(schedule)}"
        if len(policies) > 1:
            lines = {policy: (policy, "all") for policy in policies}
            made += _pairs(f"coverage-{name}", f"{title}: by policy", lines, cells, schedule)
        for policy in policies:
            kinds = sorted({kind for one, kind, _ in cells if one == policy and kind != "all"})
            if len(kinds) < 2 or policy in arms or not _differs(cells, policy):
                continue
            lines = {kind: (policy, kind) for kind in ("all", *kinds)}
            made += _pairs(
                f"coverage-{chart_name(policy, where, schedule)}-kinds",
                f"{title}: {short(policy)} by kind of question",
                lines,
                cells,
                schedule,
            )
    return made


def _differs(cells: Cells, policy: str) -> bool:
    return any(
        row.estimate != cells[one, kind, "route"].estimate
        for (one, kind, side), row in cells.items()
        if one == policy and side == "forward" and (one, kind, "route") in cells
    )


def _same(one: Cells, other: Cells) -> bool:
    return {key: row.estimate for key, row in one.items()} == {
        key: row.estimate for key, row in other.items()
    }


def _pairs(
    name: str,
    title: str,
    lines: Mapping[str, tuple[str, str]],
    cells: Cells,
    schedule: str,
) -> Iterable[Chart]:
    shown: list[dict[str, Any]] = []
    told = []
    for label, (policy, kind) in lines.items():
        both = [cells.get((policy, kind, side)) for side in _SIDES]
        for side, row in zip(("forward", short(schedule)), both, strict=True):
            if row is not None:
                shown.append({"label": short(label), "side": side, **limits(row)})
        if both[0] and both[1]:
            told.append(f"{label} {both[0].estimate:.3f} forward, {both[1].estimate:.3f} other")
    if shown:
        yield Chart(
            name,
            "evidence",
            title,
            f"Share of the support records, forward and on {schedule}: {'; '.join(told[:24])}.",
            "pairs",
            tuple(shown),
        )
