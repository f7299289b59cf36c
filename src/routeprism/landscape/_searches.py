"""Searches over orders: the one that keeps the least, and the smallest that changes an outcome.

Distance is the number of inversions: pairs that arrive in the opposite of their source order. The
result is always 1-minimal: whichever single adjacent exchange is undone, the outcome is forward's
again. Where the graph of states fits, or the orders are few, no order with fewer inversions changes
it at all; otherwise an order that does is searched for and reduced by delta debugging (Zeller and
Hildebrandt, Simplifying and isolating failure-inducing input, 2002) on runs, then on pairs.

Merged states retain and expose the same; a predicate that reads more of a memory (its internal
state, its events) needs `most_states=0`, which looks at orders one by one.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from routeprism.errors import ContractError
from routeprism.landscape._exploration import MOST_ORDERS
from routeprism.landscape._moves import Move, find_moves, inversions
from routeprism.landscape._states import MOST_STATES, OrderBuilds, StateGraph
from routeprism.orders import ArrivalModel, Arrivals, Order, every_permutation, parse_arrival
from routeprism.policies import Memory, Policy
from routeprism.records import Pool

Objective = Callable[[Memory], float]
"""A value to minimise."""

MOST_BUILDS = 2_000
"""The number of memories that a search builds."""


@dataclass(frozen=True, slots=True)
class WorstOrder:
    """The order with the lowest objective, and of those, with the fewest inversions."""

    order: Order
    value: float
    forward: float
    """The objective in source order."""
    inversions: int
    exact: bool
    """Whether every order was looked at; otherwise it is the worst that a search met."""
    looked: int
    """The number of states or orders examined."""


def worst_order(
    policy: Policy,
    pool: Pool,
    objective: Objective,
    arrivals: str | ArrivalModel = "uniform",
    *,
    seed: int = 0,
    most_states: int = MOST_STATES,
    most_orders: int = MOST_ORDERS,
    most_builds: int = MOST_BUILDS,
    builds: OrderBuilds | None = None,
) -> WorstOrder:
    """Find the order of an arrival model that makes the objective lowest.

    Exact where the graph of states fits, or there are few orders; otherwise a seeded local search
    by moves of single records (for models that are not uniform, the worst of drawn orders). With
    `builds`, what an exploration of the same pool has learned is not looked for again.
    """
    model = parse_arrival(arrivals) if isinstance(arrivals, str) else arrivals
    bound = model.on(pool)
    builds = builds or OrderBuilds(policy, pool)
    source = tuple(range(len(pool)))
    forward: float = builds.read(source, objective)
    chancy = builds.chancy
    if not chancy and (proved := _prove_worst(builds, bound, objective, forward, most_states)):
        return proved

    values: dict[Order, float] = {}

    def value_of(order: Order) -> float:
        if order not in values:  # an order that cannot be built keeps nothing to compare
            values[order] = builds.try_read(order, objective, float("inf"))
        return values[order]

    orders = bound.orders(most_orders)
    if orders is not None:
        for order, _ in orders:
            value_of(order)
    elif every_permutation(bound):
        _climb(bound, value_of, values, seed, most_builds)
    else:
        for index in range(most_builds):
            value_of(bound.sample(index))
    value, crossed, order = min((value, inversions(o), o) for o, value in values.items())
    if value == float("inf"):  # every order but source order raised an error
        return WorstOrder(source, forward, forward, 0, False, len(values))
    exact = orders is not None and not chancy
    return WorstOrder(order, value, forward, crossed, exact, len(values))


def _prove_worst(
    builds: OrderBuilds, arrivals: Arrivals, objective: Objective, forward: float, most_states: int
) -> WorstOrder | None:
    """Return the worst order where every order was looked at, or where states can be merged."""
    if not builds.has_graph(arrivals) and every_permutation(arrivals):
        values = builds.values_of_all(objective)
        if values is not None and min(values) >= forward:
            source = tuple(range(len(builds.pool)))
            return WorstOrder(source, forward, forward, 0, True, builds.orders)
    graph = builds.graph(arrivals, most_states)
    if graph is None or not graph.endings:
        return None
    value, crossed, order = min(
        (objective(ending.memory), ending.inversions, ending.order) for ending in graph.endings
    )
    return WorstOrder(order, value, forward, crossed, True, graph.states)


def _climb(
    arrivals: Arrivals,
    value_of: Callable[[Order], float],
    values: dict[Order, float],
    seed: int,
    most: int,
) -> None:
    """Go down from reverse order and from drawn ones, by the first single move that helps."""
    generator = random.Random(seed)  # noqa: S311
    forward = tuple(range(arrivals.size))
    starts = [forward[::-1], forward]
    index = 0
    while len(values) < most and index < most:
        order = starts[index] if index < len(starts) else arrivals.sample(index)
        index += 1
        value = value_of(order)
        improved = True
        while improved and len(values) < most:
            improved = False
            for neighbour in _neighbours(order, generator):
                if len(values) >= most:
                    break
                if value_of(neighbour) < value:
                    order, value, improved = neighbour, values[neighbour], True
                    break


def _neighbours(order: Order, generator: random.Random) -> Iterator[Order]:
    """Yield every order that differs by the move of one record, in a random sequence."""
    moves = [(a, b) for a in range(len(order)) for b in range(len(order)) if a != b]
    generator.shuffle(moves)
    for source, put in moves:
        rest = [*order[:source], *order[source + 1 :]]
        rest.insert(put, order[source])
        yield tuple(rest)


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
    """The number of states or orders examined."""


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
    (reordering,) = shrink_all(
        policy,
        pool,
        [predicate],
        most_states=most_states,
        most_orders=most_orders,
        most_builds=most_builds,
        starts=[] if start is None else [start],
    )
    return reordering


def shrink_all(
    policy: Policy,
    pool: Pool,
    predicates: Sequence[Predicate],
    *,
    most_states: int = MOST_STATES,
    most_orders: int = MOST_ORDERS,
    most_builds: int = MOST_BUILDS,
    starts: Sequence[Order] = (),
    seeds: Sequence[Order] = (),
    builds: OrderBuilds | None = None,
) -> list[Reordering]:
    """Find the smallest reordering for each of several predicates, from one look at the orders.

    A search begins with `starts`. Where neither they nor its own candidates change an outcome, it
    continues with the `known` orders, such as those that were seen to keep different records. With
    `builds`, what an exploration of the same pool has learned is not looked for again.
    """
    builds = builds or OrderBuilds(policy, pool)
    if builds.chancy:
        raise ContractError(
            f"{policy.name} is not deterministic: the same order gives different memories (user "
            f"'{pool.user}'), so no reordering can be blamed"
        )
    uniform = parse_arrival("uniform").on(pool)
    proofs = [_prove_unchanged(builds, predicate) for predicate in predicates]
    if all(proofs) and not builds.has_graph(uniform):
        return [proof for proof in proofs if proof is not None]
    if (graph := builds.graph(uniform, most_states)) is not None:
        return [_of_graph(graph, pool, predicate) for predicate in predicates]
    unproved = [p for p, proof in zip(predicates, proofs, strict=True) if proof is None]
    nearest = _list_nearest(uniform, most_orders)
    if nearest is not None:
        reordering = _of_orders(nearest, builds, unproved)
    else:
        reordering = _search(builds, unproved, starts, seeds, most_builds)
    rest = iter(reordering)
    return [proof or next(rest) for proof in proofs]


def _list_nearest(arrivals: Arrivals, most: int) -> list[tuple[int, Order]] | None:
    """List all orders from the nearest to source order on; None if there are too many."""
    orders = arrivals.orders(most)
    return None if orders is None else sorted((inversions(order), order) for order, _ in orders)


def _prove_unchanged(builds: OrderBuilds, predicate: Predicate) -> Reordering | None:
    """Return the result for an outcome that was shown to be the same in every order."""
    outcomes = builds.values_of_all(predicate)
    if outcomes is None or len(outcomes) != 1:
        return None
    (outcome,) = outcomes
    source = tuple(range(len(builds.pool)))
    return _reordering(source, outcome, outcome, True, builds.orders)


def _reordering(
    order: Order, forward: Hashable, outcome: Hashable, exact: bool, looked: int
) -> Reordering:
    crossed = inversions(order)
    return Reordering(
        crossed > 0, order, crossed, find_moves(order), forward, outcome, exact, looked
    )


def _of_graph(graph: StateGraph, pool: Pool, predicate: Predicate) -> Reordering:
    size = len(pool)
    outcomes = [
        (ending.inversions, ending.order, predicate(ending.memory)) for ending in graph.endings
    ]
    # The state that source order ends in remembers source order: no other has no inversions.
    forward = next(outcome for crossed, _, outcome in outcomes if crossed == 0)
    changed = [
        (crossed, order, outcome) for crossed, order, outcome in outcomes if outcome != forward
    ]
    if not changed:
        return _reordering(tuple(range(size)), forward, forward, True, graph.states)
    _, order, outcome = min(changed, key=lambda candidate: candidate[:2])
    return _reordering(order, forward, outcome, True, graph.states)


class _Question:
    """One predicate on the way to its smallest reordering."""

    def __init__(self, builds: OrderBuilds, predicate: Predicate) -> None:
        self.builds, self.predicate = builds, predicate
        self.source = tuple(range(len(builds.pool)))
        self.forward: Hashable = builds.read(self.source, predicate)
        self.looked = 0
        self.order: Order | None = None

    def outcome(self, order: Order) -> Hashable:
        """Return the outcome of an order; an error gives one that equals no other."""
        return self.builds.try_read(order, self.predicate, _UNBUILT)

    def changes(self, order: Order) -> bool:
        """Whether an order that could be built has a different outcome than source order."""
        self.looked += 1
        outcome = self.outcome(order)
        return outcome is not _UNBUILT and outcome != self.forward

    def conclude(self, *, exact: bool) -> Reordering:
        """Return the result."""
        if self.order is None:
            return _reordering(self.source, self.forward, self.forward, exact, self.looked)
        outcome = self.outcome(self.order)
        return _reordering(self.order, self.forward, outcome, exact, self.looked)


def _look_through(
    builds: OrderBuilds, predicates: Sequence[Predicate], orders: Iterable[Order]
) -> list[_Question]:
    """Find the first order that changes each outcome; every order is built once for all of them."""
    builds.prepare(tuple(range(len(builds.pool))), predicates)
    questions = [_Question(builds, predicate) for predicate in predicates]
    waiting = list(questions)
    for order in orders if waiting else ():
        builds.prepare(order, [question.predicate for question in waiting])
        for question in waiting:
            if question.changes(order):
                question.order = order
        waiting = [question for question in waiting if question.order is None]
        if not waiting:
            break
    return questions


def _of_orders(
    nearest: Sequence[tuple[int, Order]], builds: OrderBuilds, predicates: Sequence[Predicate]
) -> list[Reordering]:
    orders = (order for _, order in nearest)
    return [question.conclude(exact=True) for question in _look_through(builds, predicates, orders)]


def _search(
    builds: OrderBuilds,
    predicates: Sequence[Predicate],
    starts: Sequence[Order],
    seeds: Sequence[Order],
    most: int,
) -> list[Reordering]:
    candidates = itertools.islice(itertools.chain(starts, _candidates(builds.pool, most)), most)
    questions = _look_through(builds, predicates, itertools.chain(candidates, seeds))
    for question in questions:
        if question.order is not None:
            question.order = _reduce_order(question.order, question.changes, most)
    return [question.conclude(exact=False) for question in questions]


def _candidates(pool: Pool, most: int) -> Iterator[Order]:
    """Yield orders to try: single moves from the shortest on, then reverse, then drawn ones.

    Where a long pool has more single moves than may be tried, the longest come before the others.
    """
    size = len(pool)
    source = tuple(range(size))
    for distance in range(1, size):
        if distance == 2 and size * size > most:
            yield from _extremes(size)
        for position in range(size - distance):
            put = position + distance
            back = (*source[position + 1 : put + 1], position)
            forth = (put, *source[position:put])
            for moved in (back,) if distance == 1 else (back, forth):
                yield (*source[:position], *moved, *source[put + 1 :])
    yield source[::-1]
    arrivals = parse_arrival("uniform").on(pool)
    for index in itertools.count():
        yield arrivals.sample(index)


def _extremes(size: int) -> Iterator[Order]:
    """Yield reverse order, and each record moved to the end or to the front."""
    source = tuple(range(size))
    yield source[::-1]
    for record in source:
        rest = (*source[:record], *source[record + 1 :])
        yield (*rest, record)
        yield (record, *rest)


def _reduce_order(order: Order, changes: Callable[[Order], bool], most: int) -> Order:
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
        order = _undo_adjacent(order, changes)
        # Exchanging two distant records undoes several inversions at once.
        for far, near in itertools.combinations(range(len(order)), 2):
            if order[far] < order[near] or near == far + 1:
                continue
            if tried >= most:
                return order
            tried += 1
            reduced = list(order)
            reduced[far], reduced[near] = order[near], order[far]
            if changes(tuple(reduced)):
                order = tuple(reduced)
                break
        else:
            return order


def _undo_adjacent(order: Order, changes: Callable[[Order], bool]) -> Order:
    """Undo adjacent inversions until none can be undone."""
    at = 0
    while at + 1 < len(order):
        first, second = order[at : at + 2]
        undone = (*order[:at], second, first, *order[at + 2 :])
        if first > second and changes(undone):
            order, at = undone, max(0, at - 1)  # what stands before may be undone now
        else:
            at += 1
    return order
