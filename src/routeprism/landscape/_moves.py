"""How an order differs from source order: inversions, moved records, positions of support."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from routeprism.exhibits import name_record
from routeprism.orders import Order
from routeprism.printing import pluralise
from routeprism.records import Pool


@dataclass(frozen=True, slots=True)
class Move:
    """Take a record out and put it back somewhere else."""

    record: int
    """Its source position."""
    after: int | None
    """The source position of the record that then comes just before it; None: it comes first."""


def inversions(order: Sequence[int]) -> int:
    """Count the pairs that arrive in the opposite of their source order."""
    crossed = 0
    arrived: list[int] = []
    for position in order:
        at = bisect_right(arrived, position)
        crossed += len(arrived) - at
        arrived.insert(at, position)
    return crossed


def find_moves(order: Order) -> tuple[Move, ...]:
    """Return the fewest moves, one after the other, that turn source order into this one.

    The records that stay are a longest increasing run; of several, the one whose members come
    latest in the source, so that records are rather moved back than forth.
    """
    best: list[tuple[int, int, Order]] = []
    for at, position in enumerate(order):
        runs = [run for run, before in zip(best, order[:at], strict=True) if before < position]
        length, total, members = max(runs, default=(0, 0, ()))
        best.append((length + 1, total + position, (*members, position)))
    staying = frozenset(max(best, default=(0, 0, ()))[2])
    return tuple(
        Move(position, order[at - 1] if at else None)
        for at, position in enumerate(order)
        if position not in staying
    )


def format_count(number: int) -> str:
    """Write a number of orders; factorials of long pools have hundreds of digits."""
    if number < 10**9:
        return f"{number:,}"
    exponent = int(math.log10(number))  # exact for integers of any size, unlike a float's format
    mantissa = Decimal(number).scaleb(-exponent)
    return f"{mantissa:.2f}e+{exponent}"


def describe_reordering(order: Order, pool: Pool, *, most: int | None = None) -> str:
    """Write the moves that make an order as an instruction: `move 'n26' (“Flight…”) after 'n28'`.

    A text is quoted where its record comes first; beyond `most` moves, the rest is counted.
    """
    source = range(len(pool))
    texts = [record.text for record in pool.records]

    def name(position: int) -> str:
        text, texts[position] = texts[position], ""
        return name_record(pool.records[position].id, text)

    if sorted(order) != list(source):
        copies = sorted({position for position in order if order.count(position) > 1})
        return f"deliver again {', '.join(map(name, copies))}"
    moves = find_moves(order)
    if not moves:
        return "change nothing"
    if most is not None and len(moves) > most and order == tuple(reversed(source)):
        return f"reverse all {len(pool)} records"
    steps = [
        f"{name(move.record)} "
        + ("to the front" if move.after is None else f"after {name(move.after)}")
        for move in moves[:most]
    ]
    if len(moves) > len(steps):
        steps.append(pluralise(len(moves) - len(steps), "further record"))
    return f"move {', then '.join(steps)}"


BINS = ((0.0, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, 1.0))
"""The quarters of the source; the last one includes its end."""


@dataclass(frozen=True, slots=True)
class SupportPositions:
    """The normalised positions of all question–support-record instances."""

    instances: int
    quartiles: tuple[float, float, float] | None
    """Lower quartile, median, upper quartile; None without instances."""
    bins: tuple[int, int, int, int]
    """The number of instances in each quarter."""


def normalised(position: int, size: int) -> float | None:
    """Return the zero-based position divided by size − 1; a pool of one has no such place."""
    return position / (size - 1) if size > 1 else None


def support_positions(positions: Sequence[float]) -> SupportPositions:
    """Summarise normalised positions."""
    if not positions:
        return SupportPositions(0, None, (0, 0, 0, 0))
    ordered = sorted(positions)
    counts = [0, 0, 0, 0]
    for position in ordered:
        counts[min(3, int(position * 4))] += 1
    low, middle, high = (_quantile(ordered, share) for share in (0.25, 0.5, 0.75))
    return SupportPositions(
        len(ordered), (low, middle, high), (counts[0], counts[1], counts[2], counts[3])
    )


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Interpolate linearly between the two nearest values."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])
