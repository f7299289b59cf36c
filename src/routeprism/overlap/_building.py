"""Builds a memory by a procedure; a procedure that it cannot perform is not applicable."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from routeprism.errors import ContractError, InapplicableError
from routeprism.orders import Procedure
from routeprism.overlap._trials import choose_conductor, open_for_overlap, overlap_writes
from routeprism.policies import (
    Incremental,
    Memory,
    NamedPolicy,
    Policy,
    StandIn,
    own_source,
)
from routeprism.policies._awaiting import AwaitedMemory, is_asynchronous, refuse_awaitable
from routeprism.policies.own import OwnMemory, close_memory, find_own_memory
from routeprism.records import Record


def build_by_procedure(
    policy: Policy, arrivals: Sequence[Record], procedure: Procedure, *, seed: str = ""
) -> Memory:
    """Build a memory by a procedure; raise InapplicableError if it cannot perform it.

    The seed decides the interleaving of overlapping writes to a memory with `async` methods.
    """
    if procedure.kind in ("one-by-one", "twice") or isinstance(policy, StandIn):
        return policy.build(arrivals)  # `twice` is part of the order
    if isinstance(policy, NamedPolicy):
        return build_by_procedure(policy.inner, arrivals, procedure, seed=seed)
    own = find_own_memory(policy)
    if own is not None:
        return _build_own(own, arrivals, procedure, seed)
    if isinstance(policy, Incremental) and not own_source(policy):
        return _build_stepwise(policy, arrivals, procedure)
    raise InapplicableError(f"{policy.name} cannot perform {procedure.name}")


def _build_stepwise(policy: Any, arrivals: Sequence[Record], procedure: Procedure) -> Memory:
    """Build a built-in policy, whose state is all that it stores."""
    if procedure.kind == "bulk" and not procedure.number:
        built: Memory = policy.build(arrivals)
        return built
    if procedure.kind not in ("restart", "reload"):
        raise InapplicableError(f"{policy.name} cannot perform {procedure.name}")
    moments = _list_moments(procedure, len(arrivals))
    state = policy.start()
    for number, record in enumerate(arrivals, start=1):
        state = policy.step(state, record)
        if number in moments:
            state = pickle.loads(pickle.dumps(state))  # noqa: S301 (written the moment before)
    memory: Memory = policy.finish(state)
    return memory


def _list_moments(procedure: Procedure, size: int) -> frozenset[int]:
    """List after how many records a memory is restarted or reloaded."""
    if procedure.kind == "restart":
        return frozenset(range(procedure.number, size + 1, procedure.number))
    return frozenset({size // 2, size} - {0})


def _build_own(
    policy: OwnMemory, arrivals: Sequence[Record], procedure: Procedure, seed: str
) -> Memory:
    performable = policy.procedures
    if performable is not None and procedure.fill is None and procedure.kind not in performable:
        raise InapplicableError(f"{policy.name} cannot perform {procedure.name}")
    if procedure.kind == "overlap":
        return _build_overlapping(policy, arrivals, procedure, seed)
    with policy.begin() as memory:
        if procedure.fill is not None:
            memory = procedure.fill(memory, arrivals) or memory
        else:
            memory = _add_records(policy, memory, arrivals, procedure)
        policy.settle(memory)
    return policy.finish(memory, arrivals)


def _build_overlapping(
    policy: OwnMemory, arrivals: Sequence[Record], procedure: Procedure, seed: str
) -> Memory:
    """Build with several adds in flight; where RoutePrism can choose, the seed decides."""
    conductor = choose_conductor(policy)
    with open_for_overlap(policy, conductor) as memory:
        for number, batch in enumerate(_split(arrivals, procedure.number)):
            digest = hashlib.sha256(f"{seed}\0{number}".encode()).digest()
            overlap_writes(memory, batch, int.from_bytes(digest[:8], "big"), conductor)
    return policy.finish(memory, arrivals)


_METHODS = {"bulk": ("add_many",), "restart": ("reopen",), "reload": ("snapshot", "revive")}
"""Kind of procedure → the methods that a memory needs for it."""


def _add_records(
    policy: OwnMemory, memory: Any, arrivals: Sequence[Record], procedure: Procedure
) -> Any:
    for method in _METHODS[procedure.kind]:
        if not callable(getattr(memory, method, None)):
            raise InapplicableError(
                f"{policy.name} cannot perform {procedure.name}: it has no method '{method}'"
            )
    if procedure.kind == "bulk":
        for batch in _split(arrivals, procedure.number or len(arrivals) or 1):
            memory.add_many(batch)
        return memory
    return _add_and_renew(policy, memory, arrivals, procedure)


def _reload(policy: OwnMemory, old: Any) -> Any:
    try:
        stored = json.dumps(old.snapshot())
    except (TypeError, ValueError) as error:
        raise ContractError(f"{policy.name}.snapshot() must give plain JSON: {error}") from None
    close_memory(old)
    fresh = policy.factory()
    fresh = AwaitedMemory(fresh) if is_asynchronous(fresh) else fresh
    revived = fresh.revive(json.loads(stored))
    return fresh if revived is None else revived


def _add_and_renew(
    policy: OwnMemory, memory: Any, arrivals: Sequence[Record], procedure: Procedure
) -> Any:
    """Add records, and continue with a new object at some moments; close the last on an error."""
    first, moments = memory, _list_moments(procedure, len(arrivals))
    try:
        for number, record in enumerate(arrivals, start=1):
            refuse_awaitable(memory.add(record), policy.name, "add")
            if number in moments:
                memory = renew_memory(policy, memory, procedure.kind)
    except BaseException:
        if memory is not first:
            with suppress(Exception):  # the first exception matters more
                close_memory(memory)
        raise
    return memory


def renew_memory(policy: OwnMemory, memory: Any, kind: str) -> Any:
    """Continue with a new object on the same storage (`restart`) or from a snapshot (`reload`)."""
    renewed = memory.reopen() if kind == "restart" else _reload(policy, memory)
    if renewed is None or not callable(getattr(renewed, "add", None)):
        raise ContractError(
            f"{policy.name}: reopen() or revive(snapshot) gave {type(renewed).__name__}. Expected "
            f"a memory on the same storage"
        )
    if isinstance(memory, AwaitedMemory) and not isinstance(renewed, AwaitedMemory):
        return AwaitedMemory(renewed, None if memory.loop.is_closed() else memory.loop)
    return renewed


def _split(arrivals: Sequence[Record], size: int) -> list[list[Record]]:
    return [list(arrivals[at : at + size]) for at in range(0, len(arrivals), size)]
