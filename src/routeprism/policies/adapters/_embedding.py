"""Embeddings for systems that want one: `wordllama`, offline, or a plain bag of hashed words."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from routeprism.policies.adapters._adapted import needed
from routeprism.text.focal import focal_words

__all__ = ["DIMENSIONS", "Embedding", "Vector", "embedding"]

Embedding = Literal["wordllama", "words"]
"""Which embedding: small static vectors, or counts of hashed words."""
Vector = tuple[float, ...]

_BUCKETS = 1024
DIMENSIONS = {"wordllama": 256, "words": _BUCKETS + 1}
"""How long the vectors are."""


def embedding(name: Embedding, extra: str) -> Callable[[str], Vector]:
    """Give the function from a text to its vector; `extra` is what brings the package."""
    if name == "words":
        return _words
    _wordllama(extra)  # a missing package is said before anything is built
    return lambda text: _static(text, extra)


def _words(text: str) -> Vector:
    """Count words by a stable hash, stopwords left out: similarity is 0 without a common one."""
    counts = [0.0] * (_BUCKETS + 1)
    found = focal_words(text)
    for word in found:
        counts[zlib.crc32(word.encode()) % _BUCKETS] += 1.0
    if not found:
        counts[_BUCKETS] = 1.0  # no vector is zero: some systems divide by its length
    return tuple(counts)


@lru_cache(maxsize=2048)
def _static(text: str, extra: str) -> Vector:
    """Embed one text alone, so that its vector does not depend on its neighbours in a batch."""
    vector = _wordllama(extra).embed([text])[0]
    return tuple(float(value) for value in vector)


@lru_cache(maxsize=1)
def _wordllama(extra: str) -> Any:
    package = needed("wordllama", "the embedding wordllama", extra)
    here = Path(package.__file__).parent  # the weights come with the package
    return package.WordLlama.load(cache_dir=here, disable_download=True)
