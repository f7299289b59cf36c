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

import copy
import json
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias

from routeprism.errors import ContractError, RoutePrismError
from routeprism.frames import OWN_ERRORS, describe_error
from routeprism.landscape._exploration import MemoryOutcome
from routeprism.landscape._landscape import Building, Landscape, OrderFailure
from routeprism.landscape._states import follow_orders, inspect_memory, sort_counts
from routeprism.landscape._trie_plan import TriePlan
from routeprism.orders import Arrivals, Order
from routeprism.policies import (
    Growable,
    Incremental,
    Memory,
    NamedPolicy,
    Policy,
    unwrap_policy,
)
from routeprism.policies.own import (
    OwnMemory,
    check_retained,
    close_memory,
    closing_memory,
    refuse_awaitable,
    retained_ids,
    wrap_asynchronous,
)
from routeprism.records import Pool, Record
from routeprism.routes import hash_state

Connect: TypeAlias = Callable[[Order], Policy]
"""Gives the policy that grows the memory with these arrivals, the last of which is new."""

_FEW = 5
"""The number of failing orders that are named."""


class _Growth(Protocol):
    """How a memory is grown by one arrival, and read, without building it from the start."""

    @property
    def description(self) -> str:
        """Describe in words how nodes share what was built."""

    def start(self) -> Any:
        """Return what an empty memory leaves."""

    def grow(self, policy: Policy, left: Any, arrived: tuple[Record, ...]) -> Any:
        """Return what the memory leaves after the last of these arrivals."""

    def key(self, left: Any) -> Hashable | None:
        """Name its canonical state; None if there is none, and nothing can be merged."""

    def read(self, policy: Policy, left: Any, arrived: tuple[Record, ...]) -> Memory:
        """Return the memory."""


@dataclass(frozen=True, slots=True)
class _StateGrowth:
    """For incremental policies: their states are immutable."""

    policy: Any
    description: str = "states of the policy"

    def start(self) -> Any:
        return self.policy.start()

    def grow(self, policy: Any, left: Any, arrived: tuple[Record, ...]) -> Any:
        before = self.policy.key(left)
        after = policy.step(left, arrived[-1])
        if self.policy.key(left) != before:
            raise ContractError(
                f"{self.policy.name}.step changed the state that it was given, so orders cannot "
                f"share it"
            )
        return after

    def key(self, left: Any) -> Hashable | None:
        name: Hashable = self.policy.key(left)
        return name

    def read(self, policy: Any, left: Any, arrived: tuple[Record, ...]) -> Memory:
        memory: Memory = policy.finish(left)
        return memory


@dataclass(frozen=True, slots=True)
class _SnapshotGrowth:
    """For policies that grow a stored memory: `grow(arrivals, snapshot, record)`."""

    policy: Any
    description: str = "snapshots of memories"

    def start(self) -> Any:
        return None

    def grow(self, policy: Any, left: Any, arrived: tuple[Record, ...]) -> Any:
        if left is None:
            memory = policy.build(arrived)
        else:
            self._check(policy, left, arrived[:-1])
            memory = policy.grow(arrived[:-1], json.loads(left), arrived[-1])
        with closing_memory(memory):
            return _write(memory.snapshot(), self.policy.name)

    def _check(self, policy: Any, left: str, arrived: tuple[Record, ...]) -> None:
        with closing_memory(policy.revive(arrived, json.loads(left))) as memory:
            _compare(self.policy.name, _write(memory.snapshot(), self.policy.name), left)

    def key(self, left: Any) -> Hashable | None:
        if left is None:
            return ""
        snapshot = json.loads(left)
        if isinstance(snapshot, dict):  # what was logged has no effect on what follows
            snapshot = {name: value for name, value in snapshot.items() if name != "log"}
        return json.dumps(snapshot, sort_keys=True)

    def read(self, policy: Any, left: Any, arrived: tuple[Record, ...]) -> Memory:
        memory: Memory = (
            policy.build(()) if left is None else policy.revive(arrived, _decode_state(left))
        )
        return memory


@dataclass(frozen=True, slots=True)
class _Left:
    """The snapshot or a copy of an object of a memory class, and its observed content."""

    content: Any
    """The JSON of its snapshot, or the object itself."""
    view: tuple[frozenset[str], str | None]
    """Retained ids and the signature of its state."""
    key: str | None
    """Its canonical state; None if it shows none."""


@dataclass(frozen=True, slots=True)
class _ObjectGrowth:
    """For memory classes with `add`: objects are restored from snapshots, or copied."""

    own: OwnMemory
    snapshots: bool

    @property
    def description(self) -> str:
        return "snapshots of objects" if self.snapshots else "copies of objects"

    def start(self) -> _Left:
        with self.own.begin() as memory:
            return self._leave(memory)

    def grow(self, policy: Policy, left: _Left, arrived: tuple[Record, ...]) -> _Left:
        memory = self._restore(left)
        try:
            refuse_awaitable(memory.add(arrived[-1]), self.own.name, "add")
            return self._leave(memory)
        finally:
            if self.snapshots:
                close_memory(memory)

    def key(self, left: _Left) -> Hashable | None:
        return left.key

    def read(self, policy: Policy, left: _Left, arrived: tuple[Record, ...]) -> Memory:
        return self.own.finish(self._restore(left), arrived)

    def _leave(self, memory: Any) -> _Left:
        content = _write(memory.snapshot(), self.own.name) if self.snapshots else memory
        canonical = getattr(memory, "canonical", None)
        if callable(canonical):
            key: str | None = _write(canonical(), self.own.name)
        else:
            key = content if self.snapshots else None
        return _Left(content, self._see(memory), key)

    def _see(self, memory: Any) -> tuple[frozenset[str], str | None]:
        state = getattr(memory, "state", None)
        signature = hash_state(state()) if callable(state) else None
        return retained_ids(memory, self.own.name), signature

    def trace(self, records: Sequence[Record]) -> Iterator[tuple[frozenset[str], str | None]]:
        """Yield what is seen of one object after each record, without restoring it."""
        with self.own.begin() as memory:
            for record in records:
                refuse_awaitable(memory.add(record), self.own.name, "add")
                yield self._see(memory)
            close_memory(memory)

    def _restore(self, left: _Left) -> Any:
        """Restore an object, and refuse one that differs from what was seen."""
        if self.snapshots:
            memory = self.own.factory()
            revived = memory.revive(json.loads(left.content))
            memory = memory if revived is None else revived
            _compare(self.own.name, _write(memory.snapshot(), self.own.name), left.content)
        else:
            memory = copy.deepcopy(left.content)
        _compare(self.own.name, self._see(memory), left.view)
        return memory


def _write(snapshot: Any, name: str) -> str:
    try:
        return json.dumps(snapshot, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise ContractError(f"a snapshot of {name} is not plain JSON: {error}") from error


def _decode_state(left: str) -> Any:
    return json.loads(left)


def _compare(name: str, restored: object, before: object) -> None:
    if restored != before:
        raise ContractError(
            f"{name} does not restore faithfully: a memory that was restored from its snapshot "
            f"differs from the memory that the snapshot was taken of. Its orders cannot share "
            f"what was built; complete snapshot() and revive(), or pass method=replayed"
        )


def _find_growth(policy: Policy) -> _Growth | None:
    """Choose how a policy's memories are grown; None if each must be built from the start."""
    if isinstance(policy, Incremental):
        return _StateGrowth(policy)
    inner = policy
    while isinstance(inner, NamedPolicy):
        inner = inner.inner
    if isinstance(inner, Incremental):
        return _StateGrowth(inner)
    if isinstance(inner, Growable):
        return _SnapshotGrowth(inner)
    inner = unwrap_policy(policy) if hasattr(policy, "allowance") else inner
    return _grow_objects(inner) if isinstance(inner, OwnMemory) else None


def _grow_objects(own: OwnMemory) -> _ObjectGrowth | None:
    with own.begin() as memory:
        if all(callable(getattr(memory, name, None)) for name in ("snapshot", "revive")):
            close_memory(memory)
            return _ObjectGrowth(own, snapshots=True)
        try:
            copy.deepcopy(memory)
        except Exception:  # locks, connections and files cannot be copied
            close_memory(memory)
            return None
        close_memory(memory)
    return _ObjectGrowth(own, snapshots=False)


def can_share(policy: Policy) -> bool:
    """Whether orders of this policy can share their beginnings."""
    return _find_growth(policy) is not None


@dataclass(eq=False, slots=True)
class Node:
    """A memory after some arrivals."""

    order: Order
    """The arrivals by which it was built."""
    left: Any
    """The data that restore it; None where memories are built from the start."""
    parent: Node | None = None
    children: dict[int, Node | BaseException] = field(default_factory=dict)
    retained: frozenset[str] | None = None
    shown: dict[str, Any] = field(default_factory=dict)
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
        count: Callable[[int], None] | None = None,
        queries: Sequence[str] = (),
        store: NodeStore | None = None,
    ) -> None:
        self.policy, self.pool = policy, pool
        self._store = store
        self._queries = queries
        self._connect = connect or (lambda order: policy)
        self._count = count or (lambda adds: None)
        self.growth = _find_growth(policy)
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

    @property
    def description(self) -> str:
        """How orders share what was built; empty if they cannot."""
        return "" if self.growth is None else self.growth.description

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
        arrived = tuple(self.pool.records[place] for place in node.order)
        if self.growth is None:
            self.adds += len(arrived)
            built: Memory = wrap_asynchronous(self._connect(node.order).build(arrived))
            return built
        return self.growth.read(self._inner(node.order), node.left, arrived)

    def retained(self, node: Node) -> frozenset[str]:
        """Return the ids that the memory of a node retains."""
        if node.retained is None:
            with closing_memory(self.read(node)) as memory:
                node.retained = check_retained(memory, self.policy.name, self.pool)
                node.shown.update((query, memory.expose(query)) for query in self._queries)
        return node.retained

    def _inner(self, order: Order) -> Policy:
        policy = self._connect(order)
        while isinstance(policy, NamedPolicy):
            policy = policy.inner
        return policy

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
            self._count(1)  # a spending limit may refuse it
            arrived = tuple(self.pool.records[place] for place in order)
            try:
                left = self.growth.grow(self._inner(order), node.left, arrived)
            except RoutePrismError:
                raise
            except OWN_ERRORS as error:
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


@dataclass(frozen=True, slots=True)
class _NodeMemory:
    """A memory that is restored only if more is read than its retained records."""

    trie: ArrivalTrie
    node: Node

    def retained(self) -> frozenset[str]:
        return self.trie.retained(self.node)

    def state(self) -> Any:
        with closing_memory(self.trie.read(self.node)) as memory:
            return memory.state()

    def expose(self, query: str, /) -> Any:
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


def _find_commutation(policy: Policy) -> Callable[[Record, Record], object] | None:
    """Find a function that declares which records commute, wherever they arrive."""
    inner = unwrap_policy(policy)
    source = inner.factory if isinstance(inner, OwnMemory) else inner
    commutes = getattr(source, "commutes", None)
    return commutes if callable(commutes) else None


def explore_trie(
    trie: ArrivalTrie, arrivals: Arrivals, plan: TriePlan, outcome: MemoryOutcome | None = None
) -> Landscape:
    """Build the orders of a plan, and give the distribution of what they retain.

    Every order, or the drawn orders of the plan; drawn orders have intervals. With `outcome`, the
    distribution of that value is given as well.
    """
    pool, before = trie.pool, trie.reported
    source = tuple(range(len(pool)))
    try:
        forward = trie.retained(trie.follow(source))
    except RoutePrismError:
        raise
    except OWN_ERRORS as error:
        raise describe_error(error, trie.policy.name, user=pool.user, route="source") from None
    try:
        reverse = trie.retained(trie.follow(source[::-1]))
    except RoutePrismError:
        raise
    except OWN_ERRORS:
        reverse = None  # met again, and reported, among the orders
    empty = Landscape(
        trie.policy.name, arrivals.name, pool.user, pool.ids, "sampled", 0, {}, forward, reverse
    )
    if plan.complete:
        landscape = _build_every(trie, arrivals, empty, outcome)
    else:
        landscape = _build(trie, plan, empty, outcome)
    trie.reported = trie.adds
    building = Building(
        trie.adds - before, plan.adds, plan.separate, plan.covered, trie.description, trie.merges
    )
    retained = sort_counts(dict(landscape.retained), pool.ids)
    return replace(landscape, retained=retained, building=building, note=_describe(plan, building))


def _build_every(
    trie: ArrivalTrie, arrivals: Arrivals, empty: Landscape, outcome: MemoryOutcome | None
) -> Landscape:
    """Build every order, and weigh what each node retains by the orders that end in it."""
    graph = follow_orders(TriePolicy(trie), trie.pool, arrivals)
    if graph is None:
        raise ContractError(f"the orders of {arrivals.name} cannot be followed at once")
    retained: dict[frozenset[str], int] = {}
    examples: dict[frozenset[str], Order] = {}
    outcomes: dict[Hashable, int] = {}
    for ending in graph.endings:
        ids = ending.memory.retained()
        retained[ids] = retained.get(ids, 0) + ending.weight
        examples.setdefault(ids, ending.order)
        if outcome is not None:
            value = outcome(ending.memory)
            outcomes[value] = outcomes.get(value, 0) + ending.weight
    return replace(
        empty,
        method="shared",
        orders=sum(retained.values()) + graph.failed,
        retained=retained,
        failed=graph.failed,
        failures=graph.failures,
        examples=examples,
        outcomes=outcomes,
    )


def _build(
    trie: ArrivalTrie, plan: TriePlan, empty: Landscape, outcome: MemoryOutcome | None
) -> Landscape:
    """Build the drawn orders of a plan."""
    retained: dict[frozenset[str], int] = {}
    outcomes: dict[Hashable, int] = {}
    failures: list[OrderFailure] = []
    failed = 0
    stages = plan.stages
    first, second = (1, 1) if stages is None else stages.weights
    for index, order in enumerate(plan.orders):
        weight = first if stages is not None and index < stages.pilot else second
        try:
            node = trie.follow(order)
            ids = trie.retained(node)
            value = None if outcome is None else outcome(_NodeMemory(trie, node))
        except RoutePrismError:
            raise
        except OWN_ERRORS as error:
            failed += 1
            if len(failures) < _FEW:
                failures.append(OrderFailure(order, index, f"{type(error).__name__}: {error}"))
            continue
        retained[ids] = retained.get(ids, 0) + weight
        if outcome is not None:
            outcomes[value] = outcomes.get(value, 0) + weight
    return replace(
        empty,
        orders=len(plan.orders),
        retained=retained,
        failed=failed,
        failures=tuple(failures),
        outcomes=outcomes,
        weights=0 if stages is None else sum(retained.values()),
        effective=0.0 if stages is None else stages.effective,
    )


def _describe(plan: TriePlan, building: Building) -> str:
    """Describe which share of the orders was built, with how many adds, and what was shared."""
    if plan.complete:
        share = "every order"
    elif plan.covered is None:
        share = f"{len(plan.orders):,} drawn orders of too many to count"
    else:
        share = f"{len(plan.orders):,} drawn orders, {plan.covered:.2%} of all,"
    if not building.shared:
        return (
            f"{share} took {building.adds:,} adds: the memory has no snapshot() with revive(), and "
            f"cannot be copied, so each order was built from the start"
        )
    return (
        f"{share} took {building.adds:,} adds instead of {plan.separate:,}, by sharing "
        f"{building.shared}"
    )


def check_restoration(trie: ArrivalTrie) -> None:
    """Build source order in one go, and refuse a trie that has a different memory for it.

    A snapshot may omit what only later arrivals show. This takes one more add for each record.
    Objects of memory classes are compared after each of them.
    """
    pool = trie.pool
    order = tuple(range(len(pool)))
    if isinstance(trie.growth, _ObjectGrowth):
        for number, view in enumerate(trie.growth.trace(pool.records), start=1):
            _compare(trie.policy.name, trie.follow(order[:number]).left.view, view)
        return

    def see(memory: Memory) -> tuple[frozenset[str], str | None]:
        return check_retained(memory, trie.policy.name, pool), hash_state(memory.state())

    whole = inspect_memory(trie.policy, pool, order, see)
    with closing_memory(trie.read(trie.follow(order))) as memory:
        _compare(trie.policy.name, see(memory), whole)
