"""Expectations over arrival models: what an order that really happens changes, on average.

Where a pool has few orders under a model, all of them are built. Otherwise a fixed number of orders
is drawn for each pool, with a seed, so that every process draws the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from routeprism.experiments._case_values import PairValues, coordinates_of
from routeprism.experiments._rows import Column, Key
from routeprism.experiments._strata import Strata, enter_all
from routeprism.experiments._update_values import Resolved, enter_displacements, enter_prevented
from routeprism.measures import Sums
from routeprism.orders import FORWARD, ArrivalModel, Order, Schedule
from routeprism.policies import Policy
from routeprism.quantities import Quantity
from routeprism.records import Case, Pool
from routeprism.routes import (
    LostCase,
    Pair,
    Route,
    list_cases,
    pair_routes,
    trace_case,
)

Coordinates = Sequence[tuple[str, str, Quantity[Pair]]]

LISTED_ORDERS = 32
"""Up to how many orders of a pool are all built."""
DRAWN_ORDERS = 16
"""How many orders are drawn for a pool that has more."""


def has_few_orders(model: ArrivalModel, pool: Pool) -> bool:
    """Return whether every order of a pool is built."""
    return model.on(pool).orders(LISTED_ORDERS) is not None


def choose_orders(model: ArrivalModel, pool: Pool) -> list[Order]:
    """Choose the orders of a pool to build, all equally likely."""
    arrivals = model.on(pool)
    orders = arrivals.orders(LISTED_ORDERS)
    if orders is not None:
        return [order for order, weight in orders for _ in range(weight)]
    return [arrivals.sample(index) for index in range(DRAWN_ORDERS)]


class _Fixed:
    """Gives a pool one order."""

    def __init__(self, order: Order) -> None:
        self.order = order

    def __call__(self, size: int, user: str, records: object) -> Order:
        return self.order


def enter_arrivals(
    case: Case,
    policies: Sequence[Policy],
    models: Sequence[ArrivalModel],
    strata: Strata,
    sums: Sums[Key],
    *,
    labels: str,
    updates: str,
    keep: bool,
    resolved: Resolved,
    tables: PairValues,
) -> list[LostCase]:
    """Add the expectation of every coordinate over each arrival model; list all cases of loss.

    `tables` receives the expectations by question.
    """
    coordinates = coordinates_of(labels, updates)
    cases: list[LostCase] = []
    for model in models:
        schedules = [
            Schedule(f"{model.name}#{number}", _Fixed(order), redelivers=model.redelivers)
            for number, order in enumerate(choose_orders(model, case.pool))
        ]
        routes = trace_case(case, policies, schedules, events=bool(case.supersedes))
        _enter_counts(case, routes, model.name, sums)
        enter_displacements(case, routes, sums, model.name)
        # An order that was drawn twice has the same cases.
        orders = {(route.policy, route.order): route for route in reversed(routes)}
        cases += list_cases(tuple(orders.values()), labels, model.name)
        for name, own in groupby(routes, attrgetter("policy")):
            values = _average(coordinates, list(own))
            if values is not None:
                columns = [
                    Column(experiment, coordinate.name, name, model.name, labels=source)
                    for experiment, source, coordinate in coordinates
                ]
                enter_all(sums, strata, columns, values, keep=keep)
                tables[name, model.name] = values
                enter_prevented(coordinates, {(name, model.name): values}, resolved, sums)
    return cases


def _enter_counts(case: Case, routes: Sequence[Route], model: str, sums: Sums[Key]) -> None:
    """Add what memories counted while they were built, on average over the orders."""
    numbers: dict[tuple[str, str], list[int]] = {}
    for route in routes:
        if route.schedule != FORWARD.name:
            for name, number in route.counts.items():
                numbers.setdefault((route.policy, name), []).append(number)
    for (policy, name), counts in numbers.items():
        column = Column("routes", f"count.{name}", policy, model)
        sums[column, "all"] = (sum(counts) / len(counts), len(case.questions))


def _average(coordinates: Coordinates, routes: Sequence[Route]) -> npt.NDArray[np.float64] | None:
    """Average every coordinate over the orders, question by question; None if all orders failed."""
    by_order: dict[str, list[list[float | None]]] = {}
    cache: dict[tuple[object, ...], list[float | None]] = {}
    for pair in pair_routes(routes):
        same = (
            pair.route.retained,
            pair.route.signature,
            pair.route_exposure.sources,
            pair.route_exposure.context_sha256,
            pair.question.id,
        )
        row = cache.get(same)
        if row is None:
            row = cache[same] = [c.value(pair) for _, _, c in coordinates]
        by_order.setdefault(pair.route.schedule, []).append(row)
    if not by_order:
        return None
    values = np.array(list(by_order.values()), dtype=np.float64)
    applicable = ~np.isnan(values)
    number = applicable.sum(axis=0)
    total = np.where(applicable, values, 0.0).sum(axis=0)
    mean: npt.NDArray[np.float64] = np.where(number > 0, total / np.maximum(number, 1), np.nan)
    return mean
