"""Repairs around a live memory, for your own code; `remedies` has the same repairs as policies."""

from __future__ import annotations

import copy
import inspect
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from routeprism.policies._contracts import Block
from routeprism.policies._event_order import (
    EventBuffer,
    EventClock,
    EventLog,
    Key,
    sort_events,
)
from routeprism.policies.interfaces import Bm25Top, record_block
from routeprism.policies.own import as_blocks, call_optional, close_memory, retained_ids
from routeprism.records import Record


def read_calls(counts: Mapping[str, int]) -> int | None:
    """Read how many model calls a memory counted while it was built; None if it counted none."""
    return counts.get("model_calls", counts.get("consultations"))


def list_dropped(arrivals: Iterable[Record], retained: frozenset[str]) -> list[Record]:
    """List the records of a log that a memory does not retain, in event order."""
    log = {record.id: record for record in arrivals}
    return sort_events(record for id, record in log.items() if id not in retained)


def search_log(records: Sequence[Record], query: str, k: int) -> list[Record]:
    """Find the best `k` records for a question by BM25, best first."""
    return Bm25Top(k).ranked(records, query)[:k] if records else []


class LiveMemory(Protocol):
    """A memory of your own that records are added to one by one."""

    def add(self, record: Record, /) -> Any:
        """Add a record."""

    def retained(self) -> Iterable[Any]:
        """Return the records or record ids that are kept."""

    def expose(self, query: str, /) -> Any:
        """Return what a question is shown."""


@dataclass(slots=True)
class HeldMemory:
    """A live memory that receives its records in event order, `w` of them held back."""

    memory: LiveMemory
    w: int = 1
    shown: bool = True
    """Whether questions see the records that are still held back."""
    key: Key | None = None
    """A place of your own for each record, instead of its time and its source position."""
    held: list[Record] = field(init=False)
    released: dict[str, Record] = field(default_factory=dict, init=False)
    writes: int = field(default=0, init=False)
    _buffer: EventBuffer = field(init=False)

    def __post_init__(self) -> None:
        self._buffer = EventBuffer(self.w, EventClock(self.key))
        self.held = self._buffer.records

    def add(self, record: Record, /) -> None:
        """Take a record, and release the oldest one if more than `w` are held."""
        if (released := self._buffer.add(record)) is not None:
            self._release(released)

    def flush(self) -> None:
        """Release everything, at the end of a stream."""
        while self.held:
            self._release(self.held.pop(0))

    def _release(self, record: Record) -> None:
        self.released[record.id] = record
        self.memory.add(record)
        self.writes += 1

    def retained(self) -> frozenset[str]:
        """Return the ids that the memory keeps, and those that are held back and shown."""
        buffered_ids = frozenset(record.id for record in self.held) if self.shown else frozenset()
        return retained_ids(self.memory) | buffered_ids

    def expose(self, query: str, /) -> list[Block]:
        """Show what the memory shows, and the records that are held back."""
        buffer = dict.fromkeys(self.held) if self.shown else ()
        blocks = as_blocks(self.memory.expose(query), self.released)
        return [*blocks, *map(record_block, buffer)]

    def close(self) -> None:
        """Close the memory."""
        close_memory(self.memory)


@dataclass(slots=True)
class RebuiltMemory:
    """A live memory that is rebuilt from a log, in event order, when a record arrives late."""

    make: Callable[[], LiveMemory]
    """Makes an empty memory."""
    every: int | None = None
    """Copy the memory after this many records, and rebuild from the last copy."""
    key: Key | None = None
    """A place of your own for each record, instead of its time and its source position."""
    writes: int = field(default=0, init=False)
    memory: LiveMemory = field(init=False)
    _log: EventLog = field(init=False)
    _discarded_calls: int = field(default=0, init=False)
    _copies: dict[int, LiveMemory] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.memory = self.make()
        self._log = EventLog(EventClock(self.key))

    @property
    def log(self) -> list[Record]:
        """The records that have arrived, in event order."""
        return self._log.records

    def add(self, record: Record, /) -> None:
        """Add a record; one that is late makes the memory start again from the log."""
        at = self._log.add(record)
        if at is None:
            return  # it has arrived before
        if at < len(self.log) - 1:
            at = self._return_to(at // self.every * self.every if self.every else 0)
        for number in range(at, len(self.log)):
            if self.every and number and number % self.every == 0:
                self._copies[number] = copy.deepcopy(self.memory)
            self.memory.add(self.log[number])
            self.writes += 1

    def _return_to(self, number: int) -> int:
        """Go back to the memory as it was after this many records."""
        discarded = self._read_calls()
        close_memory(self.memory)
        self._copies = {at: memory for at, memory in self._copies.items() if at <= number}
        self.memory = copy.deepcopy(self._copies[number]) if number else self.make()
        self._discarded_calls += discarded - self._read_calls()
        return number

    def _read_calls(self) -> int:
        """Read the model calls that the present memory counted since it was empty."""
        return read_calls(call_optional(self.memory, "counts", {})) or 0

    @property
    def model_calls(self) -> int:
        """Model calls of all builds, as the memory's `counts()` gives them in `consultations`."""
        return self._discarded_calls + self._read_calls()

    def retained(self) -> frozenset[str]:
        """Return the ids that the memory keeps."""
        return retained_ids(self.memory)

    def expose(self, query: str, /) -> Any:
        """Show what the memory shows."""
        return self.memory.expose(query)

    def close(self) -> None:
        """Close the memory."""
        close_memory(self.memory)


@dataclass(slots=True)
class FallbackMemory:
    """A live memory with a log beside it, whose best matches are shown as well."""

    memory: LiveMemory
    k: int = 3
    """How many dropped records a question brings back."""
    log: dict[str, Record] = field(default_factory=dict, init=False)

    def add(self, record: Record, /) -> None:
        """Add a record to the memory and to the log."""
        self.log[record.id] = record
        self.memory.add(record)

    def retained(self) -> frozenset[str]:
        """Return every id: what the memory dropped is in the log."""
        return frozenset(self.log)

    def expose(self, query: str, /) -> list[Block]:
        """Show what the memory shows, and the best dropped records."""
        dropped = list_dropped(self.log.values(), retained_ids(self.memory))
        records = search_log(dropped, query, self.k)
        return [*as_blocks(self.memory.expose(query), self.log), *map(record_block, records)]

    def close(self) -> None:
        """Close the memory."""
        close_memory(self.memory)


class QueuedMemory:
    """A memory whose adds wait for each other; you can use it in your own code."""

    concurrent = True

    def __init__(self, memory: Any) -> None:
        self.memory = memory
        self._writing = threading.Lock()

    def add(self, record: Any) -> None:
        """Add a record when no other add is going on."""
        with self._writing:
            self.memory.add(record)

    def retained(self) -> Any:
        """Return what the memory retains."""
        return self.memory.retained()

    def expose(self, query: str) -> Any:
        """Return what the memory exposes."""
        return self.memory.expose(query)

    def __getattr__(self, name: str) -> Any:
        if name == "memory" or name.startswith("__"):  # while it is copied
            raise AttributeError(name)
        return getattr(self.memory, name)


class _AsyncQueuedMemory(QueuedMemory):
    """The same for a memory with `async def add`."""

    def __init__(self, memory: Any) -> None:
        import asyncio

        super().__init__(memory)
        self._turn = asyncio.Lock()

    async def add(self, record: Any) -> None:  # type: ignore[override]
        async with self._turn:
            await self.memory.add(record)


def queue_writes(memory: Any) -> QueuedMemory:
    """Put a queue before a memory, whether its `add` is `async` or not."""
    waits = inspect.iscoroutinefunction(getattr(memory, "add", None))
    return _AsyncQueuedMemory(memory) if waits else QueuedMemory(memory)
