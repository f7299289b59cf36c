"""Results of collecting: progress, the answers, and their entries in the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from routeprism.answers._cells import Cell, key_of
from routeprism.answers._parse import parse
from routeprism.errors import ModelError
from routeprism.models import Model, Reply
from routeprism.redaction import repair_text
from routeprism.runs import Answer, Failure, Key


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


AnswerProgress = Callable[[str, Progress], None]
"""Progress callback for answer collection, called with a model's name and its progress."""


@dataclass(frozen=True, slots=True)
class Collected:
    """What is in the ledger for the cells that were asked for."""

    model: Model
    batch: str
    answers: Mapping[Key, Answer]
    failures: Mapping[Key, Failure]
    """What failed now; the next collecting asks again."""
    new_requests: int
    """How many answers were asked for now; the others were there."""
    cost: float | None
    seconds: float

    def of(self, cell: Cell) -> Answer | None:
        """Return a cell's answer, or None where it failed."""
        return self.answers.get(key_of(self.model, cell.ask, self.batch))

    @property
    def outcomes(self) -> Mapping[str, int]:
        """Count `answered`, `refused`, `unparsable` and `failed`."""
        counts = Counter[str](answer.outcome for answer in self.answers.values())
        counts["failed"] = len(self.failures)
        return {name: counts[name] for name in ("answered", "refused", "unparsable", "failed")}


def answer_entry(
    submission: int, reply: Reply, options: Sequence[str], asked_at: str, latency: float
) -> Answer:
    """Keep a reply with what it says."""
    outcome, answer = parse(reply.raw, options)
    return Answer(
        submission=submission,
        outcome=outcome,
        answer=answer,
        raw=reply.raw,
        scores=reply.scores,
        input_tokens=reply.usage.input_tokens,
        output_tokens=reply.usage.output_tokens,
        cost=reply.usage.cost,
        asked_at=asked_at,
        latency=latency,
        attempts=tuple(map(repair_text, reply.attempts)),
        correct=reply.correct,
        order=reply.order,
        marks=reply.marks,
    )


def failure_entry(submission: int, error: ModelError, asked_at: str, latency: float) -> Failure:
    """Keep what a failed request said."""
    return Failure(
        submission=submission,
        error=repair_text(str(error)),
        asked_at=asked_at,
        latency=latency,
        attempts=tuple(map(repair_text, error.attempts)),
    )
