"""Timestamps as a partial order: earlier before later, ties and missing times in any order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

from routeprism.errors import SpecError
from routeprism.records import Record

__all__ = ["PRECISIONS", "ranks"]

PRECISIONS = ("exact", "minute", "hour", "day", "month")
"""To what times are rounded down before they are compared."""

_FORMATS = (
    "%Y/%m/%d (%a) %H:%M",
    "%Y/%m/%d %H:%M:%S",
    "%Y/%m/%d %H:%M",
    "%Y/%m/%d",
    "%I:%M %p on %d %B, %Y",
)
"""Ways to write a time that are read besides ISO 8601 and seconds: those of the benchmarks."""
_SECONDS = re.compile(r"\d+(\.\d+)?\Z")


def ranks(records: Sequence[Record], precision: str = "exact") -> tuple[int | None, ...]:
    """Give each record's place among the distinct times; None where it has none."""
    times = [_time(record, precision) for record in records]
    places = {time: place for place, time in enumerate(sorted({t for t in times if t}))}
    return tuple(None if time is None else places[time] for time in times)


def _time(record: Record, precision: str) -> datetime | None:
    if record.timestamp is None or not record.timestamp.strip():
        return None
    time = _read(record)
    if precision == "exact":
        return time
    time = time.replace(second=0, microsecond=0)
    if precision != "minute":
        time = time.replace(minute=0)
    if precision in ("day", "month"):
        time = time.replace(hour=0)
    return time.replace(day=1) if precision == "month" else time


def _read(record: Record) -> datetime:
    text = str(record.timestamp).strip()
    if _SECONDS.match(text):
        return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=float(text))
    iso = text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text
    for read in (
        datetime.fromisoformat,
        *(lambda given, form=form: datetime.strptime(given, form) for form in _FORMATS),
    ):
        try:
            time = read(iso)
        except ValueError:
            continue
        return time if time.tzinfo else time.replace(tzinfo=timezone.utc)
    raise SpecError(
        f"Expected a time such as 2024-05-08T13:56:00 but got timestamp={text!r} "
        f"of record '{record.id}'"
    )
