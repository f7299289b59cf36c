"""The smallest reordering that breaks a memory, what displaced which record, and what helps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from routeprism.exhibits import name_record, shorten
from routeprism.judge import NEXT_STEPS, describe_loss
from routeprism.landscape import describe_reordering
from routeprism.orders import Order
from routeprism.records import Pool
from routeprism.runs import Loss

__all__ = ["Breach", "describe_breach"]

_MOST_CHARACTERS = 90
"""Characters of a question in a message."""


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
    losses: tuple[Loss, ...] = ()
    """Why the first lost records are lost, as tested on this order."""


def describe_breach(breach: Breach, *, measure: str, least: float) -> Iterator[str]:
    """Describe the records that a reordering loses, what displaced them, and what helps.

    `measure` names what `least` is the limit of.
    """
    names = {record.id: name_record(record.id, record.text) for record in breach.pool.records}
    steps = describe_reordering(breach.order, breach.pool)
    yield f"The smallest reordering that breaks it: {steps}"
    for title, ids in (("Lost", breach.lost), ("Gained", breach.gained)):
        for id in ids:
            yield f"  {title + ':':8}{names[id]}"
    texts = {record.id: record.text for record in breach.pool.records}
    for loss in breach.losses:
        yield f"Cause: {describe_loss(loss, texts)}"
    if breach.losses:
        yield f"What to do: {NEXT_STEPS[breach.losses[0].cause]}"
    if not breach.error:
        text = shorten(" ".join(breach.question.split()), _MOST_CHARACTERS)
        where = f" for “{text}”" if text else ""
        yield f"{measure}{where}: {breach.value:.3g}, required {least:g} or more"
