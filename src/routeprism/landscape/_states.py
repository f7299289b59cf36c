"""Merged states: every order of an incremental policy without replaying n! builds.

States that were reached by the same arrivals and have equal keys promise equal futures. They are
one node, which counts the orders that lead to it and remembers the one with the fewest inversions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

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
    """Of those, one with the fewest inversions."""
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
    step, name = stepping.step, stepping.key
    start = stepping.start()
    # prefix → (arrived as bits, key → node)
    level: _Level = {process.start(): (0, {name(start): [start, 1, 0, None, -1]})}
    endings: list[Ending] = []
    broken: list[_Broken] = []
    states = 1
    while level:
        following: _Level = {}
        for prefix, (arrived, nodes) in level.items():
            if process.final(prefix):
                for node in nodes.values():
                    try:
                        memory = stepping.finish(node[_STATE])
                    except Exception as error:
                        broken.append((_order(node), node[_WEIGHT], prefix, error))
                        continue
                    endings.append(Ending(memory, node[_WEIGHT], _order(node), node[_CROSSED]))
            for position, after in process.moves(prefix):
                record = records[position]
                crossing = (arrived >> position + 1).bit_count()
                reached = following.setdefault(after, (arrived | 1 << position, {}))[1]
                before = len(reached)
                for node in nodes.values():
                    state, weight, crossed, _, _ = node
                    try:
                        stepped = step(state, record)
                        key = name(stepped)
                    except Exception as error:
                        broken.append(((*_order(node), position), weight, after, error))
                        continue
                    crossed += crossing
                    held = reached.get(key)
                    if held is None:
                        reached[key] = [stepped, weight, crossed, node, position]
                    else:
                        held[_WEIGHT] += weight
                        if crossed < held[_CROSSED]:  # the state goes with the order
                            held[_STATE], held[_CROSSED:] = stepped, [crossed, node, position]
                states += len(reached) - before
            if states > limit:
                return None
        level = following
    failed = 0
    if broken:
        further = completions(process) or {}
        failed = sum(weight * further[after] for _, weight, after, _ in broken)
    return StateGraph(tuple(endings), states, failed, _failures(broken, arrivals))


_Node: TypeAlias = list[Any]
"""[state, number of orders, fewest inversions, the node before it in such an order, its record]."""
_STATE, _WEIGHT, _CROSSED, _BEFORE, _POSITION = range(5)
_Level: TypeAlias = dict[Any, tuple[int, dict[Any, _Node]]]
_Broken: TypeAlias = tuple[Order, int, Any, Exception]
"""(arrivals so far, number of orders, prefix, what was raised)."""


def _order(node: _Node) -> Order:
    """Follow a node back to the start."""
    order: list[int] = []
    while node[_BEFORE] is not None:
        order.append(node[_POSITION])
        node = node[_BEFORE]
    return tuple(reversed(order))


def _failures(broken: Sequence[_Broken], arrivals: Arrivals) -> tuple[Failure, ...]:
    """Complete some of the orders that raised an error."""
    found = []
    for order, _, prefix, error in broken[:_FEW]:
        full = list(order)
        while moves := arrivals.process.moves(prefix):
            position, prefix = moves[0]
            full.append(position)
        found.append(Failure(tuple(full), None, f"{type(error).__name__}: {error}"))
    return tuple(found)
