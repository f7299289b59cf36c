"""Vectors of hashed words: an embedding without weights, the same on every machine."""

from __future__ import annotations

import zlib

from routeprism.text.focal import focal_words

__all__ = ["hash_words"]


def hash_words(text: str, size: int) -> tuple[float, ...]:
    """Count words by a stable hash, stopwords left out: similarity is 0 without a common one.

    The last place is 1 for a text without words. No vector is zero, because some systems divide by
    its length.
    """
    counts = [0.0] * size
    words = focal_words(text)
    for word in words:
        counts[zlib.crc32(word.encode()) % (size - 1)] += 1.0
    if not words:
        counts[-1] = 1.0
    return tuple(counts)
