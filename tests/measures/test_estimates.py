"""Estimates: weights, units, joint resampling and the index of the limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routeprism.measures import COORDINATES, RETENTION, Tally, jaccard


def tally(weighting: str, *units: dict[str, list[float]]) -> Tally[str]:
    result: Tally[str] = Tally(weighting)
    for unit in units:
        result.append({key: (float(sum(values)), len(values)) for key, values in unit.items()})
    return result


def test_users_count_equally_or_questions_do() -> None:
    units = ({"J": [1.0, 1.0, 1.0]}, {"J": [0.0]})
    by_unit = tally("unit", *units).estimates(interval="percentile", seed=1)["J"]
    by_question = tally("question", *units).estimates(interval="percentile", seed=1)["J"]
    assert (by_unit.value, by_question.value) == (0.5, 0.75)
    assert (by_unit.queries, by_unit.units) == (by_question.queries, by_question.units) == (4, 2)


def test_limits_are_the_250th_and_9750th_of_ten_thousand() -> None:
    # Two units with values 0 and 1: resampled means are 0, ½, 1 with probabilities ¼, ½, ¼.
    entry = tally("unit", {"J": [0.0]}, {"J": [1.0]}).estimates(interval="percentile", seed=7)["J"]
    assert (entry.lower, entry.upper) == (0.0, 1.0)
    # 40 units, half 1: the mean's sd is sqrt(.25/40) = 0.079, so limits near 0.5 ± 0.155.
    units = [{"J": [float(at % 2)]} for at in range(40)]
    entry = tally("unit", *units).estimates(interval="percentile", seed=7)["J"]
    assert entry.lower == pytest.approx(0.35, abs=0.026)
    assert entry.upper == pytest.approx(0.65, abs=0.026)


def test_limits_equal_a_plain_bootstrap_with_the_same_draws() -> None:
    values = [0.1, 0.5, 0.4, 0.9, 0.0, 0.7]
    entry = tally("unit", *({"J": [value]} for value in values)).estimates(
        interval="percentile", seed=11
    )["J"]
    draws = np.random.default_rng([11, 6]).integers(0, 6, size=(10_000, 6))
    means = sorted(np.mean([values[at] for at in row]) for row in draws)
    assert entry.lower == pytest.approx(means[250], abs=1e-12)
    assert entry.upper == pytest.approx(means[9750], abs=1e-12)


def test_question_weighted_limits_resample_whole_conversations() -> None:
    # Each conversation's questions agree, so resampling questions would be far too sure.
    units = [{"J": [float(at % 2)] * 50} for at in range(10)]
    entry = tally("question", *units).estimates(interval="percentile", seed=3)["J"]
    assert entry.value == 0.5
    assert entry.upper - entry.lower > 0.5


def test_quantities_on_the_same_units_share_their_resamples() -> None:
    # J and its copy shifted by a constant: jointly resampled, the limits shift exactly.
    units = [{"J": [value], "K": [value + 1]} for value in (0.1, 0.6, 0.2, 0.9)]
    estimates = tally("unit", *units).estimates(interval="percentile", seed=5)
    assert estimates["K"].lower == pytest.approx(estimates["J"].lower + 1, abs=1e-12)


def test_not_applicable_units_do_not_count_as_zero() -> None:
    result = tally("unit", {"J": [1.0], "T": [0.4]}, {"J": [0.0]}, {"J": [0.5], "T": [0.6]})
    estimate = result.estimates(interval="percentile", seed=1)["T"]
    assert (estimate.value, estimate.units) == (0.5, 2)


def test_one_unit_has_no_interval_and_equal_units_a_degenerate_one() -> None:
    item = tally("unit", {"J": [0.5]}).estimates(interval="percentile", seed=1)["J"]
    assert (item.value, item.lower, item.upper, item.degenerate) == (0.5, None, None, False)
    same = tally("unit", *[{"J": [0.3]}] * 7).estimates(interval="percentile", seed=1)["J"]
    assert (same.lower, same.upper, same.degenerate) == (0.3, 0.3, True)


def test_a_difference_of_means_is_resampled_jointly() -> None:
    """Appendix D.9: the means over all units that have a group, both from the same resamples."""
    units = [
        {"changed": [1.0, 0.0]},
        {"changed": [1.0], "absent": [0.5]},
        {"absent": [0.0, 0.25]},
        {"changed": [0.25], "absent": [0.75, 0.5]},
        {"absent": [0.25], "changed": [0.5]},
        {"changed": [0.75], "absent": [0.5]},
    ]
    outcome = tally("unit", *units)
    settings_ = {"interval": "percentile", "seed": 7, "resamples": 2000}
    result = outcome.difference_of_means("changed", "absent", **settings_)
    first, second = (
        {at: float(np.mean(unit[name])) for at, unit in enumerate(units) if name in unit}
        for name in ("changed", "absent")
    )
    assert result.value == pytest.approx(
        sum(first.values()) / len(first) - sum(second.values()) / len(second)
    )
    assert (result.queries, result.units) == (13, 6)
    draws = np.random.default_rng([7, 6]).integers(0, 6, size=(2000, 6))
    gaps = sorted(
        np.mean([first[at] for at in row if at in first])
        - np.mean([second[at] for at in row if at in second])
        for row in draws.tolist()
    )
    assert result.lower == pytest.approx(gaps[50])
    assert result.upper == pytest.approx(gaps[1950])
    # Within units only those count that have both groups.
    within = outcome.difference("changed", "absent", **settings_)
    assert within.value == pytest.approx(np.mean([first[at] - second[at] for at in (1, 3, 4, 5)]))
    assert within.units == 4
    assert outcome.difference_left_out("changed", "absent") == pytest.approx((1 / 24, 0.3333333333))


def test_a_difference_of_means_without_a_group_in_some_resample_has_no_limits() -> None:
    outcome = tally("unit", {"a": [1.0]}, {"b": [0.5]}, {"b": [0.0]})
    result = outcome.difference_of_means("a", "b", interval="percentile", seed=1)
    assert (result.value, result.lower, result.upper) == (0.75, None, None)
    assert outcome.difference_of_means("a", "c", interval="percentile", seed=1) is None


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=30), st.integers(0, 2**31))
def test_limits_enclose_plausible_values(values: list[float], seed: int) -> None:
    entry = tally("unit", *({"J": [value]} for value in values)).estimates(
        interval="percentile", seed=seed
    )["J"]
    assert min(values) - 1e-9 <= entry.lower <= entry.upper <= max(values) + 1e-9
    assert entry.value == pytest.approx(sum(values) / len(values), abs=1e-9)


def test_more_units_than_fit_at_once_give_the_same_kind_of_interval() -> None:
    # 9,000 units: the resamples are drawn in several pieces. sd = sqrt(.25/9000) = 0.00527.
    units = [{"J": [float(at % 2)]} for at in range(9000)]
    entry = tally("unit", *units).estimates(interval="percentile", seed=2, resamples=2000)["J"]
    assert entry.upper - entry.lower == pytest.approx(2 * 1.96 * 0.00527, rel=0.1)


@pytest.mark.parametrize("different", [3, 256, 257, 5_000])
def test_the_mean_of_many_units_does_not_depend_on_how_many_values_differ(different: int) -> None:
    values = [float(at * 7919 % different) for at in range(6_000)]
    units = tally("unit", *({"J": [value]} for value in values))
    estimate = units.estimates(interval="percentile", seed=1, resamples=20)["J"]
    assert estimate.value == pytest.approx(sum(values) / len(values))
    assert (estimate.units, estimate.queries) == (6_000, 6_000)


@pytest.mark.slow
@given(st.frozensets(st.text(max_size=2)), st.frozensets(st.text(max_size=2)))
def test_jaccard_is_symmetric(first: frozenset[str], second: frozenset[str]) -> None:
    assert jaccard(first, second) == jaccard(second, first)
    assert jaccard(first, first) == 1  # two empty source sets included


def test_coordinates_describe_themselves() -> None:
    every = (*COORDINATES, *RETENTION)
    assert len({coordinate.name for coordinate in every}) == len(every)
    for coordinate in every:
        assert coordinate.symbol
        assert coordinate.meaning
        assert coordinate.reference
