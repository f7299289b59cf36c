"""Arrival models: distributions of schedules, because real systems do not reverse.

Each is uniform over a set of sequences that it can describe arrival by arrival, and has a name with
its parameters, and a seed for the orders drawn from it.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from routeprism.errors import SpecError
from routeprism.orders._processes import (
    MOST_COUNTED,
    LinearExtensions,
    Order,
    Prefix,
    Process,
    completions,
    draw,
    every_order,
    mixed_extension,
)
from routeprism.records import Pool, Record

__all__ = ["ARRIVALS", "MOST_LISTED", "ArrivalModel", "Arrivals", "every_permutation"]

MOST_LISTED = 50_000
"""The default for the largest number of orders that are listed."""

Maker: TypeAlias = Callable[[int, str, "Sequence[Record] | None"], Process]
"""(pool size, user, the pool's records if known) → the possible sequences."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """An arrival model on one pool."""

    name: str
    """The model's name."""
    process: Process
    """The possible sequences, all equally likely."""
    seed: int
    user: str
    size: int
    redelivers: bool = False
    _counts: dict[str, dict[Prefix, int] | None] = field(
        default_factory=dict, init=False, repr=False, compare=False, hash=False
    )

    def count(self) -> int | None:
        """Count the orders; None if that would take too long."""
        total = self.process.total()
        if total is None and (counts := self._completions()) is not None:
            total = counts[self.process.start()]
        return total

    def countable(self) -> bool:
        """Whether all orders can be followed at once, beginning by beginning."""
        if every_permutation(self):  # half of the records are yet to come, on average
            return (self.size << self.size) // 2 <= MOST_COUNTED
        return self._completions() is not None

    def orders(self, limit: int = MOST_LISTED) -> Iterator[tuple[Order, int]] | None:
        """List every order with its weight; None if there are more than the limit."""
        total = self.count()
        if total is None or total > limit:
            return None
        return ((order, 1) for order in every_order(self.process))

    def sample(self, index: int = 0) -> Order:
        """Draw the order number `index`: the same in every process."""
        identity = f"{self.name}\0{self.seed}\0{self.size}\0{self.user}\0{index}"
        digest = hashlib.sha256(identity.encode()).digest()
        generator = random.Random(int.from_bytes(digest[:16], "big"))  # noqa: S311
        order = draw(self.process, generator, None)
        if order is None and (counts := self._completions()) is not None:
            order = draw(self.process, generator, counts)
        if order is None and isinstance(self.process, LinearExtensions):
            order = mixed_extension(self.process.before, generator)
        if order is None:
            raise SpecError(
                f"'{self.name}' on {self.size} records has more than {MOST_COUNTED} beginnings, "
                f"too many to draw from uniformly; choose smaller parameters"
            )
        return order

    def _completions(self) -> dict[Prefix, int] | None:
        if "" not in self._counts:
            counts = completions(self.process)
            if counts is not None and not counts[self.process.start()]:
                raise SpecError(
                    f"'{self.name}' has no order for the {self.size} records of user '{self.user}'"
                )
            self._counts[""] = counts
        return self._counts[""]


def every_permutation(arrivals: Arrivals) -> bool:
    """Whether all permutations are possible and equally likely."""
    return arrivals.process.total() == math.factorial(arrivals.size) and not arrivals.redelivers


@dataclass(frozen=True, slots=True)
class ArrivalModel:
    """A named distribution of schedules."""

    name: str
    """Its name in every output, including parameters."""
    maker: Maker
    """A function that makes its sequences for a pool."""
    seed: int = 0
    """The seed of the orders drawn from it."""
    redelivers: bool = False
    """Whether a record may arrive more than once."""
    needs_records: bool = False
    """Whether the sequences depend on more of a pool than its size: on timestamps."""

    def on(self, pool: Pool) -> Arrivals:
        """Apply the model to a pool."""
        return self.bound(len(pool), pool.user, pool.records)

    def sample(self, size: int, index: int = 0, user: str = "") -> Order:
        """Draw the order number `index` for a pool of this size."""
        return self.bound(size, user, None).sample(index)

    def orders(self, size: int, limit: int = MOST_LISTED) -> Iterator[tuple[Order, int]] | None:
        """List every order of a pool of this size with its weight; None if there are too many."""
        return self.bound(size, "", None).orders(limit)

    def bound(self, size: int, user: str, records: Sequence[Record] | None) -> Arrivals:
        """Apply the model to a pool of which this is known."""
        if self.needs_records and records is None:
            raise SpecError(f"'{self.name}' reads the records' timestamps: it needs the pool")
        process = self.maker(size, user, records)
        return Arrivals(self.name, process, self.seed, user, size, self.redelivers)


ARRIVALS: Mapping[str, str] = {
    "uniform": "every order equally likely",
    "jitter:w=2": "every order in which each record is at most w places from its own",
    "late-batch:length=2,delay=3": (
        "source order with one contiguous run delayed; every run and delay that is not given"
    ),
    "interleave:k=2,split=blocks|turns": (
        "every interleaving of k sources that each stay in order: runs of the pool, or every k-th"
    ),
    "redeliver:copies=1,within=W": (
        "source order in which some records arrive a second time, within W others"
    ),
    "timestamps:precision=exact|minute|hour|day|month": (
        "every order in which earlier times come first; ties and missing times in any order"
    ),
    "partial:before=0-2+1-2": "every order in which these chains of positions stay in order",
}
"""The arrival models besides the schedules, described in one sentence each; all take seed=N."""
