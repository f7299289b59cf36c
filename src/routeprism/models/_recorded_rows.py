"""The rows of a file of recorded answers, and which of them answers what."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn, TypeAlias

from routeprism.errors import InputError
from routeprism.models._answer_files import OPTIONAL, ROUTE, Row

__all__ = ["BATCH_STEP", "NOT_SAID", "Cell", "Entries", "Entry", "Key", "said"]

BATCH_STEP = 1 << 20
"""The collector moves another batch's draws by multiples of this, for models that take seeds."""
NOT_SAID = ("",) * len(OPTIONAL)
Key: TypeAlias = tuple[tuple[str, str], ...]
"""The named parts that every row of its sort has, without the draw."""

_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_WHOLE = re.compile(r"\d{1,9}\Z")
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True, slots=True)
class Cell:
    """What is looked for: one draw of one side of one comparison."""

    key: Key
    more: tuple[str, ...]
    """The values of OPTIONAL; empty where one does not apply."""
    batch: str
    draw: int

    @property
    def names(self) -> dict[str, str]:
        """Give all that tells it from other cells, but the draw."""
        return dict((*self.key, *zip(OPTIONAL, self.more, strict=True), ("batch", self.batch)))

    def __str__(self) -> str:
        return said(self.names.items(), self.draw)


@dataclass(frozen=True, slots=True)
class Entry:
    """One recorded answer."""

    line: int
    """Where it begins in the file."""
    more: tuple[str, ...]
    """The values of OPTIONAL; an empty one is not said, and matches anything."""
    batch: str
    answer: str
    correct: bool | None
    """The verdict that was recorded with it, if any."""
    order: int | None
    """Its place in the order in which answers were asked for, if that was recorded."""

    def fits(self, cell: Cell) -> bool:
        """Whether what the row says is what is looked for; its batch is not looked at."""
        pairs = zip(self.more, cell.more, strict=True)
        return all(mine in ("", wanted) for mine, wanted in pairs)

    def overlaps(self, other: Entry) -> bool:
        """Whether something could fit both."""
        pairs = zip(self.more, other.more, strict=True)
        return self.batch == other.batch and all(
            not one or not two or one == two for one, two in pairs
        )


class Entries:
    """All answers of a file, found by what they answer."""

    def __init__(self, rows: Iterable[Row], path: Path) -> None:
        self._found: dict[tuple[Key, int], list[Entry]] = {}
        self.batches: frozenset[str] = frozenset()
        self.lines: list[int] = []
        self._sorts: set[str] = set()
        self.judged = False
        for line, row in rows:
            self._take(line, row, path)

    def find(self, cell: Cell) -> Entry | None:
        """Give the one row that answers; a file with one batch answers for any."""
        for entry in self._found.get((cell.key, cell.draw), ()):
            if entry.fits(cell) and (len(self.batches) < 2 or entry.batch == cell.batch):
                return entry
        return None

    def has(self, name: str) -> bool:
        """Whether any row is found by this column."""
        return name in self._sorts

    def values(self, name: str) -> list[str]:
        """Give what the rows say in a column by which they are found."""
        if name == "batch":
            return sorted(self.batches)
        if name in OPTIONAL:
            at = OPTIONAL.index(name)
            return sorted({one.more[at] for found in self._found.values() for one in found})
        return sorted({value for key, _ in self._found for part, value in key if part == name})

    def _take(self, line: int, row: Mapping[str, str], path: Path) -> None:
        draw = _number(row, "draw", path, line)
        if draw is None or draw >= BATCH_STEP:
            _refuse("a whole number from 0", row, "draw", path, line)
        order = _number(row, "submission", path, line)
        verdict = row.get("correct", "").strip().lower()
        if verdict and verdict not in _TRUTH:
            _refuse("true or false", row, "correct", path, line)
        entry = Entry(
            line,
            tuple(row.get(name, "").strip() for name in OPTIONAL),
            row.get("batch", ""),
            row["answer"],
            _TRUTH.get(verdict),
            order,
        )
        keys = list(_keys(row, path, line))
        if not keys:
            raise InputError(
                "Expected a 'prompt_sha256', or 'question', 'policy' and 'schedule'",
                file=path,
                line=line,
                field="prompt_sha256",
            )
        for key in keys:
            there = self._found.setdefault((key, draw), [])
            for one in there:
                if one.overlaps(entry):
                    raise InputError(
                        f"line {one.line} already answers {said(key, draw)}",
                        file=path,
                        line=line,
                        field=key[0][0],
                    )
            # A prompt says all by itself, whatever else the row says.
            there.append(entry if key[0][0] in ROUTE else replace(entry, more=NOT_SAID))
            self._sorts.add(key[0][0])
        self.batches |= {entry.batch}
        self.judged |= entry.correct is not None
        self.lines.append(line)


def said(names: Iterable[tuple[str, str]], draw: int) -> str:
    """Say what is looked for, or found."""
    return ", ".join([*(f"{name}={value}" for name, value in names if value), f"draw={draw}"])


def _number(row: Mapping[str, str], name: str, path: Path, line: int) -> int | None:
    text = row.get(name, "").strip()
    if text and not _WHOLE.match(text):
        _refuse("a whole number from 0", row, name, path, line)
    return int(text) if text else None


def _refuse(wanted: str, row: Mapping[str, str], name: str, path: Path, line: int) -> NoReturn:
    raise InputError(
        f"Expected {wanted} but got {name}={row[name]!r:.40}", file=path, line=line, field=name
    )


def _keys(row: Mapping[str, str], path: Path, line: int) -> Iterator[Key]:
    """Give the ways in which a row names its prompt; an empty cell names none."""
    if digest := row.get("prompt_sha256", "").strip().lower():
        if not _SHA256.match(digest):
            raise InputError(
                f"Expected 64 hexadecimal digits but got prompt_sha256={digest!r:.80}",
                file=path,
                line=line,
                field="prompt_sha256",
            )
        yield (("prompt_sha256", digest),)
    if all(row.get(name) for name in ROUTE):
        yield (*((name, row[name]) for name in ROUTE), ("condition", row.get("condition", "")))
