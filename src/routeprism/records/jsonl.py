"""Own data: a directory with `records.jsonl` and `questions.jsonl`.

The files are read twice: once from end to end, to check every line and remember where each user's
lines are, and then pool by pool when a pool is worked on. Memory does not hold the texts.
"""

from __future__ import annotations

import codecs
import hashlib
import json
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from routeprism.errors import InputError
from routeprism.files import open_input
from routeprism.records._benchmarks import (
    Benchmark,
    Case,
    LazyCases,
    Pool,
    Question,
    Record,
    Turn,
    letters,
)
from routeprism.records._files import (
    count_lines,
    fingerprint,
    is_directory,
    is_file,
    parse_json,
)
from routeprism.records._times import TIME_EXAMPLES, derive_stale, find_fault, read_time

__all__ = ["load"]

Integers = npt.NDArray[np.int64]

_CONTROL = re.compile(r"[\0-\x1f\x7f]")
"""Characters that a name in a table cannot contain; Python 3.10 cannot write NUL to a CSV file."""

_INLINE = re.compile(
    r"(?:^|(?<=\S))[ \t]+(\[(?:system|user|assistant)\])(?=\s|\Z)", re.IGNORECASE | re.MULTILINE
)
"""A role marker with something before it in its line, where it begins no turn."""

_RECORD_FIELDS = frozenset({"user", "id", "text", "turns", "timestamp", "supersedes"})
_QUESTION_FIELDS = frozenset(
    {"user", "id", "text", "options", "gold", "kind", "support", "stale", "outdated"}
)
_TIME_LABELS = frozenset({"supersedes", "stale", "outdated"})
"""The labels of facts that change; pools that have some are checked as a whole when loading."""


def load(directory: Path) -> Benchmark:
    """Load a directory of the user's own."""
    if not is_directory(directory):
        raise InputError(
            "is a file: name the directory that contains records.jsonl and questions.jsonl"
            if is_file(directory)
            else "there is no such directory",
            file=directory,
        )
    records = _Scan.read(directory / "records.jsonl", _RECORD_FIELDS)
    questions = _Scan.read(directory / "questions.jsonl", _QUESTION_FIELDS)
    if not records.offsets:
        raise InputError("there is no record in it", file=records.path)
    if not questions.offsets:
        raise InputError("there is no question in it", file=questions.path)
    users = _Users(records.users)
    lines = records.index(users), questions.index(users)
    if questions.has_duplicates:
        _refuse_duplicates(questions.path)
    cases = LazyCases(len(users), _Reader(*lines))
    changing = users.find({*records.changing, *questions.changing})
    stale = False
    for at in sorted(changing.tolist()):
        stale |= any(question.stale for question in cases[at].questions)
    silent = len(users) - lines[1].count_users()
    inputs = {"records.jsonl": records.digest, "questions.jsonl": questions.digest}
    return Benchmark(
        name=directory.resolve().name,
        cases=cases,
        fingerprint=fingerprint(inputs),
        labels=("benchmark",) if questions.labelled else (),
        updates=("benchmark",) if stale else (),
        inputs=inputs,
        notes=(f"{silent} users have records but no question; they add nothing",) if silent else (),
    )


class _Users:
    """The users of a file in the order of their first lines, known by the hashes of their names.

    A hundred thousand names would take ten times the memory of their hashes. A reader of the lines
    checks that they are of one user.
    """

    def __init__(self, hashes: Iterable[int]) -> None:
        self._hashes, first = np.unique(np.array(hashes, dtype=np.int64), return_index=True)
        self._numbers = np.empty(len(first), dtype=np.int64)
        self._numbers[np.argsort(first)] = np.arange(len(first))

    def __len__(self) -> int:
        return len(self._hashes)

    def find(self, hashes: Iterable[int]) -> Integers:
        """Return the numbers of users by the hashes of their names; -1 for one that is unknown."""
        names = np.array(list(hashes) if isinstance(hashes, set) else hashes, dtype=np.int64)
        places = np.searchsorted(self._hashes, names).clip(max=len(self) - 1)
        return np.where(self._hashes[places] == names, self._numbers[places], -1)


@dataclass(slots=True)
class _Scan:
    """What one pass over a JSON-lines file finds: lines of one user in a row are a run."""

    path: Path
    digest: str = ""
    users: array[int] = field(default_factory=lambda: array("q"))
    """The hash of the name of each run's user."""
    offsets: array[int] = field(default_factory=lambda: array("q"))
    """The first byte of each run."""
    lengths: array[int] = field(default_factory=lambda: array("q"))
    """The number of lines of each run."""
    ids: array[int] = field(default_factory=lambda: array("q"))
    """The hash of the id of each question."""
    labelled: bool = False
    """Whether any line has support labels."""
    changing: set[int] = field(default_factory=set)
    """The hashes of the names of users with labels of facts that change."""

    @classmethod
    def read(cls, path: Path, fields: frozenset[str]) -> _Scan:
        """Check every line for what can be checked without its neighbours."""
        scan = cls(path)
        digest = hashlib.sha256()
        with open_input(path) as stream:
            offset = 0
            before = ""
            for number, line in enumerate(stream, start=1):
                digest.update(line)
                if not _is_blank(line):
                    entry = _entry(line, path, number)
                    try:
                        _check_fields(entry, fields)
                    except InputError as error:
                        raise error.locate(path, number) from None
                    scan._add(entry, offset, follows=entry["user"] == before)
                    before = entry["user"]
                    if fields is _QUESTION_FIELDS:  # ids of records differ within a pool alone
                        scan.ids.append(hash(entry["id"]))
                offset += len(line)
        scan.digest = digest.hexdigest()
        return scan

    def _add(self, entry: dict[str, Any], offset: int, *, follows: bool) -> None:
        self.labelled = self.labelled or bool(entry.get("support"))
        user = hash(entry["user"])
        if not _TIME_LABELS.isdisjoint(entry):
            self.changing.add(user)
        if follows:
            self.lengths[-1] += 1
        else:
            self.users.append(user)
            self.offsets.append(offset)
            self.lengths.append(1)

    @property
    def has_duplicates(self) -> bool:
        """Whether two ids may be the same."""
        ids = np.sort(np.array(self.ids, dtype=np.int64))
        return bool((ids[1:] == ids[:-1]).any())

    def index(self, users: _Users) -> _Lines:
        """Sort the runs by user; refuse a user that has no records."""
        numbers = users.find(self.users)
        if (unknown := np.flatnonzero(numbers < 0)).size:
            offset = self.offsets[int(unknown[0])]
            with open_input(self.path) as stream:
                stream.seek(offset)
                number = count_lines(self.path, offset)
                user = _entry(stream.readline(), self.path, number)["user"]
            raise InputError(
                f"user '{user}' has no records in records.jsonl",
                file=self.path,
                line=number,
                field="user",
            )
        order = np.argsort(numbers, kind="stable")
        starts = np.zeros(len(users) + 1, dtype=np.uint32)
        np.cumsum(np.bincount(numbers, minlength=len(users)), out=starts[1:])
        offsets = np.array(self.offsets, dtype=np.int64)[order]
        lengths = np.array(self.lengths, dtype=np.uint32)[order]
        return _Lines(self.path, starts, offsets, lengths)


@dataclass(frozen=True, slots=True)
class _Lines:
    """A checked JSON-lines file and where the lines of each user are: 16 bytes for each user."""

    path: Path
    starts: npt.NDArray[np.uint32]
    """The first run of each user, and the number of all runs."""
    offsets: Integers
    """The first byte of each run."""
    lengths: npt.NDArray[np.uint32]
    """The number of lines of each run."""

    def count_users(self) -> int:
        """Count the users that have lines."""
        return int(np.count_nonzero(np.diff(self.starts.astype(np.int64))))

    def entries(self, user: int) -> Iterator[tuple[int, dict[str, Any]]]:
        """Read the lines of the user with a number; with each comes its first byte."""
        with open_input(self.path) as stream:
            for run in range(int(self.starts[user]), int(self.starts[user + 1])):
                offset, left = int(self.offsets[run]), int(self.lengths[run])
                stream.seek(offset)
                while left:
                    line = stream.readline()
                    if not _is_blank(line):
                        yield offset, self._parse(line, offset)
                        left -= 1
                    elif not line:
                        raise self.refuse("changed while it was read", offset)
                    offset += len(line)

    def _parse(self, line: bytes, offset: int) -> dict[str, Any]:
        try:
            return _entry(line, self.path, 2 if offset else 1)
        except InputError as error:
            raise self.refuse(error.problem, offset) from None

    def refuse(self, problem: str, offset: int, field: str | None = None) -> InputError:
        """Make an error about the line that begins at a byte."""
        return InputError(problem, file=self.path, line=count_lines(self.path, offset), field=field)


def _is_blank(line: bytes) -> bool:
    return not line.removeprefix(codecs.BOM_UTF8).strip()


def _entry(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        text = line.rstrip(b"\r\n").decode("utf-8-sig" if number == 1 else "utf-8")
        entry = parse_json(text, strict=True)
        if isinstance(entry, dict):
            return entry
        problem = "Expected one JSON object on each line"
    except UnicodeDecodeError as error:
        problem = f"is not UTF-8 text ({error.reason})"
    except json.JSONDecodeError as error:
        problem = f"is not valid JSON: {error.msg} (column {error.colno})"
    except ValueError as error:
        problem = f"cannot be used: {error}"
    raise InputError(problem, file=path, line=number)


def _check_fields(entry: dict[str, Any], fields: frozenset[str]) -> None:
    for name in ("user", "id"):
        if not isinstance(entry.get(name), str) or not entry[name].strip():
            raise InputError(
                f"Expected a non-blank string but got {name}={entry.get(name)!r:.60}", field=name
            )
    if unknown := sorted(set(entry) - fields):
        raise InputError(
            f"unknown field; a line may have {', '.join(sorted(fields))}", field=unknown[0]
        )
    if "turns" in fields:
        _check_words(entry)
        _check_time(entry)
    elif not isinstance(entry.get("text"), str) or not entry["text"].strip():
        raise InputError("the question has no text", field="text")


def _check_words(entry: dict[str, Any]) -> None:
    if ("text" in entry) == ("turns" in entry):
        raise InputError("Expected either 'text' or 'turns'", field="text")
    if "text" in entry:
        if not isinstance(entry["text"], str) or not entry["text"].strip():
            raise InputError(
                f"record '{entry['id']}' has no text; give it some or leave it out", field="text"
            )
        if (marker := _INLINE.search(entry["text"])) is not None:
            raise InputError(
                f"the role marker {marker[1]} is not at the beginning of its line, so it begins "
                f"no turn; begin a new line with it, or give 'turns' instead of 'text'",
                field="text",
            )
        return
    turns = entry["turns"]
    well = isinstance(turns, list) and all(
        isinstance(turn, dict)
        and isinstance(turn.get("role"), str)
        and isinstance(turn.get("text"), str)
        for turn in turns
    )
    if not well or not any(turn["text"].strip() for turn in turns):
        raise InputError(
            'Expected a list of {"role": …, "text": …} with some text in it', field="turns"
        )


def _check_time(entry: dict[str, Any]) -> None:
    """Refuse a time that no arrival model could read; null and blank text mean none."""
    stamp = entry.get("timestamp")
    if stamp is None or (isinstance(stamp, str) and not stamp.strip()):
        return
    is_scalar = isinstance(stamp, (str, int, float)) and not isinstance(stamp, bool)
    if not is_scalar or read_time(str(stamp)) is None:
        raise InputError(
            f"Expected a time such as {TIME_EXAMPLES} but got timestamp={stamp!r:.60}",
            field="timestamp",
        )


def _refuse_duplicates(questions: Path) -> None:
    """Refuse two questions with one id."""
    lines: dict[str, int] = {}
    with open_input(questions) as stream:
        for number, line in enumerate(stream, start=1):
            if not _is_blank(line):
                identity = _entry(line, questions, number)["id"]
                if identity in lines:
                    raise InputError(
                        f"the id '{identity}' is on line {lines[identity]} already",
                        file=questions,
                        line=number,
                        field="id",
                    )
                lines[identity] = number


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads one user's case from the two files."""

    records: _Lines
    questions: _Lines

    def __call__(self, index: int) -> Case:
        lines = self.records
        records = []
        supersedes: dict[str, frozenset[str]] = {}
        places: dict[str, int] = {}
        user = ""
        for position, (offset, entry) in enumerate(lines.entries(index)):
            user = user or entry["user"]
            if entry["user"] != user:
                raise lines.refuse(
                    f"the users '{user}' and '{entry['user']}' cannot be distinguished, because "
                    f"their names have the same hash; rename one of them",
                    offset,
                    "user",
                )
            identity = entry["id"]
            if identity in places:
                number = count_lines(lines.path, places[identity])
                raise lines.refuse(
                    f"user '{user}' has the id '{identity}' on line {number} already", offset, "id"
                )
            places[identity] = offset
            records.append(_record(entry, position))
            try:
                earlier = _texts(entry, "supersedes", "a list of record ids")
            except InputError as error:
                raise lines.refuse(error.problem, offset, error.field) from None
            if earlier:
                supersedes[identity] = frozenset(earlier)
        pool = Pool(user, tuple(records))
        if fault := find_fault(pool.records, supersedes, user):
            raise lines.refuse(fault[1], places[fault[0]], "supersedes")
        return Case(pool, tuple(self._read_questions(index, pool, supersedes)), supersedes)

    def _read_questions(
        self, index: int, pool: Pool, supersedes: Mapping[str, frozenset[str]]
    ) -> Iterator[Question]:
        for offset, entry in self.questions.entries(index):
            try:
                question = _question(entry, supersedes)
                Case(pool, (question,))
            except InputError as error:
                raise self.questions.refuse(error.problem, offset, error.field) from None
            yield question


def _record(entry: dict[str, Any], position: int) -> Record:
    stamp = entry.get("timestamp")
    timestamp = None if stamp is None else str(stamp)
    if "text" in entry:
        return Record(entry["id"], position, entry["text"], timestamp)
    turns = [Turn(turn["role"].lower(), turn["text"]) for turn in entry["turns"]]
    return Record.from_turns(entry["id"], position, turns, timestamp=timestamp)


def _texts(entry: dict[str, Any], name: str, expected: str) -> list[str]:
    """Return a field that is a list of texts; a missing field or null is an empty list."""
    value = entry.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise InputError(f"Expected {expected} but got {name}={value!r:.60}", field=name)
    return value


def _option_letter(name: str, options: list[str], field: str) -> str:
    """Return the letter of an option, which is named by its letter or by its text."""
    marks = letters(len(options))
    letter = name.strip().lower()
    if name not in options and letter in marks:
        return letter
    if name not in options:
        raise InputError(
            f"{field}={name!r:.60} is neither one of the option letters {', '.join(marks)} nor the "
            f"exact text of an option",
            field=field,
        )
    by_text = marks[options.index(name)]
    if letter in marks and letter != by_text:
        raise InputError(
            f"{field}={name!r} is ambiguous: it is the letter of option {letter} and the text of "
            f"option {by_text}; write these options out, such as 'answer {name}'",
            field=field,
        )
    return by_text


def _question(entry: dict[str, Any], supersedes: Mapping[str, frozenset[str]]) -> Question:
    options = _texts(entry, "options", "a list of strings")
    support = frozenset(_texts(entry, "support", "a list of record ids"))
    stale = frozenset(_texts(entry, "stale", "a list of record ids"))
    outdated = _texts(entry, "outdated", "a list of options or answers")
    if entry.get("stale") is None:
        stale = derive_stale(supersedes, support)
    gold = entry.get("gold")
    if gold is not None and not isinstance(gold, str):
        raise InputError(f"Expected a string but got gold={gold!r:.60}", field="gold")
    kind = "" if entry.get("kind") is None else entry["kind"]
    if not isinstance(kind, str) or kind == "all" or _CONTROL.search(kind):
        raise InputError(
            f"Expected one line of text other than 'all', which names all kinds, "
            f"but got kind={kind!r:.60}",
            field="kind",
        )
    if options and gold is not None:
        gold = _option_letter(gold, options, "gold")
    if options:
        outdated = [_option_letter(option, options, "outdated") for option in outdated]
    return Question(
        id=entry["id"],
        user=entry["user"],
        text=entry["text"],
        options=tuple(options),
        gold=gold,
        kind=kind,
        labels={"benchmark": support} if support else {},
        stale={"benchmark": stale} if stale else {},
        outdated=tuple(dict.fromkeys(outdated)),
    )
