"""The answers behind a number: which sides of which comparisons it reads, and what they said."""

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
from routeprism.experiments.restoration import CONTRASTS as DIFFERENCES
from routeprism.orders import FORWARD
from routeprism.runs import (
    CONTRASTS,
    EstimateRow,
    Stored,
    StoredAnswer,
    StoredQuestion,
    answered_by,
)

__all__ = ["TracedAnswer", "answers_behind", "base_quantity", "judged", "policies_of"]

_PREFIXES = (
    *("Gamma", "delta_op", "interaction", "dispatch"),
    *("changed-preserved", "changed-absent", "loo_min", "loo_max"),
)
_DESIGNS = ("bundle", "identity-swap")
_STATES = ("forward", "route")
_BESIDE = {"right": (), "same_as_present": ("present",), "changed_from_absent": ("absent",)}
"""Counts of a condition's answers → the condition that they are compared with."""


@dataclass(frozen=True, slots=True)
class TracedAnswer:
    """One answer, and whether it was right."""

    given: StoredAnswer
    correct: bool | None
    """None where the right answer is not known, or the judge said neither yes nor no."""


def base_quantity(quantity: str) -> str:
    """Give the quantity that a contrast or a limit is of."""
    prefix, _, rest = quantity.partition(".")
    return rest if prefix in _PREFIXES else quantity


def policies_of(stored: Stored, row: EstimateRow) -> list[str]:
    """Name the policies that a row compares; its own where it is no contrast between policies."""
    prefix = row.quantity.partition(".")[0]
    for one in stored.findings(CONTRASTS):
        value = one.value
        place = (value["experiment"], value["quantity"], value["policy"], value["arm"])
        if place == (row.experiment, prefix, row.policy, row.arm):
            return [name for _, name in value["terms"]]
    return [row.policy]


def answers_behind(
    stored: Stored,
    row: EstimateRow,
    configuration: Mapping[str, Any],
    questions: Mapping[str, StoredQuestion],
    inside: Collection[str],
) -> tuple[TracedAnswer, ...]:
    """Give the answers to the questions of a row, side by side and draw by draw."""
    if not row.model:
        return ()
    experiment = answered_by(row.experiment)
    conditions = _conditions(row, experiment, configuration)
    sides = _sides(row, experiment)
    batches = [row.batch]
    if row.experiment == "replication":
        batches.append(configuration["batches"][0])
    found = [
        answer
        for policy in policies_of(stored, row)
        for batch in batches
        for answer in stored.answers(experiment, model=row.model, batch=batch, policy=policy)
        if answer.schedule == row.schedule
        and answer.question in inside
        and answer.condition in conditions
        and answer.filler in row.filler.split("+")
        and (not sides or answer.side in sides)
    ]
    return tuple(judged(stored, row.judge, found, questions))


def _conditions(
    row: EstimateRow, experiment: str, configuration: Mapping[str, Any]
) -> tuple[str, ...]:
    if experiment == "restoration":
        design = row.arm.partition(":")[0]
        return (design if design in _DESIGNS else "",)
    if experiment == "display":
        return ("source" if "serialisation" in row.arm else "reversed",)
    own = configuration["provenance"]
    arms = configuration.get("provenance_arms", ())
    if row.arm in arms:
        return ("" if row.arm == own else row.arm,)
    named = [arm for arm in arms if arm in row.arm.split("-")]
    return tuple("" if arm == own else arm for arm in named) if len(named) == 2 else ("",)


def _sides(row: EstimateRow, experiment: str) -> tuple[str, ...]:
    """Name the sides that a quantity reads; none for all of them."""
    quantity = base_quantity(row.quantity)
    if experiment == "restoration":
        if quantity.startswith("accuracy."):
            return (quantity.removeprefix("accuracy."),)
        named = row.arm.rpartition(":")[2] if quantity == "H" else quantity
        for one, other in DIFFERENCES:
            if named == f"{one}-{other}":
                return one, other
        if quantity in ("count.identical_prompts", "count.prompt_pairs"):
            return "present", "restored"
        counted, _, name = quantity.removeprefix("count.").partition(".")
        return (name, *_BESIDE[counted]) if counted in _BESIDE else ()
    if experiment == "display":
        return _cells(row.arm)
    if quantity == "accuracy.forward":
        return (FORWARD.name,)
    return (row.schedule,) if quantity == "accuracy.route" else ()


def _cells(arm: str) -> tuple[str, ...]:
    """Name the cells of a display arm: both states in one layout, or one state in both."""
    *kind, last = arm.split(":")
    other = "source" if "serialisation" in arm else "reversed"
    if last in _STATES and kind[:1] == ["display"]:
        return tuple(f"{last}-{layout}" for layout in ("native", other))
    if last in ("native", other):
        return tuple(f"{state}-{last}" for state in _STATES)
    return ()


def judged(
    stored: Stored,
    judge: str,
    answers: Sequence[StoredAnswer],
    questions: Mapping[str, StoredQuestion],
) -> Iterator[TracedAnswer]:
    """Say of stored answers whether they were right, by the judge of that name for free text."""
    for one, right in _judged(stored, judge, answers, questions):
        yield TracedAnswer(one, right)


def _judged(
    stored: Stored,
    judge: str,
    answers: Sequence[StoredAnswer],
    questions: Mapping[str, StoredQuestion],
) -> Iterator[tuple[StoredAnswer, bool | None]]:
    embedded = None
    if judge.startswith("embedded:f1="):
        embedded = EmbeddedJudge(float(judge.partition("=")[2]))
    for one in answers:
        question = questions[one.question]
        if question.gold is None:
            yield one, None
        elif question.options:
            yield one, one.answer == question.gold
        elif judge == RecordedJudge().name:
            yield one, one.correct
        else:
            kind = rubric_of(question.detail or question.kind, question.id)
            said = one.answer or f"({one.outcome})"
            item = Judged(question.text, question.gold, said, kind)
            if embedded is not None:
                yield one, embedded.judge(item.question, item.gold, said, kind).correct
                continue
            reply = stored.reply(judge, ask_judge(item).text, one.batch)
            yield one, None if reply is None else read_verdict(reply[0]).correct
