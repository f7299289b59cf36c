"""Files of recorded answers (CSV or JSON lines), and the row in them that answers a prompt."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from routeprism.errors import InputError
from routeprism.redaction import repair_text
from routeprism.spreadsheets import long_cells, unguard_cell

ROUTE = ("question", "policy", "schedule")
"""The columns that name a prompt by question and route."""
DETAILS = ("pair", "design", "filler", "prompt_control")
"""Columns that distinguish answers further; a file may omit those that are unambiguous."""
NO_DETAILS = ("",) * len(DETAILS)
BATCH_STEP = 1 << 20
"""The collector shifts another batch's draws by multiples of this, for models that take seeds."""

Key: TypeAlias = tuple[tuple[str, str], ...]
"""The (column, value) pairs by which a row is found, without the draw."""
Fields: TypeAlias = dict[str, str]
"""Column → value of one row."""

_TEXTS = ("prompt_sha256", "answer", "condition", "batch", "model", "route", *ROUTE, *DETAILS)
_NUMBERS = ("draw", "submission")
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_WHOLE_NUMBER = re.compile(r"\d{1,9}\Z")
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a file, and the line where it begins."""

    file: Path
    line: int
    fields: Fields

    def error(self, message: str, field: str) -> InputError:
        """Make the error that names this row and a column."""
        return InputError(message, file=self.file, line=self.line, field=field)

    def unexpected(self, expected: str, field: str) -> InputError:
        """Make the error about the value of a column."""
        value = self.fields[field]
        return self.error(f"Expected {expected} but got {field}={value!r:.40}", field)

    def number(self, field: str) -> int | None:
        """Read a column with a whole number; None if it is empty."""
        text = self.fields.get(field, "").strip()
        if text and not _WHOLE_NUMBER.match(text):
            raise self.unexpected("a whole number from 0", field)
        return int(text) if text else None

    def keys(self) -> Iterator[Key]:
        """Yield the ways in which the row names its prompt; an empty cell names none."""
        if digest := self.fields.get("prompt_sha256", "").strip().lower():
            if not _SHA256.match(digest):
                raise self.error(
                    f"Expected 64 hexadecimal digits but got prompt_sha256={digest!r:.80}",
                    "prompt_sha256",
                )
            yield (("prompt_sha256", digest),)
        if all(self.fields.get(name) for name in ROUTE):
            route = ((name, self.fields[name]) for name in ROUTE)
            yield (*route, ("condition", self.fields.get("condition", "")))


def read_rows(content: bytes, path: Path) -> Iterator[Row]:
    """Read the rows of a file, with the canonical column names."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InputError(f"is not UTF-8 text ({error.reason})", file=path, line=line) from error
    if not text.strip():
        raise InputError("there is no answer in it", file=path)
    parse = _read_json if text.lstrip().startswith("{") else _read_csv
    empty = True
    for row in parse(text, path):
        empty = False
        if "route" in row.fields:
            if "schedule" in row.fields:
                message = "'route' and 'schedule' are the same column; give one of them"
                raise row.error(message, "route")
            row.fields["schedule"] = row.fields.pop("route")
        yield row
    if empty:
        raise InputError("there is no answer in it", file=path)


def _read_csv(text: str, path: Path) -> Iterator[Row]:
    # Spreadsheets also write semicolons or tabs between columns.
    separator = max(_SEPARATORS, key=text.partition("\n")[0].count)
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True
    )
    names: list[str] | None = None
    line = 1
    try:
        with long_cells():
            for cells in reader:
                if names is None:
                    names = [name.strip().casefold() for name in cells]
                    _check_header(names, path)
                elif cells:
                    if len(cells) != len(names):
                        raise InputError(
                            f"Expected {len(names)} fields, as in the first line, but got "
                            f"{len(cells)}; a text with {_SEPARATORS[separator]} needs quotes",
                            file=path,
                            line=line,
                        )
                    yield Row(path, line, dict(zip(names, map(unguard_cell, cells), strict=True)))
                line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"is not valid CSV: {error}", file=path, line=line) from error


def _check_header(names: list[str], path: Path) -> None:
    for name in names:
        if names.count(name) > 1:
            raise InputError("the column is there twice", file=path, line=1, field=name)
    _check_columns(Row(path, 1, dict.fromkeys(names, "")))


def _check_columns(row: Row) -> None:
    columns = {"schedule" if name == "route" else name for name in row.fields}
    for name in ("draw", "answer"):
        if name not in columns:
            raise row.error("it is missing", name)
    missing = [name for name in ROUTE if name not in columns]
    if "prompt_sha256" not in columns and missing:
        raise row.error(
            "it is missing; a row needs 'prompt_sha256', or 'question', 'policy' and 'schedule'",
            "prompt_sha256" if len(missing) == len(ROUTE) else missing[0],
        )


def _read_json(text: str, path: Path) -> Iterator[Row]:
    for line, line_text in enumerate(text.split("\n"), start=1):
        if not line_text.strip():
            continue
        try:
            entry = json.loads(line_text, object_pairs_hook=_unique_fields)
        except (ValueError, RecursionError) as error:
            reason = getattr(error, "msg", error)
            raise InputError(f"is not a JSON object: {reason}", file=path, line=line) from error
        if not isinstance(entry, dict):
            raise InputError("Expected a JSON object", file=path, line=line)
        row = Row(path, line, {})
        for name, value in entry.items():
            if (cell := _read_value(row, name, value)) is not None:
                row.fields[name] = cell
        _check_columns(row)
        yield row


def _unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entry = dict(pairs)
    if len(entry) < len(pairs):
        raise ValueError("it gives a field twice")
    return entry


def _read_value(row: Row, name: str, value: Any) -> str | None:
    """Read a JSON value as text; null and unknown fields count as missing."""
    if value is None or isinstance(value, str):
        if name != "answer" and value is not None and repair_text(value) != value:
            raise row.error("half a surrogate pair is not valid text", name)
        return value
    if name == "correct" and (isinstance(value, bool) or value in (0, 1)):
        return str(bool(value)).lower()
    if name in _NUMBERS and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if name in (*_TEXTS, *_NUMBERS, "correct"):
        expected = {"correct": "true or false", **dict.fromkeys(_NUMBERS, "a whole number")}
        raise row.error(f"Expected {expected.get(name, 'text')} but got {name}={value!r}", name)
    return None


@dataclass(frozen=True, slots=True)
class Lookup:
    """The place of one draw of one side of one comparison."""

    key: Key
    details: tuple[str, ...]
    """The values of DETAILS; empty if one does not apply."""
    batch: str
    draw: int

    @property
    def names(self) -> dict[str, str]:
        """Everything that distinguishes it from other places, without the draw."""
        details = zip(DETAILS, self.details, strict=True)
        return dict((*self.key, *details, ("batch", self.batch)))

    def __str__(self) -> str:
        return format_place(self.names.items(), self.draw)


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """One recorded answer."""

    line: int
    """Where it begins in the file."""
    details: tuple[str, ...]
    """The values of DETAILS; an empty one matches anything."""
    batch: str
    answer: str
    correct: bool | None
    """The verdict that was recorded with it, if any."""
    order: int | None
    """Its place in the order of requests, if that was recorded."""

    def matches(self, lookup: Lookup) -> bool:
        """Whether the row answers a lookup, whatever its batch."""
        pairs = zip(self.details, lookup.details, strict=True)
        return all(value in ("", expected) for value, expected in pairs)

    def overlaps(self, answer: RecordedAnswer) -> bool:
        """Whether some lookup could match both."""
        pairs = zip(self.details, answer.details, strict=True)
        return self.batch == answer.batch and all(
            not first or not second or first == second for first, second in pairs
        )


class AnswerFile:
    """All answers of a file, indexed by what they answer."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._answers: dict[tuple[Key, int], list[RecordedAnswer]] = {}
        self.batches: frozenset[str] = frozenset()
        self.lines: list[int] = []
        self._keys: set[str] = set()
        self.judged = False
        for row in rows:
            self._add(row)

    def find(self, lookup: Lookup) -> RecordedAnswer | None:
        """Find the row that answers; a file with one batch answers for any."""
        for answer in self._answers.get((lookup.key, lookup.draw), ()):
            if answer.matches(lookup) and (len(self.batches) < 2 or answer.batch == lookup.batch):
                return answer
        return None

    def has_key(self, name: str) -> bool:
        """Whether some row is found by this column."""
        return name in self._keys

    def values(self, name: str) -> list[str]:
        """List the values of a column by which rows are found."""
        if name == "batch":
            return sorted(self.batches)
        if name in DETAILS:
            at = DETAILS.index(name)
            return sorted({row.details[at] for rows in self._answers.values() for row in rows})
        return sorted({value for key, _ in self._answers for part, value in key if part == name})

    def _add(self, row: Row) -> None:
        draw = row.number("draw")
        if draw is None or draw >= BATCH_STEP:
            raise row.unexpected("a whole number from 0", "draw")
        order = row.number("submission")
        verdict = row.fields.get("correct", "").strip().lower()
        if verdict and verdict not in _TRUTH:
            raise row.unexpected("true or false", "correct")
        answer = RecordedAnswer(
            row.line,
            tuple(row.fields.get(name, "").strip() for name in DETAILS),
            row.fields.get("batch", ""),
            row.fields["answer"],
            _TRUTH.get(verdict),
            order,
        )
        keys = list(row.keys())
        if not keys:
            message = "Expected a 'prompt_sha256', or 'question', 'policy' and 'schedule'"
            raise row.error(message, "prompt_sha256")
        for key in keys:
            answers = self._answers.setdefault((key, draw), [])
            for earlier in answers:
                if earlier.overlaps(answer):
                    raise row.error(
                        f"line {earlier.line} already answers {format_place(key, draw)}", key[0][0]
                    )
            # A prompt is unambiguous by itself, whatever details the row has.
            by_route = key[0][0] in ROUTE
            answers.append(answer if by_route else replace(answer, details=NO_DETAILS))
            self._keys.add(key[0][0])
        self.batches |= {answer.batch}
        self.judged |= answer.correct is not None
        self.lines.append(row.line)


def format_place(names: Iterable[tuple[str, str]], draw: int) -> str:
    """Write a place in a file as `column=value` pairs."""
    return ", ".join([*(f"{name}={value}" for name, value in names if value), f"draw={draw}"])
