"""Score options by the likelihood of their texts, and draw an answer from scores.

A small language model's letters carry no signal. The likelihood of an option's text does, once
the share that its own wording and the question explain is subtracted. A draw is the same on every
machine: its seed is the prompt and the number of the draw.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

from routeprism.errors import ModelError, SpecError
from routeprism.models._contracts import Ask, Reply, Usage
from routeprism.records import letters


class Engine(Protocol):
    """A language model that computes the likelihood of a text."""

    def __hash__(self) -> int: ...

    def tokens(self, text: str, /) -> list[int]:
        """Cut a text into tokens, without special ones."""

    def likelihood(self, context: Sequence[int], text: Sequence[int], /) -> float:
        """Sum the log-probabilities of a text's tokens after a context."""


class OptionContrast(NamedTuple):
    """How much the memory adds to the likelihood of each option."""

    scores: tuple[float, ...]
    """Mean log-likelihood of an option's tokens with the memory minus without it."""
    tokens: int
    """How many tokens the memory and the question have."""


def contrast_options(
    engine: Engine,
    memory: str,
    question: str,
    options: Sequence[str],
    *,
    model: str,
    longest: int | None,
) -> OptionContrast:
    """Score options; `longest` is the number of tokens that the model reads at once, if limited."""
    alone = engine.tokens(f"Question: {question.strip()}\nAnswer:")
    # Tokenised separately, so that the question has the same tokens with and without the memory.
    whole = [*engine.tokens(f"{memory.strip()}\n\n"), *alone]
    texts = [engine.tokens(f" {option.strip()}") for option in options]
    size = len(whole) + max(map(len, texts))
    if longest is not None and size > longest:
        raise ModelError(
            f"{model} reads {longest} tokens at once but this prompt has {size}; "
            "show it less, for example with interface=budget:chars=16384"
        )
    with_memory = [engine.likelihood(whole, text) for text in texts]
    without = _score_without_memory(engine, tuple(alone), tuple(map(tuple, texts)))
    return OptionContrast(
        tuple(
            (more - less) / max(1, len(text))
            for more, less, text in zip(with_memory, without, texts, strict=True)
        ),
        len(whole),
    )


@lru_cache(maxsize=1024)
def _score_without_memory(
    engine: Engine, alone: tuple[int, ...], texts: tuple[tuple[int, ...], ...]
) -> tuple[float, ...]:
    """Score the options without any memory, once for all memories of a question."""
    return tuple(engine.likelihood(alone, text) for text in texts)


def check_temperature(name: str, temperature: float) -> None:
    """Refuse a temperature that a softmax cannot have."""
    if not (math.isfinite(temperature) and temperature >= 0):
        raise SpecError(
            f"Expected temperature of 0 or more but got temperature={temperature} in '{name}'"
        )


def derive_seed(text: str, draw: int | None) -> int:
    """Derive 64 bits from the SHA-256 of a prompt and a draw; None means no draw."""
    content = f"{'' if draw is None else draw}\n{text}".encode(errors="surrogatepass")
    return int.from_bytes(hashlib.sha256(content).digest()[:8], "big")


def choose_index(scores: Sequence[float], temperature: float, text: str, draw: int) -> int:
    """Draw an index from the softmax of the scores; at temperature 0 take the best.

    Among equal best scores the prompt decides, not the order of the options or the draw.
    """
    best = max(scores)
    if temperature == 0:
        ties = [index for index, score in enumerate(scores) if score == best]
        return ties[int(_uniform(text, None) * len(ties))]
    weights = [math.exp((score - best) / temperature) for score in scores]
    target = _uniform(text, draw) * sum(weights)
    for index, weight in enumerate(weights):
        target -= weight
        if target < 0:
            return index
    return scores.index(best)


def choose_option(
    ask: Ask, scores: tuple[float, ...], temperature: float, usage: Usage | None = None
) -> Reply:
    """Answer with the letter of an option that is drawn from the scores."""
    index = choose_index(scores, temperature, ask.text, ask.draw)
    return Reply(letters(len(scores))[index], usage or Usage(), scores)


def _uniform(text: str, draw: int | None) -> float:
    """Draw a number in [0, 1)."""
    return (derive_seed(text, draw) >> 11) / (1 << 53)
