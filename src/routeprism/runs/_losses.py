"""Losses: why a question is not shown a record, as a run stores it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CauseKind = Literal[
    "never kept",
    "refused",
    "not retrievable",
    "full",
    "replaced",
    "overwritten",
    "merged",
    "duplicate",
    "late",
    "procedure",
    "joint",
    "tie",
    "budget",
    "ranking",
    "order of blocks",
    "rewritten",
    "state only",
    "untested",
]
Relation = Literal["", "older", "newer", "same time"]


@dataclass(frozen=True, slots=True)
class Loss:
    """Evidence that source order shows and an order does not, or that source order lacks."""

    cause: CauseKind
    policy: str
    schedule: str
    user: str
    question: str
    record: str = ""
    by: tuple[str, ...] = ()
    """The records that displaced it, or that are shown in its place."""
    relation: Relation = ""
    """How the first of them compares with the record, by event time."""
    order: tuple[int, ...] = ()
    """The losing order that was tested, as source positions."""
    test: str = ""
    """What was done, as a clause."""
    reply: str = ""
    """The text that `add` returned or raised, if it refused the record."""
    is_order: bool | None = None
    """Whether exchanging the places of both records brings it back; None if that was not tried."""
    is_when_full: bool = False
    """Whether the record stays if the two are alone, so that it left only because of the rest."""
    source_loses: bool = False
    """Whether the first of the two to arrive wins, so that source order loses the second one."""
    builds: int = 0

    def __post_init__(self) -> None:
        # As it is read back from JSON.
        object.__setattr__(self, "by", tuple(self.by))
        object.__setattr__(self, "order", tuple(self.order))
