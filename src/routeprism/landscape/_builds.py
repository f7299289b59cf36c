"""The memories of a pool in many orders, each built at most once for what it retains.

Exploring orders, finding the worst one and shrinking a reordering look at many of the same orders.
They share one `OrderBuilds`: what an order retains is remembered, states are merged once, and what
all orders together were shown to retain proves that some searches are unnecessary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from routeprism.frames import OWN_ERRORS
from routeprism.landscape._states import (
    StateGraph,
    compare_builds,
    find_wrong_states,
    follow_orders,
    raise_refusal,
)
from routeprism.orders import Arrivals, Order, every_permutation
from routeprism.policies import Memory, Policy, is_deterministic
from routeprism.policies.own import check_retained, open_memory, retained_ids
from routeprism.records import Pool
from routeprism.routes import Disagreement

__all__ = ["OrderBuilds", "RetainedValue"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RetainedValue(Generic[T]):
    """A value of a memory that depends on nothing but the records it retains."""

    function: Callable[[frozenset[str]], T]

    def __call__(self, memory: Memory) -> T:
        return self.function(retained_ids(memory))


class OrderBuilds:
    """Builds the orders of a pool under one policy, and remembers what was learned from them."""

    def __init__(self, policy: Policy, pool: Pool, *, keeps_graphs: bool = True) -> None:
        self.policy, self.pool = policy, pool
        self.orders = 0
        """The number of orders behind `every`."""
        self.every: frozenset[frozenset[str]] | None = None
        """What some order retains; None unless all orders were looked at and none failed."""
        self.built = 0
        """How many memories were built."""
        self._keeps_graphs = keeps_graphs
        self._chancy: bool | None = None
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
