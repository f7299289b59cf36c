"""Recorded answers are looked up as a whole before any is used: what lacks is said at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from routeprism.answers import Cell, RecordedJudge, parse
from routeprism.errors import InputError
from routeprism.experiments._asking import Asking, Compared, cells_of
from routeprism.experiments._stages import Stage, Traced
from routeprism.models._inspection import Inspection
from routeprism.models._recorded_rows import Entry
from routeprism.models.recorded import Recorded
from routeprism.records import Question

__all__ = ["inspect_answers", "inspect_stages"]


def inspect_stages(stages: Sequence[Stage], traced: Traced) -> tuple[str, ...]:
    """Refuse recorded answers that lack something; say of which the run has no use."""
    inspections = {
        model.name: Inspection(model)
        for stage in stages
        for model in stage.models
        if isinstance(model, Recorded)
    }
    if inspections:
        for stage in stages:
            stage.inspect(traced, inspections)
    return tuple(note for one in inspections.values() if (note := one.finish()))


def inspect_answers(
    items: Sequence[Compared], asking: Asking, inspections: Mapping[str, Inspection]
) -> None:
    """Look up what some comparisons will read."""
    for model in asking.models:
        if not isinstance(model, Recorded):
            continue
        for item in items:
            for cell in cells_of([item], asking.manner):
                for batch in asking.batches:
                    found = inspections[model.name].look(replace(cell.ask, batch=batch))
                    if found is not None:
                        _check_verdict(found, item.question, cell, model, asking)


def _check_verdict(
    entry: Entry, question: Question, cell: Cell, model: Recorded, asking: Asking
) -> None:
    if question.gold is None:
        return
    wrong = ""
    if question.options:
        right = parse(entry.answer, question.options).answer == question.gold
        if entry.correct is not None and entry.correct is not right:
            wrong = (
                f"says that the answer {entry.answer!r:.40} to question {question.id} is "
                f"{'right' if entry.correct else 'wrong'}, but '{question.gold}' is right here"
            )
    elif entry.correct is None and isinstance(asking.judge, RecordedJudge):
        wrong = (
            f"there is no verdict for question {question.id}, which others have; give all, or say "
            f"--judge embedded or --judge MODEL"
        )
    if wrong:
        raise InputError(wrong, file=model.file, line=entry.line, field="correct")
