"""Model tokens (`cl100k_base`, `o200k_base`) with no network: the ranks come with the package."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import accumulate
from typing import Any, Literal

__all__ = ["Encoding", "boundary", "count", "encode", "windows"]

Encoding = Literal["cl100k_base", "o200k_base"]


@lru_cache(maxsize=2)
def _tokenizer(encoding: Encoding) -> Any:
    from splintr import Tokenizer

    return Tokenizer.from_pretrained(encoding)


def encode(text: str, encoding: Encoding = "o200k_base") -> list[int]:
    """Return a text's tokens; text that spells a special token is ordinary text."""
    tokens: list[int] = _tokenizer(encoding).encode_ordinary(text)
    return tokens


def count(text: str, encoding: Encoding = "o200k_base") -> int:
    """Count a text's tokens."""
    return len(encode(text, encoding))


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
    return _Widths(_tokenizer(encoding))


def windows(text: str, size: int, encoding: Encoding = "cl100k_base") -> tuple[str, ...]:
    """Cut a text into consecutive windows of `size` tokens.

    A window that would begin inside a character takes the replacement character for it.
    """
    tokens = encode(text, encoding)
    decode = _tokenizer(encoding).decode_lossy
    return tuple(decode(tokens[at : at + size]) for at in range(0, len(tokens), size))
