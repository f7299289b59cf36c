"""Schedules: sequences of a pool's positions, chosen without looking at any text (PROTOCOL §2)."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from routeprism.errors import SpecError, nearest
from routeprism.specs import parse

__all__ = ["FORWARD", "SCHEDULES", "Schedule", "parse_schedule"]

Order = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Schedule:
    """A named rule that turns a pool's size into an arrival order."""

    name: str
    """What the user wrote, and what every output says."""
    rule: Callable[[int, str], Order]
    """(pool size, user) → positions in arrival order."""

    def order(self, size: int, user: str = "") -> Order:
        """Give the positions 0…size−1 in their order of arrival."""
        order = self.rule(size, user)
        if sorted(order) != list(range(size)):
            raise SpecError(
                f"schedule '{self.name}' is no permutation of the {size} positions of a pool"
                + (f" (user '{user}')" if user else "")
            )
        return order


def _forward(size: int, user: str) -> Order:
    return tuple(range(size))


def _replay(size: int, user: str) -> Order:
    return tuple(reversed(range(size)))


def _half_swap(size: int, user: str) -> Order:
    half = size // 2
    return (*range(half, size), *range(half))


def _odd_even(size: int, user: str) -> Order:
    return (*range(0, size, 2), *range(1, size, 2))


@dataclass(frozen=True, slots=True)
class _Explicit:
    positions: Order

    def __call__(self, size: int, user: str) -> Order:
        return self.positions


@dataclass(frozen=True, slots=True)
class _Random:
    seed: int

    def __call__(self, size: int, user: str) -> Order:
        # The user's id parts the pools' orders; a digest keeps them equal in every process.
        digest = hashlib.sha256(f"{self.seed}\0{size}\0{user}".encode()).digest()
        order = list(range(size))
        random.Random(int.from_bytes(digest[:16], "big")).shuffle(order)  # noqa: S311
        return tuple(order)


FORWARD = Schedule("forward", _forward)
"""The source order, which every pair compares with."""

_FIXED = {
    "forward": FORWARD,
    "replay": Schedule("replay", _replay),
    "half-swap": Schedule("half-swap", _half_swap),
    "odd-even": Schedule("odd-even", _odd_even),
}

SCHEDULES: Mapping[str, str] = {
    "forward": "source order; every pair compares with it",
    "replay": "exact reverse",
    "half-swap": "the latter half, then the earlier half",
    "odd-even": "positions 0, 2, 4, …, then 1, 3, 5, …",
    "random:seed=N": "one uniform permutation for each pool, from a seed",
    "explicit:order=2-0-1": "this permutation, for pools of exactly its size",
}
"""What can be asked for, in a sentence each."""


def parse_schedule(text: str) -> Schedule:
    """Give the schedule that a user named."""
    spec = parse(text)
    if spec.name in _FIXED and not spec.values:
        return _FIXED[spec.name]
    if spec.name == "random" and set(spec.values) == {"seed"}:
        return Schedule(spec.text, _Random(_whole(spec.values["seed"], text)))
    if spec.name == "explicit" and set(spec.values) == {"order"}:
        positions = tuple(_whole(part, text) for part in spec.values["order"].split("-"))
        return Schedule(spec.text, _Explicit(positions))
    if spec.name in ("random", "explicit", *_FIXED):
        pattern = next(known for known in SCHEDULES if known.startswith(spec.name))
        raise SpecError(f"Expected '{pattern}' but got schedule {text!r}")
    names = (known.partition(":")[0] for known in SCHEDULES)
    raise SpecError(f"There is no schedule '{spec.name}'. {nearest(spec.name, names)}")


def _whole(value: str, text: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise SpecError(f"Expected a whole number but got {value!r} in {text!r}") from None
