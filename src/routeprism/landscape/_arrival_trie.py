"""A trie of arrivals: every beginning of an order is built once, from what its parent left.

Building a memory with a model costs money for each arrival, so orders share their beginnings. A
node of the trie is a memory after some arrivals; a child is grown from a restored copy of it by one
`add`. Nodes that received the same records and have equal canonical states are one node: the
arrivals by which they differ commute, and no order through the second one is built again. Records
that a memory declares to commute are put into source order first, so that equivalent orders are
not even compared (sleep sets: Godefroid, Partial-order methods for the verification of concurrent
systems, 1996).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, TypeAlias

from routeprism.errors import ContractError, RouteError
from routeprism.frames import OWN_ERRORS
from routeprism.landscape._exploration import MemoryOutcome, Survey
from routeprism.landscape._growth import find_growth, unwrap_names
from routeprism.landscape._landscape import Building, Landscape
from routeprism.landscape._states import OrderBuilds, inspect_memory, raise_refusal, sort_counts
from routeprism.landscape._trie_plan import TriePlan
from routeprism.orders import Arrivals, Order
from routeprism.policies import Exposure, JsonValue, Memory, Policy, unwrap_policy
from routeprism.policies.own import (
    OwnMemory,
    check_retained,
    closing_memory,
    wrap_asynchronous,
)
from routeprism.records import Pool, Record
from routeprism.routes import hash_state

Connect: TypeAlias = Callable[[Order], Policy]
"""Gives the policy that grows the memory with these arrivals, the last of which is new."""


@dataclass(eq=False, slots=True)
class Node:
    """A memory after some arrivals."""

    order: Order
    """The arrivals by which it was built."""
    left: Any
    """The data that restore it; None where memories are built from the start."""
    parent: Node | None = None
    children: dict[int, Node | BaseException] = field(default_factory=dict)
    retained: frozenset[str] | BaseException | None = None
    """What its memory retains, or the error that reading it raised."""
    shown: dict[str, Exposure] = field(default_factory=dict)
    """Question → what its memory exposed; read together with what it retains."""


class NodeStore(Protocol):
    """Keeps what built memories leave, so that a second trie of the same pool need not add."""

    def get(self, order: Order) -> Any:
        """Return what the memory with these arrivals left; None if it is not kept."""

    def put(self, order: Order, left: Any) -> None:
        """Keep what a memory left."""


class ArrivalTrie:
    """The memories of one pool under one policy, each built once."""

    def __init__(
        self,
        policy: Policy,
        pool: Pool,
        *,
        connect: Connect | None = None,
        count: Callable[[], None] | None = None,
        queries: Sequence[str] = (),
        store: NodeStore | None = None,
    ) -> None:
        self.policy, self.pool = policy, pool
        self._store = store
        self._queries = queries
        self.connect = connect or (lambda order: policy)
        self.count = count or (lambda: None)
        """Called before each add; a spending limit may refuse it."""
        self.growth = find_growth(policy)
        self._commutes = _find_commutation(policy)
        self._places = {record.id: place for place, record in enumerate(pool.records)}
        self._merged: dict[Hashable, Node] = {}
        self.adds = 0
        """How often a record was added to a memory."""
        self.reported = 0
        """How many of these adds earlier landscapes have reported."""
        self.merges = 0
        """How many nodes were found to be another one: their last arrivals commute."""
        self.root = Node((), None if self.growth is None else self.growth.start())

    def step(self, node: Node, position: int) -> Node:
        """Return the memory after one more arrival; grow it if it is not there yet."""
        child = node.children.get(position)
        if child is None:
            child = node.children[position] = self._reach(node, position)
        if isinstance(child, BaseException):
            raise child
        return child

    def follow(self, order: Order) -> Node:
        """Return the memory after all arrivals of an order."""
        node = self.root
        for position in order:
            node = self.step(node, position)
        return node

    def read(self, node: Node) -> Memory:
        """Return the memory of a node; it is restored, and nothing is added to it."""
        arrived = self._list_records(node.order)
        if self.growth is None:
            built: Memory = wrap_asynchronous(self.connect(node.order).build(arrived))
            return built
        return self.growth.read(unwrap_names(self.connect(node.order)), node.left, arrived)

    def retained(self, node: Node) -> frozenset[str]:
        """Return the ids that the memory of a node retains; raise the error of reading it."""
        if node.retained is None:
            try:
                node.retained, node.shown = self._read_once(node)
            except OWN_ERRORS as error:
                raise_refusal(error)
                node.retained = error
        if isinstance(node.retained, BaseException):
            raise node.retained
        return node.retained

    def _read_once(self, node: Node) -> tuple[frozenset[str], dict[str, Exposure]]:
        """Read a memory; one that cannot be restored leaves nothing else, so that is kept."""
        store = None
        if self.growth is None:
            self.adds += len(node.order)
            store = self._store
        reading = None if store is None else store.get(node.order)
        if reading is None:
            with closing_memory(self.read(node)) as memory:
                ids = check_retained(memory, self.policy.name, self.pool)
                reading = ids, {query: memory.expose(query) for query in self._queries}
            if store is not None:
                store.put(node.order, reading)
        result: tuple[frozenset[str], dict[str, Exposure]] = reading
        return result

    def _list_records(self, order: Order) -> tuple[Record, ...]:
        return tuple(self.pool.records[place] for place in order)

    def _reach(self, node: Node, position: int) -> Node | BaseException:
        """Find the child among the nodes that are built, or build it."""
        last = node.order[-1] if node.order else None
        if last is not None and position < last and self._commute(last, position):
            assert node.parent is not None  # noqa: S101 (a node with arrivals has one)
            return self.step(self.step(node.parent, position), last)
        order = (*node.order, position)
        if self.growth is None:
            return Node(order, None, node)
        left = None if self._store is None else self._store.get(order)
        if left is None:
            self.count()
            try:
                policy = unwrap_names(self.connect(order))
                left = self.growth.grow(policy, node.left, self._list_records(order))
            except OWN_ERRORS as error:
                raise_refusal(error)
                self.adds += 1
                return error
            if self._store is not None:
                self._store.put(order, left)
        self.adds += 1
        child = Node(order, left, node)
        key = self.growth.key(left)
        if key is None:
            return child
        same = self._merged.setdefault((tuple(sorted(order)), key), child)
        self.merges += same is not child
        return same

    def _commute(self, first: int, second: int) -> bool:
        records = self.pool.records
        return self._commutes is not None and bool(self._commutes(records[first], records[second]))

    def find_place(self, record: Record) -> int:
        """Return a record's source position."""
        return self._places[record.id]


def _find_commutation(policy: Policy) -> Callable[[Record, Record], object] | None:
    """Find a function that declares which records commute, wherever they arrive."""
    inner = unwrap_policy(policy)
    source = inner.factory if isinstance(inner, OwnMemory) else inner
    commutes = getattr(source, "commutes", None)
    return commutes if callable(commutes) else None


@dataclass(frozen=True, slots=True)
class _NodeMemory:
    """A memory that is restored only if more is read than its retained records."""

    trie: ArrivalTrie
    node: Node

    def retained(self) -> frozenset[str]:
        return self.trie.retained(self.node)

    def state(self) -> JsonValue:
        with closing_memory(self.trie.read(self.node)) as memory:
            return memory.state()

    def expose(self, query: str, /) -> Exposure:
        if query not in self.node.shown:
            with closing_memory(self.trie.read(self.node)) as memory:
                self.node.shown[query] = memory.expose(query)
        return self.node.shown[query]


@dataclass(frozen=True, slots=True)
class TriePolicy:
    """A trie as an incremental policy: its states are nodes, and building one again is free."""

    trie: ArrivalTrie
    interface: Any = None
    """The interface of the policy behind it, if it has one."""

    @property
    def name(self) -> str:
        """The name of the policy behind it."""
        return self.trie.policy.name

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Return the memory after these arrivals."""
        node = self.trie.follow(tuple(self.trie.find_place(record) for record in arrivals))
        return self.finish(node)

    def start(self) -> Node:
        """Return the node before any arrival."""
        return self.trie.root

    def step(self, node: Node, record: Record, /) -> Node:
        """Return the node after one more arrival."""
        return self.trie.step(node, self.trie.find_place(record))

    def finish(self, node: Node, /) -> Memory:
        """Return the memory of a node, restored when it is read."""
        return _NodeMemory(self.trie, node)

    def key(self, node: Node, /) -> Hashable:
        """Name a node; nodes with equal canonical states are one."""
        return id(node)


def explore_trie(
    trie: ArrivalTrie, arrivals: Arrivals, plan: TriePlan, outcome: MemoryOutcome | None = None
) -> Landscape:
    """Build the orders of a plan, and give the distribution of what they retain.

    Every order, or the drawn orders of the plan; drawn orders have intervals. With `outcome`, the
    distribution of that value is given as well.
    """
    before = trie.reported
    builds = OrderBuilds(TriePolicy(trie), trie.pool, keeps_graphs=False)
    survey = Survey(builds, arrivals, outcome)
    if plan.complete:
        landscape = survey.merge(method="replayed" if trie.growth is None else "shared")
        if not isinstance(landscape, Landscape):
            raise ContractError(f"the orders of {arrivals.name} cannot be followed at once")
    else:
        landscape = survey.draw(plan.orders, plan.stages)
    trie.reported = trie.adds
    description = "" if trie.growth is None else trie.growth.description
    building = Building(
        trie.adds - before, plan.adds, plan.separate, plan.covered, description, trie.merges
    )
    retained = sort_counts(dict(landscape.retained), trie.pool.ids)
    return replace(landscape, retained=retained, building=building, note=_describe(plan, building))


def _describe(plan: TriePlan, building: Building) -> str:
    """Describe which share of the orders was built, with how many adds, and what was shared."""
    if plan.complete:
        share = "every order"
    elif plan.covered is None:
        share = f"{len(plan.orders):,} drawn orders of too many to count"
    else:
        share = f"{len(plan.orders):,} drawn orders, a fraction of {plan.covered:.4f} of all,"
    if not building.shared:
        return (
            f"{share} took {building.adds:,} adds: the memory has no snapshot() with revive(), and "
            f"cannot be copied, so each order was built from the start"
        )
    return (
        f"{share} took {building.adds:,} adds instead of {plan.separate:,}, by sharing "
        f"{building.shared}"
    )


def check_restoration(trie: ArrivalTrie, orders: Sequence[Order], queries: Sequence[str]) -> None:
    """Build orders in one go, and refuse a trie that has a different memory for one of them.

    A snapshot may omit what only later arrivals show, and equal states may have different futures.
    So this comes after the orders that share their beginnings, and takes one more add for each
    record. Merged memories may differ in their state, but not in what they keep and show.
    """
    for number, order in enumerate(orders, 1):
        whole, view = _see_whole(trie, order, queries), _see_shared(trie, order, queries)
        if _is_same(whole, view):
            continue
        repetition = _see_whole(trie, order, queries)
        if not _is_same(whole, repetition):
            raise ContractError(
                f"{trie.policy.name} gives different memories when the same order "
                f"{_name_order(order)} of user '{trie.pool.user}' is built twice, so shared "
                f"beginnings cannot be checked; declare deterministic = False, or pass --method "
                f"sampled"
            )
        raise ContractError(
            f"{trie.policy.name} does not restore faithfully: in the order {_name_order(order)} of "
            f"user '{trie.pool.user}', {_describe_difference(whole, view)} when it is built in one "
            f"go than by sharing {trie.growth.description if trie.growth else 'nothing'} "
            f"({number} of {len(orders)} orders of this pool checked). Complete snapshot() and "
            f"revive() or __deepcopy__(), and let equal states (key, canonical, commutes) promise "
            f"equal futures, or pass --method replayed"
        )


@dataclass(frozen=True, slots=True)
class _WholeView:
    """What is seen of the memory of an order."""

    retained: frozenset[str]
    shown: tuple[object, ...]
    """What each question is shown."""
    signature: str | None
    """The signature of its state; None where it may differ."""


_Outcome: TypeAlias = "_WholeView | type[BaseException] | None"
"""What is seen, the error of a memory, or None if a system outside failed."""


def _is_same(first: _Outcome, second: _Outcome) -> bool:
    if first is None or second is None:
        return True
    if isinstance(first, _WholeView) and isinstance(second, _WholeView):
        signatures = {first.signature, second.signature} - {None}
        same = (first.retained, first.shown) == (second.retained, second.shown)
        return same and len(signatures) < 2
    return first == second


def _see_whole(trie: ArrivalTrie, order: Order, queries: Sequence[str]) -> _Outcome:
    """Build an order in one go, which a spending limit may refuse."""
    policy = unwrap_names(trie.connect(order))
    if isinstance(policy, OwnMemory):
        policy = replace(policy, tick=None)
    for _ in order:
        trie.count()
    pool = trie.pool
    return _observe(lambda: inspect_memory(policy, pool, order, partial(_see, trie, queries)))


def _see_shared(trie: ArrivalTrie, order: Order, queries: Sequence[str]) -> _Outcome:
    def see() -> _WholeView:
        node = trie.follow(order)
        with closing_memory(trie.read(node)) as memory:
            view = _see(trie, queries, memory)
        view = replace(view, retained=trie.retained(node))  # which is what was counted
        return view if node.order == order else replace(view, signature=None)

    return _observe(see)


def _see(trie: ArrivalTrie, queries: Sequence[str], memory: Memory) -> _WholeView:
    retained = check_retained(memory, trie.policy.name, trie.pool)
    exposed = tuple(memory.expose(query).blocks for query in queries)
    return _WholeView(retained, exposed, hash_state(memory.state()))


def _observe(see: Callable[[], _WholeView]) -> _Outcome:
    try:
        return see()
    except OWN_ERRORS as error:
        raise_refusal(error)
        return None if isinstance(error, RouteError) else type(error)


def _describe_difference(whole: _Outcome, view: _Outcome) -> str:
    """Describe what of a memory differs."""
    if not isinstance(whole, _WholeView) or not isinstance(view, _WholeView):
        return "it fails differently"
    if whole.retained != view.retained:
        return "it retains other records"
    return "it shows a question other text" if whole.shown != view.shown else "its state differs"


def _name_order(order: Order) -> str:
    return "-".join(map(str, order))
