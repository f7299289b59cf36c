"""BM25 whose document statistics may come from more documents than are ranked.

The published controls fix document frequencies and the mean length from a full pool while only the
retained part of it is ranked, and need a total order on ties; libraries give neither.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = [
    "K1",
    "B",
    "Ranker",
    "TermStatistics",
    "bm25",
    "idf_overlap",
    "inverse_frequency",
    "length_norm",
    "order_by_score",
]

K1 = 1.5
B = 0.75


def inverse_frequency(documents: int, frequency: int) -> float:
    """ln(1 + (N − df + ½)/(df + ½)): never negative (PROTOCOL §3)."""
    return math.log(1 + (documents - frequency + 0.5) / (frequency + 0.5))


def length_norm(length: float, mean_length: float) -> float:
    """Compute what a document's length adds to the denominator of every term's weight."""
    return K1 * (1 - B + B * (length / mean_length)) if mean_length else K1


def _mean(lengths: Sequence[int]) -> float:
    return sum(lengths) / len(lengths) if lengths else 0.0


@dataclass(frozen=True, slots=True)
class TermStatistics:
    """The statistics of a collection for BM25."""

    documents: int
    """The number of documents."""
    frequency: Mapping[str, int]
    """In how many of them each term occurs."""
    mean_length: float
    """Their mean number of tokens."""

    @classmethod
    def of(cls, documents: Iterable[Mapping[str, int]]) -> TermStatistics:
        """Count over documents given as term counts."""
        frequency: Counter[str] = Counter()
        number = total = 0
        for counts in documents:
            frequency.update(counts.keys())
            total += sum(counts.values())
            number += 1
        return cls(number, frequency, total / number if number else 0.0)

    @classmethod
    def when_asked(
        cls, documents: Sequence[Mapping[str, int]], lengths: Sequence[int]
    ) -> TermStatistics:
        """Count a term only when it is asked for: of a long history, few ever are."""
        return cls(len(documents), _Frequencies(documents), _mean(lengths))

    def idf(self, term: str) -> float:
        """Return a term's inverse document frequency."""
        return inverse_frequency(self.documents, self.frequency.get(term, 0))


class _Frequencies(dict[str, int]):
    """In how many documents a term occurs, counted when it is first asked for."""

    def __init__(self, documents: Sequence[Mapping[str, int]]) -> None:
        super().__init__()
        self._documents = documents

    def get(self, term: str, default: Any = None) -> Any:
        """Count; a term that is nowhere is counted as that."""
        if term not in self:
            self[term] = sum(term in counts for counts in self._documents)
        return self[term]


class Ranker:
    """Scores documents, given as term counts; what a term adds to each is worked out once.

    The statistics are those of the documents themselves unless others are given.
    """

    def __init__(
        self,
        documents: Sequence[Mapping[str, int]],
        lengths: Sequence[int],
        statistics: TermStatistics | None = None,
    ) -> None:
        self._documents = documents
        self._statistics = statistics
        mean = _mean(lengths) if statistics is None else statistics.mean_length
        self._norms = [length_norm(length, mean) for length in lengths]
        self._known: dict[str, tuple[float, list[tuple[int, float]]]] = {}

    def __call__(self, query: Sequence[str]) -> list[float]:
        """Score every document; a term that the query repeats counts each time."""
        scores = [0.0] * len(self._documents)
        cache = self._known
        for term, times in Counter(query).items():
            idf, postings = cache[term] if term in cache else self._weigh_term(term)
            for at, weight in postings:
                scores[at] += times * idf * weight
        return scores

    def _weigh_term(self, term: str) -> tuple[float, list[tuple[int, float]]]:
        postings = [
            (at, count * (K1 + 1) / (count + norm))
            for at, (counts, norm) in enumerate(zip(self._documents, self._norms, strict=True))
            if (count := counts.get(term))
        ]
        weighed = self._known[term] = self._idf(term, len(postings)), postings
        return weighed

    def _idf(self, term: str, frequency: int) -> float:
        if not frequency:
            return 0.0
        if self._statistics is None:
            return inverse_frequency(len(self._documents), frequency)
        return self._statistics.idf(term)


def bm25(
    query: Sequence[str],
    documents: Sequence[Mapping[str, int]],
    lengths: Sequence[int],
    statistics: TermStatistics,
) -> list[float]:
    """Score documents, given as term counts; a term that the query repeats counts each time."""
    return Ranker(documents, lengths, statistics)(query)


def idf_overlap(
    query: Sequence[str], documents: Sequence[Mapping[str, int]], statistics: TermStatistics
) -> list[float]:
    """Sum, for each document, the idf of the distinct query terms it has: the identity check."""
    idf = {term: statistics.idf(term) for term in query}
    return [sum(idf[term] for term in idf if term in counts) for counts in documents]


def order_by_score(scores: Sequence[float], ties: Sequence[int]) -> list[int]:
    """Rank indices by falling score; equal scores by their tie value, so the order is total."""
    return sorted(range(len(scores)), key=lambda index: (-scores[index], ties[index]))
