"""The published numbers: one data file with the label, panel, row and column of each."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from functools import cache
from importlib.resources import files

__all__ = ["PROTOCOL", "Printed", "published"]

PROTOCOL = "protocol"
"""The label of the numbers that a correct build gives beyond the printed tables."""
_LIMITS = {"Estimate": "estimate", "Lower": "lower", "Upper": "upper"}


@dataclass(frozen=True, slots=True)
class Printed:
    """One cell as it is printed."""

    label: str
    """The label of its table or figure, such as `tab:mechanism-state`."""
    panel: str
    row: str
    column: str
    text: str
    """What stands there: a number, a word, or NA and NR."""

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
        """The column without the name of the part; estimate and limits have the same."""
        before, _, last = self.column.rpartition("/")
        return before.strip() if last.strip() in _LIMITS else self.column

    def rounded(self, value: float) -> str:
        """Write a value with as many digits as this cell has."""
        number = self.number
        if number is None:
            return f"{value:g}"
        exponent = number.as_tuple().exponent
        unit = Decimal(1).scaleb(exponent if isinstance(exponent, int) else 0)
        return f"{Decimal(repr(value)).quantize(unit, ROUND_HALF_EVEN) + 0}"

    def agrees(self, value: float) -> bool:
        """Whether a value, rounded to the printed digits, is the printed one."""
        return self.number is not None and Decimal(self.rounded(value)) == self.number


@cache
def published() -> tuple[Printed, ...]:
    """Read every printed cell, in the order of the paper."""
    text = files(__package__).joinpath("published.csv").read_text(encoding="utf-8")
    rows = csv.reader(io.StringIO(text, newline=""))
    next(rows)
    return tuple(Printed(*row) for row in rows)
