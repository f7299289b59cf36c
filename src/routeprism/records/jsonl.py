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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from routeprism.errors import InputError
from routeprism.inputs import open_input
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
from routeprism.records._files import fingerprint, is_directory, is_file, parse_json
from routeprism.records._times import TIME_EXAMPLES, read_time
from routeprism.records._updates import derive_stale, find_fault

__all__ = ["load"]

_CONTROL = re.compile(r"[\0-\x1f\x7f]")
"""What a name in a table cannot hold; Python 3.10 cannot even write NUL into a CSV file."""

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
    records = _Lines.scan(directory / "records.jsonl", _RECORD_FIELDS)
    questions = _Lines.scan(directory / "questions.jsonl", _QUESTION_FIELDS)
    if not records.users:
        raise InputError("there is no record in it", file=records.path)
    if not questions.users:
        raise InputError("there is no question in it", file=questions.path)
    for user, runs in questions.users.items():
        if user not in records.users:
            raise InputError(
                f"user '{user}' has no records in {records.path.name}",
                file=questions.path,
                line=runs[1],
                field="user",
            )
    _unique_ids(questions)
    users = tuple(records.users)
    cases = LazyCases(len(users), _Reader(records, questions, users))
    changing = records.changing | questions.changing
    stale = False
    for at, user in enumerate(users):
        if user in changing:
            stale |= any(question.stale for question in cases[at].questions)
    labelled = questions.labelled
    inputs = {"records.jsonl": records.digest, "questions.jsonl": questions.digest}
    return Benchmark(
        name=directory.resolve().name,
        cases=cases,
        fingerprint=fingerprint(inputs),
        labels=("benchmark",) if labelled else (),
        updates=("benchmark",) if stale else (),
        inputs=inputs,
        notes=_notes(records, questions),
    )


def _notes(records: _Lines, questions: _Lines) -> tuple[str, ...]:
    silent = sum(user not in questions.users for user in records.users)
    return (f"{silent} users have records but no question; they add nothing",) if silent else ()


@dataclass(slots=True)
class _Lines:
    """A checked JSON-lines file and, for each user, where the lines are."""

    path: Path
    digest: str = ""
    users: dict[str, array[int]] = field(default_factory=dict)
    """User → runs of lines: where each begins (byte, line number) and how many it has."""
    labelled: bool = False
    """Whether any line has support labels."""
    changing: set[str] = field(default_factory=set)
    """The users of lines with labels of facts that change."""

    @classmethod
    def scan(cls, path: Path, fields: frozenset[str]) -> _Lines:
        """Check every line for what can be checked without its neighbours."""
        lines = cls(path)
        digest = hashlib.sha256()
        with open_input(path) as stream:
            offset = 0
            before = ""
            for number, line in enumerate(stream, start=1):
                digest.update(line)
                if not _is_blank(line):
                    entry = _entry(line, path, number)
                    _check_fields(entry, fields, path, number)
                    lines.labelled = lines.labelled or bool(entry.get("support"))
                    if not _TIME_LABELS.isdisjoint(entry):
                        lines.changing.add(entry["user"])
                    runs = lines.users.setdefault(entry["user"], array("q"))
                    if entry["user"] == before:
                        runs[-1] += 1
                    else:
                        runs.extend((offset, number, 1))
                    before = entry["user"]
                offset += len(line)
        lines.digest = digest.hexdigest()
        return lines

    def entries(self, user: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """Read one user's lines."""
        runs = self.users.get(user, ())
        with open_input(self.path) as stream:
            for at in range(0, len(runs), 3):
                offset, number, left = runs[at : at + 3]
                stream.seek(offset)
                while left:
                    line = stream.readline()
                    if not _is_blank(line):
                        yield number, _entry(line, self.path, number)
                        left -= 1
                    elif not line:
                        raise InputError("changed while it was read", file=self.path, line=number)
                    number += 1


def _is_blank(line: bytes) -> bool:
    return not line.removeprefix(codecs.BOM_UTF8).strip()


def _entry(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        text = line.rstrip(b"\r\n").decode("utf-8-sig" if number == 1 else "utf-8")
        entry = parse_json(text, strict=True)
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 text ({error.reason})", file=path, line=number) from None
    except json.JSONDecodeError as error:
        raise InputError(
            f"is not valid JSON: {error.msg} (column {error.colno})", file=path, line=number
        ) from None
    except ValueError as error:
        raise InputError(f"cannot be used: {error}", file=path, line=number) from None
    if not isinstance(entry, dict):
        raise InputError("Expected one JSON object on each line", file=path, line=number)
    return entry


def _check_fields(entry: dict[str, Any], fields: frozenset[str], path: Path, number: int) -> None:
    for name in ("user", "id"):
        if not isinstance(entry.get(name), str) or not entry[name].strip():
            raise InputError(
                f"Expected a non-blank string but got {name}={entry.get(name)!r:.60}",
                file=path,
                line=number,
                field=name,
            )
    if unknown := sorted(set(entry) - fields):
        raise InputError(
            f"unknown field; a line may have {', '.join(sorted(fields))}",
            file=path,
            line=number,
            field=unknown[0],
        )
    if "turns" in fields:
        _check_words(entry, path, number)
        _check_time(entry, path, number)
    elif not isinstance(entry.get("text"), str) or not entry["text"].strip():
        raise InputError("the question has no text", file=path, line=number, field="text")


def _check_words(entry: dict[str, Any], path: Path, number: int) -> None:
    if ("text" in entry) == ("turns" in entry):
        raise InputError("Expected either 'text' or 'turns'", file=path, line=number, field="text")
    if "text" in entry:
        if not isinstance(entry["text"], str) or not entry["text"].strip():
            raise InputError(
                f"record '{entry['id']}' has no text; give it some or leave it out",
                file=path,
                line=number,
                field="text",
            )
        if (marker := _INLINE.search(entry["text"])) is not None:
            raise InputError(
                f"the role marker {marker[1]} is not at the beginning of its line, so it begins "
                f"no turn; begin a new line with it, or give 'turns' instead of 'text'",
                file=path,
                line=number,
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
            'Expected a list of {"role": …, "text": …} with some text in it',
            file=path,
            line=number,
            field="turns",
        )


def _check_time(entry: dict[str, Any], path: Path, number: int) -> None:
    """Refuse a time that no arrival model could read; null and blank text mean none."""
    stamp = entry.get("timestamp")
    if stamp is None or (isinstance(stamp, str) and not stamp.strip()):
        return
    is_scalar = isinstance(stamp, (str, int, float)) and not isinstance(stamp, bool)
    if not is_scalar or read_time(str(stamp)) is None:
        raise InputError(
            f"Expected a time such as {TIME_EXAMPLES} but got timestamp={stamp!r:.60}",
            file=path,
            line=number,
            field="timestamp",
        )


def _unique_ids(questions: _Lines) -> None:
    """Refuse two questions with one id; ids are short, so they may all be held at once."""
    lines: dict[str, int] = {}
    with open_input(questions.path) as stream:
        for number, line in enumerate(stream, start=1):
            if not _is_blank(line):
                identity = _entry(line, questions.path, number)["id"]
                if identity in lines:
                    raise InputError(
                        f"the id '{identity}' is on line {lines[identity]} already",
                        file=questions.path,
                        line=number,
                        field="id",
                    )
                lines[identity] = number


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads one user's case from the two files."""

    records: _Lines
    questions: _Lines
    users: tuple[str, ...]

    def __call__(self, index: int) -> Case:
        return self._case(self.users[index])

    def _case(self, user: str) -> Case:
        records = []
        supersedes: dict[str, frozenset[str]] = {}
        first_line: dict[str, int] = {}
        for position, (number, entry) in enumerate(self.records.entries(user)):
            identity = entry["id"]
            if identity in first_line:
                raise InputError(
                    f"user '{user}' has the id '{identity}' on line {first_line[identity]} already",
                    file=self.records.path,
                    line=number,
                    field="id",
                )
            first_line[identity] = number
            records.append(_record(entry, position))
            try:
                earlier = _texts(entry, "supersedes", "a list of record ids")
            except InputError as error:
                raise InputError(
                    error.problem, file=self.records.path, line=number, field=error.field
                ) from None
            if earlier:
                supersedes[identity] = frozenset(earlier)
        pool = Pool(user, tuple(records))
        if fault := find_fault(pool.records, supersedes, user):
            raise InputError(
                fault[1], file=self.records.path, line=first_line[fault[0]], field="supersedes"
            )
        questions = []
        for number, entry in self.questions.entries(user):
            try:
                question = _question(entry, supersedes)
                Case(pool, (question,))
            except InputError as error:
                raise InputError(
                    error.problem, file=self.questions.path, line=number, field=error.field
                ) from None
            questions.append(question)
        return Case(pool, tuple(questions), supersedes)


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
