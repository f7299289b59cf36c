"""`recent:k=N`: keeps the last N arrivals (Appendix C.3)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from routeprism.policies._contracts import Event, Memory
from routeprism.policies.interfaces import Budget, Interface, WholeRecords, whole_records
from routeprism.records import Record
from routeprism.specs import positive

__all__ = ["Recent"]

Arrived = tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class Recent:
    """A bounded window over the arrivals."""

    k: int = 3
    """How many records the window contains."""
    interface: Interface = field(default_factory=Budget)
    """What of them reaches the prompt."""

    def __post_init__(self) -> None:
        positive(self.name, k=self.k)

    @property
    def name(self) -> str:
        """The spec in every output."""
        return f"recent:k={self.k}"

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Keep the last k."""
        return self.finish(tuple(arrivals))

    def start(self) -> Arrived:
        """Start without any arrival."""
        return ()

    def step(self, state: Arrived, record: Record, /) -> Arrived:
        """Append; what leaves the window stays in the state only as statistics of the pool."""
        return (*state, record)

    def finish(self, state: Arrived, /) -> WholeRecords:
        """Keep the end of the list."""
        return whole_records(self.interface, state, state[-self.k :], log=lambda: self._log(state))

    def key(self, state: Arrived, /) -> Hashable:
        """Name the window in order: its oldest record leaves first."""
        return tuple([record.id for record in state[-self.k :]])  # a list is faster to take

    def _log(self, state: Arrived) -> Sequence[Event]:
        events: list[Event] = []
        for at, record in enumerate(state):
            events.append(Event("add", record.id, record.id, at))
            if at >= self.k:
                events.append(Event("evict", state[at - self.k].id, record.id, at))
        return tuple(events)
