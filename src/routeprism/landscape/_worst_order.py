"""The worst order: the one that keeps the least."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from routeprism.errors import RoutePrismError
from routeprism.frames import OWN_ERRORS
from routeprism.landscape._builds import OrderBuilds
from routeprism.landscape._exploration import MOST_ORDERS
from routeprism.landscape._moves import inversions
from routeprism.landscape._states import MOST_STATES
from routeprism.orders import ArrivalModel, Arrivals, Order, parse_arrival
from routeprism.orders import every_permutation as is_uniform
from routeprism.policies import Memory, Policy
from routeprism.records import Pool

__all__ = ["MOST_BUILDS", "Objective", "WorstOrder", "worst_order"]


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
    if not chancy and (proved := _prove(builds, bound, objective, forward, most_states)):
        return proved

    values: dict[Order, float] = {}

    def value_of(order: Order) -> float:
        if order not in values:
            try:
                values[order] = builds.read(order, objective)
            except RoutePrismError:
                raise
            except OWN_ERRORS:
                # An order that cannot be built keeps nothing to compare.
                values[order] = float("inf")
        return values[order]

    orders = bound.orders(most_orders)
    if orders is not None:
        for order, _ in orders:
            value_of(order)
    elif is_uniform(bound):
        _climb(bound, value_of, values, seed, most_builds)
    else:
        for index in range(most_builds):
            value_of(bound.sample(index))
    value, crossed, order = min((value, inversions(o), o) for o, value in values.items())
    if value == float("inf"):  # every order but source order raised an error
        return WorstOrder(source, forward, forward, 0, False, len(values))
    exact = orders is not None and not chancy
    return WorstOrder(order, value, forward, crossed, exact, len(values))


def _prove(
    builds: OrderBuilds, arrivals: Arrivals, objective: Objective, forward: float, most_states: int
) -> WorstOrder | None:
    """Return the worst order where every order was looked at, or where states can be merged."""
    if not builds.has_graph(arrivals) and is_uniform(arrivals):
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
