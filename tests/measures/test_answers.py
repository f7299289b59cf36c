"""H, Δ, D_res and their kin: by hand, against their population values, and as published."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routeprism.measures import ANSWER_COORDINATES, Draws, Tally, residual, transition

VALUE = {coordinate.name: coordinate.value for coordinate in ANSWER_COORDINATES}


def draws(forward: Sequence[str], route: Sequence[str], gold: str = "a") -> Draws:
    return Draws(
        tuple(forward),
        tuple(route),
        tuple(symbol == gold for symbol in forward),
        tuple(symbol == gold for symbol in route),
    )


def test_a_small_matrix_by_hand() -> None:
    # Forward a a b, route b b a. Across: 9 pairs, equal where (a,a) twice and (b,b) twice → 5/9.
    pair = draws("aab", "bba")
    assert VALUE["H_cross"](pair) == pytest.approx(5 / 9)
    # Within each route 2 of 3 pairs differ.
    assert VALUE["H_within"](pair) == pytest.approx(2 / 3)
    assert VALUE["D_res"](pair) == pytest.approx(5 / 9 - 2 / 3)
    # p = (2/3, 1/3), q = (1/3, 2/3): ½ · 2 · (1/3)² = 1/9.
    assert VALUE["D_star"](pair) == pytest.approx(1 / 9)
    assert VALUE["Delta_rep"](pair) == pytest.approx(1 / 3 - 2 / 3)
    assert (VALUE["H"](pair), VALUE["Delta"](pair), VALUE["H_eq"](pair)) == (1, -1, 0)
    assert VALUE["accuracy.forward"](pair) == pytest.approx(2 / 3)
    assert transition(pair) == "CI"


def test_same_draw_disagreement_is_neither_the_formal_one_nor_all_pairs() -> None:
    """Appendix K.4, panel C: 0.109 over seven draws, where the formal answers give 0.084."""
    # Draw by draw: a–a, a–b, b–c agree once. The formal answers agree; 7 of 9 pairs differ.
    pair = draws("aab", "abc")
    assert VALUE["H_same"](pair) == pytest.approx(2 / 3)
    assert VALUE["H"](pair) == 0
    assert VALUE["H_cross"](pair) == pytest.approx(6 / 9)
    # Formal answers are right on both routes; over all draws forward is right in 2 of 3.
    assert VALUE["accuracy.forward.single"](pair) == VALUE["accuracy.route.single"](pair) == 1
    assert VALUE["accuracy.forward"](pair) == pytest.approx(2 / 3)
    single = VALUE["accuracy.route.single"](pair) - VALUE["accuracy.forward.single"](pair)
    assert VALUE["Delta"](pair) == single
    nothing = Draws((), (), (), ())
    assert VALUE["H_same"](nothing) is None
    assert VALUE["accuracy.forward.single"](nothing) is None


def test_four_symbols_and_two_draws_by_hand() -> None:
    pair = draws("ab", "cc", gold="c")
    assert VALUE["H_cross"](pair) == 1
    assert VALUE["H_within"](pair) == 0.5  # (1 + 0) / 2
    assert VALUE["D_res"](pair) == 0.5
    # p = (½, ½, 0), q = (0, 0, 1): ½ (¼ + ¼ + 1) = ¾.
    assert VALUE["D_star"](pair) == 0.75
    assert VALUE["D_correct"](pair) == 1
    assert VALUE["H_eq"](draws("a", "b", gold="c")) == 1


def test_one_draw_has_no_within_and_so_no_residual() -> None:
    pair = draws("a", "b")
    assert VALUE["H_within"](pair) is None
    assert VALUE["D_res"](pair) is None
    assert VALUE["D_correct"](pair) is None
    assert VALUE["H"](pair) == 1
    assert draws("ab", "ab").fresh() == draws("b", "b")


def test_free_text_has_verdicts_but_no_symbols() -> None:
    pair = Draws((), (), (True, False), (True, True))
    assert VALUE["H"](pair) is None
    assert VALUE["D_res"](pair) is None
    assert VALUE["Delta_rep"](pair) == 0.5
    assert VALUE["Delta"](pair) == 0


def test_without_a_known_answer_only_disagreement_remains() -> None:
    pair = Draws(("a",), ("b",), (), ())
    assert VALUE["H"](pair) == 1
    assert VALUE["Delta"](pair) is None
    assert transition(pair) is None


def test_refusals_are_answers_of_their_own() -> None:
    assert VALUE["H"](draws("a", "∅")) == 1
    assert VALUE["H"](Draws(("refused",), ("refused",), (False,), (False,))) == 0


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(1, 5), min_size=2, max_size=4),
    st.lists(st.integers(1, 5), min_size=2, max_size=4),
    st.integers(2, 3),
)
def test_the_residual_averages_to_the_population_distance(
    p: list[int], q: list[int], m: int
) -> None:
    """Exactly: sum over every outcome of 2m draws, weighted by its probability."""
    size = max(len(p), len(q))
    p, q = p + [0] * (size - len(p)), q + [0] * (size - len(q))
    forward_shares = [value / sum(p) for value in p]
    route_shares = [value / sum(q) for value in q]
    expected = 0.5 * sum((a - b) ** 2 for a, b in zip(forward_shares, route_shares, strict=True))
    mean = 0.0
    for forward in itertools.product(range(size), repeat=m):
        weight = 1.0
        for symbol in forward:
            weight *= forward_shares[symbol]
        if weight == 0:
            continue
        for route in itertools.product(range(size), repeat=m):
            chance = weight
            for symbol in route:
                chance *= route_shares[symbol]
            if chance:
                mean += chance * residual(forward, route)
    assert mean == pytest.approx(expected, abs=1e-9)


def test_the_residual_of_identical_prompts_averages_to_zero_over_seeds() -> None:
    # One distribution for both routes; the mean of 20,000 residuals has an sd near 0.003.
    total = 0.0
    for seed in range(20_000):
        draw = random.Random(seed)  # noqa: S311
        symbols = draw.choices("abcd", weights=(4, 3, 2, 1), k=6)
        total += residual(symbols[:3], symbols[3:])
    assert total / 20_000 == pytest.approx(0, abs=0.01)


@given(st.lists(st.sampled_from("abc"), min_size=2), st.lists(st.sampled_from("abc"), min_size=2))
def test_disagreement_is_symmetric_and_bounded(forward: list[str], route: list[str]) -> None:
    pair, swapped = draws(forward, route), draws(route, forward)
    for name in ("H_cross", "H_within", "D_star", "D_res"):
        assert VALUE[name](pair) == pytest.approx(VALUE[name](swapped))
    assert 0 <= VALUE["H_cross"](pair) <= 1
    assert -1 <= VALUE["D_res"](pair) <= 1
    assert 0 <= VALUE["D_star"](pair) <= 1


@pytest.mark.parametrize(
    ("counts", "published"),
    [((8, 2, 29, 24), 0.429), ((7, 2, 27, 27), 0.397)],
)
def test_published_transitions_give_the_published_change(
    counts: tuple[int, ...], published: float
) -> None:
    """Table `exact-transitions`: query-weighted Δ of 63 pairs (Appendix I.4)."""
    pairs = {"CC": ("a", "a"), "CI": ("a", "b"), "IC": ("b", "a"), "II": ("b", "b")}
    tally: Tally[str] = Tally("question")
    for (name, (forward, route)), number in zip(pairs.items(), counts, strict=True):
        pair = draws(forward, route)
        assert transition(pair) == name
        tally.append({"Delta": (number * VALUE["Delta"](pair), number)})
    estimate = tally.estimates(interval="percentile", seed=1, resamples=100)["Delta"]
    assert estimate.queries == 63
    assert estimate.value == pytest.approx(published, abs=0.0005)


def test_leave_one_out_by_hand() -> None:
    tally: Tally[str] = Tally("unit")
    for value in (0.0, 0.5, 1.0):
        tally.append({"H": (value, 1)})
    assert tally.leave_one_out("H") == (0.25, 0.75)
    weighted: Tally[str] = Tally("question")
    weighted.append({"H": (3.0, 3)})
    weighted.append({"H": (0.0, 1)})
    assert weighted.leave_one_out("H") == (0.0, 1.0)
    single: Tally[str] = Tally("unit")
    single.append({"H": (1.0, 1)})
    assert single.leave_one_out("H") is None


def test_differences_compare_groups_within_units_that_have_both() -> None:
    tally: Tally[str] = Tally("unit")
    tally.append({"changed": (2.0, 2), "kept": (0.0, 4)})  # 1 − 0
    tally.append({"changed": (0.0, 1), "kept": (1.0, 2)})  # 0 − ½
    tally.append({"changed": (1.0, 1)})  # only one group: left out
    difference = tally.difference("changed", "kept", interval="expanded", seed=1, resamples=100)
    assert (difference.value, difference.units, difference.queries) == (0.25, 2, 9)
    assert tally.difference("changed", "none", interval="expanded", seed=1) is None
