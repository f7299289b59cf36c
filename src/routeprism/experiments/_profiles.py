"""Profiles: every answer coordinate, question by question, for each model, batch and filler.

Answers are also entered by what happened to the exposed support of a pair (Appendices F.2, I.4).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from routeprism.answers import Comparison
from routeprism.experiments._collection import Answers, Asking, count_unread
from routeprism.experiments._rows import Column
from routeprism.experiments._strata import Sheet, Values, restrict
from routeprism.measures import ANSWER_COORDINATES, Draws
from routeprism.prompts import Filler
from routeprism.records import Case, Question

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


def group_by_condition(
    comparisons: Sequence[Comparison],
) -> dict[tuple[str, str, str], dict[tuple[str, str], Comparison]]:
    """Group the comparisons of a pool by policy, schedule and condition, then as `ByRoute`."""
    grouped: dict[tuple[str, str, str], dict[tuple[str, str], Comparison]] = {}
    for comparison in comparisons:
        place = (comparison.policy, comparison.schedule, comparison.condition)
        grouped.setdefault(place, {})[comparison.question.id, comparison.filler] = comparison
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


SUPPORT = ("support-changed", "support-preserved", "support-unlabelled", "support-absent")
"""Arms of pairs whose exposed support differs or does not, and of questions without a label.

These three partition the questions, so a question that was read and has no supporting record is
preserved (F.2: 39 + 24 = 63). Last, the preserved pairs that expose no support on either route.
"""


STEPS = (
    "pairs",
    "visible_change",
    "support_change",
    "support_loss",
    "answer_change",
    "same_right_answer",
    "same_right_disjoint_support",
)
"""What labelled pairs are counted by, after all that were answered."""


def enter_support(
    sheet: Sheet,
    pairs: Sequence[Sequence[Comparison]],
    values: Mapping[str, Values],
    quantities: Sequence[str],
) -> None:
    """Enter each quantity for pairs whose exposed support changed and for those where it did not.

    The sheet names the label source. Pairs that expose no support are also reported separately.
    """
    support = [_exposed_support(under_fillers[0], sheet.column.labels) for under_fillers in pairs]
    membership = (
        [sides is not None and sides[0] != sides[1] for sides in support],
        [sides is not None and sides[0] == sides[1] for sides in support],
        [sides is None for sides in support],
        [sides is not None and not sides[0] | sides[1] for sides in support],
    )
    for arm, members in zip(SUPPORT, membership, strict=True):
        for name in quantities:
            sheet.put(name, restrict(values[name], members), arm=arm)


def enter_funnel(
    sheet: Sheet, pairs: Sequence[Sequence[Comparison]], draws: Mapping[Comparison, Draws]
) -> None:
    """Count the steps from visible change to answer change, route-and-padding pair by pair (I.4).

    Also how often both routes are right with nothing of their support in common. `count.users.…`
    counts the units that have such a pair.
    """
    sheet = sheet.at(experiment="support")
    steps = [
        [
            _steps(pair, sides, draws[pair])
            for pair in under_fillers
            if sides is not None and pair in draws
        ]
        for under_fillers in pairs
        for sides in [_exposed_support(under_fillers[0], sheet.column.labels)]
    ]
    for name in STEPS:
        numbers: list[float | None] = [
            float(sum(step[name] for step in several)) if several else None for several in steps
        ]
        sheet.put(f"count.{name}", numbers)
        if name != STEPS[0]:
            _enter_users(sheet.at(quantity=f"count.users.{name}"), numbers)


def _steps(
    pair: Comparison, sides: tuple[frozenset[str], frozenset[str]], draws: Draws
) -> dict[str, bool]:
    """Describe how far one pair goes, by its exposed support and its formal answers."""
    forward, route = sides
    visible = pair.exposures[0].sources != pair.exposures[1].sources
    lost = visible and bool(forward) != bool(route)
    answers = bool(draws.forward and draws.route) and draws.forward[0] != draws.route[0]
    right = bool(draws.forward_right) and draws.forward_right[0] and draws.route_right[0]
    disjoint = forward != route and not forward & route
    values = (
        True,
        visible,
        visible and forward != route,
        lost,
        lost and answers,
        right,
        right and disjoint,
    )
    return dict(zip(STEPS, values, strict=True))


def _enter_users(sheet: Sheet, numbers: Values) -> None:
    """Enter whether the unit has any, over all its questions and within each mask."""
    for (stratum, mask), places in sheet.strata.places.items():
        values = [value for at in places if (value := numbers[at]) is not None]
        if values and stratum == "all":
            target = sheet.column._replace(mask=mask)
            sheet.sums[target, stratum] = (float(any(values)), len(values))


def _exposed_support(pair: Comparison, labels: str) -> tuple[frozenset[str], frozenset[str]] | None:
    support = pair.question.labels.get(labels)
    if support is None:
        return None
    forward, route = pair.exposures
    return forward.sources & support, route.sources & support
