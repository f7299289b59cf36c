"""Limits of shares: known values, and coverage by simulation with fixed seeds."""

from __future__ import annotations

import numpy as np
import pytest

from routeprism.landscape import anytime_limits, explore, fixed_limits
from routeprism.policies import make_policy
from routeprism.records import load_benchmark


@pytest.mark.parametrize(
    ("count", "total", "lower", "upper"),
    [
        (0, 10, 0.0, 0.30850),  # Clopper and Pearson's table: 1 − 0.025^(1/10)
        (10, 10, 0.69150, 1.0),
        (5, 10, 0.18709, 0.81291),
        (1, 20, 0.00127, 0.24873),
        (81, 263, 0.25274, 0.36763),
    ],
)
def test_fixed_limits(count: int, total: int, lower: float, upper: float) -> None:
    assert fixed_limits(count, total) == pytest.approx((lower, upper), abs=5e-5)


def test_nothing_known_is_everything_possible() -> None:
    assert fixed_limits(0, 0) == anytime_limits(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize("share", [0.02, 0.2, 0.5, 0.9])
def test_fixed_limits_cover_at_a_fixed_number(share: float) -> None:
    # Exactly, by the binomial probabilities of 60 draws: never below 95%.
    from math import comb

    covered = sum(
        comb(60, count) * share**count * (1 - share) ** (60 - count)
        for count in range(61)
        if fixed_limits(count, 60)[0] <= share <= fixed_limits(count, 60)[1]
    )
    assert covered >= 0.95


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_anytime_limits_cover_at_every_look_at_once(share: float) -> None:
    """Of 200 sequences of 300 draws, looked at every ten, at most 1 in 20 ever exclude it."""
    generator = np.random.default_rng(7)
    draws = generator.random((200, 300)) < share
    missed = fixed = 0
    for row in draws.cumsum(axis=1):
        looks = [(int(row[at]), at + 1) for at in range(9, 300, 10)]
        missed += any(not _contains(share, anytime_limits(*look)) for look in looks)
        fixed += any(not _contains(share, fixed_limits(*look)) for look in looks)
    assert missed / 200 <= 0.05
    assert fixed / 200 > 0.10  # which is why stopping needs limits of another kind


def _contains(share: float, limits: tuple[float, float]) -> bool:
    return limits[0] <= share <= limits[1]


@pytest.mark.slow
def test_sampling_covers_what_enumeration_says() -> None:
    """120 seeds: nominal at a fixed number, at least nominal where drawing stopped early."""
    pool = next(case.pool for case in load_benchmark("sample").cases if len(case.pool) == 6)
    policy = make_policy("recent:k=2")
    truth = explore(policy, pool).changed.value
    support = frozenset({pool.ids[1]})
    exact_share = explore(policy, pool).share_keeping(support).value
    assert exact_share == pytest.approx(1 / 3)
    counts = {"fixed": 0, "kept": 0, "stopped": 0, "stopped, kept": 0}
    for seed in range(120):
        name = f"uniform:seed={seed}"
        fixed = explore(policy, pool, name, method="sampled", drawn_orders=60)
        assert (fixed.changed.lower, fixed.changed.upper) == fixed_limits(fixed.changed.count, 60)
        counts["fixed"] += _contains(truth, (fixed.changed.lower, fixed.changed.upper))  # type: ignore[arg-type]
        share = fixed.share_keeping(support)
        counts["kept"] += _contains(exact_share, (share.lower, share.upper))  # type: ignore[arg-type]
        stopped = explore(policy, pool, name, method="sampled", half_width=0.15, supports=[support])
        assert stopped.stopped
        share = stopped.changed
        assert share.upper - share.lower <= 0.3  # type: ignore[operator]
        counts["stopped"] += _contains(truth, (share.lower, share.upper))  # type: ignore[arg-type]
        share = stopped.share_keeping(support)
        assert share.upper - share.lower <= 0.3  # type: ignore[operator]
        counts["stopped, kept"] += _contains(exact_share, (share.lower, share.upper))  # type: ignore[arg-type]
    # 120 draws of a coverage of 95% are below 109 with a probability of 0.5%.
    assert all(number >= 109 for number in counts.values()), counts
