"""Drawing an answer from scores, the same on every machine: the seed is the prompt and the draw."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

from routeprism.errors import SpecError

__all__ = ["check_temperature", "choose", "seed"]


def check_temperature(name: str, temperature: float) -> None:
    """Refuse a temperature that no softmax has."""
    if not (math.isfinite(temperature) and temperature >= 0):
        raise SpecError(
            f"Expected temperature of 0 or more but got temperature={temperature} in '{name}'"
        )


def seed(text: str, draw: int | None) -> int:
    """Give 64 bits of the SHA-256 of a prompt and a draw; None stands for no draw at all."""
    said = f"{'' if draw is None else draw}\n{text}".encode(errors="surrogatepass")
    return int.from_bytes(hashlib.sha256(said).digest()[:8], "big")


def choose(scores: Sequence[float], temperature: float, text: str, draw: int) -> int:
    """Draw an index from the softmax of the scores; at temperature 0 take the best.

    Equal best scores are then told apart by the prompt, not by the options' order or the draw.
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


def _uniform(text: str, draw: int | None) -> float:
    """Give a number in [0, 1)."""
    return (seed(text, draw) >> 11) / (1 << 53)
