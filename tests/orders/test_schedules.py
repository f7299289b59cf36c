"""Schedules, against PROTOCOL §2."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routeprism.errors import SpecError
from routeprism.orders import FORWARD, SCHEDULES, parse_schedule


@pytest.mark.parametrize(
    ("name", "size", "order"),
    [
        ("forward", 4, (0, 1, 2, 3)),
        ("replay", 4, (3, 2, 1, 0)),
        ("half-swap", 4, (2, 3, 0, 1)),
        ("half-swap", 5, (2, 3, 4, 0, 1)),  # floor(n/2) split
        ("odd-even", 5, (0, 2, 4, 1, 3)),  # even positions first
        ("odd-even", 4, (0, 2, 1, 3)),
        ("explicit:order=2-0-1", 3, (2, 0, 1)),
    ],
)
def test_orders(name: str, size: int, order: tuple[int, ...]) -> None:
    assert parse_schedule(name).order(size) == order


@given(
    st.sampled_from(["forward", "replay", "half-swap", "odd-even", "random:seed=3"]),
    st.integers(1, 40),
    st.text(max_size=5),
)
def test_every_schedule_is_a_permutation(name: str, size: int, user: str) -> None:
    assert sorted(parse_schedule(name).order(size, user)) == list(range(size))


def test_random_orders_depend_on_seed_and_user_alone() -> None:
    first, same, second = (parse_schedule(f"random:seed={seed}") for seed in (1, 1, 2))
    assert first.order(9, "ann") == same.order(9, "ann") == (5, 4, 3, 0, 2, 1, 7, 6, 8)
    assert first.order(9, "ann") != first.order(9, "bob")
    assert first.order(9, "ann") != second.order(9, "ann")


def test_random_orders_are_uniform_enough() -> None:
    # 6 permutations of three, 1,200 users: each expected 200 times, sd 13.
    schedule = parse_schedule("random:seed=0")
    orders = [schedule.order(3, f"u{number}") for number in range(1200)]
    assert len(set(orders)) == 6
    assert all(140 < orders.count(order) < 260 for order in set(orders))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("repla", "Did you mean 'replay'?"),
        ("random", "Expected 'random:seed=N'"),
        ("replay:seed=1", "Expected 'replay'"),
        ("random:seed=x", "Expected a whole number but got 'x'"),
        ("explicit:order=a-b", "Expected a whole number but got 'a'"),
    ],
)
def test_wrong_names_are_explained(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message.replace("?", r"\?")):
        parse_schedule(text)


def test_an_explicit_order_of_another_size_is_refused() -> None:
    with pytest.raises(SpecError, match="not a permutation of the 4 positions"):
        parse_schedule("explicit:order=2-0-1").order(4, "ann")


def test_forward_is_listed_first() -> None:
    assert next(iter(SCHEDULES)) == FORWARD.name == "forward"
