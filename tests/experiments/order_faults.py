"""Twelve small memories, each with one known fault or none."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from routeprism import Block, Exposure, Record
from routeprism.policies import Event

from .update_faults import DiscardsNearDuplicates, LastIngestedWins, Repaired


class AppendOnly:
    """Keeps every record and shows all of them by event time."""

    def __init__(self) -> None:
        self.held: list[Record] = []

    def add(self, record: Record) -> None:
        self.held.append(record)

    def retained(self) -> frozenset[str]:
        return frozenset(record.id for record in self.held)

    def select(self, query: str) -> Sequence[Record]:
        return sorted(self.held, key=lambda record: str(record.timestamp))

    def expose(self, query: str) -> Exposure:
        return Exposure(
            tuple(Block("record", r.text, frozenset((r.id,))) for r in self.select(query))
        )


class OverwritesByArrival(LastIngestedWins):
    """The last arrival replaces the record of the same fact; reports no events."""

    events = None  # type: ignore[assignment]


class ShortWindow(AppendOnly):
    """Keeps the last three arrivals."""

    def add(self, record: Record) -> None:
        self.held = [*self.held, record][-3:]


class MergesIntoFirst(AppendOnly):
    """Merges some neighbours in time into the member that arrived first."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[Event] = []
        self.arrived = 0

    def events(self) -> list[Event]:
        return self.log

    def add(self, record: Record) -> None:
        twin = next((r for r in self.held if self.resemble(r, record)), None)
        if twin is None:
            self.held.append(record)
        else:
            self.merge(twin, record)
        self.arrived += 1

    def resemble(self, record: Record, two: Record) -> bool:
        places = sorted((record.position, two.position))
        return places in ([1, 2], [2, 3])

    def merge(self, twin: Record, record: Record) -> None:
        self.log.append(Event("merge", record.id, record.id, self.arrived))


class MergesIntoLongest(MergesIntoFirst):
    """Merges some neighbours in time into the longest member."""

    def merge(self, twin: Record, record: Record) -> None:
        dropped = min(twin, record, key=lambda r: (len(r.text), r.id))
        self.log.append(Event("merge", dropped.id, record.id, self.arrived))
        if dropped is twin:
            self.held[self.held.index(twin)] = record


class BreaksTiesByArrival(AppendOnly):
    """Retrieves three records by a coarse score; ties go to the record that arrived last."""

    def select(self, query: str) -> Sequence[Record]:
        words = set(query.lower().split())
        scored = [
            (len(words & set(r.text.lower().split())) // 3, at) for at, r in enumerate(self.held)
        ]
        return [self.held[at] for _, at in sorted(scored, reverse=True)[:3]]


class ShowsByArrival(AppendOnly):
    """Shows every record in order of arrival."""

    def select(self, query: str) -> Sequence[Record]:
        return self.held


class CountsArrivals(AppendOnly):
    """Remembers the order of arrival in its state, and shows nothing of it."""

    def state(self) -> list[str]:
        return [record.id for record in self.held]


class ForgetsAll(AppendOnly):
    """Keeps no record."""

    def add(self, record: Record) -> None:
        pass


class DeduplicatesUpdates(DiscardsNearDuplicates):
    """Discards an update because it resembles the record that it updates."""


class ResolvesByTime(Repaired):
    """Keeps the newest record of each fact by timestamp, and shows facts by time."""

    def list_retained(self) -> list[Record]:
        return sorted(self.held.values(), key=lambda record: str(record.timestamp))


class KeepsAtRandom(AppendOnly):
    """Keeps four records by chance."""

    deterministic = False

    # One sequence for all builds, so that a test ends the same every time.
    chance = Random(7)  # noqa: S311

    def add(self, record: Record) -> None:
        self.held.append(record)
        if len(self.held) > 4:
            self.held.remove(self.chance.choice(self.held))
