"""`raw`: keeps every record; only the interface decides what is shown."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from routeprism.policies._contracts import Event, Memory, fold
from routeprism.policies.interfaces import Budget, Interface, WholeRecords, whole_records
from routeprism.records import Record

__all__ = ["Raw"]

Arrived = tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class Raw:
    """Keeps every record in a list, in arrival order."""

    interface: Interface = field(default_factory=Budget)
    """What reaches the prompt."""

    @property
    def name(self) -> str:
        """The spec in every output."""
        return "raw"

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Keep them all."""
        return fold(self, arrivals)

    def start(self) -> Arrived:
        """Start without any arrival."""
        return ()

    def step(self, state: Arrived, record: Record, /) -> Arrived:
        """Append."""
        return (*state, record)

    def finish(self, state: Arrived, /) -> WholeRecords:
        """Keep the list."""
        return whole_records(self.interface, state, state, log=lambda: _log(state))

    def key(self, state: Arrived, /) -> Hashable:
        """Name nothing, since the same records expose the same, unless display follows arrival."""
        return tuple(r.id for r in state) if self.interface.display == "arrival" else ()


def _log(state: Arrived) -> Sequence[Event]:
    return tuple(Event("add", record.id, record.id, at) for at, record in enumerate(state))
