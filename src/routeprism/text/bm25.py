"""BM25 whose document statistics may come from more documents than are ranked.

The published controls fix document frequencies and the mean length from a full pool while only the
retained part of it is ranked, and want a total order on ties; libraries give neither.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

__all__ = [
    "B",
    "K1",
    "Statistics",
    "bm25",
    "idf_overlap",
    "inverse_frequency",
    "order_by_score",
    "term_weight",
]

K1 = 1.5
B = 0.75


def inverse_frequency(documents: int, frequency: int) -> float:
    """ln(1 + (N − df + ½)/(df + ½)): never negative (PROTOCOL §3)."""
    return math.log(1 + (documents - frequency + 0.5) / (frequency + 0.5))


def term_weight(
    count: int, length: int, mean_length: float, idf: float, *, k1: float = K1, b: float = B
) -> float:
    """Give what a term with this count adds to the score of a document of this length."""
    norm = 1 - b + b * (length / mean_length) if mean_length else 1.0
    return idf * (count * (k1 + 1) / (count + k1 * norm))


@dataclass(frozen=True, slots=True)
class Statistics:
    """What BM25 needs to know of a collection."""

    documents: int
    """How many documents there are."""
    frequency: Mapping[str, int]
    """In how many of them each term occurs."""
    mean_length: float
    """Their mean number of tokens."""

    @classmethod
    def of(cls, documents: Iterable[Mapping[str, int]]) -> Statistics:
        """Count over documents given as term counts."""
        frequency: Counter[str] = Counter()
        number = total = 0
        for counts in documents:
            frequency.update(counts.keys())
            total += sum(counts.values())
            number += 1
        return cls(number, frequency, total / number if number else 0.0)

    def idf(self, term: str) -> float:
        """Give a term's inverse document frequency."""
        return inverse_frequency(self.documents, self.frequency.get(term, 0))


def bm25(
    query: Sequence[str], counts: Mapping[str, int], length: int, statistics: Statistics
) -> float:
    """Score one document; a term that the query repeats counts each time."""
    return sum(
        term_weight(counts[term], length, statistics.mean_length, statistics.idf(term))
        for term in query
        if term in counts
    )


def idf_overlap(
    query: Sequence[str], counts: Mapping[str, int], statistics: Statistics
) -> float:
    """Sum the idf of the distinct query terms a document has: the paper's identity check."""
    return sum(statistics.idf(term) for term in dict.fromkeys(query) if term in counts)


def order_by_score(scores: Sequence[float], ties: Sequence[int]) -> list[int]:
    """Rank indices by falling score; equal scores by their tie value, so the order is total."""
    return sorted(range(len(scores)), key=lambda index: (-scores[index], ties[index]))
