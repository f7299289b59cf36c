"""Merged states: every order of an incremental policy without replaying n! builds.

States that were reached by the same arrivals and have equal keys promise equal futures. They are
one node, which counts the orders that lead to it and remembers the one with the fewest inversions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from routeprism.landscape._nouns import Failure
from routeprism.orders import Arrivals, Order, completions
from routeprism.policies import Incremental, Memory, Policy
from routeprism.policies import prepared as prepare
from routeprism.records import Pool

__all__ = ["MOST_STATES", "Ending", "StateGraph", "merge_states"]

MOST_STATES = 200_000
"""How many states are looked at before orders are drawn instead."""

_FEW = 5
"""How many failing orders are named."""


@dataclass(frozen=True, slots=True)
class Ending:
    """A memory that some orders end in."""

    memory: Memory
    weight: int
    """How many orders do."""
    order: Order
    """Of those, the first with the fewest inversions."""
    inversions: int


@dataclass(frozen=True, slots=True)
class StateGraph:
    """Where all orders end."""

    endings: tuple[Ending, ...]
    states: int
    """How many states there were."""
    failed: int
    """How many orders raised an error."""
    failures: tuple[Failure, ...]


def merge_states(
    policy: Policy, pool: Pool, arrivals: Arrivals, *, limit: int = MOST_STATES
) -> StateGraph | None:
    """Follow all orders at once; None if there are more states than the limit."""
    if not isinstance(policy, Incremental) or not arrivals.countable():
        return None
    stepping: Incremental[Any] = prepare(policy, pool.records)
    process, records = arrivals.process, pool.records
    start = stepping.start()
    # prefix → key → [state, number of orders, fewest inversions, such an order, arrived as bits]
    level: dict[Any, dict[Any, list[Any]]] = {
        process.start(): {stepping.key(start): [start, 1, 0, (), 0]}
    }
    endings: list[Ending] = []
    broken: list[tuple[Order, int, Any, Exception]] = []
    states = 1
    while level:
        following: dict[Any, dict[Any, list[Any]]] = {}
        for prefix, nodes in level.items():
            if process.final(prefix):
                for state, weight, inversions, order, _ in nodes.values():
                    try:
                        memory = stepping.finish(state)
                    except Exception as error:
                        broken.append((order, weight, prefix, error))
                        continue
                    endings.append(Ending(memory, weight, order, inversions))
            for position, after in process.moves(prefix):
                reached = following.setdefault(after, {})
                record, above = records[position], position + 1
                for state, weight, inversions, order, arrived in nodes.values():
                    try:
                        stepped = stepping.step(state, record)
                        key = stepping.key(stepped)
                    except Exception as error:
                        broken.append(((*order, position), weight, after, error))
                        continue
                    passed = inversions + (arrived >> above).bit_count()
                    node = reached.get(key)
                    if node is None:
                        reached[key] = [
                            stepped,
                            weight,
                            passed,
                            (*order, position),
                            arrived | 1 << position,
                        ]
                        states += 1
                        continue
                    node[1] += weight
                    if (passed, (*order, position)) < (node[2], node[3]):
                        node[2], node[3] = passed, (*order, position)
                        node[0] = stepped
            if states > limit:
                return None
        level = following
    failed = 0
    if broken:
        further = completions(process) or {}
        failed = sum(weight * further[after] for _, weight, after, _ in broken)
    return StateGraph(tuple(endings), states, failed, _failures(broken, arrivals))


def _failures(
    broken: Sequence[tuple[Order, int, Any, Exception]], arrivals: Arrivals
) -> tuple[Failure, ...]:
    """Complete some of the orders that raised an error."""
    found = []
    for order, _, prefix, error in broken[:_FEW]:
        full = list(order)
        while moves := arrivals.process.moves(prefix):
            position, prefix = moves[0]
            full.append(position)
        found.append(Failure(tuple(full), None, f"{type(error).__name__}: {error}"))
    return tuple(found)
