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
    """Say for each policy at which layers order showed, schedule by schedule."""
    grouped: dict[str, dict[str, dict[str, EstimateRow]]] = {}
    for row in rows:
        if row.experiment == "routes" and row.stratum == "all" and row.schedule and not row.arm:
            routes = grouped.setdefault(row.policy, {})
            routes.setdefault(row.schedule, {})[row.quantity] = row
    tail = " (synthetic sample)" if synthetic else ""
    sentences = []
    for policy, routes in grouped.items():
        findings = {name: _finding(found) for name, found in routes.items() if "J" in found}
        told = [
            f"{finding}; {overlap}" if len(findings) == 1 else f"{finding} ({overlap}) on {name}"
            for name, (finding, overlap) in findings.items()
        ]
        sentences.append(f"{policy}: {'; '.join(told)}{tail}")
    return tuple(sentences)


def _finding(found: Mapping[str, EstimateRow]) -> tuple[str, str]:
    """Name the outermost layer that order reached: sources, context, retained set, state."""
    overlap = f"J = {interval(found['J'])}"
    if _changed(found, "V_changed"):
        return _share(found, "V_changed", "sources"), overlap
    if _changed(found, "C_changed"):
        share = _share(found, "C_changed", "text")
        return f"order reaches the context but not the sources, {share}", overlap
    if _changed(found, "retained_changed"):
        share = _share(found, "retained_changed", "retained set")
        return f"{share}, but nothing that was exposed", overlap
    if _changed(found, "I_changed"):
        share = _share(found, "I_changed", "internal state")
        return f"{share}, and nothing else moved", overlap
    layers = "sources, context and state" if "I_changed" in found else "sources and context"
    return f"order changed nothing, {layers} stayed the same", overlap


def _changed(found: Mapping[str, EstimateRow], quantity: str) -> bool:
    row = found.get(f"{quantity}_count")
    return row is not None and bool(row.estimate)


def _share(found: Mapping[str, EstimateRow], quantity: str, what: str) -> str:
    row = found[f"{quantity}_count"]
    count, total = int(row.estimate or 0), row.queries or 0
    if count == total:
        return f"every pair changed its {what}"
    return f"{count} of {total} pairs changed {'its' if count == 1 else 'their'} {what}"
