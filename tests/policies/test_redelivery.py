"""A record that arrives twice: every policy and interface copes, and comparators do not notice."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routeprism.orders import FORWARD, parse_arrival, parse_schedule
from routeprism.policies import SourceOrder, make_policy, parse_interface
from routeprism.policies.focal import Focal
from routeprism.records import Record, load_benchmark
from routeprism.routes import trace_case

CASES = load_benchmark("sample").cases
POLICIES = [
    "focal",
    "focal:survivor=first-arrival",
    "focal:survivor=source-position",
    "focal:cluster=source",
    "focal:cluster=source,survivor=first-arrival",
    "recent:k=3",
    "utility:k=3",
    "lexical",
    "raw",
    "source-order(recent:k=3)",
]


@pytest.mark.parametrize("interface", ["all", "budget:chars=900", "bm25:k=2,display=arrival"])
@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_copes(policy: str, interface: str) -> None:
    result = make_policy(policy, parse_interface(interface))
    schedule = parse_schedule("redeliver:copies=2,seed=1")
    for case in CASES[:6]:
        forward, route = trace_case(case, [result], [schedule])
        assert len(route.order) == len(case.pool) + 2
        assert forward.order == FORWARD.on(case.pool)
        assert not set(route.stand_ins) & route.retained  # who is held needs nobody in its place
        for exposure in route.exposures:  # no record is shown twice
            assert len({block.text for block in exposure.blocks}) == len(exposure.blocks)


@pytest.mark.slow
@settings(max_examples=40)
@given(st.sampled_from(POLICIES), st.sampled_from(CASES), st.integers(0, 99))
def test_comparators_do_not_notice(policy: str, case, index: int) -> None:
    comparator = SourceOrder(make_policy(policy))
    order = parse_arrival("redeliver:copies=2").sample(len(case.pool), index)
    arrivals = [case.pool.records[position] for position in order]
    repetition, once = comparator.build(arrivals), comparator.build(case.pool.records)
    assert (repetition.retained(), repetition.state()) == (once.retained(), once.state())


def test_first_and_last_arrival_are_those_of_the_deliveries() -> None:
    a = Record("a", 0, "walnut bread oven kitchen morning")
    b = Record("b", 1, "walnut bread oven kitchen evening")
    for cluster in ("arrival", "source"):
        last = Focal(cluster=cluster)  # type: ignore[arg-type]
        first = Focal(cluster=cluster, survivor="first-arrival")  # type: ignore[arg-type]
        assert last.build([a, b, a]).retained() == {"a"}
        assert first.build([b, a, b]).retained() == {"b"}
        assert first.build([a, b, a]).retained() == {"a"}
