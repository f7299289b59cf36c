"""One quantity's units: most share a few pairs of sum and count, which are stored once."""

from __future__ import annotations

from array import array
from collections.abc import Set

import numpy as np
import numpy.typing as npt

__all__ = ["UnitSeries"]

_FEW_PAIRS = 4096
"""Up to how many different pairs are stored once; with more of them, each unit has its own."""

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class UnitSeries:
    """The units that have a quantity, with the sum and the number of their values.

    A hundred thousand users take a byte or four each, not 24.
    """

    def __init__(self) -> None:
        self._first = 0
        self._size = 0
        self._units: array[int] | None = None
        """The units, where they do not follow each other."""
        self._places: dict[tuple[float, int], int] = {}
        """Pair of sum and count → its place among the different pairs."""
        self._codes: array[int] | None = array("B")
        """The place of each unit's pair; None once there are too many different pairs."""
        self._sums: array[float] = array("d")
        self._counts: array[int] = array("q")

    def __len__(self) -> int:
        return self._size

    def append(self, unit: int, total: float, count: int) -> None:
        """Add a unit, which is a later one than those before."""
        if not self._size:
            self._first = unit
        elif self._units is None and unit != self._first + self._size:
            self._units = array("q", range(self._first, self._first + self._size))
        if self._units is not None:
            self._units.append(unit)
        self._size += 1
        if self._codes is None:
            self._sums.append(total)
            self._counts.append(count)
            return
        places = self._places
        place = places.setdefault((total, count), len(places))
        if place == len(self._sums):
            self._add_pair(total, count)
        if self._codes is not None:
            self._codes.append(place)

    def _add_pair(self, total: float, count: int) -> None:
        """Add a pair that was not met before; widen the codes, or give them up."""
        assert self._codes is not None  # noqa: S101 (checked by the caller)
        self._sums.append(total)
        self._counts.append(count)
        if len(self._sums) == 257:
            self._codes = array("H", self._codes)
        if len(self._sums) > _FEW_PAIRS:
            at = [*self._codes, len(self._sums) - 1]
            self._sums = array("d", map(self._sums.__getitem__, at))
            self._counts = array("q", map(self._counts.__getitem__, at))
            self._codes, self._places = None, {}

    @property
    def units(self) -> Integers:
        """The numbers of the units."""
        if self._units is None:
            return np.arange(self._first, self._first + self._size)
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
