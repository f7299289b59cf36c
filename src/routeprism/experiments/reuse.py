"""State reuse: one state per user and route, asked questions it was not built for (D.9, D.10)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from routeprism.answers import Comparison
from routeprism.errors import SpecError
from routeprism.exhibits import Statement
from routeprism.experiments._answer_rows import (
    AnswerRows,
    chart_arms,
    list_answer_rows,
    tabulate_arms,
)
from routeprism.experiments._collection import Asking
from routeprism.experiments._comparison_stage import CaseComparisons, ComparisonStage, Gathered
from routeprism.experiments._experiment import Experiment, place_route, select_sides
from routeprism.experiments._options import ReuseSettings
from routeprism.experiments._profiles import (
    PoolAnswers,
    enter_support,
    enter_unit,
    make_profile,
    pair_sides,
)
from routeprism.experiments._route_comparisons import compare_routes
from routeprism.experiments._route_values import MAIN
from routeprism.experiments._rows import Group, difference_rows, estimate_rows
from routeprism.experiments._stages import StageResult, Traced
from routeprism.experiments._strata import Masks, Sheet, Strata, anchors_of, strata_of
from routeprism.experiments.statements import Phrase, compose_rows, describe_residual, join_phrases
from routeprism.judge import describe_floor, excludes_zero, is_at_floor
from routeprism.measures import jaccard
from routeprism.records import Benchmark, Case
from routeprism.runs import EstimateRow, Finding, Rows, StoredRun

_BY_SUPPORT = (*MAIN, "H_cross", "H_within")
GROUPS = (
    Group("changed-preserved", "support-changed", "support-preserved"),
    Group("changed-absent", "support-changed", "support-absent", "means"),
    Group("changed-absent.within", "support-changed", "support-absent"),
)
"""Groups of targets that are compared, by what happened to their support."""


def anchor_of(case: Case) -> str:
    """Name the question for which the state is built: the one with the smallest id."""
    return min((question.id for question in case.questions), default="")


def targets_of(case: Case) -> Case:
    """Leave the anchor out."""
    anchor = anchor_of(case)
    return replace(case, questions=tuple(q for q in case.questions if q.id != anchor))


def target_strata(case: Case, masks: Masks) -> Strata:
    """Cut the targets of a case; every kind and mask has its own anchor, chosen after the cut.

    The smallest id of all is the smallest wherever it is, and so a target nowhere.
    """
    strata = strata_of(case, masks)
    targets = tuple(question.id for question in targets_of(case).questions)
    place = {question: at for at, question in enumerate(targets)}
    cut: dict[tuple[str, str], list[int]] = {}
    for name, places in strata.places.items():
        ids = [strata.questions[at] for at in places]
        cut[name] = [place[question_id] for question_id in ids if question_id != min(ids)]
    return Strata(targets, cut)


def reuse_states(asking: Asking) -> ComparisonStage:
    """Make the stage that asks each user's state all questions but the anchor.

    A state is built once for each route and sees no question, so these are prompts of the routes.
    """
    configuration = {"reuse": True}
    return ComparisonStage("reuse", asking, _compare, _enter, _finish, configuration, _list_anchors)


def _compare(traced: Traced, asking: Asking, case: Case, stored: StoredRun) -> CaseComparisons:
    routes = traced.policies, traced.schedules
    pairs = compare_routes(targets_of(case), stored, *routes, asking.manner, experiment="reuse")
    return CaseComparisons(case, list(pairs))


def _list_anchors(traced: Traced, item: CaseComparisons) -> list[Finding]:
    case = item.case
    if not targets_of(case).questions:
        return []
    return [Finding(name="anchor", value=anchor_of(case), user=case.pool.user)]


def _finish(collection: Gathered) -> StageResult:
    """Estimate over the targets, by what happened to their support."""
    rows = estimate_rows(collection.tally, collection.setting)
    rows += difference_rows(collection.tally, collection.setting, GROUPS)
    benchmark = collection.traced.benchmark
    single = sum(len(case.questions) == 1 for case in benchmark.cases)
    alone = f"one {benchmark.unit} has" if single == 1 else f"{single} {benchmark.unit}s have"
    notes = (f"reuse: {alone} one question, and so no target",) if single else ()
    # The routes have the same prompts, and note the answers that could not be read.
    return replace(collection.conclude("reuse", rows, _describe, ()), notes=notes)


def _enter(pool: PoolAnswers) -> None:
    strata = target_strata(pool.case, pool.traced.masks)
    pool = replace(pool, case=targets_of(pool.case), strata=strata)
    if not pool.case.questions:
        return
    grouped = pool.group()
    for (policy, schedule, _), comparisons in grouped.items():
        first = pool.select(comparisons, pool.asking.manner.fillers)
        _enter_exposure(pool.make_sheet("reuse", policy, schedule), [pairs[0] for pairs in first])
    for template, fillers, answers in pool.make_sheets("reuse"):
        for (policy, schedule, _), comparisons in grouped.items():
            sheet = template.at(policy=policy, schedule=schedule)
            pairs = pool.select(comparisons, fillers)
            profile = make_profile(pairs, pair_sides(pairs, answers))
            sheet.put_all(profile)
            if labels := pool.traced.labels:
                enter_support(sheet.at(labels=labels), pairs, profile, _BY_SUPPORT)


def _enter_exposure(sheet: Sheet, pairs: Sequence[Comparison]) -> None:
    """Add what the routes show to the targets, and which units have several targets."""
    exposures = [pair.exposures for pair in pairs]
    sheet.put("J", [jaccard(first.sources, second.sources) for first, second in exposures])
    sheet.put("V_changed", [float(a.sources != b.sources) for a, b in exposures])
    sheet.put("C_changed", [float(a.context_sha256 != b.context_sha256) for a, b in exposures])
    enter_unit(sheet, "count.several_targets", [1.0] * len(pairs), lambda values: len(values) > 1)


def _describe(rows: Sequence[EstimateRow]) -> Iterator[Statement]:
    """Describe what the states do to questions that they were not built for."""
    exposed = Rows.of(rows).where(experiment="reuse", model="", mask="", stratum="all")
    for answers in list_answer_rows(rows, "reuse"):
        measure = answers.choose_measure()
        row = answers.find(measure)
        if row is None:
            continue
        change = answers.find("Delta_rep")
        own = exposed.where(policy=row.policy, schedule=row.schedule)
        value = compose_rows("{measure} = {value}", measure=measure, value=row)
        if measure == "D_res":
            moved = change is not None and excludes_zero(change)
            verdict = describe_residual(row, moved=moved)
            value = compose_rows("{verdict} ({value})", verdict=verdict, value=value)
        phrases = [
            compose_rows(
                "{questions} different questions of {units} {unit}s ({several:count} with two or "
                "more) were asked of one state per route; sources changed in {V:count}, contexts "
                "in {C:count}",
                questions=str(row.queries),
                units=str(row.units),
                unit=row.unit,
                several=own.one("count.several_targets"),
                V=own.one("V_changed_count"),
                C=own.one("C_changed_count"),
            ),
            value,
        ]
        if change is not None and is_at_floor(change):
            phrases.append((describe_floor(change),))
        elif change is not None and measure != "Delta_rep":
            phrases.append(compose_rows("change of accuracy {value}", value=change))
        phrases.extend(_describe_support(answers))
        yield answers.state("reuse", row, "{text}", text=join_phrases(phrases))


def _describe_support(answers: AnswerRows) -> Iterator[Phrase]:
    """Describe accuracy where support changed, where it did not, and units with both."""
    for arm, where in (
        ("support-changed", "where the evidence changed"),
        ("support-preserved", "where the evidence was preserved"),
        ("support-absent", "where neither order shows any"),
    ):
        if (row := answers.find("Delta_rep", arm)) is not None:
            template = "{where} {row} ({row:size}, labels {row:labels})"
            yield compose_rows(template, where=where, row=row)
    if (row := answers.find("changed-preserved.Delta_rep")) is not None:
        yield compose_rows("changed minus preserved within {u}s {v}", u=row.unit, v=row)
    if (row := answers.find("changed-absent.Delta_rep")) is not None:
        yield compose_rows(
            "mean where the evidence changed minus mean where neither order shows any {value}",
            value=row,
        )


_ARMS = {
    "": "all questions",
    "support-changed": "evidence changed",
    "support-preserved": "evidence preserved",
    "support-absent": "no evidence on either route",
    "changed-preserved": "changed − preserved",
    "changed-absent": "changed − absent (means)",
    "changed-absent.within": "changed − absent within units",
}


def _stage(
    settings: ReuseSettings, asking: Asking | None, benchmark: Benchmark
) -> ComparisonStage | None:
    if not settings.reuse:
        return None
    if asking is None:
        raise SpecError("reuse needs a model to answer")
    return reuse_states(asking)


experiment = Experiment(
    name="reuse",
    title="State reuse",
    summary="Ask the state that was built for one question of a user all other questions.",
    rank=50,
    settings=ReuseSettings,
    stage=_stage,
    growing=("reuse",),
    groups=GROUPS,
    excluded=anchors_of,
    tables=partial(
        tabulate_arms,
        "reuse",
        _ARMS,
        "One memory, different questions",
        "The memory of each route is built for the user's first question and asked all other "
        "questions, grouped by what happened to their evidence.",
    ),
    charts=partial(
        chart_arms, "reuse", _ARMS, ("Delta_rep", "Delta"), "change of accuracy by evidence"
    ),
    place=place_route,
    answers_behind=partial(select_sides, "reuse"),
)
