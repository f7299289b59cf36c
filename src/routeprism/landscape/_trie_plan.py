"""Which orders are built, and how many adds that takes: known before anything is built."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from routeprism.errors import SpecError
from routeprism.orders import MOST_LISTED, Arrivals, Order

__all__ = ["TriePlan", "plan_trie"]


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


def plan_trie(
    arrivals: Arrivals, *, drawn_orders: int, budget: int | None = None, shared: bool = True
) -> TriePlan:
    """Choose every order if there are at most `drawn` of them, or if they fit the budget of adds.

    Otherwise choose as many drawn orders as fit, `drawn` of them at most: draws are taken in their
    sequence, so that their choice does not depend on what they retain. Source order and reverse
    order are built in any case.
    """
    total = arrivals.count()
    ends = _ends(arrivals.size)
    if total is not None and total <= MOST_LISTED and arrivals.countable():
        complete = _plan_every(arrivals, total, ends, shared)
        fits = total <= drawn_orders if budget is None else complete.adds <= budget
        if fits:
            return complete
    return _plan_drawn(arrivals, total, ends, drawn_orders, budget, shared)


def _ends(size: int) -> tuple[Order, Order]:
    source = tuple(range(size))
    return source, source[::-1]


def _plan_every(arrivals: Arrivals, total: int, ends: Iterable[Order], shared: bool) -> TriePlan:
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


def _plan_drawn(
    arrivals: Arrivals,
    total: int | None,
    ends: Iterable[Order],
    drawn_orders: int,
    budget: int | None,
    shared: bool,
) -> TriePlan:
    beginnings: set[Order] = set()
    distinct: set[Order] = set()
    adds = separate = 0

    def price(order: Order) -> list[Order]:
        return [order[:end] for end in range(1, len(order) + 1) if order[:end] not in beginnings]

    def take(order: Order, more: list[Order]) -> None:
        nonlocal adds, separate
        adds += len(more) if shared else len(order) * bool(more)
        separate += len(order)
        beginnings.update(more)

    for order in dict.fromkeys(ends):
        take(order, price(order))
    orders: list[Order] = []
    for index in range(drawn_orders):
        order = arrivals.sample(index)
        more = price(order)
        cost = len(more) if shared else len(order) * bool(more)
        if budget is not None and adds + cost > budget:
            break
        take(order, more)
        orders.append(order)
        distinct.add(order)
    if not orders:
        raise SpecError(
            f"a budget of {budget:,} adds for user '{arrivals.user}' is too small: source order, "
            f"reverse order and one drawn order take {adds + cost:,} adds; pass a higher limit"
        )
    covered = None if total is None else len(distinct) / total
    return TriePlan(False, tuple(orders), adds, separate, covered)
