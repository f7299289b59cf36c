"""Planning: how many units a wanted precision takes, from the spread that a pilot shows.

A unit's mean varies because units differ, because a unit's questions differ, and, where answers are
drawn, because draws do. With U units of k questions and m draws the variance of the estimate is
(σ²_unit + σ²_question / k + σ²_draw / (k·m)) / U.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, variance

from routeprism.errors import SpecError
from routeprism.measures._intervals import student

_FARTHEST = 1e5
"""How many times a goal may go into the spread of units; more takes 40 thousand million units."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The variance components of a quantity."""

    unit: float
    """Variance between units' true means."""
    question: float
    """Variance between a unit's questions, draws taken out where that is possible."""
    draw: float
    """Variance of one draw of a question; 0 where draws cannot be distinguished from questions."""

    def of_a_unit(self, questions: float, draws: int) -> float:
        """Return the variance of a unit's mean."""
        if not 1 <= questions < math.inf:
            raise SpecError(f"Expected a question or more per unit but got questions={questions:g}")
        if draws < 1:
            raise SpecError(f"Expected a draw or more but got draws={draws}")
        return self.unit + self.question / questions + self.draw / (questions * draws)


def spread_of(units: Sequence[Sequence[float]], *, noise: float = 0.0, draws: int = 1) -> Spread:
    """Split the variance of values per question, unit by unit (one-way analysis of variance).

    `noise` is the variance of a single draw, and each value is the mean of this many `draws`.
    """
    filled = [list(values) for values in units if values]
    total = sum(map(len, filled))
    if len(filled) < 2 or total <= len(filled):
        raise SpecError(
            f"Expected two units and a unit with two questions but got {len(filled)} units with "
            f"{total} questions: a pilot that small shows no spread"
        )
    means = [sum(values) / len(values) for values in filled]
    centre = sum(map(sum, filled)) / total
    within_units = sum(
        (value - mean) ** 2 for values, mean in zip(filled, means, strict=True) for value in values
    ) / (total - len(filled))
    between = sum(
        len(values) * (mean - centre) ** 2 for values, mean in zip(filled, means, strict=True)
    ) / (len(filled) - 1)
    size = (total - sum(len(values) ** 2 for values in filled) / total) / (len(filled) - 1)
    return Spread(
        max(0.0, (between - within_units) / size),
        max(0.0, within_units - noise / draws),
        min(noise, within_units * draws),
    )


def spread_alone(values: Sequence[float], *, noise: float = 0.0, draws: int = 1) -> Spread:
    """Return the variance of values where every question is a unit of its own."""
    if len(values) < 2:
        raise SpecError(
            f"Expected two questions but got {len(values)}: a pilot that small shows no spread"
        )
    all_of_it = variance(values)
    return Spread(max(0.0, all_of_it - noise / draws), 0.0, min(noise, all_of_it * draws))


def units_for_width(spread: Spread, half_width: float, *, questions: float, draws: int) -> int:
    """Count the units whose 95% interval is this wide on either side."""
    if not 0 < half_width < math.inf:
        raise SpecError(f"Expected a half-width above 0 but got half_width={half_width}")
    return _least(spread.of_a_unit(questions, draws), half_width, 0.0)


def units_for_power(
    spread: Spread, effect: float, *, power: float = 0.8, questions: float, draws: int
) -> int:
    """Count the units that show this effect, at 95%, with this probability."""
    if not 0 < abs(effect) < math.inf:
        raise SpecError(f"Expected an effect other than 0 but got effect={effect}")
    if not 0.5 <= power < 1:
        raise SpecError(f"Expected a power from 0.5 to below 1 but got power={power}")
    return _least(spread.of_a_unit(questions, draws), abs(effect), NormalDist().inv_cdf(power))


def _least(squared: float, distance: float, reserve: float) -> int:
    """Find the fewest units, two at least, whose error fits into the distance."""
    spread = math.sqrt(squared)
    if spread > _FARTHEST * distance:
        raise SpecError(
            f"no study shows {distance:g} where units differ by {spread:.3g}; say a larger one"
        )

    def enough(units: int) -> bool:
        return units >= ((student(units - 1) + reserve) * spread / distance) ** 2

    units = 2
    while not enough(units):
        units *= 2
    too_few = units // 2
    while units - too_few > 1:
        middle = (units + too_few) // 2
        units, too_few = (middle, too_few) if enough(middle) else (units, middle)
    return max(units, 2)
