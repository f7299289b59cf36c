"""Which sets of users agree with printed numbers that depend on nothing but the set of users.

The primary users are not public. The paper prints how many they are and how many orders their
pools have (D.11), so the sets that they can be are known: every set of the benchmark's users with
these two numbers. A printed number is *consistent* if one of these sets gives it together with
every other number of this kind, to the printed digits.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import comb, prod

from routeprism.reproduction._published import PublishedNumber

Vector = tuple[float, ...]
_DIGITS = 9
"""Sums are rounded to this number of digits, so that equal ones are counted together."""


@dataclass(frozen=True, slots=True)
class UserNumber:
    """A printed number, and what each user of the benchmark adds to it."""

    printed: PublishedNumber
    users: tuple[tuple[float, float], ...]
    """Value and weight of each user, in the order of their ids."""

    @property
    def orders(self) -> tuple[int, ...]:
        """The number of orders of each user's pool, if the number weights every order equally."""
        weights = tuple(int(weight) for _, weight in self.users)
        return weights if set(weights) != {1} else ()


@dataclass(frozen=True, slots=True)
class UserSets:
    """How many sets of users there are, and how many of them agree with the printed numbers."""

    total: int
    """The sets with the printed numbers of users and of orders."""
    agreeing: int
    """Those that give all printed numbers at once."""
    alone: tuple[int, ...]
    """For each printed number, the sets that give it."""


@cache
def count_user_sets(
    numbers: tuple[UserNumber, ...], orders: tuple[int, ...], size: int, total_orders: int
) -> UserSets:
    """Count the sets of `size` users whose pools together have `total_orders` orders.

    `orders` has the number of orders of each user's pool. A number is the weighted mean over the
    users of a set.
    """
    groups: dict[int, Counter[Vector]] = {}
    for user, pool_orders in enumerate(orders):
        # A user is a vector: value times weight, and weight, of every number.
        pairs = (number.users[user] for number in numbers)
        parts = ((round(value * weight, _DIGITS), weight) for value, weight in pairs)
        vector = tuple(itertools.chain.from_iterable(parts))
        groups.setdefault(pool_orders, Counter())[vector] += 1
    total, agreeing, alone = 0, 0, [0] * len(numbers)
    for sums, ways in _add_up_sets(groups, size, total_orders):
        agrees = [
            number.printed.agrees(round(value / weight, _DIGITS))
            for number, value, weight in zip(numbers, sums[::2], sums[1::2], strict=True)
        ]
        total += ways
        agreeing += ways * all(agrees)
        alone = [count + ways * agreed for count, agreed in zip(alone, agrees, strict=True)]
    return UserSets(total, agreeing, tuple(alone))


def _add_up_sets(
    groups: Mapping[int, Counter[Vector]], size: int, total_orders: int
) -> Iterator[tuple[Vector, int]]:
    """Yield the sums of the vectors of every set, with the number of sets that have them."""
    for sizes in itertools.product(*(range(group.total() + 1) for group in groups.values())):
        orders = sum(n * pool_orders for n, pool_orders in zip(sizes, groups, strict=True))
        if sum(sizes) != size or orders != total_orders:
            continue
        choices = map(_add_up_choices, groups.values(), sizes)
        for parts in itertools.product(*(choice.items() for choice in choices)):
            ways = prod(number for _, number in parts)
            yield tuple(map(sum, zip(*(vector for vector, _ in parts), strict=True))), ways


def _add_up_choices(group: Counter[Vector], size: int) -> Counter[Vector]:
    """Add up the vectors of every choice of `size` users: sum → the number of choices with it.

    Users with the same vector are interchangeable, so that few choices are different.
    """
    sums: Counter[Vector] = Counter()
    for numbers in _split(list(group.values()), size):
        ways = prod(map(comb, group.values(), numbers))
        parts = [[n * value for value in vector] for vector, n in zip(group, numbers, strict=True)]
        sums[tuple(round(sum(values), _DIGITS) for values in zip(*parts, strict=True))] += ways
    return sums


def _split(limits: Sequence[int], size: int) -> Iterator[tuple[int, ...]]:
    """List the ways to take `size` users from kinds with these numbers of users."""
    if not limits:
        yield from [()] if size == 0 else []
        return
    for number in range(max(0, size - sum(limits[1:])), min(limits[0], size) + 1):
        for rest in _split(limits[1:], size - number):
            yield (number, *rest)
