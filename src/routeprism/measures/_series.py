"""One quantity's units: most share a few pairs of sum and count, which are stored once."""

from __future__ import annotations

from array import array
from collections.abc import Set

import numpy as np
import numpy.typing as npt

_MANY_UNITS = 2_048
"""After this many units, pairs that occur again are stored once."""
_FEW_PAIRS = 4_096
"""Up to how many different pairs are stored once; with more of them, each unit has its own."""

_LARGEST_BYTE = 255

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class UnitSeries:
    """The units that have a quantity, with the sum and the number of their values.

    A hundred thousand users take a byte or two each, not 24.
    """

    def __init__(self) -> None:
        self._units: array[int] | range = array("q")
        self._sums: array[float] = array("d")
        self._counts: array[int] = array("q")
        self._codes: array[int] | None = None
        """The place of each unit's pair among the different pairs; None if each has its own."""
        self._places: dict[tuple[float, int], int] = {}
        """Pair of sum and count → its place."""

    def __len__(self) -> int:
        return len(self._units)

    def append(self, unit: int, total: float, count: int) -> None:
        """Add a unit, which is a later one than those before."""
        if isinstance(self._units, range):
            if unit == self._units.stop:
                self._units = range(self._units.start, unit + 1)
            else:
                self._units = array("q", (*self._units, unit))
        else:
            self._units.append(unit)
        if self._codes is None:
            self._sums.append(total)
            self._counts.append(count)
            if len(self._units) == _MANY_UNITS:
                self._compress()
        else:
            place = self._find_place(total, count)
            if place > _LARGEST_BYTE and self._codes.typecode == "B":
                self._codes = array("H", self._codes.tolist())
            self._codes.append(place)
            if len(self._sums) > _FEW_PAIRS:
                self._expand()

    def _find_place(self, total: float, count: int) -> int:
        place = self._places.setdefault((total, count), len(self._sums))
        if place == len(self._sums):
            self._sums.append(total)
            self._counts.append(count)
        return place

    def _compress(self) -> None:
        """Store each different pair once, and units that follow each other as a range."""
        units, sums, counts = self._units, self._sums, self._counts
        if units[-1] - units[0] == len(units) - 1:
            self._units = range(units[0], units[-1] + 1)
        self._sums, self._counts = array("d"), array("q")
        places = list(map(self._find_place, sums, counts))
        self._codes = array("B" if len(self._sums) <= _LARGEST_BYTE + 1 else "H", places)

    def _expand(self) -> None:
        """Store the pair of every unit, because too many are different."""
        sums, counts = self.sums, self.counts
        self._codes, self._places = None, {}
        self._sums, self._counts = array("d", sums.tolist()), array("q", counts.tolist())

    @property
    def units(self) -> Integers:
        """The numbers of the units."""
        return np.array(self._units, dtype=np.int64)

    @property
    def sums(self) -> Floats:
        """The sum of each unit's values."""
        sums = np.array(self._sums, dtype=np.float64)
        return sums if self._codes is None else sums[np.array(self._codes)]

    @property
    def counts(self) -> Integers:
        """The number of each unit's values."""
        counts = np.array(self._counts, dtype=np.int64)
        return counts if self._codes is None else counts[np.array(self._codes)]

    @property
    def questions(self) -> int:
        """The number of all values."""
        return int(self.counts.sum())

    def count_questions(self, units: Set[int]) -> int:
        """Count the values of some units."""
        pairs = zip(self.units.tolist(), self.counts.tolist(), strict=True)
        return sum(count for unit, count in pairs if unit in units)

    def means(self) -> dict[int, float]:
        """Return each unit's mean."""
        return dict(zip(self.units.tolist(), (self.sums / self.counts).tolist(), strict=True))
