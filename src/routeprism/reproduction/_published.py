"""The published numbers and the layouts of their tables: which estimate row each number is."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal, get_args

from routeprism.errors import SpecError, nearest
from routeprism.reproduction._sources import SOURCES, read_data

PROTOCOL = "protocol"
"""The label of the numbers that a correct build gives beyond the printed tables."""
_LIMITS = {"Estimate": "estimate", "Lower": "lower", "Upper": "upper"}


@dataclass(frozen=True, slots=True)
class PublishedNumber:
    """One cell as it is printed."""

    label: str
    """The label of its table or figure, such as `tab:mechanism-state`."""
    panel: str
    row: str
    column: str
    text: str
    """The published text: a number, a word, or NA and NR."""

    @property
    def number(self) -> Decimal | None:
        """The number that is printed; None for anything else."""
        try:
            return Decimal(self.text.replace(",", ""))
        except InvalidOperation:
            return None

    @property
    def part(self) -> str:
        """Which number of an estimate it is: `estimate`, `lower` or `upper`."""
        return _LIMITS.get(self.column.rpartition("/")[2].strip(), "estimate")

    @property
    def quantity(self) -> str:
        """The column without the name of the part; an estimate and its limits have the same."""
        before, _, last = self.column.rpartition("/")
        return before.strip() if last.strip() in _LIMITS else self.column

    @property
    def unit(self) -> Decimal:
        """The value of one in the last printed digit."""
        exponent = 0 if self.number is None else self.number.as_tuple().exponent
        return Decimal(1).scaleb(exponent if isinstance(exponent, int) else 0)

    def agrees(self, value: float) -> bool:
        """Whether a value, rounded to the printed digits, is the printed number."""
        rounded = Decimal(repr(value)).quantize(self.unit, ROUND_HALF_EVEN)
        return self.number is not None and rounded == self.number


@cache
def read_published() -> tuple[PublishedNumber, ...]:
    """Read every published number, in the order of the paper."""
    text = files(__package__).joinpath("published.csv").read_text(encoding="utf-8")
    rows = csv.reader(io.StringIO(text, newline=""))
    next(rows)
    return tuple(PublishedNumber(*row) for row in rows)


PRIMARY = "primary"
"""The name of the question set that most tables are about."""
OUTSIDE = "outside-"
"""Before the name of a question set: the questions of a run that are not in it."""
QUESTION_SETS: Mapping[str, str] = MappingProxyType(read_data("question_sets.json")[0])
"""Name → the questions of the paper, which only its authors can list."""


def check_question_set(name: str) -> str:
    """Return the name of a question set; refuse one that no table is about."""
    if name not in QUESTION_SETS:
        raise SpecError(
            f"No table is about a set of questions '{name}'. {nearest(name, QUESTION_SETS)} "
            f"The sets are: {', '.join(QUESTION_SETS)}"
        )
    return name


Kind = Literal["data", "users", "machinery", "not derivable"]
"""What a number depends on: available data, which users the question set has, or more than that."""
NumberName = Literal[
    "estimate",
    "lower",
    "upper",
    "queries",
    "units",
    "both_queries",
    "both_units",
    "share",
    "complement",
    "complement_lower",
    "complement_upper",
]
"""Which number of a row; `complement` is 1 − estimate, `share` estimate / queries, and `both_units`
counts those of both routes."""
Part = Mapping[str, str]
"""What a table, row or column states about its numbers. The keys are COLUMNS and: `kind`; `source`,
the run that the row is in (none if empty); `questions`, the question set if you have to pass it;
`number`, which number of the row; `reason`, why it is not reproduced; `blank`, why no run gives a
value; `command`, which gives such a number. `instead.` before a source or column describes the row
that stands in if the table's own row is missing."""
COLUMNS = "experiment quantity policy schedule arm filler mask stratum batch".split()
"""The columns of an estimate row that a part can name."""
INSTEAD = "instead."
_KEYS = {
    *("kind", "source", *COLUMNS, "questions", "number", "reason", "blank", "command"),
    *(f"{INSTEAD}{name}" for name in ("source", *COLUMNS)),
}


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """A table or figure: what it shows, and where the numbers of its rows and columns come from.

    Names of panels, rows and columns are patterns. Parts apply from general to particular, and a
    later part wins: those of the whole table, its panels, rows, columns and single cells.
    """

    label: str
    title: str
    """What it shows, in our words."""
    base: Part
    """The part of all numbers: at least their kind, and the reason or the command."""
    panels: Mapping[str, Part] = field(default_factory=dict)
    rows: Mapping[str, Part] = field(default_factory=dict)
    columns: Mapping[str, Part] = field(default_factory=dict)
    cells: Mapping[str, Mapping[str, Part]] = field(default_factory=dict)
    """Row → column → part."""
    note: str = ""
    """A note on its values for the reader."""

    @classmethod
    def from_data(cls, label: str, entry: Mapping[str, Any]) -> PublishedTable:
        """Make a table from the entry of a data file; refuse one that is not valid."""
        layout = {name: entry.get(name, {}) for name in ("panels", "rows", "columns", "cells")}
        if unknown := entry.keys() - {*layout, "all", "title", "note", "like", "aliases"}:
            raise ValueError(f"{label}: unknown keys {sorted(unknown)}")
        table = cls(label, entry["title"], entry["all"], **layout, note=entry.get("note", ""))
        for part in table.list_parts():
            _check_part(label, part)
        return table

    def list_parts(self) -> Iterator[Part]:
        """Yield all parts of the layout."""
        yield self.base
        for parts in (self.panels, self.rows, self.columns, *self.cells.values()):
            yield from parts.values()

    def part(self, printed: PublishedNumber) -> Part:
        """Combine the parts that apply to one number."""
        part = dict(self.base)
        for parts, name in (
            (self.panels, printed.panel),
            (self.rows, printed.row),
            (self.columns, printed.column),
            *((cells, printed.column) for cells in _match(self.cells, printed.row)),
        ):
            for matching in _match(parts, name):
                part.update(matching)
        return part


def _match(patterns: Mapping[str, Any], name: str) -> Iterator[Any]:
    return (value for pattern, value in patterns.items() if fnmatchcase(name, pattern))


def _check_part(label: str, part: Part) -> None:
    names = {
        "kind": get_args(Kind),
        "number": get_args(NumberName),
        "source": ("", *SOURCES),
        f"{INSTEAD}source": ("", *SOURCES),
        "questions": ("", *QUESTION_SETS, *(f"{OUTSIDE}{name}" for name in QUESTION_SETS)),
    }
    if unknown := part.keys() - _KEYS:
        raise ValueError(f"{label}: Expected keys among {sorted(_KEYS)} but got {sorted(unknown)}")
    for key, values in names.items():
        if part.get(key, values[0]) not in values:
            raise ValueError(f"{label}: Expected {key} among {values} but got {part[key]!r}")


def _read_tables() -> tuple[Part, dict[str, PublishedTable], dict[str, str]]:
    """Read the layouts: the default columns of a row, the tables, and their second labels."""
    shared, vocabulary = read_data("tables/shared.json")
    entries: dict[str, Mapping[str, Any]] = {}
    for file in sorted(files(__package__).joinpath("tables").iterdir(), key=lambda file: file.name):
        if file.name != "shared.json":
            content, _ = read_data(f"tables/{file.name}", vocabulary)
            for label, entry in content["tables"].items():
                like = content["tables"].get(entry.get("like"), {})
                entries[label] = {**like, **entry}
    labels = dict.fromkeys(printed.label for printed in read_published())
    tables = {label: PublishedTable.from_data(label, entries[label]) for label in labels}
    second = {
        alias: label for label, entry in entries.items() for alias in entry.get("aliases", ())
    }
    return shared["row"], tables, second


DEFAULTS, _TABLES, _ALIASES = _read_tables()
TABLES: Mapping[str, PublishedTable] = MappingProxyType(_TABLES)
"""Label → table, in the order of the paper."""
ALIASES: Mapping[str, str] = MappingProxyType(_ALIASES)
"""Second labels of the same table."""
LOCOMO: tuple[PublishedTable, ...] = tuple(
    PublishedTable.from_data("locomo", {"title": title, **entry})
    for title, entry in read_data("locomo.json")[0]["tables"].items()
)
"""Tables without published numbers: the same experiments on a benchmark that is public whole."""
_PREFIXES = ("tab", "fig", "app")
"""How labels begin: a table, a figure, or a section that prints numbers in its text."""


def select_tables(labels: tuple[str, ...]) -> tuple[PublishedTable, ...]:
    """Return the tables with these labels (the prefix is optional), or all tables."""
    tables: dict[str, PublishedTable] = {}
    for label in labels:
        names = [label, *(f"{prefix}:{label}" for prefix in _PREFIXES)]
        selected = [name for name in (ALIASES.get(name, name) for name in names) if name in TABLES]
        if not selected:
            raise SpecError(
                f"There is no table '{label}'. {nearest(label, (*TABLES, *ALIASES))} "
                f"routeprism reproduce lists them all."
            )
        tables[selected[0]] = TABLES[selected[0]]
    return tuple((tables if labels else TABLES).values())
