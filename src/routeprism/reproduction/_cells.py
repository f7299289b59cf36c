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
    "references_of",
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
_INSTEAD = "instead."
"""Before the names of a stand-in's row, where it differs from the one that it stands in for."""
KEYS = (
    *("kind", "source", *_WHERE, "number", "reason", "blank", "command"),
    *(f"{_INSTEAD}{name}" for name in ("source", *_WHERE)),
)
"""What a part may say; `blank` is why no run here gives a value."""
_NOISE = 3 * 2**0.5
"""How many standard deviations two limits from other resamples may be apart."""
_MOST_NOISE = 0.003
"""How far apart they may be at most, whatever their standard deviation."""
_NEAR = "within resampling noise"
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
    note: str = ""
    """What has to be known to read its values."""

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
    judged: bool = False
    """Whether it is compared with the printed number."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A printed number, and what is known of it."""

    printed: Printed
    status: Status
    value: float | None = None
    """What was obtained; for machinery, what the same experiment gives here."""
    agreement: str = ""
    """`to print`, or `within resampling noise` for limits of the bootstrap."""
    noise: float | None = None
    """The standard deviation of a limit over seeds, where that decided."""
    embedded: bool = False
    """Whether an embedded model answered for the value."""
    stand_in: str = ""
    """The benchmark that the value is from, where the table's own is not at hand."""
    source: str = ""
    """The run that the value is from."""
    questions: int | None = None
    """On how many questions it rests."""
    reason: str = ""
    blank: str = ""
    """Why there is no value."""
    command: str = ""


def references_of(table: Table, printed: Printed) -> tuple[Reference, ...]:
    """Say where a cell's number comes from, its own run before one that stands in for it."""
    said = table.part(printed)
    if said.get("kind") == "not derivable" or printed.number is None:
        return ()
    instead = {
        name.removeprefix(_INSTEAD): value
        for name, value in said.items()
        if name.startswith(_INSTEAD)
    }
    found = [_reference(table, printed, said, judged=said["kind"] == "data")]
    if "source" in instead:
        found.append(_reference(table, printed, {**said, **instead}, judged=False))
    return tuple(one for one in found if one is not None)


def _reference(table: Table, printed: Printed, said: Part, *, judged: bool) -> Reference | None:
    if not said.get("source") or "quantity" not in said:
        return None
    number = said.get("number", printed.part)
    if number not in get_args(Number):
        raise ValueError(f"{table.label}: Expected a number of a row but got {number=}")
    where = {"experiment": "routes", "arm": "", "filler": "", "mask": "", "batch": ""}
    where |= {"stratum": "all"} | {name: said[name] for name in _WHERE if name in said}
    return Reference(said["source"], where, number, judged)  # type: ignore[arg-type]


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
    if kind == "not derivable":
        return Cell(printed, "not derivable", reason=reason)
    if printed.number is None and not printed.label.startswith("fig:"):
        return Cell(printed, "not derivable", reason=_NO_NUMBER)
    for reference in references_of(table, printed):
        kept = obtained.get(reference.source)
        noted = None if kept is None else find(kept.rows, reference)
        value = None if noted is None else _value(noted, reference.number)
        if noted is None or value is None:
            continue
        status: Status = "machinery"
        agreement = ""
        if reference.judged:
            agreement = _agreement(printed, value, noted, reference.number)
            status = "reproduced" if agreement else "differs"
            reason = "" if agreement else reason
        return Cell(
            printed,
            status,
            value,
            agreement,
            noise=_noise(noted, reference.number) if agreement == _NEAR else None,
            embedded="embedded" in noted.row.flags,
            stand_in=noted.row.benchmark if reference.source != said.get("source") else "",
            source=reference.source,
            questions=noted.row.queries,
            reason=reason,
            command=command,
        )
    if kind == "data":
        reason = reason or "its data is not at hand"
    return Cell(printed, "machinery", reason=reason, blank=said.get("blank", ""), command=command)


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
    noise = _noise(noted, number)
    if noise is None or printed.number is None:
        return ""
    exponent = printed.number.as_tuple().exponent
    unit = 10.0 ** (exponent if isinstance(exponent, int) else 0)
    apart = abs(float(printed.number) - value)
    near = min(_NOISE * noise + unit / 2, _MOST_NOISE)
    return _NEAR if apart <= near else ""


def _noise(noted: Noted, number: Number) -> float | None:
    return {"lower": noted.lower_noise, "upper": noted.upper_noise}.get(number)
