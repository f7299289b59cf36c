"""The answers behind a number, and whether they are correct."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from routeprism.answers import (
    EmbeddedJudge,
    Judged,
    RecordedJudge,
    ask_judge,
    read_verdict,
    rubric_of,
)
from routeprism.experiments import Experiment
from routeprism.quantities import find_quantity
from routeprism.runs import CONTRASTS, EstimateRow, StoredAnswer, StoredQuestion, StoredRun

__all__ = ["TracedAnswer", "find_answers", "judge_answers", "list_policies"]


@dataclass(frozen=True, slots=True)
class TracedAnswer:
    """One answer, and whether it is correct."""

    answer: StoredAnswer
    correct: bool | None
    """None if the correct answer is not known, or the judge gave no verdict."""


def list_policies(stored: StoredRun, row: EstimateRow) -> list[str]:
    """List the policies that a row compares; its own unless it is a contrast between policies."""
    prefix = find_quantity(row.quantity).derivation
    for finding in stored.findings(CONTRASTS):
        value = finding.value
        place = (value["experiment"], value["quantity"], value["policy"], value["arm"])
        if place == (row.experiment, prefix, row.policy, row.arm):
            return [name for _, name in value["terms"]]
    return [row.policy]


def find_answers(
    stored: StoredRun,
    row: EstimateRow,
    experiment: Experiment,
    configuration: Mapping[str, Any],
    questions: Mapping[str, StoredQuestion],
    question_ids: Collection[str],
) -> tuple[TracedAnswer, ...]:
    """Find the answers to the questions of a row, as its experiment selects them."""
    if not row.model:
        return ()
    selection = experiment.select_answers(row, configuration, ())
    fillers, sides = row.filler.split("+"), selection.sides
    first_draw = find_quantity(row.quantity).first_draw

    def is_read(answer: StoredAnswer) -> bool:
        return (
            answer.schedule == row.schedule
            and answer.question in question_ids
            and answer.filler in fillers
            and (not sides or answer.side in sides)
            and (answer.turn == 0 or not first_draw)
        )

    source = selection.experiment
    answers = [
        answer
        for policy in list_policies(stored, row)
        for batch in selection.batches or (row.batch,)
        for answer in stored.answers(source, model=row.model, batch=batch, policy=policy)
        if is_read(answer)
    ]
    stored_conditions = {answer.condition for answer in answers}
    conditions = experiment.select_answers(row, configuration, stored_conditions).conditions
    if conditions is not None:
        answers = [answer for answer in answers if answer.condition in conditions]
    return tuple(judge_answers(stored, row.judge, answers, questions))


def judge_answers(
    stored: StoredRun,
    judge: str,
    answers: Sequence[StoredAnswer],
    questions: Mapping[str, StoredQuestion],
) -> Iterator[TracedAnswer]:
    """Decide for stored answers whether they are correct; free text by the judge of that name."""
    embedded = None
    if judge.startswith("embedded:f1="):
        embedded = EmbeddedJudge(float(judge.partition("=")[2]))
    for answer in answers:
        question = questions[answer.question]
        correct: bool | None = None
        if question.gold is None:
            pass
        elif question.options:
            correct = answer.answer == question.gold
        elif judge == RecordedJudge().name:
            correct = answer.correct
        else:
            kind = rubric_of(question.detail or question.kind, question.id)
            text = answer.answer or f"({answer.outcome})"
            item = Judged(question.text, question.gold, text, kind)
            if embedded is not None:
                correct = embedded.judge(item.question, item.gold, text, kind).correct
            elif reply := stored.reply(judge, ask_judge(item).text, answer.batch):
                correct = read_verdict(reply[0]).correct
        yield TracedAnswer(answer, correct)
