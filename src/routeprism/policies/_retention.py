"""The state of policies that keep whole records: what arrived, what is kept, what happened."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from routeprism.policies._contracts import Event, EventKind, JsonValue
from routeprism.policies.interfaces import Interface, WholeRecords, whole_records
from routeprism.records import Record


@dataclass(frozen=True, slots=True)
class Retention:
    """An immutable state, from which other arrivals can continue."""

    arrived: tuple[Record, ...] = ()
    records: tuple[Record, ...] = ()
    """What is kept, in the order in which it was last written."""
    events: tuple[Event, ...] = ()

    def take(
        self, record: Record, records: Iterable[Record], *changes: tuple[EventKind, Record]
    ) -> Retention:
        """Return the state after one more arrival: what is kept then, and what it did to which."""
        at = len(self.arrived)
        events = (Event(kind, member.id, record.id, at) for kind, member in changes)
        return Retention((*self.arrived, record), tuple(records), (*self.events, *events))

    def finish(self, interface: Interface, state: JsonValue = None) -> WholeRecords:
        """Return the memory; its state is, by default, the kept ids in order."""
        log = self.events
        return whole_records(interface, self.arrived, self.records, state=state, log=lambda: log)

    def name_records(self, *, in_order: bool) -> tuple[str, ...]:
        """Name what is kept, in order only where the order decides something."""
        ids = [record.id for record in self.records]
        return tuple(ids if in_order else sorted(ids))
