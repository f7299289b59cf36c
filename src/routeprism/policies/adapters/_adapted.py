"""The memory that every adapter builds: a system's items, its search, and how to let it go."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

from routeprism.errors import MissingExtraError
from routeprism.policies._contracts import Block, Event, Exposure, JsonValue
from routeprism.records import Record

__all__ = ["Adapted", "Changes", "Text", "needed", "said", "turns_said", "versions"]

Text = Literal["user", "full"]
"""What of a record is handed over: its user turns, or all roles."""


def _nothing() -> None:
    """Let nothing go."""


@dataclass(frozen=True, slots=True)
class Adapted:
    """A memory system that has taken all arrivals; asked anew each time, so that changes show."""

    held: Callable[[], Sequence[Block]]
    """Everything the system holds, in its own order; names, texts and sources."""
    search: Callable[[str], Sequence[Block]]
    """What the system gives for a question's text."""
    log: tuple[Event, ...] = ()
    """What each arrival did."""
    end: Callable[[], object] = _nothing
    """Lets the system's resources go."""
    inside: Callable[[], JsonValue] | None = None
    """The internal state, where it is more than the items held."""

    def retained(self) -> frozenset[str]:
        """Give the ids of all records that some item came from."""
        return frozenset().union(*(block.sources for block in self.held()))

    def state(self) -> JsonValue:
        """Give the items in the system's order, or what it declares."""
        if self.inside is not None:
            return self.inside()
        return [[block.kind, block.text, sorted(block.sources)] for block in self.held()]

    def expose(self, query: str, /) -> Exposure:
        """Search."""
        return Exposure(tuple(self.search(query)))

    def events(self) -> Sequence[Event]:
        """Give what each arrival did."""
        return self.log

    def close(self) -> None:
        """Let the system go."""
        self.end()


def needed(module: str, what: str, extra: str) -> Any:
    """Import a memory system's module, or say which extra brings it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its dependencies, about each other
            return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"{what} ({error.name} is missing)", extra) from error


def versions(*packages: str) -> str:
    """Name the packages behind an adapter with their versions: what a stored trace came from."""
    found = []
    for package in packages:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} missing")
    return ", ".join(found)


def said(record: Record, text: Text, chars: int) -> str:
    """Give what a system is told of a record: some roles, cut to so many characters (0: whole)."""
    whole = record.user_text if text == "user" else record.text
    return whole[:chars] if chars else whole


def turns_said(record: Record, text: Text, chars: int) -> list[tuple[str, str]]:
    """Give a record's turns as (role, text) for systems that take messages; `chars` in all."""
    turns = [(turn.role, turn.text) for turn in record.turns if turn.text]
    if text == "user":
        turns = [turn for turn in turns if turn[0] == "user"] or [("user", record.user_text)]
    left = chars or sum(len(words) for _, words in turns)
    shortened = []
    for role, words in turns:
        if left > 0:
            shortened.append((role if role in _ROLES else "user", words[:left]))
        left -= len(words)
    return shortened


_ROLES = ("user", "assistant", "system")


@dataclass(slots=True)
class Changes:
    """Derives an event log from what a system holds after each arrival."""

    before: frozenset[str] = frozenset()
    events: list[Event] = field(default_factory=list)

    def after(self, record: Record, at: int, holding: Iterable[str]) -> None:
        """Note what an arrival added, and what it made the system let go."""
        now = frozenset(holding)
        kind: Literal["add", "skip"] = "add" if record.id in now else "skip"
        self.events.append(Event(kind, record.id, record.id, at))
        for gone in sorted(self.before - now):
            self.events.append(Event("evict", gone, record.id, at))
        self.before = now
