"""The answers of one pool, and their profiles: every answer coordinate, question by question."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

from routeprism.answers import Comparison
from routeprism.experiments._collection import Answers, AnswersByModel, Asking
from routeprism.experiments._rows import Column, Key
from routeprism.experiments._stages import Traced
from routeprism.experiments._strata import Sheet, Strata, Values, restrict
from routeprism.measures import ANSWER_COORDINATES, Draws, Sums
from routeprism.prompts import Filler
from routeprism.quantities import Quantity
from routeprism.records import Case

REPEATED = ("H_cross", "H_within", "D_res", "D_star", "Delta_rep")
"""Coordinates of repeated answers, which are also given without the first answers (I.2, I.8)."""

Groups = Sequence[Sequence[Comparison]]
"""For each question its comparisons, one for each filler."""
Profile = Mapping[str, Values]
"""For each coordinate its values, question by question."""
Read = Callable[[Comparison], float | None]
"""Gives a number for one comparison; None if it does not apply."""


@dataclass(frozen=True, slots=True)
class PoolAnswers:
    """The comparisons of one pool, the answers to them, and where their values are added up."""

    traced: Traced
    asking: Asking
    case: Case
    strata: Strata
    comparisons: Sequence[Comparison]
    detail: Any
    """What else the experiment decided about the pool."""
    answers: AnswersByModel
    sums: Sums[Key]

    def group(self) -> dict[tuple[str, str, str], dict[tuple[str, str], Comparison]]:
        """Group the comparisons by policy, schedule and condition, then by question and filler."""
        grouped: dict[tuple[str, str, str], dict[tuple[str, str], Comparison]] = {}
        for comparison in self.comparisons:
            place = (comparison.policy, comparison.schedule, comparison.condition)
            grouped.setdefault(place, {})[comparison.question.id, comparison.filler] = comparison
        return grouped

    def select(
        self, comparisons: Mapping[tuple[str, str], Comparison], fillers: Sequence[str]
    ) -> list[list[Comparison]]:
        """Return for each question its comparisons under some fillers."""
        return [
            [comparisons[question.id, f] for f in fillers if (question.id, f) in comparisons]
            for question in self.case.questions
        ]

    def make_sheet(self, experiment: str, policy: str, schedule: str, **names: str) -> Sheet:
        """Make the sheet of what does not depend on an answer."""
        return Sheet(self.sums, self.strata, Column(experiment, "", policy, schedule, **names))

    def make_sheets(self, experiment: str) -> Iterator[tuple[Sheet, tuple[Filler, ...], Answers]]:
        """Make a sheet for every model, batch and filler, and over all fillers."""
        manner = self.asking.manner
        selections: list[tuple[Filler, ...]] = [(filler,) for filler in manner.fillers]
        if len(selections) > 1:
            selections.append(manner.fillers)
        free_text = any(not q.options and q.gold is not None for q in self.case.questions)
        for (model, batch), answers in self.answers.items():
            for selection in selections:
                column = Column(
                    experiment,
                    "",
                    model=model,
                    judge=self.asking.judge.name if free_text else "",
                    prompt_control=manner.control,
                    filler="+".join(selection),
                    batch=batch,
                )
                yield Sheet(self.sums, self.strata, column), selection, answers


def pair_sides(
    groups: Groups, answers: Answers, first: int = 0, second: int = 1
) -> dict[Comparison, Draws]:
    """Join the answers of two sides; symbols only where options make them comparable."""
    draws: dict[Comparison, Draws] = {}
    for comparison in chain.from_iterable(groups):
        if comparison in answers.symbols:
            symbols, right = answers.symbols[comparison], answers.right[comparison]
            texts = (symbols[first], symbols[second]) if comparison.question.options else ((), ())
            verdicts = (right[first], right[second]) if right else ((), ())
            draws[comparison] = Draws(*texts, *verdicts)
    return draws


def make_profile(groups: Groups, draws: Mapping[Comparison, Draws]) -> dict[str, Values]:
    """Return every coordinate's value for each question, averaged over its fillers."""

    def read(coordinate: Quantity[Draws], comparison: Comparison) -> float | None:
        answers = draws.get(comparison)
        return None if answers is None else coordinate.value(answers)

    return {c.name: average_groups(groups, partial(read, c)) for c in ANSWER_COORDINATES}


def average(values: Sequence[float | None]) -> float | None:
    """Average values; the average of a missing value does not apply."""
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers and len(numbers) == len(values) else None


def average_groups(groups: Groups, read: Read) -> Values:
    """Average a number over the fillers of each question."""
    return [average([read(comparison) for comparison in group]) for group in groups]


def add_groups(groups: Groups, read: Read) -> Values:
    """Add a number up over the fillers of each question; fillers without it are left out."""
    numbers = [[n for c in group if (n := read(c)) is not None] for group in groups]
    return [float(sum(group)) if group else None for group in numbers]


SUPPORT = ("support-changed", "support-preserved", "support-unlabelled", "support-absent")
"""Arms of pairs whose exposed support differs or does not, and of questions without a label.

These three partition the questions, so a question that was read and has no supporting record is
preserved (F.2: 39 + 24 = 63). Last, the preserved pairs that expose no support on either route.
"""


def enter_support(
    sheet: Sheet, groups: Groups, values: Mapping[str, Values], quantities: Sequence[str]
) -> None:
    """Add each quantity for pairs whose exposed support changed and for those where it did not.

    The sheet names the label source. Pairs that expose no support are also reported separately
    (Appendix F.2).
    """
    support = [find_exposed_support(group[0], sheet.column.labels) for group in groups]
    membership = (
        [sides is not None and sides[0] != sides[1] for sides in support],
        [sides is not None and sides[0] == sides[1] for sides in support],
        [sides is None for sides in support],
        [sides is not None and not sides[0] | sides[1] for sides in support],
    )
    for arm, members in zip(SUPPORT, membership, strict=True):
        for name in quantities:
            sheet.put(name, restrict(values[name], members), arm=arm)


def find_exposed_support(
    pair: Comparison, labels: str
) -> tuple[frozenset[str], frozenset[str]] | None:
    """Return the support that each route exposes; None for a question without a label."""
    support = pair.question.labels.get(labels)
    if support is None:
        return None
    forward, route = pair.exposures
    return forward.sources & support, route.sources & support


def enter_unit(
    sheet: Sheet, quantity: str, numbers: Values, holds: Callable[[Sequence[float]], bool]
) -> None:
    """Add whether something holds for a unit, over all its questions and within each mask."""
    for (stratum, mask), places in sheet.strata.places.items():
        values = [value for at in places if (value := numbers[at]) is not None]
        if values and stratum == "all":
            target = sheet.column._replace(quantity=quantity, mask=mask)
            sheet.sums[target, stratum] = (float(holds(values)), len(values))
