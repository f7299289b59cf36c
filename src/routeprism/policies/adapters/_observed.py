"""An open memory of a system that reports no sources: they are observed by listing all items."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Protocol

from routeprism.policies._contracts import Block, Event, JsonValue
from routeprism.policies._lineage import Lineage
from routeprism.policies.adapters._systems import count_verbatim
from routeprism.policies.adapters._wire import OUTSIDE_LIMIT
from routeprism.records import Record


class ObservedSystem(Protocol):
    """A connection to a service or a server that has one empty memory for this build."""

    lineage: Lineage

    def write(self, record: Record, number: int, /) -> None: ...
    def write_all(self, records: Sequence[Record], /) -> None: ...
    def wait(
        self, before: Mapping[str, str], records: Sequence[Record], /
    ) -> Mapping[str, str]: ...
    def read_blocks(self) -> Sequence[Block]: ...
    def describe_state(self, blocks: Sequence[Block], /) -> JsonValue: ...
    def search(self, query: str, /) -> Sequence[Block]: ...
    def restart(self) -> None: ...
    def end(self) -> None: ...


class ObservedMemory:
    """A memory of such a system, to which records can be added one by one or at once.

    An add that is alone observes what the adds before it did, so that records that are added one
    by one are observed one by one. Adds that overlap are observed together.
    """

    concurrent = True
    write_limit = OUTSIDE_LIMIT
    awaits_ingestion = True
    """Whether reading it waits for what was added before."""

    def __init__(self, system: ObservedSystem) -> None:
        self._system = system
        self._lock = threading.RLock()
        self._records: list[Record] = []
        self._pending: list[Record] = []
        """The records that were added since the last observation."""
        self._flying = 0

    def add(self, record: Record) -> None:
        """Add a record; several may be added at once."""
        with self._lock:
            self._observe()
            self._flying += 1
            number = len(self._records)
            self._records.append(record)
        try:
            self._system.write(record, number)
        finally:
            with self._lock:
                self._flying -= 1
                self._pending.append(record)

    def add_many(self, records: Sequence[Record]) -> None:
        """Add several records in one request; not applicable if the profile has none."""
        self._observe()
        self._system.write_all(records)
        with self._lock:
            self._records.extend(records)
            self._pending.extend(records)

    def reopen(self) -> ObservedMemory:
        """End the system and start it again on the same storage."""
        self._observe()
        self._system.restart()
        return self

    def retained(self) -> list[str]:
        """Return the ids of the records that the items came from, once for each item."""
        return [id for block in self._list_blocks() for id in sorted(block.sources)]

    def state(self) -> JsonValue:
        """Return all items without their keys, which may differ by chance."""
        return self._system.describe_state(self._list_blocks())

    def expose(self, query: str) -> Sequence[Block]:
        """Search for a question's text."""
        self._list_blocks()
        return self._system.search(query)

    def events(self) -> Sequence[Event]:
        """Return what each arrival did."""
        self._observe()
        return tuple(self._system.lineage.events)

    def counts(self) -> Mapping[str, int]:
        """Count the items whose sources are uncertain, and those that repeat their records."""
        verbatim = count_verbatim(self._list_blocks(), self._records)
        return {**self._system.lineage.counts(), **verbatim}

    def close(self) -> None:
        """Let the system forget the memory."""
        self._system.end()

    def _list_blocks(self) -> Sequence[Block]:
        self._observe()
        return self._system.read_blocks()

    def _observe(self) -> None:
        """Attribute new and changed items to the last adds, unless one is in flight."""
        with self._lock:
            if not self._pending or self._flying:
                return
            group, self._pending = self._pending, []
            lineage = self._system.lineage
            before = {key: block.text for key, block in lineage.items.items()}
            items = self._system.wait(before, group)
            lineage.observe(group[0] if len(group) == 1 else group, items)
