"""Plan a life before a word is written: which record tells what, and what will be asked.

Everything that the sample promises is decided here. Options of one type are all true of the same
user, each of another matter, so a wrong option stands in the pool as surely as the right one and
only the matter it belongs to tells them apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle, islice
from typing import TYPE_CHECKING

from routeprism.records._sample.tables import TYPES, values

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from random import Random

    from routeprism.records._sample.tables import Thread, Value

__all__ = ["CIRCLES", "Fact", "Inquiry", "Life", "plan_life"]

CIRCLES = ("home", "work", "town")
"""The company a record is told in. Records of one circle speak of the same people and places, so
they are more alike than records of two circles: this is what a similarity policy can merge."""

_CIRCLES_BY_SIZE = {4: (1, 2, 2), 5: (1, 2, 2, 2), 6: (1, 2, 2, 3), 7: (2, 2, 3, 3)}

_TOO_FEW = 4
"""In a pool of four, two supporting records would leave too few others for three wrong options."""

RETOLD = 0.36
"""How often a fact that is asked comes up a second time, where the pool is large enough."""

STRAY = 0.4
"""How often the words of any other fact that is asked also fall about somebody or something else,
so that without its support the right option is not simply the one the pool never heard of."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One value of one type in the thread of one record."""

    position: int
    """The record whose thread it belongs to."""
    type: str
    value: Value
    again: int | None = None
    """The other record that comes back to it."""
    stray: int | None = None
    """A record where the same words are said of another matter, which supports nothing."""

    @property
    def support(self) -> tuple[int, ...]:
        """The positions that tell it."""
        return (self.position,) if self.again is None else (self.position, self.again)


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A fact that is asked, and what else could be answered."""

    fact: Fact
    wrong: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Life:
    """One user's threads, the circle each is told in, the facts, and what is asked."""

    threads: tuple[Thread, ...]
    circles: tuple[str, ...]
    facts: tuple[Fact, ...]
    inquiries: tuple[Inquiry, ...]

    def told(self, position: int) -> tuple[Fact, ...]:
        """Give the facts of a record's own thread."""
        return tuple(fact for fact in self.facts if fact.position == position)

    def retold(self, position: int) -> tuple[Fact, ...]:
        """Give the facts of other threads that a record comes back to."""
        return tuple(fact for fact in self.facts if fact.again == position)

    def strays(self, position: int) -> tuple[Fact, ...]:
        """Give the facts whose words a record uses for something else."""
        return tuple(fact for fact in self.facts if fact.stray == position)


def plan_life(threads: tuple[Thread, ...], asked: int, rng: Random) -> Life:
    """Plan the life of a user with these threads, one per record, and so many questions."""
    size = len(threads)
    types = _some_types(rng)
    bank = {name: rng.sample(values()[name], size) for name in types}
    pairs = _asked_pairs(size, types, asked, rng)
    circles = _circles(size, rng)
    again = _second_places(pairs, circles, RETOLD, rng) if size > _TOO_FEW else {}
    left = [pair for pair in pairs if pair not in again]
    stray = _second_places(left, circles, STRAY, rng)
    facts = tuple(
        Fact(
            position,
            name,
            bank[name][position],
            again.get((position, name)),
            stray.get((position, name)),
        )
        for position in range(size)
        for name in types
    )
    by_pair = {(fact.position, fact.type): fact for fact in facts}
    inquiries = tuple(_inquiry(by_pair[pair], facts, rng) for pair in pairs)
    return Life(threads, circles, facts, inquiries)


def _some_types(rng: Random) -> tuple[str, ...]:
    # Not all five: records would all have the same build, and their common words would drown the
    # difference between circles.
    chosen = rng.sample(TYPES, rng.choice((3, 4)))
    return tuple(name for name in TYPES if name in chosen)


def _circles(size: int, rng: Random) -> tuple[str, ...]:
    count = rng.choice(_CIRCLES_BY_SIZE[size])
    dealt = list(islice(cycle(rng.sample(CIRCLES, count)), size))
    rng.shuffle(dealt)
    return tuple(dealt)


def _asked_pairs(
    size: int, types: tuple[str, ...], asked: int, rng: Random
) -> tuple[tuple[int, str], ...]:
    # Positions go round before one comes twice, so support is spread over the pool.
    positions = list(islice(cycle(rng.sample(range(size), size)), asked))
    left = {position: rng.sample(types, len(types)) for position in range(size)}
    return tuple((position, left[position].pop()) for position in positions)


def _second_places(
    pairs: Sequence[tuple[int, str]], circles: tuple[str, ...], chance: float, rng: Random
) -> Mapping[tuple[int, str], int]:
    # One per record at most, so that no record is crowded with other records' matters; among those
    # left rather one of the same circle, so that circles stay apart for a similarity policy.
    free = rng.sample(range(len(circles)), len(circles))
    found: dict[tuple[int, str], int] = {}
    for pair in pairs:
        places = [place for place in free if place != pair[0]]
        if places and rng.random() < chance:
            apart = {place: circles[place] != circles[pair[0]] for place in places}
            found[pair] = min(places, key=apart.__getitem__)
            free.remove(found[pair])
    return found


def _inquiry(fact: Fact, facts: tuple[Fact, ...], rng: Random) -> Inquiry:
    rivals = [
        other for other in facts if other.type == fact.type and other.position not in fact.support
    ]
    rng.shuffle(rivals)
    # Rather those that no supporting record mentions; the sort is stable, so chance decides else.
    rivals.sort(key=lambda other: other.again in fact.support)
    return Inquiry(fact, tuple(other.value for other in rivals[:3]))
