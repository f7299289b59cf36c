"""A growing history: which moments are looked at, and what is held at each of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routeprism.errors import ContractError
from routeprism.policies import NamedPolicy, make_policy
from routeprism.policies.recent import Recent
from routeprism.records import Pool, Record, load_benchmark
from routeprism.routes import list_moments, trace_moments

POOLS = [case.pool for case in load_benchmark("sample").cases]


def pool(size: int) -> Pool:
    return Pool("u", tuple(Record(f"r{at}", at, f"note {at}") for at in range(size)))


def test_every_moment_at_first_and_then_four_in_each_doubling() -> None:
    assert list_moments(3) == [1, 2, 3]
    assert list_moments(70)[15:] == [16, 20, 24, 28, 32, 40, 48, 56, 64]
    assert list_moments(130)[-3:] == [96, 112, 128]
    assert len(list_moments(10_000)) < 60


@given(st.integers(1, 3000), st.integers(1, 3000))
def test_pools_have_the_moments_of_smaller_ones(first: int, second: int) -> None:
    small, large = sorted((first, second))
    assert list_moments(large)[: len(list_moments(small))] == list_moments(small)
    assert list_moments(small)[-1] <= small


def test_recent_by_hand() -> None:
    """After t records forward holds the last three and reversed the first three."""
    for moment in trace_moments(make_policy("recent:k=3"), pool(18)):
        t = moment.after
        assert moment.arrived == {f"r{at}" for at in range(t)}
        assert moment.forward == {f"r{at}" for at in range(max(0, t - 3), t)}
        assert moment.reversed == {f"r{at}" for at in range(min(3, t))}
    assert moment.after == 18  # the end, though 18 is on no common grid


@pytest.mark.parametrize("spec", ["focal", "focal:cluster=source", "utility:k=2", "lexical", "raw"])
def test_a_history_that_grows_is_the_same_as_one_built_at_once(spec: str) -> None:
    policy = make_policy(spec)
    for item in POOLS[:10]:
        for moment in trace_moments(policy, item):
            records = item.records[: moment.after]
            assert moment.forward == policy.build(records).retained()
            assert moment.reversed == policy.build(records[::-1]).retained()


def test_an_incremental_policy_goes_forward_once() -> None:
    steps = []

    class Counted(Recent):
        __slots__ = ()

        def step(self, state, record, /):
            steps.append(record.id)
            return super().step(state, record)

        def build(self, arrivals, /):
            return Recent(k=self.k).build(arrivals)

    list(trace_moments(Counted(), pool(30)))
    assert steps == [f"r{at}" for at in range(30)]
    # Behind a name it cannot be stepped, and is built for every moment.
    values = list(trace_moments(NamedPolicy(Recent(), "mine"), pool(5)))
    assert [moment.forward for moment in values][-1] == {"r2", "r3", "r4"}


def test_what_has_not_arrived_cannot_be_held() -> None:
    class Ahead:
        name = "ahead"

        def build(self, arrivals):
            return Recent(k=9).build(pool(5).records)

    with pytest.raises(ContractError, match="ahead retains 'r1', which had not arrived"):
        list(trace_moments(Ahead(), pool(5)))
