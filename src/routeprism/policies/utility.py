"""`utility:k=N`: keeps the N most salient records, ties to the earlier arrival (Appendix C.5).

The paper does not define its salience score. Here it is the number of *different* preference words
(the focal compactor's published lexicon) in a record's user turns: a small whole number, so that
ties, which arrival order decides, are real.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from routeprism.policies._contracts import Memory, fold
from routeprism.policies._retention import Retention
from routeprism.policies.interfaces import Budget, Interface, WholeRecords
from routeprism.records import Record
from routeprism.specs import positive
from routeprism.text.focal import PREFERENCE_LEXICON, record_word_counts

__all__ = ["Utility", "salience"]


def salience(record: Record) -> int:
    """Count the different preference words in the user turns."""
    return len(PREFERENCE_LEXICON & record_word_counts(record).keys())


@dataclass(frozen=True, slots=True)
class Utility:
    """A buffer that drops the least salient record when it is over-full."""

    k: int = 3
    """How many records it retains."""
    interface: Interface = field(default_factory=Budget)
    """What of them reaches the prompt."""

    def __post_init__(self) -> None:
        positive(self.name, k=self.k)

    @property
    def name(self) -> str:
        """The spec in every output."""
        return f"utility:k={self.k}"

    def unseen(self, record: Record) -> bool:
        """Whether the record has no word that could be a preference word."""
        return not record_word_counts(record)

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Keep the k most salient."""
        return fold(self, arrivals)

    def start(self) -> Retention:
        """Start without any arrival."""
        return Retention()

    def step(self, state: Retention, record: Record, /) -> Retention:
        """Add the record; if that is one too many, drop the least salient, latest arrival."""
        members = (*state.records, record)
        if len(members) <= self.k:
            return state.take(record, members, ("add", record))
        # min takes the first minimum: look from the latest arrival backwards.
        at = min(reversed(range(len(members))), key=lambda index: salience(members[index]))
        rest = members[:at] + members[at + 1 :]
        return state.take(record, rest, ("add", record), ("evict", members[at]))

    def finish(self, state: Retention, /) -> WholeRecords:
        """Keep the buffer."""
        return state.finish(self.interface)

    def key(self, state: Retention, /) -> Hashable:
        """Name the buffer in order: order breaks ties."""
        return state.name_records(in_order=True)
