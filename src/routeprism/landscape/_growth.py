"""How a memory grows by one arrival from what its parent in a trie left, and is read.

What a memory leaves is a state, the JSON of a snapshot, or a copy of an object. A memory that is
restored from it must equal the one that left it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Protocol

from routeprism.errors import ContractError
from routeprism.policies import (
    AwaitedMemory,
    DeclaredCalls,
    Growable,
    Incremental,
    Memory,
    NamedPolicy,
    Policy,
    find_class,
)
from routeprism.policies.own import (
    OwnMemory,
    close_memory,
    closing_memory,
    refuse_awaitable,
    retained_ids,
    wrap_asynchronous,
)
from routeprism.records import Record
from routeprism.routes import hash_state


class Growth(Protocol):
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
        name = self.policy.name
        if left is None:
            memory = policy.build(arrived)
        else:
            with closing_memory(self.read(policy, left, arrived[:-1])) as restored:
                compare_restored(name, _write(restored.snapshot(), name), left)  # type: ignore[attr-defined]
            memory = policy.grow(arrived[:-1], json.loads(left), arrived[-1])
        with closing_memory(memory):
            return _write(memory.snapshot(), name)

    def key(self, left: Any) -> Hashable | None:
        if left is None:
            return ""
        snapshot = json.loads(left)
        if isinstance(snapshot, dict):  # what was logged has no effect on what follows
            snapshot = {name: value for name, value in snapshot.items() if name != "log"}
        return json.dumps(snapshot, sort_keys=True)

    def read(self, policy: Any, left: Any, arrived: tuple[Record, ...]) -> Memory:
        memory: Memory = (
            policy.build(()) if left is None else policy.revive(arrived, json.loads(left))
        )
        return memory


View = tuple[frozenset[str], str | None]
"""What is seen of a memory: its retained ids, and the signature of its state."""


@dataclass(frozen=True, slots=True)
class _Left:
    """What an object of a memory class leaves: its snapshot or a copy, and what was seen of it."""

    content: Any
    """The JSON of its snapshot, or the object itself."""
    view: View
    key: str | None
    """Its canonical state; None if it shows none."""


@dataclass(frozen=True, slots=True)
class ObjectGrowth:
    """For memory classes with `add`: objects are restored from snapshots, or copied."""

    own: OwnMemory
    snapshots: bool

    @property
    def description(self) -> str:
        """Describe in words how nodes share what was built."""
        return "snapshots of objects" if self.snapshots else "copies of objects"

    def start(self) -> _Left:
        """Return what an empty memory leaves."""
        with self.own.begin() as memory:
            left = self._leave(memory)
            self._put_aside(memory)
            return left

    def grow(self, policy: Policy, left: _Left, arrived: tuple[Record, ...]) -> _Left:
        """Return what the memory leaves after the last of these arrivals."""
        memory = self._restore(left)
        try:
            refuse_awaitable(memory.add(arrived[-1]), self.own.name, "add")
            return self._leave(memory)
        finally:
            self._put_aside(memory)

    def key(self, left: _Left) -> Hashable | None:
        """Name its canonical state; None if there is none, and nothing can be merged."""
        return left.key

    def read(self, policy: Policy, left: _Left, arrived: tuple[Record, ...]) -> Memory:
        """Return the memory."""
        return self.own.finish(self._restore(left), arrived)

    def _leave(self, memory: Any) -> _Left:
        content = (
            _write(memory.snapshot(), self.own.name) if self.snapshots else _own_object(memory)
        )
        canonical = getattr(memory, "canonical", None)
        if callable(canonical):
            key: str | None = _write(canonical(), self.own.name)
        else:
            key = content if self.snapshots else None
        return _Left(content, self._see(memory), key)

    def _put_aside(self, memory: Any) -> None:
        """Close an object that left a snapshot; an object that is copied stays open."""
        if self.snapshots:
            close_memory(memory)
        elif isinstance(memory, AwaitedMemory):
            memory.close_loop()

    def _see(self, memory: Any) -> View:
        state = getattr(memory, "state", None)
        signature = hash_state(state()) if callable(state) else None
        return retained_ids(memory, self.own.name), signature

    def _restore(self, left: _Left) -> Any:
        """Restore an object, and refuse one that differs from what was seen."""
        if self.snapshots:
            memory = wrap_asynchronous(self.own.factory())
            revived = memory.revive(json.loads(left.content))
            if revived is not None and revived is not _own_object(memory):
                memory = wrap_asynchronous(revived)
            compare_restored(self.own.name, _write(memory.snapshot(), self.own.name), left.content)
        else:
            memory = wrap_asynchronous(copy.deepcopy(left.content))
        compare_restored(self.own.name, self._see(memory), left.view, description=self.description)
        return memory


def _own_object(memory: Any) -> Any:
    """Return the user's own object, without the event loop on which its methods are awaited."""
    return memory.inner if isinstance(memory, AwaitedMemory) else memory


def _write(snapshot: Any, name: str) -> str:
    try:
        return json.dumps(snapshot, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise ContractError(f"a snapshot of {name} is not plain JSON: {error}") from error


def compare_restored(
    name: str, restored: object, before: object, *, description: str = "snapshots"
) -> None:
    """Refuse a restored memory that differs from the memory that it was restored from."""
    if restored != before:
        raise ContractError(
            f"{name} does not restore faithfully: a memory that was made from one of the "
            f"{description} differs at once from the memory that it was taken of. Its orders "
            f"cannot share what was built; complete snapshot() and revive() or __deepcopy__(), or "
            f"pass --method replayed"
        )


def unwrap_names(policy: Policy) -> Any:
    """Return the policy inside the wrappers that only name it or count its calls."""
    while isinstance(policy, (NamedPolicy, DeclaredCalls)):
        policy = policy.inner
    return policy


def find_growth(policy: Policy) -> Growth | None:
    """Choose how a policy's memories are grown; None if each must be built from the start."""
    inner = unwrap_names(policy)
    if isinstance(inner, Incremental):
        return _StateGrowth(inner)
    if isinstance(inner, Growable):
        return _SnapshotGrowth(inner)
    return _grow_objects(inner) if isinstance(inner, OwnMemory) else None


def _grow_objects(own: OwnMemory) -> ObjectGrowth | None:
    with own.begin() as memory:
        snapshots = _has_snapshots(memory)
        if not snapshots:
            try:
                copy.deepcopy(_own_object(memory))
            except Exception:  # locks, connections and files cannot be copied
                close_memory(memory)
                return None
        close_memory(memory)
    return ObjectGrowth(own, snapshots)


def _has_snapshots(memory: Any) -> bool:
    return all(callable(getattr(memory, name, None)) for name in ("snapshot", "revive"))


def can_share(policy: Policy, *, copies: bool | None = None) -> bool:
    """Whether orders of this policy can share their beginnings.

    Only an object shows whether it can be copied. With `copies`, none of a class without `snapshot`
    and `revive` is made, and this is the answer.
    """
    inner = unwrap_names(policy)
    if isinstance(inner, OwnMemory) and copies is not None:
        return copies or _has_snapshots(find_class(inner))
    return find_growth(policy) is not None
