"""Enumeration, merged states, replay of every order and closed forms say the same."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routeprism.landscape import explore, merge_states
from routeprism.orders import parse_arrival
from routeprism.policies import (
    Incremental,
    Policy,
    fit_policy,
    make_policy,
    needs_fit,
    parse_interface,
    prepare_policy,
    registered_policies,
)
from routeprism.policies.focal import Focal
from routeprism.records import Case, Pool, Record, load_benchmark

CASES = load_benchmark("sample").cases
POOLS = [case.pool for case in CASES]

SURVIVORS = ("last-arrival", "first-arrival", "source-position")
ARMS = [
    *(f"focal:cluster={c},survivor={s}" for c in ("arrival", "source") for s in SURVIVORS),
    "focal:threshold=0.025",
    "focal:threshold=0.1,cluster=source",
]
VARIANTS = {"recent": ["recent:k=1", "recent:k=3"], "focal": ARMS}
"""More than the plain name, where a policy has arms."""
PERSONAMEM = [
    *("focal", "focal:cluster=source", "recent:k=3", "utility:k=3", "raw", "streaming", "memochat"),
    *("dedup", "facts"),
]
"""What is followed on real pools."""


def incremental() -> list[str]:
    """All registered policies that show their states, with their arms."""
    names: list[str] = []
    for name, point in registered_policies().items():
        if isinstance(point.load(), type) and all(
            hasattr(point.load(), method) for method in ("start", "step", "finish", "key")
        ):
            names += VARIANTS.get(name, [name])
    return [*names, "source-order(recent:k=3)"]


def make_pair(name: str, interface: str | None = None) -> Policy:
    policy_interface = None if interface is None else parse_interface(interface)
    policy = make_policy(name, policy_interface)
    if needs_fit(policy):
        policy = _fitted(name, interface)
    return policy


@lru_cache
def _fitted(name: str, interface: str | None) -> Policy:
    """Keys are what is tested, so the fit may be on anybody."""
    policy_interface = None if interface is None else parse_interface(interface)
    return fit_policy(make_policy(name, policy_interface), POOLS[:6])


def test_the_policies_of_the_paper_are_among_them() -> None:
    assert {"raw", "recent:k=3", "utility", "streaming"} <= set(incremental())


def unmerged(policy: Incremental[Any], records: Sequence[Record]) -> dict[frozenset[str], int]:
    """Every permutation, state by state from its own beginning: nothing is merged."""
    values: dict[frozenset[str], int] = {}

    def further(state: Any, left: tuple[Record, ...]) -> None:
        if not left:
            retained_ids = policy.finish(state).retained()
            values[retained_ids] = values.get(retained_ids, 0) + 1
        for at, record in enumerate(left):
            further(policy.step(state, record), (*left[:at], *left[at + 1 :]))

    further(policy.start(), tuple(records))
    return values


def check(policy: Policy, pool: Pool) -> None:
    merged = explore(policy, pool, method="merged")
    if policy.name.startswith(("focal", "recent")):
        alternative = explore(policy, pool, method="enumerated").retained
    else:
        assert isinstance(policy, Incremental)
        alternative = unmerged(policy, pool.records)
    assert merged.retained == alternative
    assert merged.orders == sum(alternative.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", incremental())
def test_merged_states_agree_with_every_order(name: str) -> None:
    """On every sample pool, of four to seven records."""
    policy = make_pair(name, "all")
    for pool in POOLS:
        check(policy, pool)


@pytest.mark.realdata
@pytest.mark.parametrize("name", PERSONAMEM)
def test_they_agree_on_every_personamem_pool(data: Path, name: str) -> None:
    """Every incremental policy without vector store or model, on all 37 pools."""
    policy = make_pair(name, "all")  # what is retained is before the interface
    for case in load_benchmark("personamem", data).cases:
        check(policy, case.pool)


def test_no_incremental_policy_is_left_out() -> None:
    assert {name.partition(":")[0] for name in incremental()} == {
        name.partition(":")[0] for name in [*PERSONAMEM, "source-order(recent:k=3)"]
    }


@pytest.mark.parametrize(
    "arrival",
    [
        "jitter:w=1",
        "late-batch",
        "interleave:k=2",
        "redeliver:copies=2",
        "timestamps:precision=day",
        "partial:before=0-2+1-2",
        "replay",
    ],
)
@pytest.mark.parametrize("name", ["focal", "focal:cluster=source", "utility:k=2", "recent:k=2"])
def test_every_arrival_model_is_followed_exactly(name: str, arrival: str) -> None:
    policy = make_policy(name)
    for pool in POOLS[:3] + POOLS[10:12]:
        merged = explore(policy, pool, arrival, method="merged")
        assert merged.retained == explore(policy, pool, arrival, method="replayed").retained
        assert merged.exact


def recent_keeps(size: int, k: int, support: int) -> Fraction:
    """Return the probability that a uniform order leaves one of the support records in the window.

    Before the interface; 1 where the window holds the whole pool and there is support.
    """
    if support == 0:
        return Fraction(0)
    window = min(k, size)
    return 1 - Fraction(math.comb(size - support, window), math.comb(size, window))


@pytest.mark.parametrize("k", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("size", [1, 2, 4, 6])
def test_recent_against_its_closed_form(size: int, k: int) -> None:
    pool = Pool("ann", tuple(Record(f"r{at}", at, f"note {at}") for at in range(size)))
    landscape = explore(make_policy(f"recent:k={k}"), pool, method="enumerated")
    for number in range(size + 1):
        support = frozenset(pool.ids[:number])
        orders = sum(weight for ids, weight in landscape.retained.items() if ids & support)
        assert Fraction(orders, landscape.orders) == recent_keeps(size, k, number)


def test_the_closed_form_is_one_where_all_fits() -> None:
    assert recent_keeps(3, 3, 1) == recent_keeps(2, 8, 2) == 1
    assert recent_keeps(2, 8, 0) == 0  # no support to keep
    assert recent_keeps(6, 3, 2) == Fraction(4, 5)  # 1 − C(4,3)/C(6,3)


@settings(max_examples=12)
@given(
    st.lists(
        st.lists(st.sampled_from("oven kiln lake barn love like hate moss".split()), min_size=1),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0]),
)
def test_enumeration_of_odd_pools(texts: list[list[str]], threshold: float) -> None:
    """Ties in overlap and preference, empty token sets, equal texts: all rules, all orders."""
    records = tuple(Record(f"r{at}", at, " ".join(words)) for at, words in enumerate(texts))
    pool = Pool("ann", records)
    for cluster in ("arrival", "source"):
        for rule in SURVIVORS:
            focal = Focal(threshold=threshold, cluster=cluster, survivor=rule)  # type: ignore[arg-type]
            landscape = explore(focal, pool, method="enumerated")
            assert landscape.retained == unmerged(focal, records)
            clusters: Counter[int] = Counter()
            sizes: Counter[int] = Counter()
            for order in itertools.permutations(records):
                state: Any = focal.build(order).state()
                clusters[len(state)] += 1
                sizes.update(len(entry["members"]) for entry in state)
            # One record survives in each cluster.
            numbers: Counter[int] = Counter()
            for ids, weight in landscape.retained.items():
                numbers[len(ids)] += weight
            assert numbers == clusters
            assert landscape.sizes == sizes


@pytest.mark.slow
def test_portions_of_large_pools_make_up_the_whole() -> None:
    """Nine records need portions: against merged states."""
    records = [r for case in CASES[:2] for r in case.pool.records] + [CASES[2].pool.records[0]]
    pool = Pool("ann", tuple(Record(f"r{at}", at, r.text) for at, r in enumerate(records)))
    assert len(pool) == 9
    for policy in (Focal(), Focal(cluster="source")):
        enumerated = explore(policy, pool, method="enumerated")
        assert enumerated.retained == explore(policy, pool, method="merged").retained
    recent = make_policy("recent:k=3")
    assert explore(recent, pool).retained == explore(recent, pool, method="merged").retained


@pytest.mark.slow
@settings(max_examples=60)
@given(st.data())
def test_equal_keys_mean_equal_futures(data: st.DataObject) -> None:
    """Two orders of the same arrivals with equal keys: the same memory after any others, too."""
    name = data.draw(st.sampled_from(incremental()))
    interface = data.draw(st.sampled_from([None, "bm25:k=2", "all:display=arrival"]))
    case: Case = data.draw(st.sampled_from(CASES))
    policy = make_pair(name, interface)
    assert isinstance(policy, Incremental)
    item = tuple(data.draw(st.permutations(case.pool.records)))
    split = data.draw(st.integers(0, len(item)))
    copies = data.draw(st.lists(st.sampled_from(item[:split]), max_size=1)) if split else []
    arrived = (*item[:split], *copies)
    alternative = tuple(data.draw(st.permutations(arrived)))
    for stepping in (policy, prepare_policy(policy, case.pool.records)):
        states = []
        for order in (arrived, alternative):
            state = stepping.start()
            for record in order:
                state = stepping.step(state, record)
            states.append(state)
        if stepping.key(states[0]) != stepping.key(states[1]):
            continue
        for record in item[split:]:
            states = [stepping.step(state, record) for state in states]
        first, second = (stepping.finish(state) for state in states)
        assert first.retained() == second.retained()
        for question in case.questions:
            assert first.expose(question.text) == second.expose(question.text)


def test_merging_merges() -> None:
    """The work grows with states, not with orders: 5,040 orders of seven records."""
    pool = next(pool for pool in POOLS if len(pool) == 7)
    arrivals = parse_arrival("uniform").on(pool)
    for name in ("recent:k=2", "focal", "focal:cluster=source"):
        graph = merge_states(make_policy(name), pool, arrivals)
        assert graph is not None
        assert graph.states < 1500
        assert sum(ending.weight for ending in graph.endings) == 5040
    raw = merge_states(make_policy("raw"), pool, arrivals)
    assert raw is not None
    assert raw.states == 128  # one for each subset
