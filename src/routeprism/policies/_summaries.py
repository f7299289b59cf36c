"""How text is named, summarised and found again by rule: the stable half of `memochat`."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vector: TypeAlias = npt.NDArray[np.float64]

__all__ = [
    "LONGEST",
    "counted",
    "embedding",
    "keywords",
    "most_frequent",
    "relevance",
    "summary_of",
]

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


def counted(text: str) -> Counter[str]:
    """Count the words that can be keywords, in order of first occurrence."""
    found = _KEYWORD.findall(text.lower())
    return Counter(word for word in found if word not in _STOPWORDS)


def most_frequent(counts: Counter[str], number: int) -> tuple[str, ...]:
    """Give the most frequent words, ties by first occurrence."""
    return tuple(word for word, _ in counts.most_common(number))


def keywords(text: str) -> tuple[str, ...]:
    """Give a text's most frequent words, stopwords left out."""
    return most_frequent(counted(text), MOST_KEYWORDS)


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

    tokens = _TOKEN.findall(text.lower())
    vector = np.zeros(BUCKETS)
    for token in tokens:
        vector[_bucket(token)] += 1.0
    for one, other in pairwise(tokens):
        vector[_bucket(f"{one}::{other}")] += 0.5
    norm = float(np.linalg.norm(vector))
    return vector / norm if norm else vector


def _bucket(token: str) -> int:
    return zlib.crc32(token.encode()) % BUCKETS


@lru_cache(maxsize=4096)
def _keyword_set(text: str) -> frozenset[str]:
    return frozenset(keywords(text))


def relevance(query: str, text: str) -> float:
    """Score a text for a question: mostly by embedding, a little by shared keywords."""
    asked, offered = _keyword_set(query), _keyword_set(text)
    shared = len(asked & offered) / max(len(asked), len(offered), 1)
    return 0.8 * float(embedding(query) @ embedding(text)) + 0.2 * shared
