"""Model tokens (`cl100k_base`, `o200k_base`) with no network: the ranks come with the package."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

__all__ = ["Encoding", "count", "encode", "windows"]

Encoding = Literal["cl100k_base", "o200k_base"]


@lru_cache(maxsize=2)
def _tokenizer(encoding: Encoding) -> Any:
    from splintr import Tokenizer

    return Tokenizer.from_pretrained(encoding)


def encode(text: str, encoding: Encoding = "o200k_base") -> list[int]:
    """Give a text's tokens; text that spells a special token is ordinary text."""
    tokens: list[int] = _tokenizer(encoding).encode_ordinary(text)
    return tokens


def count(text: str, encoding: Encoding = "o200k_base") -> int:
    """Count a text's tokens."""
    return len(encode(text, encoding))


def windows(text: str, size: int, encoding: Encoding = "cl100k_base") -> tuple[str, ...]:
    """Cut a text into consecutive windows of `size` tokens.

    A window that would begin inside a character takes the replacement character for it.
    """
    tokens = encode(text, encoding)
    decode = _tokenizer(encoding).decode_lossy
    return tuple(decode(tokens[at : at + size]) for at in range(0, len(tokens), size))
