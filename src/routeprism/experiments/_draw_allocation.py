"""Answers where they differ most: a pilot of every comparison, then the rest by its variance."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from routeprism.answers import AnswerProgress, Comparison
from routeprism.experiments._collection import (
    Answers,
    AnswersByModel,
    Asking,
    collect_answers,
    store_comparisons,
)
from routeprism.experiments._rows import Key
from routeprism.measures import Sums, TwoStages, allocate_draws, pilot_size, shrink_variances
from routeprism.quantities import find_quantity
from routeprism.runs import Run

_LEAST = 2
"""The fewest later draws: a residual needs two."""
_MOST = 10
"""The most draws of a prompt, as a multiple of the planned number."""
_PILOT_ARMS = ("forward-first", "route-first")
"""Pairs apart by the side that was submitted first, which is not the same in both stages."""


@dataclass(frozen=True, slots=True)
class StagedAnswers:
    """The answers of a pilot and the later ones, which are measured apart and then combined."""

    pilot: AnswersByModel
    later: AnswersByModel
    share: float
    """The weight of the pilot, which is fixed beforehand."""

    def enter(self, enter: Callable[[AnswersByModel, Sums[Key]], None]) -> Sums[Key]:
        """Measure both stages, and combine the values."""
        first: Sums[Key] = {}
        second: Sums[Key] = {}
        enter(self._select(self.pilot), first)
        enter(self._select(self.later), second)
        return {key: self._combine(key, entry, second.get(key)) for key, entry in first.items()}

    def _select(self, answers: AnswersByModel) -> AnswersByModel:
        """Leave out comparisons that lack an answer in one of the stages."""
        selected = {}
        for name, entry in answers.items():
            both = self.pilot[name].symbols.keys() & self.later[name].symbols.keys()
            symbols = {c: sides for c, sides in entry.symbols.items() if c in both}
            selected[name] = replace(entry, symbols=symbols)
        return selected

    def _combine(self, key: Key, first: Any, second: Any) -> Any:
        column, _ = key
        # Counts of answers or pairs are those of the pilot, which all questions have.
        alone = find_quantity(column.quantity).is_count or column.arm in _PILOT_ARMS
        if alone or second is None or first[1] != second[1]:
            return first
        total = self.share * first[0] + (1 - self.share) * second[0]
        if len(first) < 3 or len(second) < 3:
            return (total, *first[1:])
        questions, values = first[2]
        both = [
            None if a is None or b is None else self.share * a + (1 - self.share) * b
            for a, b in zip(values, second[2][1], strict=True)
        ]
        return total, first[1], (questions, both)


@dataclass(slots=True)
class AllocationReport:
    """The number of draws of each comparison, over all portions."""

    pilot: int = 0
    planned: int = 0
    draws: Counter[int] = field(default_factory=Counter)
    """Draws of a prompt → comparisons."""
    calls: int = 0
    """Answers that were needed after the pilot, and with it."""
    equal: float = 0.0
    allocated: float = 0.0
    """The variance of draws with equally many draws, and as they were allocated."""

    def describe(self, name: str) -> str:
        """Describe the allocation in words."""
        ratio = self.equal / self.allocated if self.allocated else 1.0
        saved = max(0, round(self.calls * (ratio - 1)))
        return (
            f"{name}: after a pilot of {self.pilot} draws of each prompt, the other answers were "
            f"drawn where answers differ most: {min(self.draws)} to {max(self.draws)} draws a "
            f"prompt. They are as precise as about {self.planned * ratio:.1f} draws of every "
            f"prompt, which saves about {saved:,} calls"
        )


def collect_where_answers_differ(
    comparisons: Sequence[Comparison],
    asking: Asking,
    run: Run,
    progress: AnswerProgress | None,
    pools: Mapping[str, int],
    weights: Mapping[str, float],
    report: AllocationReport,
) -> tuple[StagedAnswers, list[AnswersByModel]]:
    """Collect a pilot of every comparison, and the other answers where they differ most.

    `weights` has the weight of each question. Returns also every collection, to count outcomes.
    """
    planned = asking.manner.draws
    pilot = pilot_size(planned)
    manner = replace(asking.manner, stride=_MOST * planned)

    def collect(group: Sequence[Comparison], draws: int, first: int) -> AnswersByModel:
        staged = replace(asking, manner=replace(manner, draws=draws, first=first))
        return collect_answers(group, staged, run, progress, pools, store=False)

    answers = collect(comparisons, pilot, 0)
    prompted = [comparison for comparison in comparisons if comparison.prompts]
    variances = _list_variances(prompted, answers.values())
    numbers = _allocate(
        prompted, variances, [weights[c.question.id] for c in prompted], planned, pilot
    )
    stages = dict(zip(prompted, numbers, strict=True))
    collections = [answers]
    groups: dict[int, list[Comparison]] = {}
    for comparison in comparisons:
        number = stages[comparison].later if comparison in stages else planned - pilot
        groups.setdefault(number, []).append(comparison)
    for number, group in sorted(groups.items()):
        collections.append(collect(group, number, pilot))
        store_comparisons(group, replace(manner, draws=pilot + number), run)
    for comparison, variance in zip(prompted, variances, strict=True):
        stage = stages[comparison]
        part = weights[comparison.question.id] ** 2 * variance
        report.equal += part / planned
        report.allocated += part / stage.effective
        report.draws[pilot + stage.later] += 1
        report.calls += (pilot + stage.later) * len(comparison.sides) * len(answers)
    report.pilot, report.planned = pilot, planned
    return StagedAnswers(answers, _join(collections[1:]), pilot / planned), collections


def _join(collections: Iterable[AnswersByModel]) -> AnswersByModel:
    """Put the answers of groups of comparisons together."""
    joined: dict[tuple[str, str], Answers] = {}
    for answers in collections:
        for name, entry in answers.items():
            before = joined.get(name)
            joined[name] = (
                entry
                if before is None
                else replace(
                    entry,
                    symbols={**before.symbols, **entry.symbols},
                    right={**before.right, **entry.right},
                    first={**before.first, **entry.first},
                )
            )
    return joined


def _list_variances(comparisons: Sequence[Comparison], answers: Iterable[Answers]) -> list[float]:
    """Estimate the variance of one draw of each comparison, over its sides and all models.

    It is that of being right, where that is known, and that of being the most frequent answer.
    """
    answers = list(answers)
    totals = [0.0] * len(comparisons)
    for count in (_count_right, _count_frequent):
        entries = [
            (place, counts)
            for place, comparison in enumerate(comparisons)
            for outcomes in answers
            for counts in count(comparison, outcomes)
        ]
        shrunk = shrink_variances([counts for _, counts in entries])
        for (place, _), variance in zip(entries, shrunk, strict=True):
            totals[place] += variance / len(answers)
    return totals


def _count_right(comparison: Comparison, answers: Answers) -> list[tuple[int, int]]:
    right = answers.right.get(comparison) or () if comparison in answers.symbols else ()
    return [(sum(side), len(side)) for side in right]


def _count_frequent(comparison: Comparison, answers: Answers) -> list[tuple[int, int]]:
    sides = answers.symbols.get(comparison, ())
    return [(max(Counter(side).values()), len(side)) for side in sides]


def _allocate(
    comparisons: Sequence[Comparison],
    variances: Sequence[float],
    weights: Sequence[float],
    planned: int,
    pilot: int,
) -> list[TwoStages]:
    """Divide the answers that equally many draws of each comparison would take."""
    if not comparisons:
        return []
    sides = [len(comparison.sides) for comparison in comparisons]
    shares = [
        weight * math.sqrt(variance / number)
        for weight, variance, number in zip(weights, variances, sides, strict=True)
    ]

    def price(later: Sequence[int]) -> int:
        return sum(number * draws for number, draws in zip(sides, later, strict=True))

    budget = (planned - pilot) * sum(sides)
    later = allocate_draws(shares, price, budget, least=_LEAST, most=_MOST * planned - pilot)
    return [TwoStages(planned, pilot, number) for number in later]
