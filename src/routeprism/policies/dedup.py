"""`dedup:threshold=T,keep=first|time`: keeps one record of those that are nearly the same."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from routeprism.errors import SpecError
from routeprism.policies._contracts import Memory, fold
from routeprism.policies._event_order import sort_events
from routeprism.policies._retention import Retention
from routeprism.policies.interfaces import Budget, Interface, WholeRecords
from routeprism.records import Record
from routeprism.text.focal import words

__all__ = ["Dedup"]


def _word_set(record: Record) -> frozenset[str]:
    return frozenset(words(record.user_text))


def measure_similarity(left: Record, right: Record) -> float:
    """Return the share of the two records' words that both have."""
    first, second = left.derive(_word_set), right.derive(_word_set)
    union = len(first | second)
    return len(first & second) / union if union else 1.0


@dataclass(frozen=True, slots=True)
class Dedup:
    """Compares each arrival with what is kept and drops one of two similar records."""

    threshold: float = 0.4
    """The share of common words that makes two records count as the same."""
    keep: Literal["first", "time"] = "first"
    """Whether the record that arrived first stays, or the one with the latest event time."""
    interface: Interface = field(default_factory=Budget)
    """What reaches the prompt."""

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise SpecError(f"Expected a threshold from 0 to 1 but got threshold={self.threshold}")

    @property
    def name(self) -> str:
        """The spec that every output shows."""
        return f"dedup:threshold={self.threshold:g},keep={self.keep}"

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Compare one record after the other."""
        return fold(self, arrivals)

    def start(self) -> Retention:
        """Start without any arrival."""
        return Retention()

    def step(self, state: Retention, record: Record, /) -> Retention:
        """Add the record unless a similar one is kept; then decide between the two."""
        similar = [
            member
            for member in state.records
            if measure_similarity(member, record) >= self.threshold
        ]
        if not similar:
            return state.take(record, (*state.records, record), ("add", record))
        wins = self.keep == "time" and _is_latest(record, similar, (*state.arrived, record))
        if record in similar or not wins:
            return state.take(record, state.records, ("skip", record))
        members = (*(member for member in state.records if member not in similar), record)
        return state.take(record, members, *(("overwrite", member) for member in similar))

    def finish(self, state: Retention, /) -> WholeRecords:
        """Keep what was not dropped."""
        return state.finish(self.interface)

    def key(self, state: Retention, /) -> Hashable:
        """Name what is kept, in order only where the order of arrival is shown."""
        return state.name_records(in_order=self.interface.display == "arrival")


def _is_latest(record: Record, similar: Sequence[Record], arrivals: Sequence[Record]) -> bool:
    """Whether a record is later in event time than all similar ones."""
    rivals = [member for member in sort_events(arrivals) if member in (*similar, record)]
    return rivals[-1] == record
