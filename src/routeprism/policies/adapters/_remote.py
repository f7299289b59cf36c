"""A memory behind the four verbs, to which records can be added at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from routeprism.policies._contracts import Block, Event, JsonValue
from routeprism.policies.adapters._wire import (
    Call,
    describe_record,
    read_events,
    read_items,
    read_state,
)
from routeprism.records import Record
from routeprism.redaction import Redactor

__all__ = ["RemoteMemory"]


class RemoteMemory:
    """An open memory of a service or a program."""

    concurrent = True

    def __init__(
        self, call: Call, end: Callable[[], object], redactor: Redactor, settle: float = 0.0
    ) -> None:
        self._call, self._end, self._redactor = call, end, redactor
        self._lock = threading.Lock()
        self._arrived: dict[str, int] = {}
        self._log: list[Event] = []
        self._number = 0
        self.settle = settle or None
        """Seconds within which the system stores what it was given; None if it does so at once."""
        call("reset", {})

    def add(self, record: Record) -> None:
        """Add a record; several may be added at once."""
        with self._lock:
            at = self._number
            self._number += 1
            self._arrived[record.id] = at
        reply = self._call("add", {"record": describe_record(record)})
        with self._lock:
            arrived = frozenset(self._arrived)
            self._log.extend(read_events(reply, record, at, arrived, self._redactor))

    def add_many(self, records: Sequence[Record]) -> None:
        """Add several records in one request."""
        with self._lock:
            for record in records:
                self._arrived[record.id] = self._number
                self._number += 1
        self._call("add_many", {"records": [describe_record(record) for record in records]})

    def retained(self) -> list[str]:
        """Return the ids of the records that the items came from, once for each item."""
        return [id for block in self._ask("dump", {}) for id in sorted(block.sources)]

    def state(self) -> JsonValue:
        """Return the declared state, otherwise the items as they are."""
        return read_state(self._call("dump", {}), frozenset(self._arrived), self._redactor)

    def expose(self, query: str) -> Sequence[Block]:
        """Search for a question's text."""
        return self._ask("search", {"query": query})

    def events(self) -> Sequence[Event]:
        """Return what each arrival did."""
        return tuple(sorted(self._log, key=lambda event: event.at))

    def close(self) -> None:
        """End the program, or let the service forget the memory."""
        self._end()

    def _ask(self, verb: str, content: dict[str, JsonValue]) -> tuple[Block, ...]:
        arrived = frozenset(self._arrived)
        return read_items(self._call(verb, content), verb, arrived, self._redactor)
