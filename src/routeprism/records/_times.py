"""Times of records: their formats, the order of events, and facts that change with them.

Times are read in the same way on every version of Python. `supersedes` says which record replaces
which. It is a label: it stays beside the records, in the case, and no policy is given it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from routeprism.errors import InputError

if TYPE_CHECKING:
    from routeprism.records._benchmarks import Record

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


Supersedes = Mapping[str, frozenset[str]]
"""Record → the records whose statement it replaces."""

_BEGINNING = datetime(1, 1, 1, tzinfo=timezone.utc)


def event_order(records: Sequence[Record]) -> tuple[int, ...]:
    """Return the records' places in `records` by event time, ties by source position.

    A record without a time counts with the time of the record before it in source order, so a
    pool without any times stays in source order.
    """
    time = _BEGINNING
    times: dict[int, datetime] = {}
    for at, record in sorted(enumerate(records), key=lambda pair: pair[1].position):
        time = times[at] = _read_event_time(record) or time
    return tuple(sorted(times, key=lambda at: (times[at], records[at].position)))


def _read_event_time(record: Record) -> datetime | None:
    if record.timestamp is None or not record.timestamp.strip():
        return None
    time = read_time(record.timestamp)
    if time is None:
        raise InputError(
            f"Expected a time such as {TIME_EXAMPLES} but got "
            f"timestamp={record.timestamp!r:.60} of record '{record.id}'",
            field="timestamp",
        )
    return time


def find_superseded(supersedes: Supersedes, ids: Iterable[str]) -> frozenset[str]:
    """Return every record that some of these replace, directly or through a chain."""
    superseded: set[str] = set()
    waiting = list(ids)
    while waiting:
        for earlier in supersedes.get(waiting.pop(), frozenset()):
            if earlier not in superseded:
                superseded.add(earlier)
                waiting.append(earlier)
    return frozenset(superseded)


def derive_stale(supersedes: Supersedes, support: frozenset[str]) -> frozenset[str]:
    """Return the outdated evidence of a question: what its current evidence replaces."""
    return find_superseded(supersedes, support) - support


def find_superseding(supersedes: Supersedes, record: str) -> frozenset[str]:
    """Return every record that replaces this one, directly or through a chain."""
    return frozenset(
        later for later in supersedes if record in find_superseded(supersedes, (later,))
    )


def is_in_event_order(records: Sequence[Record], supersedes: Supersedes) -> bool:
    """Whether each record comes after all records that it replaces."""
    places = {record.id: place for place, record in enumerate(records)}
    return all(
        places[later] > places[earlier] for later, ids in supersedes.items() for earlier in ids
    )


def check_supersedes(records: Sequence[Record], supersedes: Supersedes, user: str) -> None:
    """Refuse labels that name unknown records, form a cycle, or contradict the event times."""
    if fault := find_fault(records, supersedes, user):
        raise InputError(fault[1], field="supersedes")


def find_fault(
    records: Sequence[Record], supersedes: Supersedes, user: str
) -> tuple[str, str] | None:
    """Return the first record whose label cannot be right, and the reason."""
    by_place = [records[at] for at in event_order(records)]
    places = {record.id: place for place, record in enumerate(by_place)}
    for record, earlier_ids in supersedes.items():
        if unknown := sorted(earlier_ids - places.keys()):
            return record, (
                f"record '{record}' supersedes '{unknown[0]}', which user '{user}' does not have"
            )
        if record not in places:
            return record, f"user '{user}' does not have the record '{record}'"
    for record, earlier_ids in supersedes.items():
        if record in find_superseded(supersedes, (record,)):
            return record, (
                f"record '{record}' supersedes itself through the chain that begins with "
                f"'{min(earlier_ids)}'"
            )
        for earlier in sorted(earlier_ids):
            if places[earlier] > places[record]:
                times = [
                    by_place[places[record_id]].timestamp or "no time"
                    for record_id in (record, earlier)
                ]
                return record, (
                    f"record '{record}' ({times[0]}) supersedes '{earlier}' ({times[1]}), which is "
                    f"later in event time (ties by source position)"
                )
    return None
