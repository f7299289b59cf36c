"""Merged states where records arrive twice: inversions against a count of every order."""

from __future__ import annotations

import pytest

from routeprism.landscape import inversions, merge_states
from routeprism.orders import parse_arrival
from routeprism.policies import Incremental, make_policy
from routeprism.records import Pool, Record

MODELS = ["redeliver:copies=2", "redeliver:copies=3", "redeliver:copies=2,within=1", "uniform"]
TEXTS = ["tea in the morning", "a boat of wood", "green tea", "rain on the boat", "wood and rain"]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", ["focal", "recent:k=2", "utility:k=2", "raw"])
def test_each_ending_has_the_fewest_inversions_of_its_orders(name: str, model: str) -> None:
    policy = make_policy(name)
    assert isinstance(policy, Incremental)
    for size in range(2, 6):
        pool = Pool("u", tuple(Record(f"r{at}", at, TEXTS[at]) for at in range(size)))
        arrivals = parse_arrival(model).on(pool)
        graph = merge_states(policy, pool, arrivals)
        entries = arrivals.orders(100_000)
        assert graph is not None and entries is not None
        fewest: dict[tuple[object, ...], int] = {}
        for order, _ in entries:
            state = policy.start()
            for position in order:
                state = policy.step(state, pool.records[position])
            ending = (policy.key(state), tuple(sorted(order)))
            fewest[ending] = min(fewest.get(ending, 10**9), inversions(order))
        assert all(ending.inversions == inversions(ending.order) for ending in graph.endings)
        assert sorted(fewest.values()) == sorted(ending.inversions for ending in graph.endings)
