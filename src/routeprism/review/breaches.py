"""The smallest reordering that breaks a memory, what displaced which record, and what helps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from routeprism.exhibits import shorten
from routeprism.experiments.causes import NEXT_STEPS
from routeprism.landscape import find_moves
from routeprism.orders import Order
from routeprism.records import Pool
from routeprism.routes import CAUSES, Cause, describe_displacer

__all__ = ["Breach", "Displacement", "describe_breach"]

_MOST_CHARACTERS = 90
"""Characters of a text in a message."""


@dataclass(frozen=True, slots=True)
class Displacement:
    """Why a record is lost, and which arrival displaced it."""

    record: str
    cause: Cause
    by: str = ""
    """The arrival that displaced it; empty if none did."""


@dataclass(frozen=True, slots=True)
class Breach:
    """The smallest reordering of a pool on which too little stays the same."""

    pool: Pool
    order: Order
    value: float
    """J, of what differs most, or the share of its evidence that is left."""
    question: str
    """The text of the question whose exposed set it is; empty for the retained set."""
    lost: tuple[str, ...]
    """Records, or evidence alone, that are there in source order and not in this one."""
    gained: tuple[str, ...]
    error: str = ""
    """The error that the memory raised on this order, if it did."""
    broken: int = 0
    """How many of the orders that were looked at break it."""
    looked: int = 0
    exact: bool = True
    """Whether these are all orders of the arrival model."""
    displacements: tuple[Displacement, ...] = ()
    """Why the first lost records are lost."""


def describe_breach(breach: Breach, *, measure: str, least: float) -> Iterator[str]:
    """Describe the records that a reordering loses, what displaced them, and what helps.

    `measure` names what `least` is the limit of.
    """
    yield f"The smallest reordering that breaks it: {_describe_moves(breach)}"
    for title, ids in (("Lost", breach.lost), ("Gained", breach.gained)):
        for id in ids:
            yield f"  {title + ':':8}{_name_record(breach.pool, id)}"
    for displacement in breach.displacements:
        arrival = describe_displacer(
            displacement.cause,
            displacement.record,
            displacement.by,
            lambda id: _name_record(breach.pool, id),
        )
        yield f"Cause: {CAUSES[displacement.cause]}{f', {arrival}' if arrival else ''}"
    if breach.displacements:
        yield f"What to do: {NEXT_STEPS[breach.displacements[0].cause]}"
    if not breach.error:
        where = f" for “{_shorten(breach.question)}”" if breach.question else ""
        yield f"{measure}{where}: {breach.value:.3g}, required {least:g} or more"


def _describe_moves(breach: Breach) -> str:
    records = breach.pool.records
    if sorted(breach.order) != list(range(len(records))):
        repeats = sorted({p for p in breach.order if breach.order.count(p) > 1})
        names = ", ".join(_name_record(breach.pool, records[p].id) for p in repeats)
        return f"deliver again {names}"
    moves = []
    for move in find_moves(breach.order):
        put = "to the front" if move.after is None else ""
        put = put or f"after {_name_record(breach.pool, records[move.after or 0].id)}"
        moves.append(f"move {_name_record(breach.pool, records[move.record].id)} {put}")
    return ", then ".join(moves)


def _name_record(pool: Pool, id: str) -> str:
    text = next(record.text for record in pool.records if record.id == id)
    return f"'{id}' “{_shorten(text)}”"


def _shorten(text: str) -> str:
    return shorten(" ".join(text.split()), _MOST_CHARACTERS)
