"""The estimates table: one row per number, selections of rows, and how a value is written.

The column names are an interface for other tools.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, overload

from routeprism.errors import MissingExtraError, RoutePrismError, SpecError, nearest
from routeprism.quantities import find_quantity
from routeprism.spreadsheets import write_csv

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateRow:
    """One number. An empty cell means not applicable."""

    experiment: str
    benchmark: str
    policy: str = ""
    interface: str = ""
    schedule: str = ""
    model: str = ""
    judge: str = ""
    prompt_control: str = ""
    filler: str = ""
    arm: str = ""
    labels: str = ""
    mask: str = ""
    batch: str = ""
    stratum: str = "all"
    quantity: str
    estimate: float | None
    lower: float | None = None
    upper: float | None = None
    queries: int | None = None
    units: int | None = None
    unit: str = ""
    draws: int | None = None
    seed: int | None = None
    flags: str = ""

    @property
    def identity(self) -> tuple[str, ...]:
        """All that is not a number: what makes the row this row."""
        return tuple(str(getattr(self, name)) for name in IDENTITY)

    @property
    def is_count(self) -> bool:
        """Whether the number is a count, which is shown without decimals or an interval."""
        return find_quantity(self.quantity).is_count


COLUMNS: tuple[str, ...] = tuple(part.name for part in fields(EstimateRow))
_NUMBERS = frozenset({"estimate", "lower", "upper", "queries", "units", "draws", "seed"})
IDENTITY = tuple(name for name in COLUMNS if name not in _NUMBERS and name != "flags")
"""The columns that say what a number is."""


def _cell(value: object) -> object:
    if not isinstance(value, float):
        return value
    rounded = round(value, 10)
    return int(rounded) if rounded.is_integer() else rounded


def to_csv(rows: Iterable[EstimateRow]) -> str:
    """Write the rows with their header; text that a spreadsheet would run is guarded."""
    return write_csv(COLUMNS, ([_cell(getattr(row, name)) for name in COLUMNS] for row in rows))


def unique(rows: Sequence[EstimateRow]) -> Sequence[EstimateRow]:
    """Refuse two rows with the same identity."""
    identities: set[tuple[str, ...]] = set()
    for row in rows:
        if row.identity in identities:
            raise RoutePrismError(f"two estimates have the same identity: {row.identity}")
        identities.add(row.identity)
    return rows


_PLAIN = {"stratum": "all", "mask": "", "batch": "", "arm": ""}
"""What a row over all questions has that nothing narrows down."""


def format_interval(
    value: float | None,
    lower: float | None = None,
    upper: float | None = None,
    *,
    digits: int = 3,
    signed: bool = False,
    missing: str = "–",
) -> str:
    """Write a value with its 95% limits, such as `0.053 [0.008, 0.111]`.

    A value that does not apply is written as `missing`; one without limits has no brackets.
    """
    if value is None:
        return missing
    form = f"{'+' * signed}.{digits}f"
    if lower is None or upper is None:
        return f"{value:{form}}"
    return f"{value:{form}} [{lower:{form}}, {upper:{form}}]"


@dataclass(frozen=True, slots=True, repr=False)
class Rows(Sequence[EstimateRow]):
    """An immutable selection of estimate rows, in their order in `estimates.csv`."""

    items: tuple[EstimateRow, ...] = ()

    def __repr__(self) -> str:
        return f"<Rows: {len(self.items)} numbers; to_pandas() shows them as a table>"

    @classmethod
    def of(cls, rows: Iterable[EstimateRow]) -> Rows:
        """Select all of these rows."""
        return rows if isinstance(rows, Rows) else cls(tuple(rows))

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[EstimateRow]:
        return iter(self.items)

    @overload
    def __getitem__(self, index: int) -> EstimateRow: ...

    @overload
    def __getitem__(self, index: slice) -> Rows: ...

    def __getitem__(self, index: int | slice) -> EstimateRow | Rows:
        return Rows(self.items[index]) if isinstance(index, slice) else self.items[index]

    def where(self, **columns: str | Collection[str]) -> Rows:
        """Keep the rows whose columns have these values; a collection names several values."""
        rows: Sequence[EstimateRow] = self.items
        for name in sorted(columns, key="quantity".__ne__):  # the column that narrows most, first
            value, get_value = columns[name], attrgetter(_resolve_column(name))
            if isinstance(value, str):
                rows = [row for row in rows if get_value(row) == value]
            else:
                values = tuple(value)
                rows = [row for row in rows if get_value(row) in values]
        return Rows(tuple(rows))

    def plain(self, **columns: str | Collection[str]) -> Rows:
        """Keep the rows over all questions that no mask, batch or arm narrows down."""
        return self.where(**{**_PLAIN, **columns})

    def one(self, quantity: str, **columns: str | Collection[str]) -> EstimateRow:
        """Return the only row with this quantity and these columns; by default, stratum `all`."""
        rows = self.where(**{"stratum": "all", **columns}, quantity=quantity)
        if len(rows) == 1:
            return rows[0]
        if not rows:
            quantities = dict.fromkeys(row.quantity for row in self.items)
            missing = quantity not in quantities
            hint = nearest(quantity, quantities) if missing else "The quantity has other rows."
            raise LookupError(f"0 rows have {quantity=} and {columns}. {hint}")
        differing = [name for name in IDENTITY if len({getattr(row, name) for row in rows}) > 1]
        raise LookupError(
            f"{len(rows)} rows have {quantity=} and {columns}; they differ in "
            f"{', '.join(differing)}"
        )

    def values(self, column: str) -> tuple[str, ...]:
        """Return the distinct values of a column, in the order of the rows."""
        return tuple(
            dict.fromkeys(str(getattr(row, _resolve_column(column))) for row in self.items)
        )

    def pivot(self, down: str, across: str) -> dict[str, dict[str, EstimateRow]]:
        """Arrange the rows by two columns; refuse two rows for one cell."""
        cells: dict[str, dict[str, EstimateRow]] = {}
        for row in self.items:
            line = cells.setdefault(str(getattr(row, _resolve_column(down))), {})
            if line.setdefault(str(getattr(row, _resolve_column(across))), row) is not row:
                raise LookupError(
                    f"two rows have {down}={getattr(row, down)!r} and "
                    f"{across}={getattr(row, across)!r}; narrow the rows first"
                )
        return cells

    def group(self, *names: str) -> dict[tuple[str, ...], dict[str, EstimateRow]]:
        """Group the rows over all questions by some columns, and by quantity within a group.

        Rows of a mask are left out. Of several fillers the row over all of them is taken, of
        several batches the first one.
        """
        groups: dict[tuple[str, ...], dict[str, EstimateRow]] = {}
        for row in self.where(stratum="all", mask=""):
            group = groups.setdefault(
                tuple(str(getattr(row, _resolve_column(n))) for n in names), {}
            )
            earlier = group.get(row.quantity)
            wider = earlier is not None and len(row.filler) > len(earlier.filler)
            if earlier is None or (wider and earlier.batch == row.batch):
                group[row.quantity] = row
        return groups

    def to_pandas(self) -> pandas.DataFrame:
        """Return the rows as a pandas data frame with the columns of `estimates.csv`."""
        try:
            import pandas as library
        except ImportError:
            raise MissingExtraError("to_pandas", "pandas") from None
        return library.DataFrame([astuple(row) for row in self.items], columns=list(COLUMNS))


def _resolve_column(name: str) -> Any:
    if name not in COLUMNS:
        raise SpecError(f"There is no column '{name}'. {nearest(name, COLUMNS)}")
    return name
