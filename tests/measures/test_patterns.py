"""Many units: equal ones are counted together, and nothing but the memory and time changes."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest
from scipy.stats import t

from routeprism.measures import Estimate, Interval, Tally


def tally_rows(sums: np.ndarray, counts: np.ndarray) -> Tally[int]:
    """Tally one quantity per row, in which every question counts equally."""
    tally: Tally[int] = Tally("question")
    for totals, numbers in zip(sums.T.tolist(), counts.T.astype(int).tolist(), strict=True):
        tally.append(dict(enumerate(zip(totals, numbers, strict=True))))
    return tally


def limits_by_definition(
    sums: np.ndarray, counts: np.ndarray, *, seed: int, resamples: int, interval: Interval
) -> tuple[float, float]:
    """Write every resample out and read its percentiles."""
    units = len(sums)
    places = np.random.default_rng([seed, units]).integers(0, units, size=(resamples, units))
    ratios = np.sort(sums[places].sum(axis=1) / counts[places].sum(axis=1))
    tail = 0.025
    if interval == "expanded":  # √(n/(n−1)) · t(n−1; 97.5%) standard errors
        tail = NormalDist().cdf(-t.ppf(0.975, units - 1) * (units / (units - 1)) ** 0.5)
    return ratios[int(tail * resamples)], ratios[int((1 - tail) * resamples)]


def limits_of(estimate: Estimate) -> tuple[float | None, float | None]:
    return estimate.lower, estimate.upper


@pytest.mark.parametrize("units", [500, 2_500])
@pytest.mark.parametrize("interval", ["percentile", "expanded"])
def test_limits_are_those_of_all_units(interval: Interval, units: int) -> None:
    generator = np.random.default_rng(4)
    counts = generator.integers(1, 4, (6, units)).astype(float)
    sums = generator.integers(0, 3, (6, units)) * counts / 2
    sums[1], counts[1] = sums[0], counts[0]  # an equal quantity shares its limits
    sums[2], counts[2] = 0.5, 1.0  # one that never varies
    sums[3] = generator.random(units)  # one whose units all differ
    estimates = tally_rows(sums, counts).estimates(seed=7, resamples=300, interval=interval)
    for row, estimate in estimates.items():
        assert limits_of(estimate) == pytest.approx(
            limits_by_definition(sums[row], counts[row], seed=7, resamples=300, interval=interval)
        )
    assert limits_of(estimates[0]) == limits_of(estimates[1])


@pytest.mark.parametrize("kinds", [2, 5_000])
def test_a_tally_of_many_units_gives_the_same_numbers(kinds: int) -> None:
    generator = np.random.default_rng(1)
    values = generator.integers(0, kinds, 2_500) / kinds
    tally: Tally[str] = Tally("unit")
    for at, value in enumerate(values.tolist()):
        tally.append({"a": (value, 1), **({"b": (2 * value, 3)} if at % 5 else {})})
    estimates = tally.estimates(seed=3, interval="expanded", resamples=200)
    for key, numbers in (("a", values), ("b", 2 * values[np.arange(2_500) % 5 > 0] / 3)):
        estimate = estimates[key]
        assert estimate.value == pytest.approx(numbers.mean())
        assert limits_of(estimate) == pytest.approx(
            limits_by_definition(
                numbers, np.ones_like(numbers), seed=3, resamples=200, interval="expanded"
            )
        )
        questions = len(numbers) * (3 if key == "b" else 1)
        assert (estimate.queries, estimate.units) == (questions, len(numbers))
        assert type(estimate.queries) is int


@pytest.mark.parametrize("different", [1, 200, 300, 5_000])
def test_a_tally_gives_back_what_was_added(different: int) -> None:
    """Units follow each other with gaps, and share few or many pairs of sum and count."""
    tally: Tally[str] = Tally("question")
    added = {unit: (float(unit % different), 1 + unit % 3) for unit in range(3, 6_000) if unit % 7}
    few = {8, 9, 15, 14}  # 14 is not among those added
    for unit in range(6_000):
        pair = {"all": added[unit]} if unit in added else {}
        tally.append({**pair, **({"few": (0.0, 1)} if unit in few else {})})
    sums, counts = map(np.array, zip(*added.values(), strict=True))
    estimate = tally.estimates(seed=5, interval="percentile", resamples=40)["all"]
    assert (estimate.units, estimate.queries) == (len(added), sum(counts))
    assert tally.count_of("all") == sum(sums)
    assert estimate.value == pytest.approx(sum(sums) / sum(counts))
    # Every resample is another selection of units, so the limits depend on each unit's pair.
    assert limits_of(estimate) == pytest.approx(
        limits_by_definition(sums, counts, seed=5, resamples=40, interval="percentile")
    )
    difference = tally.difference("all", "few", seed=1, interval="percentile", resamples=40)
    assert difference is not None
    assert difference.queries == 1 + 8 % 3 + 1 + 9 % 3 + 1 + 15 % 3 + 3
    means = [(unit % different) / (1 + unit % 3) for unit in (8, 9, 15)]
    assert difference.value == pytest.approx(sum(means) / 3)


@pytest.mark.parametrize("shape", [(1, 37, 500), (60, 37, 1_000), (48, 2_900, 21), (3, 40_000, 5)])
def test_sums_in_blocks_are_those_of_the_whole(shape: tuple[int, int, int]) -> None:
    rows, units, resamples = shape
    generator = np.random.default_rng(2)
    sums, counts = generator.random((rows, units)), generator.integers(1, 5, (rows, units))
    tally = tally_rows(sums, counts)
    for row, estimate in tally.estimates(
        seed=2, resamples=resamples, interval="percentile"
    ).items():
        ends = limits_by_definition(
            sums[row], counts[row], seed=2, resamples=resamples, interval="percentile"
        )
        assert limits_of(estimate) == pytest.approx(ends, rel=1e-12)
