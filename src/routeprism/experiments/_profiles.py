"""Profiles: every answer coordinate, question by question, for each model, batch and filler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from routeprism.answers import Comparison
from routeprism.experiments._collection import Answers, Asking, count_unread
from routeprism.experiments._rows import Column
from routeprism.experiments._strata import Values
from routeprism.measures import ANSWER_COORDINATES, Draws
from routeprism.prompts import Filler
from routeprism.records import Case, Question

__all__ = [
    "REPEATED",
    "PairAnswers",
    "Profile",
    "average",
    "group_by_route",
    "make_columns",
    "make_draws",
    "make_profile",
    "pair_answers",
    "select_pairs",
]

REPEATED = ("H_cross", "H_within", "D_res", "D_star", "Delta_rep")
"""Coordinates of repeated answers, which are also given without the first answers (I.2, I.8)."""

Profile = Mapping[str, Values]
"""For each coordinate its values, question by question."""
ByRoute = dict[tuple[str, str], dict[tuple[str, str], Comparison]]
"""Comparisons by (policy, schedule), then by (question, filler)."""
AnswerType = TypeVar("AnswerType")


@dataclass(frozen=True, slots=True)
class PairAnswers:
    """One model's answers to pairs of routes."""

    draws: Mapping[Comparison, Draws]
    forward_first: Mapping[Comparison, bool]
    """Whether the forward prompt was submitted first, where that is known."""
    unread: Mapping[Comparison, tuple[int, ...]] = field(default_factory=dict)
    """For each side how many of its draws were refused or unparsable."""
    symbols: Mapping[Comparison, Sequence[Sequence[str]]] = field(default_factory=dict)
    """For each side its draws: letters of options, or texts."""


def pair_answers(pairs: Sequence[Comparison], answers: Answers) -> PairAnswers:
    """Join the answers of the two routes of each pair."""
    draws = {
        pair: make_draws(pair.question, answers.symbols[pair], answers.right[pair])
        for pair in pairs
        if pair in answers.symbols
    }
    first = {pair: answers.first[pair] == 0 for pair in draws if pair in answers.first}
    unread = {pair: tuple(map(count_unread, answers.symbols[pair])) for pair in draws}
    symbols = {pair: answers.symbols[pair] for pair in draws}
    return PairAnswers(draws, first, unread, symbols)


def make_draws(
    question: Question, symbols: Sequence[Sequence[str]], verdicts: Sequence[Sequence[bool]]
) -> Draws:
    """Join the answers of two sides: symbols only where options make them comparable."""
    forward, route = symbols if question.options else ((), ())
    forward_right, route_right = verdicts or ((), ())
    return Draws(tuple(forward), tuple(route), tuple(forward_right), tuple(route_right))


def group_by_route(pairs: Sequence[Comparison]) -> ByRoute:
    """Group the pairs of a pool by the routes that they compare."""
    grouped: ByRoute = {}
    for pair in pairs:
        routes = grouped.setdefault((pair.policy, pair.schedule), {})
        routes[pair.question.id, pair.filler] = pair
    return grouped


def select_pairs(
    case: Case, pairs: Mapping[tuple[str, str], Comparison], fillers: Sequence[str]
) -> list[list[Comparison]]:
    """Return for each question of a case its pairs under these fillers."""
    return [[pairs[question.id, filler] for filler in fillers] for question in case.questions]


def make_columns(
    experiment: str, asking: Asking, case: Case, answers: Mapping[tuple[str, str], AnswerType]
) -> Iterator[tuple[Column, tuple[Filler, ...], AnswerType]]:
    """Make a column for every model, batch and filler, and over all fillers."""
    fillers = asking.manner.fillers
    selections: list[tuple[Filler, ...]] = [(filler,) for filler in fillers]
    if len(selections) > 1:
        selections.append(fillers)
    free_text = any(not q.options and q.gold is not None for q in case.questions)
    for (model, batch), outcomes in answers.items():
        for selection in selections:
            column = Column(
                experiment,
                "",
                model=model,
                judge=asking.judge.name if free_text else "",
                prompt_control=asking.manner.control,
                filler="+".join(selection),
                batch=batch,
            )
            yield column, selection, outcomes


def make_profile(
    pairs: Sequence[Sequence[Comparison]], draws: Mapping[Comparison, Draws]
) -> dict[str, Values]:
    """Return every coordinate's value for each question, averaged over its fillers."""
    profile: dict[str, Values] = {}
    for coordinate in ANSWER_COORDINATES:
        values: list[float | None] = []
        for under_fillers in pairs:
            profiles = (draws.get(pair) for pair in under_fillers)
            values.append(average([None if d is None else coordinate.value(d) for d in profiles]))
        profile[coordinate.name] = values
    return profile


def average(values: Sequence[float | None]) -> float | None:
    """Average values; the average of a missing value does not apply."""
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers and len(numbers) == len(values) else None
