"""Merged states: every order of an incremental policy without replaying n! builds.

States that were reached by the same arrivals and have equal keys promise equal futures, so they are
merged. Builds of single orders, which check that promise, are here as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from routeprism.errors import RouteError, RoutePrismError
from routeprism.frames import OWN_ERRORS
from routeprism.landscape._landscape import OrderFailure
from routeprism.orders import Arrivals, Order, Prefix, completions
from routeprism.policies import Incremental, Memory, Policy, own_source, prepare_policy
from routeprism.policies.own import open_memory, retained_ids
from routeprism.records import Pool
from routeprism.routes import Disagreement, compare_replays, hash_state

__all__ = [
    "CHECKED",
    "MOST_STATES",
    "Ending",
    "StateGraph",
    "compare_builds",
    "find_wrong_states",
    "follow_orders",
    "inspect_memory",
    "merge_states",
    "raise_refusal",
    "sort_counts",
]


T = TypeVar("T")


def inspect_memory(policy: Policy, pool: Pool, order: Order, see: Callable[[Memory], T]) -> T:
    """Build an order and read something from its memory."""
    with open_memory(policy, pool, order) as memory:
        return see(memory)


def raise_refusal(error: BaseException) -> None:
    """Raise an error with which RoutePrism refuses a memory; return if only one order failed."""
    if isinstance(error, RoutePrismError) and not isinstance(error, RouteError):
        raise error


def compare_builds(policy: Policy, pool: Pool, orders: Iterable[Order]) -> list[bool]:
    """Build each order twice and compare the memories, or the errors.

    A build that a memory system outside fails to make is equal to any other: it shows no chance.
    """

    def summarise(memory: Memory) -> tuple[frozenset[str], str | None]:
        return retained_ids(memory, policy.name), hash_state(memory.state())

    def built(order: Order) -> object:
        try:
            return inspect_memory(policy, pool, order, summarise)
        except OWN_ERRORS as error:
            raise_refusal(error)
            return None if isinstance(error, RouteError) else type(error)

    pairs = ((built(order), built(order)) for order in orders)
    return [None in pair or pair[0] == pair[1] for pair in pairs]


def sort_counts(
    distribution: dict[frozenset[str], int], ids: Sequence[str]
) -> dict[frozenset[str], int]:
    """Sort a distribution by its sets' source positions, so that equal ones are written alike."""
    place = {record: position for position, record in enumerate(ids)}
    return dict(
        sorted(distribution.items(), key=lambda item: sorted(place[record] for record in item[0]))
    )


MOST_STATES = 200_000
"""The largest number of states; beyond it, orders are drawn instead."""

CHECKED = 200
"""The number of orders that are built to check the merged states of a user's own policy."""
_FEW = 5
"""The number of failing orders that are named."""


@dataclass(frozen=True, slots=True)
class Ending:
    """A memory that some orders end in."""

    memory: Memory
    weight: int
    """The number of orders that end here."""
    order: Order
    """One of these orders with the fewest inversions."""
    inversions: int


@dataclass(frozen=True, slots=True)
class StateGraph:
    """The final states of all orders."""

    endings: tuple[Ending, ...]
    states: int
    """The number of states."""
    failed: int
    """The number of orders that raised an error."""
    failures: tuple[OrderFailure, ...]
    followed: tuple[tuple[Order, Memory | None], ...] = ()
    """Some orders, and the memory that each ended in; None for one that raised an error."""


def merge_states(
    policy: Policy, pool: Pool, arrivals: Arrivals, *, limit: int = MOST_STATES
) -> StateGraph | None:
    """Follow all orders at once; None if there are more states than the limit.

    Also None for a user's own policy whose merged states differ from built memories.
    """
    graph = follow_orders(policy, pool, arrivals, limit=limit)
    return graph if graph is None or find_wrong_states(policy, pool, graph) is None else None


def find_wrong_states(policy: Policy, pool: Pool, graph: StateGraph) -> Disagreement | None:
    """Build the orders that were followed, if the policy is a user's own, and compare."""
    return compare_replays(policy, pool, graph.followed) if own_source(policy) else None


def follow_orders(
    policy: Policy, pool: Pool, arrivals: Arrivals, *, limit: int = MOST_STATES
) -> StateGraph | None:
    """Follow all orders at once, unchecked; None if there are more states than the limit."""
    if not isinstance(policy, Incremental) or not arrivals.countable():
        return None
    stepping: Incremental[Any] = prepare_policy(policy, pool.records)
    process, records = arrivals.process, pool.records
    step, name = stepping.step, stepping.key
    start = stepping.start()
    # prefix → (arrived, key → node)
    level: _Level = {process.start(): ((), {name(start): [start, 1, 0, None, -1]})}
    endings: list[Ending] = []
    broken: list[_Broken] = []
    states = 1
    watched = _Watched(_orders_to_watch(policy, arrivals))
    watched.start(next(iter(level[process.start()][1].values())))
    while level:
        following: _Level = {}
        for prefix, (arrived, nodes) in level.items():
            if process.final(prefix):
                endings += _finish_nodes(stepping, prefix, nodes.values(), broken, watched)
            for position, after in process.moves(prefix):
                record = records[position]
                crossing = sum((bits >> position + 1).bit_count() for bits in arrived)
                reached = following.setdefault(after, (_with_arrival(arrived, position), {}))[1]
                before = len(reached)
                for node in nodes.values():
                    try:
                        stepped = step(node[_STATE], record)
                        key = name(stepped)
                    except OWN_ERRORS as error:
                        broken.append(((*_order(node), position), node[_WEIGHT], after, error))
                        watched.lose(node, position)
                        continue
                    merged = _merge_node(reached, key, stepped, node, position, crossing)
                    if watched.orders:
                        watched.move(node, position, merged)
                states += len(reached) - before
            if states > limit:
                return None
        level = following
        watched.advance()
    further = (completions(process) or {}) if broken else {}
    failed = sum(weight * further[after] for _, weight, after, _ in broken)
    return StateGraph(
        tuple(endings), states, failed, _failures(broken, arrivals), tuple(watched.followed.items())
    )


def _merge_node(
    reached: dict[Any, _Node], key: Any, state: Any, before: _Node, position: int, crossing: int
) -> _Node:
    """Add a state to those with the same future, and keep the order with the fewest crossings."""
    crossed = before[_CROSSED] + crossing
    node = reached.get(key)
    if node is None:
        node = reached[key] = [state, before[_WEIGHT], crossed, before, position]
        return node
    node[_WEIGHT] += before[_WEIGHT]
    if crossed < node[_CROSSED]:  # the state goes with the order
        node[_STATE], node[_CROSSED:] = state, [crossed, before, position]
    return node


def _finish_nodes(
    stepping: Incremental[Any],
    prefix: Prefix,
    nodes: Iterable[_Node],
    broken: list[_Broken],
    watched: _Watched,
) -> Iterator[Ending]:
    """Finish the states of complete orders; note those that raise an error."""
    for node in nodes:
        try:
            memory = stepping.finish(node[_STATE])
        except OWN_ERRORS as error:
            broken.append((_order(node), node[_WEIGHT], prefix, error))
            watched.end(node, None)
            continue
        watched.end(node, memory)
        yield Ending(memory, node[_WEIGHT], _order(node), node[_CROSSED])


_Node: TypeAlias = list[Any]
"""[state, number of orders, fewest inversions, the node before it in such an order, its record]."""
_STATE, _WEIGHT, _CROSSED, _BEFORE, _POSITION = range(5)
_Arrived: TypeAlias = tuple[int, ...]
"""Bits of the positions that have arrived, then of those that have arrived twice, and so on."""
_Level: TypeAlias = dict[Any, tuple[_Arrived, dict[Any, _Node]]]
_Broken: TypeAlias = tuple[Order, int, Any, BaseException]
"""(arrivals so far, number of orders, prefix, what was raised)."""


class _Watched:
    """Some orders, on their way through the merged states."""

    def __init__(self, orders: Sequence[Order]) -> None:
        self.orders = orders
        self.followed: dict[Order, Memory | None] = {}
        self._depth = 0
        self._here: dict[int, list[Order]] = {}
        self._next: dict[int, list[Order]] = {}
        """By the identity of a node, which stays the same while its level is made and left."""

    def start(self, node: _Node) -> None:
        self._here = {id(node): list(self.orders)}

    def advance(self) -> None:
        self._here, self._next = self._next, {}
        self._depth += 1

    def _list_movable(self, node: _Node, position: int) -> list[Order]:
        at = self._depth
        waiting = self._here.get(id(node), ())
        return [order for order in waiting if at < len(order) and order[at] == position]

    def move(self, node: _Node, position: int, reached: _Node) -> None:
        """Let the orders at a node whose next record this is continue."""
        if moving := self._list_movable(node, position):
            self._next.setdefault(id(reached), []).extend(moving)

    def lose(self, node: _Node, position: int) -> None:
        """Note the orders that the policy raised an error on."""
        self.followed.update(dict.fromkeys(self._list_movable(node, position)))

    def end(self, node: _Node, memory: Memory | None) -> None:
        """Note where the orders that are complete at a node have ended."""
        for order in self._here.get(id(node), ()):
            if len(order) == self._depth:
                self.followed[order] = memory


def _orders_to_watch(policy: Policy, arrivals: Arrivals) -> Sequence[Order]:
    """Choose orders to build as well: all, or drawn ones; none where a policy is built in."""
    if not own_source(policy):
        return ()
    orders = arrivals.orders(CHECKED)
    if orders is not None:
        return [order for order, _ in orders]
    return list(dict.fromkeys(arrivals.sample(index) for index in range(CHECKED)))


def _with_arrival(arrived: _Arrived, position: int) -> _Arrived:
    """Add one arrival of a position, which may have arrived before."""
    for number, bits in enumerate(arrived):
        if not bits >> position & 1:
            return (*arrived[:number], bits | 1 << position, *arrived[number + 1 :])
    return (*arrived, 1 << position)


def _order(node: _Node) -> Order:
    """Follow a node back to the start."""
    order: list[int] = []
    while node[_BEFORE] is not None:
        order.append(node[_POSITION])
        node = node[_BEFORE]
    return tuple(reversed(order))


def _failures(broken: Sequence[_Broken], arrivals: Arrivals) -> tuple[OrderFailure, ...]:
    """Complete some of the orders that raised an error."""
    failures = []
    for order, _, prefix, error in broken[:_FEW]:
        full = list(order)
        while moves := arrivals.process.moves(prefix):
            position, prefix = moves[0]
            full.append(position)
        failures.append(OrderFailure(tuple(full), None, f"{type(error).__name__}: {error}"))
    return tuple(failures)
