"""`lexical`: keeps everything as BM25-indexed windows; only its index order moves (Appendix J).

Records are cut into 512-token `cl100k_base` windows, ranked by BM25 over all lower-cased tokens;
the best ten are shown by rank, equal scores in insertion order.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from routeprism import specs
from routeprism.policies._contracts import Block, Exposure, JsonValue
from routeprism.records import Record
from routeprism.text.bm25 import B, K1, inverse_frequency, order_by_score, term_weight
from routeprism.text.focal import words
from routeprism.text.tokens import windows

__all__ = ["Lexical"]


@dataclass(frozen=True, slots=True)
class _Chunks:
    """One record's windows, indexed: shared by every memory that holds the record."""

    blocks: tuple[Block, ...]
    lengths: tuple[int, ...]
    """Tokens in each window."""
    postings: Mapping[str, Sequence[tuple[int, int]]]
    """Term → (window, count) where it occurs."""
    signature: Sequence[JsonValue]
    """Each window's id, body, term counts and length, the long ones by SHA-256."""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@lru_cache
def _chunker(size: int) -> Callable[[Record], _Chunks]:
    """Give one function per window size, so that a record derives its windows once for each."""

    def cut(record: Record) -> _Chunks:
        bodies = windows(record.text, size)
        counts = [Counter(words(body)) for body in bodies]
        postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for index, count in enumerate(counts):
            for term, times in count.items():
                postings[term].append((index, times))
        lengths = tuple(sum(count.values()) for count in counts)
        return _Chunks(
            tuple(Block("chunk", body, frozenset((record.id,))) for body in bodies),
            lengths,
            dict(postings),
            [
                {
                    "id": f"{record.id}#{index}",
                    "body": _digest(body),
                    "terms": _digest(json.dumps(count, sort_keys=True)),
                    "length": length,
                }
                for index, (body, count, length) in enumerate(
                    zip(bodies, counts, lengths, strict=True)
                )
            ],
        )

    return cut


@dataclass(frozen=True, slots=True)
class _Index:
    """The memory: every record's windows, in insertion order."""

    records: tuple[Record, ...]
    parts: tuple[_Chunks, ...]
    blocks: tuple[Block, ...]
    lengths: tuple[int, ...]
    mean_length: float
    k: int

    def retained(self) -> frozenset[str]:
        return frozenset(record.id for record in self.records)

    def state(self) -> JsonValue:
        # Inverse document frequencies follow from the term counts, so they are not repeated.
        return {
            "index": [entry for part in self.parts for entry in part.signature],
            "mean_length": self.mean_length,
            "parameters": {"k1": K1, "b": B, "k": self.k},
        }

    def expose(self, query: str, /) -> Exposure:
        scores = [0.0] * len(self.blocks)
        for term, times in Counter(words(query)).items():
            found = [part.postings.get(term, ()) for part in self.parts]
            idf = inverse_frequency(len(self.blocks), sum(map(len, found)))
            offset = 0
            for part, hits in zip(self.parts, found, strict=True):
                for window, count in hits:
                    at = offset + window
                    weight = term_weight(count, self.lengths[at], self.mean_length, idf)
                    scores[at] += times * weight
                offset += len(part.lengths)
        best = order_by_score(scores, range(len(scores)))[: self.k]
        return Exposure(tuple(self.blocks[index] for index in best))


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

    def build(self, arrivals: Sequence[Record], /) -> _Index:
        """Index every record's windows as they come."""
        distinct = tuple({record.id: record for record in arrivals}.values())
        cut = _chunker(self.window)
        parts = tuple(record.derive(cut) for record in distinct)
        lengths = tuple(length for part in parts for length in part.lengths)
        return _Index(
            distinct,
            parts,
            tuple(block for part in parts for block in part.blocks),
            lengths,
            sum(lengths) / len(lengths) if lengths else 0.0,
            self.k,
        )
