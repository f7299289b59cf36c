"""Many units: equal ones are counted together, and nothing but the memory and time changes."""

from __future__ import annotations

import numpy as np
import pytest

from routeprism.measures import Tally
from routeprism.measures._intervals import limits, multiply
from routeprism.measures._patterns import UnitPatterns
from routeprism.measures._series import UnitSeries


@pytest.mark.parametrize("expanded", [False, True])
def test_limits_are_those_of_all_units(expanded: bool) -> None:
    generator = np.random.default_rng(4)
    counts = generator.integers(1, 4, (6, 500)).astype(float)
    sums = generator.integers(0, 3, (6, 500)) * counts / 2
    sums[1], counts[1] = sums[0], counts[0]  # an equal quantity shares its limits
    sums[2], counts[2] = 0.5, 1.0  # one that never varies
    sums[3] = generator.random(500)  # one whose units all differ
    patterns = UnitPatterns(500)
    places = [patterns.add(above, below) for above, below in zip(sums, counts, strict=True)]
    assert places == [0, 0, 1, 2, 3, 4]
    interval = "expanded" if expanded else "percentile"
    lower, upper = limits(sums, counts, seed=7, resamples=300, interval=interval)
    ends = patterns.limits(seed=7, resamples=300, expanded=expanded)
    assert [ends[place] for place in places] == [
        pytest.approx(pair) for pair in zip(lower, upper, strict=True)
    ]


@pytest.mark.parametrize("kinds", [2, 5_000])
def test_a_tally_of_many_units_gives_the_same_numbers(kinds: int) -> None:
    generator = np.random.default_rng(1)
    values = generator.integers(0, kinds, 2_500) / kinds
    tally: Tally[str] = Tally("unit")
    for at, value in enumerate(values.tolist()):
        tally.append({"a": (value, 1), **({"b": (2 * value, 3)} if at % 5 else {})})
    found = tally.estimates(seed=3, interval="expanded", resamples=200)
    for key, numbers in (("a", values), ("b", 2 * values[np.arange(2_500) % 5 > 0] / 3)):
        rows = numbers[None, :]
        ends = limits(rows, np.ones_like(rows), seed=3, resamples=200, interval="expanded")
        estimate = found[key]
        assert estimate.value == pytest.approx(numbers.mean())
        assert (estimate.lower, estimate.upper) == pytest.approx((ends[0][0], ends[1][0]))
        questions = len(numbers) * (3 if key == "b" else 1)
        assert (estimate.queries, estimate.units) == (questions, len(numbers))
        assert type(estimate.queries) is int


@pytest.mark.parametrize("different", [1, 200, 300, 5_000])
def test_a_series_gives_back_what_was_added(different: int) -> None:
    series = UnitSeries()
    added = [(unit, float(unit % different), 1 + unit % 3) for unit in range(3, 6_000) if unit % 7]
    for unit, total, count in added:
        series.append(unit, total, count)
    units, sums, counts = map(list, zip(*added, strict=True))
    assert len(series) == len(added)
    assert (series.units.tolist(), series.sums.tolist(), series.counts.tolist()) == (
        units,
        sums,
        counts,
    )
    assert series.questions == sum(counts)
    assert series.count_questions({8, 9, 15, 14}) == 1 + 8 % 3 + 1 + 9 % 3 + 1 + 15 % 3
    assert series.means()[8] == (8 % different) / (1 + 8 % 3)


@pytest.mark.parametrize("shape", [(1, 37, 500), (60, 37, 1_000), (48, 2_900, 21), (3, 40_000, 5)])
def test_products_in_blocks_are_those_of_the_whole(shape: tuple[int, int, int]) -> None:
    rows, units, number = shape
    generator = np.random.default_rng(2)
    values, drawn = generator.random((rows, units)), generator.random((number, units)).T
    np.testing.assert_allclose(multiply(values, drawn), values @ drawn, rtol=1e-12)
