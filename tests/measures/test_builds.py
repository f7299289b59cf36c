"""Several builds of a route: what is left of a difference once build noise is taken off."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routeprism.measures import BUILD_COORDINATES, Builds, Once, Tally

VALUE = {coordinate.name: coordinate.value for coordinate in BUILD_COORDINATES}

once = st.frozensets(st.sampled_from("abc")).map(lambda s: (s, "".join(sorted(s))))
several = st.lists(once, min_size=2, max_size=4).map(tuple)


def of(forward: Sequence[str], route: Sequence[str], **more: bool) -> Builds:
    """Write builds as texts: the letters are the sources, the text is the context."""
    return Builds(
        *(tuple((frozenset(text), text) for text in side) for side in (forward, route)), **more
    )


def test_by_hand() -> None:
    """Forward {a}, {a, b}; route {b}, {b}: overlaps across 0, ½, 0, ½; within ½ and 1."""
    builds = of(["a", "ab"], ["b", "b"])
    assert VALUE["J_cross"](builds) == pytest.approx((0 + 0 + 0.5 + 0.5) / 4)
    assert VALUE["J_within"](builds) == pytest.approx((0.5 + 1) / 2)
    assert VALUE["D_build"](builds) == pytest.approx(0.75 - 0.25)
    assert VALUE["C_cross"](builds) == 1
    assert VALUE["C_within"](builds) == pytest.approx((1 + 0) / 2)
    assert VALUE["D_build.C"](builds) == pytest.approx(1 - 0.5)


def test_one_build_cannot_tell() -> None:
    builds = of(["a"], ["b", "b"])
    assert VALUE["J_cross"](builds) == 0
    assert VALUE["J_within"](builds) is None
    assert VALUE["D_build"](builds) is None


def test_one_order_is_no_other_order() -> None:
    """Where both routes are one order they share their builds, which must not count as alike."""
    builds = of(["a", "b"], ["a", "b"], same_order=True)
    assert VALUE["J_cross"](builds) == VALUE["J_within"](builds) == 0
    assert VALUE["D_build"](builds) == 0


@pytest.mark.slow
@given(several, several)
def test_the_sides_may_be_swapped(first: tuple[Once, ...], second: tuple[Once, ...]) -> None:
    for value in VALUE.values():
        assert value(Builds(first, second)) == pytest.approx(value(Builds(second, first)))


@given(once, once)
def test_without_chance_it_is_one_minus_j(first: Once, second: Once) -> None:
    builds = Builds((first,) * 3, (second,) * 3)
    assert VALUE["J_within"](builds) == 1
    assert VALUE["D_build"](builds) == pytest.approx(1 - VALUE["J_cross"](builds))


@given(st.lists(once, min_size=1, max_size=3, unique=True))
def test_on_average_it_is_zero_where_the_routes_are_alike(outcomes: list[Once]) -> None:
    """Unbiased: the mean over all equally likely builds, two on each side, is exactly zero."""
    values = [
        VALUE["D_build"](Builds((a, b), (c, d))) for a, b, c, d in product(outcomes, repeat=4)
    ]
    assert sum(values) == pytest.approx(0, abs=1e-9)


# --- build noise is never claimed as an effect of order ----------------------------------------

RECORDS, CAPACITY, POOLS, BUILDS = 6, 3, 24, 3
"""A pool's records, how many a memory keeps, how many pools, how many builds of each route."""


def noisy(order: Sequence[int], effect: float, chance: random.Random) -> Once:
    """Keep three records drawn by lot; with probability `effect` the three newest arrivals."""
    if chance.random() < effect:
        retained_ids = frozenset(str(item) for item in order[-CAPACITY:])
    else:
        retained_ids = frozenset(str(item) for item in chance.sample(range(RECORDS), CAPACITY))
    return retained_ids, "".join(sorted(retained_ids))


def simulated(effect: float, seeds: range) -> tuple[int, int, float]:
    """Count intervals that cover zero, and that lie above it, over independent repetitions."""
    tally: Tally[tuple[int, str]] = Tally("unit")
    chances = [random.Random(seed) for seed in seeds]  # noqa: S311
    forward, replay = range(RECORDS), range(RECORDS)[::-1]
    value = VALUE["D_build"]
    for _ in range(POOLS):
        unit = {}
        for seed, chance in zip(seeds, chances, strict=True):
            sides = [
                tuple(noisy(order, effect, chance) for _ in range(BUILDS))
                for order in (forward, replay)
            ]
            unit[seed, "D_build"] = (value(Builds(*sides)), 1)
        tally.append(unit)
    values = list(tally.estimates(interval="expanded", seed=1, resamples=2000).values())
    covered = sum(item.lower <= 0 <= item.upper for item in values)
    above = sum(item.lower > 0 for item in values)
    return covered, above, sum(item.value for item in values) / len(values)


@pytest.mark.slow
def test_noise_in_an_order_invariant_memory_is_not_taken_for_order() -> None:
    """1,000 repetitions, seeds 0–999: the 95% interval covers zero in at least 900."""
    covered, _, mean = simulated(0.0, range(1000))
    assert covered >= 900
    assert abs(mean) < 0.01


@pytest.mark.slow
def test_a_real_effect_beside_the_noise_is_found() -> None:
    """With probability 0.6 the newest three are kept; reversed, these are the other three.

    Half of the squared distance of the two distributions under 1 − J: 0.6² of it, since the drawn
    part is the same on both sides and the two certain sets have nothing in common.
    """
    _, above, mean = simulated(0.6, range(200))
    assert mean == pytest.approx(0.36, abs=0.02)
    assert above == 200
