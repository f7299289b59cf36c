"""Provenance instructions: does saying how to treat conflicts change the answers? (F.6, E.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from routeprism.answers import Plan as Cost
from routeprism.experiments._answered import Grouped, by_route, enter_fixed_source, paired
from routeprism.experiments._asked import AskedPair, asked_pairs
from routeprism.experiments._asking import Answers, Asking
from routeprism.experiments._collecting import gather, inspect_all, price_of
from routeprism.experiments._contrast_sentences import provenance_sentences
from routeprism.experiments._keepsakes import Keepsakes
from routeprism.experiments._profiles import profile, templates
from routeprism.experiments._rows import Key, estimate_rows
from routeprism.experiments._stages import Asked, Found, Traced
from routeprism.experiments._strata import Values, enter, signed, strata_of
from routeprism.measures import Sums
from routeprism.models import Model
from routeprism.models._inspection import Inspection
from routeprism.prompts import Provenance
from routeprism.records import Case
from routeprism.runs import Stored

__all__ = ["CONTRASTS", "MARGIN", "Provenances"]

MARGIN = 0.02
"""By how much accuracy may be worse and still pass for not worse (Appendix F.6)."""
CONTRASTS: tuple[tuple[Provenance, Provenance], ...] = (
    ("gated", "preserved"),
    ("neutral", "preserved"),
    ("placebo", "preserved"),
    ("gated", "neutral"),
    ("gated", "placebo"),
    ("neutral", "placebo"),
)
"""The paired differences between instructions, first minus second."""


@dataclass(frozen=True, slots=True)
class Provenances:
    """Asks every pair of routes under several instructions, and compares them."""

    asking: Asking
    """Its own instruction is the first arm, whose answers are those of the routes."""
    arms: tuple[Provenance, ...]
    """All instructions."""
    margin: float = MARGIN

    def described(self) -> Mapping[str, object]:
        """Give what makes the results comparable."""
        arms = {"provenance_arms": list(self.arms), "margin": self.margin}
        return {**self.asking.described(), **arms}

    @property
    def models(self) -> Sequence[Model]:
        """Who is asked."""
        return self.asking.models

    def inspect(self, traced: Traced, inspections: Mapping[str, Inspection]) -> None:
        """Look up what recorded models will be asked."""
        inspect_all(traced, self.asking, partial(self._pairs, traced), inspections)

    def price(self, traced: Traced) -> Mapping[str, Cost]:
        """Say for each model what asking would take; the routes have asked the first arm."""
        return price_of(traced, self.asking, partial(self._pairs, traced))

    def perform(self, traced: Traced, asked: Asked | None) -> Found:
        """Collect every arm, and estimate the arms and their contrasts."""
        kept = Keepsakes(traced.setting.interfaces)

        def put(
            case: Case,
            pairs: Sequence[AskedPair],
            answered: Mapping[tuple[str, str], Answers],
            sums: Sums[Key],
        ) -> None:
            self._enter(traced, case, pairs, answered, sums)
            more = [pair for pair in pairs if pair.condition]  # the routes keep the first arm
            kept.add(more, answered, arms=[pair.condition for pair in more])

        make = partial(self._pairs, traced)
        gathered = gather("routes", traced, self.asking, make, put, asked)
        traced.run.keep("answers.provenance", kept.findings())
        rows = estimate_rows(gathered.tally, self.asking.setting(traced.setting))
        unmatched = tuple(
            f"provenance: {number} pairs could not be matched and are in no estimate: {reason}"
            for reason, number in gathered.reasons.items()
        )
        sentences = provenance_sentences(rows, CONTRASTS, self.margin)
        return Found(rows, sentences, (*unmatched, *gathered.notes))

    def _pairs(self, traced: Traced, case: Case, stored: Stored) -> list[AskedPair]:
        own = self.asking.manner
        return [
            pair
            for arm in self.arms
            for pair in asked_pairs(
                case,
                stored,
                traced.policies,
                traced.schedules,
                replace(own, provenance=arm),
                condition="" if arm == own.provenance else arm,
            )
        ]

    def _enter(
        self,
        traced: Traced,
        case: Case,
        pairs: Sequence[AskedPair],
        answered: Mapping[tuple[str, str], Answers],
        sums: Sums[Key],
    ) -> None:
        strata = strata_of(case, traced.masks)
        own = self.asking.manner.provenance
        arms: dict[Provenance, Grouped] = {
            arm: by_route([p for p in pairs if p.condition == ("" if arm == own else arm)])
            for arm in self.arms
        }
        routes = list(arms[own])
        found = {key: paired(pairs, answers) for key, answers in answered.items()}
        for template, fillers, answers in templates("routes", self.asking, case, found):
            for policy, schedule in routes:
                column = template._replace(policy=policy, schedule=schedule)
                taken: dict[Provenance, Mapping[str, Values]] = {}
                for arm, grouped in arms.items():
                    route = grouped[policy, schedule]
                    asked = [[route[q.id, filler] for filler in fillers] for q in case.questions]
                    values = taken[arm] = profile(asked, answers.draws)
                    named = column._replace(arm=arm)
                    for name, numbers in values.items():
                        enter(sums, strata, named._replace(quantity=name), numbers)
                    enter_fixed_source(strata, named, asked, values, sums)
                for one, other in CONTRASTS:
                    if one in taken and other in taken:
                        named = column._replace(arm=f"{one}-{other}")
                        for name in taken[one]:
                            gap = signed([(1, taken[one][name]), (-1, taken[other][name])])
                            enter(sums, strata, named._replace(quantity=f"Gamma.{name}"), gap)
