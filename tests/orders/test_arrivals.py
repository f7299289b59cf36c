"""Arrival models: exactly the sequences they promise, each equally likely, however they are had."""

from __future__ import annotations

import itertools
import math
import os
import random
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routeprism.errors import SpecError
from routeprism.orders import ARRIVALS, Arrivals, mixed_extension, parse_arrival, parse_schedule
from routeprism.records import Pool, Record

MODELS = [
    "uniform",
    "jitter:w=1",
    "jitter:w=2",
    "jitter:w=9",
    "late-batch",
    "late-batch:length=2",
    "late-batch:length=2,delay=1",
    "interleave:k=2",
    "interleave:k=3,split=turns",
    "redeliver",
    "redeliver:copies=2,within=1",
    "partial:before=0-2+1-2+3-1",
    "replay",
    "random:seed=4",
]


def list_orders(name: str, size: int) -> list[tuple[int, ...]]:
    weighted_orders = parse_arrival(name).orders(size)
    assert weighted_orders is not None
    return [order for order, weight in weighted_orders for _ in range(weight)]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("size", [1, 2, 5])
def test_orders_are_listed_once_and_counted(name: str, size: int) -> None:
    orders = list_orders(name, size)
    arrivals = parse_arrival(name).bound(size, "", None)
    assert len(set(orders)) == len(orders) == arrivals.count()
    assert all(set(order) == set(range(size)) for order in orders)


def permutations(size: int) -> set[tuple[int, ...]]:
    return set(itertools.permutations(range(size)))


def test_uniform_is_every_permutation() -> None:
    assert set(list_orders("uniform", 5)) == permutations(5)


@pytest.mark.parametrize("width", [0, 1, 2, 3, 5])
def test_jitter_is_every_permutation_within_its_bound(width: int) -> None:
    within = {
        order
        for order in permutations(6)
        if all(abs(place - position) <= width for place, position in enumerate(order))
    }
    assert set(list_orders(f"jitter:w={width}", 6)) == within


def test_late_batches_are_every_block_exchange() -> None:
    # Exchanging two neighbouring runs: choose three of the n + 1 gaps.
    orders = list_orders("late-batch", 6)
    assert len(orders) == math.comb(7, 3)
    assert tuple(range(6)) not in orders
    assert list_orders("late-batch:length=2,delay=3", 6) == [(0, 3, 4, 5, 1, 2), (2, 3, 4, 0, 1, 5)]
    assert list_orders("late-batch:length=4", 4) == [(0, 1, 2, 3)]  # no room to be late


@pytest.mark.parametrize(
    ("name", "streams"),
    [
        ("interleave:k=2", [(0, 1, 2), (3, 4, 5)]),
        ("interleave:k=3,split=turns", [(0, 3), (1, 4), (2, 5)]),
    ],
)
def test_interleaving_keeps_each_stream_in_order(name: str, streams: list[tuple[int, ...]]) -> None:
    expected = {
        order
        for order in permutations(6)
        if all(tuple(p for p in order if p in stream) == stream for stream in streams)
    }
    assert set(list_orders(name, 6)) == expected


def test_redelivery_copies_within_its_bound() -> None:
    def allowed(copies: int, within: int) -> set[tuple[int, ...]]:
        orders = set()
        for order in itertools.product(range(4), repeat=4 + copies):
            counts = Counter(order)
            firsts = tuple(dict.fromkeys(order))
            if firsts != (0, 1, 2, 3) or max(counts.values()) > 2:
                continue
            gaps = [
                len(set(firsts[p + 1 :]) & set(order[: _second(order, p)]))
                for p, count in counts.items()
                if count == 2
            ]
            if all(gap <= within for gap in gaps):
                orders.add(order)
        return orders

    assert set(list_orders("redeliver", 4)) == allowed(1, 4)
    assert set(list_orders("redeliver:copies=2,within=1", 4)) == allowed(2, 1)
    assert parse_arrival("redeliver").redelivers
    assert set(list_orders("redeliver:copies=9", 2)) == {
        (0, 0, 1, 1),
        (0, 1, 0, 1),
        (0, 1, 1, 0),
    }


def _second(order: tuple[int, ...], position: int) -> int:
    return len(order) - 1 - order[::-1].index(position)


@settings(max_examples=60)
@given(st.sampled_from(MODELS), st.integers(1, 7), st.integers(0, 50))
def test_what_is_drawn_is_one_of_the_orders(name: str, size: int, index: int) -> None:
    arrivals = parse_arrival(name).bound(size, "ann", None)
    assert arrivals.sample(index) in {order for order, _ in arrivals.orders() or ()}


@pytest.mark.parametrize(
    "name",
    [
        "uniform",
        "jitter:w=1",
        "interleave:k=2",
        "late-batch",
        "redeliver",
        "redeliver:copies=2,within=1",
        "partial:before=0-3",
    ],
)
def test_draws_are_uniform(name: str) -> None:
    # Chi-squared against its mean and standard deviation: k − 1 and √(2(k − 1)).
    orders = list_orders(name, 4)
    model = parse_arrival(name)
    number = 100 * len(orders)
    counts = Counter(model.sample(4, index) for index in range(number))
    assert set(counts) == set(orders)
    statistic = sum((counts[order] - 100) ** 2 / 100 for order in orders)
    free = len(orders) - 1
    assert statistic < free + 4 * math.sqrt(2 * free)


def extensions_of(before: tuple[int, ...]) -> Arrivals:
    """Let record q arrive after every record p whose bit is set in `before[q]`."""
    pairs = [f"{p}-{q}" for q, needed in enumerate(before) for p in range(q) if needed >> p & 1]
    return parse_arrival(f"partial:before={'+'.join(pairs)}").on(timed(*[None] * len(before)))


@pytest.mark.parametrize("before", [(0, 0, 1, 6), (0, 0, 0, 3, 6), (0, 1, 1, 7, 0)])
def test_linear_extensions_are_exactly_uniform(
    before: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every extension is drawn by exactly one of the counted numbers: uniform, not nearly so."""
    arrivals = extensions_of(before)
    orders = [order for order, _ in arrivals.orders() or ()]
    extensions = {
        order
        for order in permutations(len(before))
        if all(
            order.index(p) < order.index(q)
            for q, needed in enumerate(before)
            for p in range(len(before))
            if needed >> p & 1
        )
    }
    assert set(orders) == extensions
    assert arrivals.count() == len(extensions)

    class Consecutive(random.Random):
        """Gives the numbers below the count, one after the other."""

        number = -1

        def randrange(self, stop: int) -> int:  # type: ignore[override]
            assert stop == len(extensions)
            Consecutive.number += 1
            return Consecutive.number

    monkeypatch.setattr(random, "Random", Consecutive)
    samples = [arrivals.sample(index) for index in range(len(extensions))]
    assert sorted(samples) == sorted(extensions)


def test_the_chain_for_large_orders_is_near_uniform() -> None:
    before = (0, 0, 1, 6)  # 0 < 2, 1 < 3, 2 < 3
    orders = [order for order, _ in extensions_of(before).orders() or ()]
    generator = random.Random(5)  # noqa: S311
    counts = Counter(mixed_extension(before, generator) for _ in range(200 * len(orders)))
    assert set(counts) == set(orders)
    statistic = sum((counts[order] - 200) ** 2 / 200 for order in orders)
    free = len(orders) - 1
    assert statistic < free + 4 * math.sqrt(2 * free)


def timed(*stamps: str | None) -> Pool:
    records = [Record(f"r{at}", at, "some text", stamp) for at, stamp in enumerate(stamps)]
    return Pool("ann", tuple(records))


def test_timestamps_with_ties_and_without() -> None:
    pool = timed("2024-01-02", "2024-01-01T10:00", "2024-01-01T11:00", None)
    exact = parse_arrival("timestamps").on(pool)
    days = parse_arrival("timestamps:precision=day").on(pool)
    assert {order for order, _ in exact.orders() or ()} == {
        order for order in permutations(4) if order.index(1) < order.index(2) < order.index(0)
    }
    assert exact.count() == 4
    assert {order for order, _ in days.orders() or ()} == {
        order for order in permutations(4) if max(order.index(1), order.index(2)) < order.index(0)
    }
    assert days.count() == 8
    counts = Counter(days.sample(index) for index in range(800))
    assert len(counts) == 8
    assert sum((number - 100) ** 2 / 100 for number in counts.values()) < 7 + 4 * math.sqrt(14)
    assert parse_schedule("timestamps:precision=day,seed=3").on(pool) in counts


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("1:56 pm on 8 May, 2023", "2023-05-08T13:57:00"),
        ("2023/05/20 (Sat) 02:21", "2023-05-20T02:21:30Z"),
        ("1700000000", "2023-11-14T22:13:21"),
    ],
)
def test_times_are_read_as_benchmarks_write_them(earlier: str, later: str) -> None:
    arrivals = parse_arrival("timestamps").on(timed(later, earlier))
    assert [order for order, _ in arrivals.orders() or ()] == [(1, 0)]


def test_models_that_need_times_say_so() -> None:
    with pytest.raises(SpecError, match="reads the records' timestamps: it needs the pool"):
        parse_arrival("timestamps").sample(3)
    with pytest.raises(SpecError, match=r"Expected a time such as .*='soon' of record 'r0'"):
        parse_arrival("timestamps").on(timed("soon"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("jiter", "There is no schedule 'jiter'. Did you mean 'jitter'?"),
        ("jitter:width=2", "'jitter' has no parameter 'width'"),
        ("jitter:w=-1", "Expected w of 0 or more but got w=-1"),
        ("interleave:split=half", "Expected one of blocks, turns but got split=half"),
        ("partial", "Expected 'partial:before=0-2\\+1-2'"),
        ("redeliver:copies=0", "Expected copies of 1 or more"),
    ],
)
def test_wrong_names_are_told_apart(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        parse_arrival(text)


def test_a_circle_is_refused() -> None:
    with pytest.raises(SpecError, match="goes in a circle"):
        parse_arrival("partial:before=0-1+1-0").sample(3)


def test_one_order_of_a_model_is_a_schedule() -> None:
    model = parse_arrival("jitter:w=2,seed=3")
    schedule = parse_schedule("jitter:w=2,seed=3")
    assert schedule.order(9, "ann") == model.sample(9, 0, "ann")
    assert schedule.order(9, "ann") != parse_schedule("jitter:w=2,seed=4").order(9, "ann")
    schedule = parse_schedule("redeliver:copies=2,seed=1")
    assert schedule.redelivers
    assert len(schedule.order(5)) == 7


@pytest.mark.slow
def test_long_pools_are_drawn_from_without_listing() -> None:
    for name in ("uniform", "jitter:w=3", "late-batch", "interleave:k=4", "redeliver:copies=2"):
        model = parse_arrival(name)
        assert model.orders(60, limit=1000) is None
        assert set(model.sample(60)) == set(range(60))
    with pytest.raises(SpecError, match="too many to draw from uniformly"):
        parse_arrival("jitter:w=12").sample(60)


def test_every_model_is_documented_with_a_name_that_can_be_parsed() -> None:
    for text in ARRIVALS:
        name = text.replace("|turns", "").replace("W", "2")
        parse_arrival(name.replace("|minute|hour|day|month", ""))


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_draws_do_not_depend_on_the_hash_seed(hash_seed: str) -> None:
    program = (
        "from routeprism.orders import parse_arrival as p;"
        "print([p(n).sample(8, 3, 'ann') for n in ('uniform', 'jitter:w=2', 'redeliver:copies=2')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    names = ("uniform", "jitter:w=2", "redeliver:copies=2")
    assert done.stdout.strip() == str([parse_arrival(n).sample(8, 3, "ann") for n in names])
