"""Intervals: 95% limits of a ratio of sums over units, by resampling the units.

`percentile` is the published one (PROTOCOL §6). `expanded` takes percentiles a little further out,
as Student's distribution does for few units (Hesterberg, What Teachers Should Know About the
Bootstrap, 2015). `bca` corrects for bias and skewness by the jackknife; `studentised` resamples the
ratio divided by its own standard error (both: Efron & Tibshirani, An Introduction to the Bootstrap,
1993, chapters 12 and 14). What each covers is measured in docs/statistics.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import NormalDist
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from routeprism.errors import SpecError, nearest
from routeprism.specs import check_sizes

Interval = Literal["percentile", "expanded", "bca", "studentised"]
"""The method that computes limits from the resamples."""
INTERVALS: tuple[Interval, ...] = ("percentile", "expanded", "bca", "studentised")

_WORDS: dict[Interval, str] = {
    "percentile": "percentile bootstrap",
    "expanded": "percentile bootstrap, expanded for few units",
    "bca": "bias-corrected and accelerated bootstrap",
    "studentised": "studentised bootstrap",
}

_CELLS = 400_000
"""The number of resampled unit counts in memory at once."""
_TAIL = 0.025

Floats: TypeAlias = npt.NDArray[np.float64]


def check_bootstrap(seed: int, resamples: int) -> None:
    """Refuse a seed that no table can hold, and numbers of resamples that mean nothing."""
    if not 0 <= seed <= _LAST_SEED:
        raise SpecError(f"Expected a seed from 0 to {_LAST_SEED} but got seed={seed}")
    check_sizes(resamples=resamples)


_LAST_SEED = 2**63 - 1
"""The largest whole number of SQLite."""


def chosen_interval(name: str | None, declared: str) -> Interval:
    """Return the interval that was asked for, or else the one that the benchmark declares."""
    interval = declared if name is None else name
    if interval not in INTERVALS:
        raise SpecError(f"There is no interval '{interval}'. {nearest(interval, INTERVALS)}")
    return interval


def limits_said(used: Interval, declared: str) -> str:
    """Describe how limits were computed, and which setting gives the alternative."""
    text = f"95% limits: {_WORDS[used]}"
    if declared != "percentile":
        return text
    if used == declared:
        return (
            f"{text}, as in the published protocol; interval=expanded contains the true value "
            f"closer to 95% of the time"
        )
    return f"{text}; interval=percentile gives those of the published protocol"


def bootstrap_counts(units: int, resamples: int, generator: np.random.Generator) -> Floats:
    """Draw how often each unit is in each resample: resamples × units."""
    return _count_units(generator.integers(0, units, size=(resamples, units)))


def _count_units(indices: npt.NDArray[np.int64]) -> Floats:
    resamples, units = indices.shape
    indices += np.arange(resamples)[:, None] * units
    flat = np.bincount(indices.ravel(), minlength=resamples * units)
    return flat.reshape(resamples, units).astype(np.float64)


def limits(
    numerators: Floats,
    denominators: Floats,
    *,
    seed: int,
    resamples: int,
    interval: Interval,
) -> tuple[Floats, Floats]:
    """Return lower and upper limits of each row's ratio Σ numerator / Σ denominator.

    The same seed and number of units give the same resamples, whatever else is estimated.
    """
    if interval == "studentised":
        return _studentise_limits(numerators, denominators, seed, resamples)
    results = np.empty((len(numerators), resamples))
    # Most rows share their denominators, so each different one is summed once.
    different, which = np.unique(denominators, axis=0, return_inverse=True)
    which = which.reshape(-1)
    for part, counts in _draw_resamples(numerators.shape[1], seed, resamples):
        below = multiply(different, counts)
        np.divide(multiply(numerators, counts), below[which], out=results[:, part])
    if interval == "bca":
        return _correct_percentiles(results, numerators, denominators)
    return percentiles(results, numerators.shape[1], expanded=interval == "expanded")


def difference_limits(
    numerators: Floats, denominators: Floats, *, seed: int, resamples: int, interval: Interval
) -> tuple[float, float] | None:
    """Return the limits of the first row's ratio minus the second's, both under the same resamples.

    None where some resample has no unit of one side: leaving it out would make the interval too
    narrow. A difference of ratios is not a ratio, so it has percentile or expanded limits, and the
    latter where BCa or studentised ones are requested.
    """
    units = numerators.shape[1]
    results = np.empty((1, resamples))
    for part, counts in _draw_resamples(units, seed, resamples):
        below = multiply(denominators, counts)
        if not below.all():
            return None
        means = multiply(numerators, counts) / below
        results[0, part] = means[0] - means[1]
    lower, upper = percentiles(results, units, expanded=interval != "percentile")
    return float(lower[0]), float(upper[0])


def percentiles(results: Floats, units: int, *, expanded: bool) -> tuple[Floats, Floats]:
    """Read limits off each row of resampled values; their order is lost."""
    tail = _widen_tail(units) if expanded else _TAIL
    resamples = results.shape[1]
    low, high = _place(tail, resamples), _place(1 - tail, resamples)
    results.partition([low, high], axis=1)
    return results[:, low], results[:, high]


def _widen_tail(units: int) -> float:
    """Return the tail that makes up for the resampled spread, which is too small with few units."""
    return NormalDist().cdf(-student(units - 1) * (units / (units - 1)) ** 0.5)


def student(degrees: int) -> float:
    """Return Student's 97.5% point (Cornish–Fisher; within 0.2% from five degrees on)."""
    z = NormalDist().inv_cdf(1 - _TAIL)
    if degrees < 5:
        return {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776}[degrees]
    return (
        z
        + (z**3 + z) / (4 * degrees)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * degrees**3)
    )


def _place(share: float, resamples: int) -> int:
    """Find the sorted value that a share of the resamples is below: 250 and 9,750 of 10,000."""
    return min(max(round(share * 1000 * resamples) // 1000, 0), resamples - 1)


def _draw_resamples(units: int, seed: int, resamples: int) -> Iterator[tuple[slice, Floats]]:
    """Yield the resamples in portions: their places, and how often each unit is in each of them."""
    for part, indices in draw_units(units, seed, resamples):
        yield part, _count_units(indices).T


_SERIAL, _SERIAL_VECTOR = 262_144, 9_216
"""Products of at most this size are not divided between threads by OpenBLAS."""
_COLUMNS = 8


def multiply(values: Floats, counts: Floats) -> Floats:
    """Return `values @ counts`, computed in blocks that are too small for several threads.

    Threads that wait for each other take ten times the processor time of the product itself.
    """
    rows, units = values.shape
    number = counts.shape[1]
    width = max(1, (_SERIAL if rows > 1 else _SERIAL_VECTOR) // (rows * units))
    height = rows
    if width < _COLUMNS:
        width, height = _COLUMNS, _SERIAL // (_COLUMNS * units)
        if height < 2:  # too large for small blocks
            return values @ counts
    result = np.empty((rows, number))
    for top in range(0, rows, height):
        for left in range(0, number, width):
            block = np.s_[top : top + height, left : left + width]
            result[block] = values[block[0]] @ counts[:, block[1]]
    return result


def draw_units(
    units: int, seed: int, resamples: int
) -> Iterator[tuple[slice, npt.NDArray[np.int64]]]:
    """Draw the units of all resamples in portions: their places, and the units of each of them."""
    generator = np.random.default_rng([seed, units])
    step = max(1, _CELLS // units)
    for start in range(0, resamples, step):
        stop = min(start + step, resamples)
        yield slice(start, stop), generator.integers(0, units, size=(stop - start, units))


def _correct_percentiles(
    results: Floats, numerators: Floats, denominators: Floats
) -> tuple[Floats, Floats]:
    """Move the percentiles by the bias and the acceleration of each row (BCa)."""
    above, below = numerators.sum(axis=1, keepdims=True), denominators.sum(axis=1, keepdims=True)
    values = above / below
    rest = below - denominators
    with np.errstate(divide="ignore", invalid="ignore"):
        left_out = np.where(rest > 0, (above - numerators) / rest, values)
    gaps = left_out.mean(axis=1, keepdims=True) - left_out
    spread = (gaps**2).sum(axis=1)
    skew = (gaps**3).sum(axis=1)
    results.sort(axis=1)
    resamples = results.shape[1]
    ties = 1e-12 * np.maximum(1.0, np.abs(values[:, 0]))
    normal = NormalDist()
    bounds = np.empty((2, len(results)))
    for row, ordered in enumerate(results):
        under = np.searchsorted(ordered, values[row, 0] - ties[row], "left")
        upto = np.searchsorted(ordered, values[row, 0] + ties[row], "right")
        share = min(max((under + upto) / 2 / resamples, 0.5 / resamples), 1 - 0.5 / resamples)
        bias = normal.inv_cdf(share)
        pace = skew[row] / (6 * spread[row] ** 1.5) if spread[row] > 0 else 0.0
        for side, tail in enumerate((_TAIL, 1 - _TAIL)):
            moved = bias + normal.inv_cdf(tail)
            moved = bias + moved / (1 - pace * moved) if pace * moved < 1 else moved
            bounds[side, row] = ordered[_place(normal.cdf(moved), resamples)]
    return bounds[0], bounds[1]


def _studentise_limits(
    numerators: Floats, denominators: Floats, seed: int, resamples: int
) -> tuple[Floats, Floats]:
    """Resample the ratio in units of its linearised standard error.

    A resample all of whose units agree, but for rounding, has no error to divide by and says
    nothing, so it counts as no deviation.
    """
    values = numerators.sum(axis=1) / denominators.sum(axis=1)
    squares, products, sizes = numerators**2, numerators * denominators, denominators**2
    error = _error(
        squares.sum(axis=1),
        products.sum(axis=1),
        sizes.sum(axis=1),
        values,
        denominators.sum(axis=1),
    )
    deviations = np.empty((len(numerators), resamples))
    for part, counts in _draw_resamples(numerators.shape[1], seed, resamples):
        below = denominators @ counts
        ratio = (numerators @ counts) / below
        resampled_error = _error(squares @ counts, products @ counts, sizes @ counts, ratio, below)
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = (ratio - values[:, None]) / resampled_error
        deviations[:, part] = np.where(resampled_error > 1e-6 * error[:, None], moved, 0.0)
    low, high = _place(_TAIL, resamples), _place(1 - _TAIL, resamples)
    deviations.partition([low, high], axis=1)
    return values - deviations[:, high] * error, values - deviations[:, low] * error


def _error(
    squares: Floats, products: Floats, sizes: Floats, ratio: Floats, below: Floats
) -> Floats:
    """Return √Σ(n − θd)² / Σd; what rounding leaves of nothing is nothing."""
    left = squares - 2 * ratio * products + ratio**2 * sizes
    spread: Floats = np.where(left > 1e-12 * squares, left, 0.0)
    return np.sqrt(spread) / below
