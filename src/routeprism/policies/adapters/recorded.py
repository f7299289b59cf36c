"""`trace:forward=…,route=…`: traces of a memory that were recorded elsewhere (JSON lines)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from routeprism.errors import ContractError, InputError
from routeprism.files import read_input
from routeprism.policies._contracts import Block, Event, JsonValue, Memory
from routeprism.policies.adapters._systems import AdaptedMemory
from routeprism.policies.adapters._wire import EVENT_KINDS, read_blocks
from routeprism.records import Case, Record, decode_utf8, parse_json
from routeprism.redaction import Redactor
from routeprism.specs import SpecName

__all__ = ["Trace"]

Place = tuple[str, tuple[str, ...]]
"""A user, and the record ids in their order of arrival."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Reads recorded traces: one dump of the forward order, one of another."""

    name = SpecName("trace")

    forward: str
    """A file of JSON lines, one for each user, from arrivals in source order."""
    route: str
    """The same from another order."""

    def origin(self) -> str:
        """Return the digests of both files: other dumps are another run."""
        digests = (hashlib.sha256(read_input(Path(file))).hexdigest() for file in self._files)
        return f"recorded {', '.join(digests)}"

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Refuse: what was recorded elsewhere cannot be built here."""
        raise ContractError(
            f"{self.name} contains recorded traces, which cannot be built again. Expected only the "
            f"orders that were recorded, without comparators"
        )

    def recall(self, case: Case, order: Sequence[int]) -> Memory:
        """Return the recorded memory of a user and an order."""
        arrivals = tuple(case.pool.records[position].id for position in order)
        for file in self._files:
            line = _read_trace(file).get((case.pool.user, arrivals))
            if line is not None:
                return _memory(line, case)
        raise InputError(
            f"there is no line for user '{case.pool.user}' with arrivals "
            f"{', '.join(arrivals):.200}; record that order, "
            f"or name the schedule that was recorded",
            file=self.forward if list(order) == sorted(order) else self.route,
        )

    @property
    def _files(self) -> tuple[str, str]:
        return self.forward, self.route


@dataclass(frozen=True, slots=True)
class _Line:
    """One user's dump, checked."""

    file: str
    number: int
    items: tuple[Block, ...]
    state: JsonValue
    searches: Mapping[str, tuple[Block, ...]]
    """Question id → what was shown."""
    events: tuple[Event, ...]


def _memory(line: _Line, case: Case) -> AdaptedMemory:
    searches: dict[str, tuple[Block, ...]] = {}
    for question in case.questions:
        if question.id not in line.searches:
            raise InputError(
                f"there is no search for question '{question.id}' of user '{case.pool.user}'",
                file=line.file,
                line=line.number,
                field="searches",
            )
        searches[question.text] = line.searches[question.id]
    return AdaptedMemory(
        list_blocks=lambda: line.items,
        search=searches.__getitem__,
        log=line.events,
        read_state=None if line.state is None else lambda: line.state,
    )


def _read_trace(file: str) -> Mapping[Place, _Line]:
    path = Path(file)
    return _lines(file, path.stat().st_mtime_ns if path.exists() else 0)


@lru_cache(maxsize=8)
def _lines(file: str, changed: int) -> Mapping[Place, _Line]:
    path = Path(file)
    lines: dict[Place, _Line] = {}
    for number, text in enumerate(decode_utf8(read_input(path), path).splitlines(), start=1):
        if not text.strip():
            continue
        reading = _Reading(file, number)
        try:
            entry = parse_json(text)
        except ValueError as error:
            raise InputError(f"is not valid JSON: {error}", file=file, line=number) from None
        if not isinstance(entry, dict):
            raise InputError("Expected a JSON object", file=file, line=number)
        place, line = reading.line(entry)
        if place in lines:
            raise InputError(
                f"user '{place[0]}' has this order twice", file=file, line=number, field="user"
            )
        lines[place] = line
    if not lines:
        raise InputError("there is no trace in it", file=file)
    return lines


@dataclass(frozen=True, slots=True)
class _Reading:
    """Reads one line, and names the place of an error."""

    file: str
    number: int

    def line(self, entry: Mapping[str, Any]) -> tuple[Place, _Line]:
        user = entry.get("user")
        if not isinstance(user, str) or not user:
            raise self._wrong(f"Expected a user's id but got {user!r:.60}", "user")
        arrivals = self._ids(entry.get("arrivals"), "arrivals")
        if not arrivals:
            raise self._wrong("Expected record ids in their order of arrival", "arrivals")
        items = self._items(entry.get("items"), "items", arrivals)
        searches: dict[str, tuple[Block, ...]] = {}
        entries = entry.get("searches")
        for search in entries if isinstance(entries, list) else ():
            if not isinstance(search, Mapping) or not isinstance(search.get("question"), str):
                raise self._wrong("Expected objects with 'question' and 'items'", "searches")
            searches[search["question"]] = self._items(search.get("items"), "searches", arrivals)
        line = _Line(
            self.file,
            self.number,
            items,
            entry.get("state"),
            searches,
            self._events(entry.get("events") or [], arrivals),
        )
        return (user, arrivals), line

    def _items(self, items: Any, field: str, arrivals: Sequence[str]) -> tuple[Block, ...]:
        fail = partial(self._wrong, field=field)
        return read_blocks(items, frozenset(arrivals), Redactor(), fail)

    def _ids(self, ids: Any, field: str) -> tuple[str, ...]:
        if not isinstance(ids, list) or not all(isinstance(record_id, str) for record_id in ids):
            raise self._wrong("Expected a list of record ids", field)
        return tuple(ids)

    def _events(self, entries: Any, arrivals: tuple[str, ...]) -> tuple[Event, ...]:
        events = []
        for event in entries if isinstance(entries, list) else ():
            kind = event.get("kind") if isinstance(event, Mapping) else None
            if kind not in EVENT_KINDS:
                raise self._wrong(f"Expected one of {', '.join(EVENT_KINDS)}", "events")
            record, by = event.get("record"), event.get("by")
            if record not in arrivals or by not in arrivals:
                raise self._wrong("Expected 'record' and 'by' to be ids that arrived", "events")
            events.append(Event(kind, record, by, arrivals.index(by)))
        return tuple(events)

    def _wrong(self, problem: str, field: str) -> InputError:
        return InputError(problem, file=self.file, line=self.number, field=field)
