"""A table of a run: its cells as they are shown, and the rows that they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from routeprism.runs import EstimateRow

__all__ = ["Found", "Shown", "Table", "grouped", "numbered", "shown_interval"]


@dataclass(frozen=True, slots=True)
class Table:
    """Cells as they are shown; empty means not applicable."""

    name: str
    """What its file is called."""
    title: str
    caption: str
    """How to read it."""
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    names: int = 1
    """How many columns from the left are names; the others are numbers."""


class Shown(str):
    """A number as it is shown, which knows the row of `estimates.csv` that it is."""

    __slots__ = ("number", "row")

    row: EstimateRow
    number: int | None
    """Which row of the run it is, from 1; None for a table of no run."""

    def __new__(cls, text: str, row: EstimateRow, number: int | None = None) -> Shown:
        """Keep the row with the text."""
        made = super().__new__(cls, text)
        made.row, made.number = row, number
        return made


def numbered(table: Table, rows: Mapping[EstimateRow, int]) -> Table:
    """Say of every number of a table which row it is, so that it can be traced."""
    cells = (
        tuple(
            Shown(cell, cell.row, rows.get(cell.row)) if isinstance(cell, Shown) else cell
            for cell in line
        )
        for line in table.rows
    )
    return replace(table, rows=tuple(cells))


def shown_interval(row: EstimateRow | None, digits: int = 3) -> str:
    """Write an estimate and its limits; nothing where it does not apply."""
    if row is None or row.estimate is None:
        return ""
    if row.quantity.endswith("_count") or row.quantity.startswith(("count.", "miss.", "extra.")):
        return Shown(f"{row.estimate:.0f}", row)
    value = f"{row.estimate:.{digits}f}"
    if row.lower is None or row.upper is None:
        return Shown(value, row)
    return Shown(f"{value} [{row.lower:.{digits}f}, {row.upper:.{digits}f}]", row)


Found = dict[str, EstimateRow]


def grouped(
    rows: Iterable[EstimateRow], names: Sequence[str], *, arms: bool = False
) -> dict[tuple[str, ...], Found]:
    """Group the plain rows (all questions, no mask) by some of their names, quantity by quantity.

    Of several fillers the average over all of them stays, and of several batches the first.
    """
    found: dict[tuple[str, ...], Found] = {}
    for row in rows:
        if row.stratum != "all" or row.mask or (row.arm and not arms):
            continue
        place = found.setdefault(tuple(getattr(row, name) for name in names), {})
        before = place.get(row.quantity)
        if before is None or (before.batch == row.batch and len(row.filler) > len(before.filler)):
            place[row.quantity] = row
    return found
