"""What one process does with one pool: trace it, take its values, and hand over rows to keep."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from routeprism.experiments._inside import enter_insides
from routeprism.experiments._kept import KeptRoutes, enter_failures
from routeprism.experiments._over_time import enter_over_time
from routeprism.experiments._repeated import build_findings, build_values
from routeprism.experiments._rows import Column, Key
from routeprism.measures import COORDINATES, Coordinate, Sums, retention_coordinates
from routeprism.orders import FORWARD, Schedule
from routeprism.policies import Policy, innermost
from routeprism.records import Benchmark, Case
from routeprism.routes import CrossFit, Pair, Route, pairs, trace_case
from routeprism.runs import (
    Finding,
    States,
    Stored,
    UnitValues,
    question_row,
    unit_rows,
    value_rows,
)

__all__ = [
    "CaseResult",
    "Contrast",
    "Masks",
    "Plan",
    "Strata",
    "Values",
    "enter",
    "interface_of",
    "rows_of",
    "signed",
    "strata_of",
    "tables",
    "unit_rows_of",
    "work",
]


Values = Sequence[float | None]
"""A column's value for each question of a case; None is not applicable."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """A signed sum over policies, taken question by question."""

    experiment: str
    prefix: str
    """`Gamma`, `delta_op` or `interaction`."""
    policy: str
    """The policy that the row is listed under."""
    arm: str
    terms: tuple[tuple[int, str], ...]
    """(sign, policy name)."""

    def finding(self, interface: str) -> Finding:
        """Keep what it is made of, so that its numbers can be traced."""
        value = {
            "experiment": self.experiment,
            "quantity": self.prefix,
            "policy": self.policy,
            "arm": self.arm,
            "terms": [list(term) for term in self.terms],
        }
        name = f"{self.experiment}:{self.prefix}:{self.arm}"
        return Finding(name=name, value=value, policy=self.policy, interface=interface)


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
    """Whether to look at every pool as it grows, too."""
    kept: Path | None = None
    """The run whose routes of memory systems outside are not to be traced again."""
    builds: int = 1
    """How often each route is built."""
    values: Collection[str] = ()
    """Quantities whose values are handed on although no traces are kept."""

    def __call__(self) -> Plan:
        """Set a process up: it needs the plan itself."""
        return self

    def policies_for(self, user: str) -> tuple[Policy, ...]:
        """Give the policies as they are used on one user."""
        return self.policies if self.fits is None else self.fits.for_user(user)

    @property
    def coordinates(self) -> tuple[tuple[str, str, Coordinate[Pair]], ...]:
        """Give (experiment, label source, coordinate) for everything that is observed."""
        return _coordinates(self.labels)


@lru_cache(maxsize=8)
def _coordinates(labels: str) -> tuple[tuple[str, str, Coordinate[Pair]], ...]:
    traced = tuple(("routes", "", coordinate) for coordinate in COORDINATES)
    if not labels:
        return traced
    return (*traced, *(("retention", labels, one) for one in retention_coordinates(labels)))


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


def interface_of(policy: Policy) -> str:
    """Name the interface a policy exposes through; `own` where it compiles its own context."""
    interface = getattr(innermost(policy), "interface", None)
    return str(interface.name) if interface is not None else "own"


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


Masks = Mapping[str, Collection[str]]
"""Named sets of question ids; each is reported, and what is outside of it, too."""


@dataclass(frozen=True, slots=True)
class Strata:
    """How the questions of a case are cut."""

    questions: tuple[str, ...]
    """Their ids, in the case's order."""
    places: Mapping[tuple[str, str], Sequence[int]]
    """(stratum, mask) → the places of its questions in the case."""


def strata_of(case: Case, masks: Masks) -> Strata:
    """Give the places of all questions, of each kind, and of each mask."""
    strata: dict[tuple[str, str], list[int]] = {("all", ""): list(range(len(case.questions)))}
    for at, question in enumerate(case.questions):
        if question.kind:
            strata.setdefault((question.kind, ""), []).append(at)
        for name, ids in masks.items():
            inside = name if question.id in ids else f"outside-{name}"
            strata.setdefault(("all", inside), []).append(at)
    return Strata(tuple(question.id for question in case.questions), strata)


def enter(sums: Sums[Key], strata: Strata, column: Column, values: Values) -> None:
    """Add a column's values up, over all questions, over each kind and within each mask."""
    for (stratum, mask), places in strata.places.items():
        if mask and column.mask:
            continue  # a column that is a subset already is not cut again
        known = [value for at in places if (value := values[at]) is not None]
        if known:  # not applicable is never zero
            named = column._replace(mask=mask) if mask else column
            one = (float(sum(known)), len(known))
            whole = stratum == "all" and not mask
            sums[named, stratum] = (*one, (strata.questions, values)) if whole else one


def rows_of(case: Case, sums: Sums[Key]) -> list[Sequence[str]]:
    """Give the values of a case's questions as the store keeps them."""
    values = {column: entry[2] for (column, _), entry in sums.items() if len(entry) == 3}
    every = tuple(question.id for question in case.questions)
    order = sorted(range(len(every)), key=every.__getitem__)
    written: dict[Column, Sequence[float | None]] = {}
    for column, (questions, found) in values.items():
        if questions == every:
            written[column] = [found[at] for at in order]
        else:
            known = dict(zip(questions, found, strict=True))
            written[column] = [known.get(every[at]) for at in order]
    return value_rows(case.pool.user, written)


def unit_rows_of(case: Case, sums: Sums[Key]) -> list[Sequence[str]]:
    """Give what is no mean of a value per question as the store keeps it: a pool's own numbers."""
    known = {column for (column, _), entry in sums.items() if len(entry) == 3}
    own = {
        column: UnitValues(case.pool.user, entry[0], entry[1])
        for (column, stratum), entry in sums.items()
        if stratum == "all" and len(entry) == 2 and column._replace(mask="") not in known
    }
    return unit_rows(own)


def value_rows_of(plan: Plan, case: Case, sums: Sums[Key]) -> list[Sequence[str]]:
    """Give the values that a curve's points are the means of, each with its interface."""
    rows: list[Sequence[str]] = []
    for policy in plan.policies:
        kept: dict[Column, UnitValues] = {}
        for (column, _), entry in sums.items():
            if len(entry) == 3 and column.policy == policy.name and column.quantity in plan.values:
                pairs = zip(*entry[2], strict=True)
                values = {question: value for question, value in pairs if value is not None}
                kept[column] = UnitValues(case.pool.user, entry[0], entry[1], values)
        rows += unit_rows(kept, interface=interface_of(policy))
    return rows


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
    _enter_all(sums, strata, columns, np.hstack(parts), keep=plan.store or bool(plan.values))


@lru_cache(maxsize=8)
def _columns(
    labels: str,
    routes: tuple[tuple[str, str], ...],
    contrasts: tuple[Contrast, ...],
    schedules: tuple[str, ...],
) -> tuple[Column, ...]:
    """Name the columns of a case's values: coordinates of each route, then of each contrast."""
    coordinates = _coordinates(labels)
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


def _enter_all(
    sums: Sums[Key],
    strata: Strata,
    columns: Sequence[Column],
    values: npt.NDArray[np.float64],
    *,
    keep: bool,
) -> None:
    """Do what `enter` does, for many columns at once; not applicable is not a number.

    The values themselves are handed on only where they are to be kept.
    """
    known = ~np.isnan(values)
    filled = np.where(known, values, 0.0)
    plain: list[list[float | None]] = []
    if keep:
        objects = values.astype(object)
        objects[~known] = None
        plain = objects.T.tolist()
    for (stratum, mask), places in strata.places.items():
        counts = known[places].sum(axis=0).tolist()
        totals = filled[places].sum(axis=0).tolist()
        whole = stratum == "all" and not mask
        for at, (column, total, count) in enumerate(zip(columns, totals, counts, strict=True)):
            if count and plain and whole:
                sums[column, stratum] = (total, count, (strata.questions, plain[at]))
            elif count:
                named = column._replace(mask=mask) if mask else column
                sums[named, stratum] = (total, count)


def signed(sides: Sequence[tuple[int, Values]]) -> Values:
    """Take the signed sum per question; not applicable on one side is not applicable at all."""
    combined: list[float | None] = []
    for values in zip(*(column for _, column in sides), strict=True):
        known = [sign * v for (sign, _), v in zip(sides, values, strict=True) if v is not None]
        combined.append(sum(known) if len(known) == len(sides) else None)
    return combined


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
        unseen = getattr(inner, "unseen", None)
        if callable(unseen):
            found = {record.id for record in case.pool.records if unseen(record)}
            blind |= found
            counts[f"unseen\0{policy.name}"] += len(found)
        interface = getattr(inner, "interface", None)
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


def tables(
    policies: Sequence[Policy], case: Case, routes: Sequence[Route]
) -> dict[str, list[Sequence[Any]]]:
    """Make the rows that let a run be read without its benchmark."""
    texts: dict[str, str] = {}
    digests: dict[str, str] = {}

    def keep(text: str) -> str:
        digest = digests.get(text)
        if digest is None:
            digest = digests[text] = hashlib.sha256(text.encode()).hexdigest()
            texts[digest] = text
        return digest

    interfaces = {policy.name: interface_of(policy) for policy in policies}
    user = case.pool.user
    contexts: dict[tuple[Any, ...], str] = {}
    context_rows: list[Sequence[Any]] = []
    exposures: list[Sequence[Any]] = []
    traces: list[Sequence[Any]] = []
    failed: list[Sequence[Any]] = []
    for route in routes:
        start = (route.policy, interfaces[route.policy], route.schedule)
        if route.failed:
            failed.append((*start, user, route.failed))
            continue
        events = [[event.kind, event.record, event.by, event.at] for event in route.events]
        traces.append(
            (
                *start,
                user,
                json.dumps(route.order),
                json.dumps(sorted(route.retained)),
                route.signature,
                json.dumps(events),
                json.dumps(route.stand_ins),
            )
        )
        for shown in route.exposures:
            context = contexts.get(shown.blocks)
            if context is None:
                blocks = json.dumps(
                    [[b.kind, keep(b.text), sorted(b.sources)] for b in shown.blocks]
                )
                context = contexts[shown.blocks] = hashlib.sha256(blocks.encode()).hexdigest()
                sources = json.dumps(sorted(shown.sources))
                context_rows.append(
                    (context, shown.context_sha256, shown.context_chars, sources, blocks)
                )
            exposures.append((*start, shown.question.id, context))
    records = [
        (user, record.position, record.id, record.timestamp, keep(record.text))
        for record in case.pool.records
    ]
    return {
        "records": list(records),
        "questions": [question_row(question) for question in case.questions],
        "traces": traces,
        "exposures": exposures,
        "contexts": context_rows,
        "texts": list(texts.items()),
        "failed_routes": failed,
    }
