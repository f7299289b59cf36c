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
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from routeprism.errors import InputError
from routeprism.records._files import fingerprint, is_directory, is_file, loads
from routeprism.records._lazy import LazyCases
from routeprism.records._nouns import Benchmark, Case, Pool, Question, Record, Turn, letters

__all__ = ["load"]

_CONTROL = re.compile(r"[\0-\x1f\x7f]")
"""What a name in a table cannot hold; Python 3.10 cannot even write NUL into a CSV file."""

_RECORD_FIELDS = frozenset({"user", "id", "text", "turns", "timestamp"})
_QUESTION_FIELDS = frozenset({"user", "id", "text", "options", "gold", "kind", "support"})


def load(directory: Path) -> Benchmark:
    """Load a directory of the user's own."""
    if not is_directory(directory):
        raise InputError(
            "is a file: name the directory that holds records.jsonl and questions.jsonl"
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
    labelled = questions.labelled
    inputs = {"records.jsonl": records.digest, "questions.jsonl": questions.digest}
    return Benchmark(
        name=directory.resolve().name,
        cases=cases,
        fingerprint=fingerprint(inputs),
        labels=("benchmark",) if labelled else (),
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

    @classmethod
    def scan(cls, path: Path, fields: frozenset[str]) -> _Lines:
        """Check every line for what can be checked without its neighbours."""
        found = cls(path)
        digest = hashlib.sha256()
        try:
            stream = path.open("rb")
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", file=path) from error
        with stream:
            offset = 0
            before = ""
            for number, line in enumerate(stream, start=1):
                digest.update(line)
                if not _is_blank(line):
                    entry = _entry(line, path, number)
                    _check_fields(entry, fields, path, number)
                    found.labelled = found.labelled or bool(entry.get("support"))
                    runs = found.users.setdefault(entry["user"], array("q"))
                    if entry["user"] == before:
                        runs[-1] += 1
                    else:
                        runs.extend((offset, number, 1))
                    before = entry["user"]
                offset += len(line)
        found.digest = digest.hexdigest()
        return found

    def entries(self, user: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """Read one user's lines."""
        runs = self.users.get(user, ())
        with self.path.open("rb") as stream:
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
        entry = loads(line.rstrip(b"\r\n").decode("utf-8-sig" if number == 1 else "utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 text ({error.reason})", file=path, line=number) from None
    except json.JSONDecodeError as error:
        raise InputError(
            f"is no valid JSON: {error.msg} (column {error.colno})", file=path, line=number
        ) from None
    except ValueError as error:
        raise InputError(f"cannot be used: {error}", file=path, line=number) from None
    if not isinstance(entry, dict):
        raise InputError("Expected one JSON object on each line", file=path, line=number)
    return entry


def _check_fields(entry: dict[str, Any], fields: frozenset[str], path: Path, number: int) -> None:
    for name in ("user", "id"):
        if not isinstance(entry.get(name), str) or not entry[name]:
            raise InputError(
                f"Expected a non-empty string but got {name}={entry.get(name)!r:.60}",
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


def _unique_ids(questions: _Lines) -> None:
    """Refuse two questions with one id; ids are short, so they may all be held at once."""
    seen: dict[str, int] = {}
    with questions.path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            if not _is_blank(line):
                identity = _entry(line, questions.path, number)["id"]
                if identity in seen:
                    raise InputError(
                        f"the id '{identity}' is on line {seen[identity]} already",
                        file=questions.path,
                        line=number,
                        field="id",
                    )
                seen[identity] = number


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
        pool = Pool(user, tuple(records))
        questions = []
        for number, entry in self.questions.entries(user):
            try:
                question = _question(entry)
                Case(pool, (question,))
            except InputError as error:
                raise InputError(
                    error.problem, file=self.questions.path, line=number, field=error.field
                ) from None
            questions.append(question)
        return Case(pool, tuple(questions))


def _record(entry: dict[str, Any], position: int) -> Record:
    stamp = entry.get("timestamp")
    timestamp = None if stamp is None else str(stamp)
    if "text" in entry:
        return Record(entry["id"], position, entry["text"], timestamp)
    turns = [Turn(turn["role"].lower(), turn["text"]) for turn in entry["turns"]]
    return Record.from_turns(entry["id"], position, turns, timestamp=timestamp)


def _question(entry: dict[str, Any]) -> Question:
    options = entry.get("options") or []
    if not isinstance(options, list) or not all(isinstance(option, str) for option in options):
        raise InputError("Expected a list of strings", field="options")
    support = entry.get("support") or []
    if not isinstance(support, list) or not all(isinstance(name, str) for name in support):
        raise InputError("Expected a list of record ids", field="support")
    gold = entry.get("gold")
    if gold is not None and not isinstance(gold, str):
        raise InputError(f"Expected a string but got gold={gold!r:.60}", field="gold")
    kind = entry.get("kind") or ""
    if not isinstance(kind, str) or kind == "all" or _CONTROL.search(kind):
        raise InputError(
            f"Expected one line of text other than 'all', which names all kinds, "
            f"but got kind={kind!r:.60}",
            field="kind",
        )
    if options and gold in options:
        gold = letters(len(options))[options.index(gold)]
    return Question(
        id=entry["id"],
        user=entry["user"],
        text=entry["text"],
        options=tuple(options),
        gold=gold,
        kind=kind,
        labels={"benchmark": frozenset(support)} if support else {},
    )
