"""From a number to its evidence: units, questions, shown sources, answers and labels.

No model is asked and no memory is built. The number is computed again from the
evidence, so that an incomplete trail is noticed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from routeprism.errors import RunError, SpecError, nearest
from routeprism.experiments import BY_QUESTION, Experiment, find_experiment
from routeprism.labels import LabelledItem
from routeprism.orders import name_reference
from routeprism.quantities import find_quantity
from routeprism.review.answers import TracedAnswer, find_answers, list_policies
from routeprism.review.selection import name_column, read_values, select_questions, select_row
from routeprism.runs import (
    EstimateRow,
    Finding,
    Rows,
    StoredQuestion,
    StoredRun,
    UnitValues,
    read_configuration,
)

__all__ = ["RULES", "ShownSources", "Trail", "trace_row", "trace_rows"]

Rule = Literal["mean", "sum", "difference", "means", "least", "greatest", "items"]

RULES: Mapping[Rule, str] = {
    "mean": "the mean of the values",
    "sum": "the sum of the values",
    "difference": "the mean over units that have both groups of the difference of their means",
    "means": "the mean of the first group minus the mean of the second",
    "least": "the least mean when any one unit is left out",
    "greatest": "the greatest mean when any one unit is left out",
    "items": "counted over the items",
}
"""How a number is computed from its evidence."""


@dataclass(frozen=True, slots=True)
class ShownSources:
    """What a question was shown on the two routes of a pair."""

    policy: str
    question: str
    forward: tuple[str, ...]
    route: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Trail:
    """A number and everything in the run that it depends on."""

    row: EstimateRow
    number: int
    """Which row of `estimates.csv` it is, from 1."""
    experiment: Mapping[str, Any]
    """Its entry in the manifest's index."""
    rule: Rule
    weighting: str
    """`unit`, `question`, `order` or `item`: what counts equally."""
    groups: Mapping[str, tuple[UnitValues, ...]]
    """The values by unit; two groups, by arm, where it is a difference between groups."""
    recomputed: float | None
    """The number as computed from this evidence."""
    texts: Mapping[str, str]
    """The questions' texts."""
    sources: tuple[ShownSources, ...] = ()
    answers: tuple[TracedAnswer, ...] = ()
    items: tuple[LabelledItem, ...] = ()
    findings: tuple[Finding, ...] = ()
    """Results of the experiment about these pools and questions, beyond single numbers."""
    prompts: Mapping[str, str] | None = None
    """Prompt texts by SHA-256, where they were asked for."""

    @property
    def agrees(self) -> bool:
        """Whether the number is reproduced, to nine digits after the point."""
        if self.recomputed is None or self.row.estimate is None:
            return self.recomputed is self.row.estimate
        return abs(self.recomputed - self.row.estimate) <= 1e-9


def trace_row(run: Path, row: str, *, question: str | None = None, prompts: bool = False) -> Trail:
    """Follow a row of a run's `estimates.csv`, given by columns or number, to its evidence.

    With `question` the lists contain only that question; the number is still computed from all.
    """
    with StoredRun(run) as stored:
        opened = _open(stored, run)
        trail = _trace(opened, select_row(opened.rows, row))
        if question is not None:
            trail = _narrow(trail, question)
        if prompts:
            texts = stored.prompts(answer.answer.prompt_sha256 for answer in trail.answers)
            trail = replace(trail, prompts=texts)
    return trail


def trace_rows(run: Path, numbers: Iterable[int]) -> Iterator[Trail]:
    """Follow several rows, given by their numbers from 1; the run is read once."""
    with StoredRun(run) as stored:
        opened = _open(stored, run)
        for number in numbers:
            yield _trace(opened, select_row(opened.rows, str(number)))


@dataclass(frozen=True, slots=True)
class _OpenRun:
    """A run and what all its trails share, read once."""

    stored: StoredRun
    run: Path
    configuration: Mapping[str, Any]
    index: Mapping[str, Any]
    rows: Rows
    questions: Mapping[str, StoredQuestion]
    masks: Mapping[str, frozenset[str]]


def _open(stored: StoredRun, run: Path) -> _OpenRun:
    configuration = read_configuration(stored, run)
    index = stored.manifest().get("experiments")
    rows = Rows.of(stored.estimates())
    if not rows:
        raise RunError(f"{run} has no estimates, so there is no row to trace")
    if not index:
        raise RunError(f"{run} has no index of its experiments; run its command again")
    return _OpenRun(stored, run, configuration, index, rows, stored.questions(), stored.masks())


def _trace(opened: _OpenRun, number: int) -> Trail:
    row, stored, questions = opened.rows[number - 1], opened.stored, opened.questions
    experiment = find_experiment(row) or Experiment(name=row.experiment, title=row.experiment)
    entry = opened.index[row.experiment]
    texts = {id: question.text for id, question in questions.items()}
    question_ids = select_questions(row, questions, opened.masks)
    if experiment.items_behind is not None:
        labelled = experiment.items_behind(opened.run, stored, row, question_ids)
        recomputed = labelled.recompute(row.quantity)
        return Trail(
            row, number, entry, "items", "item", {}, recomputed, texts, items=labelled.items
        )
    rule, quantity, arms = _find_rule(row, experiment)
    groups = {
        arm: _find_units(stored, replace(row, quantity=quantity, arm=arm), question_ids)
        for arm in arms
    }
    weighting = find_quantity(row.quantity).weighting or str(opened.configuration["weighting"])
    ids = {q for units in groups.values() for unit in units for q in unit.questions}
    users = {unit.user for units in groups.values() for unit in units}
    return Trail(
        row,
        number,
        entry,
        rule,
        weighting,
        groups,
        _compute(rule, weighting, list(groups.values())),
        texts,
        sources=_find_sources(stored, row, ids),
        answers=find_answers(stored, row, experiment, opened.configuration, questions, ids),
        findings=_find_findings(stored, row, ids, users),
    )


def _find_rule(row: EstimateRow, experiment: Experiment) -> tuple[Rule, str, tuple[str, ...]]:
    """Find how a row is computed, from which quantity and which arms."""
    groups = {group.name: group for group in experiment.groups}
    quantity = find_quantity(row.quantity, *groups)
    limit = quantity.estimator if quantity.estimator in ("least", "greatest") else None
    compared = quantity.base if limit else quantity
    if group := groups.get(compared.derivation):
        rule: Rule = limit or ("means" if group.rule == "means" else "difference")
        return rule, compared.base.name, (group.first, group.second)
    if limit:
        return limit, compared.name, (row.arm,)
    stored = quantity.base if quantity.derivation in ("count", BY_QUESTION) else quantity
    return "sum" if quantity.is_count else "mean", stored.name, (row.arm,)


def _find_units(
    stored: StoredRun, row: EstimateRow, questions: Collection[str]
) -> tuple[UnitValues, ...]:
    """Find what every unit contributes, within the row's stratum and mask."""
    column = name_column(row)
    values = read_values(stored, column)
    whole = stored.per_unit(row.interface, column) if not values else []
    if any(unit.questions for unit in whole):
        values = {unit.user: dict(unit.questions) for unit in whole}
    if not values:
        return tuple(whole)
    units = []
    for user, of_user in values.items():
        selected = {question: value for question, value in of_user.items() if question in questions}
        if selected:
            units.append(UnitValues(user, float(sum(selected.values())), len(selected), selected))
    return tuple(units)


def _compute(rule: Rule, weighting: str, groups: Sequence[Sequence[UnitValues]]) -> float | None:
    if rule == "means":
        return _mean(weighting, groups[0]) - _mean(weighting, groups[1])
    units = groups[0]
    if len(groups) > 1:
        weighting, units = "unit", _subtract(units, groups[1])
    if not units:
        return None
    if rule == "sum":
        return sum(unit.total for unit in units)
    if rule in ("mean", "difference"):
        return _mean(weighting, units)
    if len(units) < 2:
        return None
    means = [_mean(weighting, [unit for unit in units if unit is not left]) for left in units]
    return min(means) if rule == "least" else max(means)


def _subtract(first: Sequence[UnitValues], second: Sequence[UnitValues]) -> list[UnitValues]:
    """Return the difference of two groups for each unit that has both."""
    means = {unit.user: unit.mean for unit in second}
    return [
        UnitValues(unit.user, unit.mean - means[unit.user], 1, {})
        for unit in first
        if unit.user in means
    ]


def _mean(weighting: str, units: Sequence[UnitValues]) -> float:
    if weighting == "unit":
        return sum(unit.mean for unit in units) / len(units)
    return sum(unit.total for unit in units) / sum(unit.number for unit in units)


def _find_sources(
    stored: StoredRun, row: EstimateRow, questions: Collection[str]
) -> tuple[ShownSources, ...]:
    """Find what the questions were shown, if the number is about a pair of routes."""
    exposures = []
    for policy in list_policies(stored, row) if row.schedule else ():
        forward = stored.sources(policy, row.interface, name_reference(row.schedule))
        route = stored.sources(policy, row.interface, row.schedule)
        for question in sorted(questions):
            if question in forward and question in route:
                sides = (tuple(sorted(side[question])) for side in (forward, route))
                exposures.append(ShownSources(policy, question, *sides))
    return tuple(exposures)


def _find_findings(
    stored: StoredRun, row: EstimateRow, questions: Collection[str], users: Collection[str]
) -> tuple[Finding, ...]:
    return tuple(
        finding
        for finding in stored.findings(row.experiment)
        if finding.policy in ("", row.policy)
        and finding.interface in ("", row.interface)
        and finding.schedule in ("", row.schedule)
        and (not finding.user or finding.user in users)
        and (not finding.question or finding.question in questions)
    )


def _narrow(trail: Trail, question: str) -> Trail:
    """Keep what belongs to one question, and its unit."""
    if question not in trail.texts:
        raise SpecError(f"the run has no question '{question}'. {nearest(question, trail.texts)}")
    groups = {
        arm: tuple(
            replace(unit, questions={question: unit.questions[question]})
            for unit in units
            if question in unit.questions
        )
        for arm, units in trail.groups.items()
    }
    return replace(
        trail,
        groups=groups,
        sources=tuple(exposure for exposure in trail.sources if exposure.question == question),
        answers=tuple(answer for answer in trail.answers if answer.answer.question == question),
        items=tuple(item for item in trail.items if item.question == question),
        findings=tuple(f for f in trail.findings if f.question in ("", question)),
    )
