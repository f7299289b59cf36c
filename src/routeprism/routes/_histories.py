"""Histories followed record by record: a growing pool, and states that several orders share.

An incremental policy is followed step by step. `step` must give a new state and leave the old one
as it was, because one state is followed in many orders; `key` may be equal only where everything
retained and shown, now and later, is equal. A policy that breaks either rule would get exact
numbers that are wrong, so merged states are compared with what building gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from routeprism.errors import ContractError, RoutePrismError
from routeprism.frames import OWN_ERRORS
from routeprism.policies import Incremental, Memory, Policy, prepare_policy
from routeprism.policies.own import closing_memory, report_own_errors, retained_ids
from routeprism.records import Pool

_EVERY = 16
"""The number of records up to which every moment is traced."""
_STEPS = 4
"""The number of moments in each doubling from then on."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The retained records after the first records of a pool have arrived."""

    after: int
    """How many records have arrived."""
    arrived: frozenset[str]
    forward: frozenset[str]
    """Retained if they arrived in source order."""
    reversed: frozenset[str]
    """Retained if they arrived in the opposite order."""


def list_moments(size: int) -> list[int]:
    """List the moments of pools of this size or more.

    1 to 16, then four in each doubling: few enough that all reversed builds together take about
    five passes over a long pool.
    """
    moments = list(range(1, min(size, _EVERY) + 1))
    step, at = _EVERY // _STEPS, _EVERY
    while (at := at + step) <= size:
        moments.append(at)
        if at == step * 2 * _STEPS:
            step *= 2
    return moments


def trace_moments(policy: Policy, pool: Pool) -> Iterator[Moment]:
    """Trace a growing history; the end of a pool is also a moment.

    An incremental policy is stepped forward once, any other is built for every moment.
    """
    state: Any = policy.start() if isinstance(policy, Incremental) else None
    before = 0
    for after in dict.fromkeys((*list_moments(len(pool)), len(pool))):
        records = pool.records[:after]
        arrived = frozenset(record.id for record in records)
        with report_own_errors(policy, user=pool.user):
            if isinstance(policy, Incremental):
                for record in records[before:]:
                    state = policy.step(state, record)
                forward = policy.finish(state)
            else:
                forward = policy.build(records)
            before = after
            retained = [
                _retained_so_far(memory, arrived, policy.name)
                for memory in (forward, policy.build(records[::-1]))
            ]
        yield Moment(after, arrived, *retained)


def _retained_so_far(memory: Memory, arrived: frozenset[str], name: str) -> frozenset[str]:
    with closing_memory(memory) as opened:
        retained = retained_ids(opened, name)
    if unknown := sorted(retained - arrived):
        raise ContractError(f"{name} retains '{unknown[0]}', which had not arrived")
    return retained


Order = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Orders whose merged state is not the memory that building them gives."""

    user: str
    order: Order
    """The first such order, by source positions."""
    layer: str
    """The parts that differ."""
    differing: int
    checked: int

    @property
    def text(self) -> str:
        """Describe the orders that differ, and the layer."""
        order = "-".join(map(str, self.order))
        return (
            f"in {self.differing} of {self.checked} orders checked, merged states gave different "
            f"{self.layer} than building (user '{self.user}', order {order})"
        )


def probe_queries(pool: Pool) -> tuple[str, ...]:
    """Return texts to expose memories to if there is no question."""
    return (pool.records[0].user_text[:_LONGEST], pool.records[-1].user_text[:_LONGEST])


_LONGEST = 200


def compare_replays(
    policy: Policy, pool: Pool, endings: Iterable[tuple[Order, Memory | None]]
) -> Disagreement | None:
    """Build orders and compare each with the memory it ended in; None means that it raised."""
    queries = probe_queries(pool)
    first: tuple[Order, str] | None = None
    differing = checked = 0
    for order, merged in endings:
        checked += 1
        layer = _difference(policy, pool, order, merged, queries)
        if layer:
            differing += 1
            first = first or (order, layer)
    return None if first is None else Disagreement(pool.user, *first, differing, checked)


def _difference(
    policy: Policy, pool: Pool, order: Order, merged: Memory | None, queries: Sequence[str]
) -> str:
    try:
        built = policy.build(tuple(pool.records[position] for position in order))
        with closing_memory(built):
            if merged is None:
                return "errors"
            if retained_ids(built, policy.name) != retained_ids(merged, policy.name):
                return "records"
            names = (
                built.expose(query).sources != merged.expose(query).sources for query in queries
            )
            return "sources shown" if any(names) else ""
    except RoutePrismError:
        raise
    except OWN_ERRORS:
        return "" if merged is None else "errors"


def find_disagreement(policy: Policy, pool: Pool) -> Disagreement | None:
    """Follow every order of a small pool through merged states, and build each of them."""
    if not isinstance(policy, Incremental):
        return None
    stepping: Incremental[Any] = prepare_policy(policy, pool.records)
    start = stepping.start()
    level: dict[tuple[frozenset[int], Any], tuple[Any, list[Order]]] = {
        (frozenset(), stepping.key(start)): (start, [()])
    }
    for _ in pool.records:
        following: dict[tuple[frozenset[int], Any], tuple[Any, list[Order]]] = {}
        for (arrived, _), (state, orders) in level.items():
            for position in sorted(set(range(len(pool))) - arrived):
                stepped = stepping.step(state, pool.records[position])
                place = (arrived | {position}, stepping.key(stepped))
                _, reached = following.setdefault(place, (stepped, []))
                reached += [(*order, position) for order in orders]
        level = following
    endings = [(stepping.finish(state), orders) for state, orders in level.values()]
    return compare_replays(
        policy, pool, ((order, memory) for memory, orders in endings for order in orders)
    )
