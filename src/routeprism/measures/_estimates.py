"""Estimates: the one place where values become means with intervals.

A benchmark declares its unit (a pool: a user, a conversation, a question with its own history) and
its weighting. Every quantity, contrasts included, is first a value per question; a unit contributes
a numerator and a denominator; the estimate is their ratio over units; intervals resample units.
A contrast is a difference taken per question, so its two sides are always resampled together;
groups of different questions are compared within units, or by their means, again under the same
resamples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Generic, Literal, TypedDict, TypeVar

import numpy as np
import numpy.typing as npt

from routeprism.measures._claims import flip_signs, follow_sequence
from routeprism.measures._intervals import Interval, difference_limits, limits
from routeprism.measures._patterns import MANY_UNITS, UnitPatterns
from routeprism.measures._series import UnitSeries
from routeprism.quantities import Alternative

FEW_UNITS: Mapping[Interval, int] = {
    "percentile": 30,
    "bca": 30,
    "expanded": 10,
    "studentised": 10,
}
"""From how many units on an interval covers 93% or more (docs/statistics.md)."""
ALIKE = 0.8
"""Share of identical unit values above which the interval is unreliable."""
SKEWED = 1.5
"""Skewness of the unit values above which the interval is unreliable."""
RESAMPLES = 10_000
"""The number of bootstrap resamples for an interval (PROTOCOL §6)."""

Key = TypeVar("Key", bound=Hashable)
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its interval."""

    value: float
    lower: float | None
    """The lower 95% limit; None where fewer than two units give a value."""
    upper: float | None
    queries: int
    """The number of questions with a value."""
    units: int
    """The number of units with a value."""
    warnings: tuple[str, ...] = ()
    """Why the interval covers the true value less often than it claims, if it does."""

    @property
    def degenerate(self) -> bool:
        """Whether every resample gave the same value, so that the interval says nothing."""
        return self.lower is not None and self.lower == self.upper


class Drawing(TypedDict):
    """The options of the bootstrap that all limits of a run share."""

    seed: int
    resamples: int
    interval: Interval


ByQuestion = tuple[Sequence[str], Sequence[float | None]]
"""Question ids, and a value for each."""
Sum = tuple[float, int] | tuple[float, int, ByQuestion]
"""The sum and the number of a unit's values, and these themselves where they are known."""
Sums = dict[Key, Sum]
"""The sums of one unit, by quantity."""


class Tally(Generic[Key]):
    """Collects units, one after the other, for many quantities at once."""

    def __init__(self, weighting: Literal["unit", "question"]) -> None:
        self._weighting = weighting
        self._units = 0
        self._series: dict[Key, UnitSeries] = {}

    def append(self, sums: Sums[Key]) -> None:
        """Add one unit."""
        for key, addition in sums.items():
            series = self._series.get(key)
            if series is None:
                series = self._series[key] = UnitSeries()
            series.append(self._units, addition[0], addition[1])
        self._units += 1

    def keys(self) -> Sequence[Key]:
        """Return the quantities in the order they were first met."""
        return tuple(self._series)

    def count_of(self, key: Key) -> float:
        """Add up a quantity's values."""
        return math.fsum(self._series[key].sums)  # from Python 3.12 on, sum() adds differently

    def mean_of(self, key: Key) -> float:
        """Return a quantity's estimate without limits."""
        numerators, denominators = self._weigh_units([key])
        return trim_noise(numerators.sum() / denominators.sum())

    def select(
        self,
        selects: Callable[[Key], bool],
        *,
        weighting: Literal["unit", "question"] | None = None,
    ) -> Tally[Key]:
        """Return a tally of the same units for some quantities, by default with the same weights.

        Appendix I.4 gives totals in which every question counts equally beside the estimates in
        which every user does.
        """
        part: Tally[Key] = Tally(weighting or self._weighting)
        part._units = self._units
        part._series = {key: series for key, series in self._series.items() if selects(key)}
        return part

    def estimates(
        self, *, seed: int, interval: Interval, resamples: int = RESAMPLES
    ) -> Mapping[Key, Estimate]:
        """Estimate every quantity, with limits over resampled units."""
        groups: dict[int, list[Key]] = {}
        for key, series in self._series.items():
            groups.setdefault(len(series), []).append(key)
        estimates: dict[Key, Estimate] = {}
        for keys in groups.values():
            estimates.update(self._group(keys, seed, resamples, interval))
        return {key: estimates[key] for key in self._series}

    def follow_sequence(
        self, key: Key, bounds: tuple[float, float]
    ) -> tuple[float, float, float] | None:
        """Return limits and a p-value of a mean of units that hold at every look.

        Looks are in the order of the units. None where units do not count equally.
        """
        if self._weighting != "unit" and (self._series[key].counts != 1).any():
            return None
        sequence = follow_sequence(list(self._series[key].means().values()), bounds)
        ((lower, upper),), (p,) = sequence.limits, sequence.p_values
        return trim_noise(lower), trim_noise(upper), trim_noise(p)

    def leave_one_out(self, key: Key) -> tuple[float, float] | None:
        """Return the least and the greatest estimate when any one unit is left out."""
        numerators, denominators = self._weigh_units([key])
        if numerators.shape[1] < 2:
            return None
        rest = (numerators.sum() - numerators[0]) / (denominators.sum() - denominators[0])
        return trim_noise(rest.min()), trim_noise(rest.max())

    def p_value(self, key: Key, *, seed: int, alternative: Alternative = "two-sided") -> float:
        """Test whether a quantity's units are symmetric about zero."""
        numerators, _ = self._weigh_units([key])
        return trim_noise(flip_signs(numerators[0], seed=seed, alternative=alternative))

    def difference(
        self,
        first: Key,
        second: Key,
        *,
        seed: int,
        interval: Interval,
        resamples: int = RESAMPLES,
        union: Key | None = None,
    ) -> Estimate | None:
        """Compare two groups of questions within the units that have both (Appendix F.2).

        A unit's value is the difference of its two means, so units count equally. Where a question
        can be in both groups, `union` is a quantity that every question of either has once.
        """
        both, shared = self._pair_units(first, second)
        estimate = both.estimates(seed=seed, resamples=resamples, interval=interval).get("")
        if estimate is None:
            return None
        questions = sum(self._series[key].count_questions(shared) for key in (first, second))
        if union is not None:
            questions = min(questions, self._series[union].count_questions(shared))
        return replace(estimate, queries=questions)

    def difference_left_out(self, first: Key, second: Key) -> tuple[float, float] | None:
        """Return the least and greatest difference within units when any one unit is left out."""
        both, shared = self._pair_units(first, second)
        return both.leave_one_out("") if len(shared) > 1 else None

    def _pair_units(self, left: Key, right: Key) -> tuple[Tally[str], Set[int]]:
        """Return each unit's difference of its two means, and the units that have both."""
        both: Tally[str] = Tally("unit")
        if left not in self._series or right not in self._series:
            return both, frozenset()
        first, second = (self._series[key].means() for key in (left, right))
        shared = [unit for unit in first if unit in second]
        for unit in shared:
            both.append({"": (first[unit] - second[unit], 1)})
        return both, frozenset(shared)

    def difference_of_means(
        self,
        first: Key,
        second: Key,
        *,
        seed: int,
        interval: Interval,
        resamples: int = RESAMPLES,
    ) -> Estimate | None:
        """Compare the means of two groups of questions over all units (Appendix D.9).

        Each mean is over the units that have the group; both are taken from the same resamples of
        the units that have either.
        """
        if first not in self._series or second not in self._series:
            return None
        units = sorted({*self._series[first].units.tolist(), *self._series[second].units.tolist()})
        place = {unit: at for at, unit in enumerate(units)}
        above, below = np.zeros((2, len(units))), np.zeros((2, len(units)))
        for row, key in enumerate((first, second)):
            at = [place[unit] for unit in self._series[key].units.tolist()]
            numerators, denominators = self._weigh_units([key])
            above[row, at], below[row, at] = numerators[0], denominators[0]
        means = above.sum(axis=1) / below.sum(axis=1)
        ends = None
        if len(units) > 1:
            draw = Drawing(seed=seed, resamples=resamples, interval=interval)
            ends = difference_limits(above, below, **draw)
        lower, upper = (None, None) if ends is None else map(trim_noise, ends)
        least = min(int(np.count_nonzero(row)) for row in below)
        return Estimate(
            trim_noise(means[0] - means[1]),
            lower,
            upper,
            sum(self._series[key].questions for key in (first, second)),
            len(units),
            _contrast_doubts(least, degenerate=lower is not None and lower == upper, used=interval),
        )

    def _weigh_units(self, keys: Sequence[Key]) -> tuple[Floats, Floats]:
        """Compute what each unit adds to numerator and denominator, weights included."""
        sums = np.array([self._series[key].sums for key in keys], dtype=np.float64)
        counts = np.array([self._series[key].counts for key in keys], dtype=np.float64)
        if self._weighting == "unit":
            return sums / counts, np.ones_like(counts)
        return sums, counts

    def _group(
        self, keys: Sequence[Key], seed: int, resamples: int, interval: Interval
    ) -> dict[Key, Estimate]:
        """Estimate quantities that are defined on as many units, under the same resamples."""
        if len(self._series[keys[0]]) >= MANY_UNITS and interval in ("percentile", "expanded"):
            return self._group_many(keys, seed, resamples, interval)
        numerators, denominators = self._weigh_units(keys)
        values = numerators.sum(axis=1) / denominators.sum(axis=1)
        units = numerators.shape[1]
        ends: list[tuple[float | None, float | None]] = [(None, None)] * len(keys)
        if units >= 2:
            # Equal rows are resampled once: many quantities never vary.
            table = np.hstack([numerators, denominators])
            distinct, where = np.unique(table, axis=0, return_inverse=True)
            lower, upper = limits(
                distinct[:, :units],
                distinct[:, units:],
                seed=seed,
                resamples=resamples,
                interval=interval,
            )
            ends = [(trim_noise(lower[at]), trim_noise(upper[at])) for at in np.ravel(where)]
        doubts = _doubts(numerators / denominators, interval)
        return {
            key: Estimate(trim_noise(value), low, high, self._series[key].questions, units, doubt)
            for key, value, (low, high), doubt in zip(keys, values, ends, doubts, strict=True)
        }

    def _group_many(
        self, keys: Sequence[Key], seed: int, resamples: int, interval: Interval
    ) -> dict[Key, Estimate]:
        """Do what `_group` does for many units, with the values of one quantity at a time."""
        units = len(self._series[keys[0]])
        patterns = UnitPatterns(units)
        quantities = []
        for key in keys:
            numerators, denominators = self._weigh_units([key])
            value = trim_noise(numerators.sum() / denominators.sum())
            (doubt,) = _doubts(numerators / denominators, interval)
            quantities.append((key, value, patterns.add(numerators[0], denominators[0]), doubt))
        ends = patterns.limits(seed=seed, resamples=resamples, expanded=interval == "expanded")
        trimmed = [(trim_noise(lower), trim_noise(upper)) for lower, upper in ends]
        return {
            key: Estimate(value, *trimmed[place], self._series[key].questions, units, doubt)
            for key, value, place, doubt in quantities
        }


def _doubts(means: Floats, interval: Interval) -> list[tuple[str, ...]]:
    """List the reasons to read the interval of each row of unit values with care."""
    units = means.shape[1]
    if units < 2:
        return [("single-unit",)] * len(means)
    few = ("few-units",) if units < FEW_UNITS[interval] else ()
    alike = (means == np.median(means, axis=1, keepdims=True)).mean(axis=1)
    gaps = means - means.mean(axis=1, keepdims=True)
    spread = (gaps**2).mean(axis=1)
    level = spread <= 1e-24
    skewness = (gaps**3).mean(axis=1) / np.where(level, np.inf, spread) ** 1.5
    flags: list[tuple[str, ...]] = []
    for same, share, skew in zip(level, alike, np.abs(skewness), strict=True):
        if same:
            flags.append(("degenerate",))
        elif share >= ALIKE:
            flags.append((*few, "near-degenerate"))
        else:
            flags.append((*few, "skewed") if skew >= SKEWED else few)
    return flags


def _contrast_doubts(least: int, *, degenerate: bool, used: Interval) -> tuple[str, ...]:
    """List the reasons to read the interval of a difference of means with care."""
    if least < 2:
        return ("single-unit",)
    if degenerate:
        return ("degenerate",)
    few = FEW_UNITS["percentile" if used == "percentile" else "expanded"]
    return ("few-units",) if least < few else ()


def trim_noise(value: float) -> float:
    """Cut rounding noise off, so that equal values are equal."""
    return round(float(value), 12) + 0.0
