"""Arrival models: exactly the sequences they promise, each equally likely, however they are had."""

from __future__ import annotations

import hashlib
import itertools
import math
import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from statistics import fmean, stdev
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routeprism.errors import SpecError
from routeprism.orders import (
    ARRIVALS,
    Arrivals,
    Order,
    draw_jittered,
    draw_late_copies,
    mixed_extension,
    mixed_jitter,
    mixed_redelivery,
    parse_arrival,
    parse_schedule,
)
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


def list_law(draw: Callable[[random.Random], Order]) -> dict[Order, float]:
    """Follow every choice of a draw, and return each order with its probability."""

    class Scripted(random.Random):
        """Makes given choices first, then the first one of all, and notes the alternatives."""

        def __init__(self, script: tuple[int, ...]) -> None:
            super().__init__()
            self.script, self.taken, self.weight = script, 0, 1.0
            self.alternatives: list[tuple[int, ...]] = []

        def choices(self, population: Any, weights: Any = None, **_: Any) -> list[Any]:  # type: ignore[override]
            at = self.script[self.taken] if self.taken < len(self.script) else 0
            if self.taken >= len(self.script):
                choices = range(1, len(population))
                self.alternatives += [(*self.script, at) for at in choices if weights[at]]
                self.script = (*self.script, 0)
            self.taken += 1
            self.weight *= weights[at] / sum(weights)
            return [population[at]]

    law: dict[Order, float] = Counter()  # type: ignore[assignment]
    waiting: list[tuple[int, ...]] = [()]
    while waiting:
        generator = Scripted(waiting.pop())
        order = draw(generator)
        waiting += generator.alternatives
        law[order] += generator.weight
    return {order: weight for order, weight in law.items() if weight}


@pytest.mark.parametrize(("size", "width"), [(5, 1), (6, 2), (6, 3), (5, 4)])
def test_windows_draw_every_jittered_order_with_the_same_probability(size: int, width: int) -> None:
    orders = list_orders(f"jitter:w={width}", size)
    law = list_law(lambda generator: draw_jittered(size, width, generator))
    assert set(law) == set(orders)
    assert all(weight == pytest.approx(1 / len(orders), rel=1e-12) for weight in law.values())


@pytest.mark.parametrize(
    "spec",
    [
        "jitter:w=50",
        "partial:before=0-2+1-2+1900-7-1901",
        *(
            pytest.param(spec, marks=pytest.mark.slow)
            for spec in ("jitter:w=5", "redeliver:copies=500", "redeliver:copies=200,within=3")
        ),
    ],
)
def test_long_histories_are_drawn_from_whatever_the_parameters(spec: str) -> None:
    """The length of the longest public history; every one of these was refused or did not end."""
    size = 1_927
    arrivals = parse_arrival(spec).bound(size, "ann", None)
    order = arrivals.sample()
    assert order == parse_arrival(spec).bound(size, "ann", None).sample() != arrivals.sample(1)
    name, _, text = spec.partition(":")
    numbers = {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)(?=,|$)", text)}
    if name == "jitter":
        assert sorted(order) == list(range(size))
        assert max(abs(place - position) for place, position in enumerate(order)) == numbers["w"]
    elif name == "partial":
        assert sorted(order) == list(range(size))
        places = {position: place for place, position in enumerate(order)}
        assert places[2] > max(places[0], places[1])
        assert places[1900] < places[7] < places[1901]
    else:
        firsts = list(dict.fromkeys(order))
        assert firsts == list(range(size))
        assert max(Counter(order).values()) == 2
        assert len(order) == size + numbers["copies"]
        seconds = {p: place for place, p in enumerate(order)}
        reached = list(itertools.accumulate(order, max))
        late = max(reached[place] - p for p, place in seconds.items())
        assert late <= numbers.get("within", size)


def test_a_long_jitter_takes_one_choice_for_each_record() -> None:
    class Counting(random.Random):
        number = 0

        def choices(self, *values: Any, **options: Any) -> list[Any]:  # type: ignore[override]
            self.number += 1
            return super().choices(*values, **options)

    generator = Counting(4)
    draw_jittered(1_927, 5, generator)
    assert generator.number == 1_927


@pytest.mark.parametrize(
    ("name", "draw"),
    [
        ("partial:before=0-2+1-3+2-3", lambda g: mixed_extension((0, 0, 1, 6), g)),
        pytest.param("jitter:w=2", lambda g: mixed_jitter(4, 2, g), marks=pytest.mark.slow),
        ("redeliver:copies=2,within=1", lambda g: mixed_redelivery(4, 2, 1, g)),
        ("redeliver:copies=4,within=1", lambda g: mixed_redelivery(4, 4, 1, g)),
        ("redeliver:copies=3", lambda g: draw_late_copies(4, 3, g)),
    ],
)
def test_other_ways_to_draw_are_near_uniform(
    name: str, draw: Callable[[random.Random], Order]
) -> None:
    orders = list_orders(name, 4)
    generator = random.Random(6)  # noqa: S311
    counts = Counter(draw(generator) for _ in range(50 * len(orders)))
    assert set(counts) == set(orders)
    statistic = sum((counts[order] - 50) ** 2 / 50 for order in orders)
    free = len(orders) - 1
    assert statistic < free + 4 * math.sqrt(2 * free)


@pytest.mark.slow
def test_the_chain_of_wide_jitters_agrees_with_the_exact_draw() -> None:
    def measure(draw: Callable[[int, int, random.Random], Order]) -> list[float]:
        distances = []
        for seed in range(150):
            order = draw(200, 8, random.Random(seed))  # noqa: S311
            distances.append(sum(abs(p - at) for at, p in enumerate(order)) / 200)
        return distances

    exact, mixed = measure(draw_jittered), measure(mixed_jitter)
    error = math.hypot(stdev(exact), stdev(mixed)) / math.sqrt(150)
    assert abs(fmean(exact) - fmean(mixed)) < 3 * error < 0.1


ORDER_DIGESTS = {
    "jitter:w=1": "ba9276d1e75aeafd",
    "jitter:w=5": "963daa085a8f4454",
    "redeliver:copies=8": "ce46f194970b5bd0",
    "redeliver:copies=5,within=1": "0f8fe5502ed6acd8",
    "partial:before=0-2-4+1-3-5": "e2a1a2f6cac39035",
}


@pytest.mark.parametrize(("spec", "digest"), ORDER_DIGESTS.items())
def test_the_orders_of_small_pools_stay_the_same(spec: str, digest: str) -> None:
    """Results are published with the orders that a seed draws: digests of version 0.1."""
    arrivals = parse_arrival(spec).bound(9, "ann", None)
    text = repr([arrivals.sample(index) for index in range(20)])
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == digest


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
