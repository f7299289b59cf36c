"""Tables that pass through a spreadsheet and come back: bytes to rows, and rows to bytes.

A spreadsheet may run a cell that begins with `=`, `+`, `-` or `@`, and some drop blanks in front of
these first. Such a cell is written with an apostrophe in front of it, and the apostrophe is removed
when the file is read back. Reading also
undoes everything else that spreadsheets do to a file: a byte-order mark, semicolons or tabs, a
`sep=` line, UTF-16 from "Unicode text", line ends, empty rows at the end, columns moved or added.
Any other problem is an error with the file, the line and the row.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from routeprism.errors import InputError, nearest

__all__ = [
    "CELL",
    "SheetRow",
    "decode_text",
    "guard_cell",
    "long_cells",
    "read_table",
    "split_cell",
    "unguard_cell",
    "write_csv",
    "write_table",
]

CELL = 32_000
"""Characters a cell may have; spreadsheets cut longer texts than 32,767 silently."""

_SEPARATOR = re.compile(r"\"?sep=(.)\"?\r?\n", re.IGNORECASE)
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}
_INVISIBLE = (
    r"\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f"
    r"\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U000e0000-\U000e0fff"
)
"""Blanks, control characters, and characters without a width, such as a byte-order mark."""
_SIGNS = "=+\\-@＝＋－＠﹦﹢﹣﹫"
"""How a formula begins; full-width and small signs are read as the ordinary ones."""
_START = rf"(?:[\t\r\n]|[{_INVISIBLE}]*[{_SIGNS}])"
_FORMULA = re.compile(f"'*{_START}")
"""What a spreadsheet may run, behind any apostrophes that the text already had."""
_NUMBER = re.compile(r"[+-]?[0-9][0-9.,% ()\[\]–−-]*")
"""What begins like a formula and is a number, or one with its limits."""
_GUARDED = re.compile(f"'+{_START}")
_LONGEST_CELL = 2**31 - 1
"""Characters that a cell may have when it is read; Python's own limit is 131,072."""


def guard_cell(text: str) -> str:
    """Put an apostrophe in front of a cell that a spreadsheet would run as a formula.

    A number with a sign stays a number.
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def unguard_cell(text: str) -> str:
    """Undo `guard_cell`."""
    return text[1:] if _GUARDED.match(text) else text


def write_csv(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, line_end: str = "\n"
) -> str:
    """Write a table as CSV: texts are guarded, and a cell with any line break is quoted."""
    stream = io.StringIO(newline="")
    # Python quotes a bare carriage return only if it is part of the line end.
    writer = csv.writer(stream, lineterminator="\r\n")
    lines: list[str] = []
    for row in (columns, *rows):
        writer.writerow([_show_text(cell) if isinstance(cell, str) else cell for cell in row])
        lines.append(stream.getvalue().removesuffix("\r\n"))
        stream.seek(0)
        stream.truncate()
    return line_end.join((*lines, ""))


def _show_text(text: str) -> str:
    # Python 3.10 neither writes nor reads a null character, and spreadsheets cut the cell there.
    return guard_cell(text.replace("\0", "\N{REPLACEMENT CHARACTER}"))


@contextmanager
def long_cells() -> Iterator[None]:
    """Read cells of any length; Python refuses more than 131,072 characters by default."""
    before = csv.field_size_limit(_LONGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)


@dataclass(frozen=True, slots=True)
class SheetRow:
    """A row of a table, with its place in the file."""

    file: Path
    line: int
    """The line of the file where it begins; a quoted cell may span several."""
    number: int
    """Its number in a spreadsheet, where the header is row 1."""
    cells: Mapping[str, str]
    """By the column's name in lower case; a cell is missing if the row ends early."""

    def get(self, column: str) -> str:
        """Read a cell without white space around it; empty if there is no such column."""
        return self.cells.get(column, "").strip()

    def error(self, problem: str, column: str | None = None) -> InputError:
        """Make an error about one of its cells."""
        return InputError(
            f"row {self.number}: {problem}", file=self.file, line=self.line, field=column
        )

    def choice(self, column: str, choices: Sequence[str], *, may_be_empty: bool = False) -> str:
        """Read one of several words, in any case."""
        text = self.get(column)
        value = text.casefold()
        if value in choices or (may_be_empty and not value):
            return value
        if not value:
            raise self.error(f"there is no {column}; expected one of {', '.join(choices)}", column)
        raise self.error(f"there is no {column} '{text}'. {nearest(value, choices)}", column)


def split_cell(text: str) -> list[str]:
    """Cut a text into pieces that fit into a cell; an empty text is one piece.

    Spreadsheets count UTF-16 units, of which an emoji has two.
    """
    size = CELL if text.isascii() or max(text, default="") <= "\uffff" else CELL // 2
    return [text[at : at + size] for at in range(0, len(text), size)] or [""]


def write_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> bytes:
    """Write a table for spreadsheets: UTF-8 with a byte-order mark, commas, CRLF."""
    return codecs.BOM_UTF8 + write_csv(columns, rows, line_end="\r\n").encode()


def decode_text(content: bytes, path: Path) -> str:
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


def read_table(content: bytes, path: Path, needed: Sequence[Sequence[str]]) -> list[SheetRow]:
    """Read a table with at least one column of each group in `needed`."""
    text = decode_text(content, path)
    lines = 0
    marks: Sequence[str] = tuple(_DELIMITERS)
    if separator := _SEPARATOR.match(text):
        marks, text, lines = (separator[1],), text[separator.end() :], 1
    if not text.strip():
        raise InputError("there is nothing in it", file=path)
    for mark in marks:
        header = next(iter(_parse_cells(text, mark, path, lines, only_header=True)))[1]
        names = [name.strip().casefold() for name in header]
        if all(any(name in names for name in group) for group in needed):
            return _read_rows(text, mark, path, lines, names)
    raise _report_header(text, marks, path, lines, needed)


def _read_rows(
    text: str, mark: str, path: Path, lines: int, names: Sequence[str]
) -> list[SheetRow]:
    for name in names:
        if name and names.count(name) > 1:
            raise InputError("the column is there twice", file=path, line=lines + 1, field=name)
    rows = []
    for number, (line, cells) in enumerate(_parse_cells(text, mark, path, lines), start=1):
        if number == 1 or not any(cell.strip() for cell in cells):
            continue
        row = SheetRow(path, line, number, dict(zip(names, map(unguard_cell, cells), strict=False)))
        if any(cell.strip() for cell in cells[len(names) :]):
            raise row.error(
                f"Expected {len(names)} cells, as in the header, but got {len(cells)}; "
                f"a text with {_DELIMITERS.get(mark, repr(mark))} needs quotes"
            )
        rows.append(row)
    return rows


def _parse_cells(
    text: str, mark: str, path: Path, lines: int, *, only_header: bool = False
) -> list[tuple[int, list[str]]]:
    """Parse each row, with the line where it begins."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True)
    rows: list[tuple[int, list[str]]] = []
    line = lines + 1
    try:
        with long_cells():
            for cells in reader:
                rows.append((line, cells))
                line = lines + reader.line_num + 1
                if only_header:
                    break
    except csv.Error as error:
        if only_header:  # another delimiter may fit
            return [(line, [])]
        raise InputError(
            f"is not valid CSV: {error}; is a quotation mark missing?", file=path, line=line
        ) from error
    return rows


def _report_header(
    text: str, marks: Sequence[str], path: Path, lines: int, needed: Sequence[Sequence[str]]
) -> InputError:
    headers = [_parse_cells(text, mark, path, lines, only_header=True)[0][1] for mark in marks]
    header = [name.strip().casefold() for name in max(headers, key=len)]
    missing = next(group for group in needed if not any(name in header for name in group))
    names = " or ".join(f"'{name}'" for name in missing)
    columns = ", ".join(repr(name) for name in header[:12]) or "nothing"
    return InputError(
        f"the column {names} is missing; the first line has {columns}",
        file=path,
        line=lines + 1,
        field=missing[0],
    )
