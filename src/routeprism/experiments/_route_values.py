"""The values of one pool's answers on pairs of routes, for every column of the estimates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from routeprism.answers import Comparison
from routeprism.experiments._collection import AnswersByModel, Asking
from routeprism.experiments._comparison_stage import CaseComparisons
from routeprism.experiments._contrasts import Contrast
from routeprism.experiments._profiles import (
    REPEATED,
    ByRoute,
    PairAnswers,
    Profile,
    average,
    enter_funnel,
    enter_support,
    group_by_route,
    make_columns,
    make_profile,
    pair_answers,
    select_pairs,
)
from routeprism.experiments._route_comparisons import choose_flip_sample
from routeprism.experiments._rows import Column, Key
from routeprism.experiments._stages import Traced
from routeprism.experiments._strata import (
    DISTINCT,
    Sheet,
    Strata,
    Values,
    distinct_options,
    restrict,
    signed,
    strata_of,
)
from routeprism.measures import (
    ANSWER_COORDINATES,
    OUTDATED_ANSWERS,
    OutdatedAnswers,
    Sums,
    transition,
)
from routeprism.records import Case

MAIN = ("H", "Delta", "D_res", "Delta_rep")
"""Quantities that are also given without one unit, and without duplicate options."""
_SAME_SOURCES = ("H", "Delta", "H_same", "H_cross", "H_within", "D_res", "Delta_rep", "D_correct")
"""Quantities that are also given for pairs that show the same sources in different texts."""
_TRANSITIONS = ("CC", "CI", "IC", "II")

Read = Callable[[Comparison], float | None]
"""Gives a number for one pair; None if it does not apply."""


def enter_answers(
    traced: Traced,
    asking: Asking,
    item: CaseComparisons,
    answers: AnswersByModel,
    sums: Sums[Key],
) -> None:
    """Enter one pool's values for every model, batch and filler, and over the fillers."""
    case = item.case
    strata = strata_of(case, traced.masks)
    grouped = group_by_route(item.comparisons)
    paired = {key: pair_answers(item.comparisons, outcomes) for key, outcomes in answers.items()}
    for template, fillers, outcomes in make_columns("routes", asking, case, paired):
        profiles: dict[tuple[str, str], Profile] = {}
        for (policy, schedule), routes in grouped.items():
            sheet = Sheet(sums, strata, template._replace(policy=policy, schedule=schedule))
            pairs = select_pairs(case, routes, fillers)
            values = profiles[policy, schedule] = make_profile(pairs, outcomes.draws)
            sheet.put_all(values)
            enter_same_sources(sheet, pairs, values)
            _Readings(case, sheet, pairs, outcomes).enter_all(values)
            if traced.labels:
                labelled = sheet.at(labels=traced.labels)
                enter_support(labelled, pairs, values, MAIN)
                enter_funnel(labelled, pairs, outcomes.draws)
        for contrast in traced.contrasts:
            for schedule in dict.fromkeys(name for _, name in profiles):
                _enter_contrast(Sheet(sums, strata, template), contrast, schedule, profiles)
    _enter_batches(case, strata, grouped, asking, paired, sums)


def enter_same_sources(
    sheet: Sheet, pairs: Sequence[Sequence[Comparison]], profile: Profile
) -> None:
    """Enter what the answers do where the sources agree and the text does not (Appendix K.6)."""
    same = [under_fillers[0].same_sources for under_fillers in pairs]
    for name in _SAME_SOURCES:
        sheet.put(name, restrict(profile[name], same), mask="fixed-source")


@dataclass(frozen=True, slots=True)
class _Readings:
    """Enters what else is read from the answers of two routes: counts, subsets and readouts."""

    case: Case
    sheet: Sheet
    pairs: Sequence[Sequence[Comparison]]
    """For each question its pairs, one for each filler."""
    answers: PairAnswers

    def enter_all(self, profile: Profile) -> None:
        """Enter every reading; `profile` has the values of all pairs."""
        for kind in _TRANSITIONS:
            self.sheet.put(f"count.transition.{kind}", self._add_up(self._transition(kind)))
        for at, side in enumerate(("forward", "route")):
            self.sheet.put(f"count.no_answer.{side}", self._add_up(self._count_unread(at)))
        self.sheet.put("count.unmatched", self._add_up(lambda pair: float(not pair.prompts)))
        identical = self._add_up(lambda p: float(p.same_prompt) if p.prompts else None)
        self.sheet.put("count.identical_prompts", identical)
        draws = {pair: draws.fresh() for pair, draws in self.answers.draws.items()}
        fresh = make_profile(self.pairs, draws)
        for name in REPEATED:
            self.sheet.put(name, fresh[name], arm="fresh")
        sample = choose_flip_sample(self.case)
        flips = restrict(profile["H_within"], (q.id in sample for q in self.case.questions))
        self.sheet.put("H_within", flips, mask="flip-sample")
        for name in MAIN:
            self.sheet.put(name, distinct_options(self.case, profile[name]), mask=DISTINCT)
        self._enter_dispatch()
        self._enter_readouts()
        self._enter_outdated()

    def _add_up(self, measure: Read) -> Values:
        """Add a reading up over the fillers of each question."""
        totals: list[float | None] = []
        for under_fillers in self.pairs:
            values = [value for pair in under_fillers if (value := measure(pair)) is not None]
            totals.append(float(sum(values)) if values else None)
        return totals

    def _count_unread(self, side: int) -> Read:
        def measure(pair: Comparison) -> float | None:
            numbers = self.answers.unread.get(pair)
            return None if numbers is None else float(numbers[side])

        return measure

    def _transition(self, kind: str) -> Read:
        def measure(pair: Comparison) -> float | None:
            draws = self.answers.draws.get(pair)
            name = None if draws is None else transition(draws)
            return None if name is None else float(name == kind)

        return measure

    def _measure_first(self, value: bool) -> Read:
        def measure(pair: Comparison) -> float | None:
            first = self.answers.forward_first.get(pair)
            return None if first is None else float(first is value)

        return measure

    def _enter_dispatch(self) -> None:
        """Enter pairs apart by the route that was submitted first (Appendix I.5).

        A question whose fillers begin with different routes has a value on either side.
        """
        first = self.answers.forward_first
        for name, forward_first in (("forward", True), ("route", False)):
            begun = [[p for p in pairs if first.get(p) is forward_first] for pairs in self.pairs]
            values = make_profile(begun, self.answers.draws)
            for quantity in ("H", "Delta"):
                self.sheet.put(quantity, values[quantity], arm=f"{name}-first")
            self.sheet.put(f"count.{name}_first", self._add_up(self._measure_first(forward_first)))

    def _enter_readouts(self) -> None:
        """Count what simpler readouts miss or flag beside full-prompt identity (Appendix M.3)."""
        readouts: Mapping[str, Callable[[Comparison], bool | None]] = {
            "sources": lambda pair: pair.exposures[0].sources != pair.exposures[1].sources,
            "answer": self._answer_changed,
            "correctness": self._correctness_changed,
        }

        def count(changed: Callable[[Comparison], bool | None], prompt_changed: bool) -> Read:
            def measure(pair: Comparison) -> float | None:
                differs = changed(pair)
                if not pair.prompts or differs is None:
                    return None
                wrong = differs is not prompt_changed
                return float(pair.same_prompt is not prompt_changed and wrong)

            return measure

        for name, changed in readouts.items():
            missed, extra = count(changed, True), count(changed, False)
            self.sheet.put(f"miss.{name}", self._add_up(missed), experiment="readouts")
            self.sheet.put(f"extra.{name}", self._add_up(extra), experiment="readouts")
        matches = self._add_up(lambda pair: float(bool(pair.prompts)))
        differ = self._add_up(lambda p: float(not p.same_prompt) if p.prompts else None)
        self.sheet.put("count.pairs", matches, experiment="readouts")
        self.sheet.put("count.changed_prompts", differ, experiment="readouts")

    def _enter_outdated(self) -> None:
        """Enter how often an answer was once right and is outdated (docs/updates.md)."""
        if not any(question.outdated for question in self.case.questions):
            return
        for coordinate in OUTDATED_ANSWERS:
            values = [
                average([coordinate.value(_outdated_answers(p, self.answers)) for p in pairs])
                for pairs in self.pairs
            ]
            self.sheet.put(coordinate.name, values, experiment="updates")

    def _answer_changed(self, pair: Comparison) -> bool | None:
        draws = self.answers.draws.get(pair)
        return None if draws is None or not draws.forward else draws.forward[0] != draws.route[0]

    def _correctness_changed(self, pair: Comparison) -> bool | None:
        draws = self.answers.draws.get(pair)
        if draws is None or not draws.forward_right:
            return None
        return draws.forward_right[0] != draws.route_right[0]


def _outdated_answers(pair: Comparison, answers: PairAnswers) -> OutdatedAnswers:
    """Return the answers of a pair, and those that were once right."""
    forward, route = answers.symbols.get(pair, ((), ()))
    question = pair.question
    matches = filter(question.is_outdated, (*forward, *route))
    return OutdatedAnswers(tuple(forward), tuple(route), frozenset((*question.outdated, *matches)))


def _enter_contrast(
    sheet: Sheet, contrast: Contrast, schedule: str, profiles: Mapping[tuple[str, str], Profile]
) -> None:
    place = {"policy": contrast.policy, "schedule": schedule, "arm": contrast.arm}
    sheet = sheet.at(experiment=contrast.experiment, **place)
    for coordinate in ANSWER_COORDINATES:
        sides = [(sign, profiles[name, schedule][coordinate.name]) for sign, name in contrast.terms]
        sheet.put(f"{contrast.prefix}.{coordinate.name}", signed(sides))


def _enter_batches(
    case: Case,
    strata: Strata,
    grouped: ByRoute,
    asking: Asking,
    answers: Mapping[tuple[str, str], PairAnswers],
    sums: Sums[Key],
) -> None:
    """Compare every later batch with the first, question by question."""
    first, *later = dict.fromkeys(batch for _, batch in answers)
    manner = asking.manner
    for model in dict.fromkeys(name for name, _ in answers):
        for batch in later:
            for (policy, schedule), routes in grouped.items():
                pairs = select_pairs(case, routes, manner.fillers)
                sides = [make_profile(pairs, answers[model, name].draws) for name in (batch, first)]
                column = Column(
                    "replication",
                    "",
                    policy,
                    schedule,
                    arm=f"{batch or 'default'}-{first or 'default'}",
                    model=model,
                    prompt_control=manner.control,
                    filler="+".join(manner.fillers),
                    batch=batch,
                )
                Sheet(sums, strata, column).put_gaps(*sides)
