"""Repairs around any memory: hold records back, rebuild from a log, search what was dropped.

Each repair exists twice. `Hold`, `Rebuild`, `Fallback`, `TimeTied` and `Queue` are policies, which
an audit builds like every other policy (`hold:w=2(recent:k=3)`). `HeldMemory`, `RebuiltMemory`,
`FallbackMemory` and `QueuedMemory` wrap a live memory with `add`, `retained` and `expose`, and
belong in your own code. All but the queue process records in *event order*: by timestamp, ties by
source position. A record without a timestamp counts with the time of the record before it in source
order.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias

from routeprism import specs
from routeprism.errors import SpecError, nearest
from routeprism.policies._contracts import (
    Event,
    Exposure,
    JsonValue,
    Memory,
    Operational,
    Policy,
)
from routeprism.policies._event_order import EventBuffer, EventClock, EventLog, Key, sort_events
from routeprism.policies._live_memories import (
    FallbackMemory,
    HeldMemory,
    QueuedMemory,
    RebuiltMemory,
    list_dropped,
    queue_writes,
    read_calls,
    search_log,
)
from routeprism.policies.interfaces import WholeRecords, record_block
from routeprism.policies.own import (
    OwnMemory,
    call_optional,
    close_memory,
    find_own_memory,
    retained_ids,
    wrap_asynchronous,
)
from routeprism.records import Record

__all__ = [
    "BUDGETS",
    "REMEDIES",
    "Fallback",
    "FallbackMemory",
    "HeldMemory",
    "Hold",
    "Queue",
    "QueuedMemory",
    "Rebuild",
    "RebuiltMemory",
    "TimeTied",
    "WriteCount",
    "count_rebuilds",
    "hold_back",
    "list_remedies",
    "name_exposures",
    "parse_remedy",
    "read_calls",
    "sort_events",
]

HeldRecords = Literal["shown", "hidden"]


@dataclass(frozen=True, slots=True)
class WriteCount:
    """How many writes a repair made for a sequence of arrivals."""

    arrivals: int
    writes: int
    """Calls of the memory's `add`, those of rebuilding included."""
    rebuilds: int = 0
    """How often a late record made the memory start again."""
    delay: int = 0
    """How many later arrivals a record waits for that arrives in its place."""
    final: int | None = None
    """Those writes that made the memory as it is in the end; None for all of them."""

    def extend_calls(self, calls: int) -> int:
        """Add the model calls of earlier builds to those counted in the last one.

        An audit builds a memory once, in the order that its last rebuild uses. Each write of an
        earlier build counts as many calls as the average write of the build that was counted.
        """
        return round(calls * self.writes / self.final) if self.final else calls

    def to_counts(self) -> dict[str, int]:
        """Return the counts under the names that `estimates.csv` uses after `count.`."""
        return {
            "arrivals": self.arrivals,
            "writes": self.writes,
            "rebuilds": self.rebuilds,
            "delay": self.delay,
        }


def hold_back(
    arrivals: Iterable[Record], w: int, key: Key | None = None
) -> tuple[list[Record], list[Record]]:
    """Release records in event order while holding `w` of them back.

    Gives the records in their order of release, and those that are still held at the end. A
    sequence in which every record arrives at most `w` places from its own is sorted completely.
    """
    buffer = EventBuffer(w, EventClock(key))
    released = [first for record in arrivals if (first := buffer.add(record)) is not None]
    return released, buffer.records


def count_rebuilds(
    arrivals: Iterable[Record], every: int | None = None, key: Key | None = None
) -> WriteCount:
    """Count the writes of a memory that is rebuilt in event order when a record arrives late.

    With `every`, a snapshot is kept after each `every` records, and rebuilding starts at the last
    snapshot before the late record. A record that arrives again is not written again.
    """
    log = EventLog(EventClock(key))
    writes = rebuilds = number = 0
    for record in arrivals:
        number += 1
        at = log.add(record)
        if at is None:
            continue
        late = at < len(log.records) - 1
        rebuilds += late
        start = at // every * every if every else 0
        writes += len(log.records) - start if late else 1
    return WriteCount(number, writes, rebuilds, final=len(log.records))


# --- policies ------------------------------------------------------------------------------------

Make: TypeAlias = Callable[[Policy, Sequence[Record]], Memory]
"""Makes a memory of a policy and of its arrivals: builds it, or revives it from a snapshot."""


class _Repair(Protocol):
    def repair(self, arrivals: Sequence[Record], make: Make) -> Memory: ...


def _build_repaired(repair: _Repair, arrivals: Sequence[Record], /) -> Memory:
    return repair.repair(
        arrivals, lambda policy, released: wrap_asynchronous(policy.build(released))
    )


@dataclass(frozen=True, slots=True)
class _RepairedMemory:
    """A memory with additional blocks, records and counts around it."""

    inner: Memory
    writes: WriteCount
    extra: tuple[Record, ...] = ()
    """Records outside the memory that are always shown."""
    dropped: tuple[Record, ...] = ()
    """Records outside the memory of which each question is shown the best `k`."""
    k: int = 0

    def retained(self) -> frozenset[str]:
        return retained_ids(self.inner) | self.outside

    @property
    def outside(self) -> frozenset[str]:
        return frozenset(record.id for record in (*self.extra, *self.dropped))

    def exposure_key(self) -> Hashable | None:
        inner = name_exposures(self.inner)
        if inner is None or not (self.extra or self.dropped):
            return inner
        return inner, tuple(map(id, self.extra)), tuple(map(id, self.dropped)), self.k

    def snapshot(self) -> JsonValue:
        stored: JsonValue = call_optional(self.inner, "snapshot")
        return stored

    def state(self) -> JsonValue:
        return {"memory": self.inner.state(), "outside": sorted(self.outside)}

    def expose(self, query: str, /) -> Exposure:
        records = (*self.extra, *search_log(self.dropped, query, self.k))
        return Exposure((*self.inner.expose(query).blocks, *map(record_block, records)))

    def events(self) -> Sequence[Event]:
        return tuple(call_optional(self.inner, "events", ()))

    def counts(self) -> Mapping[str, int]:
        counts = dict(call_optional(self.inner, "counts", {}))
        calls = read_calls(counts)
        if calls is not None:
            counts["model_calls"] = self.writes.extend_calls(calls)
        return {**counts, **self.writes.to_counts()}

    def close(self) -> None:
        close_memory(self.inner)


def name_exposures(memory: Memory) -> Hashable | None:
    """Name what a memory shows to every question; None if only the questions can tell.

    As long as they live, memories with the same name expose the same.
    """
    if isinstance(memory, (WholeRecords, _RepairedMemory)):
        return memory.exposure_key()
    return None


@dataclass(frozen=True, slots=True)
class Hold:
    """Hold `w` records back and release them in event order (bounded out-of-orderness)."""

    inner: Policy
    w: int = 1
    """How many records are held back."""
    held: HeldRecords = "shown"
    """Whether questions see the records that are still held back."""

    def __post_init__(self) -> None:
        specs.positive(self.name, w=self.w)
        if self.held not in ("shown", "hidden"):
            raise SpecError(f"Expected held=shown or held=hidden but got held={self.held}")

    @property
    def name(self) -> str:
        """The spec that every output shows."""
        return f"hold:w={self.w}{',held=hidden' * (self.held == 'hidden')}({self.inner.name})"

    @property
    def action(self) -> str:
        """The action that applies the repair, as the subject of a sentence."""
        return f"holding back {self.w} record{'s' * (self.w != 1)}"

    build = _build_repaired

    def repair(self, arrivals: Sequence[Record], make: Make) -> Memory:
        """Release the arrivals in event order, as far as `w` allows."""
        released, buffer = hold_back(arrivals, self.w)
        visible = tuple(dict.fromkeys(buffer)) if self.held == "shown" else ()
        return _RepairedMemory(
            make(self.inner, released),
            WriteCount(len(arrivals), len(released), delay=min(self.w, max(0, len(arrivals) - 1))),
            visible,
        )


@dataclass(frozen=True, slots=True)
class Rebuild:
    """Keep a log, and build again in event order whenever a record arrives late."""

    inner: Policy
    every: int | None = None
    """Take a snapshot after this many records and start from there; None starts over."""

    def __post_init__(self) -> None:
        if self.every is not None:
            specs.positive(self.name, every=self.every)

    @property
    def name(self) -> str:
        """The spec that every output shows."""
        repair = "rebuild" if self.every is None else f"checkpoint:every={self.every}"
        return f"{repair}({self.inner.name})"

    @property
    def action(self) -> str:
        """The action that applies the repair, as the subject of a sentence."""
        start = "" if self.every is None else f" from a snapshot after every {self.every} records"
        return f"rebuilding{start} when a record arrives late"

    build = _build_repaired

    def repair(self, arrivals: Sequence[Record], make: Make) -> Memory:
        """Use the log in event order, each record once."""
        ordered = tuple(sort_events(arrivals))
        return _RepairedMemory(make(self.inner, ordered), count_rebuilds(arrivals, self.every))


@dataclass(frozen=True, slots=True)
class Fallback:
    """Keep dropped records in a log beside the memory, and show the best `k` of them."""

    inner: Policy
    k: int = 3
    """How many dropped records a question brings back, by BM25 over the log."""

    def __post_init__(self) -> None:
        specs.positive(self.name, k=self.k)

    @property
    def name(self) -> str:
        """The spec that every output shows."""
        return f"log-fallback:k={self.k}({self.inner.name})"

    @property
    def action(self) -> str:
        """The action that applies the repair, as the subject of a sentence."""
        return f"adding the {self.k} best matches from a log of dropped records"

    build = _build_repaired

    def repair(self, arrivals: Sequence[Record], make: Make) -> Memory:
        """Keep what was dropped."""
        memory = make(self.inner, arrivals)
        dropped = list_dropped(arrivals, retained_ids(memory))
        return _RepairedMemory(
            memory,
            WriteCount(len(arrivals), len(arrivals)),
            dropped=tuple(dropped),
            k=self.k,
        )


@dataclass(frozen=True, slots=True)
class TimeTied:
    """Tie one declared operation of a policy, or all of them, to event time."""

    inner: Policy
    operation: str = ""
    """The operation; empty for all that the policy declares."""

    def __post_init__(self) -> None:
        if not isinstance(self.inner, Operational) or not self.inner.operations:
            raise SpecError(f"{self.inner.name} declares no operation that follows arrival order")
        if self.operation and self.operation not in self.inner.operations:
            raise SpecError(
                f"{self.inner.name} has no operation '{self.operation}'. "
                f"{nearest(self.operation, self.inner.operations)}"
            )

    @property
    def name(self) -> str:
        """The spec that every output shows."""
        return f"by-time{f':operation={self.operation}' * bool(self.operation)}({self.inner.name})"

    @property
    def action(self) -> str:
        """The action that applies the repair, as the subject of a sentence."""
        return f"tying {self.operation or 'every operation'} to event time"

    build = _build_repaired

    def repair(self, arrivals: Sequence[Record], make: Make) -> Memory:
        """Fix the operations to event order, by which the records are numbered."""
        policy: Any = self.inner
        for operation in (self.operation,) if self.operation else tuple(policy.operations):
            policy = policy.fixed(operation)
        places = {record: place for place, record in enumerate(sort_events(arrivals))}
        numbered = [record.at(places[record]) for record in arrivals]
        memory = make(policy, numbered)
        return _RepairedMemory(memory, WriteCount(len(arrivals), len(arrivals)))


@dataclass(frozen=True, slots=True)
class Queue:
    """Lets adds to its policy's memory wait for each other."""

    inner: Policy
    """A memory class of your own, or the adapter of a server."""

    def __post_init__(self) -> None:
        if find_own_memory(self.inner) is None:
            raise SpecError(
                f"Expected a class with add(record) or the adapter of a server in queue(…) but got "
                f"{self.inner.name}"
            )

    @property
    def _own(self) -> OwnMemory:
        own = find_own_memory(self.inner)
        assert own is not None  # noqa: S101 (checked above)
        return own

    @property
    def name(self) -> str:
        """The spec in every output."""
        return f"queue({self.inner.name})"

    @property
    def deterministic(self) -> bool:
        """Whether its policy declares that it is deterministic."""
        return getattr(self.inner, "deterministic", True) is not False

    @property
    def outside(self) -> bool:
        """Whether its policy stands for a system outside this process."""
        return self._own.outside

    @property
    def procedures(self) -> tuple[str, ...] | None:
        """The procedures that its policy can perform, if it declares them."""
        return self._own.procedures

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Build its policy: adds that are made one by one need no queue."""
        return self.inner.build(arrivals)

    def open(self) -> Any:
        """Return an empty memory behind a queue."""
        return queue_writes(self._own.factory())


# --- names ---------------------------------------------------------------------------------------


def _checkpoint(inner: Policy, every: int = 8) -> Rebuild:
    return Rebuild(inner, every)


def _rebuild(inner: Policy) -> Rebuild:
    return Rebuild(inner)


REMEDIES: Mapping[str, Callable[..., Policy]] = {
    "hold": Hold,
    "rebuild": _rebuild,
    "checkpoint": _checkpoint,
    "log-fallback": Fallback,
    "by-time": TimeTied,
    "queue": Queue,
}
"""The repairs by the names that specs use."""


def parse_remedy(text: str, make: Callable[[str], Policy]) -> Policy | None:
    """Read `REPAIR(SPEC)`, such as `hold:w=2(recent:k=3)`; None if the text names no repair."""
    head, bracket, rest = text.partition("(")
    name = head.partition(":")[0]
    if not bracket or name not in REMEDIES:
        return None
    if not rest.endswith(")"):
        raise SpecError(f"Expected '{name}(SPEC)' but got {text!r}")
    return specs.construct(REMEDIES[name], specs.parse(head), inner=make(rest[:-1]))


BUDGETS = ("k", "size", "capacity", "window", "limit", "budget")
"""Names of parameters that limit how much a memory keeps."""


def list_remedies(
    policy: Policy,
    *,
    disorder: int = 2,
    visibility: HeldRecords = "shown",
    every: int = 8,
    make: Callable[[str], Policy] | None = None,
) -> list[Policy]:
    """List the standard repairs of a policy.

    These are holding back up to `disorder` records (which questions see, unless `visibility`
    is `hidden`), rebuilding (from the start, or from a snapshot after each `every` records), tying
    each declared operation to event time, doubling each budget, and searching a log. `make` makes
    a policy from a spec; it is needed to double the budgets of a memory class of your own.
    """
    repairs: list[Policy] = [Hold(policy, w, visibility) for w in range(1, disorder + 1)]
    repairs += [Rebuild(policy), Rebuild(policy, every)]
    if isinstance(policy, Operational) and (operations := tuple(policy.operations)):
        repairs += [TimeTied(policy, operation) for operation in operations]
        if len(operations) > 1:
            repairs.append(TimeTied(policy))
    repairs += _enlarge_budgets(policy, make)
    repairs.append(Fallback(policy))
    return repairs


def _enlarge_budgets(policy: Policy, make: Callable[[str], Policy] | None) -> list[Policy]:
    """Double each parameter that limits how much the policy keeps."""
    if is_dataclass(policy) and not isinstance(policy, type):
        values = {part.name: getattr(policy, part.name) for part in fields(policy)}
        doubled = _double_budgets(values)
        if doubled:
            return [replace(policy, **{name: value}) for name, value in doubled.items()]
    if make is None or policy.name.endswith(")"):
        return []
    spec = specs.parse(policy.name)
    texts = {name: int(text) for name, text in spec.values.items() if text.isdecimal()}
    enlarged = [
        make(policy.name.replace(f"{name}={texts[name]}", f"{name}={value}", 1))
        for name, value in _double_budgets(texts).items()
    ]
    return [*enlarged, *_enlarge_defaults(policy, spec.values)]


def _enlarge_defaults(policy: Policy, parameters: Collection[str]) -> list[Policy]:
    """Double the budgets that a memory class of your own declares as default arguments."""
    if not isinstance(policy, OwnMemory) or not inspect.isclass(policy.factory):
        return []
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(policy.factory).parameters.items()
        if name not in parameters
    }
    mark = "," if parameters else ":"
    return [
        replace(
            policy,
            factory=partial(policy.factory, **{name: value}),
            name=f"{policy.name}{mark}{name}={value}",
        )
        for name, value in _double_budgets(defaults).items()
    ]


def _double_budgets(values: Mapping[str, Any]) -> dict[str, int]:
    return {
        name: 2 * value
        for name, value in values.items()
        if name in BUDGETS and isinstance(value, int) and not isinstance(value, bool)
    }
