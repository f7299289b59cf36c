"""Questions as a run keeps them, so that it can be read without its benchmark."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from routeprism.records import Question

__all__ = ["StoredQuestion", "question_row", "read_question"]


@dataclass(frozen=True, slots=True)
class StoredQuestion:
    """A question as it is kept with the run."""

    id: str
    user: str
    text: str
    options: tuple[str, ...]
    gold: str | None
    kind: str
    labels: Mapping[str, frozenset[str]]
    """Label source → the records that carry the answer."""
    detail: str = ""
    """The benchmark's own name of its kind."""


def question_row(question: Question) -> Sequence[Any]:
    """Write a question for the store."""
    labels = {source: sorted(ids) for source, ids in question.labels.items()}
    return (
        question.id,
        question.user,
        question.text,
        json.dumps(question.options),
        question.gold,
        question.kind,
        question.detail,
        json.dumps(labels),
    )


def read_question(row: Sequence[Any]) -> StoredQuestion:
    """Read what `question_row` wrote."""
    id, user, text, options, gold, kind, detail, labels = row
    supported = {source: frozenset(ids) for source, ids in json.loads(labels).items()}
    return StoredQuestion(
        id, user, text, tuple(json.loads(options)), gold, kind or "", supported, detail or ""
    )
