"""The answer boundary of an audit: ask every pair of routes, and estimate what the answers do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from routeprism.answers import Plan as Cost
from routeprism.experiments._answered import MAIN, enter_answers, paired
from routeprism.experiments._asked import AskedPair, asked_pairs
from routeprism.experiments._asking import Answers, Asking
from routeprism.experiments._collecting import gather, inspect_all, price_of
from routeprism.experiments._contrast_sentences import fixed_source_sentences
from routeprism.experiments._keepsakes import Keepsakes
from routeprism.experiments._rows import Key, difference_rows, estimate_rows
from routeprism.experiments._sentences import answer_sentences
from routeprism.experiments._stages import Asked, Found, Traced
from routeprism.measures import Sums
from routeprism.models import Model
from routeprism.models._inspection import Inspection
from routeprism.records import Case
from routeprism.runs import Stored

__all__ = ["GROUPS", "AskRoutes"]


GROUPS = (
    ("dispatch", "forward-first", "route-first"),
    ("changed-preserved", "support-changed", "support-preserved"),
)
"""Groups of questions that are compared within units: by dispatch order, by change of support."""


@dataclass(frozen=True, slots=True)
class AskRoutes:
    """Asks every question on both routes of every pair."""

    asking: Asking

    def described(self) -> Mapping[str, object]:
        """Give what makes the answers comparable."""
        return self.asking.described()

    @property
    def models(self) -> Sequence[Model]:
        """Who is asked."""
        return self.asking.models

    def inspect(self, traced: Traced, inspections: Mapping[str, Inspection]) -> None:
        """Look up what recorded models will be asked."""
        inspect_all(traced, self.asking, partial(self._pairs, traced), inspections)

    def price(self, traced: Traced) -> Mapping[str, Cost]:
        """Say for each model what asking would take."""
        return price_of(traced, self.asking, partial(self._pairs, traced))

    def perform(self, traced: Traced, asked: Asked | None) -> Found:
        """Collect what is missing, pool by pool, and turn all answers into rows."""
        duplicates = False
        kept = Keepsakes(traced.setting.interfaces)

        def enter(
            case: Case,
            pairs: Sequence[AskedPair],
            answered: Mapping[tuple[str, str], Answers],
            sums: Sums[Key],
        ) -> None:
            nonlocal duplicates
            duplicates |= any(question.duplicate_options for question in case.questions)
            found = {key: paired(pairs, one) for key, one in answered.items()}
            enter_answers(case, pairs, traced, self.asking, found, sums)
            kept.add(pairs, answered)

        make = partial(self._pairs, traced)
        gathered = gather("routes", traced, self.asking, make, enter, asked)
        traced.run.keep("answers.routes", kept.findings())
        setting = self.asking.setting(traced.setting)
        rows = [
            row
            for row in estimate_rows(gathered.tally, setting, left_out=MAIN)
            if duplicates or row.mask != "distinct-options"  # else it repeats the plain rows
        ]
        rows += difference_rows(gathered.tally, setting, GROUPS)
        unmatched = tuple(
            f"{number} pairs could not be matched and are in no matched estimate: {reason}"
            for reason, number in gathered.reasons.items()
        )
        sentences = (*answer_sentences(rows), *fixed_source_sentences(rows))
        return Found(rows, sentences, (*unmatched, *gathered.notes))

    def _pairs(self, traced: Traced, case: Case, stored: Stored) -> list[AskedPair]:
        routes = traced.policies, traced.schedules
        return list(asked_pairs(case, stored, *routes, self.asking.manner))
