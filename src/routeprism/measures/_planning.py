"""Planning: how many units a precision takes, and which groups the draws should go to.

A unit's mean varies because units differ, because a unit's questions differ, and, where answers are
drawn, because draws do. With U units of k questions and m draws the variance of the estimate is
(σ²_unit + σ²_question / k + σ²_draw / (k·m)) / U. The components come from a pilot.

A mean over groups (pools, questions) has the error of the draws within each group. For a given cost
it is smallest if group i gets draws in proportion to w_i·σ_i/√c_i, with its weight, the deviation
of one draw and the cost of one draw (Neyman 1934). The deviations also come from a pilot.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, pvariance, variance

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
            f"no study shows {distance:g} where units differ by {spread:.3g}; pass a larger one"
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


_PILOT = 5
"""The pilot has one in this many of the draws."""
_LEAST_PILOT = 2
_STEPS = 60
"""Bisections of the scale: more change no number of draws."""


def pilot_size(draws: int) -> int:
    """Return how many of the draws of a group form its pilot."""
    return max(_LEAST_PILOT, round(draws / _PILOT))


@dataclass(frozen=True, slots=True)
class TwoStages:
    """How the draws of one group, a pilot and later ones, are combined.

    A plain mean of all draws would be biased: a group whose pilot happens to look uniform gets few
    draws, so that this pilot counts more. Instead the mean of the pilot and the mean of the later
    draws are combined with weights that are fixed before the pilot. Given the pilot, the mean of
    the later draws is unbiased for every number of them (at least one), and so is the combination.
    Values of different groups are uncorrelated, so that the spread between groups shows the whole
    error.
    """

    planned: int
    """The draws of each group if all got the same number; with the pilot it fixes the weights."""
    pilot: int
    later: int
    """The draws after the pilot: at least one."""

    @property
    def weights(self) -> tuple[int, int]:
        """The integer weights of a draw of the pilot and of a later one, in lowest terms."""
        first, second = self.later, self.planned - self.pilot
        divisor = math.gcd(first, second)
        return first // divisor, second // divisor

    @property
    def effective(self) -> float:
        """The number of equally weighted draws whose mean has the same variance."""
        share = self.pilot / self.planned
        return 1 / (share**2 / self.pilot + (1 - share) ** 2 / self.later)

    def combine(self, first: float, second: float) -> float:
        """Combine the mean of the pilot with the mean of the later draws."""
        share = self.pilot / self.planned
        return share * first + (1 - share) * second


def shrink_variances(counts: Sequence[tuple[int, int]]) -> list[float]:
    """Estimate p(1 − p) of each group from (successes, draws) of its pilot.

    A few draws say little about one group, so that each estimate is the expectation given the draws
    under a beta distribution of p, which is fitted to all groups by its moments. If the groups do
    not differ, all estimates are equal.
    """
    if not counts:
        return []
    shares = [successes / draws for successes, draws in counts]
    mean = fmean(shares)
    noise = fmean(
        share * (1 - share) / max(draws - 1, 1)
        for share, (_, draws) in zip(shares, counts, strict=True)
    )
    between = pvariance(shares) - noise
    top = mean * (1 - mean)
    if top <= 0 or between <= 0:
        return [top] * len(counts)
    strength = max(top / min(between, top) - 1, 1e-3)
    return [
        (mean * strength + successes)
        * ((1 - mean) * strength + draws - successes)
        / ((strength + draws) * (strength + draws + 1))
        for successes, draws in counts
    ]


def allocate_draws(
    shares: Sequence[float],
    price: Callable[[Sequence[int]], float],
    budget: float,
    *,
    least: int = 1,
    most: int = 1_000_000,
) -> list[int]:
    """Return draws for each group in proportion to its share, as many as the budget buys.

    `price` gives the cost of some numbers of draws, and grows with each of them. Each group gets at
    least `least` draws, and at most `most`. Without any share, all groups get the same number.
    """
    if not any(shares):
        shares = [1.0] * len(shares)

    def draw(scale: float) -> list[int]:
        return [min(most, max(least, int(scale * share))) for share in shares]

    low, high = 0.0, 1.0
    largest = most / min(share for share in shares if share)
    while high < largest and price(draw(high)) <= budget:
        low, high = high, 2 * high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if price(draw(middle)) <= budget else (low, middle)
    numbers = draw(low)
    # What rounding left over goes to those that were rounded down most.
    for place in sorted(range(len(shares)), key=lambda at: numbers[at] - low * shares[at]):
        more = [*numbers[:place], numbers[place] + 1, *numbers[place + 1 :]]
        if more[place] <= most and price(more) <= budget:
            numbers = more
    return numbers
