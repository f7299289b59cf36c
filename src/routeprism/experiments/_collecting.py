"""What stages that ask share: prompts made for some pools at a time, asked, entered per unit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from routeprism.answers import Plan as Cost
from routeprism.experiments._asking import (
    Answers,
    Asking,
    Compared,
    answers_to,
    cost_of,
    count_outcomes,
    filling,
    outcome_notes,
)
from routeprism.experiments._case_rows import rows_of, unit_rows_of
from routeprism.experiments._inspecting import inspect_answers
from routeprism.experiments._overall import Overall
from routeprism.experiments._rows import Key
from routeprism.experiments._stages import Asked, Traced
from routeprism.measures import Sums, Tally
from routeprism.models._inspection import Inspection
from routeprism.records import Case
from routeprism.runs import Stored

__all__ = ["Gathered", "gather", "inspect_all", "price_of"]

Item = TypeVar("Item", bound=Compared)
Make = Callable[[Case, Stored], Sequence[Item]]
"""Makes the comparisons of a pool from what the run stored."""
Enter = Callable[[Case, Sequence[Item], Mapping[tuple[str, str], Answers], Sums[Key]], None]
"""Enters what the answers to a pool's comparisons are worth, for every model and batch."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """Everything that was answered, unit by unit."""

    tally: Tally[Key]
    reasons: Counter[str] = field(default_factory=Counter)
    """Why comparisons could not be made, with how many."""
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def notes(self) -> tuple[str, ...]:
        """Say how many answers were none."""
        return outcome_notes(self.outcomes)


def inspect_all(
    traced: Traced, asking: Asking, make: Make[Item], inspections: Mapping[str, Inspection]
) -> None:
    """Look up what a stage's comparisons will ask recorded models."""
    with Stored(traced.run.directory) as stored:
        for portion in _portions(traced, asking, make, stored):
            inspect_answers([item for _, made in portion for item in made], asking, inspections)


def price_of(traced: Traced, asking: Asking, make: Make[Item]) -> dict[str, Cost]:
    """Say for each model what a stage's comparisons would take."""
    totals: dict[str, Cost] = {}
    with Stored(traced.run.directory) as stored, traced.run.ledger() as ledger:
        for portion in _portions(traced, asking, make, stored):
            items = [item for _, made in portion for item in made]
            totals = cost_of(items, asking, ledger, totals, traced.planned)
    return totals


def gather(
    experiment: str,
    traced: Traced,
    asking: Asking,
    make: Make[Item],
    enter: Enter[Item],
    asked: Asked | None,
) -> Gathered:
    """Collect what is missing and enter every pool's values; the answers are an experiment's."""
    gathered = Gathered(Tally(traced.benchmark.weighting))
    overall = None if asked is None else Overall(asked, len(traced.benchmark.cases))
    with Stored(traced.run.directory) as stored:
        for portion in _portions(traced, asking, make, stored):
            everything = [item for _, made in portion for item in made]
            gathered.reasons.update(item.reason for item in everything if item.reason)
            if overall is not None:
                overall.portion(len(portion))
            answered = answers_to(experiment, everything, asking, traced.run, overall)
            count_outcomes(gathered.outcomes, answered)
            values: list[Sequence[str]] = []
            counted: list[Sequence[str]] = []
            for case, items in portion:
                unit: Sums[Key] = {}
                enter(case, items, answered, unit)
                gathered.tally.append(unit)
                values += rows_of(case, unit)
                counted += unit_rows_of(case, unit)
            traced.run.add("per_question", values)
            traced.run.add("per_unit", counted)
    return gathered


def _portions(
    traced: Traced, asking: Asking, make: Make[Item], stored: Stored
) -> Iterator[list[tuple[Case, Sequence[Item]]]]:
    """Make the prompts of some pools at a time ready; one without questions has none."""
    portion: list[tuple[Case, Sequence[Item]]] = []
    ready = 0.0
    for case in traced.benchmark.cases:
        if case.questions:
            items = make(case, stored)
            portion.append((case, items))
            ready += filling(items, asking.manner)
        if ready >= 1:
            yield portion
            portion, ready = [], 0.0
    if portion:
        yield portion
