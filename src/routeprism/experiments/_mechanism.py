"""Mechanism localisation in words: which operation of a policy makes the difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from routeprism.experiments._contrasts import Mechanism
from routeprism.experiments._sentences import interval, said_flags
from routeprism.runs import EstimateRow

__all__ = ["mechanism_sentences"]

_HALF = 0.5
"""The share of the whole change from which on an operation is said to make it."""

Place = tuple[str, str, str]
"""Schedule, model, filler."""
Parts = dict[tuple[str, str, str], EstimateRow]
"""(quantity, policy, arm) → its row."""


def mechanism_sentences(
    rows: Sequence[EstimateRow], mechanisms: Sequence[Mechanism]
) -> tuple[str, ...]:
    """Say it for each policy and schedule: of the sources, and of each model's answers."""
    places: dict[Place, Parts] = {}
    for row in rows:
        plain = row.experiment == "mechanism" and row.stratum == "all"
        if plain and not row.mask and not row.batch:
            parts = places.setdefault((row.schedule, row.model, row.filler), {})
            parts[row.quantity, row.policy, row.arm] = row
    sentences = []
    for mechanism in mechanisms:
        for place, parts in places.items():
            readings = ("D_res", "H") if place[1] else ("J",)
            told = [said for name in readings if (said := _said(mechanism, name, place, parts))]
            sentences += told[:1]
    return tuple(sentences)


def _said(mechanism: Mechanism, quantity: str, place: Place, parts: Parts) -> str:
    """Write the sentence for one quantity; nothing where the run does not have it."""
    found = {
        following: row
        for following, name in mechanism.arms.items()
        if (row := parts.get((f"delta_op.{quantity}", name, "+".join(following))))
    }
    whole = found.get(mechanism.operations)
    if whole is None:
        return ""
    schedule, model, filler = place
    alone = {following[0]: row for following, row in found.items() if len(following) == 1}
    who = f", read by {model}, filler {filler}" if model else ""
    told = f"{quantity} changes by {interval(whole)}"
    if len(mechanism.operations) > 1:
        told += f" with {' and '.join(mechanism.operations)} in arrival order"
        told += "".join(f", {interval(row)} with {name} alone" for name, row in alone.items())
        told += f"; {_cause(whole, alone)}"
    where = f"{mechanism.policy}, {schedule}{who}, against its canonical arm"
    return f"{where}: {told}{said_flags(whole)}"


def _cause(whole: EstimateRow, alone: Mapping[str, EstimateRow]) -> str:
    """Name the operations that alone give half of the change or more, and surely some of it."""
    if not _sure(whole):
        return "no effect of order is shown"
    total = whole.estimate or 0.0
    causes = [
        name for name, row in alone.items() if _sure(row) and (row.estimate or 0.0) / total >= _HALF
    ]
    if not causes:
        return "no operation alone gives half of it"
    return f"{' and '.join(causes)} alone gives half of it or more"


def _sure(row: EstimateRow) -> bool:
    """Whether the interval leaves zero out."""
    return row.lower is not None and row.upper is not None and (row.lower > 0 or row.upper < 0)
