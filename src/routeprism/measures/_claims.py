"""Claims: tests, their adjustment for several claims, and limits that hold at every look."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from routeprism.errors import SpecError
from routeprism.quantities import Alternative

Claim = TypeVar("Claim")

_LISTED_UNITS = 13
"""Up to how many units every combination of signs is listed."""
_TOLERANCE = 1e-12


def flip_signs(
    values: Sequence[float] | npt.NDArray[np.float64],
    *,
    seed: int,
    flips: int = 10_000,
    alternative: Alternative = "two-sided",
) -> float:
    """Test whether independent values are symmetric about zero, by flipping their signs.

    Gives the share of sign combinations whose sum is at least as extreme as the observed one. All
    combinations are listed for few values; otherwise they are drawn, and the observed one counts
    as one of them, so that the p-value is never zero.
    """
    observed = np.asarray(values, dtype=np.float64)
    observed = observed[observed != 0]  # a zero has no sign
    if not observed.size:
        return 1.0
    if observed.size <= _LISTED_UNITS:
        numbers = np.arange(1 << observed.size)[:, None]
        signs = 1.0 - 2.0 * (numbers >> np.arange(observed.size) & 1)
        count = 0
    else:
        generator = np.random.default_rng([seed, observed.size])
        signs = 1.0 - 2.0 * generator.integers(0, 2, size=(flips, observed.size))
        count = 1
    sums, total = signs @ observed, observed.sum()
    if alternative == "two-sided":
        sums, total = np.abs(sums), abs(total)
    extreme = int(np.count_nonzero(sums >= total - _TOLERANCE * np.abs(observed).sum()))
    return (extreme + count) / (len(sums) + count)


def adjust_holm(p_values: Mapping[Claim, float]) -> dict[Claim, float]:
    """Adjust the p-values of several claims so that any false claim has the stated risk (Holm)."""
    ordered = sorted(p_values, key=lambda claim: p_values[claim])
    adjusted: dict[Claim, float] = {}
    largest = 0.0
    for at, claim in enumerate(ordered):
        largest = max(largest, min(1.0, (len(ordered) - at) * p_values[claim]))
        adjusted[claim] = largest
    return {claim: adjusted[claim] for claim in p_values}


Floats = npt.NDArray[np.float64]
Bounds = tuple[float, float]

_ALPHA = 0.05
_POINTS = 1_000
"""Means that are bet on, evenly spaced; limits are widened by the distance between two of them."""
_MOST = 0.5
"""The largest share of its capital that a gambler bets."""


class ConfidenceSequences:
    """95% limits of several bounded means that hold at every look at once.

    Each mean receives its own values, one after the other. For every possible mean, two gamblers
    bet that the true mean is larger, or smaller. If it is the true mean, neither capital grows in
    expectation, so by Ville's inequality half of the larger capital passes 1/α at *any* time with a
    probability of at most α. The means that no gambler has refuted are the confidence sequence
    (Waudby-Smith and Ramdas, Estimating means of bounded random variables by betting, Journal of
    the Royal Statistical Society B 86, 2024: the hedged capital process with predictable plug-in
    bets).
    """

    def __init__(self, bounds: Sequence[Bounds], *, alpha: float = _ALPHA) -> None:
        self._low = np.array([low for low, _ in bounds], dtype=np.float64)
        self._width = np.array([high - low for low, high in bounds], dtype=np.float64)
        self._alpha = alpha
        self._means = np.linspace(0.0, 1.0, _POINTS + 1)
        number = len(bounds)
        self._gains = np.zeros((number, _POINTS + 1))
        self._losses = np.zeros((number, _POINTS + 1))
        self._most = np.zeros((number, _POINTS + 1))
        """The logarithm of the largest capital at any look; both gamblers begin with one half."""
        self._count = np.zeros(number)
        self._sum = np.zeros(number)
        self._squares = np.zeros(number)

    def add(self, values: Sequence[float | None]) -> None:
        """Add one value to each mean; None adds none."""
        present = np.array([value is not None for value in values], dtype=bool)
        if not present.any():
            return
        raw = np.array([0.0 if value is None else value for value in values])
        scaled = (raw - self._low) / self._width
        if (scaled[present] < -1e-9).any() or (scaled[present] > 1 + 1e-9).any():
            raise SpecError("a value lies outside the range that its quantity is known to have")
        self._bet(present, np.clip(scaled, 0.0, 1.0)[present])

    def _bet(self, rows: npt.NDArray[np.bool_], values: Floats) -> None:
        """Let all gamblers bet on one value; the size of a bet depends on earlier values alone."""
        count = self._count[rows] + 1
        variance = (self._squares[rows] + 0.25) / count
        spent = variance * count * np.log(1 + count)
        size = np.sqrt(2 * math.log(2 / self._alpha) / spent)[:, None]
        means = self._means[None, :]
        with np.errstate(divide="ignore"):
            up = np.minimum(size, _MOST / means)
            down = np.minimum(size, _MOST / (1 - means))
        distance = values[:, None] - means
        self._gains[rows] += np.log1p(up * distance)
        self._losses[rows] += np.log1p(-down * distance)
        capital = np.maximum(self._gains[rows], self._losses[rows]) - math.log(2)
        self._most[rows] = np.maximum(self._most[rows], capital)
        self._count[rows] = count
        self._sum[rows] += values
        centre = (self._sum[rows] + 0.5) / (count + 1)
        self._squares[rows] += (values - centre) ** 2

    @property
    def limits(self) -> list[Bounds]:
        """The limits of every mean; the whole range where none is plausible any more."""
        return self.limits_at(self._alpha)

    def limits_at(self, alpha: float) -> list[Bounds]:
        """Return limits that miss their mean at any look with a probability of at most `alpha`."""
        bounds = []
        step = 1 / _POINTS
        plausible = self._most < -math.log(alpha)
        for row, low, width in zip(plausible, self._low, self._width, strict=True):
            points = np.flatnonzero(row)
            lower = max(0.0, float(self._means[points[0]]) - step) if points.size else 0.0
            upper = min(1.0, float(self._means[points[-1]]) + step) if points.size else 1.0
            bounds.append((float(low + lower * width), float(low + upper * width)))
        return bounds

    @property
    def p_values(self) -> list[float]:
        """The p-values of means of zero, which hold at every look: one divided by the capital."""
        zeros = np.rint(-self._low / self._width * _POINTS).astype(int)
        return [math.exp(-row[zero]) for row, zero in zip(self._most, zeros, strict=True)]


def follow_sequence(
    values: Sequence[float], bounds: Bounds = (0.0, 1.0), *, alpha: float = _ALPHA
) -> ConfidenceSequences:
    """Return the confidence sequence of one mean after these values, in the order of arrival."""
    sequences = ConfidenceSequences([bounds], alpha=alpha)
    for value in values:
        sequences.add([value])
    return sequences


def sequence_limits(
    values: Sequence[float], bounds: Bounds = (0.0, 1.0), *, alpha: float = _ALPHA
) -> Bounds:
    """Return the limits of one mean after these values, in the order of arrival."""
    return follow_sequence(values, bounds, alpha=alpha).limits[0]


def simulate_stops(
    values: Sequence[float],
    bounds: Bounds,
    half_width: float,
    *,
    seed: int,
    rounds: int = 40,
    most: int = 5_000,
) -> list[int]:
    """Draw values again and again, and count how many each round takes to reach a half-width.

    A round that does not reach it within `most` values counts as that many.
    """
    draw = np.random.default_rng(seed)
    sequences = ConfidenceSequences([bounds] * rounds)
    stops = [most] * rounds
    for number in range(1, most + 1):
        sequences.add(list(draw.choice(np.asarray(values, dtype=np.float64), rounds)))
        if number % 5:
            continue
        for at, (lower, upper) in enumerate(sequences.limits):
            if upper - lower <= 2 * half_width:
                stops[at] = min(stops[at], number)
        if max(stops) < most:
            break
    return sorted(stops)
