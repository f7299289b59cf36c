"""Five memories with a fault that was reported of real ones, in miniature, and their repairs.

Each memory keeps records by the fact that they tell. The faulty ones differ from the repaired
memory in one rule.
"""

from __future__ import annotations

from collections.abc import Iterable

from routeprism import Block, Exposure, Record
from routeprism.policies import Event
from routeprism.records.sample_updates import name_fact


class Repaired:
    """Resolves by event time, adds what it replaces with, and keeps one record for each fact."""

    def __init__(self) -> None:
        self.held: dict[str, Record] = {}
        self.log: list[Event] = []
        self.arrived = 0

    def key(self, record: Record) -> str:
        return name_fact(record) or record.id

    def add(self, record: Record) -> None:
        stored_record = self.held.get(self.key(record))
        if stored_record is None:
            self.store(record, "add")
        elif stored_record.id != record.id:
            self.resolve(stored_record, record)
        self.arrived += 1

    def resolve(self, stored_record: Record, record: Record) -> None:
        if self.is_later(record, stored_record):
            self.store(record, "overwrite", stored_record)
        else:
            self.note("skip", record, record)

    def is_later(self, record: Record, stored_record: Record) -> bool:
        return str(record.timestamp) > str(stored_record.timestamp)

    def store(self, record: Record, kind: str, displaced: Record | None = None) -> None:
        self.note(kind, displaced or record, record)
        self.held[self.key(record)] = record

    def note(self, kind: str, record: Record, by: Record) -> None:
        self.log.append(Event(kind, record.id, by.id, self.arrived))  # type: ignore[arg-type]

    def events(self) -> list[Event]:
        return self.log

    def list_retained(self) -> Iterable[Record]:
        return self.held.values()

    def retained(self) -> frozenset[str]:
        return frozenset(record.id for record in self.list_retained())

    def expose(self, query: str) -> Exposure:
        return Exposure(
            tuple(Block("fact", r.user_text, frozenset((r.id,))) for r in self.list_retained())
        )


class DeletesWithoutAdding(Repaired):
    """A contradiction deletes the old fact and adds nothing."""

    def resolve(self, stored_record: Record, record: Record) -> None:
        self.note("evict", stored_record, record)
        del self.held[self.key(record)]


class AddsOnly(Repaired):
    """Nothing is ever replaced: old and new stand side by side as they arrived."""

    def key(self, record: Record) -> str:
        return record.id


class LastIngestedWins(Repaired):
    """The last arrival replaces whatever is there, however old it is."""

    def is_later(self, record: Record, stored_record: Record) -> bool:
        return True


class DiscardsNearDuplicates(Repaired):
    """An update looks so much like the old record that it is thrown away."""

    def is_later(self, record: Record, stored_record: Record) -> bool:
        return False


class TrustsReimports(Repaired):
    """Resolves by event time, but a record that arrives again counts as news of today."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def is_later(self, record: Record, stored_record: Record) -> bool:
        return record.id in self.seen or super().is_later(record, stored_record)

    def add(self, record: Record) -> None:
        super().add(record)
        self.seen.add(record.id)
