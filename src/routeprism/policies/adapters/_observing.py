"""Writes that may overlap, observed once none of them is in flight any more."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from routeprism.records import Record

__all__ = ["ObservedWrites"]


class ObservedWrites:
    """Collects the records that were added since the last observation.

    An add that is alone observes what the adds before it did, so that records that are added one
    by one are observed one by one. Adds that overlap are observed together.
    """

    def __init__(self, observe: Callable[[Sequence[Record]], None]) -> None:
        self._observe = observe
        self._lock = threading.RLock()
        self._flying = self._added = 0
        self._pending: list[Record] = []

    @contextmanager
    def add(self, record: Record) -> Iterator[int]:
        """Enclose the add of a record; give how many were added before."""
        with self._lock:
            self.observe()
            self._flying += 1
            number, self._added = self._added, self._added + 1
        try:
            yield number
        finally:
            with self._lock:
                self._flying -= 1
                self._pending.append(record)

    def add_together(self, records: Sequence[Record]) -> None:
        """Note records that were added in one call."""
        with self._lock:
            self._pending.extend(records)

    def observe(self) -> None:
        """Observe what the last adds did, unless one is in flight."""
        with self._lock:
            if self._pending and not self._flying:
                group, self._pending = self._pending, []
                self._observe(group)
