"""`facts:by=arrival|time`: keeps one record for each fact, resolved by arrival or by event time."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from routeprism.policies._contracts import Event, Memory, fold
from routeprism.policies._event_order import sort_events
from routeprism.policies._keys import SAMPLE_KEYS, KeyFunction, find_key_function
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
        arrived = (*state.arrived, record)
        if self.by == "time":
            records = self._resolve(arrived)
        else:
            records = self._write(state.records, record)
        events = _list_events(state.records, records, record, len(state.arrived))
        return _State(arrived, records, (*state.events, *events))

    def _write(self, records: tuple[Record, ...], record: Record) -> tuple[Record, ...]:
        """Let the last arrival win; a record that is there already changes nothing."""
        if record in records:
            return records
        name = find_key_function(self.keys)
        key = name(record)
        rest = (member for member in records if key is None or name(member) != key)
        return (*rest, record)

    def _resolve(self, arrivals: Sequence[Record]) -> tuple[Record, ...]:
        """Keep the latest record of each fact, in event order, however the records arrived."""
        name = find_key_function(self.keys)
        latest: dict[tuple[str, bool], Record] = {}
        for record in sort_events(arrivals):
            key = name(record)
            place = (record.id, False) if key is None else (key, True)
            latest.pop(place, None)
            latest[place] = record
        return tuple(latest.values())

    def finish(self, state: _State, /) -> WholeRecords:
        """Keep what was written last."""
        return whole_records(self.interface, state.arrived, state.records, log=lambda: state.events)

    def key(self, state: _State, /) -> Hashable:
        """Name what is kept, in order only where the order of writing is shown."""
        ids = tuple(record.id for record in state.records)
        by_arrival = self.by == "arrival" and self.interface.display == "arrival"
        return ids if by_arrival else frozenset(ids)


def _list_events(
    before: Sequence[Record], after: Sequence[Record], record: Record, at: int
) -> list[Event]:
    """List what an arrival did to the records that were kept."""
    displaced = [member for member in before if member not in after]
    if displaced:
        return [Event("overwrite", member.id, record.id, at) for member in displaced]
    kind: Literal["add", "skip"] = "add" if record in after and record not in before else "skip"
    return [Event(kind, record.id, record.id, at)]
