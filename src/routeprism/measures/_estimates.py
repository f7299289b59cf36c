"""Estimates: the one place where values become means with intervals.

A benchmark declares its unit (a pool: a user, a conversation, a question with its own history) and
its weighting. Every quantity, contrasts included, is first a value per question; a unit contributes
a numerator and a denominator; the estimate is their ratio over units; intervals resample units.
A contrast is a difference taken per question, so its two sides are always resampled together.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Generic, Literal, TypedDict, TypeVar

import numpy as np
import numpy.typing as npt

from routeprism.measures._intervals import Interval, limits

__all__ = ["RESAMPLES", "Drawing", "Estimate", "Sums", "Tally"]

FEW_UNITS: Mapping[Interval, int] = {
    "percentile": 30,
    "bca": 30,
    "expanded": 10,
    "studentised": 10,
}
"""From how many units on an interval covers 93% or more (docs/statistics.md)."""
ALIKE = 0.8
"""From which share of units with the same value on it does not."""
SKEWED = 1.5
"""From which skewness of the units' values on it does not."""
RESAMPLES = 10_000
"""How many bootstrap resamples an interval is read from (PROTOCOL §6)."""

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
    """How many questions gave a value."""
    units: int
    """How many units did."""
    warnings: tuple[str, ...] = ()
    """Where the interval was measured to hold the truth less often than it says, why."""

    @property
    def degenerate(self) -> bool:
        """Whether every resample gave the same value, so that the interval says nothing."""
        return self.lower is not None and self.lower == self.upper


class Drawing(TypedDict):
    """What all limits of a run are drawn with."""

    seed: int
    resamples: int
    interval: Interval


ByQuestion = tuple[Sequence[str], Sequence[float | None]]
"""Question ids, and a value for each."""
Sum = tuple[float, int] | tuple[float, int, ByQuestion]
"""The sum and the number of a unit's values, and these themselves where they are known."""
Sums = dict[Key, Sum]
"""What one unit has of each quantity."""


class Tally(Generic[Key]):
    """Collects units, one after the other, for many quantities at once."""

    def __init__(self, weighting: Literal["unit", "question"]) -> None:
        self._weighting = weighting
        self._units = 0
        self._series: dict[Key, _Series] = {}

    def append(self, sums: Sums[Key]) -> None:
        """Add one unit."""
        for key, one in sums.items():
            series = self._series.get(key)
            if series is None:
                series = self._series[key] = _Series()
            series.units.append(self._units)
            series.sums.append(one[0])
            series.counts.append(one[1])
        self._units += 1

    def keys(self) -> Sequence[Key]:
        """Give the quantities in the order they were first met."""
        return tuple(self._series)

    def count_of(self, key: Key) -> float:
        """Add up a quantity's values."""
        return float(sum(self._series[key].sums))

    def mean_of(self, key: Key) -> float:
        """Give a quantity's estimate without limits."""
        numerators, denominators = self._weighed([key])
        return _trim(numerators.sum() / denominators.sum())

    def estimates(
        self, *, seed: int, interval: Interval, resamples: int = RESAMPLES
    ) -> Mapping[Key, Estimate]:
        """Estimate every quantity, with limits over resampled units."""
        groups: dict[int, list[Key]] = {}
        for key, series in self._series.items():
            groups.setdefault(len(series.units), []).append(key)
        found: dict[Key, Estimate] = {}
        for keys in groups.values():
            found.update(self._group(keys, seed, resamples, interval))
        return {key: found[key] for key in self._series}

    def leave_one_out(self, key: Key) -> tuple[float, float] | None:
        """Give the least and the greatest estimate when any one unit is left out."""
        numerators, denominators = self._weighed([key])
        if numerators.shape[1] < 2:
            return None
        rest = (numerators.sum() - numerators[0]) / (denominators.sum() - denominators[0])
        return _trim(rest.min()), _trim(rest.max())

    def difference(
        self,
        one: Key,
        other: Key,
        *,
        seed: int,
        interval: Interval,
        resamples: int = RESAMPLES,
    ) -> Estimate | None:
        """Compare two groups of questions within the units that have both (Appendix F.2).

        A unit's value is the difference of its two means, so units count equally.
        """
        if one not in self._series or other not in self._series:
            return None
        sides = [self._series[key].means() for key in (one, other)]
        both: Tally[str] = Tally("unit")
        for unit in sides[0]:
            if unit in sides[1]:
                both.append({"": (sides[0][unit] - sides[1][unit], 1)})
        found = both.estimates(seed=seed, resamples=resamples, interval=interval).get("")
        if found is None:
            return None
        asked = sum(self._series[key].asked(sides[0].keys() & sides[1]) for key in (one, other))
        return replace(found, queries=asked)

    def _weighed(self, keys: Sequence[Key]) -> tuple[Floats, Floats]:
        """Give what each unit adds above and below the line: the one place that knows weights."""
        sums = np.array([self._series[key].sums for key in keys], dtype=np.float64)
        counts = np.array([self._series[key].counts for key in keys], dtype=np.float64)
        if self._weighting == "unit":
            return sums / counts, np.ones_like(counts)
        return sums, counts

    def _group(
        self, keys: Sequence[Key], seed: int, resamples: int, interval: Interval
    ) -> dict[Key, Estimate]:
        """Estimate quantities that are defined on as many units, under the same resamples."""
        numerators, denominators = self._weighed(keys)
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
            ends = [(_trim(lower[at]), _trim(upper[at])) for at in np.ravel(where)]
        doubts = _doubts(numerators / denominators, interval)
        return {
            key: Estimate(_trim(value), low, high, sum(self._series[key].counts), units, doubt)
            for key, value, (low, high), doubt in zip(keys, values, ends, doubts, strict=True)
        }


def _doubts(means: Floats, interval: Interval) -> list[tuple[str, ...]]:
    """Say for each row of units' values why its interval should be read with care."""
    units = means.shape[1]
    if units < 2:
        return [("single-unit",)] * len(means)
    few = ("few-units",) if units < FEW_UNITS[interval] else ()
    alike = (means == np.median(means, axis=1, keepdims=True)).mean(axis=1)
    gaps = means - means.mean(axis=1, keepdims=True)
    spread = (gaps**2).mean(axis=1)
    level = spread <= 1e-24
    skewness = (gaps**3).mean(axis=1) / np.where(level, np.inf, spread) ** 1.5
    found: list[tuple[str, ...]] = []
    for same, share, skew in zip(level, alike, np.abs(skewness), strict=True):
        if same:
            found.append(("degenerate",))
        elif share >= ALIKE:
            found.append((*few, "near-degenerate"))
        else:
            found.append((*few, "skewed") if skew >= SKEWED else few)
    return found


def _trim(value: float) -> float:
    """Cut rounding noise off, so that equal values are equal."""
    return round(float(value), 12) + 0.0


class _Series:
    """One quantity's units with their sums and counts."""

    def __init__(self) -> None:
        self.units: array[int] = array("q")
        self.sums: array[float] = array("d")
        self.counts: array[int] = array("q")

    def asked(self, units: Set[int]) -> int:
        """Count the questions of some units."""
        pairs = zip(self.units, self.counts, strict=True)
        return sum(count for unit, count in pairs if unit in units)

    def means(self) -> dict[int, float]:
        """Give each unit's mean."""
        return {
            unit: total / count
            for unit, total, count in zip(self.units, self.sums, self.counts, strict=True)
        }
