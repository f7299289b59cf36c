"""The worst order: the one that keeps the least."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from routeprism.errors import RoutePrismError
from routeprism.landscape._build import look
from routeprism.landscape._explore import MOST_ORDERS, is_chancy
from routeprism.landscape._moves import inversions
from routeprism.landscape._states import MOST_STATES, StateGraph, merge_states
from routeprism.orders import ArrivalModel, Arrivals, Order, parse_arrival
from routeprism.orders import every_permutation as is_uniform
from routeprism.policies import Memory, Policy
from routeprism.records import Pool

__all__ = ["MOST_BUILDS", "Objective", "WorstOrder", "worst_order"]

Objective = Callable[[Memory], float]
"""What is to be as low as possible."""

MOST_BUILDS = 2_000
"""How many memories a search builds."""


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
    """How many states or orders were looked at."""


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
    graph: StateGraph | None = None,
) -> WorstOrder:
    """Find the order of an arrival model that makes the objective lowest.

    Exact where the graph of states fits, or there are few orders; otherwise a seeded local search
    by moves of single records (for models that are not uniform, the worst of drawn orders).
    """
    model = parse_arrival(arrivals) if isinstance(arrivals, str) else arrivals
    bound = model.on(pool)
    forward = look(policy, pool, tuple(range(len(pool))), objective)
    chancy = is_chancy(policy, pool)
    if graph is None and not chancy:
        graph = merge_states(policy, pool, bound, limit=most_states)
    if graph is not None and graph.endings:
        value, crossed, order = min(
            (objective(ending.memory), ending.inversions, ending.order) for ending in graph.endings
        )
        return WorstOrder(order, value, forward, crossed, True, graph.states)

    known: dict[Order, float] = {}

    def value_of(order: Order) -> float:
        if order not in known:
            try:
                known[order] = look(policy, pool, order, objective)
            except RoutePrismError:
                raise
            except Exception:
                known[order] = float(
                    "inf"
                )  # an order that cannot be built keeps nothing to compare
        return known[order]

    listed = bound.orders(most_orders)
    if listed is not None:
        for order, _ in listed:
            value_of(order)
    elif is_uniform(bound):
        _climb(bound, value_of, known, seed, most_builds)
    else:
        for index in range(most_builds):
            value_of(bound.sample(index))
    value, crossed, order = min((value, inversions(o), o) for o, value in known.items())
    exact = listed is not None and not chancy
    return WorstOrder(order, value, forward, crossed, exact, len(known))


def _climb(
    arrivals: Arrivals,
    value_of: Callable[[Order], float],
    known: dict[Order, float],
    seed: int,
    most: int,
) -> None:
    """Go down from reverse order and from drawn ones, by the first single move that helps."""
    generator = random.Random(seed)  # noqa: S311
    forward = tuple(range(arrivals.size))
    starts = [forward[::-1], forward]
    index = 0
    while len(known) < most and index < most:
        order = starts[index] if index < len(starts) else arrivals.sample(index)
        index += 1
        value = value_of(order)
        improved = True
        while improved and len(known) < most:
            improved = False
            for other in _neighbours(order, generator):
                if len(known) >= most:
                    break
                if value_of(other) < value:
                    order, value, improved = other, known[other], True
                    break


def _neighbours(order: Order, generator: random.Random) -> Iterator[Order]:
    """Give every order that differs by the move of one record, in a random sequence."""
    moves = [(a, b) for a in range(len(order)) for b in range(len(order)) if a != b]
    generator.shuffle(moves)
    for taken, put in moves:
        rest = [*order[:taken], *order[taken + 1 :]]
        rest.insert(put, order[taken])
        yield tuple(rest)
