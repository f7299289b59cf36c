"""Provenance instructions: does saying how to treat conflicts change the answers? (F.6, E.1).

All arms show the records in order of arrival, so that routes with the same sources differ in text
(Appendices D.6, F.6).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from routeprism.errors import SpecError
from routeprism.experiments._answer_exhibits import chart_instructions, tabulate_instructions
from routeprism.experiments._answer_statements import provenance_statements
from routeprism.experiments._collection import AnswersByModel, Asking, leave_out_silent
from routeprism.experiments._comparison_stage import CaseComparisons, ComparisonStage, Gathered
from routeprism.experiments._experiment import AnswerSelection, Experiment
from routeprism.experiments._layouts import hides_arrival, show_arrival
from routeprism.experiments._profiles import (
    ByRoute,
    Profile,
    group_by_route,
    make_columns,
    make_profile,
    pair_answers,
    select_pairs,
)
from routeprism.experiments._route_comparisons import compare_routes
from routeprism.experiments._route_values import enter_same_sources
from routeprism.experiments._rows import Key, estimate_rows
from routeprism.experiments._stages import StageResult, Traced
from routeprism.experiments._strata import enter, signed, strata_of
from routeprism.experiments.answers import instructions_of, sides_read
from routeprism.measures import Sums
from routeprism.prompts import Provenance
from routeprism.records import Benchmark, Case
from routeprism.runs import EstimateRow, StoredRun
from routeprism.settings import RESEARCH, option

__all__ = ["CONTRASTS", "MARGIN", "ProvenanceSettings", "compare_instructions", "experiment"]

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


def compare_instructions(
    asking: Asking, arms: tuple[Provenance, ...], margin: float = MARGIN
) -> ComparisonStage:
    """Make the stage that asks every pair of routes under several instructions.

    The instruction of `asking` is the first arm.
    """
    return ComparisonStage(
        "routes",
        asking,
        partial(_compare, arms),
        partial(_enter, arms),
        partial(_finish, margin),
        {"provenance_arms": list(arms), "margin": margin},
    )


def _compare(
    arms: tuple[Provenance, ...], traced: Traced, asking: Asking, case: Case, stored: StoredRun
) -> CaseComparisons:
    own = asking.manner
    pairs = [
        pair
        for arm in arms
        for policy in traced.policies
        for pair in compare_routes(
            case,
            stored,
            [policy],
            traced.schedules,
            replace(own, provenance=arm),
            # The plain routes ask the first arm where they show records as they arrived.
            condition="" if arm == own.provenance and not hides_arrival(policy) else arm,
            arrange=show_arrival,
        )
    ]
    return CaseComparisons(case, pairs)


def _enter(
    arms: tuple[Provenance, ...],
    traced: Traced,
    asking: Asking,
    item: CaseComparisons,
    answers: AnswersByModel,
    sums: Sums[Key],
) -> None:
    case, pairs = item.case, item.comparisons
    strata = strata_of(case, traced.masks)
    own = asking.manner.provenance
    grouped: dict[Provenance, ByRoute] = {
        arm: group_by_route([pair for pair in pairs if (pair.condition or own) == arm])
        for arm in arms
    }
    paired = {key: pair_answers(pairs, outcomes) for key, outcomes in answers.items()}
    for template, fillers, outcomes in make_columns("routes", asking, case, paired):
        for policy, schedule in grouped[own]:
            column = template._replace(policy=policy, schedule=schedule)
            profiles: dict[Provenance, Profile] = {}
            for arm, routes in grouped.items():
                selected = select_pairs(case, routes[policy, schedule], fillers)
                profile = profiles[arm] = make_profile(selected, outcomes.draws)
                target = column._replace(arm=arm)
                for name, numbers in profile.items():
                    enter(sums, strata, target._replace(quantity=name), numbers)
                enter_same_sources(strata, target, selected, profile, sums)
            for first, second in CONTRASTS:
                if first in profiles and second in profiles:
                    target = column._replace(arm=f"{first}-{second}")
                    for name in profiles[first]:
                        gap = signed([(1, profiles[first][name]), (-1, profiles[second][name])])
                        enter(sums, strata, target._replace(quantity=f"Gamma.{name}"), gap)


def _finish(margin: float, collection: Gathered) -> StageResult:
    rows = estimate_rows(collection.tally, collection.asking.setting(collection.traced.setting))
    unmatched = tuple(
        f"provenance: {number} pairs could not be matched and are in no estimate: {reason}"
        for reason, number in collection.reasons.items()
    )
    readable, silent = leave_out_silent(rows, collection.outcomes, "provenance")
    statements = provenance_statements(readable, CONTRASTS, margin)
    return StageResult(rows, (*silent, *statements), (*unmatched, *collection.notes))


@dataclass(frozen=True, slots=True)
class ProvenanceSettings:
    """Options for comparing instructions."""

    margin: float = option(
        MARGIN,
        help="Largest loss of accuracy that counts as no worse when instructions are compared.",
        group=RESEARCH,
    )


def _answers_behind(
    row: EstimateRow, configuration: Mapping[str, Any], conditions: Collection[str]
) -> AnswerSelection:
    own = configuration["provenance"]
    names = instructions_of(row.arm)
    # The plain routes are the first arm where they show records in order of arrival.
    arms = tuple("" if name == own and own not in conditions else name for name in names)
    return AnswerSelection("routes", sides_read(row), arms)


def _stage(
    settings: ProvenanceSettings, asking: Asking | None, benchmark: Benchmark
) -> ComparisonStage | None:
    if not 0 < settings.margin < 1:
        raise SpecError(f"Expected a margin between 0 and 1 but got margin={settings.margin}")
    if asking is None or len(asking.instructions) < 2:
        return None
    return compare_instructions(asking, asking.instructions, settings.margin)


experiment = Experiment(
    name="provenance",
    title="Instructions about conflicting records",
    summary="Ask the same routes under several instructions about conflicting records.",
    rank=30,
    settings=ProvenanceSettings,
    stage=_stage,
    columns=("routes",),
    row_filter=lambda row: bool(row.model and instructions_of(row.arm)),
    answers="routes",
    configuration=("provenance_arms",),
    growing=("provenance_arms", "margin"),
    tables=tabulate_instructions,
    charts=chart_instructions,
    answers_behind=_answers_behind,
)
