"""`lexical`: keeps everything as BM25-indexed windows; only its index order moves (Appendix J).

Records are cut into 512-token `cl100k_base` windows, ranked by BM25 over all lower-cased tokens;
the best ten are shown by rank, equal scores in insertion order.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain, count, filterfalse
from typing import TYPE_CHECKING, TypeAlias

from routeprism import specs
from routeprism.policies._contracts import Block, Exposure, JsonValue
from routeprism.records import Record
from routeprism.text.bm25 import K1, B, inverse_frequency, length_norm
from routeprism.text.focal import has_words, words
from routeprism.text.windows import Windows, cut_windows, token_word_numbers

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats: TypeAlias = npt.NDArray[np.float64]
    Integers: TypeAlias = npt.NDArray[np.intp]

__all__ = ["Lexical"]


@dataclass(frozen=True, slots=True)
class _Window:
    """A piece of one record."""

    block: Block
    signature: str
    """Its id and its body's digest; term counts and lengths follow from the body."""


@dataclass(frozen=True, slots=True, eq=False)
class _Cut:
    """A record's windows, cut once for as long as the record lives."""

    windows: tuple[_Window, ...]
    content: Windows
    """Their texts and words."""


@lru_cache
def _cutter(size: int) -> Callable[[Record], _Cut]:
    """Return one function per window size, so that a record derives its windows once for each."""

    def cut(record: Record) -> _Cut:
        content = cut_windows(record.text, size)
        sources = frozenset((record.id,))
        windows = []
        for index, body in enumerate(content.texts):
            digest = hashlib.sha256(body.encode()).hexdigest()
            signature = f"{record.id}#{index} {digest}"
            windows.append(_Window(Block("chunk", body, sources), signature))
        return _Cut(tuple(windows), content)

    return cut


class _Scores:
    """BM25 scores of a set of records' windows: the same whatever order they were inserted in."""

    def __init__(self, cuts: frozenset[_Cut]) -> None:
        import numpy as np

        ordered = sorted(cuts, key=lambda cut: cut.windows[0].signature)
        lengths = np.concatenate([cut.content.lengths for cut in ordered])
        self._size = len(lengths)
        self.mean_length = int(lengths.sum()) / self._size
        ends = accumulate(len(cut.windows) for cut in ordered)
        self._first = {cut: end - len(cut.windows) for cut, end in zip(ordered, ends, strict=True)}
        self._tokens = token_word_numbers()
        self._compounds = _number_compounds(ordered, self._tokens)
        numbered = np.concatenate([self._number_words(cut.content) for cut in ordered])
        # One number for each term in each window; sorted, they are an inverted index.
        pairs = numbered * self._size + np.arange(self._size).repeat(lengths)
        distinct, counts = np.unique(pairs, return_counts=True)
        self._terms, self._windows = np.divmod(distinct, self._size)
        places = self._terms - self._terms[:1]
        frequency = np.bincount(places)[places]
        idf = np.array([inverse_frequency(self._size, df) for df in range(self._size + 1)])
        norms = np.array([length_norm(int(length), self.mean_length) for length in lengths])
        self._weights: Floats = idf[frequency] * (
            counts * (K1 + 1) / (counts + norms[self._windows])
        )
        self._asked: dict[str, Floats] = {}

    def _number_words(self, content: Windows) -> Integers:
        """Return words by the numbers of the pool; those of single tokens stay."""
        import numpy as np

        compounds = np.fromiter(map(self._find_term, content.compounds), np.intp)
        numbers: Integers = content.words.copy()
        spelled = numbers < 0
        numbers[spelled] = compounds[-1 - numbers[spelled]]
        return numbers

    def _find_term(self, word: str) -> int:
        """Return the number of a word; an unknown word has one behind all others."""
        number = self._compounds.get(word)
        return self._tokens.get(word, sys.maxsize) if number is None else number

    def places(self, inserted: Iterable[_Cut]) -> Integers:
        """Find the records' windows, one after the other, in the score array."""
        import numpy as np

        return np.concatenate([np.arange(len(cut.windows)) + self._first[cut] for cut in inserted])

    def __call__(self, query: str) -> Floats:
        import numpy as np

        if query not in self._asked:
            terms = np.array([self._find_term(word) for word in words(query)], np.intp)
            starts, ends = self._terms.searchsorted(terms), self._terms.searchsorted(terms, "right")
            spans = list(map(slice, starts.tolist(), ends.tolist()))
            if not spans:
                return np.zeros(self._size)
            windows = np.concatenate([self._windows[span] for span in spans])
            weights = np.concatenate([self._weights[span] for span in spans])
            self._asked[query] = np.bincount(windows, weights, self._size).astype(np.float64)
        return self._asked[query]


def _number_compounds(cuts: Iterable[_Cut], tokens: Mapping[str, int]) -> dict[str, int]:
    """Give numbers below zero to the words that are no token anywhere in a pool."""
    compounds = dict.fromkeys(chain.from_iterable(cut.content.compounds for cut in cuts))
    return dict(zip(filterfalse(tokens.__contains__, compounds), count(-1, -1), strict=False))


@lru_cache(maxsize=1)
def _scores(cuts: frozenset[_Cut]) -> _Scores:
    """Share the scores between the routes of one pool; only ties depend on the route."""
    return _Scores(cuts)


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
        """The spec in every output."""
        return specs.write_spec("lexical", self)

    def unseen(self, record: Record) -> bool:
        """Whether no word can find the record; role markers do not count as words."""
        return not has_words(record)

    def build(self, arrivals: Sequence[Record], /) -> _Index:
        """Index every record's windows as they come."""
        distinct = tuple({record.id: record for record in arrivals}.values())
        cuts = [record.derive(_cutter(self.window)) for record in distinct]
        scores = _scores(frozenset(cuts))
        windows = tuple(window for cut in cuts for window in cut.windows)
        return _Index(distinct, windows, scores, scores.places(cuts), self.k)
