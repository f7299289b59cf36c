"""Orders of arrival in plain words, for every output."""

from __future__ import annotations

from collections.abc import Iterable

from routeprism.orders._schedules import FORWARD, SEPARATOR, name_reference, split_procedure

_SCHEDULES = {"replay": "reversal", FORWARD.name: "source order"}


def describe_arrival(schedule: str) -> str:
    """Name an arrival model or schedule in plain words.

    >>> describe_arrival("jitter:w=2"), describe_arrival("replay")
    ('ordinary disorder', 'reversal')
    """
    if schedule in _SCHEDULES:
        return _SCHEDULES[schedule]
    model, _, text = schedule.partition(":")
    options = dict(pair.partition("=")[::2] for pair in text.split(",") if pair)
    if model == "jitter":
        width = options.pop("w", "2")
        name = "ordinary disorder" if width == "2" else f"{width}-place disorder"
    elif model == "late-batch":
        name = "late batch"
    else:
        return schedule
    return ", ".join((name, *(f"{option} {value}" for option, value in options.items())))


def name_base(schedules: Iterable[str]) -> str:
    """Name what schedules are compared with: `source order`, or their common reference."""
    references = {name_reference(schedule) for schedule in schedules} or {FORWARD.name}
    return describe_arrival(references.pop()) if len(references) == 1 else "the reference"


def locate_base(schedules: Iterable[str]) -> str:
    """Name where the numbers of the reference were observed: `in source order`, `under restart`."""
    base = name_base(schedules)
    return f"in {base}" if base == "source order" else f"under {base}"


def list_arrivals(schedules: Iterable[str]) -> list[str]:
    """List orders of arrival without those that are drawn from an arrival model in the list."""
    names = list(schedules)
    models = {f"{name}{',' if ':' in name else ':'}seed=" for name in names}
    return [name for name in names if not name.startswith(tuple(models))]


def overlaps_writes(schedule: str) -> bool:
    """Return whether a schedule adds records at the same time, so that no order is promised."""
    order = schedule.partition(SEPARATOR)[0]
    return split_procedure(order)[1].kind == "overlap"
