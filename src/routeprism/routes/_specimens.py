"""Records that cannot be confused: each has names that no other record contains.

Whether a text is shown under the right id, or to the wrong user, can be read from these names. The
first one opens the sentence, so that part of a text can be a question without naming the others.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Literal, TypeAlias

from routeprism.records import Record, Turn
from routeprism.routes._leaks import LeakUser

SpecimenKind: TypeAlias = Literal["new", "copy", "near copy", "update"]

_MATERIAL = json.loads(files(__package__).joinpath("conformance.json").read_text("utf-8"))["walk"]
_OPENINGS: Sequence[str] = _MATERIAL["openings"]
_ENDINGS: Sequence[str] = _MATERIAL["endings"]
_STRANGE: Sequence[str] = _MATERIAL["strange"]
_LONG_TEXTS = (700, 2_500, 12_000)
"""Characters of the long texts: some memories drop what is longer than a note or a page."""
_PER_USER = 6
"""How many records each of two users has."""
_LONG_NAME = "support-conversation-of-the-12th-of-march-with-both-attachments-page-"
"""The beginning of two ids that differ only after it."""
_CONFUSING = (
    *("Session-7a", "session-7A"),
    *(f"{_LONG_NAME}1", f"{_LONG_NAME}2"),
    *("D1:13", "D11:3"),
)
"""Pairs of ids that some systems store under one key: without case, cut, without punctuation."""


@dataclass(frozen=True, slots=True)
class Specimen:
    """A record with what it was made for."""

    record: Record
    query: str
    """The beginning of its text, which contains none of its marks."""
    marks: frozenset[str] = frozenset()
    """Names that occur in this record, and in its copies, alone."""
    kind: SpecimenKind = "new"
    original: str = ""
    """The id of the record that it copies or updates."""

    def marks_text(self, text: str) -> bool:
        """Whether a text contains one of its names."""
        words = text.casefold()
        return any(mark in words for mark in self.marks)


class Specimens:
    """Makes the records of one user; the same seed and user give the same records."""

    def __init__(self, user: str, seed: int) -> None:
        self.user = user
        self._random = random.Random(f"{seed} specimens {user}")  # noqa: S311
        self._names: set[str] = set()
        self._number = 0

    def make(self, id: str = "") -> Specimen:
        """Make a record with a sentence and names of its own."""
        names = [self._make_name() for _ in range(3)]
        # Two records share one of the two halves at most, so that they are no near copies.
        opening = _OPENINGS[self._number % len(_OPENINGS)]
        ending = _ENDINGS[self._number % len(_ENDINGS)]
        text = f"{{0}} {opening}, {ending}".format(*names)
        query = text[: text.index(names[1])].strip()
        marks = frozenset(name.casefold() for name in names[1:])
        return Specimen(self._record(text, id), query, marks)

    def copy(self, original: Specimen, kind: SpecimenKind) -> Specimen:
        """Repeat a record exactly, nearly, or with another value in its last place."""
        text, marks = original.record.user_text, original.marks
        if kind == "near copy":
            text = f"{text.rstrip('.')} today."
        elif kind == "update":
            old, new = max(marks, key=text.casefold().index), self._make_name()
            at = text.casefold().index(old)
            text = f"{text[:at]}{new}{text[at + len(old) :]}"
            marks = marks - {old} | {new.casefold()}
        record = self._record(text)
        return replace(original, record=record, marks=marks, kind=kind, original=original.record.id)

    def _record(self, text: str, id: str = "") -> Record:
        number, self._number = self._number, self._number + 1
        return Record(id or self._name_record(number), number, f"[USER] {text}")

    def _name_record(self, number: int) -> str:
        """Name a record in the way of one of several benchmarks."""
        digits = f"{self._random.getrandbits(32):08x}"
        forms = (
            f"{self.user}-{number:03d}",
            f"D{number}:3",
            f"answer_{digits}_{number}",
            f"{digits}-4c1e-4b7a-9d57-{self._random.getrandbits(48):012x}",
        )
        return forms[number % len(forms)]

    def _make_name(self) -> str:
        """Make a name that is not part of another one, nor of a word of the sentences."""
        while True:
            name = "".join(
                self._random.choice("bdfgklmnprstvz") + self._random.choice("aeiou")
                for _ in range(5)
            )
            if name not in self._names:
                self._names.add(name)
                return name.capitalize()


def make_walk(specimens: Specimens) -> Iterator[Specimen]:
    """Make the records of a walk: new ones, copies, updates, and ids that are easily confused."""
    for _ in range(5):
        yield specimens.make()
    for kind in ("copy", "near copy", "update"):
        original = specimens.make()
        yield original
        yield specimens.copy(original, kind)
    for id in _CONFUSING:
        yield specimens.make(id)
    while True:
        yield specimens.make()


def make_singles(seed: int, number: int) -> list[Specimen]:
    """Make records of several kinds, each of which a memory receives alone."""
    specimens = Specimens("single", seed)
    kinds = (*_make_forms(specimens), *(_make_strange(specimens, text) for text in _STRANGE))
    plain = [specimens.make() for _ in range(max(0, number - len(kinds)))]
    generator = random.Random(f"{seed} singles")  # noqa: S311
    return generator.sample([*kinds, *plain][:number], min(number, len(kinds) + len(plain)))


def _make_forms(specimens: Specimens) -> Iterator[Specimen]:
    """Make records that differ in form: a dialogue, a date, both, one word, and long texts."""
    dialogue = specimens.make()
    turns = (
        Turn("user", dialogue.record.user_text),
        Turn("assistant", "Thank you, I will keep that in mind."),
        Turn("user", "And please remind me of it next week."),
    )
    record = dialogue.record
    by_turns = Record.from_turns(record.id, record.position, turns)
    yield replace(dialogue, record=by_turns)
    dated = specimens.make()
    yield replace(dated, record=replace(dated.record, timestamp="2024-03-12T09:15:00"))
    dated = specimens.make()
    pair = (Turn("user", dated.record.user_text), Turn("assistant", "Noted."))
    timestamp = "2023/05/20 (Sat) 02:21"
    record = Record.from_turns(dated.record.id, dated.record.position, pair, timestamp=timestamp)
    yield replace(dated, record=record)
    short = specimens.make()
    word = short.query.split()[0]
    yield replace(short, record=replace(short.record, text=f"[USER] {word}."), query=word)
    for length in _LONG_TEXTS:
        parts = [specimens.make()]
        text = parts[0].record.text
        while len(text) < length:
            text += " " + specimens.make().record.user_text
        yield replace(parts[0], record=replace(parts[0].record, text=text))


def _make_strange(specimens: Specimens, text: str) -> Specimen:
    """Make a record of a text that systems cut, escape or drop."""
    specimen = specimens.make()
    return replace(specimen, record=replace(specimen.record, text=f"[USER] {text}"), query=text)


def make_users(seed: int) -> tuple[LeakUser, LeakUser]:
    """Make two users, half of whose records have the same ids."""
    ann, ben = Specimens("ann", seed), Specimens("ben", seed)
    first = [ann.make() for _ in range(_PER_USER)]
    ids = [specimen.record.id if at % 2 else "" for at, specimen in enumerate(first)]
    return _make_user(ann.user, first), _make_user(ben.user, [ben.make(id) for id in ids])


def _make_user(name: str, specimens: Sequence[Specimen]) -> LeakUser:
    def recognise(text: str) -> str:
        return next((s.record.id for s in specimens if s.marks_text(text)), "")

    records = [specimen.record for specimen in specimens]
    return LeakUser(name, records, [specimen.query for specimen in specimens], recognise)
