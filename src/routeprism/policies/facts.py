"""`facts:by=arrival|time`: keeps one record for each fact, resolved by arrival or by event time."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, TypeAlias

from routeprism import specs
from routeprism.errors import SpecError
from routeprism.policies._contracts import EventKind, Memory, fold
from routeprism.policies._event_order import sort_events
from routeprism.policies._retention import Retention
from routeprism.policies.interfaces import Budget, Interface, WholeRecords
from routeprism.records import Record

__all__ = ["SAMPLE_KEYS", "Facts", "KeyFunction", "find_key_function"]


KeyFunction: TypeAlias = Callable[[Record], str | None]
"""Names the fact that a record states, from its text; None for a record that states none."""

SAMPLE_KEYS = "routeprism.records.sample_updates:name_fact"
"""The function for the sample with updates."""


def find_key_function(keys: str | KeyFunction) -> KeyFunction:
    """Return a function that was passed, or that is named `package.module:function`."""
    function = _load(keys) if isinstance(keys, str) else keys
    if not callable(function):
        raise SpecError(f"Expected a function of a record but got keys={keys!r:.60}")
    key_function: KeyFunction = function
    return key_function


@lru_cache(maxsize=16)
def _load(name: str) -> object:
    return specs.load_object(name)


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

    def start(self) -> Retention:
        """Start without any arrival."""
        return Retention()

    def step(self, state: Retention, record: Record, /) -> Retention:
        """Write the record, replace one with it, or leave it out."""
        if self.by == "time":
            records = self._resolve((*state.arrived, record))
        else:
            records = self._write(state.records, record)
        return state.take(record, records, *_list_changes(state.records, records, record))

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

    def finish(self, state: Retention, /) -> WholeRecords:
        """Keep what was written last."""
        return state.finish(self.interface)

    def key(self, state: Retention, /) -> Hashable:
        """Name what is kept, in order only where the order of writing is shown."""
        by_arrival = self.by == "arrival" and self.interface.display == "arrival"
        return state.name_records(in_order=by_arrival)


def _list_changes(
    before: Sequence[Record], after: Sequence[Record], record: Record
) -> list[tuple[EventKind, Record]]:
    """List what an arrival did to the records that were kept."""
    if displaced := [member for member in before if member not in after]:
        return [("overwrite", member) for member in displaced]
    return [("add" if record in after and record not in before else "skip", record)]
