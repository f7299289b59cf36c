"""Tests against zero and their adjustment, by hand and by simulation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from routeprism.measures import adjust_holm, flip_signs


def test_few_values_are_tested_against_every_combination_of_signs() -> None:
    # 1 + 2 + 3 = 6 is the largest of 8 sums; -6 is as extreme.
    assert flip_signs([1.0, 2.0, 3.0], seed=1) == 2 / 8
    assert flip_signs([1.0, 2.0, 3.0], seed=1, alternative="greater") == 1 / 8
    assert flip_signs([0.0, 0.0], seed=1) == 1.0


def test_the_listed_test_is_brute_force() -> None:
    values = [0.3, -0.1, 0.5, 0.2, -0.4]
    sums = [
        sum(s * v for s, v in zip(signs, values, strict=True))
        for signs in itertools.product((1, -1), repeat=len(values))
    ]
    expected = sum(abs(total) >= abs(sum(values)) - 1e-9 for total in sums) / len(sums)
    assert flip_signs(values, seed=1) == pytest.approx(expected)


def test_drawn_signs_never_give_zero_and_hold_their_level() -> None:
    generator = np.random.default_rng(3)
    assert 0 < flip_signs(np.ones(40), seed=1, flips=999) <= 0.001
    rejected = [
        flip_signs(generator.normal(size=30), seed=1, flips=999) <= 0.05 for _ in range(600)
    ]
    assert np.mean(rejected) == pytest.approx(0.05, abs=0.03)  # 0.05 ± 3.4 standard errors


def test_holm_by_hand() -> None:
    assert adjust_holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx(
        {"a": 0.03, "b": 0.06, "c": 0.06}
    )
    assert adjust_holm({}) == {}
