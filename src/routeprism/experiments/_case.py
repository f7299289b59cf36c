"""What one process does with one pool: trace it, take its values, and hand over rows to keep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import numpy as np

from routeprism.experiments._case_rows import rows_of, tables, unit_rows_of, value_rows_of
from routeprism.experiments._inside import enter_insides
from routeprism.experiments._kept import KeptRoutes, enter_failures
from routeprism.experiments._over_time import enter_over_time
from routeprism.experiments._plans import Contrast, Plan, coordinates_of, interface_of
from routeprism.experiments._repeated import build_findings, build_values
from routeprism.experiments._rows import Column, Key
from routeprism.experiments._strata import enter, enter_all, strata_of
from routeprism.measures import Sums
from routeprism.orders import FORWARD
from routeprism.policies import innermost
from routeprism.records import Case
from routeprism.routes import Route, pairs, trace_case
from routeprism.runs import Finding, States, Stored, question_row

__all__ = ["CaseResult", "work"]


@dataclass(slots=True)
class CaseResult:
    """What comes back for one pool."""

    sums: Sums[Key] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    """What the run should say once, with its number."""
    tables: dict[str, list[Sequence[Any]]] = field(default_factory=dict)
    """Rows for the store."""
    findings: list[Finding] = field(default_factory=list)
    """What each build showed, where there are several."""


def work(plan: Plan, index: int) -> CaseResult:
    """Trace one case under every policy and schedule."""
    case = plan.benchmark.cases[index]
    result = CaseResult()
    _count(plan, case, result.counts)
    if not case.questions:
        return result
    with ExitStack() as stack:
        states = None if plan.states is None else stack.enter_context(States(plan.states))
        interfaces = {policy.name: interface_of(policy) for policy in plan.policies}
        kept = None
        if plan.kept is not None:
            kept = KeptRoutes(stack.enter_context(Stored(plan.kept)), interfaces).route
        policies = plan.policies_for(case.pool.user)
        routes = trace_case(
            case,
            policies,
            plan.schedules,
            events=plan.store,
            twice=index == 0 and plan.builds == 1,
            snapshots=None if states is None else states.get,
            kept=kept,
        )
        repeated = [routes]
        for build in range(1, plan.builds):
            again = None if states is None else partial(states.get, build=build)
            more = trace_case(case, policies, plan.schedules, events=False, snapshots=again)
            repeated.append(more)
    if plan.builds > 1:
        strata = strata_of(case, plan.masks)
        for column, values in build_values(case, repeated).items():
            enter(result.sums, strata, column, values)
        if plan.store:
            result.findings = list(build_findings(case, repeated, interfaces))
    enter_failures(case, routes, result.sums, result.counts)
    _measure(plan, case, routes, result.sums)
    enter_insides(case, routes, result.sums, result.counts)
    _count_rewritten(routes, result.counts)
    _note_duplicate_options(plan, case, result.sums)
    if plan.ties:
        _note_ties(plan, case, result.sums)
    if plan.over_time:
        enter_over_time(case, plan.policies_for(case.pool.user), plan.labels, result.sums)
    if plan.store:
        result.tables = {
            **tables(plan.policies, case, routes),
            "per_question": rows_of(case, result.sums),
            "per_unit": unit_rows_of(case, result.sums),
        }
    elif plan.values:
        result.tables = {
            "questions": [question_row(question) for question in case.questions],
            "per_unit": value_rows_of(plan, case, result.sums),
        }
    return result


def _measure(plan: Plan, case: Case, routes: Sequence[Route], sums: Sums[Key]) -> None:
    strata = strata_of(case, plan.masks)
    taken: dict[tuple[str, str], list[list[float | None]]] = {}
    known: dict[tuple[object, ...], list[float | None]] = {}
    for pair in pairs(routes):
        # Of a question a coordinate reads its labels alone, and many questions see the same.
        alike = (
            pair.route.policy,
            pair.route.schedule,
            pair.forward_exposure.sources,
            pair.route_exposure.sources,
            pair.forward_exposure.context_sha256,
            pair.route_exposure.context_sha256,
            pair.question.labels.get(plan.labels),
        )
        row = known.get(alike)
        if row is None:
            row = known[alike] = [c.value(pair) for _, _, c in plan.coordinates]
        taken.setdefault((pair.route.policy, pair.route.schedule), []).append(row)
    missing: list[list[float | None]] = [[None] * len(plan.coordinates)] * len(case.questions)
    for route in routes:
        if route.schedule != FORWARD.name:  # a pair with a failed route is not applicable
            taken.setdefault((route.policy, route.schedule), missing)
    wide = {route: np.array(rows, dtype=np.float64) for route, rows in taken.items()}
    traced = sum(experiment == "routes" for experiment, _, _ in plan.coordinates)
    parts = [
        *wide.values(),
        *(
            sum(sign * wide[name, schedule.name][:, :traced] for sign, name in contrast.terms)
            for contrast in plan.contrasts
            for schedule in plan.schedules
        ),
    ]
    schedules = tuple(schedule.name for schedule in plan.schedules)
    columns = _columns(plan.labels, tuple(wide), plan.contrasts, schedules)
    enter_all(sums, strata, columns, np.hstack(parts), keep=plan.store or bool(plan.values))


@lru_cache(maxsize=8)
def _columns(
    labels: str,
    routes: tuple[tuple[str, str], ...],
    contrasts: tuple[Contrast, ...],
    schedules: tuple[str, ...],
) -> tuple[Column, ...]:
    """Name the columns of a case's values: coordinates of each route, then of each contrast."""
    coordinates = coordinates_of(labels)
    plain = [
        Column(experiment, coordinate.name, policy, schedule, labels=source)
        for policy, schedule in routes
        for experiment, source, coordinate in coordinates
    ]
    compared = [
        Column(
            contrast.experiment,
            f"{contrast.prefix}.{coordinate.name}",
            contrast.policy,
            schedule,
            contrast.arm,
        )
        for contrast in contrasts
        for schedule in schedules
        for experiment, _, coordinate in coordinates
        if experiment == "routes"
    ]
    return (*plain, *compared)


def _note_duplicate_options(plan: Plan, case: Case, sums: Sums[Key]) -> None:
    """Count the questions two of whose options have the same text (Appendix C.6)."""
    values = [float(q.duplicate_options) if q.options else None for q in case.questions]
    enter(sums, strata_of(case, plan.masks), Column("routes", "count.duplicate_options"), values)


def _note_ties(plan: Plan, case: Case, sums: Sums[Key]) -> None:
    """Count, for each question, the ties that its pool's construction met (Appendix D.5)."""
    for policy in plan.policies:
        count = getattr(policy, "ties", None)
        if not callable(count):
            continue
        for schedule in (FORWARD, *plan.schedules):
            order = schedule.on(case.pool)
            met = count(tuple(case.pool.records[position] for position in order))
            for name, number in met.items():
                column = Column("routes", f"count.{name}", policy.name, schedule.name)
                enter(
                    sums, strata_of(case, plan.masks), column, [float(number)] * len(case.questions)
                )


def _count(plan: Plan, case: Case, counts: Counter[str]) -> None:
    counts["pools"] += 1
    counts["records"] += len(case.pool)
    counts["questions"] += len(case.questions)
    counts["pools of one record"] += len(case.pool) == 1
    blind: set[str] = set()
    for policy in plan.policies:
        inner = innermost(policy)
        interface = getattr(inner, "interface", None)
        for name, reader in ((policy.name, inner), (getattr(interface, "name", ""), interface)):
            unseen = getattr(reader, "unseen", None)
            if callable(unseen) and f"unseen\0{name}" not in counts:
                found = {record.id for record in case.pool.records if unseen(record)}
                blind |= found
                counts[f"unseen\0{name}"] = len(found)
        if interface is not None:
            key = f"too long\0{interface.name}"
            if key not in counts:
                counts[key] = sum(map(interface.too_long, case.pool.records))
    counts["unseen records"] += len(blind)


def _count_rewritten(routes: Sequence[Route], counts: Counter[str]) -> None:
    """Count, by the kind of block, the pairs that show the same sources in other blocks."""
    known: dict[tuple[object, object], frozenset[str]] = {}
    for pair in pairs(routes):
        one, other = pair.forward_exposure, pair.route_exposure
        if one.sources != other.sources or one.context_sha256 == other.context_sha256:
            continue
        kinds = known.get((one.blocks, other.blocks))
        if kinds is None:
            before = Counter((block.kind, block.text) for block in one.blocks)
            after = Counter((block.kind, block.text) for block in other.blocks)
            differ = (before - after) + (after - before)
            kinds = known[one.blocks, other.blocks] = frozenset(kind for kind, _ in differ)
        counts.update(f"rewritten\0{pair.route.policy}\0{kind}" for kind in kinds)
