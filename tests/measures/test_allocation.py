"""Draws where the variance is: unbiased, more precise than equal ones, with limits that hold."""

from __future__ import annotations

import math
from statistics import NormalDist, fmean, variance

import numpy as np
import numpy.typing as npt
import pytest

from routeprism.measures import TwoStages, allocate_draws, pilot_size, shrink_variances

Floats = npt.NDArray[np.float64]


def test_the_pilot_has_a_fifth_of_the_draws() -> None:
    assert [pilot_size(draws) for draws in (4, 10, 20, 1_000)] == [2, 2, 4, 200]


def test_weights_are_fixed_before_the_pilot_whatever_number_follows() -> None:
    """Four of twenty draws are the pilot: it always counts a fifth."""
    for later in (1, 16, 64):
        stages = TwoStages(20, 4, later)
        first, second = stages.weights
        assert first * 4 / (first * 4 + second * later) == pytest.approx(0.2)
        assert stages.combine(1.0, 0.0) == pytest.approx(0.2)
    assert TwoStages(20, 4, 16).weights == (1, 1)
    assert TwoStages(20, 4, 16).effective == pytest.approx(20)
    # 0.2²/4 + 0.8²/64 = 0.02
    assert TwoStages(20, 4, 64).effective == pytest.approx(50)


def test_variances_are_those_of_all_groups_where_groups_do_not_differ() -> None:
    assert shrink_variances([]) == []
    assert shrink_variances([(0, 4)] * 3) == [0.0] * 3
    assert shrink_variances([(2, 4), (1, 4), (3, 4)]) == pytest.approx([0.25] * 3)
    low, high, middle = shrink_variances([(0, 10), (10, 10), (5, 10)])
    assert low == pytest.approx(high)
    assert 0 < low < 0.05 < 0.2 < middle < 0.25


def test_the_budget_is_divided_in_proportion() -> None:
    assert allocate_draws([1.0, 3.0], sum, 40) == [10, 30]
    assert allocate_draws([0.0, 1.0], sum, 10) == [1, 9]  # at least one draw
    assert allocate_draws([0.0, 0.0], sum, 10) == [5, 5]
    assert allocate_draws([1.0, 1.0], lambda numbers: numbers[0] + 4 * numbers[1], 10) == [2, 2]
    assert allocate_draws([1.0, 9.0], sum, 1_000, most=50) == [50, 50]


POOLS, DRAWS, STUDIES = 30, 50, 600


def simulate(shares: Floats, generator: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Return the values of all pools: allocated, with a plain mean of the same draws, and equal."""
    pilot = pilot_size(DRAWS)
    first = generator.binomial(pilot, shares)
    variances = shrink_variances([(int(count), pilot) for count in first])
    later = np.array(
        allocate_draws([math.sqrt(v) for v in variances], sum, POOLS * (DRAWS - pilot))
    )
    second = generator.binomial(later, shares)
    allocated = [
        TwoStages(DRAWS, pilot, int(n)).combine(a / pilot, b / n)
        for a, b, n in zip(first, second, later, strict=True)
    ]
    plain = (first + second) / (pilot + later)
    return np.array(allocated), plain, generator.binomial(DRAWS, shares) / DRAWS


def draw_pools(generator: np.random.Generator) -> Floats:
    """Order changes nothing for most users, something for some, and half of it for a few."""
    return generator.choice([0.0, 0.05, 0.5], POOLS, p=[0.7, 0.1, 0.2])


@pytest.mark.slow
def test_allocation_is_unbiased_and_more_precise_and_a_plain_mean_is_biased() -> None:
    """The same pools in all studies: only draws vary."""
    generator = np.random.default_rng(20260911)
    shares = np.array([0.0] * 21 + [0.05] * 3 + [0.5] * 6)
    results = [simulate(shares, generator) for _ in range(STUDIES)]
    allocated, _, equal = (
        [float(values.mean()) for values in column] for column in zip(*results, strict=True)
    )
    true = float(shares.mean())
    error = math.sqrt(variance(allocated) / STUDIES)
    assert abs(fmean(allocated) - true) < 3 * error
    # The bias of the plain mean: pools with a share of 0.05 that look uniform get few draws.
    rare = np.array([values[1][21:24].mean() for values in results])
    assert abs(float(rare.mean()) - 0.05) > 3 * float(rare.std()) / math.sqrt(STUDIES)
    # With known deviations the ratio is f + (1 − f)·(mean σ)²/(mean σ²), with a pilot of f = 0.2.
    deviations = np.sqrt(shares * (1 - shares))
    expected_ratio = 0.2 + 0.8 * float(deviations.mean() ** 2 / (deviations**2).mean())
    ratio = variance(allocated) / variance(equal)
    assert expected_ratio == pytest.approx(0.417, abs=0.001)
    assert expected_ratio * 0.9 < ratio < 0.6


@pytest.mark.slow
def test_limits_from_the_spread_between_pools_hold() -> None:
    """Pools are drawn anew in each study; limits are the mean ± t·s/√n, as `expanded` ones."""
    generator = np.random.default_rng(20260912)
    true, width = 0.7 * 0 + 0.1 * 0.05 + 0.2 * 0.5, 2.045  # Student, 29 degrees of freedom
    caught = dict.fromkeys(("allocated", "equal"), 0)
    for _ in range(STUDIES):
        allocated, _, equal = simulate(draw_pools(generator), generator)
        for name, values in (("allocated", allocated), ("equal", equal)):
            half = width * float(values.std(ddof=1)) / math.sqrt(POOLS)
            caught[name] += abs(float(values.mean()) - true) <= half
    shares = {name: number / STUDIES for name, number in caught.items()}
    error = NormalDist().inv_cdf(0.999) * math.sqrt(0.05 * 0.95 / STUDIES)
    # As often as with equal draws, and as often as the limits say within simulation error. (The
    # values are skewed, which costs both about a hundredth.)
    assert abs(shares["allocated"] - shares["equal"]) < error
    assert shares["allocated"] > 0.95 - 0.02 - error
