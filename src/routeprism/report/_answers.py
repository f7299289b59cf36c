"""A run's answers as a file that `recorded:FILE` reads."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from routeprism.errors import InputError, RunError
from routeprism.experiments._places import place_of
from routeprism.experiments._trail_answers import TracedAnswer, judged
from routeprism.experiments.comparison import finished
from routeprism.runs import Stored

__all__ = ["ANSWER_COLUMNS", "write_answers"]

ANSWER_COLUMNS = (
    *("model", "batch", "question", "policy", "schedule", "pair", "condition", "design"),
    *("filler", "prompt_control", "draw", "answer", "correct", "submission"),
)
"""What is written of each answer."""
_EXPERIMENTS = ("routes", "restoration", "display")
"""Whose answers there are; others read answers of the routes."""


def write_answers(run: Path, file: Path) -> int:
    """Write every answer that a run's numbers rest on, and say how many there are."""
    written = io.StringIO(newline="")
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(ANSWER_COLUMNS)
    number = 0
    with Stored(run) as stored:
        for row in _rows(stored, run):
            writer.writerow(row)
            number += 1
    if not number:
        raise RunError(f"{run} holds no answers: nobody was asked")
    try:
        file.write_bytes(written.getvalue().encode())
    except OSError as error:
        raise InputError(f"cannot be written ({error.strerror or error})", file=file) from error
    return number


def _rows(stored: Stored, run: Path) -> Iterator[list[str]]:
    configuration = finished(stored, run)
    questions = stored.questions()
    for model in configuration.get("models", ()):
        for batch in configuration["batches"]:
            for experiment in _EXPERIMENTS:
                for policy in configuration["policies"]:
                    answers = stored.answers(experiment, model=model, batch=batch, policy=policy)
                    for one in judged(stored, configuration["judge"], answers, questions):
                        known = questions[one.given.question].gold is not None
                        names = _names(experiment, one, configuration["prompt_control"], known)
                        yield [names.get(column, "") for column in ANSWER_COLUMNS]


def _names(experiment: str, one: TracedAnswer, control: str, known: bool) -> dict[str, str]:
    given = one.given
    place = place_of(
        experiment,
        question=given.question,
        policy=given.policy,
        schedule=given.schedule,
        filler=given.filler,
        condition=given.condition,
        side=given.side,
        control=control,
    )
    order = given.order
    if order is None and not given.model.startswith("recorded:"):
        order = given.submission  # that of recorded answers is only the order of looking them up
    return {
        **dict(place),
        "model": given.model,
        "batch": given.batch,
        "draw": str(given.turn),
        "answer": given.raw,
        # A verdict that could not be read counts as wrong, and so it is wrong in the file.
        "correct": str(bool(one.correct)).lower() if known else "",
        "submission": "" if order is None else str(order),
    }
