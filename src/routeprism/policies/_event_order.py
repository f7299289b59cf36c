"""Event order of records as they arrive: by timestamp, ties by source position.

This is the rule of `routeprism.records.event_order`, one arrival at a time: a record without a time
counts with the time of the record before it in source order, among those that have arrived.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, TypeAlias

from routeprism.records import Record, read_time

Key: TypeAlias = Callable[[Record], Any]
"""A place of your own for each record in event order."""

_BEGINNING = datetime.min.replace(tzinfo=timezone.utc)


@dataclass(slots=True)
class EventClock:
    """Returns the place of a record in event order, from the records that it has seen."""

    key: Key | None = None
    """A place of your own for each record, instead of its time and its source position."""
    _times: list[tuple[int, datetime]] = field(default_factory=list, init=False)
    _has_undated: bool = field(default=False, init=False)

    @property
    def is_mixed(self) -> bool:
        """Whether a later record may change the place of one that has no time."""
        return self.key is None and self._has_undated and bool(self._times)

    def see(self, record: Record) -> None:
        """Learn the time of a record."""
        time = _read_time(record)
        if time is None:
            self._has_undated = True
        else:
            insort(self._times, (record.position, time))

    def place(self, record: Record) -> Any:
        """Return the place of a record, for comparison with the places of other records."""
        if self.key is not None:
            return self.key(record)
        time = _read_time(record)
        if time is None:
            at = bisect_left(self._times, (record.position, _BEGINNING))
            time = self._times[at - 1][1] if at else _BEGINNING
        return time, record.position


def _read_time(record: Record) -> datetime | None:
    return record.derive(_parse_time)


def _parse_time(record: Record) -> datetime | None:
    return read_time(record.timestamp) if record.timestamp else None


@dataclass(slots=True)
class EventLog:
    """Records in event order, each of them once."""

    clock: EventClock = field(default_factory=EventClock)
    records: list[Record] = field(default_factory=list, init=False)
    _known: set[Record] = field(default_factory=set, init=False)

    def add(self, record: Record) -> int | None:
        """Insert a record; give the first place that changes, or None if it has arrived before."""
        if record in self._known:
            return None
        self._known.add(record)
        self.clock.see(record)
        if not self.clock.is_mixed:
            at = bisect_right(self.records, self.clock.place(record), key=self.clock.place)
            self.records.insert(at, record)
            return at
        before = self.records
        self.records = sorted([*before, record], key=self.clock.place)
        pairs = enumerate(zip(before, self.records, strict=False))
        return next((at for at, (old, new) in pairs if old is not new), len(before))


@dataclass(slots=True)
class EventBuffer:
    """Holds `size` records back, and releases them in event order."""

    size: int
    clock: EventClock = field(default_factory=EventClock)
    records: list[Record] = field(default_factory=list, init=False)

    def add(self, record: Record) -> Record | None:
        """Take a record; release the oldest one if there are more than `size`."""
        self.clock.see(record)
        self.records.append(record)
        self.records.sort(key=self.clock.place)
        return self.records.pop(0) if len(self.records) > self.size else None


def sort_events(records: Iterable[Record]) -> list[Record]:
    """Sort records by event time, ties by source position; a repeated record counts once."""
    clock = EventClock()
    unique = list(dict.fromkeys(records))
    for record in unique:
        clock.see(record)
    return sorted(unique, key=clock.place)
