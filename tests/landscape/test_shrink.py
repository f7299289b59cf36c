"""Smallest reorderings and worst orders, against exhaustive checks."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routeprism.landscape import (
    Move,
    OrderBuilds,
    Predicate,
    Reordering,
    RetainedValue,
    describe_reordering,
    explore,
    find_moves,
    inversions,
    merge_states,
    shrink,
    shrink_all,
    worst_order,
)
from routeprism.orders import Order, parse_arrival
from routeprism.policies import Incremental, Memory, Policy, make_policy, parse_interface
from routeprism.policies.own import OwnMemory
from routeprism.records import Case, Pool, Record, load_benchmark

from ..doubles import LastThree

CASES = load_benchmark("sample").cases


def apply_moves(moves: Sequence[Move], size: int) -> Order:
    """Carry moves out on source order."""
    order = list(range(size))
    for move in moves:
        order.remove(move.record)
        order.insert(0 if move.after is None else order.index(move.after) + 1, move.record)
    return tuple(order)


@given(st.integers(0, 9).flatmap(lambda size: st.permutations(range(size))))
def test_moves_make_the_order_and_are_the_fewest(order: list[int]) -> None:
    moves = find_moves(tuple(order))
    assert apply_moves(moves, len(order)) == tuple(order)
    longest = (
        max(
            (
                length
                for length in range(len(order) + 1)
                for combination in itertools.combinations(order, length)
                if list(combination) == sorted(combination)
            ),
            default=0,
        )
        if len(order) <= 7
        else len(order) - len(moves)
    )
    assert len(moves) == len(order) - longest


def test_a_reordering_names_records_by_id_and_text() -> None:
    texts = ["tea", "rain\nin May", "oak", "x" * 49, "ash"]
    pool = Pool("ann", tuple(Record(f"n{at}", at, text) for at, text in enumerate(texts)))
    tea, rain, oak, ash = "'n0' (“tea”)", "'n1' (“rain in May”)", "'n2' (“oak”)", "'n4' (“ash”)"
    cut = f"'n3' (“{'x' * 47}…”)"  # 48 characters with the ellipsis
    for order, words in {
        (0, 2, 3, 1, 4): f"move {rain} after {cut}",
        (2, 0, 1, 3, 4): f"move {oak} to the front",
        (1, 0, 3, 2, 4): f"move {tea} after {rain}, then {oak} after {cut}",
        (0, 1, 2, 3, 4): "change nothing",
        (0, 1, 2, 1, 3, 0, 4): f"deliver again {tea}, {rain}",
        (4, 3, 1, 2, 0): f"move {ash} to the front, then {cut} after 'n4', then {tea} after {oak}",
    }.items():
        assert describe_reordering(order, pool) == words
    assert describe_reordering((4, 3, 2, 1, 0), pool, most=3) == "reverse all 5 records"
    assert describe_reordering((4, 3, 1, 2, 0), pool, most=1) == (
        f"move {ash} to the front, then 2 further records"
    )


def outcome(policy: Policy, pool: Pool, order: Order, predicate: Predicate) -> Hashable:
    return predicate(policy.build(tuple(pool.records[position] for position in order)))


def assert_one_minimal(
    result: Reordering, policy: Policy, pool: Pool, predicate: Predicate
) -> None:
    """The outcome is another one, and undoing any adjacent exchange makes it forward's again."""
    source = outcome(policy, pool, tuple(range(len(pool))), predicate)
    assert result.forward == source
    assert outcome(policy, pool, result.order, predicate) == result.outcome != source
    assert result.inversions == inversions(result.order)
    assert apply_moves(result.moves, len(pool)) == result.order
    for at in range(len(pool) - 1):
        first, second = result.order[at : at + 2]
        if first > second:
            undone = (*result.order[:at], second, first, *result.order[at + 2 :])
            assert outcome(policy, pool, undone, predicate) == source


def keeps(support: frozenset[str]) -> Predicate:
    return lambda memory: bool(memory.retained() & support)


def supports(case: Case, labels: str) -> list[frozenset[str]]:
    return list(dict.fromkeys(q.labels[labels] for q in case.questions if q.labels.get(labels)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["focal", "recent:k=2", "focal:cluster=source", "utility:k=2"])
def test_no_order_with_fewer_inversions_does_it(name: str) -> None:
    """Every pool of the sample, by building every order that has fewer; all, if none is found."""
    policy = make_policy(name, parse_interface("all"))  # what is retained is before the interface
    assert isinstance(policy, Incremental)
    for case in CASES:
        expected = supports(case, "benchmark")
        reorderings = shrink_all(policy, case.pool, [keeps(support) for support in expected])
        fewer = max(
            reordering.inversions if reordering.found else math.inf for reordering in reorderings
        )
        every = list(orders_below(policy, case.pool, fewer))
        assert every[0][0] == 0
        source = every[0][1]
        for support, reordering in zip(expected, reorderings, strict=True):
            changing = [
                crossed
                for crossed, content in every
                if bool(content & support) != bool(source & support)
            ]
            assert reordering.exact
            if reordering.found:
                assert reordering.inversions <= min(changing, default=math.inf)
                assert_one_minimal(reordering, policy, case.pool, keeps(support))
            else:
                assert len(every) == math.factorial(len(case.pool))
                assert not changing
                assert reordering.order == tuple(range(len(case.pool)))


def orders_below(
    policy: Incremental[Any], pool: Pool, fewer: float
) -> Iterator[tuple[int, frozenset[str]]]:
    """Give the inversions and the retained set of each order with fewer inversions, unmerged."""

    def further(
        state: Any, left: tuple[Record, ...], crossed: int
    ) -> Iterator[tuple[int, frozenset[str]]]:
        if not left:
            yield crossed, policy.finish(state).retained()
        for at, record in enumerate(left):  # it overtakes all that stand before it
            if crossed + at < fewer:
                yield from further(
                    policy.step(state, record), (*left[:at], *left[at + 1 :]), crossed + at
                )

    return further(policy.start(), pool.records, 0)


def test_orders_below_a_number_of_inversions_are_all_of_them() -> None:
    policy = make_policy("raw")
    assert isinstance(policy, Incremental)
    for size, fewer in ((4, 3), (5, 11), (5, math.inf)):
        counted = Counter(crossed for crossed, _ in orders_below(policy, long_pool(size), fewer))
        every = Counter(map(inversions, itertools.permutations(range(size))))
        assert counted == {crossed: n for crossed, n in every.items() if crossed < fewer}


@pytest.mark.realdata
def test_every_personamem_pair_has_a_one_minimal_reordering(data: Path) -> None:
    """Focal, reference-session labels: every support set of every pool."""
    focal = make_policy("focal")
    shrunk = 0
    for case in load_benchmark("personamem", data).cases:
        expected = supports(case, "reference-session")
        reorderings = shrink_all(focal, case.pool, [keeps(support) for support in expected])
        for support, item in zip(expected, reorderings, strict=True):
            assert item.found and item.exact
            assert_one_minimal(item, focal, case.pool, keeps(support))
            shrunk += 1
    assert shrunk > 100


OWN = OwnMemory(LastThree, "mine")


def long_pool(size: int) -> Pool:
    return Pool("ann", tuple(Record(f"r{at}", at, f"text {at}") for at in range(size)))


def test_ones_own_memory_is_shrunk_exactly_where_orders_are_few() -> None:
    pool = long_pool(6)
    reordering = shrink(OWN, pool, keeps(frozenset({"r4"})))
    assert reordering.exact and reordering.found
    # r4 leaves a window of three when three others come after it: 3-5 already do but one.
    assert reordering.inversions == 2
    assert_one_minimal(reordering, OWN, pool, keeps(frozenset({"r4"})))


@pytest.mark.parametrize("lost", ["r19", "r17", "r3"])
def test_long_pools_are_searched_and_one_minimal(lost: str) -> None:
    pool = long_pool(20)
    predicate = keeps(frozenset({lost}))
    reordering = shrink(OWN, pool, predicate)
    assert not reordering.exact and reordering.found
    assert_one_minimal(reordering, OWN, pool, predicate)


def test_a_known_order_is_a_start() -> None:
    pool = long_pool(20)
    predicate = keeps(frozenset({"r19"}))
    reordering = shrink(OWN, pool, predicate, start=tuple(reversed(range(20))))
    assert reordering.inversions == 3  # three others have to come later
    assert_one_minimal(reordering, OWN, pool, predicate)


def test_what_no_order_changes_is_said() -> None:
    everything = make_policy("raw")
    exact = shrink(everything, long_pool(5), keeps(frozenset({"r1"})))
    assert (exact.found, exact.exact, exact.moves) == (False, True, ())
    searched = shrink(
        OwnMemory(_Keeper, "keeper"), long_pool(12), keeps(frozenset({"r1"})), most_builds=50
    )
    assert (searched.found, searched.exact, searched.looked) == (False, False, 50)


class _Keeper(LastThree):
    def add(self, record: Record) -> None:
        self.records.append(record)


def test_the_worst_order_is_the_worst() -> None:
    policy = make_policy("focal")
    for case in CASES[:5]:
        expected = supports(case, "benchmark")

        def list_retained(memory: Memory, expected: list[frozenset[str]] = expected) -> float:
            return sum(bool(memory.retained() & support) for support in expected) / len(expected)

        values = {
            order: list_retained(policy.build(tuple(case.pool.records[p] for p in order)))
            for order in itertools.permutations(range(len(case.pool)))
        }
        worst = worst_order(policy, case.pool, list_retained)
        assert worst.exact
        assert worst.value == values[worst.order] == min(values.values())
        assert worst.inversions == min(inversions(o) for o, v in values.items() if v == worst.value)
        near = worst_order(policy, case.pool, list_retained, "jitter:w=1")
        orders = [order for order, _ in parse_arrival("jitter:w=1").orders(len(case.pool)) or ()]
        assert near.value == min(values[order] for order in orders)


def test_a_search_for_the_worst_order_says_so() -> None:
    pool = long_pool(15)

    def early(memory: Memory) -> float:
        return float(len(memory.retained() & {"r12", "r13", "r14"}))

    worst = worst_order(OWN, pool, early, most_builds=300)
    assert (worst.exact, worst.value, worst.forward) == (False, 0.0, 3.0)
    assert worst == worst_order(OWN, pool, early, most_builds=300)  # seeded
    order = worst_order(OWN, pool, early, "interleave:k=2", most_builds=100)
    assert not order.exact and order.looked <= 100


def test_endings_remember_the_order_with_the_fewest_inversions() -> None:
    pool = CASES[0].pool
    graph = merge_states(make_policy("recent:k=2"), pool, parse_arrival("uniform").on(pool))
    assert graph is not None
    for ending in graph.endings:
        assert inversions(ending.order) == ending.inversions
        last = ending.order[-2:]
        same = [o for o in itertools.permutations(range(len(pool))) if o[-2:] == last]
        assert ending.inversions == min(map(inversions, same))


class Turned(LastThree):
    """Keeps r0 only where a third of all neighbours arrived in the other order."""

    def add(self, record: Record) -> None:
        self.records.append(record)

    def retained(self) -> list[str]:
        places = [record.position for record in self.records]
        falls = sum(first > second for first, second in itertools.pairwise(places))
        return [r.id for r in self.records if r.id != "r0" or 3 * falls >= len(places)]


def test_a_search_goes_on_with_orders_that_are_known_to_differ() -> None:
    """60 records have more single moves than builds are allowed, and no single move does it."""
    pool, predicate = long_pool(60), keeps(frozenset({"r0"}))
    policy = OwnMemory(Turned, "turned")
    order = parse_arrival("uniform").on(pool).sample(0)
    assert outcome(policy, pool, order, predicate) is True
    (result,) = shrink_all(policy, pool, [predicate], most_builds=40, seeds=[order])
    assert result.found and not result.exact
    assert_one_minimal(result, policy, pool, predicate)


@pytest.mark.parametrize("support", ["r3", "r40"])
def test_a_long_move_is_found_in_a_long_pool(support: str) -> None:
    """Only a move to the last three places keeps it, further than short moves reach."""
    pool, predicate = long_pool(80), keeps(frozenset({support}))
    reordering = shrink(OWN, pool, predicate, most_builds=500)
    assert reordering.found and not reordering.exact
    assert reordering.inversions == 79 - int(support[1:]) - 2
    assert_one_minimal(reordering, OWN, pool, predicate)


class Counted(LastThree):
    """Counts how often a memory is built."""

    built = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).built += 1


def test_no_search_repeats_what_looking_at_every_order_has_shown() -> None:
    """Every order of a pool of five is built once; both searches read what was retained."""
    pool, policy = long_pool(5), OwnMemory(Counted, "counted")
    builds = OrderBuilds(policy, pool)
    explore(policy, pool, builds=builds)
    looked_at = Counted.built
    entries = [RetainedValue(lambda ids, r=f"r{at}": r in ids) for at in range(5)]
    reorderings = shrink_all(policy, pool, entries, builds=builds)
    lowest = RetainedValue(lambda ids: float(len(ids & {"r3", "r4"})))
    worst = worst_order(policy, pool, lowest, builds=builds)
    assert Counted.built == looked_at
    alone = [shrink(policy, pool, item) for item in entries]
    assert [r.inversions for r in reorderings] == [r.inversions for r in alone]
    assert worst == worst_order(policy, pool, lowest)
    assert Counted.built > looked_at  # without what was learned, orders are built again


def test_an_outcome_that_no_order_changes_needs_no_search() -> None:
    pool, policy = long_pool(5), OwnMemory(Counted, "counted")
    builds = OrderBuilds(policy, pool)
    landscape = explore(policy, pool, builds=builds)
    (result,) = shrink_all(
        policy, pool, [RetainedValue(len)], builds=builds
    )  # always three records
    assert (result.found, result.exact, result.looked) == (False, True, landscape.orders)
    assert landscape.orders == 120


class CountedKeeper(Counted):
    """Keeps everything, so that no order changes any outcome."""

    built = 0

    def add(self, record: Record) -> None:
        self.records.append(record)


def test_questions_share_the_orders_that_a_search_builds() -> None:
    """Three questions that no order changes take the builds of one."""
    pool, policy = long_pool(20), OwnMemory(CountedKeeper, "counted")
    values = [keeps(frozenset({name})) for name in ("r0", "r1", "r2")]
    numbers = []
    for predicates in (values[:1], values):
        CountedKeeper.built = 0
        shrink_all(policy, pool, predicates, most_builds=200)
        numbers.append(CountedKeeper.built)
    assert numbers[0] == numbers[1] > 100
