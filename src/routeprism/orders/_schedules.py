"""Schedules: sequences of a pool's positions, chosen without looking at any text (PROTOCOL §2)."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from routeprism.errors import SpecError
from routeprism.orders._processes import Order
from routeprism.records import Pool, Record

__all__ = ["FIXED", "FORWARD", "SCHEDULES", "Explicit", "Schedule", "Shuffled"]


@dataclass(frozen=True, slots=True)
class Schedule:
    """A named rule that gives a pool its arrival order."""

    name: str
    """What the user wrote, and what every output says."""
    rule: Callable[[int, str, Sequence[Record] | None], Order]
    """(pool size, user, the pool's records where they are known) → positions as they arrive."""
    redelivers: bool = False
    """Whether a record may arrive more than once."""

    def order(self, size: int, user: str = "") -> Order:
        """Give the positions 0…size−1 in their order of arrival."""
        return self.bound(size, user, None)

    def on(self, pool: Pool) -> Order:
        """Give a pool's positions in their order of arrival."""
        return self.bound(len(pool), pool.user, pool.records)

    def bound(self, size: int, user: str, records: Sequence[Record] | None) -> Order:
        """Give the order of a pool of which this is known."""
        order = self.rule(size, user, records)
        arrived = set(order) if self.redelivers else order
        if sorted(arrived) != list(range(size)):
            raise SpecError(
                f"schedule '{self.name}' is no permutation of the {size} positions of a pool"
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


@dataclass(frozen=True, slots=True)
class Explicit:
    """The same positions whatever the pool."""

    positions: Order

    def __call__(self, size: int, user: str, records: Sequence[Record] | None) -> Order:
        """Give them."""
        return self.positions


@dataclass(frozen=True, slots=True)
class Shuffled:
    """One uniform permutation for each pool."""

    seed: int

    def __call__(self, size: int, user: str, records: Sequence[Record] | None) -> Order:
        """Draw it: the user's id parts the pools' orders, in every process the same."""
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
}
"""The schedules without parameters."""

SCHEDULES: Mapping[str, str] = {
    "forward": "source order; every pair compares with it",
    "replay": "exact reverse",
    "half-swap": "the latter half, then the earlier half",
    "odd-even": "positions 0, 2, 4, …, then 1, 3, 5, …",
    "random:seed=N": "one uniform permutation for each pool, from a seed",
    "explicit:order=2-0-1": "this permutation, for pools of exactly its size",
}
"""What can be asked for, in a sentence each."""
