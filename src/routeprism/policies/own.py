"""Memories of the user's own: a `Policy`, or a class with `add`, `retained` and `expose`."""

from __future__ import annotations

import hashlib
import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

from routeprism.errors import ContractError, PeekError, RoutePrismError
from routeprism.frames import describe_error, is_interruption
from routeprism.policies._awaiting import (
    AwaitedMemory,
    AwaitedPolicy,
    await_now,
    is_asynchronous,
    pass_time,
    read_clock,
    refuse_awaitable,
    run_tasks,
    wrap_asynchronous,
)
from routeprism.policies._contracts import Block, Event, Exposure, JsonValue, Memory, Policy
from routeprism.policies._lineage import count_dumps, settle
from routeprism.policies._wrappers import NamedPolicy, Waiting
from routeprism.policies.interfaces import record_block
from routeprism.records import Pool, Record

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

__all__ = [
    "OwnMemory",
    "accepts",
    "as_blocks",
    "as_policy",
    "call_optional",
    "check_build",
    "check_expose",
    "check_memory",
    "check_retained",
    "close_memory",
    "closing_memory",
    "count_retained",
    "find_class",
    "find_own_memory",
    "open_memory",
    "own_source",
    "plan_settling",
    "refuse_awaitable",
    "report_own_errors",
    "retained_ids",
    "find_settling_limit",
    "settle_memory",
    "wrap_asynchronous",
]

T = TypeVar("T")


def as_policy(item: Any, *, name: str = "") -> Policy:
    """Make a policy from a `Policy`, a class or factory of one, or a class with `add(record)`."""
    if not hasattr(item, "build"):
        if not callable(item):
            raise ContractError(
                f"Expected a class or a policy but got {item!r:.60}: each build makes a fresh one"
            )
        _check_factory(item)
        kind = find_class(item)
        # A class shows what it is. The result of a function must be made, which may cost.
        is_memory = inspect.isclass(item) or (hasattr(kind, "add") and not hasattr(kind, "build"))
        memory = None if is_memory else item()
        if not hasattr(memory, "build"):
            close_memory(memory)
            label = name or getattr(kind, "__name__", type(item).__name__)
            return OwnMemory(item, label, chance=_declares_chance(item, memory))
        item = memory
    elif inspect.isclass(item):
        item = item()
    check_build(item)
    if inspect.iscoroutinefunction(item.build):
        own_name = getattr(item, "name", None)
        label = own_name if isinstance(own_name, str) else name or type(item).__name__
        return AwaitedPolicy(item, label)
    if not isinstance(getattr(item, "name", None), str):
        return NamedPolicy(item, name or type(item).__name__)
    policy: Policy = item
    return policy


def find_class(item: Any) -> Any:
    """Find the class behind a policy or a memory factory; a function stays a function."""
    while not inspect.isclass(item):
        deeper = item.func if isinstance(item, partial) else getattr(item, "factory", None)
        if deeper is None:
            return item if inspect.isfunction(item) else type(item)
        item = deeper
    return item


def _declares_chance(factory: Any, memory: Any) -> bool:
    """Whether a memory class declares `deterministic = False`, on itself or on its objects."""
    declared = getattr(find_class(factory), "deterministic", True)
    if isinstance(declared, property):
        memory = factory()
        close_memory(memory)
    return declared is False or getattr(memory, "deterministic", True) is False


def _signature(function: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None  # a compiled callable has no signature


def accepts(function: Any, *arguments: Any) -> bool:
    """Whether a callable accepts exactly these arguments, as far as its signature shows."""
    signature = _signature(function)
    try:
        if signature is not None:
            signature.bind(*arguments)
    except TypeError:
        return False
    return True


def _check_factory(factory: Any) -> None:
    """Refuse a memory class that needs arguments to make a new memory."""
    if not accepts(factory):
        name = getattr(factory, "__name__", type(factory).__name__)
        raise ContractError(
            f"{name} needs arguments: each build makes a fresh memory and gives none. Give them "
            f"defaults, or name them: package.module:{name}:key=value"
        )


def check_build(policy: Any) -> None:
    """Refuse a `build` that requires more than the arrivals."""
    if hasattr(inner := getattr(policy, "inner", None), "build"):
        check_build(inner)
    signature = _signature(policy.build)
    if signature is None:
        return
    required = [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        or (parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty)
    ]
    if len(required) > 1:
        raise PeekError(
            f"{type(policy).__name__}.build requires {', '.join(required)}: construction receives "
            f"the arriving records and nothing else. Expected build(arrivals)."
        )
    if not accepts(policy.build, ()):
        raise ContractError(
            f"{type(policy).__name__}.build does not take the arrivals. Expected build(arrivals)."
        )


def check_expose(memory: Any, name: str) -> None:
    """Refuse an `expose` that requires more than the question's text."""
    kind: Callable[..., Any] = type(memory.inner if isinstance(memory, AwaitedMemory) else memory)
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
class OwnMemory:
    """Builds by making a new object and calling `add(record)` for each arrival."""

    factory: Callable[[], Any]
    """Makes an empty memory."""
    name: str
    """Its name in every output."""
    chance: bool = False
    """Whether its objects declare that the same arrivals may give a different memory."""
    outside: bool = False
    """Whether its objects stand for a system outside this process."""
    procedures: tuple[str, ...] | None = None
    """The procedures that the system can perform; None if that depends on the methods."""
    tick: Callable[[], None] | None = field(default=None, compare=False, repr=False)
    """Called after each record that was added."""

    @property
    def deterministic(self) -> bool:
        """Whether the same arrivals always give the same memory, as far as the class declares."""
        return not self.chance and getattr(self.kind, "deterministic", True) is not False

    @property
    def kind(self) -> Any:
        """The class that makes its memories, or the function if that is not known."""
        return find_class(self.factory)

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Make a new memory and add every arrival; close it if one cannot be added."""
        with self.begin() as memory:
            for record in arrivals:
                self.add(memory, record)
            self.settle(memory)
        return self.finish(memory, arrivals)

    def add(self, memory: Any, record: Record) -> Any:
        """Add one record; give the reply."""
        reply = memory.add(record)
        refuse_awaitable(reply, self.name, "add")
        if self.tick is not None:
            self.tick()
        return reply

    @contextmanager
    def begin(self, loop: AbstractEventLoop | None = None) -> Iterator[Any]:
        """Make a new memory to add arrivals to; close it after an exception.

        The `async` methods of a memory are awaited on the loop, or on a new one.
        """
        memory = self.factory()
        if is_asynchronous(memory):
            memory = AwaitedMemory(memory, loop)
        try:
            self._check_methods(memory)
            yield memory
        except BaseException:
            with suppress(Exception):  # the first exception matters more
                close_memory(memory)
            raise

    def settle(self, memory: Any) -> None:
        """Wait for what a memory adds in the background."""
        run_tasks(memory)
        settle_memory(memory)

    def finish(self, memory: Any, arrivals: Sequence[Record]) -> Memory:
        """Wrap the object, to which every arrival was added, in the contract."""
        return _Wrapped(memory, {record.id: record for record in arrivals}, self.name)

    def _check_methods(self, memory: Any) -> None:
        for needed in ("add", "retained", "expose"):
            if not callable(getattr(memory, needed, None)):
                raise ContractError(
                    f"{self.name} has no method '{needed}': a memory needs add(record), "
                    f"retained() and expose(query), or build(arrivals) for a policy"
                )
        for method, arguments, expected in _CALLS:
            if not accepts(getattr(memory, method), *arguments):
                raise ContractError(
                    f"{self.name}.{method}{_signature(getattr(memory, method))} cannot be called "
                    f"as RoutePrism calls it. Expected {expected}"
                )
        check_expose(memory, self.name)
        if ids := _list_first_records(memory):
            raise ContractError(
                f"{self.name}: a fresh memory contains records before any was added. Is something "
                f"kept on the class, such as a list that all its objects share?"
            ).naming(ids[0])


_SETTLING, _PAUSE = 1.0, 0.05
"""Seconds without a change if a memory declares none, and between the first two looks at it."""
_LONGEST = 10
"""How many times as long as that, and at least a minute, a memory may go on changing."""


def settle_memory(memory: Any) -> None:
    """Wait until a memory that adds records in the background has the same content for a while.

    Applies to a memory that declares `settle = True`, or the number of seconds without a change
    after which it has stored what it was given, unless reading it waits for that. A record that is
    missing may have been evicted. Raises RouteError if the content keeps changing.
    """
    stable = _find_stability(memory)
    if stable is None:
        return
    settle(
        partial(_read_content, memory),
        interval=_PAUSE,
        stable=stable,
        limit=find_settling_limit(memory),
        advice="Raise settle if it stores later than that. If it changes on its own, leave what "
        "changes, such as a counter or a time, out of its state()",
        sleep=partial(pass_time, memory),
        clock=partial(read_clock, memory),
    )


def find_settling_limit(memory: Any) -> float:
    """Return the seconds that `settle_memory` may take; 0 if it does not wait."""
    stable = _find_stability(memory)
    return 0.0 if stable is None else max(60.0, _LONGEST * stable)


def _find_stability(memory: Any) -> float | None:
    """Return the seconds without a change that a memory declares; None if nothing has to wait."""
    declared = getattr(memory, "settle", None)
    if declared is None or declared is False or getattr(memory, "awaits_ingestion", False):
        return None
    return _SETTLING if declared is True else float(declared)


def plan_settling(seconds: float) -> Waiting | None:
    """Describe what waiting for a service or a program takes that stores within some seconds."""
    if not seconds:
        return None
    # Each look reads the ids and the state.
    return Waiting(2 * count_dumps(_PAUSE, seconds), seconds, per_build=True)


def _read_content(memory: Any) -> tuple[list[str], JsonValue]:
    """Read what a memory retains, with repetitions, and its state."""
    state = call_optional(memory, "state")
    return sorted(map(_id, memory.retained())), state


def find_own_memory(policy: Any) -> OwnMemory | None:
    """Return a policy as a memory to which records are added one by one; None if it is not one.

    A policy that offers `open()`, such as the adapter of a server, gives an empty memory with it.
    """
    while isinstance(policy, NamedPolicy):
        policy = policy.inner
    if isinstance(policy, OwnMemory):
        return policy
    if not callable(open_empty := getattr(policy, "open", None)):
        return None
    chance = getattr(policy, "deterministic", True) is False
    outside = getattr(policy, "outside", True) is not False
    procedures = getattr(policy, "procedures", None)
    return OwnMemory(open_empty, policy.name, chance, outside, procedures)


_CALLS: tuple[tuple[str, tuple[None, ...], str], ...] = (
    ("add", (None,), "add(record)"),
    ("retained", (), "retained()"),
)
"""How the methods of a memory are called; `check_expose` checks the third."""


@dataclass(frozen=True, slots=True)
class _Wrapped:
    """A memory object of the user's own behind the contract."""

    inner: Any
    arrived: dict[str, Record]
    name: str

    def retained(self) -> frozenset[str]:
        return retained_ids(self.inner, self.name)

    def close(self) -> None:
        close_memory(self.inner)

    def state(self) -> JsonValue:
        state: JsonValue = call_optional(self.inner, "state")
        return state

    def events(self) -> Sequence[Event]:
        return tuple(call_optional(self.inner, "events", ()))

    def counts(self) -> Mapping[str, int]:
        return dict(call_optional(self.inner, "counts", {}))

    def expose(self, query: str, /) -> Exposure:
        return Exposure(as_blocks(self.inner.expose(query), self.arrived, self.name))


def as_blocks(
    output: Any, arrived: Mapping[str, Record], name: str = "the memory"
) -> tuple[Block, ...]:
    """Return what an `expose` returned as blocks; ids are looked up among the arrived records."""
    if isinstance(output, Exposure):
        return output.blocks
    if isinstance(output, Set):
        raise ContractError(
            f"{name}.expose gave a set, which has no order of its own. Expected a list"
        )
    refuse_awaitable(output, name, "expose")
    if isinstance(output, (str, bytes)) or not isinstance(output, Iterable):
        raise ContractError(
            f"{name}.expose gave {type(output).__name__}. Expected records, record ids, "
            f"(text, ids) pairs or Blocks, so that every shown text names its records"
        )
    return tuple(_as_block(item, arrived, name) for item in output)


def _as_block(item: Any, arrived: Mapping[str, Record], name: str) -> Block:
    if isinstance(item, Block):
        return item
    if isinstance(item, Record):
        return record_block(item)
    if isinstance(item, str) and item in arrived:
        return record_block(arrived[item])
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str):
        ids = (item[1],) if isinstance(item[1], (str, Record)) else item[1]
        if isinstance(ids, Iterable):
            return Block("text", item[0], frozenset(_id(source) for source in ids))
    raise ContractError(
        f"{name}.expose gave {item!r:.80}. Expected a record, the id of one that "
        f"arrived, a (text, ids) pair or a Block"
    ).naming(item if isinstance(item, str) else "")


def retained_ids(memory: Any, name: str = "the memory") -> frozenset[str]:
    """Return the ids that a memory retains, from any iterable of records or ids."""
    ids = _list_retained(memory, name)
    if isinstance(ids, frozenset) and all(isinstance(item, str) for item in ids):
        return ids
    return frozenset(map(_id, ids))


def count_retained(memory: Any, name: str = "the memory") -> Counter[str]:
    """Count how often a memory lists each id that it retains."""
    inner = memory.inner if isinstance(memory, _Wrapped) else memory
    return Counter(map(_id, _list_retained(inner, name)))


def _list_retained(memory: Any, name: str) -> Iterable[Any]:
    ids = memory.retained()
    refuse_awaitable(ids, name, "retained")
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
        raise ContractError(
            f"{name}.retained gave {type(ids).__name__}. Expected records or record ids"
        )
    return ids


def close_memory(memory: Any) -> None:
    """Close a memory, if it has `close()`."""
    await_now(call_optional(memory, "close"))


def call_optional(memory: Any, method: str, default: Any = None) -> Any:
    """Call a method that a memory may have; give the default if it has none."""
    function = getattr(memory, method, None)
    return function() if callable(function) else default


@contextmanager
def closing_memory(memory: T) -> Iterator[T]:
    """Close a memory at the end; an earlier exception matters more than one in `close()`."""
    memory = wrap_asynchronous(memory)
    try:
        yield memory
    except BaseException:
        with suppress(Exception):
            close_memory(memory)
        raise
    close_memory(memory)


def check_memory(memory: Any, name: str) -> Memory:
    """Refuse what a policy built unless it has the methods of a memory."""
    memory = wrap_asynchronous(memory)
    # Asking the protocol itself takes long on older Pythons.
    if not all(callable(getattr(memory, need, None)) for need in ("retained", "state", "expose")):
        raise ContractError(
            f"{name}.build gave {type(memory).__name__}. "
            f"Expected a memory with retained(), state() and expose(query)"
        )
    checked: Memory = memory
    return checked


def check_retained(memory: Memory, name: str, pool: Pool) -> frozenset[str]:
    """Return the retained ids, which must all be the pool's."""
    retained = retained_ids(memory, name)
    if unknown := sorted(retained.difference(pool.ids)):
        raise ContractError(
            f"{name} retains '{unknown[0]}', which user '{pool.user}' does not have"
        ).naming(unknown[0])
    return retained


@contextmanager
def open_memory(policy: Policy, pool: Pool, order: Sequence[int]) -> Iterator[Memory]:
    """Build a memory from a pool in an order, check it, and close it at the end."""
    built = policy.build(tuple(pool.records[position] for position in order))
    with closing_memory(check_memory(built, policy.name)) as memory:
        yield memory


def _list_first_records(memory: Any) -> list[str]:
    """List what a memory contains before any record was added."""
    try:
        items = await_now(memory.retained())
        return [] if isinstance(items, str) else list(map(_id, items))
    except Exception:  # it may fail on an empty memory; it is called again after the arrivals
        return []


def own_source(policy: Policy) -> str:
    """Identify a policy that is not built in: by its origin, or by the digest of its source."""
    inner: Any = policy
    while not inspect.isclass(inner):
        if callable(origin := getattr(inner, "origin", None)):
            return str(origin())  # an adapter names the memory system and its version
        if not _built_in(type(inner)):
            break
        deeper = getattr(inner, "inner", None) or getattr(inner, "factory", None)
        if isinstance(deeper, partial):
            deeper = find_class(deeper)
        if deeper is None:
            break
        inner = deeper
    kind: Callable[..., Any] = inner if inspect.isclass(inner) else type(inner)
    return _source_digest(kind)


def _built_in(kind: Callable[..., Any]) -> bool:
    return kind.__module__.startswith("routeprism.")


@lru_cache(maxsize=256)
def _source_digest(kind: Callable[..., Any]) -> str:
    if _built_in(kind):
        return ""
    try:
        return hashlib.sha256(inspect.getsource(kind).encode()).hexdigest()
    except (OSError, TypeError):
        return hashlib.sha256(kind.__qualname__.encode()).hexdigest()  # made in a session


def _id(item: Any) -> str:
    return item.id if isinstance(item, Record) else str(item)


@contextmanager
def report_own_errors(policy: Any, *, user: str = "", route: str = "") -> Iterator[None]:
    """Report an exception of a policy that is not built in, with policy, user and order."""
    try:
        yield
    except RoutePrismError:
        raise
    except BaseException as error:
        if is_interruption(error):
            raise
        if isinstance(error, Exception) and not own_source(policy):
            raise  # not the user's code
        raise describe_error(error, policy.name, user=user, route=route) from None
