"""How far two readings of the same items agree: confusion matrix, exact agreement, Cohen's κ.

Items count equally, regardless of the user, as in the published tables (Appendices B, F.1); limits
resample the benchmark's units, like those of every other estimate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

import numpy as np

from routeprism.measures._estimates import FEW_UNITS, RESAMPLES, Estimate, Tally, trim_noise
from routeprism.measures._intervals import Interval, bootstrap_counts, percentiles

MEMBERSHIP = ("in", "out")
"""The labels of an item under two sets: whether each of them holds it."""

_CELLS = 400_000
"""The number of resampled unit counts in memory at once."""


@dataclass(frozen=True, slots=True)
class Confusion:
    """How often each label of one reading met each label of another."""

    labels: tuple[str, ...]
    """The labels, in the order of rows and columns."""
    counts: tuple[tuple[int, ...], ...]
    """Rows are the first reading's labels, columns the second's."""

    def __post_init__(self) -> None:
        size = len(self.labels)
        if len(self.counts) != size or any(len(row) != size for row in self.counts):
            raise ValueError(f"Expected {size} rows of {size} counts but got counts={self.counts}")

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]], labels: Sequence[str]) -> Confusion:
        """Count pairs of labels; a label that is none of `labels` is a KeyError."""
        places = {label: at for at, label in enumerate(labels)}
        met = Counter((places[first], places[second]) for first, second in pairs)
        size = range(len(labels))
        return cls(tuple(labels), tuple(tuple(met[row, at] for at in size) for row in size))

    @classmethod
    def of_sets(cls, triples: Iterable[tuple[Set[str], Set[str], Iterable[str]]]) -> Confusion:
        """Count the members of two sets, given (first set, second set, items to choose from).

        Sets from different pools have no members in common, so whole sets cannot be categories:
        κ for sets is κ of membership, item by item. How many sets are equal is counted apart.
        """
        return cls.of(
            (
                (MEMBERSHIP[item not in first], MEMBERSHIP[item not in second])
                for first, second, items in triples
                for item in items
            ),
            MEMBERSHIP,
        )

    def __add__(self, addend: Confusion) -> Confusion:
        """Add the counts of another part of the same items."""
        if self.labels != addend.labels:
            raise ValueError(f"Expected labels={self.labels} but got labels={addend.labels}")
        rows = zip(self.counts, addend.counts, strict=True)
        return Confusion(
            self.labels,
            tuple(tuple(a + b for a, b in zip(row, two, strict=True)) for row, two in rows),
        )

    @property
    def total(self) -> int:
        """The number of items compared."""
        return sum(map(sum, self.counts))

    @property
    def agreed(self) -> int:
        """The number of items with the same label in both readings."""
        return sum(row[at] for at, row in enumerate(self.counts))

    @property
    def agreement(self) -> float | None:
        """The share of items with the same label twice; None where nothing was compared."""
        return self.agreed / self.total if self.total else None

    @property
    def kappa(self) -> float | None:
        """Cohen's κ; None where nothing was compared, or where both use one and the same label.

        κ = (agreement − expected) / (1 − expected), with whole numbers until the last division.
        """
        columns = [sum(column) for column in zip(*self.counts, strict=True)]
        chance = sum(sum(row) * column for row, column in zip(self.counts, columns, strict=True))
        room = self.total**2 - chance
        return (self.agreed * self.total - chance) / room if room else None


def agreement_estimate(
    units: Sequence[tuple[int, int]],
    *,
    seed: int,
    interval: Interval,
    resamples: int = RESAMPLES,
) -> Estimate | None:
    """Estimate agreement from each unit's (items agreed on, items compared).

    None where nothing was compared.
    """
    tally: Tally[str] = Tally("question")
    for agreed, compared in units:
        if compared:
            tally.append({"": (float(agreed), compared)})
    return tally.estimates(seed=seed, resamples=resamples, interval=interval).get("")


def kappa_estimate(
    units: Sequence[Confusion], *, seed: int, interval: Interval, resamples: int = RESAMPLES
) -> Estimate | None:
    """Estimate κ from each unit's items, under the same resamples as their agreement.

    None where κ is undefined. It has no limits where it is undefined in some resample: leaving
    those out would make the interval too narrow. κ is not a ratio of sums over units, so it has
    percentile or expanded limits, and the latter where BCa or studentised ones are asked for.
    """
    expanded = interval != "percentile"
    units_with_items = [unit for unit in units if unit.total]
    if not units_with_items:
        return None
    whole = units_with_items[0]
    for unit in units_with_items[1:]:
        whole += unit
    if whole.kappa is None:
        return None
    number = len(units_with_items)
    if number < 2:
        return Estimate(trim_noise(whole.kappa), None, None, whole.total, number, ("single-unit",))
    lower, upper = _limits(units_with_items, seed, resamples, expanded=expanded)
    doubts: tuple[str, ...] = ()
    if lower is not None and lower == upper:
        doubts = ("degenerate",)
    elif lower is not None and number < FEW_UNITS["expanded" if expanded else "percentile"]:
        doubts = ("few-units",)
    return Estimate(trim_noise(whole.kappa), lower, upper, whole.total, number, doubts)


def _limits(
    units: Sequence[Confusion], seed: int, resamples: int, *, expanded: bool
) -> tuple[float | None, float | None]:
    size = len(units[0].labels)
    cells = np.array([unit.counts for unit in units], dtype=np.float64).reshape(len(units), -1)
    generator = np.random.default_rng([seed, len(units)])
    values = np.empty(resamples)
    step = max(1, _CELLS // len(units))
    for start in range(0, resamples, step):
        stop = min(start + step, resamples)
        sums = bootstrap_counts(len(units), stop - start, generator) @ cells
        tables = sums.reshape(-1, size, size)
        total = tables.sum(axis=(1, 2))
        agreed = np.trace(tables, axis1=1, axis2=2)
        chance = (tables.sum(axis=2) * tables.sum(axis=1)).sum(axis=1)
        room = total**2 - chance
        if not room.all():
            return None, None
        values[start:stop] = (agreed * total - chance) / room
    lower, upper = percentiles(values[None, :], len(units), expanded=expanded)
    return trim_noise(lower[0]), trim_noise(upper[0])
