"""Sentences a person can repeat, made from the rows by stated rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from routeprism.runs import EstimateRow

__all__ = [
    "answer_sentences",
    "beyond",
    "interval",
    "restoration_sentences",
    "said_flags",
    "said_number",
    "said_size",
    "widest",
]


def interval(row: EstimateRow, digits: int = 3) -> str:
    """Write an estimate with its limits."""
    if row.estimate is None:
        return "not applicable"
    shown = f"{row.estimate:.{digits}f}"
    if row.lower is None or row.upper is None:
        return f"{shown} (one {row.unit}, no interval)"
    return f"{shown} [{row.lower:.{digits}f}, {row.upper:.{digits}f}]"


def said_number(number: int | None, noun: str) -> str:
    """Count something whose plural ends in s."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def said_size(row: EstimateRow) -> str:
    """Say how many pairs and units an estimate rests on."""
    return f"{said_number(row.queries, 'pair')}, {said_number(row.units, row.unit)}"


def answer_sentences(rows: Sequence[EstimateRow]) -> tuple[str, ...]:
    """Say for each policy, schedule and model what the answers did beyond the model's noise."""
    grouped: dict[tuple[str, ...], dict[str, EstimateRow]] = {}
    for row in rows:
        plain = not row.arm and not row.mask and row.experiment == "routes"
        if row.model and plain and row.stratum == "all":
            place = (row.policy, row.schedule, row.model, row.batch, row.filler)
            grouped.setdefault(place, {})[row.quantity] = row
    sentences = []
    for (policy, schedule, model, batch, filler), found in widest(grouped).items():
        if "accuracy.forward" not in found and "H" not in found:
            continue
        parts = []
        if "D_res" in found:
            parts.append(f"{beyond(found['D_res'])} (D_res = {interval(found['D_res'])})")
        elif "H" in found:
            parts.append(f"the answer differed in {interval(found['H'])} of pairs (one draw)")
        if "Delta_rep" in found:
            before, after = (found[f"accuracy.{side}"].estimate for side in ("forward", "route"))
            change = interval(found["Delta_rep"])
            parts.append(f"accuracy {before:.3f} forward, {after:.3f} on {schedule} ({change})")
        one = next(iter(found.values()))
        tail = said_flags(one)
        who = f"{policy} read by {model}" + (f", batch {batch}" if batch else "")
        sentences.append(f"{who}, filler {filler}: {'; '.join(parts)}{tail}")
    return tuple(sentences)


def restoration_sentences(rows: Sequence[EstimateRow]) -> tuple[str, ...]:
    """Say for each policy, schedule and model whether the displaced record mattered."""
    grouped: dict[tuple[str, ...], dict[str, EstimateRow]] = {}
    for row in rows:
        plain = row.experiment == "restoration" and row.stratum == "all" and not row.mask
        if row.model and plain and row.arm in ("", "bundle", "identity-swap"):
            place = (row.policy, row.schedule, row.model, row.batch, row.arm, row.filler)
            grouped.setdefault(place, {})[row.quantity] = row
    sentences = []
    for (policy, schedule, model, _, arm, filler), found in widest(grouped).items():
        if "restored-absent" not in found or "restored-replacement" not in found:
            continue
        one = found["restored-absent"]
        if arm == "identity-swap":
            sentences.append(_swapped(policy, schedule, model, filler, found))
            continue
        what = "the whole missing bundle" if arm else "the displaced record"
        gain = f"{interval(one)} of accuracy"
        if one.lower is not None and one.lower > 0:
            verdict = f"putting {what} back recovers {gain}"
        else:
            verdict = f"putting {what} back is not shown to help: {gain}"
        against = interval(found["restored-replacement"])
        other = "an equal bundle" if arm else "a matched record"
        parts = [f"against {other} without support {against}"]
        if "restored-present" in found:
            parts.append(f"against the route that had it {interval(found['restored-present'])}")
        tail = said_flags(one)
        sentences.append(
            f"{policy}, {schedule}, read by {model}, filler {filler}: {verdict}; "
            f"{', '.join(parts)} ({said_size(one)}, labels {one.labels}){tail}"
        )
    return (*sentences, *_eligibility(rows))


def _swapped(
    policy: str, schedule: str, model: str, filler: str, found: Mapping[str, EstimateRow]
) -> str:
    """Say what exchanging two support records is worth, and what taking one out costs."""
    one = found["restored-absent"]
    tail = said_flags(one)
    return (
        f"{policy}, {schedule}, read by {model}, filler {filler}: where one support record stands "
        f"in another's place, exchanging them is worth {interval(one)} of accuracy; against a "
        f"record without support there {interval(found['restored-replacement'])} "
        f"({said_size(one)}, labels {one.labels}){tail}"
    )


def _eligibility(rows: Sequence[EstimateRow]) -> list[str]:
    """Say how many pairs are eligible, and why the others are not."""
    grouped: dict[tuple[str, str], dict[str, int]] = {}
    for row in rows:
        counted = row.experiment == "restoration" and row.quantity.startswith("count.")
        if counted and row.stratum == "all" and not (row.model or row.mask or row.arm):
            name = row.quantity.removeprefix("count.")
            grouped.setdefault((row.policy, row.schedule), {})[name] = int(row.estimate or 0)
    said = []
    for (policy, schedule), counts in grouped.items():
        total, eligible = sum(counts.values()), counts.pop("eligible", 0)
        why = ", ".join(f"{number} {name}" for name, number in counts.items())
        left = f"; left out: {why}" if why else ""
        said.append(f"{policy}, {schedule}: {eligible} of {total} pairs are eligible{left}")
    return said


Rows = TypeVar("Rows")


def widest(grouped: Mapping[tuple[str, ...], Rows]) -> dict[tuple[str, ...], Rows]:
    """Keep, of several fillers (the last name of a place), the average over all of them."""
    longest: dict[tuple[str, ...], str] = {}
    for *place, filler in grouped:
        longest[tuple(place)] = max(longest.get(tuple(place), ""), filler, key=len)
    return {place: found for place, found in grouped.items() if longest[place[:-1]] == place[-1]}


def said_flags(row: EstimateRow) -> str:
    """Say whether data are synthetic or the model is embedded."""
    said = (flag for flag in row.flags.split(";") if flag in ("synthetic", "embedded"))
    return "".join(f" [{flag}]" for flag in said)


def beyond(row: EstimateRow) -> str:
    """Say what a residual shows."""
    if row.lower is None:
        return f"one {row.unit} alone gives no interval"
    if row.lower is not None and row.lower > 0:
        return "the routes disagree more than the model disagrees with itself"
    if row.upper is not None and row.upper < 0:
        return "the routes disagree less than the model disagrees with itself"
    return "no disagreement beyond the model's own is shown"
