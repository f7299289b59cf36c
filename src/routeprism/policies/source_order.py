"""`source-order(SPEC)`: the comparator of any policy, with every decision tied to source order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from routeprism.policies._contracts import Memory, Policy
from routeprism.records import Record

__all__ = ["SourceOrder"]


@dataclass(frozen=True, slots=True)
class SourceOrder:
    """Gives its policy the arrivals in source order, however they came."""

    inner: Policy
    """The policy it is the comparator of."""

    @property
    def name(self) -> str:
        """The spec that every output says."""
        return f"source-order({self.inner.name})"

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Sort, then build."""
        return self.inner.build(tuple(sorted(arrivals, key=lambda record: record.position)))
