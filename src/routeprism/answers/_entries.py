"""What a reply or a failure is in the ledger."""

from __future__ import annotations

from collections.abc import Sequence

from routeprism.answers._parse import parse
from routeprism.errors import ModelError
from routeprism.models import Reply
from routeprism.runs import Answer, Failure

__all__ = ["answer_entry", "failure_entry"]


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
        attempts=reply.attempts,
        correct=reply.correct,
        order=reply.order,
    )


def failure_entry(submission: int, error: ModelError, asked_at: str, latency: float) -> Failure:
    """Keep what a failed request said."""
    return Failure(
        submission=submission,
        error=str(error),
        asked_at=asked_at,
        latency=latency,
        attempts=error.attempts,
    )
