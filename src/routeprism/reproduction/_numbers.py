"""Published numbers checked against obtained rows: reproduced, different, or why there is none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
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
from routeprism.reproduction._user_sets import UserNumber, count_user_sets

Status = Literal[
    "reproduced", "differs", "consistent", "inconsistent", "machinery", "not derivable"
]
"""What can be stated about a published number."""
Basis = Literal["measured", "denominator", "arithmetic", "target"]
"""What a number is: a value; how much a value depends on; what follows from other published
numbers; or what a correct build gives, which the paper prints with fewer digits or not at all."""
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
    by_user: bool = False
    """Whether the number depends only on which users the question set has."""


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
    checked = replace(checked, status="machinery", command=_find_command(part))
    for reference in list_references(table, printed):
        measured = _find_usable_row(obtained.get(reference.source), reference)
        value = None if measured is None else _take_number(measured, reference.number)
        if measured is not None and value is not None:
            own = reference.source == part.get("source")
            compared = _compare(checked, reference, measured, value, own_source=own)
            return _judge_set(compared, reference, measured, obtained)
    if part["kind"] == "data":
        reason = reason or "its data is not available"
    missing = _explain_missing(part.get("questions", ""), obtained.get(part.get("source", "")))
    return replace(checked, reason=reason, blank=missing or part.get("blank", ""))


def _find_command(part: Part) -> str:
    """Return the command that gives such a number: that of its source run, if it has one."""
    source = part.get("source", "")
    questions = part.get("questions", "").removeprefix(OUTSIDE)
    return _write_command(source, questions) or part.get("command", "")


@cache
def _write_command(source: str, questions: str) -> str:
    return SOURCES[source].write_command(questions) if source in SOURCES else ""


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
        if reference.questions:
            reason = f"it is about the questions that you passed as '{reference.questions}'"
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


def _judge_set(
    checked: CheckedNumber, reference: Reference, measured: MeasuredRow, obtained: ObtainedValues
) -> CheckedNumber:
    """Add whether some set of users gives a number that depends on nothing else."""
    if not reference.by_user or not measured.users:
        return checked
    numbers = _list_user_numbers(obtained)
    orders = next((n.orders for n in numbers.values() if n.orders), None)
    if orders is None or len({len(number.users) for number in numbers.values()}) > 1:
        return checked
    size, total = (_find_printed(*cell) for cell in (_SET_SIZE, _SET_ORDERS))
    sets = count_user_sets(tuple(numbers.values()), orders, size, total)
    alone = sets.alone[list(numbers).index(_name_number(checked.printed, reference))]
    every = f"{sets.total:,} sets of {size} users whose pools have {total:,} orders"
    if sets.agreeing:
        return replace(
            checked,
            status="consistent",
            reason=f"it depends only on which users are primary: {sets.agreeing:,} of the {every} "
            f"give all {len(numbers)} printed numbers of this kind at once",
        )
    return replace(
        checked,
        status="inconsistent",
        reason=f"it depends only on which users are primary: {alone:,} of the {every} give it, and "
        f"none gives all {len(numbers)} printed numbers of this kind",
    )


_SET_SIZE = ("app:order-structure", "Primary", "Pools")
_SET_ORDERS = ("app:order-structure", "Primary", "Permutations")
"""Where the paper prints how many primary users there are, and how many orders their pools have."""


def _find_printed(label: str, row: str, column: str) -> int:
    return next(
        int(printed.number or 0)
        for printed in read_published()
        if (printed.label, printed.row, printed.column) == (label, row, column)
    )


def _name_number(printed: PublishedNumber, reference: Reference) -> tuple[str, ...]:
    """Name a number, so that one that several tables print counts once."""
    columns = reference.columns
    return columns.get("policy", ""), columns["quantity"], printed.text


def _list_user_numbers(obtained: ObtainedValues) -> Mapping[tuple[str, ...], UserNumber]:
    """List the printed numbers that depend only on the set of users, each once."""
    numbers: dict[tuple[str, ...], UserNumber] = {}
    for printed, reference in _list_user_cells():
        measured = _find_usable_row(obtained.get(reference.source), reference)
        if measured is not None and measured.users:
            name = _name_number(printed, reference)
            numbers.setdefault(name, UserNumber(printed, measured.users))
    return numbers


@cache
def _list_user_cells() -> tuple[tuple[PublishedNumber, Reference], ...]:
    return tuple(
        (printed, reference)
        for printed in read_published()
        for reference in list_references(TABLES[printed.label], printed)
        if reference.by_user
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
    if number.startswith("complement"):
        ends = {"complement": row.estimate, "complement_lower": row.upper}
        end = ends.get(number, row.lower)
        return None if end is None else 1 - end
    if number == "share":
        return None if row.estimate is None or not row.queries else row.estimate / row.queries
    value = getattr(row, number.removeprefix("both_"))
    return None if value is None else float(value) * (2 if number.startswith("both_") else 1)


def _find_basis(table: PublishedTable, printed: PublishedNumber, part: Part) -> Basis:
    if table.label == PROTOCOL:
        return "target"
    last = printed.column.rpartition("/")[2].strip()
    if part.get("number", "").endswith(("queries", "units")) or last in _DENOMINATORS:
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
    own = _make_references(part, printed, comparable=part["kind"] in ("data", "users"))
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
    by_user = part["kind"] == "users"
    return own, replace(plain, whole=True, comparable=False, by_user=by_user)


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
