"""Expectations over arrival models, against hand counts and brute force."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from statistics import mean

import pytest

import routeprism
from routeprism.experiments import DRAWN_ORDERS
from routeprism.orders import parse_arrival
from routeprism.policies import make_policy, parse_interface
from routeprism.records import Record

OwnData = Callable[..., Path]


def write_pool(own_data: OwnData, size: int, support: list[str] | None = None) -> Path:
    records = [{"user": "a", "id": f"r{n}", "text": f"note {n} on parcel {n}"} for n in range(size)]
    question = {"user": "a", "id": "q", "text": "Where is the parcel?"}
    return own_data(records, [question | ({"support": support} if support else {})])


def overlap(first: frozenset[str], second: frozenset[str]) -> float:
    return len(first & second) / len(first | second)


@pytest.mark.parametrize("policy", ["recent:k=2", "focal"])
def test_few_orders_are_all_built(own_data: OwnData, policy: str) -> None:
    """Four records have 24 orders, so the expectation is exact: brute force gives the same."""
    data = write_pool(own_data, 4)
    audit = routeprism.audit(data, policy, arrivals=["uniform"], interface="all")
    pool = [Record(f"r{n}", n, f"note {n} on parcel {n}") for n in range(4)]
    built = make_policy(policy, parse_interface("all"))
    forward = built.build(pool).expose("Where is the parcel?").sources
    expected = mean(
        overlap(forward, built.build(order).expose("Where is the parcel?").sources)
        for order in itertools.permutations(pool)
    )
    assert audit.value("J", schedule="uniform").estimate == pytest.approx(expected)
    assert not any("drawn ones" in note for note in audit.notes)


def test_evidence_is_lost_as_often_as_counted_by_hand(own_data: OwnData) -> None:
    """A window of one keeps the last of three records; in 4 of 6 orders it is not r2."""
    data = write_pool(own_data, 3, ["r2"])
    audit = routeprism.audit(data, "recent:k=1", arrivals=["uniform"], interface="all")
    assert audit.value("evidence_lost", schedule="uniform").estimate == pytest.approx(4 / 6)
    assert audit.value("kept.route", schedule="uniform").estimate == pytest.approx(1 / 3)


def test_many_orders_are_drawn_and_the_output_says_so(own_data: OwnData) -> None:
    data = write_pool(own_data, 9)
    audit = routeprism.audit(data, "recent:k=2", arrivals=["uniform"], interface="all")
    assert DRAWN_ORDERS == 16
    assert any("and 1 of 1 pools in 16 drawn ones" in note for note in audit.notes)
    pool = routeprism.load_benchmark(str(data)).cases[0].pool
    arrivals = parse_arrival("uniform").on(pool)
    orders = [arrivals.sample(index) for index in range(DRAWN_ORDERS)]
    # The forward order keeps r7 and r8.
    expected = mean(
        overlap(frozenset({"r7", "r8"}), frozenset(f"r{place}" for place in order[-2:]))
        for order in orders
    )
    assert audit.value("J", schedule="uniform").estimate == pytest.approx(expected)


def test_plausible_arrivals_and_reversal_are_the_default(own_data: OwnData) -> None:
    data = write_pool(own_data, 3)
    audit = routeprism.audit(data, "recent:k=1")
    assert audit.rows.where(quantity="J").values("schedule") == (
        *("jitter:w=2", "late-batch", "replay"),
    )
    result = routeprism.audit(data, "recent:k=1", schedules=["odd-even"])
    assert result.rows.where(quantity="J").values("schedule") == ("odd-even",)


def test_named_arrival_models_are_answered_on_one_drawn_order(own_data: OwnData) -> None:
    data = write_pool(own_data, 3)
    audit = routeprism.audit(data, "recent:k=1", arrivals=["jitter:w=1"], models=["reader"])
    rows = [row for row in audit.rows if row.model]
    assert {row.schedule for row in rows} == {"jitter:w=1,seed=0"}
