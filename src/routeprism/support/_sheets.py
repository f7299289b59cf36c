"""Tables that go through a spreadsheet and come back: bytes to rows, and rows to bytes.

What spreadsheets do to a file is undone here: a byte-order mark, semicolons or tabs, a `sep=` line,
UTF-16 from "Unicode text", line ends, empty rows at the end, columns moved or added. A cell that a
spreadsheet would run as a formula is written with an apostrophe before it, which is taken off again
when it is read. Whatever else is wrong is an error with the file, the line and the row.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from routeprism.errors import InputError, nearest

__all__ = ["CELL", "Row", "decode", "read_bytes", "read_table", "split", "write_table"]

CELL = 32_000
"""Characters a cell may have; spreadsheets cut what passes 32,767, without a word."""

_FORMULA = re.compile(r"'*[=+\-@\t\r＝＋－＠]")
"""What a spreadsheet may run, behind any apostrophes that were there already."""
_GUARDED = re.compile(r"'+[=+\-@\t\r＝＋－＠]")
_SEPARATOR = re.compile(r"\"?sep=(.)\"?\r?\n", re.IGNORECASE)
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table, with the place a person finds it at."""

    file: Path
    line: int
    """The line of the file where it begins; a quoted cell may go over several."""
    number: int
    """Its number in a spreadsheet, where the header is row 1."""
    cells: Mapping[str, str]
    """By the column's name in lower case; empty where the row ends early."""

    def get(self, column: str) -> str:
        """Give a cell without white space around it; empty where there is no such column."""
        return self.cells.get(column, "").strip()

    def error(self, problem: str, column: str | None = None) -> InputError:
        """Make the error of one of its cells."""
        return InputError(
            f"row {self.number}: {problem}", file=self.file, line=self.line, field=column
        )

    def choice(self, column: str, known: Sequence[str], *, may_be_empty: bool = False) -> str:
        """Give one of several words, in whatever case it was written."""
        written = self.get(column)
        value = written.casefold()
        if value in known or (may_be_empty and not value):
            return value
        if not value:
            raise self.error(f"there is no {column}; expected one of {', '.join(known)}", column)
        raise self.error(f"there is no {column} '{written}'. {nearest(value, known)}", column)


def split(text: str) -> list[str]:
    """Cut a text into pieces that a cell can hold; an empty one is one piece.

    Spreadsheets count UTF-16 units, of which an emoji has two.
    """
    size = CELL if text.isascii() or max(text, default="") <= "\uffff" else CELL // 2
    return [text[at : at + size] for at in range(0, len(text), size)] or [""]


def write_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> bytes:
    """Write a table as spreadsheets like it: UTF-8 with a byte-order mark, commas, CRLF."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([f"'{cell}" if _FORMULA.match(cell) else cell for cell in row])
    return codecs.BOM_UTF8 + stream.getvalue().encode()


def read_bytes(path: Path) -> bytes:
    """Read a file."""
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be read: {reason}", file=path) from error


def decode(content: bytes, path: Path) -> str:
    """Decode a file by its byte-order mark; without one it has to be UTF-8."""
    wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return content.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"is not UTF-8 text ({error.reason}); save it as 'CSV UTF-8'",
            file=path,
            line=None if wide else content[: error.start].count(b"\n") + 1,
        ) from error


def read_table(content: bytes, path: Path, needed: Sequence[Sequence[str]]) -> list[Row]:
    """Read a table that has, of each group of columns, one; other columns may be there too."""
    text = decode(content, path)
    lines = 0
    marks: Sequence[str] = tuple(_DELIMITERS)
    if told := _SEPARATOR.match(text):
        marks, text, lines = (told[1],), text[told.end() :], 1
    if not text.strip():
        raise InputError("there is nothing in it", file=path)
    for mark in marks:
        header = next(iter(_parsed(text, mark, path, lines, only_header=True)))[1]
        names = [name.strip().casefold() for name in header]
        if all(any(name in names for name in group) for group in needed):
            return _rows(text, mark, path, lines, names)
    raise _no_header(text, marks, path, lines, needed)


def _rows(text: str, mark: str, path: Path, lines: int, names: Sequence[str]) -> list[Row]:
    for name in names:
        if name and names.count(name) > 1:
            raise InputError("the column is there twice", file=path, line=lines + 1, field=name)
    found = []
    for number, (line, cells) in enumerate(_parsed(text, mark, path, lines), start=1):
        if number == 1 or not any(cell.strip() for cell in cells):
            continue
        row = Row(path, line, number, dict(zip(names, map(_plain, cells), strict=False)))
        if any(cell.strip() for cell in cells[len(names) :]):
            raise row.error(
                f"Expected {len(names)} cells, as in the header, but got {len(cells)}; "
                f"a text with {_DELIMITERS.get(mark, repr(mark))} needs quotes"
            )
        found.append(row)
    return found


def _parsed(
    text: str, mark: str, path: Path, lines: int, *, only_header: bool = False
) -> list[tuple[int, list[str]]]:
    """Give each row with the line it begins at."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True)
    found: list[tuple[int, list[str]]] = []
    line = lines + 1
    try:
        for cells in reader:
            found.append((line, cells))
            line = lines + reader.line_num + 1
            if only_header:
                break
    except csv.Error as error:
        if only_header:  # with another delimiter it may be a good one
            return [(line, [])]
        raise InputError(
            f"is no valid CSV: {error}; is a quotation mark missing?", file=path, line=line
        ) from error
    return found


def _plain(cell: str) -> str:
    return cell[1:] if _GUARDED.match(cell) else cell


def _no_header(
    text: str, marks: Sequence[str], path: Path, lines: int, needed: Sequence[Sequence[str]]
) -> InputError:
    headers = [_parsed(text, mark, path, lines, only_header=True)[0][1] for mark in marks]
    header = [name.strip().casefold() for name in max(headers, key=len)]
    missing = next(group for group in needed if not any(name in header for name in group))
    wanted = " or ".join(f"'{name}'" for name in missing)
    said = ", ".join(repr(name) for name in header[:12]) or "nothing"
    return InputError(
        f"the column {wanted} is missing; the first line has {said}",
        file=path,
        line=lines + 1,
        field=missing[0],
    )
