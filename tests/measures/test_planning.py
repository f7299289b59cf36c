"""Planning: the spread of a pilot comes apart into its parts, and what follows is enough."""

import math

import numpy as np
import pytest
from scipy.stats import t

from routeprism.errors import SpecError
from routeprism.measures import Spread, spread_of, units_for_power, units_for_width


def draw_units(random: np.random.Generator, units: int, questions: int) -> list[list[float]]:
    """Units with sd 0.3, questions with sd 0.5, true mean 0.2."""
    centres = 0.2 + random.normal(0, 0.3, units)
    return [list(centre + random.normal(0, 0.5, questions)) for centre in centres]


def test_the_parts_of_the_variance_are_found() -> None:
    spread = spread_of(draw_units(np.random.default_rng(1), 3_000, 4))
    assert spread.unit == pytest.approx(0.09, rel=0.12)
    assert spread.question == pytest.approx(0.25, rel=0.05)
    assert spread.draw == 0


def test_draws_are_taken_out_of_the_questions() -> None:
    random = np.random.default_rng(2)
    share = random.beta(2, 2, size=(2_000, 3))
    frequencies = random.binomial(4, share) / 4
    noise = float((frequencies * (1 - frequencies)).mean() * 4 / 3)
    spread = spread_of([list(row) for row in frequencies], noise=noise, draws=4)
    assert spread.draw == pytest.approx(float((share * (1 - share)).mean()), rel=0.05)
    assert spread.question == pytest.approx(1 / 20, rel=0.1)  # the variance of Beta(2, 2)


@pytest.mark.slow
def test_the_planned_number_gives_the_wanted_width_and_power() -> None:
    spread = Spread(0.09, 0.25, 0.0)
    units = units_for_width(spread, 0.1, questions=4, draws=1)
    random = np.random.default_rng(3)
    means = [np.mean([np.mean(u) for u in draw_units(random, units, 4)]) for _ in range(400)]
    assert 1.96 * np.std(means) == pytest.approx(0.1, rel=0.1)
    units = units_for_power(spread, 0.2, power=0.8, questions=4, draws=1)
    detections = 0
    for _ in range(400):
        unit_means = np.array([np.mean(u) for u in draw_units(random, units, 4)])
        error = unit_means.std(ddof=1) / np.sqrt(units)
        detections += unit_means.mean() - t.ppf(0.975, units - 1) * error > 0
    assert detections / 400 == pytest.approx(0.8, abs=0.05)


@pytest.mark.parametrize("half_width", [0.02, 0.05, 0.1, 0.2, 0.5, 2.0])
def test_the_planned_number_is_the_smallest(half_width: float) -> None:
    units = units_for_width(Spread(0.3, 0.0, 0.0), half_width, questions=1, draws=1)

    def width(units: int) -> float:
        return t.ppf(0.975, units - 1) * float(np.sqrt(0.3 / units))

    assert width(units) <= half_width
    assert units == 2 or width(units - 1) > half_width


@pytest.mark.parametrize("degrees", [1, 4, 5, 9, 29, 200])
def test_the_quantile_is_students(degrees: int) -> None:
    """Within 0.2%: the smallest width that the units give lies between these two."""
    width = t.ppf(0.975, degrees) * (0.3 / (degrees + 1)) ** 0.5

    def units(half_width: float) -> int:
        return units_for_width(Spread(0.3, 0.0, 0.0), half_width, questions=1, draws=1)

    assert units(width * 1.002) == degrees + 1
    assert units(width * 0.998) == degrees + 2


@pytest.mark.parametrize("units", [[], [[0.1, 0.2]], [[0.1], [0.2]]])
def test_a_pilot_that_shows_no_spread_is_refused(units: list[list[float]]) -> None:
    with pytest.raises(SpecError, match="shows no spread"):
        spread_of(units)


def test_impossible_goals_are_refused() -> None:
    spread = Spread(0.1, 0.1, 0.0)
    with pytest.raises(SpecError, match="half_width=0"):
        units_for_width(spread, 0, questions=1, draws=1)
    with pytest.raises(SpecError, match="power=1"):
        units_for_power(spread, 0.1, power=1, questions=1, draws=1)
    for number in (math.nan, math.inf):
        with pytest.raises(SpecError, match="half_width="):
            units_for_width(spread, number, questions=1, draws=1)
        with pytest.raises(SpecError, match="effect="):
            units_for_power(spread, number, questions=1, draws=1)
        with pytest.raises(SpecError, match="questions="):
            units_for_width(spread, 0.1, questions=number, draws=1)
    with pytest.raises(SpecError, match="questions=0"):
        units_for_width(spread, 0.1, questions=0, draws=1)
    with pytest.raises(SpecError, match="draws=0"):
        units_for_width(spread, 0.1, questions=1, draws=0)
    with pytest.raises(SpecError, match="no study shows 1e-200"):
        units_for_width(spread, 1e-200, questions=1, draws=1)
    # What does not vary is known from two units, however narrow the interval is to be.
    assert units_for_width(Spread(0.0, 0.0, 0.0), 1e-200, questions=1, draws=1) == 2
