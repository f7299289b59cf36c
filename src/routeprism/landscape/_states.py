"""The memories of a pool in many orders: built order by order, or merged state by state.

States that were reached by the same arrivals and have equal keys promise equal futures, so they are
merged, and n! orders need no n! builds. Builds of single orders check that promise.

Exploring orders, finding the worst one and shrinking a reordering look at many of the same orders.
They share one `OrderBuilds`: what an order retains is remembered, states are merged once, and what
all orders together were shown to retain proves that some searches are unnecessary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from routeprism.errors import RouteError, RoutePrismError
from routeprism.frames import OWN_ERRORS
from routeprism.landscape._landscape import OrderFailure
from routeprism.orders import Arrivals, Order, Prefix, completions, every_permutation
from routeprism.policies import (
    Incremental,
    Memory,
    Policy,
    is_deterministic,
    own_source,
    prepare_policy,
)
from routeprism.policies.own import check_retained, open_memory, retained_ids
from routeprism.records import Pool
from routeprism.routes import Disagreement, compare_replays, hash_state

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
                        raise_refusal(error)
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
            raise_refusal(error)
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


@dataclass(frozen=True, slots=True)
class RetainedValue(Generic[T]):
    """A value of a memory that depends on nothing but the records it retains."""

    function: Callable[[frozenset[str]], T]

    def __call__(self, memory: Memory) -> T:
        return self.function(retained_ids(memory))


class OrderBuilds:
    """Builds the orders of a pool under one policy, and remembers what was learned from them."""

    def __init__(
        self,
        policy: Policy,
        pool: Pool,
        *,
        keeps_graphs: bool = True,
        chancy: bool | None = None,
    ) -> None:
        self.policy, self.pool = policy, pool
        self.orders = 0
        """The number of orders behind `every`."""
        self.every: frozenset[frozenset[str]] | None = None
        """What some order retains; None unless all orders were looked at and none failed."""
        self.built = 0
        """How many memories were built."""
        self._keeps_graphs = keeps_graphs
        self._chancy = chancy
        self._graphs: dict[str, tuple[int, StateGraph | Disagreement | None]] = {}
        self._values: dict[tuple[object, Order], Any] = {}

    @property
    def chancy(self) -> bool:
        """Whether the same arrivals give different memories: declared, or seen by building."""
        if self._chancy is None:
            order = tuple(range(len(self.pool)))
            self._chancy = not is_deterministic(self.policy) or not all(
                compare_builds(self.policy, self.pool, [order, order[::-1]])
            )
        return self._chancy

    def retained(self, order: Order) -> frozenset[str]:
        """Return what an order retains; raise the error that building it raised."""
        return self.read(order, _RETAINED_IDS)

    def prepare(self, order: Order, values: Sequence[Callable[[Memory], Any]]) -> None:
        """Read several values of an order from one memory, unless all of them are known."""
        missing = [name for value in values if ((name := _name(value)), order) not in self._values]
        if missing:
            self._build(order, missing)

    def read(self, order: Order, value: Callable[[Memory], T]) -> T:
        """Return a value of an order; raise the error that building or reading it raised."""
        self.prepare(order, [value])
        stored = self._values[_name(value), order]
        if isinstance(stored, _Failure):
            raise stored.error
        result: T = value.function(stored) if isinstance(value, RetainedValue) else stored
        return result

    def try_read(self, order: Order, value: Callable[[Memory], T], missing: T) -> T:
        """Return a value of an order, or `missing` if the policy raises an error on it."""
        try:
            return self.read(order, value)
        except RoutePrismError:
            raise
        except OWN_ERRORS:
            return missing

    def _build(self, order: Order, missing: Sequence[object]) -> None:
        """Build an order once; remember its retained set and the values asked for."""
        self.built += 1
        measures = dict.fromkeys((_RETAINED, *missing))
        try:
            with open_memory(self.policy, self.pool, order) as memory:
                self._see(order, measures, memory)
        except OWN_ERRORS as error:  # building failed, or closing did
            raise_refusal(error)
            for name in measures:
                self._values[name, order] = _Failure(error)

    def _see(self, order: Order, measures: Mapping[object, None], memory: Memory) -> None:
        for name in measures:
            try:
                self._values[name, order] = self._read_value(name, memory)
            except OWN_ERRORS as error:
                raise_refusal(error)
                self._values[name, order] = _Failure(error)

    def _read_value(self, name: object, memory: Memory) -> object:
        if name is _RETAINED:
            return check_retained(memory, self.policy.name, self.pool)
        assert callable(name)  # noqa: S101 (every other name is a function of a memory)
        return name(memory)

    def merge(self, arrivals: Arrivals, limit: int) -> StateGraph | Disagreement | None:
        """Merge the states of an arrival model once; None beyond the limit.

        A disagreement is that of a user's own policy whose merged states differ from its memories.
        """
        name = _name_arrivals(arrivals)
        existing = self._graphs.get(name)
        if existing is not None and existing[0] == limit:
            return existing[1]
        graph = follow_orders(self.policy, self.pool, arrivals, limit=limit)
        wrong = None if graph is None else find_wrong_states(self.policy, self.pool, graph)
        result = graph if wrong is None else wrong
        if self._keeps_graphs or graph is None:
            self._graphs[name] = (limit, result)
        return result

    def graph(self, arrivals: Arrivals, limit: int) -> StateGraph | None:
        """Return the merged states of an arrival model where they can be used."""
        merged = self.merge(arrivals, limit)
        return merged if isinstance(merged, StateGraph) else None

    def has_graph(self, arrivals: Arrivals) -> bool:
        """Whether usable merged states of an arrival model are there already."""
        return isinstance(self._graphs.get(_name_arrivals(arrivals), (0, None))[1], StateGraph)

    def learn(self, retained: Iterable[frozenset[str]], orders: int, *, complete: bool) -> None:
        """Remember what all orders retain, if all of them were looked at and none failed."""
        if complete:
            self.every, self.orders = frozenset(retained), orders

    def values_of_all(self, value: Callable[[Memory], T]) -> frozenset[T] | None:
        """Return every value that some order has, where a proof exists; None elsewhere."""
        if self.every is None or not isinstance(value, RetainedValue):
            return None
        return frozenset(map(value.function, self.every))


@dataclass(frozen=True, slots=True)
class _Failure:
    """The error of an order that cannot be built."""

    error: BaseException


_RETAINED = "retained"
"""The name under which the retained set of an order is remembered."""


_RETAINED_IDS: RetainedValue[frozenset[str]] = RetainedValue(frozenset)


def _name(value: Callable[[Memory], Any]) -> object:
    """Name what is remembered of an order for a value."""
    return _RETAINED if isinstance(value, RetainedValue) else value


def _name_arrivals(arrivals: Arrivals) -> str:
    """Name the orders of a model; all models that allow every order have the same."""
    return "every order" if every_permutation(arrivals) else arrivals.name
