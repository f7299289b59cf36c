"""Draws where the variance is: a pilot everywhere, and the rest by Neyman's rule.

A mean over groups (pools, questions) has the error of the draws within each group. For a given cost
it is smallest if group i gets draws in proportion to w_i·σ_i/√c_i, with its weight, the deviation
of one draw and the cost of one draw (Neyman 1934). The deviations come from a pilot.

A plain mean of all draws would be biased: a group whose pilot happens to look uniform gets few
draws, so that this pilot counts more. Instead the mean of the pilot and the mean of the later draws
are combined with weights that are fixed before the pilot. Given the pilot, the mean of the later
draws is unbiased for every number of them (at least one), and so is the combination. Values of
different groups are uncorrelated, so that the spread between groups shows the whole error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, pvariance

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
    """How the draws of one group are combined."""

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
