"""How text is named, summarised and found again by rule: the stable half of `memochat`."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count, pairwise
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vector: TypeAlias = npt.NDArray[np.float64]

SHORTEST, LONGEST = 160, 320
"""A summary ends with a sentence between these lengths, or is cut at the longer one."""
MOST_KEYWORDS = 16
"""How many keywords of a text are compared."""
BUCKETS = 1024
"""Of the hashed embedding."""

_KEYWORD = re.compile(r"[A-Za-z0-9_]{3,}")
_TOKEN = re.compile(r"[A-Za-z0-9_]+")
_STOPWORDS = frozenset(
    """a an and are as at be been but by for from had has have he her hers him his if in into is it
    its of on or our ours she that the their them there they this to was were will with you your
    yours""".split()
)


def _lower_ascii(text: str) -> str:
    """Make ASCII letters small and blank the rest out, so that no other letter turns into one."""
    return text.encode("ascii", "replace").lower().decode()


def counted(text: str) -> Counter[str]:
    """Count the words that can be keywords, in order of first occurrence."""
    words = _KEYWORD.findall(_lower_ascii(text))
    return Counter(word for word in words if word not in _STOPWORDS)


def has_keyword(text: str) -> bool:
    """Whether a text has anything that could be a keyword."""
    return _KEYWORD.search(text) is not None


@dataclass(frozen=True, slots=True)
class Ranked:
    """The words of a text that can be keywords."""

    counts: dict[str, int]
    places: dict[str, int]
    """Word → how many other words occurred before it."""
    order: tuple[str, ...]
    """The most frequent first, ties by first occurrence."""


def ranked(text: str) -> Ranked:
    """Count and rank the words of a text."""
    counts = counted(text)
    order = tuple(word for word, _ in counts.most_common())
    return Ranked(dict(counts), {word: place for place, word in enumerate(counts)}, order)


def most_frequent(parts: Sequence[Ranked], number: int) -> tuple[str, ...]:
    """Return the most frequent words of parts that follow each other, ties by first occurrence.

    Goes down the ranks of all parts side by side, and stops as soon as no word further down can be
    among them (Fagin's threshold algorithm): a policy names the same parts in many orders.
    """
    met: dict[str, tuple[int, int, int]] = {}

    def standing(word: str) -> tuple[int, int, int]:
        holding = [at for at, part in enumerate(parts) if word in part.counts]
        total = sum(parts[at].counts[word] for at in holding)
        return -total, holding[0], parts[holding[0]].places[word]

    best: list[str] = []
    for rank in count():
        bound = 0  # how often a word can occur that was not met yet
        for part in parts:
            if rank < len(part.order):
                word = part.order[rank]
                bound += part.counts[word]
                if word not in met:
                    met[word] = standing(word)
        best = sorted(met, key=met.__getitem__)[:number]
        if not bound or (len(best) == number and -met[best[-1]][0] > bound):
            break
    return tuple(best)


def keywords(text: str) -> tuple[str, ...]:
    """Return a text's most frequent words, stopwords left out."""
    return tuple(word for word, _ in counted(text).most_common(MOST_KEYWORDS))


def summary_of(folded: str) -> str:
    """Keep the beginning of a text: whole sentences if they give enough, else a hard cut."""
    if len(folded) <= LONGEST:
        return folded
    end = folded.rfind(". ", 0, LONGEST)
    return folded[: end + 1] if end >= SHORTEST else f"{folded[: LONGEST - 3]}..."


@lru_cache(maxsize=4096)
def embedding(text: str) -> Vector:
    """Hash words (1) and pairs of neighbours (½) into buckets, to length one.

    CRC-32 and not `hash()`, which differs from process to process.
    """
    import numpy as np

    tokens = _TOKEN.findall(_lower_ascii(text))
    vector = np.zeros(BUCKETS)
    for token in tokens:
        vector[_bucket(token)] += 1.0
    for first, second in pairwise(tokens):
        vector[_bucket(f"{first}::{second}")] += 0.5
    norm = float(np.linalg.norm(vector))
    return vector / norm if norm else vector


def _bucket(token: str) -> int:
    return zlib.crc32(token.encode()) % BUCKETS


@lru_cache(maxsize=4096)
def _keyword_set(text: str) -> frozenset[str]:
    return frozenset(keywords(text))


def relevance(query: str, text: str) -> float:
    """Score a text for a question: mostly by embedding, a little by shared keywords."""
    query_words, offered = _keyword_set(query), _keyword_set(text)
    shared = len(query_words & offered) / max(len(query_words), len(offered), 1)
    return 0.8 * float(embedding(query) @ embedding(text)) + 0.2 * shared
