"""The history table of mem0 as events: what each arrival added, changed and deleted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from routeprism.policies._contracts import Block, Event
from routeprism.policies._lineage import Lineage
from routeprism.records import Record

__all__ = ["HistoryLog"]

_ROWS = "SELECT rowid, memory_id, event FROM history WHERE rowid > ? ORDER BY rowid"


class HistoryLog:
    """Follows mem0's history table; which records a memory came from is observed."""

    def __init__(self, database: Any) -> None:
        self._database = database
        self._last = 0
        self.lineage = Lineage("memory")
        self.events: list[Event] = []

    def observe(self, record: Record, at: int, items: Mapping[str, str]) -> None:
        """Compare all memories with those before the record, and read its rows of the history."""
        before = dict(self.lineage.items)
        self.lineage.observe(record, items)
        number = len(self.events)
        for row, memory, decision in self._database.execute(_ROWS, (self._last,)).fetchall():
            self._last = row
            self._note(record, at, str(decision).upper(), str(memory), before)
        if len(self.events) == number:
            self.events.append(Event("skip", record.id, record.id, at))

    def _note(
        self, record: Record, at: int, decision: str, memory: str, before: Mapping[str, Block]
    ) -> None:
        """Record one decision; an item that came and went within one arrival leaves no source."""
        old = before[memory].sources if memory in before else frozenset({record.id})
        events: list[Event] = []
        if decision == "ADD":
            events = [Event("add", record.id, record.id, at)]
        elif decision == "UPDATE":
            new = self.lineage.items.get(memory)
            sources = new.sources if new is not None else frozenset()
            events = [
                Event("merge" if item in sources else "overwrite", item, record.id, at)
                for item in sorted(old)
            ]
        elif decision == "DELETE":
            events = [Event("evict", item, record.id, at) for item in sorted(old)]
        self.events += [event for event in events if event not in self.events]
