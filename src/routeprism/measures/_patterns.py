"""Limits for many units: those that have the same values are drawn as one kind of unit.

A resample of 100,000 users is then a count of each kind, and its sums are over kinds. The draws are
those of `limits`, so the limits are the same but for rounding.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from routeprism.measures._intervals import draw_units, multiply, percentiles

MANY_UNITS = 2_000
"""From how many units on equal ones are counted together."""
_MOST_KINDS = 4_096
"""Quantities share their kinds of units while there are at most this many."""

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(slots=True)
class _Batch:
    """Some quantities, and the kinds of units that they distinguish."""

    kinds: Integers
    """The kind of each unit."""
    examples: Integers
    """One unit of each kind."""
    numerators: list[Floats] = field(default_factory=list)
    """For each quantity, what a unit of each kind adds to the numerator."""
    denominators: list[Floats] = field(default_factory=list)

    def divide(self, codes: Integers) -> _Batch:
        """Distinguish units by one more quantity."""
        joint = self.kinds * (int(codes.max()) + 1) + codes
        _, examples, kinds = np.unique(joint, return_index=True, return_inverse=True)
        before = self.kinds[examples]
        return _Batch(
            kinds.reshape(-1),
            examples,
            [values[before] for values in self.numerators],
            [values[before] for values in self.denominators],
        )


class UnitPatterns:
    """Quantities on the same units, whose limits are read from the same resamples."""

    def __init__(self, units: int) -> None:
        self._units = units
        self._batches: list[_Batch] = []
        self._known: dict[bytes, int] = {}
        self._places: list[tuple[int, int]] = []

    def add(self, numerators: Floats, denominators: Floats) -> int:
        """Add a quantity; give the place of its limits. Equal quantities share one."""
        digest = hashlib.sha256(numerators.tobytes() + denominators.tobytes()).digest()
        place = self._known.setdefault(digest, len(self._places))
        if place == len(self._places):
            self._insert(numerators, denominators)
        return place

    def _insert(self, numerators: Floats, denominators: Floats) -> None:
        above, below = (np.unique(v, return_inverse=True)[1] for v in (numerators, denominators))
        codes = above.reshape(-1) * (int(below.max()) + 1) + below.reshape(-1)
        batch = self._batches[-1].divide(codes) if self._batches else None
        if batch is None or len(batch.examples) > _MOST_KINDS:
            none = np.zeros(self._units, dtype=np.int64)
            batch = _Batch(none, none[:1]).divide(codes)
            self._batches.append(batch)
        self._batches[-1] = batch
        batch.numerators.append(numerators[batch.examples])
        batch.denominators.append(denominators[batch.examples])
        self._places.append((len(self._batches) - 1, len(batch.numerators) - 1))

    def limits(self, *, seed: int, resamples: int, expanded: bool) -> list[tuple[float, float]]:
        """Return lower and upper limits of each quantity's ratio, by their places."""
        sides = [(np.array(b.numerators), np.array(b.denominators)) for b in self._batches]
        results = [np.empty((len(above), resamples)) for above, _ in sides]
        for part, places in draw_units(self._units, seed, resamples):
            rows = np.arange(len(places))[:, None]
            for batch, (above, below), result in zip(self._batches, sides, results, strict=True):
                kinds = len(batch.examples)
                flat = (batch.kinds[places] + rows * kinds).ravel()
                counts = np.bincount(flat, minlength=rows.size * kinds).astype(np.float64)
                counts = counts.reshape(rows.size, kinds).T
                np.divide(multiply(above, counts), multiply(below, counts), out=result[:, part])
        ends = [percentiles(result, self._units, expanded=expanded) for result in results]
        return [(float(ends[b][0][row]), float(ends[b][1][row])) for b, row in self._places]
