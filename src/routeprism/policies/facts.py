"""`facts:by=arrival|time`: keeps one record for each fact, resolved by arrival or by event time."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from routeprism.policies._contracts import Event, Memory, fold
from routeprism.policies._keys import SAMPLE_KEYS, KeyFunction, find_key_function, read_event_time
from routeprism.policies.interfaces import Budget, Interface, WholeRecords, whole_records
from routeprism.records import Record

__all__ = ["Facts"]


class _State(NamedTuple):
    arrived: tuple[Record, ...]
    records: tuple[Record, ...]
    """In the order in which they were last written."""
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """A key–value memory: a record replaces the record of the same key; others are all kept."""

    by: Literal["arrival", "time"] = "time"
    """Whether the last arrival wins, or the record with the latest event time."""
    keys: str | KeyFunction = SAMPLE_KEYS
    """Names the fact that a record states, from its text: a function, or `package.module:name`."""
    interface: Interface = field(default_factory=Budget)
    """What reaches the prompt."""

    @property
    def name(self) -> str:
        """The spec that every output shows."""
        own = (
            f",keys={self.keys}" if isinstance(self.keys, str) and self.keys != SAMPLE_KEYS else ""
        )
        return f"facts:by={self.by}{own}"

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Write one record after the other."""
        return fold(self, arrivals)

    def start(self) -> _State:
        """Nothing has arrived."""
        return _State((), (), ())

    def step(self, state: _State, record: Record, /) -> _State:
        """Write the record, replace one with it, or leave it out."""
        at = len(state.arrived)
        arrived = (*state.arrived, record)
        rival = self._find_rival(state.records, record)
        if rival is None:
            event = Event("add", record.id, record.id, at)
            return _State(arrived, (*state.records, record), (*state.events, event))
        if self._wins(record, rival):
            members = (*(member for member in state.records if member is not rival), record)
            event = Event("overwrite", rival.id, record.id, at)
            return _State(arrived, members, (*state.events, event))
        event = Event("skip", record.id, record.id, at)
        return _State(arrived, state.records, (*state.events, event))

    def _find_rival(self, records: Sequence[Record], record: Record) -> Record | None:
        """Find the record that this one competes with: of the same fact, or itself."""
        name = find_key_function(self.keys)
        key = name(record)
        for candidate in records:
            if candidate.id == record.id or (key is not None and name(candidate) == key):
                return candidate
        return None

    def _wins(self, record: Record, rival: Record) -> bool:
        if record.id == rival.id:
            return False
        return self.by == "arrival" or read_event_time(record) > read_event_time(rival)

    def finish(self, state: _State, /) -> WholeRecords:
        """Keep what was written last; resolved by time, nothing of the order of arrival is left."""
        members = state.records
        if self.by == "time":
            members = tuple(sorted(members, key=read_event_time))
        return whole_records(self.interface, state.arrived, members, log=lambda: state.events)

    def key(self, state: _State, /) -> Hashable:
        """Name what is kept, in order only where the order of writing is shown."""
        ids = tuple(record.id for record in state.records)
        by_arrival = self.by == "arrival" and self.interface.display == "arrival"
        return ids if by_arrival else frozenset(ids)
