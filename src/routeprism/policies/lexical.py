"""`lexical`: keeps everything as BM25-indexed windows; only its index order moves (Appendix J).

Records are cut into 512-token `cl100k_base` windows, ranked by BM25 over all lower-cased tokens;
the best ten are shown by rank, equal scores in insertion order.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import methodcaller
from typing import TYPE_CHECKING, TypeAlias

from routeprism import specs
from routeprism.policies._contracts import Block, Exposure, JsonValue
from routeprism.records import Record
from routeprism.text.bm25 import K1, B, inverse_frequency, length_norm
from routeprism.text.focal import words
from routeprism.text.tokens import windows

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats: TypeAlias = npt.NDArray[np.float64]
    Integers: TypeAlias = npt.NDArray[np.intp]

__all__ = ["Lexical"]


@dataclass(frozen=True, slots=True, eq=False)
class _Window:
    """A piece of one record, counted once for as long as the record lives."""

    block: Block
    counts: Mapping[str, int]
    length: int
    """How many words it has."""
    signature: str
    """Its id and its body's digest; term counts and lengths follow from the body."""


@lru_cache
def _cutter(size: int) -> Callable[[Record], tuple[_Window, ...]]:
    """Give one function per window size, so that a record derives its windows once for each."""

    def cut(record: Record) -> tuple[_Window, ...]:
        made = []
        for index, body in enumerate(windows(record.text, size)):
            counts = Counter(words(body))
            digest = hashlib.sha256(body.encode()).hexdigest()
            block = Block("chunk", body, frozenset((record.id,)))
            made.append(_Window(block, counts, counts.total(), f"{record.id}#{index} {digest}"))
        return tuple(made)

    return cut


class _Scores:
    """BM25 scores of a set of windows: the same whatever order they were inserted in."""

    def __init__(self, held: frozenset[_Window]) -> None:
        import numpy as np

        self.windows = sorted(held, key=lambda window: window.signature)
        total = sum(window.length for window in self.windows)
        self.mean_length = total / len(self.windows) if self.windows else 0.0
        self._norms = np.array([length_norm(w.length, self.mean_length) for w in self.windows])
        self._counts = [window.counts for window in self.windows]
        self._place = {window: at for at, window in enumerate(self.windows)}
        self._weights: dict[str, tuple[Integers, Floats]] = {}
        self._asked: dict[str, Floats] = {}

    def places(self, inserted: Sequence[_Window]) -> Integers:
        """Find windows in the score array."""
        import numpy as np

        return np.array([self._place[window] for window in inserted], dtype=np.intp)

    def __call__(self, query: str) -> Floats:
        import numpy as np

        if query not in self._asked:
            scores = np.zeros(len(self.windows))
            for term in words(query):
                found, weights = self._weighted(term)
                scores[found] += weights
            self._asked[query] = scores
        return self._asked[query]

    def _weighted(self, term: str) -> tuple[Integers, Floats]:
        """Give the windows that have a term, and what it adds to each of them."""
        import numpy as np

        known = self._weights.get(term)
        if known is None:
            every = np.fromiter(
                map(methodcaller("get", term, 0), self._counts), np.float64, len(self._counts)
            )
            found = every.nonzero()[0]
            idf = inverse_frequency(len(self.windows), len(found))
            counts = every[found]
            weights = idf * (counts * (K1 + 1) / (counts + self._norms[found]))
            known = self._weights[term] = (found, weights)
        return known


@lru_cache(maxsize=1)
def _scores(held: frozenset[_Window]) -> _Scores:
    """Share the scores between the routes of one pool; only ties depend on the route."""
    return _Scores(held)


@dataclass(frozen=True, slots=True)
class _Index:
    """The memory: every record's windows, in insertion order."""

    records: tuple[Record, ...]
    windows: tuple[_Window, ...]
    scores: _Scores
    places: Integers
    k: int

    def retained(self) -> frozenset[str]:
        return frozenset(record.id for record in self.records)

    def state(self) -> JsonValue:
        return {
            "index": [window.signature for window in self.windows],
            "mean_length": self.scores.mean_length,
            "parameters": {"k1": K1, "b": B, "k": self.k},
        }

    def expose(self, query: str, /) -> Exposure:
        # A stable sort keeps equal scores in insertion order.
        order = (-self.scores(query)[self.places]).argsort(kind="stable")[: self.k]
        return Exposure(tuple(self.windows[index].block for index in order.tolist()))


@dataclass(frozen=True, slots=True)
class Lexical:
    """A BM25 index over windows of every record, in insertion order."""

    k: int = 10
    """How many windows are shown."""
    window: int = 512
    """How many tokens a window has."""

    def __post_init__(self) -> None:
        specs.positive(self.name, k=self.k, window=self.window)

    @property
    def name(self) -> str:
        """The spec that every output says."""
        return specs.written("lexical", self)

    def unseen(self, record: Record) -> bool:
        """Whether no question's word can find the record."""
        return not any(window.counts for window in record.derive(_cutter(self.window)))

    def build(self, arrivals: Sequence[Record], /) -> _Index:
        """Index every record's windows as they come."""
        distinct = tuple({record.id: record for record in arrivals}.values())
        cut = _cutter(self.window)
        held = tuple(window for record in distinct for window in record.derive(cut))
        scores = _scores(frozenset(held))
        return _Index(distinct, held, scores, scores.places(held), self.k)
