"""The work of one process on one pool: trace it, compute its values, and return rows to store."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from routeprism.errors import ContractError
from routeprism.experiments._arrival_values import enter_arrivals, has_few_orders
from routeprism.experiments._baseline import count_baseline
from routeprism.experiments._case_values import (
    coordinates_of,
    enter_counts,
    enter_duplicate_options,
    enter_failed_pairs,
    enter_pairs,
    enter_ties,
)
from routeprism.experiments._observations import (
    LossCounts,
    Observations,
    observe_case,
    observe_failures,
    observe_routes,
)
from routeprism.experiments._rows import Key
from routeprism.experiments._storage import (
    StoredRoutes,
    make_tables,
    rows_of,
    unit_rows_of,
    value_rows_of,
)
from routeprism.experiments._strata import Masks, enter, strata_of
from routeprism.experiments._update_values import enter_displacements, resolve_by_time
from routeprism.experiments.builds import build_findings, build_values
from routeprism.experiments.mechanism import Contrast
from routeprism.experiments.retention import enter_over_time
from routeprism.measures import Sums
from routeprism.models import Model
from routeprism.orders import ArrivalModel, Schedule
from routeprism.policies import Policy, StandIn, interface_of
from routeprism.quantities import Quantity
from routeprism.records import Benchmark, Case
from routeprism.routes import (
    FIRST_POOLS,
    CrossFit,
    Leak,
    LostCase,
    Pair,
    Route,
    RouteChecks,
    RouteCounts,
    check_isolation,
    explain_cases,
    find_case_leak,
    knowing_users,
    list_absences,
    list_cases,
    trace_case,
)
from routeprism.runs import Finding, States, StoredRun, question_row
from routeprism.specs import EXTENSIONS, Extension


def list_own_coordinates() -> tuple[Extension, ...]:
    """List the coordinates that the caller extends RoutePrism with."""
    return tuple(extension for extension in EXTENSIONS.get() if extension.group == "coordinates")


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything a process needs to work on any case of a benchmark."""

    benchmark: Benchmark
    policies: tuple[Policy, ...]
    schedules: tuple[Schedule, ...]
    labels: str
    """The label source that retention is read from; empty for none."""
    contrasts: tuple[Contrast, ...]
    ties: bool
    store: bool
    masks: Masks = field(default_factory=dict)
    fits: CrossFit | None = None
    """The policies as they are used on each user, where some have to learn from others first."""
    states: Path | None = None
    """The store with snapshots of memories that are not to be built again."""
    over_time: bool = False
    """Whether to examine every pool as it grows."""
    earlier_run: Path | None = None
    """The run whose routes of memory systems outside are not to be traced again."""
    builds: int = 1
    """How often each route is built."""
    checks: RouteChecks = field(default_factory=RouteChecks)
    """Which routes of the user's own memory are built again, to check it."""
    values: Collection[str] = ()
    """Quantities whose values are handed on although no traces are kept."""
    arrivals: tuple[ArrivalModel, ...] = ()
    """Arrival models whose expectations are estimated."""
    readers: tuple[Model, ...] = ()
    """Models that can report which records contain no word for them."""
    updates: str = ""
    """The label source that outdated evidence is read from; empty for none."""
    explains_losses: bool = True
    """Whether causes of losses are tested."""
    extensions: tuple[Extension, ...] = field(default_factory=list_own_coordinates)
    """Coordinates that the caller extends RoutePrism with, which worker processes need as well."""

    def __call__(self) -> Plan:
        """Set a process up: it needs the plan itself, and its coordinates."""
        if self.extensions and not EXTENSIONS.get():
            EXTENSIONS.set(self.extensions)
        return self

    def only(self, policies: Sequence[Policy]) -> Plan:
        """Return the same plan for some policies, without anything that compares or stores."""
        return replace(
            self, policies=tuple(policies), contrasts=(), fits=None, ties=False, store=False
        )

    def policies_for(self, user: str) -> tuple[Policy, ...]:
        """Return the policies as they are used on one user."""
        return self.policies if self.fits is None else self.fits.for_user(user)

    @property
    def explains(self) -> bool:
        """Whether losses are explained: published benchmarks declare no arrival models."""
        return self.explains_losses and bool(self.arrivals or self.benchmark.arrivals)

    @property
    def coordinates(self) -> tuple[tuple[str, str, Quantity[Pair]], ...]:
        """Return (experiment, label source, coordinate) for everything that is observed."""
        return coordinates_of(self.labels, self.updates)


@dataclass(slots=True)
class CaseResult:
    """The results of one pool."""

    sums: Sums[Key] = field(default_factory=dict)
    observations: Observations = field(default_factory=Observations)
    tables: dict[str, list[Sequence[Any]]] = field(default_factory=dict)
    """Rows for the store."""
    values: dict[str, list[Sequence[Any]]] = field(default_factory=dict)
    """Rows that are handed back to who asked for some quantities' values."""
    findings: list[Finding] = field(default_factory=list)
    """What each build showed, where there are several."""


def work(plan: Plan, index: int) -> CaseResult:
    """Trace one case under every policy and schedule."""
    cases = plan.benchmark.cases
    try:
        with knowing_users(cases):
            return _work(plan, index)
    except ContractError:
        if not (leaks := _find_leaks(plan, index)):
            raise
    with knowing_users(cases, leaks):
        return _work(plan, index)


def _find_leaks(plan: Plan, index: int) -> dict[str, Leak]:
    """Find out whether what is wrong with a memory is that two users share it.

    Memories that cost something or need a network are not built for that.
    """
    cases = plan.benchmark.cases
    if len(cases) < 2:
        return {}
    owner, case = (cases[at] for at in ((index - 1, index) if index else (0, 1)))
    leaks = {
        policy.name: find_case_leak(policy, owner, case)
        for policy in plan.policies
        if plan.checks.isolated.get(policy.name)
    }
    return {name: leak for name, leak in leaks.items() if leak is not None}


def _work(plan: Plan, index: int) -> CaseResult:
    case = plan.benchmark.cases[index]
    result = CaseResult()
    observe_case(case, plan.policies, plan.readers, result.observations)
    if not case.questions:
        return result
    policies = plan.policies_for(case.pool.user)
    repeated = _trace(plan, case, index, policies, result.observations.routes)
    policies = _list_sound(policies, repeated)
    strata = strata_of(case, plan.masks)
    observe_failures(repeated, result.observations)
    observe_routes(repeated[0], result.observations)
    if plan.builds > 1:
        for column, values in build_values(case, repeated).items():
            enter(result.sums, strata, column, values)
        if plan.store:
            interfaces = {policy.name: interface_of(policy) for policy in plan.policies}
            result.findings = list(build_findings(case, repeated, interfaces))
    enter_failed_pairs(case, repeated[0], result.sums)
    resolved = resolve_by_time(case, repeated[0], plan.updates)
    tables = enter_pairs(
        case,
        repeated[0],
        strata,
        result.sums,
        labels=plan.labels,
        updates=plan.updates,
        contrasts=plan.contrasts,
        keep=plan.store or bool(plan.values),
        resolved=resolved,
    )
    cases = enter_arrivals(
        case,
        policies,
        plan.arrivals,
        strata,
        result.sums,
        labels=plan.labels,
        updates=plan.updates,
        keep=plan.store or bool(plan.values),
        resolved=resolved,
        tables=tables,
    )
    result.observations.baseline.update(
        count_baseline(case, repeated[0], plan.coordinates, tables, plan.labels)
    )
    for model in plan.arrivals:
        result.observations.arrivals[model.name, has_few_orders(model, case.pool)] += 1
    if plan.explains:
        result.observations.losses.add(_observe_losses(plan, case, policies, repeated[0], cases))
    enter_counts(case, repeated[0], result.sums)
    enter_displacements(case, repeated[0], result.sums)
    enter_duplicate_options(case, strata, result.sums)
    if plan.ties:
        enter_ties(case, plan.policies, plan.schedules, strata, result.sums)
    if plan.over_time:
        enter_over_time(case, policies, plan.labels, result.sums)
    _keep_rows(plan, case, repeated[0], result)
    for policy in policies:
        if isinstance(policy, StandIn):
            result.observations.assumed.update(policy.drain())
    return result


def _observe_losses(
    plan: Plan,
    case: Case,
    policies: Sequence[Policy],
    routes: Sequence[Route],
    cases: list[LostCase],
) -> LossCounts:
    """Explain losses under ordinary arrivals first, then on the routes, then in source order.

    `cases` are those of the arrival models.
    """
    whole = [
        *cases,
        *list_cases(routes, plan.labels),
        *list_absences(case, routes, plan.labels),
    ]
    whole = [lost for lost in whole if not lost.overlaps]  # anomalies explain those
    sides = [side for s in plan.schedules for side in (s, s.reference) if side is not None]
    procedures = {schedule.procedure.name: schedule.procedure for schedule in sides}
    losses = LossCounts.of(explain_cases(case, policies, whole, procedures))
    losses.cases.update(lost.place for lost in whole)
    return losses


def _trace(
    plan: Plan, case: Case, index: int, policies: Sequence[Policy], counts: RouteCounts
) -> list[tuple[Route, ...]]:
    """Trace every build of a case; check on some pools that builds do not share state."""
    with ExitStack() as stack:
        states = None if plan.states is None else stack.enter_context(States(plan.states))
        snapshot = None
        if plan.earlier_run is not None:
            interfaces = {policy.name: interface_of(policy) for policy in plan.policies}
            snapshot = StoredRoutes(
                stack.enter_context(StoredRun(plan.earlier_run, is_open=True)), interfaces
            ).route
        repeated = [
            trace_case(
                case,
                policies,
                plan.schedules,
                events=plan.store or bool(case.supersedes) or plan.explains,
                rebuilt={p.name: plan.checks.schedules(p.name, index) for p in policies},
                counts=counts,
                snapshots=None if states is None else states.get,
                stored_routes=snapshot,
            )
        ]
        for build in range(1, plan.builds):
            revive = None if states is None else partial(states.get, build=build)
            repeated.append(
                trace_case(case, policies, plan.schedules, events=False, snapshots=revive)
            )
        for policy in _list_sound(policies, repeated):
            if index in plan.checks.isolated.get(policy.name, ()):
                outcome = check_isolation(case, policy, plan.schedules, full=index < FIRST_POOLS)
                counts.isolation[policy.name, outcome] += 1
    return repeated


def _list_sound(
    policies: Sequence[Policy], repeated: Sequence[Sequence[Route]]
) -> tuple[Policy, ...]:
    """Leave out the policies that leaked on some route."""
    leaking = {route.policy for routes in repeated for route in routes if route.leak}
    return tuple(policy for policy in policies if policy.name not in leaking)


def _keep_rows(plan: Plan, case: Case, routes: Sequence[Route], result: CaseResult) -> None:
    """Write the rows for the store, and those that the caller asked for."""
    if plan.store:
        result.tables = {
            **make_tables(plan.policies, case, routes),
            "per_question": rows_of(case, result.sums),
            "per_unit": unit_rows_of(case, result.sums),
        }
    if plan.values:
        result.values = {
            "questions": [question_row(question) for question in case.questions],
            "per_unit": value_rows_of(plan.policies, plan.values, case, result.sums),
        }
