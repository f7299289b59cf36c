"""Scoring options by the likelihood of their texts: with the memory, minus without it.

A small language model's letters carry no signal. The likelihood of an option's text does, once
what the text owes to its own wording and to the question is taken away.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

from routeprism.errors import ModelError

__all__ = ["Contrast", "Engine", "contrast"]


class Engine(Protocol):
    """A language model that says how likely a text is."""

    def __hash__(self) -> int: ...

    def tokens(self, text: str, /) -> list[int]:
        """Cut a text into tokens, without any special one."""

    def likelihood(self, context: Sequence[int], text: Sequence[int], /) -> float:
        """Sum the log-probabilities of a text's tokens after a context."""


class Contrast(NamedTuple):
    """What the memory adds to each option."""

    scores: tuple[float, ...]
    """Mean log-likelihood of an option's tokens with the memory minus without it."""
    tokens: int
    """How many tokens the memory and the question have."""


def contrast(
    engine: Engine,
    memory: str,
    question: str,
    options: Sequence[str],
    *,
    model: str,
    longest: int | None,
) -> Contrast:
    """Score options; `longest` is how many tokens the model reads at once, where it has a limit."""
    alone = engine.tokens(f"Question: {question.strip()}\nAnswer:")
    # Cut apart, so that the question's tokens are the same ones with and without the memory.
    whole = [*engine.tokens(f"{memory.strip()}\n\n"), *alone]
    texts = [engine.tokens(f" {option.strip()}") for option in options]
    size = len(whole) + max(map(len, texts))
    if longest is not None and size > longest:
        raise ModelError(
            f"{model} reads {longest} tokens at once but this prompt has {size}; "
            "show it less, such as with --interface budget:chars=16384"
        )
    given = [engine.likelihood(whole, text) for text in texts]
    bare = _bare(engine, tuple(alone), tuple(map(tuple, texts)))
    return Contrast(
        tuple(
            (one - other) / max(1, len(text))
            for one, other, text in zip(given, bare, texts, strict=True)
        ),
        len(whole),
    )


@lru_cache(maxsize=1024)
def _bare(
    engine: Engine, alone: tuple[int, ...], texts: tuple[tuple[int, ...], ...]
) -> tuple[float, ...]:
    """Score the options without any memory: once for all memories that a question is asked of."""
    return tuple(engine.likelihood(alone, text) for text in texts)
