"""Draws from processes that have too many beginnings to count.

Where a process has a structure that allows it, they are exactly uniform; elsewhere a Markov chain
draws them.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from routeprism.orders._processes import (
    Interleaved,
    Jittered,
    LinearExtensions,
    Order,
    Process,
    Redelivered,
    completions,
    draw,
)

WIDEST = 8
"""Up to which width jittered orders are drawn by the counts of their windows: 12,870 windows."""
DISTANCE = 0.001
"""How far the law of a drawn linear extension may be from uniform, in total variation."""
_SWEEPS = 400
"""How often a chain exchanges the records of a wide jitter, in disjoint pairs of places."""
_REFRESHES = 20
"""How often a chain moves each redelivered copy, on average."""
_SAME = 1e-13
"""From which relative change on the counts of windows are the same."""


def draw_uncounted(process: Process, generator: random.Random) -> Order:
    """Draw a sequence of a process that has too many beginnings to count them."""
    if isinstance(process, Jittered):
        exchange = draw_jittered if process.width <= WIDEST else mixed_jitter
        return exchange(process.size, process.width, generator)
    if isinstance(process, LinearExtensions):
        return _draw_parts(process.before, generator)
    assert isinstance(process, Redelivered)  # noqa: S101 (the others are drawn directly)
    size, copies, within = process.size, min(process.copies, process.size), process.within
    if within >= size - 1:
        return draw_late_copies(size, copies, generator)
    return mixed_redelivery(size, copies, within, generator)


# --- Jitter: windows of the records that can arrive at a place ----------------------------------

_Window: TypeAlias = int
"""A place's records from `width` before it to `width` - 1 behind it: a bit for each arrived one."""


class _Windows:
    """The windows of a width, and in how many ways each can be continued up to the end.

    Exactly `width` records of a window have arrived. A sequence is complete if these are the
    earlier ones, which is also how it starts, so the ways depend on nothing but the window and the
    number of places that are left.
    """

    def __init__(self, width: int) -> None:
        import numpy as np

        self.start: _Window = (1 << width) - 1
        windows = [
            sum(1 << bit for bit in bits)
            for bits in itertools.combinations(range(2 * width), width)
        ]
        number = {window: at for at, window in enumerate(windows)}
        self.moves = {window: self._list_moves(window, width) for window in windows}
        """Window → each record that may come next, counted from the first, and the window after."""
        self.number = number
        nobody = len(windows)
        self._after = np.full((2 * width + 1, nobody), nobody)
        for window, moves in self.moves.items():
            for record, following in moves:
                self._after[record, number[window]] = number[following]
        ways = np.zeros(nobody + 1)
        ways[number[self.start]] = 1.0
        self._ways = [ways]

    @staticmethod
    def _list_moves(window: _Window, width: int) -> list[tuple[int, _Window]]:
        records: Sequence[int] = range(2 * width + 1) if window & 1 else (0,)
        return [(r, (window | 1 << r) >> 1) for r in records if not window >> r & 1]

    def ways(self, left: int) -> Any:
        """Return the number of ways of each window, up to a factor, with this many places left."""
        import numpy as np

        while len(self._ways) <= left:
            latest = self._ways[-1]
            ways = sum(latest[after] for after in self._after)
            ways = np.append(ways / ways.max(), 0.0)
            if np.allclose(ways, latest, rtol=_SAME, atol=0.0):
                break  # further places change nothing
            self._ways.append(ways)
        return self._ways[min(left, len(self._ways) - 1)]


_windows = lru_cache(maxsize=None)(_Windows)


def draw_jittered(size: int, width: int, generator: random.Random) -> Order:
    """Draw a permutation in which each record is at most `width` places from its own.

    Each record is drawn with its share of the ways to continue, so every permutation is equally
    likely, except for the rounding of these shares.
    """
    windows = _windows(width)
    window, order = windows.start, []
    for place in range(size):
        ways = windows.ways(size - place - 1)
        moves = windows.moves[window]
        weights = [float(ways[windows.number[following]]) for _, following in moves]
        ((record, window),) = generator.choices(moves, weights)
        order.append(place - width + record)
    return tuple(order)


def mixed_jitter(size: int, width: int, generator: random.Random) -> Order:
    """Draw such a permutation by a Markov chain from source order.

    Each step pairs places at a random distance and exchanges each pair that may be exchanged with
    probability one half, which leaves the uniform law as it is.
    """
    import numpy as np

    order, places = np.arange(size), np.arange(size)
    for _ in range(_SWEEPS):
        distance = generator.randint(1, min(2 * width, size - 1))
        first = (places - generator.randrange(2 * distance)) % (2 * distance) < distance
        left = np.flatnonzero(first[: size - distance])
        right = left + distance
        bits = np.frombuffer(generator.randbytes(len(left) // 8 + 1), np.uint8)
        exchanged = np.unpackbits(bits)[: len(left)].astype(bool)
        exchanged &= (np.abs(order[left] - right) <= width) & (np.abs(order[right] - left) <= width)
        left, right = left[exchanged], right[exchanged]
        order[left], order[right] = order[right], order[left]
    return tuple(order.tolist())


# --- Partial orders -----------------------------------------------------------------------------


def _draw_parts(before: Sequence[int], generator: random.Random) -> Order:
    """Draw an order of each part that no record of another part is compared with, and mix them."""
    orders = []
    for part in _list_parts(before):
        places = {position: place for place, position in enumerate(part)}
        within = tuple(
            sum(1 << places[p] for p in part if before[position] >> p & 1) for position in part
        )
        extensions = LinearExtensions(within)
        order = draw(extensions, generator, completions(extensions))
        order = mixed_extension(within, generator) if order is None else order
        orders.append(tuple(part[place] for place in order))
    mixed = Interleaved(tuple(orders)).draw(generator)
    assert mixed is not None  # noqa: S101 (streams can always be interleaved)
    return mixed


def _list_parts(before: Sequence[int]) -> list[list[int]]:
    """List the positions of each part in source order; most have no predecessors and no part."""
    parts: dict[int, int] = {}
    """A bit for each position of a part, by its lowest position."""
    for position, needed in enumerate(before):
        joined = needed | 1 << position
        for lowest in [lowest for lowest, bits in parts.items() if bits & joined]:
            joined |= parts.pop(lowest)
        parts[(joined & -joined).bit_length() - 1] = joined
    return [
        [position for position in range(lowest, len(before)) if parts[lowest] >> position & 1]
        for lowest in sorted(parts)
    ]


def mixed_extension(before: Sequence[int], generator: random.Random) -> Order:
    """Draw a linear extension whose law is within `DISTANCE` of uniform, by a Markov chain.

    The chain of adjacent exchanges with the parabolic choice of places mixes within a known number
    of steps (Bubley and Dyer, Faster random generation of linear extensions, Discrete Mathematics
    201, 1999), so the distance from uniform is bounded even if the orders are too many to count.
    """
    size = len(before)
    order = _some_extension(before)
    steps = math.ceil((size**3 - size) / 6 * math.log(size**2 / (4 * DISTANCE)))
    places = range(size - 1)
    weights = [(place + 1) * (size - place - 1) for place in places]
    for place in generator.choices(places, weights, k=steps):
        first, second = order[place], order[place + 1]
        if generator.random() < 0.5 and not before[second] >> first & 1:
            order[place], order[place + 1] = second, first
    return tuple(order)


def _some_extension(before: Sequence[int]) -> list[int]:
    order: list[int] = []
    arrived = 0
    while len(order) < len(before):
        following = next(
            p for p, needed in enumerate(before) if not arrived >> p & 1 and not needed & ~arrived
        )
        order.append(following)
        arrived |= 1 << following
    return order


# --- Redelivery ---------------------------------------------------------------------------------


def draw_late_copies(size: int, copies: int, generator: random.Random) -> Order:
    """Draw source order with copies that may come however late.

    First arrivals are in source order, so a sequence is which places are paired: any pairs of any
    places, each equally likely.
    """
    paired = generator.sample(range(size + copies), 2 * copies)
    first = {max(pair): min(pair) for pair in zip(paired[::2], paired[1::2], strict=True)}
    order: list[int] = []
    records = itertools.count()
    for place in range(size + copies):
        order.append(order[first[place]] if place in first else next(records))
    return tuple(order)


def mixed_redelivery(size: int, copies: int, within: int, generator: random.Random) -> Order:
    """Draw source order with copies that may not come late, by a Markov chain.

    It begins with copies of the first records, each directly behind its record.

    Each step takes a copy out and puts one of a random record into a random place behind its first
    arrival, unless that is too late: a step and its reverse are equally likely.
    """
    copied = list(range(copies))
    single = list(range(copies, size))
    gaps = [[record] if record < copies else [] for record in range(size)]
    """The copies behind each first arrival, up to the next one."""
    gap_of = {record: record for record in copied}
    # Only copies of records that are at most `within` away can be in the gaps of a record.
    most = within + 1 + min(copies - 1, 2 * within)
    for _ in range(math.ceil(_REFRESHES * copies * (1 + math.log(copies)))):
        at, choice = generator.randrange(copies), generator.randrange(len(single) + 1)
        out = copied[at]
        record = single[choice] if choice < len(single) else out
        place = gaps[gap_of[out]].index(out)
        gaps[gap_of[out]].pop(place)
        left = generator.randrange(most)
        for gap in range(record, min(record + within + 1, size)):
            if left <= len(gaps[gap]):
                break
            left -= len(gaps[gap]) + 1
        else:
            gaps[gap_of[out]].insert(place, out)
            continue
        gaps[gap].insert(left, record)
        del gap_of[out]
        gap_of[record], copied[at] = gap, record
        if choice < len(single):
            single[choice] = out
    return tuple(itertools.chain(*((first, *copies) for first, copies in enumerate(gaps))))
