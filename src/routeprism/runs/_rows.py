"""The estimates table: one tidy row per number; its column names are an interface."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

from routeprism.errors import RoutePrismError

__all__ = ["COLUMNS", "EstimateRow", "to_csv", "unique"]


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
        return tuple(str(getattr(self, name)) for name in _NAMES)


COLUMNS: tuple[str, ...] = tuple(part.name for part in fields(EstimateRow))
_NUMBERS = frozenset({"estimate", "lower", "upper", "queries", "units", "draws", "seed"})
_NAMES = tuple(name for name in COLUMNS if name not in _NUMBERS and name != "flags")


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(int(value)) if value.is_integer() else repr(round(value, 10))
    return str(value)


def to_csv(rows: Iterable[EstimateRow]) -> str:
    """Write the rows with their header."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow([_cell(getattr(row, name)) for name in COLUMNS])
    return stream.getvalue()


def unique(rows: Sequence[EstimateRow]) -> Sequence[EstimateRow]:
    """Refuse two rows that say what they are in the same words."""
    seen: set[tuple[str, ...]] = set()
    for row in rows:
        if row.identity in seen:
            raise RoutePrismError(f"two estimates have the same identity: {row.identity}")
        seen.add(row.identity)
    return rows
