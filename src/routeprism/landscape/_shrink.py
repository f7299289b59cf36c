"""The smallest reordering that changes an outcome.

Distance is the number of inversions: pairs that arrive in the other order than their source's. The
result is always 1-minimal: whichever single adjacent exchange is undone, the outcome is forward's
again. Where the graph of states fits, or the orders are few, no order with fewer inversions changes
it at all; otherwise an order that does is searched for and reduced by delta debugging (Zeller and
Hildebrandt, Simplifying and isolating failure-inducing input, 2002) on runs, then on pairs.

Merged states retain and expose the same; a predicate that reads more of a memory (its internal
state, its events) needs `most_states=0`, which looks at orders one by one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

from routeprism.errors import ContractError, RoutePrismError
from routeprism.landscape._build import look
from routeprism.landscape._explore import MOST_ORDERS, is_chancy
from routeprism.landscape._moves import Move, inversions, moves_of, say_moves
from routeprism.landscape._states import MOST_STATES, StateGraph, merge_states
from routeprism.landscape._worst import MOST_BUILDS
from routeprism.orders import Order, parse_arrival
from routeprism.policies import Memory, Policy
from routeprism.records import Pool

__all__ = ["Predicate", "Reordering", "shrink", "shrink_all"]

Predicate = Callable[[Memory], Hashable]
"""The outcome of a memory; two outcomes differ or not."""

_UNBUILT = object()
"""The outcome of an order that the policy raises an error on: neither forward's nor another."""


@dataclass(frozen=True, slots=True)
class Reordering:
    """The smallest reordering whose outcome is not forward's, if there is one."""

    found: bool
    """Whether there is one; if not, everything below is that of source order."""
    order: Order
    inversions: int
    moves: tuple[Move, ...]
    """The fewest single moves that make it from source order, one after the other."""
    forward: Hashable
    """The outcome in source order."""
    outcome: Hashable
    """The outcome in this order."""
    exact: bool
    """Whether no order with fewer inversions changes the outcome (or none at all, if not found);
    otherwise it is what a search found, 1-minimal all the same."""
    looked: int
    """How many states or orders were looked at."""

    @property
    def instruction(self) -> str:
        """Say how to get there: `Move record 3 after record 5`, by source positions."""
        return say_moves(self.moves)


def shrink(
    policy: Policy,
    pool: Pool,
    predicate: Predicate,
    *,
    most_states: int = MOST_STATES,
    most_orders: int = MOST_ORDERS,
    most_builds: int = MOST_BUILDS,
    start: Order | None = None,
) -> Reordering:
    """Find the smallest reordering that changes the predicate's value.

    `start` may name an order that is known to change it, from which a search begins.
    """
    (found,) = shrink_all(
        policy,
        pool,
        [predicate],
        most_states=most_states,
        most_orders=most_orders,
        most_builds=most_builds,
        starts=[] if start is None else [start],
    )
    return found


def shrink_all(
    policy: Policy,
    pool: Pool,
    predicates: Sequence[Predicate],
    *,
    most_states: int = MOST_STATES,
    most_orders: int = MOST_ORDERS,
    most_builds: int = MOST_BUILDS,
    starts: Sequence[Order] = (),
    graph: StateGraph | None = None,
) -> list[Reordering]:
    """Find the smallest reordering for each of several predicates, from one look at the orders."""
    if is_chancy(policy, pool):
        raise ContractError(
            f"{policy.name} is not deterministic: the same order gives different memories (user "
            f"'{pool.user}'), so no reordering can be blamed"
        )
    if graph is None:
        graph = merge_states(policy, pool, parse_arrival("uniform").on(pool), limit=most_states)
    if graph is not None:
        return [_of_graph(graph, pool, predicate) for predicate in predicates]
    builds = _Builds(policy, pool)
    listed = parse_arrival("uniform").on(pool).orders(most_orders)
    if listed is not None:
        nearest = sorted((inversions(order), order) for order, _ in listed)
        return [_of_orders(nearest, builds, predicate) for predicate in predicates]
    return [_searched(builds, predicate, starts, most_builds) for predicate in predicates]


def _reordering(
    order: Order, forward: Hashable, outcome: Hashable, exact: bool, looked: int
) -> Reordering:
    crossed = inversions(order)
    return Reordering(crossed > 0, order, crossed, moves_of(order), forward, outcome, exact, looked)


def _of_graph(graph: StateGraph, pool: Pool, predicate: Predicate) -> Reordering:
    size = len(pool)
    seen = [(ending.inversions, ending.order, predicate(ending.memory)) for ending in graph.endings]
    # The state that source order ends in remembers source order: no other has no inversions.
    forward = next(outcome for crossed, _, outcome in seen if crossed == 0)
    changed = [(crossed, order, outcome) for crossed, order, outcome in seen if outcome != forward]
    if not changed:
        return _reordering(tuple(range(size)), forward, forward, True, graph.states)
    _, order, outcome = min(changed, key=lambda one: one[:2])
    return _reordering(order, forward, outcome, True, graph.states)


class _Builds:
    """Builds orders and remembers outcomes."""

    def __init__(self, policy: Policy, pool: Pool) -> None:
        self.policy, self.pool = policy, pool
        self.outcomes: dict[tuple[Predicate, Order], Hashable] = {}

    def outcome(self, predicate: Predicate, order: Order) -> Hashable:
        key = (predicate, order)
        if key not in self.outcomes:
            try:
                self.outcomes[key] = look(self.policy, self.pool, order, predicate)
            except RoutePrismError:
                raise
            except Exception:
                if inversions(order) == 0:
                    raise
                self.outcomes[key] = _UNBUILT
        return self.outcomes[key]


def _of_orders(
    nearest: Sequence[tuple[int, Order]], builds: _Builds, predicate: Predicate
) -> Reordering:
    forward = builds.outcome(predicate, nearest[0][1])
    for at, (_, order) in enumerate(nearest):
        outcome = builds.outcome(predicate, order)
        if outcome is not _UNBUILT and outcome != forward:
            return _reordering(order, forward, outcome, True, at + 1)
    return _reordering(nearest[0][1], forward, forward, True, len(nearest))


def _searched(
    builds: _Builds, predicate: Predicate, starts: Sequence[Order], most: int
) -> Reordering:
    size = len(builds.pool)
    source = tuple(range(size))
    forward = builds.outcome(predicate, source)
    looked = 0

    def changes(order: Order) -> bool:
        nonlocal looked
        looked += 1
        outcome = builds.outcome(predicate, order)
        return outcome is not _UNBUILT and outcome != forward

    candidates = itertools.chain(starts, _candidates(builds.pool))
    order = next((o for o in itertools.islice(candidates, most) if changes(o)), None)
    if order is None:
        return _reordering(source, forward, forward, False, looked)
    order = _reduced(order, changes, most)
    outcome = builds.outcome(predicate, order)
    return _reordering(order, forward, outcome, False, looked)


def _candidates(pool: Pool) -> Iterator[Order]:
    """Give orders to try: single moves from the shortest on, then reverse, then drawn ones."""
    size = len(pool)
    source = tuple(range(size))
    for distance in range(1, size):
        for taken in range(size - distance):
            put = taken + distance
            back = (*source[taken + 1 : put + 1], taken)
            forth = (put, *source[taken:put])
            for moved in (back,) if distance == 1 else (back, forth):
                yield (*source[:taken], *moved, *source[put + 1 :])
    yield source[::-1]
    arrivals = parse_arrival("uniform").on(pool)
    for index in itertools.count():
        yield arrivals.sample(index)


def _reduced(order: Order, changes: Callable[[Order], bool], most: int) -> Order:
    """Undo inversions while the outcome stays changed, until no adjacent one can be undone."""
    length = len(order)
    while length > 2:  # sort long runs first
        for at in range(0, len(order) - 1, length // 2):
            tidy = (*order[:at], *sorted(order[at : at + length]), *order[at + length :])
            if tidy != order and changes(tidy):
                order = tidy
        length = length // 2 if length > 3 else 2
    tried = 0
    while True:
        order = _settled(order, changes)
        # Exchanging two distant records undoes several inversions at once.
        for far, near in itertools.combinations(range(len(order)), 2):
            if order[far] < order[near] or near == far + 1:
                continue
            if tried >= most:
                return order
            tried += 1
            other = list(order)
            other[far], other[near] = order[near], order[far]
            if changes(tuple(other)):
                order = tuple(other)
                break
        else:
            return order


def _settled(order: Order, changes: Callable[[Order], bool]) -> Order:
    """Undo adjacent inversions until none can be undone."""
    at = 0
    while at + 1 < len(order):
        one, other = order[at : at + 2]
        undone = (*order[:at], other, one, *order[at + 2 :])
        if one > other and changes(undone):
            order, at = undone, max(0, at - 1)  # what stands before may be undone now
        else:
            at += 1
    return order
