"""Which rows of `estimates.csv` a person means: by number, or by columns such as `policy=focal`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from routeprism.errors import SpecError, nearest
from routeprism.runs import COLUMNS, Column, EstimateRow, Rows

__all__ = ["describe_rows", "name_column", "parse_columns", "prefer_rows", "select_row"]

_NUMBERS = ("estimate", "lower", "upper", "queries", "units", "draws", "seed", "flags")
_NAMES = tuple(name for name in COLUMNS if name not in _NUMBERS)
_MOST_VALUES = 12


def parse_columns(text: str) -> dict[str, str]:
    """Read `policy=focal,schedule=replay`; a policy's own parameters may contain commas."""
    columns = {}
    for part in re.split(rf",\s*(?=(?:{'|'.join(_NAMES)})=)", text.strip()):
        name, equals, value = part.strip().partition("=")
        if not equals or name not in _NAMES:
            raise SpecError(
                f"Expected columns such as 'policy=focal,schedule=replay,quantity=J' but got "
                f"{part!r}. {nearest(name, _NAMES)}"
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
"""What is meant unless a column is given: all questions, and no arm."""


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
    varying = [name for name in _NAMES if len({getattr(row, name) for row in rows}) > 1]
    varying = varying or [name for name in _NAMES if getattr(rows[0], name)]
    lines = [
        f"  {numbers[row]}: " + ",".join(f"{name}={getattr(row, name)}" for name in varying)
        for row in rows[:_MOST_VALUES]
    ]
    if len(rows) > _MOST_VALUES:
        lines.append(f"  … and {len(rows) - _MOST_VALUES} more")
    return "\n".join(lines)
