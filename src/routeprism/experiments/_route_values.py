"""The values of one pool's answers on pairs of routes, for every column of the estimates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from routeprism.answers import Comparison
from routeprism.experiments._collection import Answers, count_unread
from routeprism.experiments._profiles import (
    REPEATED,
    Groups,
    PoolAnswers,
    Profile,
    Read,
    add_groups,
    average_groups,
    enter_support,
    enter_unit,
    find_exposed_support,
    make_profile,
    pair_sides,
)
from routeprism.experiments._route_comparisons import choose_flip_sample
from routeprism.experiments._strata import DISTINCT, Sheet, distinct_options, restrict, signed
from routeprism.experiments.mechanism import Contrast
from routeprism.measures import (
    ANSWER_COORDINATES,
    OUTDATED_ANSWERS,
    Draws,
    OutdatedAnswers,
    transition,
)
from routeprism.quantities import Quantity
from routeprism.records import Case

MAIN = ("H", "Delta", "D_res", "Delta_rep")
"""Quantities that are also given without one unit, and without duplicate options."""
_SAME_SOURCES = ("H", "Delta", "H_same", "H_cross", "H_within", "D_res", "Delta_rep", "D_correct")
"""Quantities that are also given for pairs that show the same sources in different texts."""
_TRANSITIONS = ("CC", "CI", "IC", "II")
_FIRST_ANSWERS = {c.name: c.value for c in ANSWER_COORDINATES if c.name in ("H", "Delta")}
_STEPS = (
    "pairs",
    "visible_change",
    "support_change",
    "support_loss",
    "answer_change",
    "same_right_answer",
    "same_right_disjoint_support",
)
"""What labelled pairs are counted by, after all that were answered."""


def enter_answers(pool: PoolAnswers) -> None:
    """Add one pool's values for every model, batch and filler, and over the fillers."""
    grouped = pool.group()
    labels = pool.traced.labels
    for template, fillers, answers in pool.make_sheets("routes"):
        profiles: dict[tuple[str, str], Profile] = {}
        for (policy, schedule, _), comparisons in grouped.items():
            sheet = template.at(policy=policy, schedule=schedule)
            pairs = pool.select(comparisons, fillers)
            draws = pair_sides(pairs, answers)
            profile = profiles[policy, schedule] = make_profile(pairs, draws)
            sheet.put_all(profile)
            enter_same_sources(sheet, pairs, profile)
            _Readings(pool.case, sheet, pairs, answers, draws).enter_all(profile)
            if labels:
                labelled = sheet.at(labels=labels)
                enter_support(labelled, pairs, profile, MAIN)
                _enter_funnel(labelled, pairs, draws)
        for contrast in pool.traced.contrasts:
            for schedule in dict.fromkeys(name for _, name in profiles):
                _enter_contrast(template, contrast, schedule, profiles)
    _enter_batches(pool)


def enter_same_sources(sheet: Sheet, pairs: Groups, profile: Profile) -> None:
    """Add what the answers do where the sources agree and the text does not (Appendix K.6)."""
    same = [under_fillers[0].same_sources for under_fillers in pairs]
    for name in _SAME_SOURCES:
        sheet.put(name, restrict(profile[name], same), mask="fixed-source")


@dataclass(frozen=True, slots=True)
class _Readings:
    """Adds what else is read from the answers of two routes: counts, subsets and readouts."""

    case: Case
    sheet: Sheet
    pairs: Groups
    answers: Answers
    draws: Mapping[Comparison, Draws]

    def enter_all(self, profile: Profile) -> None:
        """Add every reading; `profile` has the values of all pairs."""
        for kind in _TRANSITIONS:
            self._count(f"count.transition.{kind}", partial(self._is_transition, kind))
        for at, side in enumerate(("forward", "route")):
            self._count(f"count.no_answer.{side}", partial(self._count_unread, at))
        self._count("count.unmatched", lambda pair: float(not pair.prompts))
        self._count(
            "count.identical_prompts", lambda p: float(p.same_prompt) if p.prompts else None
        )
        fresh = {pair: draws.fresh() for pair, draws in self.draws.items()}
        repeated = make_profile(self.pairs, fresh)
        self.sheet.at(arm="fresh").put_all({name: repeated[name] for name in REPEATED})
        sample = choose_flip_sample(self.case)
        flips = restrict(profile["H_within"], (q.id in sample for q in self.case.questions))
        self.sheet.put("H_within", flips, mask="flip-sample")
        for name in MAIN:
            self.sheet.put(name, distinct_options(self.case, profile[name]), mask=DISTINCT)
        self._enter_dispatch()
        self._enter_readouts()
        self._enter_outdated()

    def _count(self, quantity: str, read: Read, **names: str) -> None:
        self.sheet.put(quantity, add_groups(self.pairs, read), **names)

    def _count_unread(self, side: int, pair: Comparison) -> float | None:
        return float(count_unread(self.answers.symbols[pair][side])) if pair in self.draws else None

    def _is_transition(self, kind: str, pair: Comparison) -> float | None:
        name = transition(self.draws[pair]) if pair in self.draws else None
        return None if name is None else float(name == kind)

    def _is_first(self, side: int, pair: Comparison) -> float | None:
        """Return whether a route was submitted first, where that is known."""
        first = self.answers.first.get(pair) if pair in self.draws else None
        return None if first is None else float(first == side)

    def _enter_dispatch(self) -> None:
        """Add pairs apart by the route that was submitted first (Appendix I.5).

        A question whose fillers begin with different routes has a value on either side.
        """
        for at, name in enumerate(("forward", "route")):
            is_first = partial(self._is_first, at)
            values = make_profile(
                [list(filter(is_first, pairs)) for pairs in self.pairs], self.draws
            )
            for quantity in ("H", "Delta"):
                self.sheet.put(quantity, values[quantity], arm=f"{name}-first")
            self._count(f"count.{name}_first", is_first)

    def _enter_readouts(self) -> None:
        """Count what simpler readouts miss or flag beside full-prompt identity (Appendix M.3)."""
        readouts: Mapping[str, Read] = {
            "sources": lambda pair: pair.exposures[0].sources != pair.exposures[1].sources,
            "answer": partial(self._read_first_answers, "H"),
            "correctness": partial(self._read_first_answers, "Delta"),
        }

        def is_wrong(changed: Read, prompt_changed: bool, pair: Comparison) -> float | None:
            change = changed(pair)
            if not pair.prompts or change is None:
                return None
            applies = pair.same_prompt is not prompt_changed
            return float(applies and bool(change) is not prompt_changed)

        for name, changed in readouts.items():
            self._count(f"miss.{name}", partial(is_wrong, changed, True), experiment="readouts")
            self._count(f"extra.{name}", partial(is_wrong, changed, False), experiment="readouts")
        self._count("count.pairs", lambda pair: float(bool(pair.prompts)), experiment="readouts")
        self._count(
            "count.changed_prompts",
            lambda pair: float(not pair.same_prompt) if pair.prompts else None,
            experiment="readouts",
        )

    def _read_first_answers(self, coordinate: str, pair: Comparison) -> float | None:
        return _FIRST_ANSWERS[coordinate](self.draws[pair]) if pair in self.draws else None

    def _enter_outdated(self) -> None:
        """Add how often an answer was once right and is outdated (docs/updates.md)."""
        if any(question.outdated for question in self.case.questions):
            for coordinate in OUTDATED_ANSWERS:
                values = average_groups(self.pairs, partial(self._read_outdated, coordinate))
                self.sheet.put(coordinate.name, values, experiment="updates")

    def _read_outdated(
        self, coordinate: Quantity[OutdatedAnswers], pair: Comparison
    ) -> float | None:
        forward, route = self.answers.symbols.get(pair, ((), ()))
        question = pair.question
        once_right = frozenset((*question.outdated, *filter(question.is_outdated, forward + route)))
        return coordinate.value(OutdatedAnswers(forward, route, once_right))


def _enter_funnel(sheet: Sheet, pairs: Groups, draws: Mapping[Comparison, Draws]) -> None:
    """Count the steps from visible change to answer change, route-and-padding pair by pair (I.4).

    Also how often both routes are right with nothing of their support in common. `count.users.…`
    counts the units that have such a pair.
    """
    sheet = sheet.at(experiment="support")

    def has_step(step: int, pair: Comparison) -> float | None:
        sides = find_exposed_support(pair, sheet.column.labels)
        if sides is None or pair not in draws:
            return None
        return _list_steps(pair, sides, draws[pair])[step]

    for at, name in enumerate(_STEPS):
        numbers = add_groups(pairs, partial(has_step, at))
        sheet.put(f"count.{name}", numbers)
        if at:
            enter_unit(sheet, f"count.users.{name}", numbers, any)


def _list_steps(
    pair: Comparison, sides: tuple[frozenset[str], frozenset[str]], draws: Draws
) -> tuple[bool, ...]:
    """Describe how far one pair goes, by its exposed support and its formal answers."""
    forward, route = sides
    visible = pair.exposures[0].sources != pair.exposures[1].sources
    lost = visible and bool(forward) != bool(route)
    right = bool(draws.forward_right) and draws.forward_right[0] and draws.route_right[0]
    disjoint = forward != route and not forward & route
    return (
        True,
        visible,
        visible and forward != route,
        lost,
        lost and bool(_FIRST_ANSWERS["H"](draws)),
        right,
        right and disjoint,
    )


def _enter_contrast(
    template: Sheet, contrast: Contrast, schedule: str, profiles: Mapping[tuple[str, str], Profile]
) -> None:
    place = {"policy": contrast.policy, "schedule": schedule, "arm": contrast.arm}
    sheet = template.at(experiment=contrast.experiment, **place)
    for coordinate in ANSWER_COORDINATES:
        sides = [(sign, profiles[name, schedule][coordinate.name]) for sign, name in contrast.terms]
        sheet.put(f"{contrast.prefix}.{coordinate.name}", signed(sides))


def _enter_batches(pool: PoolAnswers) -> None:
    """Compare every later batch with the first, question by question."""
    first, *later = dict.fromkeys(batch for _, batch in pool.answers)
    manner = pool.asking.manner
    for model in dict.fromkeys(name for name, _ in pool.answers):
        for batch in later:
            for (policy, schedule, _), comparisons in pool.group().items():
                pairs = pool.select(comparisons, manner.fillers)
                sheet = pool.make_sheet(
                    "replication",
                    policy,
                    schedule,
                    arm=f"{batch or 'default'}-{first or 'default'}",
                    model=model,
                    prompt_control=manner.control,
                    filler="+".join(manner.fillers),
                    batch=batch,
                )
                answers = (pool.answers[model, name] for name in (batch, first))
                sheet.put_gaps(*(make_profile(pairs, pair_sides(pairs, each)) for each in answers))
