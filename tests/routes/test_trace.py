"""Paired construction: what is built how often, and what a trace holds."""

from __future__ import annotations

import gc
import hashlib
from collections import Counter

import pytest

from routeprism.errors import ContractError
from routeprism.orders import parse_schedule
from routeprism.policies import Block, Exposure, make_policy, parse_interface
from routeprism.policies.remedies import parse_remedy
from routeprism.records import Case, Pool, Question, Record
from routeprism.routes import hash_state, pair_routes, trace_case

RECORDS = tuple(Record(f"r{at}", at, f"record {at} on walnut trees") for at in range(4))
POOL = Pool("ann", RECORDS)


def case(questions: int) -> Case:
    pool_questions = tuple(
        Question(f"q{at}", "ann", f"What of number {at}?") for at in range(questions)
    )
    return Case(POOL, pool_questions)


class Counting:
    """Keeps the last two, and counts its builds."""

    name = "counting"

    def __init__(self) -> None:
        self.builds: Counter[tuple[str, ...]] = Counter()

    def build(self, arrivals):
        self.builds[tuple(record.id for record in arrivals)] += 1
        return make_policy("recent:k=2").build(arrivals)


def test_each_route_is_built_once_whatever_the_number_of_questions() -> None:
    for questions in (1, 50):
        policy = Counting()
        trace_case(case(questions), [policy], [parse_schedule("replay")])
        assert policy.builds == {("r0", "r1", "r2", "r3"): 1, ("r3", "r2", "r1", "r0"): 1}


def test_schedules_that_give_the_same_order_share_a_build() -> None:
    policy = Counting()
    pool = Pool("bob", (Record("a", 0, "one"), Record("b", 1, "two")))
    questions = (Question("q", "bob", "What?"),)
    schedules = [parse_schedule(name) for name in ("replay", "half-swap", "odd-even")]
    routes = trace_case(Case(pool, questions), [policy], schedules)
    assert policy.builds == {("a", "b"): 1, ("b", "a"): 1}
    assert [route.schedule for route in routes] == ["forward", "replay", "half-swap", "odd-even"]


def test_memories_that_show_the_same_are_asked_once() -> None:
    policies = [make_policy("recent:k=3"), make_policy("source-order(recent:k=3)")]
    first, second, third, fourth = trace_case(case(2), policies, [parse_schedule("replay")])
    assert first.exposures is third.exposures is fourth.exposures
    assert second.exposures is not first.exposures
    assert {exposure.sources for exposure in second.exposures} == {frozenset({"r0", "r1", "r2"})}


def test_a_repair_that_shows_the_same_is_not_asked_again() -> None:
    names = ("recent:k=3", "rebuild(recent:k=3)", "hold:w=3,held=hidden(recent:k=3)")
    policies = [make_policy(name) for name in names]
    plain, _, rebuilt, rebuilt_late, hidden, hidden_late = trace_case(
        case(2), policies, [parse_schedule("replay")]
    )
    assert rebuilt.exposures is rebuilt_late.exposures is plain.exposures
    # three of four records are held back, and the first one that arrived is released
    assert {exposure.sources for exposure in hidden.exposures} == {frozenset({"r0"})}
    assert hidden.exposures is hidden_late.exposures


class CountedName(Counting):
    """Counts how often its name is read."""

    reads = 0

    @property
    def name(self) -> str:
        self.reads += 1
        return "named"


@pytest.mark.parametrize("repair", ["", "rebuild", "hold", "by-time", "log-fallback"])
def test_the_name_of_a_policy_is_not_read_for_each_order(repair: str) -> None:
    counts = []
    for orders in (1, 20):
        policy = CountedName()
        policy.operations, policy.fixed = ("order",), lambda operation, policy=policy: policy
        repaired = parse_remedy(f"{repair}(x)", lambda _, policy=policy: policy) or policy
        schedules = [parse_schedule(f"random:seed={seed}") for seed in range(orders)]
        policy.reads = 0
        trace_case(case(1), [repaired], schedules)
        counts.append(policy.reads)
        assert policy.builds.total() > orders / 2
    assert counts[0] == counts[1] <= 2


@pytest.mark.parametrize("interface", ["all", "budget:chars=40", "bm25:k=1"])
def test_a_pool_is_freed_without_the_garbage_collector(interface: str) -> None:
    policies = [make_policy(name, parse_interface(interface)) for name in ("focal", "recent:k=3")]

    def count_records() -> int:
        return sum(isinstance(item, Record) for item in gc.get_objects())

    gc.disable()
    gc.freeze()  # so that earlier objects are not counted
    try:
        before = count_records()
        pool = Pool("eve", tuple(Record(f"r{at}", at, f"walnut tree {at}") for at in range(20)))
        pool_case = Case(pool, (Question("q", "eve", "Which walnut tree?"),))
        trace_case(pool_case, policies, [parse_schedule("replay")])
        assert count_records() == before + 20
        del pool, pool_case
        assert count_records() == before
    finally:
        gc.unfreeze()
        gc.enable()


def test_a_trace_holds_sources_context_state_and_events() -> None:
    (forward, replay) = trace_case(case(1), [make_policy("recent:k=2")], [parse_schedule("replay")])
    assert forward.retained == {"r2", "r3"}
    assert replay.order == (3, 2, 1, 0)
    exposure = replay.exposures[0]
    context = "[session 0]\nrecord 0 on walnut trees\n\n[session 1]\nrecord 1 on walnut trees"
    assert exposure.sources == {"r0", "r1"}
    assert exposure.context_sha256 == hashlib.sha256(context.encode()).hexdigest()
    assert exposure.context_chars == len(context) == 74
    assert exposure.length == 19  # ⌈74/4⌉
    assert forward.signature == hash_state(["r2", "r3"])
    assert [event.kind for event in forward.events].count("evict") == 2
    (pair,) = pair_routes((forward, replay))
    assert (pair.forward.schedule, pair.route.schedule) == ("forward", "replay")


def test_signatures_are_canonical() -> None:
    assert hash_state({"b": 1, "a": [1.5, None]}) == hash_state({"a": [1.5, None], "b": 1})
    assert hash_state([1, 2]) != hash_state([2, 1])
    assert hash_state(None) is None
    with pytest.raises(ContractError, match="plain JSON values"):
        hash_state({"a": {1, 2}})


def test_an_exposure_derives_sources_and_context_from_its_blocks() -> None:
    blocks = (Block("a", "one", frozenset({"x", "y"})), Block("b", "two", frozenset({"y"})))
    assert Exposure(blocks).sources == {"x", "y"}
    assert Exposure(blocks).context == "one\n\ntwo"
    assert Exposure(()).sources == frozenset()
