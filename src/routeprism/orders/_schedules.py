"""Schedules: sequences of a pool's positions, chosen without looking at any text (PROTOCOL §2)."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from routeprism.errors import SpecError
from routeprism.orders._procedures import ONE_BY_ONE, Procedure, name_pair
from routeprism.orders._processes import Order
from routeprism.records import Pool, Record, event_order

__all__ = ["FIXED", "FORWARD", "SCHEDULES", "Explicit", "Schedule", "Shuffled"]


@dataclass(frozen=True, slots=True)
class Schedule:
    """A named rule that gives a pool its arrival order."""

    name: str
    """Its spec, which is its name in every output."""
    rule: Callable[[int, str, Sequence[Record] | None], Order]
    """(pool size, user, the pool's records where they are known) → positions as they arrive."""
    redelivers: bool = False
    """Whether a record may arrive more than once."""
    procedure: Procedure = ONE_BY_ONE
    """How the records are handed to the memory."""
    reference: Schedule | None = None
    """The schedule that it is compared with; None for forward."""

    def perform(self, procedure: Procedure) -> Schedule:
        """Return the same order with a procedure."""
        if procedure.kind == ONE_BY_ONE.kind:
            return self
        name = procedure.name if self.name == "forward" else f"{self.name}+{procedure.name}"
        is_repeated = procedure.kind == "twice"
        return replace(
            self, name=name, procedure=procedure, redelivers=self.redelivers or is_repeated
        )

    def compare_with(self, reference: Schedule) -> Schedule:
        """Return the same schedule, compared with a reference instead of forward."""
        if reference.name in ("forward", self.name):
            return self
        return replace(self, name=name_pair(self.name, reference.name), reference=reference)

    def order(self, size: int, user: str = "") -> Order:
        """Return the positions 0…size−1 in their order of arrival."""
        return self.bound(size, user, None)

    def on(self, pool: Pool) -> Order:
        """Return a pool's positions in their order of arrival."""
        return self.bound(len(pool), pool.user, pool.records)

    def bound(self, size: int, user: str, records: Sequence[Record] | None) -> Order:
        """Order a pool of which this is known."""
        order = self.rule(size, user, records)
        if self.procedure.kind == "twice":
            order = (*order, *order)
        arrived = set(order) if self.redelivers else order
        if sorted(arrived) != list(range(size)):
            raise SpecError(
                f"schedule '{self.name}' is not a permutation of the {size} positions of a pool"
                + (f" (user '{user}')" if user else "")
            )
        return order


def _forward(size: int, user: str, records: Sequence[Record] | None) -> Order:
    return tuple(range(size))


def _replay(size: int, user: str, records: Sequence[Record] | None) -> Order:
    return tuple(reversed(range(size)))


def _half_swap(size: int, user: str, records: Sequence[Record] | None) -> Order:
    half = size // 2
    return (*range(half, size), *range(half))


def _odd_even(size: int, user: str, records: Sequence[Record] | None) -> Order:
    return (*range(0, size, 2), *range(1, size, 2))


def _event_time(size: int, user: str, records: Sequence[Record] | None) -> Order:
    if records is None:
        raise SpecError("'event-time' reads the records' timestamps: it needs the pool")
    return event_order(records)


@dataclass(frozen=True, slots=True)
class Explicit:
    """The same positions for every pool."""

    positions: Order

    def __call__(self, size: int, user: str, records: Sequence[Record] | None) -> Order:
        """Return them."""
        return self.positions


@dataclass(frozen=True, slots=True)
class Shuffled:
    """One uniform permutation for each pool."""

    seed: int

    def __call__(self, size: int, user: str, records: Sequence[Record] | None) -> Order:
        """Draw the order of a user's pool; it is the same in every process."""
        digest = hashlib.sha256(f"{self.seed}\0{size}\0{user}".encode()).digest()
        order = list(range(size))
        random.Random(int.from_bytes(digest[:16], "big")).shuffle(order)  # noqa: S311
        return tuple(order)


FORWARD = Schedule("forward", _forward)
"""The source order, which every pair compares with."""

FIXED: Mapping[str, Schedule] = {
    "forward": FORWARD,
    "replay": Schedule("replay", _replay),
    "half-swap": Schedule("half-swap", _half_swap),
    "odd-even": Schedule("odd-even", _odd_even),
    "event-time": Schedule("event-time", _event_time),
}
"""The schedules without parameters."""

SCHEDULES: Mapping[str, str] = {
    "forward": "source order; every pair compares with it",
    "replay": "exact reverse",
    "half-swap": "the latter half, then the earlier half",
    "odd-even": "positions 0, 2, 4, …, then 1, 3, 5, …",
    "event-time": "by timestamp, ties by source position",
    "random:seed=N": "one uniform permutation for each pool, from a seed",
    "explicit:order=2-0-1": "this permutation, for pools of exactly its size",
}
"""The schedules, described in one sentence each."""
