"""Formats of times, which are read in the same way on every version of Python."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

__all__ = ["TIME_EXAMPLES", "read_time"]

TIME_EXAMPLES = "2024-05-08, 2024-05-08T13:56:00+02:00 or seconds since 1970"
"""Examples for an error message."""

_ISO = re.compile(
    r"(?P<date>\d{4}-\d{2}-\d{2})"
    r"(?:[T ](?P<time>\d{2}:\d{2}(?::\d{2})?)(?:\.(?P<fraction>\d{1,6}))?"
    r"(?P<zone>[Zz]|[+-]\d{2}:\d{2})?)?"
)
_FORMATS = (
    "%Y/%m/%d (%a) %H:%M",
    "%Y/%m/%d %H:%M:%S",
    "%Y/%m/%d %H:%M",
    "%Y/%m/%d",
    "%I:%M %p on %d %B, %Y",
)
"""The formats of the benchmarks, which are read besides ISO 8601 and seconds."""
_SECONDS = re.compile(r"\d+(\.\d+)?")
_PLAIN_DATE = re.compile(r"(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])")
"""`20240508`, which would pass for a day in 1970 if it were read as seconds."""
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def read_time(text: str) -> datetime | None:
    """Read a time; None if its format is unknown. Without a zone it is UTC."""
    text = text.strip()
    try:
        if _SECONDS.fullmatch(text):
            plain = _PLAIN_DATE.fullmatch(text)
            return None if plain else _EPOCH + timedelta(seconds=float(text))
        time = _read_iso(text)
    except (ValueError, OverflowError):  # no such day, or beyond the year 9999
        return None
    if time is None:
        time = next((parsed for form in _FORMATS if (parsed := _read_form(text, form))), None)
    return time if time is None or time.tzinfo else time.replace(tzinfo=timezone.utc)


def _read_iso(text: str) -> datetime | None:
    match = _ISO.fullmatch(text)
    if match is None:
        return None
    # In the one form that every supported Python reads.
    zone = "+00:00" if match["zone"] in ("Z", "z") else match["zone"] or ""
    fraction = f".{match['fraction']:0<6}" if match["fraction"] else ""
    clock = match["time"] or "00:00"
    clock = clock if clock.count(":") == 2 or not fraction else f"{clock}:00"
    return datetime.fromisoformat(f"{match['date']}T{clock}{fraction}{zone}")


def _read_form(text: str, form: str) -> datetime | None:
    try:
        return datetime.strptime(text, form)
    except ValueError:
        return None
