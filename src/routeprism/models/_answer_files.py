"""Reading a file of recorded answers: CSV or JSON lines, with errors that name the place."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from routeprism.errors import InputError

__all__ = ["OPTIONAL", "ROUTE", "Row", "read_content", "rows"]

ROUTE = ("question", "policy", "schedule")
"""The columns that name a prompt by where it comes from."""
OPTIONAL = ("pair", "design", "filler", "prompt_control")
"""Columns that tell answers further apart; a file may lack those that leave no doubt."""
_TEXTS = ("prompt_sha256", "answer", "condition", "batch", "model", "route", *ROUTE, *OPTIONAL)
_NUMBERS = ("draw", "submission")
Row: TypeAlias = tuple[int, dict[str, str]]
"""The line where a row begins, and its fields."""


def read_content(path: Path) -> bytes:
    """Read a file, unpacked."""
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"is no complete gzip file ({error})", file=path) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be read: {reason}", file=path) from error


def rows(content: bytes, path: Path) -> Iterator[Row]:
    """Read the file's rows with the canonical column names; the line is where a row begins."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InputError(f"is not UTF-8 text ({error.reason})", file=path, line=line) from error
    if not text.strip():
        raise InputError("there is no answer in it", file=path)
    read = _json_lines if text.lstrip().startswith("{") else _csv_lines
    empty = True
    for line, row in read(text, path):
        empty = False
        if "route" in row:
            if "schedule" in row:
                raise InputError(
                    "'route' and 'schedule' are the same column; give one of them",
                    file=path,
                    line=line,
                    field="route",
                )
            row["schedule"] = row.pop("route")
        yield line, row
    if empty:
        raise InputError("there is no answer in it", file=path)


def _csv_lines(text: str, path: Path) -> Iterator[Row]:
    mark = _mark(text)
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=mark, skipinitialspace=True, strict=True
    )
    names: list[str] | None = None
    line = 1
    try:
        for cells in reader:
            if names is None:
                names = [name.strip().casefold() for name in cells]
                _check_header(names, path)
            elif cells:
                if len(cells) != len(names):
                    raise InputError(
                        f"Expected {len(names)} fields, as in the first line, "
                        f"but got {len(cells)}; a text with {_MARKS[mark]} needs quotes",
                        file=path,
                        line=line,
                    )
                yield line, dict(zip(names, cells, strict=True))
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"is no valid CSV: {error}", file=path, line=line) from error


_MARKS = {",": "commas", ";": "semicolons", "\t": "tabs"}


def _mark(text: str) -> str:
    """Say what stands between columns: spreadsheets write semicolons or tabs, too."""
    header = text.partition("\n")[0]
    return max(_MARKS, key=header.count)


def _check_header(names: list[str], path: Path) -> None:
    for name in names:
        if names.count(name) > 1:
            raise InputError("the column is there twice", file=path, line=1, field=name)
    known = {"schedule" if name == "route" else name for name in names}
    _check_columns(known, path, 1)


def _check_columns(known: set[str], path: Path, line: int) -> None:
    for name in ("draw", "answer"):
        if name not in known:
            raise InputError("it is missing", file=path, line=line, field=name)
    if "prompt_sha256" not in known and (missing := [n for n in ROUTE if n not in known]):
        raise InputError(
            "it is missing; a row needs 'prompt_sha256', or 'question', 'policy' and 'schedule'",
            file=path,
            line=line,
            field="prompt_sha256" if len(missing) == len(ROUTE) else missing[0],
        )


def _json_lines(text: str, path: Path) -> Iterator[Row]:
    for line, written in enumerate(text.split("\n"), start=1):
        if not written.strip():
            continue
        try:
            entry = json.loads(written, object_pairs_hook=_pairs)
        except (ValueError, RecursionError) as error:
            reason = getattr(error, "msg", error)
            raise InputError(f"is no JSON object: {reason}", file=path, line=line) from error
        if not isinstance(entry, dict):
            raise InputError("Expected a JSON object", file=path, line=line)
        row = {name: _text(name, value, path, line) for name, value in entry.items()}
        row = {name: value for name, value in row.items() if value is not None}
        _check_columns({"schedule" if name == "route" else name for name in row}, path, line)
        yield line, {name: value for name, value in row.items() if value is not None}


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entry = dict(pairs)
    if len(entry) < len(pairs):
        raise ValueError("it gives a field twice")
    return entry


def _text(name: str, value: Any, path: Path, line: int) -> str | None:
    """Give a field as text; null is as if it were not there, and unknown fields do not matter."""
    if value is None or isinstance(value, str):
        return value
    if name == "correct" and (isinstance(value, bool) or value in (0, 1)):
        return str(bool(value)).lower()
    if name in _NUMBERS and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if name in (*_TEXTS, *_NUMBERS, "correct"):
        wanted = {"correct": "true or false", **dict.fromkeys(_NUMBERS, "a whole number")}
        raise InputError(
            f"Expected {wanted.get(name, 'text')} but got {name}={value!r}",
            file=path,
            line=line,
            field=name,
        )
    return None
