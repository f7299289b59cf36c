"""Limits by the four methods, against a library and a plain loop; and when they are doubted."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from routeprism.errors import SpecError
from routeprism.measures import Interval, Tally, chosen_interval, limits_said
from routeprism.records import Benchmark, load_benchmark

pytestmark = pytest.mark.usefixtures("only_reversal")

SKEWED = np.random.default_rng(3).exponential(size=25) ** 1.5


def ratio_limits(
    above: np.ndarray, below: np.ndarray, *, seed: int = 5, **settings: Any
) -> tuple[float, float]:
    """Return the limits of Σ above / Σ below, where each place is a unit."""
    tally: Tally[str] = Tally("question")
    for total, count in zip(above.tolist(), below.tolist(), strict=True):
        tally.append({"ratio": (total, count)})
    estimate = tally.estimates(seed=seed, **settings)["ratio"]
    assert estimate.lower is not None and estimate.upper is not None
    return estimate.lower, estimate.upper


def mean_limits(values: np.ndarray, **settings: Any) -> tuple[float, float]:
    return ratio_limits(values, np.ones(len(values), dtype=int), **settings)


def draw_units(resamples: int) -> np.ndarray:
    """Draw the 25 units of each resample under seed 5."""
    return np.random.default_rng([5, 25]).integers(0, 25, size=(resamples, 25))


def test_bca_agrees_with_scipy_on_skewed_values() -> None:
    from scipy.stats import bootstrap

    peer = bootstrap(
        (SKEWED,), np.mean, method="BCa", n_resamples=60_000, rng=np.random.default_rng(1)
    ).confidence_interval
    ours = mean_limits(SKEWED, resamples=60_000, interval="bca")
    width = peer.high - peer.low
    assert ours == pytest.approx((peer.low, peer.high), abs=0.02 * width)
    plain = mean_limits(SKEWED, resamples=60_000, interval="percentile")
    assert abs(plain[1] - peer.high) > 0.05 * width  # the correction is more than the tolerance


def test_studentised_limits_equal_a_plain_loop() -> None:
    above, below = SKEWED, np.arange(1, 26)
    theta = above.sum() / below.sum()
    moved = []
    for units in draw_units(400):
        total = below[units].sum()
        ratio = above[units].sum() / total
        error = np.sqrt(((above - ratio * below)[units] ** 2).sum()) / total
        moved.append((ratio - theta) / error)
    error = np.sqrt(((above - theta * below) ** 2).sum()) / below.sum()
    ordered = sorted(moved)
    lower, upper = ratio_limits(above, below, resamples=400, interval="studentised")
    assert lower == pytest.approx(theta - ordered[390] * error)
    assert upper == pytest.approx(theta - ordered[10] * error)


@pytest.mark.parametrize("interval", ["percentile", "expanded", "bca", "studentised"])
def test_equal_units_and_rounding_noise_do_not_blow_up(interval: str) -> None:
    assert mean_limits(np.full(12, 0.3), resamples=500, interval=interval) == pytest.approx(
        (0.3, 0.3)
    )
    noisy = np.array([0.0] * 8 + [5e-17] * 8 + [1.0, 0.5, 0.0, 0.0])
    lower, upper = mean_limits(noisy, resamples=500, interval=interval)
    assert -2 < lower <= 0.075 <= upper < 2


def test_expanded_limits_are_percentiles_further_out() -> None:
    # 25 units: √(25/24) · t(24; 97.5%) = 2.1066, and Φ(−2.1066) = 0.01758.
    means = np.sort(SKEWED[draw_units(10_000)].mean(axis=1))
    limits = mean_limits(SKEWED, resamples=10_000, interval="expanded")
    assert limits == pytest.approx((means[175], means[9824]), rel=0.01)


def test_question_weighted_bca_leaves_whole_units_out() -> None:
    above, below = np.array([3.0, 0.0, 8.0, 2.0]), np.array([4, 2, 8, 3])
    lower, upper = ratio_limits(above, below, seed=1, resamples=2_000, interval="bca")
    assert lower < 13 / 17 < upper


def test_doubtful_intervals_say_so() -> None:
    def warned(values: list[float], interval: Interval = "expanded") -> tuple[str, ...]:
        tally: Tally[str] = Tally("unit")
        for value in values:
            tally.append({"J": (value, 1)})
        return tally.estimates(seed=1, resamples=200, interval=interval)["J"].warnings

    def varied(units: int) -> list[float]:
        return [0.1 * (at % 7) for at in range(units)]

    assert warned([0.5]) == ("single-unit",)
    assert warned([0.5] * 40) == ("degenerate",)
    # From how many units on the interval was measured to hold 93% (docs/statistics.md).
    assert warned(varied(30), "percentile") == ()
    assert warned(varied(29), "percentile") == ("few-units",)
    assert warned(varied(10)) == ()
    assert warned(varied(9)) == ("few-units",)
    assert warned([0.0] * 33 + [0.5] * 7) == ("near-degenerate",)
    assert warned([0.0, 0.1] * 18 + [3.0, 2.0]) == ("skewed",)
    assert warned([0.0] * 20 + [0.5] * 3, "percentile") == ("few-units", "near-degenerate")


@pytest.mark.parametrize(
    ("requested", "declared", "used"),
    [
        (None, "expanded", "expanded"),
        (None, "percentile", "percentile"),
        ("expanded", "percentile", "expanded"),
        ("bca", "expanded", "bca"),
    ],
)
def test_the_benchmark_declares_and_the_user_decides(
    requested: str | None, declared: str, used: str
) -> None:
    assert chosen_interval(requested, declared) == used


def test_a_run_says_in_words_how_its_limits_were_read() -> None:
    own = limits_said("expanded", "expanded")
    assert own == "95% limits: percentile bootstrap, expanded for few units"
    published = limits_said("percentile", "percentile")
    assert "as in the published protocol; interval=expanded" in published
    expanded = limits_said("expanded", "percentile")
    assert "interval=percentile gives those of the published protocol" in expanded


def test_only_the_published_benchmarks_declare_percentile_limits() -> None:
    assert load_benchmark("sample").interval == "expanded"
    # What Benchmark declares unless its loader says otherwise: own data, anyone's loader.
    fields = {field.name: field.default for field in dataclasses.fields(Benchmark)}
    assert fields["interval"] == "expanded"


def test_the_interval_is_chosen_in_an_audit_and_kept_in_the_manifest(tmp_path) -> None:  # type: ignore[no-untyped-def]
    import json

    import routeprism

    plain = routeprism.audit("sample", "recent:k=3", resamples=500)
    same = routeprism.audit("sample", "recent:k=3", resamples=500, interval="expanded")
    assert plain.rows == same.rows
    assert plain.limits == "95% limits: percentile bootstrap, expanded for few units"
    assert plain.limits in str(plain)
    studentised = routeprism.audit(
        "sample", "recent:k=3", resamples=500, interval="studentised", run=tmp_path / "run"
    )
    assert plain.value("J").estimate == studentised.value("J").estimate
    assert plain.value("J").upper != studentised.value("J").upper
    assert json.loads((tmp_path / "run/manifest.json").read_text())["configuration"][
        "interval"
    ] == ("studentised")
    with pytest.raises(SpecError, match="no interval 'bcs'"):
        routeprism.audit("sample", "recent:k=3", interval="bcs")
