"""From a number to the rows behind it: units, questions, what they were shown, answers, readings.

Nothing is asked or built. The number is taken again from what is found, so that a trail that leaves
something out is seen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from routeprism.errors import RunError, SpecError, nearest
from routeprism.experiments._trail_answers import TracedAnswer, answers_behind, policies_of
from routeprism.experiments._trail_readings import (
    ReadItem,
    change_items,
    from_items,
    study_items,
)
from routeprism.experiments._trail_rows import chosen_row
from routeprism.experiments.answers import GROUPS
from routeprism.experiments.comparison import finished
from routeprism.experiments.passes import ARM
from routeprism.experiments.reuse import GROUPS as REUSE_GROUPS
from routeprism.orders import FORWARD
from routeprism.runs import (
    Column,
    EstimateRow,
    Finding,
    Stored,
    StoredQuestion,
    UnitValues,
)

__all__ = ["SeenSources", "Trail", "trace_row", "trace_rows"]

Rule = Literal["mean", "sum", "difference", "least", "greatest", "items"]

RULES: Mapping[Rule, str] = {
    "mean": "the mean of the values",
    "sum": "the sum of the values",
    "difference": "the mean over units that have both groups of the difference of their means",
    "least": "the least mean when any one unit is left out",
    "greatest": "the greatest mean when any one unit is left out",
    "items": "read off the items",
}
"""How a number is made of what is below it."""

_GROUPS = {name: (one, other) for name, one, other in (*GROUPS, *REUSE_GROUPS)}
_LIMITS: Mapping[str, Rule] = {"loo_min": "least", "loo_max": "greatest"}
_COUNTS = ("count.", "miss.", "extra.")
_BY_ORDERS = "mean_clusters"
"""Permutations count equally there, whatever the benchmark's weighting."""


@dataclass(frozen=True, slots=True)
class SeenSources:
    """What a question was shown on the two routes of a pair."""

    policy: str
    question: str
    forward: tuple[str, ...]
    route: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Trail:
    """A number and everything in the run that it rests on."""

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
    """The number as it comes out of what is here."""
    texts: Mapping[str, str]
    """The questions' texts."""
    sources: tuple[SeenSources, ...] = ()
    answers: tuple[TracedAnswer, ...] = ()
    items: tuple[ReadItem, ...] = ()
    findings: tuple[Finding, ...] = ()
    """What the experiment found of these pools and questions that is no single number."""
    prompts: Mapping[str, str] | None = None
    """Prompt texts by SHA-256, where they were asked for."""

    @property
    def agrees(self) -> bool:
        """Whether the number comes out again, to nine digits after the point."""
        if self.recomputed is None or self.row.estimate is None:
            return self.recomputed is self.row.estimate
        return abs(self.recomputed - self.row.estimate) <= 1e-9


def trace_row(run: Path, row: str, *, question: str | None = None, prompts: bool = False) -> Trail:
    """Follow a row of a run's `estimates.csv`, given by names or number, to what it rests on.

    With `question` the lists hold what belongs to that question; the number is still taken from
    all of them.
    """
    with Stored(run) as stored:
        opened = _opened(stored, run)
        trail = _numbered(opened, chosen_row(opened.rows, row))
        if question is not None:
            trail = _only(trail, question)
        if prompts:
            texts = stored.prompts(one.given.prompt_sha256 for one in trail.answers)
            trail = replace(trail, prompts=texts)
    return trail


def trace_rows(run: Path, numbers: Iterable[int]) -> Iterator[Trail]:
    """Follow several rows, given by their numbers from 1; the run is read once."""
    with Stored(run) as stored:
        opened = _opened(stored, run)
        for number in numbers:
            yield _numbered(opened, chosen_row(opened.rows, str(number)))


@dataclass(frozen=True, slots=True)
class _Opened:
    """A run and what all its trails share, read once."""

    stored: Stored
    run: Path
    configuration: Mapping[str, Any]
    index: Mapping[str, Any]
    rows: Sequence[EstimateRow]
    questions: Mapping[str, StoredQuestion]
    masks: Mapping[str, frozenset[str]]


def _opened(stored: Stored, run: Path) -> _Opened:
    configuration = finished(stored, run)
    index = stored.manifest().get("experiments")
    if not stored.estimates():
        raise RunError(f"{run} has no estimates, so there is no row to trace")
    if not index:
        raise RunError(f"{run} has no index of its experiments; run its command again")
    return _Opened(
        stored,
        run,
        configuration,
        index,
        stored.estimates(),
        stored.questions(),
        stored.masks(),
    )


def _numbered(opened: _Opened, at: int) -> Trail:
    row = opened.rows[at]
    return replace(_trail(opened, row), number=at + 1, experiment=opened.index[row.experiment])


def _trail(opened: _Opened, row: EstimateRow) -> Trail:
    stored, configuration, questions = opened.stored, opened.configuration, opened.questions
    texts = {id: one.text for id, one in questions.items()}
    inside = _inside(opened.masks, row, questions)
    study = configuration["command"] in ("screen", "support")
    if study or row.arm == ARM:
        items = (
            study_items(opened.run, row, configuration["passes"], questions, inside)
            if study
            else change_items(stored, row, questions, inside)
        )
        number = from_items(row, items)
        return Trail(row, 0, {}, "items", "item", {}, number, texts, items=tuple(items))
    rule, quantity, arms = _rule(row)
    groups = {
        arm: _units(stored, replace(row, quantity=quantity, arm=arm), questions, inside)
        for arm in arms
    }
    weighting = "order" if quantity == _BY_ORDERS else str(configuration["weighting"])
    named = {q for units in groups.values() for unit in units for q in unit.questions}
    users = {unit.user for units in groups.values() for unit in units}
    return Trail(
        row,
        0,
        {},
        rule,
        weighting,
        groups,
        _again(rule, weighting, list(groups.values())),
        texts,
        sources=_sources(stored, row, named),
        answers=answers_behind(stored, row, configuration, questions, named),
        findings=_findings(stored, row, named, users),
    )


def _rule(row: EstimateRow) -> tuple[Rule, str, tuple[str, ...]]:
    """Say how a row is made, of which quantity and of which arms."""
    prefix, _, rest = row.quantity.partition(".")
    if prefix in _GROUPS:
        return "difference", rest, _GROUPS[prefix]
    if prefix in _LIMITS:
        return _LIMITS[prefix], rest, (row.arm,)
    if row.quantity.startswith(_COUNTS):
        return "sum", row.quantity, (row.arm,)
    if row.quantity.endswith("_count"):
        return "sum", row.quantity.removesuffix("_count"), (row.arm,)
    return "mean", row.quantity, (row.arm,)


def _inside(
    masks: Mapping[str, frozenset[str]],
    row: EstimateRow,
    questions: Mapping[str, StoredQuestion],
) -> frozenset[str]:
    """Give the questions of a row's stratum and mask; an experiment's own mask is in its values."""
    kept = {id for id, one in questions.items() if row.stratum in ("all", one.kind)}
    for name, ids in masks.items():
        if row.mask == name:
            kept &= ids
        elif row.mask == f"outside-{name}":
            kept -= ids
    return frozenset(kept)


def _units(
    stored: Stored,
    row: EstimateRow,
    questions: Mapping[str, StoredQuestion],
    inside: Collection[str],
) -> tuple[UnitValues, ...]:
    """Give what every unit adds, within the row's stratum and mask."""
    column = Column(**{name: getattr(row, name) for name in Column._fields})
    found: dict[str, dict[str, float]] = {}
    for one in (column, column._replace(mask="")):
        found = found or stored.per_question(**one._asdict()).get(one, {})
    whole = stored.per_unit(row.interface, column) if not found else []
    if not found and any(unit.questions for unit in whole):
        found = {unit.user: dict(unit.questions) for unit in whole}
    if not found:
        return tuple(whole)
    units = []
    for user, values in found.items():
        kept = {question: value for question, value in values.items() if question in inside}
        if kept:
            units.append(UnitValues(user, float(sum(kept.values())), len(kept), kept))
    return tuple(units)


def _again(rule: Rule, weighting: str, groups: Sequence[Sequence[UnitValues]]) -> float | None:
    units = groups[0]
    if rule == "difference":
        other = {unit.user: unit.mean for unit in groups[1]}
        gaps = [unit.mean - other[unit.user] for unit in units if unit.user in other]
        return sum(gaps) / len(gaps) if gaps else None
    if not units:
        return None
    if rule == "sum":
        return sum(unit.total for unit in units)
    if rule == "mean":
        return _mean(weighting, units)
    rest = [
        _mean(weighting, [one for one in units if one is not unit])
        for unit in (units if len(units) > 1 else ())
    ]
    if not rest:
        return None
    return min(rest) if rule == "least" else max(rest)


def _mean(weighting: str, units: Sequence[UnitValues]) -> float:
    if weighting == "unit":
        return sum(unit.mean for unit in units) / len(units)
    return sum(unit.total for unit in units) / sum(unit.number for unit in units)


def _sources(
    stored: Stored, row: EstimateRow, questions: Collection[str]
) -> tuple[SeenSources, ...]:
    """Give what the questions were shown, where the number is about a pair of routes."""
    found = []
    for policy in policies_of(stored, row) if row.schedule else ():
        forward = stored.sources(policy, row.interface, FORWARD.name)
        route = stored.sources(policy, row.interface, row.schedule)
        for question in sorted(questions):
            if question in forward and question in route:
                sides = (tuple(sorted(side[question])) for side in (forward, route))
                found.append(SeenSources(policy, question, *sides))
    return tuple(found)


def _findings(
    stored: Stored, row: EstimateRow, questions: Collection[str], users: Collection[str]
) -> tuple[Finding, ...]:
    return tuple(
        one
        for one in stored.findings(row.experiment)
        if one.policy in ("", row.policy)
        and one.interface in ("", row.interface)
        and one.schedule in ("", row.schedule)
        and (not one.user or one.user in users)
        and (not one.question or one.question in questions)
    )


def _only(trail: Trail, question: str) -> Trail:
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
        sources=tuple(one for one in trail.sources if one.question == question),
        answers=tuple(one for one in trail.answers if one.given.question == question),
        items=tuple(one for one in trail.items if one.question == question),
        findings=tuple(one for one in trail.findings if one.question in ("", question)),
    )
