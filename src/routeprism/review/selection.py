"""Which rows of `estimates.csv` a person means, and which questions and values are behind a row.

Rows are named by number, by columns such as `policy=focal`, or by a gate such as `J>=0.9`.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from routeprism.errors import SpecError, nearest
from routeprism.experiments import find_experiment, registered_experiments
from routeprism.quantities import list_quantities
from routeprism.runs import (
    IDENTITY,
    Column,
    EstimateRow,
    QuestionValues,
    Rows,
    StoredQuestion,
    StoredRun,
)

__all__ = [
    "Gate",
    "describe_rows",
    "name_column",
    "parse_columns",
    "parse_gate",
    "prefer_rows",
    "read_values",
    "select_gate_rows",
    "select_questions",
    "select_row",
]

_MOST_VALUES = 12


def parse_columns(text: str) -> dict[str, str]:
    """Read `policy=focal,schedule=replay`; a policy's own parameters may contain commas."""
    columns = {}
    for part in re.split(rf",\s*(?=(?:{'|'.join(IDENTITY)})=)", text.strip()):
        name, equals, value = part.strip().partition("=")
        if not equals or name not in IDENTITY:
            raise SpecError(
                f"Expected columns such as 'policy=focal,schedule=replay,quantity=J' but got "
                f"{part!r}. {nearest(name, IDENTITY)}"
            )
        columns[name] = value
    return columns


def name_column(row: EstimateRow, **changes: str) -> Column:
    """Name the stored values that a row is made from; `changes` replace some of its names."""
    return Column(**{name: getattr(row, name) for name in Column._fields} | changes)


def select_row(rows: Rows, text: str) -> int:
    """Return the number, counted from 1, of the only row that a text means."""
    if text.strip().isdigit():
        number = int(text)
        if not 1 <= number <= len(rows):
            raise SpecError(
                f"Expected a row from 1 to {len(rows)} of estimates.csv but got row={number}"
            )
        return number
    columns = parse_columns(text)
    matches = find_rows(rows, columns)
    plain = {name: value for name, value in _PLAIN.items() if name not in columns}
    matches = prefer_rows(matches, **plain)
    numbers = {row: number for number, row in enumerate(rows, start=1)}
    if len(matches) > 1:
        raise SpecError(
            f"{len(matches)} rows have {text}. Add a column in which they differ, or give the "
            f"number of the row:\n{describe_rows(matches, numbers)}"
        )
    return numbers[matches[0]]


_PLAIN: Mapping[str, str] = {"stratum": "all", "mask": "", "arm": ""}
"""The default of columns that are not named: all questions, and no arm."""


def find_rows(rows: Rows, columns: Mapping[str, str]) -> Rows:
    """Find the rows with some values; the error names the first value that no row has."""
    selected = rows
    for name, value in columns.items():
        values = set(selected.values(name))
        if value not in values:
            earlier = [f"{column}={columns[column]}" for column in columns if column != name]
            earlier = earlier[: list(columns).index(name)]
            alone = value not in rows.values(name)
            where = "" if alone or not earlier else f" with {','.join(earlier)}"
            values = set(rows.values(name)) if alone else values
            raise SpecError(f"no row{where} has {name}={value}. {nearest(value, values - {''})}")
        selected = selected.where(**{name: value})
    return selected


def prefer_rows(rows: Rows, **columns: str) -> Rows:
    """Narrow the rows column by column, but never to nothing."""
    for name, value in columns.items():
        narrowed = rows.where(**{name: value})
        rows = narrowed if len(narrowed) else rows
    return rows


def describe_rows(rows: Sequence[EstimateRow], numbers: Mapping[EstimateRow, int]) -> str:
    """List the first rows by number, with the columns in which they differ."""
    varying = [name for name in IDENTITY if len({getattr(row, name) for row in rows}) > 1]
    varying = varying or [name for name in IDENTITY if getattr(rows[0], name)]
    lines = [
        f"  {numbers[row]}: " + ",".join(f"{name}={getattr(row, name)}" for name in varying)
        for row in rows[:_MOST_VALUES]
    ]
    if len(rows) > _MOST_VALUES:
        lines.append(f"  … and {len(rows) - _MOST_VALUES} more")
    return "\n".join(lines)


# --- gates -----------------------------------------------------------------------------------

_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_TEXT = re.compile(
    r"(?:(?P<where>.*):)?(?P<quantity>[^:<>=\s]+)\s*(?P<operator>>=|<=|>|<)\s*"
    r"(?P<baseline>baseline)?\s*(?P<bound>[+-]?\s*[0-9.]+(?:e-?[0-9]+)?)?"
)


@dataclass(frozen=True, slots=True)
class Gate:
    """A limit on an estimate, on one end of its interval, or on its change from a baseline."""

    text: str
    quantity: str
    limit: str
    """`estimate`, `lower` or `upper`."""
    operator: str
    bound: float
    where: Mapping[str, str]
    """Columns that narrow it down."""
    baseline: bool = False
    """Whether the bound is counted from the baseline's estimate, question by question."""

    def holds(self, value: float, bound: float | None = None) -> bool:
        """Whether a value keeps the limit, or one that replaces it."""
        return _OPERATORS[self.operator](value, self.bound if bound is None else bound)


def parse_gate(text: str) -> Gate:
    """Read `J>=0.9`, `restored-absent.lower<=0.1`, `policy=focal,schedule=replay:J>=baseline`."""
    match = _TEXT.fullmatch(text.strip())
    if match is None or (match["baseline"] is None and match["bound"] is None):
        raise SpecError(
            f"Expected a gate such as 'J>=0.9', 'restored-absent.lower<=0.1' or "
            f"'policy=focal,schedule=replay:J>=baseline-0.02' but got {text!r}"
        )
    quantity, _, limit = match["quantity"].rpartition(".")
    if limit not in ("estimate", "lower", "upper"):
        quantity, limit = match["quantity"], "estimate"
    try:
        bound = float((match["bound"] or "0").replace(" ", ""))
    except ValueError as error:
        raise SpecError(f"Expected a number in gate {text!r} but got {match['bound']!r}") from error
    if not math.isfinite(bound):
        raise SpecError(f"Expected a finite number in gate {text!r} but got {match['bound']!r}")
    return Gate(
        text.strip(),
        quantity,
        limit,
        match["operator"],
        bound,
        _parse_where(match["where"], text),
        match["baseline"] is not None,
    )


def _parse_where(columns: str | None, gate: str) -> dict[str, str]:
    try:
        return {} if columns is None else parse_columns(columns)
    except SpecError as error:
        raise SpecError(f"gate {gate!r}: {error}") from error


def _suggest_quantity(name: str, quantities: Collection[str]) -> str:
    """Suggest a quantity that is written almost like this, or one that means it."""
    if spelt := get_close_matches(name, quantities, 1, _SPELT_ALIKE):
        return f"Did you mean '{spelt[0]}'?"
    words = re.findall("[a-z]+", re.sub("(?<=[a-z])(?=[A-Z])", " ", name).lower())
    measured = [quantity for quantity in list_quantities() if quantity.name in quantities]
    if "accuracy" in words:  # "accuracy drop" means the change
        changes = {w for q in measured if q.correctness == "change" for w in q.words}
        words.sort(key=lambda word: word not in changes)
    meanings = {word: quantity.name for quantity in measured for word in quantity.words}
    for word in words:
        if alike := get_close_matches(word, meanings, 1, _SPELT_ALIKE):
            return f"Did you mean '{meanings[alike[0]]}'?"
    return nearest(name, quantities)


_SPELT_ALIKE = 0.8
"""How similar two words are at least if one is a misspelling of the other."""


def select_gate_rows(gate: Gate, rows: Rows) -> Rows:
    """Select the rows of a gate: no comparators, and all questions, unless it names them."""
    candidates = rows.where(quantity=gate.quantity)
    if not candidates:
        raise SpecError(
            f"gate {gate.text!r}: the run has no {gate.quantity!r}. "
            + _suggest_quantity(gate.quantity, rows.values("quantity"))
        )
    parts = _list_part_arms() if any(row.arm for row in candidates) else ()
    selected = Rows.of(
        row
        for row in candidates.where(**{"stratum": "all", "mask": "", **gate.where})
        if ("policy" in gate.where or not row.policy.startswith("source-order("))
        and ("arm" in gate.where or row.arm not in parts)
    )
    if selected:
        return selected
    for name, value in gate.where.items():
        if value not in candidates.values(name):
            raise SpecError(
                f"gate {gate.text!r}: no {gate.quantity} has {name} {value!r}. "
                + nearest(value, candidates.values(name))
            )
    raise SpecError(f"gate {gate.text!r} applies to no row of the run")


def _list_part_arms() -> set[str]:
    """List the arms that are a part of the questions: like strata, a gate has to name them."""
    return {
        arm
        for experiment in registered_experiments()
        for group in experiment.groups
        for arm in (group.first, group.second)
    }


# --- behind a row ----------------------------------------------------------------------------


def select_questions(
    row: EstimateRow,
    questions: Mapping[str, StoredQuestion],
    masks: Mapping[str, frozenset[str]],
) -> frozenset[str]:
    """Select the questions of a row's stratum and mask; values contain an experiment's own mask."""
    selection = {id for id, question in questions.items() if row.stratum in ("all", question.kind)}
    cut = row.mask.partition(":")[0]
    for name, ids in masks.items():
        if cut == name:
            selection &= ids
        elif cut == f"outside-{name}":
            selection -= ids
    experiment = find_experiment(row)
    if experiment is None:
        return frozenset(selection)
    excluded = experiment.find_excluded((questions[id].user, id) for id in selection)
    return frozenset(selection) - excluded


def read_values(stored: StoredRun, column: Column) -> QuestionValues:
    """Read the values that estimates are the means of; those of a mask are among those of all."""
    own = column.mask.partition(":")[2]
    for place in (column, column._replace(mask=own)):
        if values := stored.per_question(**place._asdict()).get(place):
            return values
    return {}
