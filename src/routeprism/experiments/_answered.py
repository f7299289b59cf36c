"""What the answers to one pool's questions are worth: values for every column, entered per unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from routeprism.experiments._asked import AskedPair, Manner, draws_of, in_flip_sample
from routeprism.experiments._asking import Answers, Asking
from routeprism.experiments._localised import enter_funnel, enter_support
from routeprism.experiments._plans import Contrast
from routeprism.experiments._profiles import profile, templates
from routeprism.experiments._rows import Column, Key
from routeprism.experiments._stages import Traced
from routeprism.experiments._strata import Strata, Values, enter, signed, strata_of
from routeprism.measures import ANSWER_COORDINATES, Draws, Sums, transition
from routeprism.records import Case

__all__ = ["MAIN", "PairAnswers", "by_route", "enter_answers", "enter_fixed_source", "paired"]

MAIN = ("H", "Delta", "D_res", "Delta_rep")
"""What is also given without one unit, and without questions that have duplicate options."""
FIXED_SOURCE = ("H", "Delta", "H_cross", "H_within", "D_res", "Delta_rep", "D_correct")
"""What is also given for the pairs that show the same sources in another text."""
_TRANSITIONS = ("CC", "CI", "IC", "II")


@dataclass(frozen=True, slots=True)
class PairAnswers:
    """One model's answers to pairs of routes."""

    draws: Mapping[AskedPair, Draws]
    forward_first: Mapping[AskedPair, bool]
    """Whether the forward prompt was submitted before the other, where that is known."""


def paired(pairs: Sequence[AskedPair], answers: Answers) -> PairAnswers:
    """Put the answers to pairs of routes together."""
    draws = {
        pair: draws_of(pair.question, answers.said[pair], answers.right[pair])
        for pair in pairs
        if pair in answers.said
    }
    first = {pair: answers.first[pair] == 0 for pair in draws if pair in answers.first}
    return PairAnswers(draws, first)


def enter_answers(
    case: Case,
    pairs: Sequence[AskedPair],
    traced: Traced,
    asking: Asking,
    found: Mapping[tuple[str, str], PairAnswers],
    sums: Sums[Key],
) -> None:
    """Enter one pool's values for every model, batch and filler, and over the fillers."""
    strata = strata_of(case, traced.masks)
    grouped = by_route(pairs)
    for template, used, answers in templates("routes", asking, case, found):
        taken: dict[tuple[str, str], dict[str, Values]] = {}
        for (policy, schedule), routes in grouped.items():
            column = template._replace(policy=policy, schedule=schedule)
            asked = [[routes[q.id, filler] for filler in used] for q in case.questions]
            values = profile(asked, answers.draws)
            taken[policy, schedule] = values
            for name, column_values in values.items():
                enter(sums, strata, column._replace(quantity=name), column_values)
            enter_fixed_source(strata, column, asked, values, sums)
            _enter_parts(case, strata, column, asked, answers, values, sums)
            if traced.labels:
                labelled = column._replace(labels=traced.labels)
                enter_support(strata, labelled, asked, values, MAIN, sums)
                enter_funnel(strata, labelled, asked, answers.draws, sums)
        for contrast in traced.contrasts:
            for schedule in dict.fromkeys(name for _, name in taken):
                _enter_contrast(strata, template, contrast, schedule, taken, sums)
    _enter_batches(case, strata, grouped, asking.manner, found, sums)


Grouped = dict[tuple[str, str], dict[tuple[str, str], AskedPair]]
"""(policy, schedule) → (question, filler) → its pair."""


def by_route(pairs: Sequence[AskedPair]) -> Grouped:
    """Sort the pairs of a pool by the routes that they compare."""
    grouped: Grouped = {}
    for pair in pairs:
        routes = grouped.setdefault((pair.policy, pair.schedule), {})
        routes[pair.question.id, pair.filler] = pair
    return grouped


def enter_fixed_source(
    strata: Strata,
    column: Column,
    asked: Sequence[Sequence[AskedPair]],
    values: Mapping[str, Values],
    sums: Sums[Key],
) -> None:
    """Enter what the answers do where the sources agree and the text does not (Appendix K.6)."""
    fixed = [pairs[0].fixed_source for pairs in asked]
    for name in FIXED_SOURCE:
        kept = [v if same else None for same, v in zip(fixed, values[name], strict=True)]
        enter(sums, strata, column._replace(quantity=name, mask="fixed-source"), kept)


def _enter_parts(
    case: Case,
    strata: Strata,
    column: Column,
    asked: Sequence[Sequence[AskedPair]],
    answers: PairAnswers,
    values: Mapping[str, Values],
    sums: Sums[Key],
) -> None:
    """Enter what is read off the same answers: counts, subsets and simpler readouts."""

    def put(quantity: str, numbers: Values, **names: str) -> None:
        enter(sums, strata, column._replace(quantity=quantity, **names), numbers)

    def over(read: Callable[[AskedPair], float | None]) -> Values:
        """Add a reading up over the fillers of each question."""
        totals: list[float | None] = []
        for pairs in asked:
            known = [value for pair in pairs if (value := read(pair)) is not None]
            totals.append(float(sum(known)) if known else None)
        return totals

    for kind in _TRANSITIONS:
        put(f"count.transition.{kind}", over(_transition_reader(kind, answers)))
    put("count.unmatched", over(lambda pair: float(pair.prompts is None)))
    put(
        "count.identical_prompts",
        over(lambda pair: float(pair.same_prompt) if pair.prompts else None),
    )
    fresh = profile(asked, {pair: draws.fresh() for pair, draws in answers.draws.items()})
    for name in ("H_cross", "H_within", "D_res", "D_star", "Delta_rep"):
        put(name, fresh[name], arm="fresh")
    chosen = in_flip_sample(case)
    flips = zip(case.questions, values["H_within"], strict=True)
    put("H_within", [v if q.id in chosen else None for q, v in flips], mask="flip-sample")
    for name in MAIN:
        kept = zip(case.questions, values[name], strict=True)
        distinct = [None if q.duplicate_options else value for q, value in kept]
        put(name, distinct, mask="distinct-options")
    for arm, wanted in (("forward-first", True), ("route-first", False)):
        for name in ("H", "Delta"):
            chosen_values = [
                value if answers.forward_first.get(pairs[0]) is wanted else None
                for pairs, value in zip(asked, values[name], strict=True)
            ]
            put(name, chosen_values, arm=arm)
    _enter_readouts(put, over, answers)


def _transition_reader(kind: str, answers: PairAnswers) -> Callable[[AskedPair], float | None]:
    def read(pair: AskedPair) -> float | None:
        draws = answers.draws.get(pair)
        named = None if draws is None else transition(draws)
        return None if named is None else float(named == kind)

    return read


def _enter_readouts(
    put: Callable[..., None],
    over: Callable[[Callable[[AskedPair], float | None]], Values],
    answers: PairAnswers,
) -> None:
    """Count what simpler readouts miss or flag beside full-prompt identity (Appendix M.3)."""

    def answer_changed(pair: AskedPair) -> bool | None:
        draws = answers.draws.get(pair)
        return None if draws is None or not draws.forward else draws.forward[0] != draws.route[0]

    def correctness_changed(pair: AskedPair) -> bool | None:
        draws = answers.draws.get(pair)
        known = draws is not None and draws.forward_right
        return draws.forward_right[0] != draws.route_right[0] if draws and known else None

    readouts: Mapping[str, Callable[[AskedPair], bool | None]] = {
        "sources": lambda pair: pair.shown[0].sources != pair.shown[1].sources,
        "answer": answer_changed,
        "correctness": correctness_changed,
    }

    def reading(
        read: Callable[[AskedPair], bool | None], prompt_changed: bool
    ) -> Callable[[AskedPair], float | None]:
        def value(pair: AskedPair) -> float | None:
            changed = read(pair)
            if pair.prompts is None or changed is None:
                return None
            return float(pair.same_prompt is not prompt_changed and changed is not prompt_changed)

        return value

    for name, read in readouts.items():
        put(f"miss.{name}", over(reading(read, True)), experiment="readouts")
        put(f"extra.{name}", over(reading(read, False)), experiment="readouts")
    matched = over(lambda pair: float(pair.prompts is not None))
    changed = over(lambda pair: float(not pair.same_prompt) if pair.prompts else None)
    put("count.pairs", matched, experiment="readouts")
    put("count.changed_prompts", changed, experiment="readouts")


def _enter_contrast(
    strata: Strata,
    template: Column,
    contrast: Contrast,
    schedule: str,
    taken: Mapping[tuple[str, str], Mapping[str, Values]],
    sums: Sums[Key],
) -> None:
    for coordinate in ANSWER_COORDINATES:
        sides = [(sign, taken[name, schedule][coordinate.name]) for sign, name in contrast.terms]
        column = template._replace(
            experiment=contrast.experiment,
            quantity=f"{contrast.prefix}.{coordinate.name}",
            policy=contrast.policy,
            schedule=schedule,
            arm=contrast.arm,
        )
        enter(sums, strata, column, signed(sides))


def _enter_batches(
    case: Case,
    strata: Strata,
    grouped: Grouped,
    manner: Manner,
    found: Mapping[tuple[str, str], PairAnswers],
    sums: Sums[Key],
) -> None:
    """Compare every later batch with the first, question by question."""
    first, *later = dict.fromkeys(batch for _, batch in found)
    for model in dict.fromkeys(name for name, _ in found):
        for batch in later:
            for (policy, schedule), routes in grouped.items():
                asked = [
                    [routes[question.id, filler] for filler in manner.fillers]
                    for question in case.questions
                ]
                sides = [profile(asked, found[model, name].draws) for name in (batch, first)]
                for coordinate in ANSWER_COORDINATES:
                    name = coordinate.name
                    column = Column(
                        "replication",
                        f"Gamma.{name}",
                        policy,
                        schedule,
                        arm=f"{batch or 'default'}-{first or 'default'}",
                        model=model,
                        prompt_control=manner.control,
                        filler="+".join(manner.fillers),
                        batch=batch,
                    )
                    enter(sums, strata, column, signed([(1, sides[0][name]), (-1, sides[1][name])]))
