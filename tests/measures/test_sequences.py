"""Confidence sequences: against a plain reference, and their error rate over all looks at once."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from routeprism.errors import SpecError
from routeprism.measures import ConfidenceSequences, sequence_limits, simulate_stops


def refuted(values: list[float], mean: float, alpha: float = 0.05) -> bool:
    """Bet on one mean, value by value, as in Waudby-Smith and Ramdas (2024), in plain Python."""
    gains = losses = 0.0
    total = squares = 0.0
    for number, value in enumerate(values, start=1):
        variance = (0.25 + squares) / number
        size = math.sqrt(2 * math.log(2 / alpha) / (variance * number * math.log(1 + number)))
        up = min(size, 0.5 / mean) if mean else size
        down = min(size, 0.5 / (1 - mean)) if mean < 1 else size
        gains += math.log(1 + up * (value - mean))
        losses += math.log(1 - down * (value - mean))
        if max(gains, losses) - math.log(2) >= math.log(1 / alpha):
            return True
        total += value
        squares += (value - (0.5 + total) / (number + 1)) ** 2
    return False


@pytest.mark.parametrize(("share", "number"), [(0.1, 40), (0.5, 60), (0.95, 80)])
def test_limits_are_those_of_the_reference(share: float, number: int) -> None:
    draw = random.Random(number)  # noqa: S311
    values = [float(draw.random() < share) for _ in range(number)]
    lower, upper = sequence_limits(values)
    plausible = [at / 1000 for at in range(1001) if not refuted(values, at / 1000)]
    assert lower == pytest.approx(max(0.0, plausible[0] - 0.001))
    assert upper == pytest.approx(min(1.0, plausible[-1] + 0.001))
    assert lower <= sum(values) / number <= upper


def test_a_difference_has_limits_on_its_own_scale() -> None:
    values = [0.2, 0.4, 0.0, 0.6, 0.2] * 30
    lower, upper = sequence_limits(values, (-1.0, 1.0))
    assert 0 < lower < 0.28 < upper < 0.5
    shares = sequence_limits([(value + 1) / 2 for value in values])
    assert (lower, upper) == pytest.approx((2 * shares[0] - 1, 2 * shares[1] - 1))


def test_a_p_value_at_every_look_is_one_divided_by_the_largest_capital() -> None:
    """It is below a risk exactly if a gambler with this risk refutes zero at some look."""
    values = [0.2, 0.4, -0.2, 0.6, 0.2, 0.0] * 12
    sequences = ConfidenceSequences([(-1.0, 1.0)])
    p_values = []
    for value in values:
        sequences.add([value])
        p_values += sequences.p_values
    assert p_values == sorted(p_values, reverse=True)
    assert 0 < p_values[-1] < 0.05 < p_values[0]
    scaled = [(value + 1) / 2 for value in values]
    first = next(at for at, p in enumerate(p_values) if p <= 0.05)
    assert refuted(scaled[: first + 1], 0.5) and not refuted(scaled[:first], 0.5)
    (lower, upper), (wide_lower, wide_upper) = (
        sequences.limits[0],
        sequences.limits_at(0.05 / 20)[0],
    )
    assert wide_lower < lower < upper < wide_upper
    nothing = ConfidenceSequences([(0.0, 1.0)])
    nothing.add([0.0])
    assert nothing.p_values == [1.0]


def test_values_outside_of_the_range_are_refused() -> None:
    with pytest.raises(SpecError, match="outside the range"):
        sequence_limits([0.5, 1.5])


@pytest.mark.slow
def test_the_true_mean_is_lost_at_any_look_no_more_often_than_claimed() -> None:
    """400 studies of 200 users each: at most 5% lose the mean at *some* look.

    2.5 standard errors of a rate of 0.05 over 400 studies are 0.027.
    """
    draw = np.random.default_rng(20260910)
    for make, mean in (
        (lambda n: draw.binomial(1, 0.1, n).astype(float), 0.1),
        (lambda n: draw.beta(2, 2, n), 0.5),
    ):
        studies = ConfidenceSequences([(0.0, 1.0)] * 400)
        for _ in range(200):
            studies.add(list(make(400)))
        # Limits never widen again, so the last ones tell whether any look lost the mean.
        lost = sum(not lower <= mean <= upper for lower, upper in studies.limits)
        assert lost / 400 <= 0.05 + 0.027


def test_a_large_effect_is_shown_with_a_fraction_of_the_values() -> None:
    stops = simulate_stops([0.0, 1.0, 1.0, 1.0], (0.0, 1.0), 0.1, seed=1, rounds=10)
    assert 100 < stops[5] < 400  # 73 values suffice for a number that is fixed in advance
    assert simulate_stops([1.0], (0.0, 1.0), 0.1, seed=1, rounds=2)[-1] <= 60
