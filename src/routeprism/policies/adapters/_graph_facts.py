"""Facts of a temporal graph: where they came from, how long they hold, and what arrivals did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from routeprism.policies._contracts import Block, Event
from routeprism.records import Record
from routeprism.redaction import Redactor

Show = Literal["all", "current"]
"""Which facts are shown: all with their validity times, or those that are still valid."""


@dataclass(frozen=True, slots=True)
class GraphFact:
    """One fact of the graph: an edge between two entities."""

    key: str
    text: str
    episodes: tuple[str, ...]
    since: str
    until: str
    is_valid: bool

    @classmethod
    def read(cls, edge: Any) -> GraphFact:
        return cls(
            edge.uuid,
            edge.fact,
            tuple(edge.episodes),
            _format_day(edge.valid_at),
            _format_day(edge.invalid_at),
            edge.invalid_at is None and edge.expired_at is None,
        )

    def describe(self) -> str:
        """Return the fact with its validity times, as Graphiti's users put it into a prompt."""
        if not (self.since or self.until):
            return self.text
        return f"{self.text} (valid {self.since or 'from an unknown time'} – {self.until or 'now'})"


def _format_day(time: datetime | None) -> str:
    return "" if time is None else f"{time:%Y-%m-%d}"


@dataclass(slots=True)
class FactHistory:
    """Which record each episode was, and what each arrival did to the facts."""

    episodes: dict[str, str] = field(default_factory=dict)
    """Episode → record."""
    facts: dict[str, GraphFact] = field(default_factory=dict)
    """The facts after the last arrival."""
    events: list[Event] = field(default_factory=list)
    redactor: Redactor = field(default_factory=Redactor.configured)

    def find_sources(self, fact: GraphFact) -> frozenset[str]:
        """Return the records of a fact's episodes."""
        return frozenset(
            self.episodes[episode] for episode in fact.episodes if episode in self.episodes
        )

    def show(self, facts: Sequence[GraphFact], which: Show) -> list[Block]:
        """Return facts as blocks, with the records of their episodes."""
        return [
            Block("fact", self.redactor.redact(fact.describe()), self.find_sources(fact))
            for fact in facts
            if which == "all" or fact.is_valid
        ]

    def compare(self, record: Record, at: int, facts: Sequence[GraphFact]) -> None:
        """Record which facts an arrival added, confirmed, ended or deleted."""
        before, number = self.facts, len(self.events)
        self.facts = {fact.key: fact for fact in facts}
        for fact in facts:
            old = before.get(fact.key)
            if old is None:
                self._note("add", [record.id], record, at)
            elif len(fact.episodes) > len(old.episodes):  # the same fact again
                self._note("merge", self.find_sources(old) - {record.id}, record, at)
            if (old is None or old.is_valid) and not fact.is_valid:
                # An older fact that arrives later ends at once: it displaces nothing.
                kind: Literal["overwrite", "skip"] = "skip" if old is None else "overwrite"
                self._note(kind, self.find_sources(fact), record, at)
        for key, old in before.items():
            if key not in self.facts:
                self._note("evict", self.find_sources(old), record, at)
        if len(self.events) == number:
            self._note("skip", [record.id], record, at)

    def _note(self, kind: Any, sources: Any, record: Record, at: int) -> None:
        for source in sorted(sources):
            event = Event(kind, source, record.id, at)
            if event not in self.events:
                self.events.append(event)
