"""The answer boundary of an audit: ask every pair of routes, and estimate what the answers do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from routeprism.answers import Plan as Cost
from routeprism.experiments._answered import MAIN, PairAnswers, enter_answers
from routeprism.experiments._asked import AskedPair, asked_pairs, draws_of
from routeprism.experiments._asking import (
    MANY,
    Answers,
    Asking,
    answers_to,
    cost_of,
    count_outcomes,
    outcome_notes,
)
from routeprism.experiments._rows import Key, Setting, difference_row, estimate_rows
from routeprism.experiments._sentences import answer_sentences
from routeprism.experiments._stages import Asked, Found, Traced
from routeprism.measures import Sums, Tally
from routeprism.records import Case
from routeprism.runs import EstimateRow, Stored

__all__ = ["AskRoutes"]


@dataclass(frozen=True, slots=True)
class AskRoutes:
    """Asks every question on both routes of every pair."""

    asking: Asking

    def described(self) -> Mapping[str, object]:
        """Give what makes the answers comparable."""
        return self.asking.described()

    def price(self, traced: Traced) -> Mapping[str, Cost]:
        """Say for each model what asking would take."""
        totals: dict[str, Cost] = {}
        with Stored(traced.run.directory) as stored, traced.run.ledger() as ledger:
            for cases in self._portions(traced, stored):
                pairs = [pair for _, pairs in cases for pair in pairs]
                totals = cost_of(pairs, self.asking, ledger, totals)
        return totals

    def perform(self, traced: Traced, asked: Asked | None) -> Found:
        """Collect what is missing, pool by pool, and turn all answers into rows."""
        asking = self.asking
        tally: Tally[Key] = Tally(traced.benchmark.weighting)
        reasons: Counter[str] = Counter()
        outcomes: Counter[tuple[str, str]] = Counter()
        duplicates = False
        with Stored(traced.run.directory) as stored:
            for cases in self._portions(traced, stored):
                everything = [pair for _, pairs in cases for pair in pairs]
                duplicates |= any(pair.question.duplicate_options for pair in everything)
                reasons.update(pair.reason for pair in everything if pair.prompts is None)
                answered = answers_to(everything, asking, traced.run, asked)
                count_outcomes(outcomes, answered)
                found = {key: _paired(everything, one) for key, one in answered.items()}
                for case, pairs in cases:
                    unit: Sums[Key] = {}
                    enter_answers(case, pairs, traced, asking, found, unit)
                    tally.append(unit)
        setting = asking.setting(traced.setting)
        rows = [
            row
            for row in estimate_rows(tally, setting, left_out=MAIN)
            if duplicates or row.mask != "distinct-options"  # else it repeats the plain rows
        ]
        rows += _difference_rows(tally, setting)
        unmatched = tuple(
            f"{number} pairs could not be matched and are in no matched estimate: {reason}"
            for reason, number in reasons.items()
        )
        return Found(rows, answer_sentences(rows), (*unmatched, *outcome_notes(outcomes)))

    def _portions(
        self, traced: Traced, stored: Stored
    ) -> Iterator[list[tuple[Case, list[AskedPair]]]]:
        """Make prompts ready for some cases at a time."""
        portion: list[tuple[Case, list[AskedPair]]] = []
        ready = 0
        manner = self.asking.manner
        for case in traced.benchmark.cases:
            if case.questions:
                made = asked_pairs(case, stored, traced.policies, traced.schedules, manner)
                pairs = list(made)
                portion.append((case, pairs))
                ready += 2 * manner.draws * len(pairs)
            if ready >= MANY:
                yield portion
                portion, ready = [], 0
        if portion:
            yield portion


def _paired(pairs: list[AskedPair], answers: Answers) -> PairAnswers:
    draws = {
        pair: draws_of(pair, answers.said[pair], answers.right[pair])
        for pair in pairs
        if pair in answers.said
    }
    return PairAnswers(draws, {pair: answers.first[pair] == 0 for pair in draws})


def _difference_rows(tally: Tally[Key], setting: Setting) -> list[EstimateRow]:
    """Compare groups of questions within units: by dispatch order, and by change of support."""
    rows = []
    for one, other, prefix in (
        ("forward-first", "route-first", "dispatch"),
        ("support-changed", "support-preserved", "changed-preserved"),
    ):
        for column, stratum in tally.keys():  # noqa: SIM118 (a method of its own)
            if column.arm == one and stratum == "all":
                groups = ((column, stratum), (column._replace(arm=other), stratum))
                named = column._replace(quantity=f"{prefix}.{column.quantity}", arm="")
                row = difference_row(tally, setting, named, stratum, groups)
                if row is not None:
                    rows.append(row)
    return rows
