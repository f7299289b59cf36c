"""Odd pools and odd policies: one record, sixty, errors on some order, chance."""

from __future__ import annotations

import itertools

import pytest

from routeprism.errors import ContractError, OwnCodeError, SpecError
from routeprism.landscape import explore, shrink
from routeprism.orders import parse_arrival
from routeprism.policies import make_policy
from routeprism.policies.own import OwnMemory
from routeprism.records import Pool, Record


def pool_of(size: int) -> Pool:
    return Pool("ann", tuple(Record(f"r{at}", at, f"words {at}") for at in range(size)))


@pytest.mark.parametrize("name", ["focal", "recent:k=1", "utility:k=1", "raw", "lexical"])
def test_pools_of_one_and_two(name: str) -> None:
    policy = make_policy(name)
    exploration = explore(policy, pool_of(1))
    assert (exploration.orders, exploration.changed.value, exploration.exact) == (1, 0.0, True)
    assert [(record, share.value) for record, _, share in exploration.survival()] == [("r0", 1.0)]
    two = explore(policy, pool_of(2))
    assert two.orders == 2
    assert two.changed.value == (0.5 if name.startswith("recent") else two.changed.value)
    assert not shrink(policy, pool_of(1), lambda memory: memory.retained()).found


def test_survival_under_recent_two() -> None:
    exploration = explore(make_policy("recent:k=2"), pool_of(4), "jitter:w=1")
    # The five orders of four records within one place: only 0-2-1-3 leaves r1 in the window.
    assert [share.value for _, _, share in exploration.survival()] == [0.0, 0.2, 0.8, 1.0]


def test_sixty_records_are_not_enumerated_and_that_is_said() -> None:
    exploration = explore(make_policy("recent:k=3"), pool_of(60), drawn_orders=40)
    assert (exploration.method, exploration.orders) == ("sampled", 40)
    assert exploration.note == (
        "40 orders were drawn: a pool of 60 has 8.32e+81 orders under uniform, with too many "
        "states to follow them all"
    )
    late = explore(make_policy("recent:k=3"), pool_of(60), "jitter:w=1")
    assert (late.method, late.exact) == ("merged", True)  # a Fibonacci number of orders
    assert late.orders == 2504730781961


def test_a_bound_on_states_switches_to_sampling() -> None:
    exploration = explore(make_policy("utility:k=2"), pool_of(8), most_states=100, drawn_orders=30)
    assert (exploration.method, exploration.orders) == ("sampled", 30)
    assert "too many states" in exploration.note
    own = explore(OwnMemory(Fragile, "fragile"), pool_of(8), drawn_orders=10)
    assert "fragile shows no states to merge, and at most 5,040 are built" in own.note


class Fragile:
    """Raises where the second record comes before the first."""

    def __init__(self) -> None:
        self.held: list[str] = []

    def add(self, record: Record) -> None:
        if record.id == "r0" and "r1" in self.held:
            raise ValueError("r1 came first")
        self.held.append(record.id)

    def retained(self) -> list[str]:
        return self.held[-2:]

    def expose(self, query: str) -> list[str]:
        return self.held[-2:]


def test_an_order_that_raises_is_reported_and_comes_again() -> None:
    result = explore(OwnMemory(Fragile, "fragile"), pool_of(4))
    assert (result.method, result.orders, result.failed, result.total) == ("replayed", 24, 12, 12)
    assert result.reverse is None
    failure = result.failures[0]
    assert failure.message == "ValueError: r1 came first"
    assert failure.order.index(1) < failure.order.index(0)
    exploration = explore(
        OwnMemory(Fragile, "fragile"), pool_of(9), "uniform:seed=5", drawn_orders=30
    )
    first = exploration.failures[0]
    assert first.index is not None
    assert parse_arrival("uniform:seed=5").sample(9, first.index, "ann") == first.order
    with pytest.raises(ValueError, match="r1 came first"):
        OwnMemory(Fragile, "f").build([pool_of(9).records[p] for p in first.order])
    assert shrink(OwnMemory(Fragile, "f"), pool_of(4), lambda memory: memory.retained()).found


class Breaking:
    """An incremental policy that raises in the same orders."""

    name = "breaking"

    def build(self, arrivals):
        state = self.start()
        for record in arrivals:
            state = self.step(state, record)
        return self.finish(state)

    def start(self):
        return ()

    def step(self, state, record):
        if record.id == "r0" and "r1" in [content.id for content in state]:
            raise ValueError("r1 came first")
        return (*state, record)

    def finish(self, state):
        return make_policy("recent:k=2").finish(state)

    def key(self, state):
        return tuple(record.id for record in state[-2:])


def test_merged_states_count_the_orders_that_raise() -> None:
    exploration = explore(Breaking(), pool_of(4))
    assert (exploration.method, exploration.orders, exploration.failed) == ("merged", 24, 12)
    assert exploration.failures[0].order in set(itertools.permutations(range(4)))
    replayed = explore(Breaking(), pool_of(4), method="replayed")
    assert (replayed.retained, replayed.failed) == (exploration.retained, exploration.failed)


def test_an_error_in_source_order_is_an_error() -> None:
    class Never(Fragile):
        def add(self, record: Record) -> None:
            raise KeyError("no")

    with pytest.raises(OwnCodeError, match=r"^never, user .ann., order source, .* raised KeyError"):
        explore(OwnMemory(Never, "never"), pool_of(3))


COUNT = itertools.count()


class Chancy(Fragile):
    """Keeps another number of records every time it is built."""

    def __init__(self) -> None:
        super().__init__()
        self.k = 1 + next(COUNT) % 3

    def add(self, record: Record) -> None:
        self.held.append(record.id)

    def retained(self) -> list[str]:
        return self.held[-self.k :]


def test_chance_is_detected_reported_and_never_merged() -> None:
    policy = OwnMemory(Chancy, "chancy")
    exploration = explore(policy, pool_of(4), drawn_orders=25)
    assert (exploration.method, exploration.chance) == ("sampled", (20, 20))
    assert exploration.note.startswith("chancy is not deterministic: in 20 of 20 orders")
    with pytest.raises(ContractError, match="chancy is not deterministic"):
        shrink(policy, pool_of(4), lambda memory: memory.retained())
    with pytest.raises(SpecError, match="its states cannot be merged"):
        explore(policy, pool_of(4), method="merged")


def test_a_method_that_cannot_be_used_is_refused() -> None:
    with pytest.raises(SpecError, match="lexical on 4 records under uniform cannot be merged"):
        explore(make_policy("lexical"), pool_of(4), method="merged")
    with pytest.raises(SpecError, match="half-width between 0 and 1"):
        explore(make_policy("raw"), pool_of(4), half_width=2.0)
