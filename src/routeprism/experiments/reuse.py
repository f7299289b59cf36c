"""State reuse: one state per user and route, asked questions it was not built for (D.9, D.10)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from routeprism.answers import Comparison
from routeprism.errors import SpecError
from routeprism.experiments._answer_exhibits import chart_reuse, tabulate_reuse
from routeprism.experiments._answer_statements import reuse_statements
from routeprism.experiments._collection import AnswersByModel, Asking, leave_out_silent
from routeprism.experiments._comparison_stage import CaseComparisons, ComparisonStage, Gathered
from routeprism.experiments._experiment import AnswerSelection, Experiment
from routeprism.experiments._exposed_support import enter_support
from routeprism.experiments._profiles import (
    group_by_route,
    make_columns,
    make_profile,
    pair_answers,
    select_pairs,
)
from routeprism.experiments._route_comparisons import compare_routes
from routeprism.experiments._route_values import MAIN
from routeprism.experiments._rows import Column, Group, Key, difference_rows, estimate_rows
from routeprism.experiments._stages import StageResult, Traced
from routeprism.experiments._strata import Masks, Strata, Values, anchors_of, enter, strata_of
from routeprism.experiments.answers import place_route, sides_read
from routeprism.measures import Sums, jaccard
from routeprism.records import Benchmark, Case
from routeprism.runs import EstimateRow, Finding, StoredRun
from routeprism.settings import RESEARCH, option

__all__ = ["GROUPS", "ReuseSettings", "experiment", "reuse_states", "targets_of"]

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
    setting = collection.asking.setting(collection.traced.setting)
    rows = estimate_rows(collection.tally, setting)
    rows += difference_rows(collection.tally, setting, GROUPS)
    benchmark = collection.traced.benchmark
    single = sum(len(case.questions) == 1 for case in benchmark.cases)
    alone = f"one {benchmark.unit} has" if single == 1 else f"{single} {benchmark.unit}s have"
    notes = (f"reuse: {alone} one question, and so no target",) if single else ()
    readable, silent = leave_out_silent(rows, collection.outcomes, "reuse")
    return StageResult(rows, (*silent, *reuse_statements(readable)), notes)


def _enter(
    traced: Traced,
    asking: Asking,
    item: CaseComparisons,
    answers: AnswersByModel,
    sums: Sums[Key],
) -> None:
    targets, strata = targets_of(item.case), target_strata(item.case, traced.masks)
    if not targets.questions:
        return
    grouped = group_by_route(item.comparisons)
    for (policy, schedule), routes in grouped.items():
        column = Column("reuse", "", policy, schedule)
        first = [routes[q.id, asking.manner.fillers[0]] for q in targets.questions]
        _enter_exposure(strata, column, first, sums)
    paired = {key: pair_answers(item.comparisons, outcomes) for key, outcomes in answers.items()}
    for template, fillers, outcomes in make_columns("reuse", asking, targets, paired):
        for (policy, schedule), routes in grouped.items():
            column = template._replace(policy=policy, schedule=schedule)
            pairs = select_pairs(targets, routes, fillers)
            profile = make_profile(pairs, outcomes.draws)
            for name, numbers in profile.items():
                enter(sums, strata, column._replace(quantity=name), numbers)
            if traced.labels:
                labelled = column._replace(labels=traced.labels)
                enter_support(strata, labelled, pairs, profile, _BY_SUPPORT, sums)


def _enter_exposure(
    strata: Strata, column: Column, pairs: Sequence[Comparison], sums: Sums[Key]
) -> None:
    """Enter what the routes show to the targets, and which units have several targets."""
    exposures = [pair.exposures for pair in pairs]
    values: dict[str, Values] = {
        "J": [jaccard(forward.sources, route.sources) for forward, route in exposures],
        "V_changed": [float(forward.sources != route.sources) for forward, route in exposures],
        "C_changed": [
            float(forward.context_sha256 != route.context_sha256) for forward, route in exposures
        ],
    }
    for name, numbers in values.items():
        enter(sums, strata, column._replace(quantity=name), numbers)
    several = column._replace(quantity="count.several_targets")
    for (stratum, mask), places in strata.places.items():
        if places and stratum == "all":
            number = len(places)
            sums[several._replace(mask=mask), stratum] = (float(number > 1), number)


@dataclass(frozen=True, slots=True)
class ReuseSettings:
    """Options for state reuse."""

    reuse: bool = option(
        False,
        help="Also estimate over all questions but the first one of each user.",
        group=RESEARCH,
    )


def _answers_behind(
    row: EstimateRow, configuration: Mapping[str, Any], conditions: Collection[str]
) -> AnswerSelection:
    return AnswerSelection("reuse", sides_read(row), ("",))


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
    tables=tabulate_reuse,
    charts=chart_reuse,
    place=place_route,
    answers_behind=_answers_behind,
)
