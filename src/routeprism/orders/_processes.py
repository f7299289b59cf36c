"""Processes: sets of equally likely sequences of a pool's positions, described arrival by arrival.

A *prefix* stands for everything that can still matter: equal prefixes have seen the same arrivals
(as a multiset) and allow the same futures. So orders can be counted, drawn and analysed without
listing them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

Order: TypeAlias = tuple[int, ...]
Prefix: TypeAlias = Any
"""A hashable value that only its process reads."""

MOST_COUNTED = 200_000
"""Beyond how many steps between prefixes sequences are no longer counted."""

_TRIES = 10_000
"""The number of attempts to draw an order before the orders are counted."""
_FEWEST = 1e-6
"""The share of successful attempts below which none is made."""


class Process(Protocol):
    """A set of equally likely sequences."""

    def start(self) -> Prefix:
        """Return the prefix before any arrival."""

    def moves(self, prefix: Prefix, /) -> Sequence[tuple[int, Prefix]]:
        """Return each position that may come next, and the prefix after it."""

    def final(self, prefix: Prefix, /) -> bool:
        """Whether a sequence is complete here."""

    def total(self) -> int | None:
        """Return the number of sequences where a formula says it."""

    def draw(self, generator: random.Random, /) -> Order | None:
        """Draw one sequence directly, where that needs no counting."""


@dataclass(frozen=True, slots=True)
class Jittered:
    """Every permutation in which each record arrives at most `width` places from its own."""

    size: int
    width: int

    def start(self) -> Prefix:
        return (0, 0)

    def moves(self, prefix: Prefix, /) -> Sequence[tuple[int, Prefix]]:
        """Take what is overdue; otherwise anything within the width."""
        arrived, at = prefix
        if at == self.size:
            return ()
        overdue = at - self.width
        if overdue >= 0 and not arrived >> overdue & 1:
            candidates: Sequence[int] = (overdue,)
        else:
            candidates = range(max(0, overdue), min(self.size, at + self.width + 1))
        return [(p, (arrived | 1 << p, at + 1)) for p in candidates if not arrived >> p & 1]

    def final(self, prefix: Prefix, /) -> bool:
        return bool(prefix == ((1 << self.size) - 1, self.size))

    def total(self) -> int | None:
        """Return n! where the width binds no record; else they have to be counted."""
        return math.factorial(self.size) if self.width >= self.size - 1 else None

    def draw(self, generator: random.Random, /) -> Order | None:
        """Shuffle where the width binds no record."""
        free = self.width >= self.size - 1
        return all_orders(self.size).draw(generator) if free else None


@dataclass(frozen=True, slots=True)
class Interleaved:
    """Every way to interleave streams that each stay in order."""

    streams: tuple[Order, ...]

    def start(self) -> Prefix:
        return (0,) * len(self.streams)

    def moves(self, prefix: Prefix, /) -> Sequence[tuple[int, Prefix]]:
        """Any stream that has not ended may continue."""
        return [
            (stream[at], (*prefix[:which], at + 1, *prefix[which + 1 :]))
            for which, (stream, at) in enumerate(zip(self.streams, prefix, strict=True))
            if at < len(stream)
        ]

    def final(self, prefix: Prefix, /) -> bool:
        return bool(prefix == tuple(map(len, self.streams)))

    def total(self) -> int | None:
        """Return the multinomial coefficient."""
        number = math.factorial(sum(map(len, self.streams)))
        for stream in self.streams:
            number //= math.factorial(len(stream))
        return number

    def draw(self, generator: random.Random, /) -> Order | None:
        """Shuffle whose turn it is."""
        turns = [which for which, stream in enumerate(self.streams) for _ in stream]
        generator.shuffle(turns)
        streams = [iter(stream) for stream in self.streams]
        return tuple(next(streams[which]) for which in turns)


@dataclass(frozen=True, slots=True)
class LinearExtensions:
    """Every permutation that respects a partial order."""

    before: tuple[int, ...]
    """For each position, a bit for each one that must come before it."""
    ranks: tuple[int | None, ...] | None = None
    """Where the order is by ranks with ties: each position's rank; None is not comparable."""

    def start(self) -> Prefix:
        return 0

    def moves(self, prefix: Prefix, /) -> Sequence[tuple[int, Prefix]]:
        """Anything may come whose predecessors have all arrived."""
        return [
            (p, prefix | 1 << p)
            for p, needed in enumerate(self.before)
            if not prefix >> p & 1 and not needed & ~prefix
        ]

    def final(self, prefix: Prefix, /) -> bool:
        return bool(prefix == (1 << len(self.before)) - 1)

    def total(self) -> int | None:
        """Multiply the orders within ties and the ways to mix in what has no rank."""
        if self.ranks is None:
            return None
        groups, free = _group(self.ranks)
        ranked = sum(map(len, groups))
        number = math.comb(ranked + len(free), ranked) * math.factorial(len(free))
        for group in groups:
            number *= math.factorial(len(group))
        return number

    def draw(self, generator: random.Random, /) -> Order | None:
        """Shuffle each tie, then mix in what has no rank."""
        if self.ranks is None:
            return None
        groups, free = _group(self.ranks)
        for group in (*groups, free):
            generator.shuffle(group)
        ranked = [position for group in groups for position in group]
        return Interleaved((tuple(ranked), tuple(free))).draw(generator)


def _group(ranks: Sequence[int | None]) -> tuple[list[list[int]], list[int]]:
    """Group positions by rank, and list those without one."""
    groups: dict[int, list[int]] = {}
    free: list[int] = []
    for position, rank in enumerate(ranks):
        (free if rank is None else groups.setdefault(rank, [])).append(position)
    return [groups[rank] for rank in sorted(groups)], free


def all_orders(size: int) -> LinearExtensions:
    """Return the process of every permutation: all positions are tied."""
    return LinearExtensions((0,) * size, (0,) * size)


@dataclass(frozen=True, slots=True)
class Redelivered:
    """Source order, in which some records arrive a second time, each after its first."""

    size: int
    copies: int
    """The number of records that arrive twice."""
    within: int
    """How many others may arrive for the first time between a record and its copy."""

    def start(self) -> Prefix:
        return (0, frozenset())

    def moves(self, prefix: Prefix, /) -> Sequence[tuple[int, Prefix]]:
        """Take the next record, or a copy of one that is not too old."""
        first, second = prefix
        moves: list[tuple[int, Prefix]] = []
        if first < self.size:
            moves.append((first, (first + 1, second)))
        if len(second) < self._copies:
            moves += [
                (p, (first, second | {p}))
                for p in range(max(0, first - 1 - self.within), first)
                if p not in second
            ]
        return moves

    def final(self, prefix: Prefix, /) -> bool:
        first, second = prefix
        return bool(first == self.size and len(second) == self._copies)

    @property
    def _copies(self) -> int:
        return min(self.copies, self.size)

    def total(self) -> int | None:
        return None

    def _share_of_draws(self) -> float:
        """Return the share of draws that need no repetition; at most, where copies cannot be late.

        Of all draws of copies that may come however late, (n + k)! / ((n - k)! k! 2^k) differ.
        """
        copies, most = self._copies, self.within + 1
        if most >= self.size:
            return (self.size + copies) / (max(self.size, 1) << copies)
        near = (most + min(number, 2 * self.within) for number in range(copies))
        return math.prod(gaps / (most + number) for number, gaps in enumerate(near))

    def draw(self, generator: random.Random, /) -> Order | None:
        """Insert copies of random records, one after the other, into random gaps.

        A source with fewer gaps than the most is drawn again with the rest, so every sequence is
        equally likely. None if nearly all would be drawn again.
        """
        most = min(self.within + 1, self.size)
        for _ in range(_TRIES if self._share_of_draws() > _FEWEST else 0):
            order = list(range(self.size))
            for number, position in enumerate(
                sorted(generator.sample(range(self.size), self._copies))
            ):
                first = order.index(position) + 1
                later = position + self.within + 1
                end = order.index(later) if later < self.size else len(order)
                gap = first + generator.randrange(most + number)
                if gap > end:
                    break
                order.insert(gap, position)
            else:
                return tuple(order)
        return None


@dataclass(frozen=True, slots=True)
class LateBatch:
    """Source order with one contiguous run delayed: every run and delay that is not given."""

    size: int
    length: int | None
    """The length of the run."""
    delay: int | None
    """The number of later records that overtake it."""

    def start(self) -> Prefix:
        return ("before", 0, 0, 0)

    def moves(self, prefix: Prefix, /) -> Sequence[tuple[int, Prefix]]:
        """Continue in order, leave a run out, let one more overtake it, or let the run arrive.

        A prefix is (phase, what is late next, where the run ends, what comes next in order).
        """
        phase, late, end, following = prefix
        moves: list[tuple[int, Prefix]] = []
        waiting = following < self.size
        if phase == "before":
            if waiting:
                moves.append((following, (phase, following + 1, 0, following + 1)))
            ends = range(late + 1, self.size) if self.length is None else (late + self.length,)
            moves += [(end, ("gap", late, end, end + 1)) for end in ends if end < self.size]
        elif phase == "after":
            if waiting:
                moves.append((following, (phase, 0, 0, following + 1)))
        else:
            enough = self.delay in (None, following - end)
            if phase == "gap" and waiting and following - end != self.delay:
                moves.append((following, (phase, late, end, following + 1)))
            if phase == "batch" or enough:
                ended = late + 1 == end
                after = ("after", 0, 0, following) if ended else ("batch", late + 1, end, following)
                moves.append((late, after))
        return moves

    def final(self, prefix: Prefix, /) -> bool:
        return bool(prefix == ("after", 0, 0, self.size))

    def total(self) -> int | None:
        """Count the runs and delays; None where there is none."""
        return sum(map(self._from, range(self.size))) or None

    def _from(self, start: int) -> int:
        """Count the sequences whose run begins at a position."""
        length, delay = self.length, self.delay
        if length is None and delay is None:
            return math.comb(self.size - start, 2)
        left = self.size - start - (length or 1) - (delay or 1) + 1
        return max(0, left) if length is None or delay is None else int(left > 0)

    def draw(self, generator: random.Random, /) -> Order | None:
        """Draw a number and give the sequence that has it, in the order of `every_order`."""
        total = self.total()
        if total is None:
            return None
        rank = generator.randrange(total)
        start = self.size - 1
        while rank >= (number := self._from(start)):
            rank -= number
            start -= 1
        ends = range(start + 1, self.size) if self.length is None else (start + self.length,)
        for end in ends:
            lasts = range(self.size, end, -1) if self.delay is None else (end + self.delay,)
            if rank < len(lasts):
                last = lasts[rank]
                break
            rank -= len(lasts)
        return (*range(start), *range(end, last), *range(start, end), *range(last, self.size))


@dataclass(frozen=True, slots=True)
class ListedOrders:
    """A few orders, given one by one."""

    orders: tuple[Order, ...]

    def start(self) -> Prefix:
        return ()

    def moves(self, prefix: Prefix, /) -> Sequence[tuple[int, Prefix]]:
        """Continue every order that began like this."""
        at = len(prefix)
        moves = {
            order[at]: None for order in self.orders if at < len(order) and order[:at] == prefix
        }
        return [(p, (*prefix, p)) for p in moves]

    def final(self, prefix: Prefix, /) -> bool:
        return prefix in self.orders

    def total(self) -> int | None:
        return len(self.orders)

    def draw(self, generator: random.Random, /) -> Order | None:
        return generator.choice(self.orders)


def completions(process: Process, limit: int = MOST_COUNTED) -> dict[Prefix, int] | None:
    """Count the sequences that continue each prefix; None if there are too many steps."""
    levels: list[dict[Prefix, Sequence[tuple[int, Prefix]]]] = []
    frontier: list[Prefix] = [process.start()]
    steps = 0
    while frontier:
        level: dict[Prefix, Sequence[tuple[int, Prefix]]] = {}
        for prefix in frontier:
            level[prefix] = process.moves(prefix)
            steps += len(level[prefix])
            if steps > limit:
                return None
        levels.append(level)
        frontier = list(dict.fromkeys(after for moves in level.values() for _, after in moves))
    counts: dict[Prefix, int] = {}
    for level in reversed(levels):
        for prefix, moves in level.items():
            further = sum(counts[after] for _, after in moves)
            counts[prefix] = further + process.final(prefix)
    return counts


def every_order(process: Process) -> Iterator[Order]:
    """List all sequences, those that begin with earlier moves first."""
    waiting: list[tuple[Prefix, Order]] = [(process.start(), ())]
    while waiting:  # no recursion: a pool may be longer than the interpreter's stack is deep
        prefix, so_far = waiting.pop()
        if process.final(prefix):
            yield so_far
        waiting += [(after, (*so_far, p)) for p, after in reversed(process.moves(prefix))]


def draw(
    process: Process, generator: random.Random, counts: dict[Prefix, int] | None
) -> Order | None:
    """Draw one sequence uniformly; None where it would take counts that are not there."""
    direct = process.draw(generator)
    if direct is not None or counts is None:
        return direct
    order: list[int] = []
    prefix = process.start()
    rank = generator.randrange(counts[prefix])
    while True:
        if process.final(prefix):
            if rank == 0:
                return tuple(order)
            rank -= 1
        for position, after in process.moves(prefix):
            if rank < counts[after]:
                order.append(position)
                prefix = after
                break
            rank -= counts[after]
