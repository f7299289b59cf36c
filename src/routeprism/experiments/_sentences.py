"""Sentences a person can repeat, made from the rows by stated rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from routeprism.runs import EstimateRow

__all__ = ["diagnoses", "interval"]


def interval(row: EstimateRow, digits: int = 3) -> str:
    """Write an estimate with its limits."""
    if row.estimate is None:
        return "not applicable"
    shown = f"{row.estimate:.{digits}f}"
    if row.lower is None or row.upper is None:
        return f"{shown} (one {row.unit}, no interval)"
    return f"{shown} [{row.lower:.{digits}f}, {row.upper:.{digits}f}]"


def diagnoses(rows: Sequence[EstimateRow], synthetic: bool) -> tuple[str, ...]:
    """Say for each policy and schedule at which layers order showed."""
    grouped: dict[tuple[str, str], dict[str, EstimateRow]] = {}
    for row in rows:
        if row.experiment == "routes" and row.stratum == "all" and row.schedule and not row.arm:
            grouped.setdefault((row.policy, row.schedule), {})[row.quantity] = row
    tail = " (synthetic sample)" if synthetic else ""
    return tuple(
        f"{policy}, {schedule}: {_finding(found)}{tail}"
        for (policy, schedule), found in grouped.items()
        if "J" in found
    )


def _finding(found: Mapping[str, EstimateRow]) -> str:
    overlap = f"J = {interval(found['J'])}"
    sources = _changed(found, "V_changed")
    context = _changed(found, "C_changed")
    state = _changed(found, "I_changed")
    retained = _changed(found, "retained_changed")
    if sources:
        return f"{_share(found, 'V_changed')} changed its sources; {overlap}"
    if context:
        return (
            f"order reaches the context but not the sources: "
            f"{_share(found, 'C_changed')} changed its text; {overlap}"
        )
    if retained:
        return (
            f"{_share(found, 'retained_changed')} changed what it retained, "
            f"but nothing that was exposed; {overlap}"
        )
    if state:
        return (
            f"only internal state moved ({_share(found, 'I_changed')}); "
            f"sources and context stayed; {overlap}"
        )
    layers = "sources, context and state" if "I_changed" in found else "sources and context"
    return f"order changed nothing: {layers} are the same on both routes; {overlap}"


def _changed(found: Mapping[str, EstimateRow], quantity: str) -> bool:
    row = found.get(f"{quantity}_count")
    return row is not None and bool(row.estimate)


def _share(found: Mapping[str, EstimateRow], quantity: str) -> str:
    row = found[f"{quantity}_count"]
    count, total = int(row.estimate or 0), row.queries or 0
    return f"every pair ({total})" if count == total else f"{count} of {total} pairs"
