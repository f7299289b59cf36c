"""State reuse: one state per user and route, asked questions it was not built for (D.9, D.10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from routeprism.answers import Plan as Cost
from routeprism.experiments._answered import MAIN, by_route, paired
from routeprism.experiments._asked import AskedPair, asked_pairs
from routeprism.experiments._asking import Answers, Asking
from routeprism.experiments._collecting import gather, inspect_all, price_of
from routeprism.experiments._contrast_sentences import reuse_sentences
from routeprism.experiments._localised import enter_support
from routeprism.experiments._profiles import profile, templates
from routeprism.experiments._rows import Column, Key, difference_rows, estimate_rows
from routeprism.experiments._stages import Asked, Found, Traced
from routeprism.experiments._strata import Values, enter, strata_of
from routeprism.measures import Sums, jaccard
from routeprism.models import Model
from routeprism.models._inspection import Inspection
from routeprism.records import Case
from routeprism.runs import Finding, Stored

__all__ = ["GROUPS", "Reuse", "targets_of"]

_BY_SUPPORT = (*MAIN, "H_cross", "H_within")
GROUPS = (
    ("changed-preserved", "support-changed", "support-preserved"),
    ("changed-absent", "support-changed", "support-absent"),
)


def anchor_of(case: Case) -> str:
    """Name the question for which the state is built: the one with the smallest id."""
    return min((question.id for question in case.questions), default="")


def targets_of(case: Case) -> Case:
    """Leave the anchor out."""
    anchor = anchor_of(case)
    return replace(case, questions=tuple(q for q in case.questions if q.id != anchor))


@dataclass(frozen=True, slots=True)
class Reuse:
    """Asks the state that was built for a user's anchor all other questions of that user.

    A state is built once for each route and sees no question, so these are prompts of the routes.
    """

    asking: Asking

    def described(self) -> Mapping[str, object]:
        """Give what makes the results comparable."""
        return {**self.asking.described(), "reuse": True}

    @property
    def models(self) -> Sequence[Model]:
        """Who is asked."""
        return self.asking.models

    def inspect(self, traced: Traced, inspections: Mapping[str, Inspection]) -> None:
        """Look up what recorded models will be asked."""
        inspect_all(traced, self.asking, partial(self._pairs, traced), inspections)

    def price(self, traced: Traced) -> Mapping[str, Cost]:
        """Say for each model what asking would take; the routes have asked all of it."""
        return price_of(traced, self.asking, partial(self._pairs, traced))

    def perform(self, traced: Traced, asked: Asked | None) -> Found:
        """Estimate over the targets, by what happened to their support."""
        single = 0
        anchors: list[Finding] = []

        def put(
            case: Case,
            pairs: Sequence[AskedPair],
            answered: Mapping[tuple[str, str], Answers],
            sums: Sums[Key],
        ) -> None:
            nonlocal single
            targets = targets_of(case)
            single += not targets.questions
            if targets.questions:
                # Its answers are those that the routes keep.
                anchors.append(Finding(name="anchor", value=anchor_of(case), user=case.pool.user))
                self._enter(targets, pairs, traced, answered, sums)

        gathered = gather("reuse", traced, self.asking, partial(self._pairs, traced), put, asked)
        traced.run.keep("answers.reuse", anchors)
        setting = self.asking.setting(traced.setting)
        rows = estimate_rows(gathered.tally, setting)
        rows += difference_rows(gathered.tally, setting, GROUPS)
        alone = (
            f"one {traced.benchmark.unit} has"
            if single == 1
            else f"{single} {traced.benchmark.unit}s have"
        )
        notes = (f"reuse: {alone} one question, and so no target",) if single else ()
        return Found(rows, reuse_sentences(rows), notes)

    def _pairs(self, traced: Traced, case: Case, stored: Stored) -> list[AskedPair]:
        routes = traced.policies, traced.schedules
        return list(asked_pairs(targets_of(case), stored, *routes, self.asking.manner))

    def _enter(
        self,
        targets: Case,
        pairs: Sequence[AskedPair],
        traced: Traced,
        answered: Mapping[tuple[str, str], Answers],
        sums: Sums[Key],
    ) -> None:
        strata = strata_of(targets, traced.masks)
        grouped = by_route(pairs)
        first = self.asking.manner.fillers[0]
        for (policy, schedule), routes in grouped.items():
            column = Column("reuse", "", policy, schedule)
            shown = [routes[q.id, first].shown for q in targets.questions]
            exposed: dict[str, Values] = {
                "J": [jaccard(one.sources, other.sources) for one, other in shown],
                "V_changed": [float(one.sources != other.sources) for one, other in shown],
                "C_changed": [
                    float(one.context_sha256 != other.context_sha256) for one, other in shown
                ],
            }
            for name, numbers in exposed.items():
                enter(sums, strata, column._replace(quantity=name), numbers)
            several = column._replace(quantity="count.several_targets")
            sums[several, "all"] = (float(len(shown) > 1), len(shown))
        found = {key: paired(pairs, answers) for key, answers in answered.items()}
        for template, fillers, answers in templates("reuse", self.asking, targets, found):
            for (policy, schedule), routes in grouped.items():
                column = template._replace(policy=policy, schedule=schedule)
                asked = [[routes[q.id, filler] for filler in fillers] for q in targets.questions]
                values = profile(asked, answers.draws)
                for name, numbers in values.items():
                    enter(sums, strata, column._replace(quantity=name), numbers)
                if traced.labels:
                    labelled = column._replace(labels=traced.labels)
                    enter_support(strata, labelled, asked, values, _BY_SUPPORT, sums)
