"""`source-order(SPEC)`: the comparator of any policy, with every decision tied to source order."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from routeprism.policies._contracts import Memory, Policy
from routeprism.records import Record

__all__ = ["SourceOrder"]

Arrived = tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class SourceOrder:
    """Gives its policy the arrivals in source order, each once, however they came."""

    inner: Policy
    """The policy it is the comparator of."""

    @property
    def name(self) -> str:
        """The spec that every output says."""
        return f"source-order({self.inner.name})"

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Sort, then build."""
        return self.finish(self.sorted(arrivals))

    def sorted(self, arrivals: Sequence[Record]) -> Arrived:
        """Give what its policy sees of these arrivals."""
        first = {record.position: record for record in reversed(arrivals)}
        return tuple([first[position] for position in sorted(first)])

    def start(self) -> Arrived:
        """Nothing has arrived."""
        return ()

    def step(self, state: Arrived, record: Record, /) -> Arrived:
        """Put the record in its place, unless it came before."""
        at = bisect_left(state, record.position, key=lambda held: held.position)
        if at < len(state) and state[at].position == record.position:
            return state
        return (*state[:at], record, *state[at:])

    def finish(self, state: Arrived, /) -> Memory:
        """Build from all of them."""
        return self.inner.build(state)

    def key(self, state: Arrived, /) -> Hashable:
        """Name nothing: the same records are the same list."""
        return ()
