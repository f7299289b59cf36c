"""The answer boundary of an audit: ask every pair of routes, and estimate what the answers do."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, get_args

from routeprism.experiments._answer_exhibits import (
    chart_answers,
    chart_replication,
    tabulate_answers,
    tabulate_replication,
)
from routeprism.experiments._answer_statements import answer_statements, fixed_source_statements
from routeprism.experiments._collection import Asking, leave_out_silent
from routeprism.experiments._comparison_stage import CaseComparisons, ComparisonStage, Gathered
from routeprism.experiments._experiment import AnswerNames, AnswerSelection, Experiment
from routeprism.experiments._route_comparisons import compare_routes
from routeprism.experiments._route_values import MAIN, enter_answers
from routeprism.experiments._rows import Group, difference_rows, estimate_rows
from routeprism.experiments._stages import StageResult, Traced
from routeprism.experiments._strata import DISTINCT
from routeprism.measures import Alternative
from routeprism.orders import name_reference
from routeprism.prompts import Provenance
from routeprism.records import Benchmark, Case
from routeprism.runs import EstimateRow, StoredRun

__all__ = ["GROUPS", "ask_routes", "experiment", "instructions_of", "place_route", "sides_read"]

GROUPS = (
    Group("dispatch", "forward-first", "route-first", union="count.forward_first"),
    Group("changed-preserved", "support-changed", "support-preserved", left_out=MAIN),
)
"""Groups of questions that are compared within units: by dispatch order, by change of support."""
TESTED: Mapping[str, Alternative] = {
    "Delta_rep": "two-sided",
    "D_res": "greater",
    "outdated_answer.route-forward": "greater",
}
"""Quantities whose difference from zero is a claim about order."""
_SINGLE = ".single"
"""The end of quantities that read the formal answer alone."""
_REPLICATION = "replication"


def _compare(traced: Traced, asking: Asking, case: Case, stored: StoredRun) -> CaseComparisons:
    routes = traced.policies, traced.schedules
    return CaseComparisons(case, list(compare_routes(case, stored, *routes, asking.manner)))


def _finish(collection: Gathered) -> StageResult:
    setting = collection.asking.setting(collection.traced.setting)
    duplicates = collection.has_duplicate_options
    rows = [
        row
        for row in estimate_rows(
            collection.tally, setting, left_out=MAIN, by_question=MAIN, tested=TESTED
        )
        if duplicates or not row.mask.endswith(DISTINCT)  # else it repeats the plain rows
        if row.estimate or not row.quantity.startswith("count.no_answer")
    ]
    rows += difference_rows(collection.tally, setting, GROUPS)
    unmatched = tuple(
        f"{number} pairs could not be matched and are in no matched estimate: {reason}"
        for reason, number in collection.reasons.items()
    )
    readable, _ = leave_out_silent(rows, collection.outcomes, "routes")
    fixed = tuple(fixed_source_statements(readable))
    notes = (*unmatched, *collection.notes)
    return StageResult(
        rows, notes=notes, describe=lambda every: (*answer_statements(every), *fixed)
    )


def ask_routes(asking: Asking) -> ComparisonStage:
    """Make the stage that asks every question on both routes of every pair."""
    return ComparisonStage("routes", asking, _compare, enter_answers, _finish)


def instructions_of(arm: str) -> tuple[str, ...]:
    """Name the instructions of an arm: one, or two that are compared; empty for another arm."""
    names = tuple(arm.split("-"))
    return names if len(names) <= 2 and set(names) <= set(get_args(Provenance)) else ()


def place_route(names: AnswerNames) -> Mapping[str, str]:
    """Name an answer on a route, and the route that it is compared with."""
    return {"schedule": names.side, "condition": names.condition, "pair": names.schedule}


def sides_read(row: EstimateRow) -> tuple[str, ...]:
    """Name the routes whose answers a quantity reads; empty for both."""
    quantity = row.quantity.rpartition("accuracy.")[2].removesuffix(_SINGLE)
    if "accuracy." not in row.quantity or quantity not in ("forward", "route"):
        return ()
    return (name_reference(row.schedule),) if quantity == "forward" else (row.schedule,)


def _answers_behind(
    row: EstimateRow, configuration: Mapping[str, Any], conditions: Collection[str]
) -> AnswerSelection:
    batches: tuple[str, ...] = (row.batch,)
    if row.experiment == _REPLICATION:
        batches += (configuration["batches"][0],)
    return AnswerSelection("routes", sides_read(row), ("",), batches)


def _stage(settings: None, asking: Asking | None, benchmark: Benchmark) -> ComparisonStage | None:
    return None if asking is None else ask_routes(asking)


experiment = Experiment(
    name="answers",
    title="Answers",
    summary="Ask every question on both routes of each pair and compare the answers.",
    rank=20,
    stage=_stage,
    columns=("routes", "readouts", _REPLICATION, "support"),
    row_filter=lambda row: bool(row.model) and not instructions_of(row.arm),
    answers="routes",
    growing=("draws", "batches"),
    masks=(DISTINCT, "flip-sample", "fixed-source"),
    groups=GROUPS,
    tables=lambda results: [*tabulate_answers(results), *tabulate_replication(results)],
    charts=lambda results: [*chart_answers(results), *chart_replication(results)],
    place=place_route,
    answers_behind=_answers_behind,
)
