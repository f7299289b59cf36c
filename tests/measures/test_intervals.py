"""Limits by the four methods, against a library and a plain loop; and when they are doubted."""

import dataclasses

import numpy as np
import pytest

from routeprism.errors import SpecError
from routeprism.measures import Interval, Tally, chosen_interval, limits_said
from routeprism.measures._intervals import bootstrap_counts, limits
from routeprism.records import Benchmark, load_benchmark

pytestmark = pytest.mark.usefixtures("only_reversal")

SKEWED = np.random.default_rng(3).exponential(size=25) ** 1.5


def one_row(values: np.ndarray, **settings: object) -> tuple[float, float]:
    lower, upper = limits(values[None, :], np.ones((1, len(values))), seed=5, **settings)
    return float(lower[0]), float(upper[0])


def test_bca_agrees_with_scipy_on_skewed_values() -> None:
    from scipy.stats import bootstrap

    peer = bootstrap(
        (SKEWED,), np.mean, method="BCa", n_resamples=60_000, rng=np.random.default_rng(1)
    ).confidence_interval
    ours = one_row(SKEWED, resamples=60_000, interval="bca")
    width = peer.high - peer.low
    assert ours == pytest.approx((peer.low, peer.high), abs=0.02 * width)
    plain = one_row(SKEWED, resamples=60_000, interval="percentile")
    assert abs(plain[1] - peer.high) > 0.05 * width  # the correction is more than the tolerance


def test_studentised_limits_equal_a_plain_loop() -> None:
    above, below = SKEWED, np.arange(1.0, 26.0)
    drawn = bootstrap_counts(25, 400, np.random.default_rng([5, 25]))
    theta = above.sum() / below.sum()
    moved = []
    for counts in drawn:
        ratio = (counts @ above) / (counts @ below)
        error = np.sqrt(counts @ (above - ratio * below) ** 2) / (counts @ below)
        moved.append((ratio - theta) / error)
    error = np.sqrt(((above - theta * below) ** 2).sum()) / below.sum()
    ordered = sorted(moved)
    lower, upper = limits(
        above[None, :], below[None, :], seed=5, resamples=400, interval="studentised"
    )
    assert float(lower[0]) == pytest.approx(theta - ordered[390] * error)
    assert float(upper[0]) == pytest.approx(theta - ordered[10] * error)


@pytest.mark.parametrize("interval", ["percentile", "expanded", "bca", "studentised"])
def test_equal_units_and_rounding_noise_do_not_blow_up(interval: str) -> None:
    assert one_row(np.full(12, 0.3), resamples=500, interval=interval) == pytest.approx((0.3, 0.3))
    noisy = np.array([0.0] * 8 + [5e-17] * 8 + [1.0, 0.5, 0.0, 0.0])
    lower, upper = one_row(noisy, resamples=500, interval=interval)
    assert -2 < lower <= 0.075 <= upper < 2


def test_expanded_limits_are_percentiles_further_out() -> None:
    # 25 units: √(25/24) · t(24; 97.5%) = 2.1066, and Φ(−2.1066) = 0.01758.
    drawn = bootstrap_counts(25, 10_000, np.random.default_rng([5, 25]))
    means = np.sort(drawn @ SKEWED / 25)
    found = one_row(SKEWED, resamples=10_000, interval="expanded")
    assert found == pytest.approx((means[175], means[9824]), rel=0.01)


def test_question_weighted_bca_leaves_whole_units_out() -> None:
    above, below = np.array([[3.0, 0.0, 8.0, 2.0]]), np.array([[4.0, 2.0, 8.0, 3.0]])
    lower, upper = limits(above, below, seed=1, resamples=2_000, interval="bca")
    assert lower[0] < 13 / 17 < upper[0]


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
    ("asked", "declared", "used"),
    [
        (None, "expanded", "expanded"),
        (None, "percentile", "percentile"),
        ("expanded", "percentile", "expanded"),
        ("bca", "expanded", "bca"),
    ],
)
def test_the_benchmark_declares_and_the_user_decides(
    asked: str | None, declared: str, used: str
) -> None:
    assert chosen_interval(asked, declared) == used


def test_a_run_says_in_words_how_its_limits_were_read() -> None:
    own = limits_said("expanded", "expanded")
    assert own == "95% limits: percentile bootstrap, expanded for few units"
    published = limits_said("percentile", "percentile")
    assert "as in the published protocol; --interval expanded" in published
    other = limits_said("expanded", "percentile")
    assert "--interval percentile gives those of the published protocol" in other


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
    other = routeprism.audit(
        "sample", "recent:k=3", resamples=500, interval="studentised", run=tmp_path / "run"
    )
    assert plain.value("J").estimate == other.value("J").estimate
    assert plain.value("J").upper != other.value("J").upper
    assert json.loads((tmp_path / "run/manifest.json").read_text())["configuration"][
        "interval"
    ] == ("studentised")
    with pytest.raises(SpecError, match="no interval 'bcs'"):
        routeprism.audit("sample", "recent:k=3", interval="bcs")
