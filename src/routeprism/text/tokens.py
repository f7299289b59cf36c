"""Model tokens (`cl100k_base`, `o200k_base`) with no network: the ranks come with the package."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import accumulate
from struct import pack
from typing import Any, Literal

__all__ = ["Encoding", "boundary", "count", "encode", "encode_flat", "find_tokenizer"]

Encoding = Literal["cl100k_base", "o200k_base"]


@lru_cache(maxsize=2)
def find_tokenizer(encoding: Encoding) -> Any:
    """Return the tokenizer of splintr with the ranks of an encoding."""
    from splintr import Tokenizer

    return Tokenizer.from_pretrained(encoding)


def encode(text: str, encoding: Encoding = "o200k_base") -> list[int]:
    """Return a text's tokens; text that spells a special token is ordinary text."""
    tokens: list[int] = find_tokenizer(encoding).encode_ordinary(text)
    return tokens


def encode_flat(text: str, encoding: Encoding = "o200k_base") -> bytes:
    """Return a text's tokens as four bytes each, the lowest first; faster than a list."""
    if "<|" in text:  # every special token begins like this, and splintr has no flat form for it
        ordinary = encode(text, encoding)
        return pack(f"<{len(ordinary)}I", *ordinary)
    tokens: bytes = find_tokenizer(encoding).encode_flat(text)
    return tokens


def count(text: str, encoding: Encoding = "o200k_base") -> int:
    """Count a text's tokens."""
    return len(encode_flat(text, encoding)) // 4


def boundary(tokens: Iterable[int], size: int, encoding: Encoding = "o200k_base") -> int | None:
    """Count the tokens that make up the first `size` bytes; None where no token ends there.

    It reads no further than that, so a place near the end is best found in the reversed tokens.
    """
    ends = accumulate(map(_widths(encoding).__getitem__, tokens), initial=0)
    for number, end in enumerate(ends):
        if end >= size:
            return number if end == size else None
    return None


class _Widths(dict[int, int]):
    """The number of bytes of a token, looked up when it is first used."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer

    def __missing__(self, token: int) -> int:
        width = self[token] = len(self.tokenizer.decode_token_bytes(token))
        return width


@lru_cache(maxsize=2)
def _widths(encoding: Encoding) -> _Widths:
    return _Widths(find_tokenizer(encoding))
