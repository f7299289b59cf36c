"""Anyone's own memory: a `Policy`, or simply a class with `add`, `retained` and `expose`."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from routeprism.errors import ContractError, PeekError
from routeprism.policies._contracts import Block, Event, Exposure, JsonValue, Memory, Policy
from routeprism.policies.interfaces import record_block
from routeprism.records import Record

__all__ = [
    "Named",
    "OwnMemory",
    "accepts",
    "as_policy",
    "own_source",
    "refuse_curiosity",
    "refuse_peeking",
]


def as_policy(item: Any, *, name: str = "") -> Policy:
    """Give a policy for a `Policy`, a class or factory of one, or a class with `add(record)`."""
    if not hasattr(item, "build"):
        if not callable(item):
            raise ContractError(
                f"Expected a class or a policy but got {item!r:.60}: each build makes a fresh one"
            )
        _refuse_arguments(item)
        made = None if inspect.isclass(item) else item()
        if not hasattr(made, "build"):
            return OwnMemory(item, name or getattr(item, "__name__", type(item).__name__))
        item = made
    elif inspect.isclass(item):
        item = item()
    refuse_peeking(item)
    if not isinstance(getattr(item, "name", None), str):
        return Named(item, name or type(item).__name__)
    policy: Policy = item
    return policy


def _signature(function: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None  # a compiled callable shows no signature; calling it will tell


def accepts(function: Any, *arguments: Any) -> bool:
    """Whether a callable can be called with just these arguments, as far as it shows."""
    signature = _signature(function)
    try:
        if signature is not None:
            signature.bind(*arguments)
    except TypeError:
        return False
    return True


def _refuse_arguments(factory: Any) -> None:
    """Refuse a memory class that cannot be made afresh for every build."""
    if not accepts(factory):
        name = getattr(factory, "__name__", type(factory).__name__)
        raise ContractError(
            f"{name} needs arguments: each build makes a fresh memory and gives none. Give them "
            f"defaults, or name them: package.module:{name}:key=value"
        )


def refuse_peeking(policy: Any) -> None:
    """Refuse a `build` that wants more than the arrivals."""
    if hasattr(inner := getattr(policy, "inner", None), "build"):
        refuse_peeking(inner)
    signature = _signature(policy.build)
    if signature is None:
        return
    wanted = [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        or (parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty)
    ]
    if len(wanted) > 1:
        raise PeekError(
            f"{type(policy).__name__}.build wants {', '.join(wanted)}: construction receives the "
            f"arriving records and nothing else. Expected build(arrivals)."
        )
    if not accepts(policy.build, ()):
        raise ContractError(
            f"{type(policy).__name__}.build does not take the arrivals. Expected build(arrivals)."
        )


def refuse_curiosity(memory: Any, name: str) -> None:
    """Refuse an `expose` that wants more than the question's text."""
    kind: Callable[..., Any] = type(memory)
    if not _exposes_by_text(kind):
        raise PeekError(
            f"{name}.expose{inspect.signature(memory.expose)}: exposure receives the "
            f"question's text and nothing else. Expected expose(query)."
        )


@lru_cache(maxsize=256)
def _exposes_by_text(kind: Callable[..., Any]) -> bool:
    expose = getattr(kind, "expose", None)
    return accepts(expose, None, "") if inspect.isfunction(expose) else True


@dataclass(frozen=True, slots=True)
class Named:
    """A policy under a name that it does not have itself."""

    inner: Any
    name: str

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Build the inner one."""
        memory: Memory = self.inner.build(arrivals)
        return memory


@dataclass(frozen=True, slots=True)
class OwnMemory:
    """Builds by making a fresh object and calling `add(record)` for each arrival."""

    factory: Callable[[], Any]
    """Makes an empty memory."""
    name: str
    """What it is called in every output."""

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Make a fresh memory and add every arrival."""
        memory = self.factory()
        for needed in ("add", "retained", "expose"):
            if not callable(getattr(memory, needed, None)):
                raise ContractError(
                    f"{self.name} has no method '{needed}': a memory needs add(record), "
                    f"retained() and expose(query), or build(arrivals) for a policy"
                )
        refuse_curiosity(memory, self.name)
        if _held_already(memory):
            raise ContractError(
                f"{self.name}: a fresh memory holds records before any was added. Is something "
                f"kept on the class, such as a list that all its objects share?"
            )
        for record in arrivals:
            memory.add(record)
        return _Wrapped(memory, {record.id: record for record in arrivals}, self.name)


@dataclass(frozen=True, slots=True)
class _Wrapped:
    """Someone's memory object behind the contract."""

    inner: Any
    arrived: dict[str, Record]
    name: str

    def retained(self) -> frozenset[str]:
        held = self.inner.retained()
        if isinstance(held, (str, bytes)) or not isinstance(held, Iterable):
            raise ContractError(
                f"{self.name}.retained gave {type(held).__name__}. Expected records or record ids"
            )
        return frozenset(_id(item) for item in held)

    def state(self) -> JsonValue:
        shown = getattr(self.inner, "state", None)
        state: JsonValue = shown() if callable(shown) else None
        return state

    def events(self) -> Sequence[Event]:
        log = getattr(self.inner, "events", None)
        return tuple(log()) if callable(log) else ()

    def expose(self, query: str, /) -> Exposure:
        shown = self.inner.expose(query)
        if isinstance(shown, Exposure):
            return shown
        if isinstance(shown, Set):
            raise ContractError(
                f"{self.name}.expose gave a set, which has no order of its own. Expected a list"
            )
        if isinstance(shown, (str, bytes)) or not isinstance(shown, Iterable):
            raise ContractError(
                f"{self.name}.expose gave {type(shown).__name__}. Expected records, record ids, "
                f"(text, ids) pairs or Blocks, so that every shown text names its records"
            )
        return Exposure(tuple(self._block(item) for item in shown))

    def _block(self, item: Any) -> Block:
        if isinstance(item, Block):
            return item
        if isinstance(item, Record):
            return record_block(item)
        if isinstance(item, str) and item in self.arrived:
            return record_block(self.arrived[item])
        if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str):
            ids = (item[1],) if isinstance(item[1], (str, Record)) else item[1]
            if isinstance(ids, Iterable):
                return Block("text", item[0], frozenset(_id(source) for source in ids))
        raise ContractError(
            f"{self.name}.expose gave {item!r:.80}. Expected a record, the id of one that "
            f"arrived, a (text, ids) pair or a Block"
        )


def _held_already(memory: Any) -> bool:
    try:
        held = memory.retained()
        return not isinstance(held, str) and bool(list(held))
    except Exception:  # an empty memory may not be able to say; it is asked again when it is full
        return False


def own_source(policy: Policy) -> str:
    """Name what is behind a policy that is not built in: its source's digest, or its origin."""
    inner = getattr(policy, "inner", None) or getattr(policy, "factory", None) or policy
    if callable(origin := getattr(inner, "origin", None)) and not inspect.isclass(inner):
        return str(origin())  # a real memory system says which, in which version
    kind: Callable[..., Any] = inner if inspect.isclass(inner) else type(inner)
    return _source_digest(kind)


@lru_cache(maxsize=256)
def _source_digest(kind: Callable[..., Any]) -> str:
    if kind.__module__.startswith("routeprism."):
        return ""
    try:
        return hashlib.sha256(inspect.getsource(kind).encode()).hexdigest()
    except (OSError, TypeError):
        return hashlib.sha256(kind.__qualname__.encode()).hexdigest()  # made in a session


def _id(item: Any) -> str:
    return item.id if isinstance(item, Record) else str(item)
