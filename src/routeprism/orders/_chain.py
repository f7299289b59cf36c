"""Linear extensions of a partial order that is too large to count: a Markov chain.

The chain of adjacent exchanges with the parabolic choice of places mixes within a known number of
steps (Bubley and Dyer, Faster random generation of linear extensions, Discrete Mathematics 201,
1999), so the distance from uniform is bounded, not hoped for.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from routeprism.orders._processes import Order

__all__ = ["DISTANCE", "mixed_extension"]

DISTANCE = 0.001
"""How far the law of a drawn order may be from uniform, in total variation."""


def mixed_extension(before: Sequence[int], generator: random.Random) -> Order:
    """Draw a linear extension whose law is within `DISTANCE` of uniform."""
    size = len(before)
    order = _some_extension(before)
    steps = math.ceil((size**3 - size) / 6 * math.log(size**2 / (4 * DISTANCE)))
    places = range(size - 1)
    weights = [(place + 1) * (size - place - 1) for place in places]
    for place in generator.choices(places, weights, k=steps):
        one, other = order[place], order[place + 1]
        if generator.random() < 0.5 and not before[other] >> one & 1:
            order[place], order[place + 1] = other, one
    return tuple(order)


def _some_extension(before: Sequence[int]) -> list[int]:
    order: list[int] = []
    arrived = 0
    while len(order) < len(before):
        following = next(
            p for p, needed in enumerate(before) if not arrived >> p & 1 and not needed & ~arrived
        )
        order.append(following)
        arrived |= 1 << following
    return order
