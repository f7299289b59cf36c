"""What collecting tells while it goes on, and what it gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from routeprism.answers._cells import Cell, key_of
from routeprism.models import Model
from routeprism.runs import Answer, Failure, Key

__all__ = ["Collected", "Progress"]


@dataclass(frozen=True, slots=True)
class Progress:
    """Where the collecting stands."""

    done: int
    """Answers that are kept, those from before included."""
    total: int
    failed: int
    rate: float
    """Answers a second, since this collecting began."""
    cost: float | None
    """What the answers of this collecting cost, where that is known."""
    seconds_left: float | None


@dataclass(frozen=True, slots=True)
class Collected:
    """What is in the ledger for the cells that were asked for."""

    model: Model
    batch: str
    answers: Mapping[Key, Answer]
    failures: Mapping[Key, Failure]
    """What failed now; the next collecting asks again."""
    asked: int
    """How many answers were asked for now; the others were there."""
    cost: float | None
    seconds: float

    def of(self, cell: Cell) -> Answer | None:
        """Give a cell's answer, or None where it failed."""
        return self.answers.get(key_of(self.model, cell.ask, self.batch))

    @property
    def outcomes(self) -> Mapping[str, int]:
        """Count `answered`, `refused`, `unparsable` and `failed`."""
        counted = Counter[str](answer.outcome for answer in self.answers.values())
        counted["failed"] = len(self.failures)
        return {name: counted[name] for name in ("answered", "refused", "unparsable", "failed")}
