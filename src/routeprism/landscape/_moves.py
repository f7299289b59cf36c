"""How an order differs from source order: inversions, and the fewest records to move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from routeprism.orders import Order

__all__ = ["Move", "apply_moves", "inversions", "moves_of", "say_moves"]


@dataclass(frozen=True, slots=True)
class Move:
    """Take a record out and put it back somewhere else."""

    record: int
    """Its source position."""
    after: int | None
    """The source position of the record that then comes just before it; None: it comes first."""


def inversions(order: Sequence[int]) -> int:
    """Count the pairs that arrive in the other order than their source's."""
    return sum(earlier > later for at, earlier in enumerate(order) for later in order[at + 1 :])


def moves_of(order: Order) -> tuple[Move, ...]:
    """Give the fewest moves, one after the other, that turn source order into this one.

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


def apply_moves(moves: Sequence[Move], size: int) -> Order:
    """Carry moves out on source order."""
    order = list(range(size))
    for move in moves:
        order.remove(move.record)
        order.insert(0 if move.after is None else order.index(move.after) + 1, move.record)
    return tuple(order)


def say_moves(moves: Sequence[Move]) -> str:
    """Write moves as an instruction."""
    if not moves:
        return "Change nothing"
    said = [
        f"record {move.record} "
        + ("to the front" if move.after is None else f"after record {move.after}")
        for move in moves
    ]
    return "Move " + (said[0] if len(said) == 1 else ", ".join(said[:-1]) + " and " + said[-1])
