"""Cells: what is known of each printed number, from a table's description and obtained rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal, get_args

from routeprism.reproduction._obtained import Noted, Obtained
from routeprism.reproduction._published import Printed

__all__ = [
    "Cell",
    "Number",
    "Part",
    "Reference",
    "Status",
    "Table",
    "cell_of",
    "find",
    "reference_of",
]

Status = Literal["reproduced", "differs", "machinery", "not derivable"]
"""What can be said of a printed number."""
Kind = Literal["data", "machinery", "not derivable"]
Number = Literal["estimate", "lower", "upper", "queries", "units", "complement", "share"]
"""Which number of a row; `complement` is 1 − estimate, `share` estimate / queries."""
Part = Mapping[str, str]
"""What a table, row or column says of its cells: some of KEYS; an empty source is none."""

_WHERE = (
    "experiment",
    "quantity",
    "policy",
    "schedule",
    "arm",
    "filler",
    "mask",
    "stratum",
    "batch",
)
KEYS = ("kind", "source", *_WHERE, "number", "reason", "command")
"""What a part may say."""
_NOISE = 3 * 2**0.5
"""How many standard deviations two limits from other resamples may be apart."""
_NO_NUMBER = "no number is printed here"


@dataclass(frozen=True, slots=True)
class Table:
    """A table or figure: what it shows, and where the numbers of its rows and columns come from."""

    label: str
    title: str
    """What it shows, in our words."""
    base: Part
    """What holds for all cells: at least their kind, and the reason or the command."""
    panels: Mapping[str, Part] = field(default_factory=dict)
    """Panel (a pattern) → part; these go from general to particular, later ones win."""
    rows: Mapping[str, Part] = field(default_factory=dict)
    columns: Mapping[str, Part] = field(default_factory=dict)
    cells: Mapping[tuple[str, str], Part] = field(default_factory=dict)
    """(row, column) → part."""

    def part(self, printed: Printed) -> Part:
        """Put together all that is said of one cell."""
        said: dict[str, str] = dict(self.base)
        for patterns, name in (
            (self.panels, printed.panel),
            (self.rows, printed.row),
            (self.columns, printed.column),
        ):
            for pattern, part in patterns.items():
                if fnmatchcase(name, pattern):
                    said.update(part)
        for (row, column), part in self.cells.items():
            if fnmatchcase(printed.row, row) and fnmatchcase(printed.column, column):
                said.update(part)
        if unknown := said.keys() - set(KEYS):
            raise ValueError(f"{self.label}: Expected keys among {KEYS} but got {sorted(unknown)}")
        return said


@dataclass(frozen=True, slots=True)
class Reference:
    """Where a number comes from: one row of a source, and which of its numbers."""

    source: str
    where: Mapping[str, str]
    number: Number


@dataclass(frozen=True, slots=True)
class Cell:
    """A printed number, and what is known of it."""

    printed: Printed
    status: Status
    value: float | None = None
    """What was obtained; for machinery, what the same experiment gives here."""
    agreement: str = ""
    """`to print`, or `within resampling noise` for limits of the bootstrap."""
    embedded: bool = False
    """Whether an embedded model answered for the value."""
    source: str = ""
    """The run that the value is from."""
    questions: int | None = None
    """On how many questions it rests."""
    reason: str = ""
    command: str = ""


def reference_of(table: Table, printed: Printed) -> Reference | None:
    """Say where a cell's number comes from; None where nothing here gives it."""
    said = table.part(printed)
    if not said.get("source") or "quantity" not in said:
        return None
    if said.get("kind") == "not derivable" or printed.number is None:
        return None
    number = said.get("number", printed.part)
    if number not in get_args(Number):
        raise ValueError(f"{table.label}: Expected a number of a row but got {number=}")
    where = {"experiment": "routes", "arm": "", "filler": "", "mask": "", "batch": ""}
    where |= {"stratum": "all"} | {name: said[name] for name in _WHERE if name in said}
    return Reference(said["source"], where, number)  # type: ignore[arg-type]


def find(rows: Sequence[Noted], reference: Reference) -> Noted | None:
    """Give the one row that a reference means; None where there is none."""
    found = [
        noted
        for noted in rows
        if all(getattr(noted.row, name) == value for name, value in reference.where.items())
    ]
    if len(found) > 1:
        raise LookupError(f"{len(found)} rows of '{reference.source}' are {reference.where}")
    return found[0] if found else None


def cell_of(table: Table, printed: Printed, obtained: Obtained) -> Cell:
    """Say what is known of one printed number."""
    said = table.part(printed)
    kind, reason, command = said["kind"], said.get("reason", ""), said.get("command", "")
    if printed.number is None and kind != "not derivable" and not printed.label.startswith("fig:"):
        return Cell(printed, "not derivable", reason=_NO_NUMBER)
    reference = reference_of(table, printed)
    noted = value = None
    if reference is not None and reference.source in obtained:
        noted = find(obtained[reference.source].rows, reference)
        value = None if noted is None else _value(noted, reference.number)
    if kind == "not derivable":
        return Cell(printed, "not derivable", reason=reason)
    if reference is None or noted is None or value is None:
        if kind == "data":
            reason = reason or "its data is not at hand"
        return Cell(printed, "machinery", reason=reason, command=command)
    status: Status = "machinery"
    agreement = ""
    if kind == "data":
        agreement = _agreement(printed, value, noted, reference.number)
        status = "reproduced" if agreement else "differs"
        reason = "" if agreement else reason
    return Cell(
        printed,
        status,
        value,
        agreement,
        "embedded" in noted.row.flags,
        reference.source,
        noted.row.queries,
        reason,
        command,
    )


def _value(noted: Noted, number: Number) -> float | None:
    row = noted.row
    if number == "complement":
        return None if row.estimate is None else 1 - row.estimate
    if number == "share":
        return None if row.estimate is None or not row.queries else row.estimate / row.queries
    found = getattr(row, number)
    return None if found is None else float(found)


def _agreement(printed: Printed, value: float, noted: Noted, number: Number) -> str:
    if printed.agrees(value):
        return "to print"
    noise = {"lower": noted.lower_noise, "upper": noted.upper_noise}.get(number)
    if noise is None or printed.number is None:
        return ""
    exponent = printed.number.as_tuple().exponent
    unit = 10.0 ** (exponent if isinstance(exponent, int) else 0)
    apart = abs(float(printed.number) - value)
    return "within resampling noise" if apart <= _NOISE * noise + unit / 2 else ""
