"""A memory behind an existing API, to which records can be added at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from routeprism.errors import InapplicableError, RouteError
from routeprism.policies._contracts import Block, Event, JsonValue
from routeprism.policies.adapters._observing import ObservedWrites
from routeprism.policies.adapters._session import ServiceSession
from routeprism.records import Record

__all__ = ["ServiceMemory"]


class ServiceMemory:
    """An open memory of a service with a profile."""

    concurrent = True
    awaits_ingestion = True
    """Whether reading it waits for what was added before."""

    def __init__(self, session: ServiceSession) -> None:
        self._session = session
        self._writes = ObservedWrites(self._observe)
        wait = session.profile.wait
        self.settle = None if wait is None else wait.limit
        """Seconds within which the service stores what it was given; None if it does so at once."""
        session.clear()
        session.open()

    def add(self, record: Record) -> None:
        """Add a record; several may be added at once."""
        with self._writes.add(record):
            self._session.write(record)

    def add_many(self, records: Sequence[Record]) -> None:
        """Add several records in one request; not applicable if the profile has none."""
        step = self._session.profile.bulk
        if step is None:
            raise InapplicableError(f"{self._session.profile.file} has no table [bulk]")
        self._writes.observe()
        self._session.write_all(step, records)
        self._writes.add_together(records)

    def retained(self) -> list[str]:
        """Return the ids of the records that the items came from, once for each item."""
        return [id for block in self._list_blocks() for id in sorted(block.sources)]

    def state(self) -> JsonValue:
        """Return the texts of all items; the keys of the service may differ by chance."""
        return [block.text for block in self._list_blocks()]

    def expose(self, query: str) -> Sequence[Block]:
        """Search for a question's text."""
        self._list_blocks()
        return self._session.search(query)

    def events(self) -> Sequence[Event]:
        """Return what each arrival did."""
        self._writes.observe()
        return tuple(self._session.lineage.events)

    def counts(self) -> Mapping[str, int]:
        """Count the items whose sources are uncertain."""
        return self._session.lineage.counts()

    def close(self) -> None:
        """Let the service forget the memory."""
        with suppress(RouteError):  # a service that is gone has nothing left to forget
            self._session.reset()

    def _observe(self, group: Sequence[Record]) -> None:
        lineage = self._session.lineage
        before = {key: block.text for key, block in lineage.items.items()}
        items: Mapping[str, str] = before
        for record in group:
            items = self._session.wait(before, record)
        lineage.observe(group[0] if len(group) == 1 else group, items)

    def _list_blocks(self) -> Sequence[Block]:
        """Return all items; what was ingested since the last observation counts as late."""
        self._writes.observe()
        session = self._session
        if session.profile.list.sources is None:
            session.lineage.check({item.key: item.text for item in session.dump()})
        return session.list_blocks()
