"""The memory of every policy that keeps whole records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from routeprism.policies._contracts import Event, Exposure, JsonValue
from routeprism.policies.interfaces import Expose, Interface
from routeprism.records import Record

__all__ = ["WholeRecords", "whole_records"]


@dataclass(frozen=True, slots=True)
class WholeRecords:
    """Records kept whole, exposed through an interface."""

    kept: tuple[Record, ...]
    """What is retained, in arrival order."""
    internal: JsonValue
    """What the signature is taken from."""
    reader: Expose
    """The interface, opened on what is kept."""
    log: Callable[[], Sequence[Event]]
    """Makes the event log when it is asked for."""
    places: Mapping[str, str]
    """Dropped record → the kept record that took its place, where the policy knows."""

    def retained(self) -> frozenset[str]:
        """Give the ids of the kept records."""
        return frozenset(record.id for record in self.kept)

    def state(self) -> JsonValue:
        """Give what the policy declares as its internal state."""
        return self.internal

    def expose(self, query: str, /) -> Exposure:
        """Ask the interface."""
        return self.reader(query)

    def stand_ins(self) -> Mapping[str, str]:
        """Give the kept record that took each dropped record's place."""
        return self.places

    def events(self) -> Sequence[Event]:
        """Give what each arrival did."""
        return self.log()


def whole_records(
    interface: Interface,
    arrivals: Sequence[Record],
    kept: Sequence[Record],
    *,
    state: JsonValue = None,
    log: Callable[[], Sequence[Event]] = tuple,
    stand_ins: Mapping[str, str] | None = None,
) -> WholeRecords:
    """Make the memory; its state, unless given, is the kept ids in arrival order."""
    internal = [record.id for record in kept] if state is None else state
    reader = interface.open(arrivals, kept)
    return WholeRecords(tuple(kept), internal, reader, log, stand_ins or {})
