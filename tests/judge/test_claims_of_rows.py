"""When a number supports a claim: both sides of each threshold."""

from __future__ import annotations

from typing import Any

import pytest

from routeprism.judge import (
    count_unreadable,
    excludes_zero,
    is_at_floor,
    is_beyond_chance,
    is_claim_shown,
    is_small,
    limit_unseen,
)
from routeprism.runs import Rows

from .rows import make_group, make_row, make_rows


@pytest.mark.parametrize(
    ("lower", "upper", "excluded"),
    [
        (0.1, 0.2, True),
        (-0.2, -0.1, True),
        (-0.1, 0.1, False),
        (0.0, 0.1, False),
        (-0.1, 0.0, False),
        (None, -0.1, False),
        (0.1, None, False),
    ],
)
def test_an_interval_excludes_zero_if_it_is_on_one_side(
    lower: float | None, upper: float | None, excluded: bool
) -> None:
    assert excludes_zero(make_row("Delta_rep", (0.1, lower, upper))) is excluded


@pytest.mark.parametrize(
    ("quantity", "value", "adjusted", "holds"),
    [
        ("Delta_rep", (-0.2, -0.3, -0.1), None, True),
        ("Delta_rep", (-0.2, -0.3, -0.1), 0.049, True),
        ("Delta_rep", (-0.2, -0.3, -0.1), 0.05, False),  # the risk of any false claim
        ("Delta_rep", (-0.2, -0.3, 0.1), 0.001, False),
        ("D_res", (0.2, 0.1, 0.3), 0.001, True),
        ("D_build", (0.2, 0.1, 0.3), None, True),
        # They cannot be less than zero but by chance.
        ("D_res", (-0.2, -0.3, -0.1), 0.001, False),
        ("D_build", (-0.2, -0.3, -0.1), None, False),
        ("D_build", (0.0, 0.1, 0.3), None, False),
        ("D_build", (None, 0.1, 0.3), None, False),
        ("D_build", (0.4, 0.1, 0.5), None, True),
    ],
)
def test_a_claim_is_shown_by_its_interval_and_its_adjusted_p(
    quantity: str, value: Any, adjusted: float | None, holds: bool
) -> None:
    values = (
        {quantity: value} if adjusted is None else {quantity: value, f"p_holm.{quantity}": adjusted}
    )
    group = make_group(values)
    assert is_claim_shown(group[quantity], group) is holds


def test_a_claim_without_an_adjusted_p_was_not_tested() -> None:
    group = make_group({"Delta_rep": (-0.2, -0.3, -0.1), "p_holm.Delta_rep": None})
    assert is_claim_shown(group["Delta_rep"], group)


def test_builds_in_some_order_differ_beyond_chance() -> None:
    chance = make_rows({"D_build": (0.1, -0.1, 0.2)})
    order = make_rows({"D_build": (0.1, 0.05, 0.2)}, schedule="jitter")
    nothing = make_rows({"C_within": 0.3}, schedule="late-batch")
    assert not is_beyond_chance(Rows.of([*chance, *nothing]))
    assert is_beyond_chance(Rows.of([*chance, *order, *nothing]))


def test_a_flag_among_others_marks_the_floor() -> None:
    assert is_at_floor(make_row("accuracy.route", 0.0, flags="synthetic;floor"))
    assert not is_at_floor(make_row("accuracy.route", 0.0, flags="floored"))


@pytest.mark.parametrize(
    ("lower", "upper", "small"),
    [
        (-0.05, 0.05, True),  # the margin itself
        (-0.051, 0.01, False),
        (-0.01, 0.051, False),
        (0.01, 0.02, True),
        (None, 0.01, False),
        (-0.01, None, False),
    ],
)
def test_a_difference_is_small_if_its_whole_interval_is(
    lower: float | None, upper: float | None, small: bool
) -> None:
    assert is_small(make_row("Delta_rep", (0.0, lower, upper))) is small


@pytest.mark.parametrize(
    ("units", "limit"),
    # 1 - 0.05 ** (1 / units): 59 of the same kind are the first that exclude more than 5 %.
    [(0, 1.0), (1, 0.95), (2, 0.7764), (58, 0.0503), (59, 0.0495)],
)
def test_what_no_unit_showed_may_still_be_so_often(units: int, limit: float) -> None:
    assert limit_unseen(units) == pytest.approx(limit, abs=5e-5)


def test_answers_that_cannot_be_read_are_counted_of_all() -> None:
    """Eight questions, two draws, two fillers: 32 answers."""
    columns: dict[str, Any] = {"queries": 8, "draws": 2}
    row = make_row("count.no_answer.route", 3, filler="a+b", **columns)
    group = {row.quantity: row}
    assert count_unreadable(group.get, "route") == (3, 32)
    assert count_unreadable(group.get, "forward") == (0, 0)
    row = make_row("count.no_answer.forward", None, **columns)
    assert count_unreadable({row.quantity: row}.get, "forward") == (0, 16)
    row = make_row("count.no_answer.forward", 2, queries=None, draws=2)
    assert count_unreadable({row.quantity: row}.get, "forward") == (2, 0)
    row = make_row("count.no_answer.forward", 2, queries=8)
    assert count_unreadable({row.quantity: row}.get, "forward") == (2, 0)
