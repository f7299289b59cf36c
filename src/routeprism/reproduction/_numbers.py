"""Published numbers checked against obtained rows: reproduced, different, or why there is none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal, cast

from routeprism.reproduction._published import (
    COLUMNS,
    DEFAULTS,
    INSTEAD,
    LOCOMO,
    OUTSIDE,
    PROTOCOL,
    TABLES,
    NumberName,
    Part,
    PublishedNumber,
    PublishedTable,
    read_published,
)
from routeprism.reproduction._sources import SOURCES, MeasuredRow, ObtainedValues, SourceValues

Status = Literal["reproduced", "differs", "machinery", "not derivable"]
"""What can be stated about a published number."""
Basis = Literal["measured", "denominator", "arithmetic", "target"]
"""What a number is: a value; how much a value depends on; what follows from other published
numbers; or a number to reach that is not in the paper."""
_DENOMINATORS = ("Queries", "Users", "Pools", "Q", "U")
"""Columns that state how many questions or users a value depends on."""
_ALL_QUESTIONS = "fact-recall"
"""All questions of the kind that the question sets of the paper were chosen from."""
_NOISE = 3 * 2**0.5
"""How many standard deviations two limits from different resamples may be apart."""
_MOST_NOISE = 0.003
"""How far apart they may be at most, whatever their standard deviation."""
_NEAR = "within resampling noise"
_NO_NUMBER = "no number is printed here"


@dataclass(frozen=True, slots=True)
class Reference:
    """Where a number comes from: one row of a source run, and which of its numbers."""

    source: str
    columns: Part
    """The columns that identify the row."""
    number: NumberName
    comparable: bool = False
    """Whether it is compared with the published number."""
    questions: str = ""
    """The question set that the number is about, if it has to be passed."""
    whole: bool = False
    """Whether it is about all questions, which stand in for a question set that was not passed."""


@dataclass(frozen=True, slots=True)
class CheckedNumber:
    """A published number, and what is known about it."""

    printed: PublishedNumber
    status: Status
    value: float | None = None
    """The obtained value; for machinery, what the same experiment gives on the available data."""
    agreement: str = ""
    """`to print`, or `within resampling noise` for limits of the bootstrap."""
    noise: float | None = None
    """The standard deviation of a limit over seeds, if the agreement depends on it."""
    embedded: bool = False
    """Whether an embedded model answered."""
    basis: Basis = "measured"
    stand_in: str = ""
    """The benchmark or kind of questions of the value, if the table's own is not available."""
    source: str = ""
    """The run that the value comes from."""
    questions: int | None = None
    """The number of questions that it depends on."""
    reason: str = ""
    """Why it is not reproduced."""
    blank: str = ""
    """Why there is no value."""
    command: str = ""
    """The command that gives such a number."""


def check_table(table: PublishedTable, obtained: ObtainedValues) -> list[CheckedNumber]:
    """Check every number of a table."""
    return [
        check_number(table, printed, obtained)
        for printed in read_published()
        if printed.label == table.label
    ]


def check_number(
    table: PublishedTable, printed: PublishedNumber, obtained: ObtainedValues
) -> CheckedNumber:
    """Check one published number against the obtained values."""
    part = table.part(printed)
    reason = part.get("reason", "")
    checked = CheckedNumber(
        printed, "not derivable", basis=_find_basis(table, printed, part), reason=reason
    )
    if part["kind"] == "not derivable":
        return checked
    if printed.number is None and not printed.label.startswith("fig:"):
        return replace(checked, reason=_NO_NUMBER)
    checked = replace(checked, status="machinery", command=part.get("command", ""))
    for reference in list_references(table, printed):
        measured = _find_usable_row(obtained.get(reference.source), reference)
        value = None if measured is None else _take_number(measured, reference.number)
        if measured is not None and value is not None:
            own = reference.source == part.get("source")
            return _compare(checked, reference, measured, value, own_source=own)
    if part["kind"] == "data":
        reason = reason or "its data is not available"
    missing = _explain_missing(part.get("questions", ""), obtained.get(part.get("source", "")))
    return replace(checked, reason=reason, blank=missing or part.get("blank", ""))


def _compare(
    checked: CheckedNumber,
    reference: Reference,
    measured: MeasuredRow,
    value: float,
    *,
    own_source: bool,
) -> CheckedNumber:
    """Add an obtained value; compare it if the published number is about the same data."""
    agreement, status, reason = "", checked.status, checked.reason
    noise = {"lower": measured.lower_noise, "upper": measured.upper_noise}.get(reference.number)
    if reference.comparable:
        agreement = _judge_agreement(checked.printed, value, noise)
        status = "reproduced" if agreement else "differs"
        reason = "" if agreement else reason
    benchmark = "" if own_source else measured.row.benchmark
    return replace(
        checked,
        status=status,
        value=value,
        agreement=agreement,
        noise=noise if agreement == _NEAR else None,
        embedded="embedded" in measured.row.flags,
        stand_in=_ALL_QUESTIONS if reference.whole else benchmark,
        source=reference.source,
        questions=measured.row.queries,
        reason=reason,
    )


def _judge_agreement(printed: PublishedNumber, value: float, noise: float | None) -> str:
    if printed.agrees(value):
        return "to print"
    if noise is None or printed.number is None:
        return ""
    near = min(_NOISE * noise + float(printed.unit) / 2, _MOST_NOISE)
    return _NEAR if abs(float(printed.number) - value) <= near else ""


def _take_number(measured: MeasuredRow, number: NumberName) -> float | None:
    row = measured.row
    if number == "complement":
        return None if row.estimate is None else 1 - row.estimate
    if number == "share":
        return None if row.estimate is None or not row.queries else row.estimate / row.queries
    value = getattr(row, number)
    return None if value is None else float(value)


def _find_basis(table: PublishedTable, printed: PublishedNumber, part: Part) -> Basis:
    if table.label == PROTOCOL:
        return "target"
    last = printed.column.rpartition("/")[2].strip()
    if part.get("number") in ("queries", "units") or last in _DENOMINATORS:
        return "denominator"
    source = SOURCES.get(part.get("source", ""))
    return "arithmetic" if source is not None and source.matrix else "measured"


def _explain_missing(questions: str, values: SourceValues | None) -> str:
    """State which questions are missing, if that is why a number has no value."""
    if values is None:
        return ""
    if not questions:
        return values.coverage
    outside = questions.startswith(OUTSIDE)
    if not values.masks and not outside:
        return ""  # all questions stand in for the set, and have no such number either
    name = questions.removeprefix(OUTSIDE)
    if name not in values.masks:
        return f"the questions '{name}' are missing: pass the mask {name}=FILE"
    return values.coverage if outside else ""


def list_references(table: PublishedTable, printed: PublishedNumber) -> tuple[Reference, ...]:
    """List where a number can come from: its own run before one that stands in for it."""
    part = table.part(printed)
    if part["kind"] == "not derivable" or printed.number is None:
        return ()
    own = _make_references(part, printed, comparable=part["kind"] == "data")
    instead = {
        name.removeprefix(INSTEAD): value
        for name, value in part.items()
        if name.startswith(INSTEAD)
    }
    if "source" not in instead:
        return own
    return (*own, *_make_references({**part, **instead}, printed, comparable=False))


def _make_references(
    part: Part, printed: PublishedNumber, *, comparable: bool
) -> tuple[Reference, ...]:
    if not part.get("source") or "quantity" not in part:
        return ()
    columns = {**DEFAULTS, **{name: part[name] for name in COLUMNS if name in part}}
    number = cast("NumberName", part.get("number", printed.part))
    plain = Reference(part["source"], columns, number, comparable)
    questions = part.get("questions", "")
    if not questions:
        return (plain,)
    # A question set is a mask of the run, whatever the kind of its questions. A mask of the run
    # itself is then a subset of the question set.
    mask = f"{questions}:{columns['mask']}" if columns["mask"] else questions
    masked = {**columns, "stratum": "all", "mask": mask}
    own = replace(plain, columns=masked, questions=questions)
    if questions.startswith(OUTSIDE):
        return (own,)
    return own, replace(plain, whole=True, comparable=False)


def find_row(rows: Iterable[MeasuredRow], reference: Reference) -> MeasuredRow | None:
    """Find the one row that a reference identifies; None if there is none."""
    columns = reference.columns
    matches = [
        measured
        for measured in rows
        if measured.row.quantity == columns["quantity"]  # the column that differs most often
        and all(getattr(measured.row, name) == value for name, value in columns.items())
    ]
    if len(matches) > 1:
        raise LookupError(f"{len(matches)} rows of '{reference.source}' are {reference.columns}")
    return matches[0] if matches else None


def _find_usable_row(values: SourceValues | None, reference: Reference) -> MeasuredRow | None:
    # Once question sets are passed, nothing stands in for one that is not.
    if values is None or (reference.whole and values.masks):
        return None
    return find_row(values.rows, reference)


def locomo_references(table: PublishedTable) -> dict[str, list[Reference]]:
    """List the rows of a table without published numbers, with the reference of each column."""
    references: dict[str, list[Reference]] = {row: [] for row in table.rows}
    for row, column in product(table.rows, table.columns):
        printed = PublishedNumber(table.label, "1", row, column, "")
        references[row] += _make_references(table.part(printed), printed, comparable=False)
    return references


def list_needed_rows(tables: Sequence[PublishedTable]) -> dict[str, list[Reference]]:
    """List what tables refer to, by source run."""
    needed: dict[str, list[Reference]] = {}
    labels = {table.label: table for table in tables}
    for printed in read_published():
        if printed.label in labels:
            for reference in list_references(labels[printed.label], printed):
                references = needed.setdefault(reference.source, [])
                if reference not in references:
                    references.append(reference)
    return needed


def list_all_rows() -> dict[str, list[Reference]]:
    """List what all tables refer to, with those of LoCoMo, by source run."""
    needed = list_needed_rows(tuple(TABLES.values()))
    for table in LOCOMO:
        for references in locomo_references(table).values():
            for reference in references:
                needed.setdefault(reference.source, []).append(reference)
    return needed
