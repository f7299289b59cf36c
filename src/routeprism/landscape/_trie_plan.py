"""Which orders are built, and how many adds that takes: known before anything is built."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from routeprism.errors import SpecError
from routeprism.measures import TwoStages
from routeprism.orders import MOST_LISTED, Arrivals, Order


@dataclass(frozen=True, slots=True)
class TriePlan:
    """The orders of one pool to build, and what that takes at most."""

    complete: bool
    """Whether every order of the arrival model is built."""
    orders: tuple[Order, ...]
    """The drawn orders in the sequence of their draws; empty where every order is built."""
    adds: int
    """The most adds; memories that turn out equal save some of them."""
    separate: int
    """The adds that building each order from the start would take."""
    covered: float | None
    """The share of the model's orders; None if they are too many to count."""
    stages: TwoStages | None = None
    """How a pilot and later draws are combined; None if all draws count equally."""


def plan_trie(
    arrivals: Arrivals, *, drawn_orders: int, budget: int | None = None, shared: bool = True
) -> TriePlan:
    """Choose every order if there are at most `drawn` of them, or if they fit the budget of adds.

    Otherwise choose as many drawn orders as fit, `drawn` of them at most: draws are taken in their
    sequence, so that their choice does not depend on what they retain. Source order and reverse
    order are built in any case.
    """
    total = arrivals.count()
    if total is not None and total <= MOST_LISTED and arrivals.countable():
        complete = _plan_every(arrivals, _ends(arrivals.size), shared)
        fits = total <= drawn_orders if budget is None else complete.adds <= budget
        if fits:
            return complete
    draws = DrawnOrders(arrivals, shared)
    number = 0
    while number < drawn_orders and (budget is None or draws.count_adds(number + 1) <= budget):
        number += 1
    if not number:
        raise SpecError(
            f"a budget of {budget:,} adds for user '{arrivals.user}' is too small: source order, "
            f"reverse order and one drawn order take {draws.count_adds(1):,} adds; pass a higher "
            f"limit"
        )
    return draws.plan(number)


CHECKED_ORDERS = 3
"""How many drawn orders of an arrival model are built in one go, to check shared beginnings."""


def choose_checks(arrivals: Arrivals, plan: TriePlan, number: int = CHECKED_ORDERS) -> list[Order]:
    """Choose the first draws of an arrival model to check; few plans have fewer.

    The first ones are also built if a pilot decides how many later ones are.
    """
    if not plan.complete:
        return list(dict.fromkeys(plan.orders[:number]))
    draws = (arrivals.sample(index) for index in range(4 * number))
    return list(dict.fromkeys(draws))[:number]


def _ends(size: int) -> tuple[Order, Order]:
    source = tuple(range(size))
    return source, source[::-1]


def _plan_every(arrivals: Arrivals, ends: Iterable[Order], shared: bool) -> TriePlan:
    process = arrivals.process
    level: dict[Any, int] = {process.start(): 1}
    adds = separate = depth = 0
    while level:
        depth += 1
        following: dict[Any, int] = {}
        for prefix, ways in level.items():
            for _, after in process.moves(prefix):
                following[after] = following.get(after, 0) + ways
        adds += sum(following.values())
        separate += depth * sum(w for prefix, w in following.items() if process.final(prefix))
        level = following
    outside = [_count_outside(arrivals, order) for order in ends]
    alone = sum(arrivals.size for number in outside if number)
    separate += alone
    return TriePlan(True, (), adds + sum(outside) if shared else separate, separate, 1.0)


def _count_outside(arrivals: Arrivals, order: Order) -> int:
    """Count the arrivals of an order that no beginning of the model has."""
    process = arrivals.process
    prefix = process.start()
    for number, position in enumerate(order):
        moves = dict(process.moves(prefix))
        if position not in moves:
            return len(order) - number
        prefix = moves[position]
    return 0


class DrawnOrders:
    """The drawn orders of a pool in the sequence of their draws, and the adds that each takes."""

    def __init__(self, arrivals: Arrivals, shared: bool) -> None:
        self._arrivals, self._shared = arrivals, shared
        self._beginnings: set[Order] = set()
        self._orders: list[Order] = []
        self._adds, self._separate = [0], [0]
        for order in dict.fromkeys(_ends(arrivals.size)):
            self._adds[0] += self._take(order)
            self._separate[0] += len(order)

    def _take(self, order: Order) -> int:
        """Count the adds of an order, and remember its beginnings."""
        beginnings = (order[:end] for end in range(1, len(order) + 1))
        more = [beginning for beginning in beginnings if beginning not in self._beginnings]
        self._beginnings.update(more)
        return len(more) if self._shared else len(order) * bool(more)

    def _draw(self, number: int) -> None:
        while len(self._orders) < number:
            order = self._arrivals.sample(len(self._orders))
            self._orders.append(order)
            self._adds.append(self._adds[-1] + self._take(order))
            self._separate.append(self._separate[-1] + len(order))

    def count_adds(self, number: int) -> int:
        """Count the adds of source order, reverse order and the first `number` draws."""
        self._draw(number)
        return self._adds[number]

    def plan(self, number: int, stages: TwoStages | None = None) -> TriePlan:
        """Plan the first `number` draws."""
        adds, total = self.count_adds(number), self._arrivals.count()
        orders = tuple(self._orders[:number])
        covered = None if total is None else len({*orders}) / total
        return TriePlan(False, orders, adds, self._separate[number], covered, stages)
