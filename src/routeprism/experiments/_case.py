"""What one process does with one pool: trace it, take its values, and hand over rows to keep."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from routeprism.measures import Coordinate, Sums, note
from routeprism.orders import FORWARD, Schedule
from routeprism.policies import Policy, SourceOrder
from routeprism.records import Benchmark, Case, Question
from routeprism.routes import Route, pairs, trace_case

__all__ = ["CaseResult", "Contrast", "Key", "Plan", "interface_of", "work"]


@dataclass(frozen=True, slots=True)
class Key:
    """Which number this is, before it is a row."""

    experiment: str
    policy: str
    schedule: str
    arm: str
    labels: str
    stratum: str
    quantity: str


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


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything a process needs to work on any case of a benchmark."""

    benchmark: Benchmark
    policies: tuple[Policy, ...]
    schedules: tuple[Schedule, ...]
    coordinates: tuple[tuple[str, str, Coordinate], ...]
    """(experiment, label source, coordinate)."""
    contrasts: tuple[Contrast, ...]
    ties: bool
    store: bool

    def __call__(self) -> Plan:
        """Set a process up: it needs the plan itself."""
        return self


@dataclass(slots=True)
class CaseResult:
    """What comes back for one pool."""

    sums: Sums[Key] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    """What the run should say once, with its number."""
    tables: dict[str, list[Sequence[Any]]] = field(default_factory=dict)
    """Rows for the store."""


def interface_of(policy: Policy) -> str:
    """Name the interface a policy exposes through; `own` where it compiles its own context."""
    inner = policy.inner if isinstance(policy, SourceOrder) else policy
    interface = getattr(inner, "interface", None)
    return str(interface.name) if interface is not None else "own"


def work(plan: Plan, index: int) -> CaseResult:
    """Trace one case under every policy and schedule."""
    case = plan.benchmark.cases[index]
    result = CaseResult()
    _count(plan, case, result.counts)
    if not case.questions:
        return result
    routes = trace_case(case, plan.policies, plan.schedules)
    _measure(plan, routes, result.sums)
    for question in case.questions:
        if question.options:
            _note(result.sums, _bare("count.duplicate_options"), question.duplicate_options, question)
    if plan.ties:
        _note_ties(plan, case, result.sums)
    if plan.store:
        result.tables = _tables(plan, case, routes)
    return result


def _bare(quantity: str) -> Key:
    return Key("routes", "", "", "", "", "all", quantity)


def _note(sums: Sums[Key], key: Key, value: float | None, question: Question) -> None:
    """Note a value under `all` and under the question's kind."""
    note(sums, key, value)
    if question.kind:
        inside = Key(
            key.experiment,
            key.policy,
            key.schedule,
            key.arm,
            key.labels,
            question.kind,
            key.quantity,
        )
        note(sums, inside, value)


def _measure(plan: Plan, routes: Sequence[Route], sums: Sums[Key]) -> None:
    values: dict[tuple[str, str], list[tuple[Question, list[float | None]]]] = {}
    for pair in pairs(routes):
        taken = [coordinate.value(pair) for _, _, coordinate in plan.coordinates]
        values.setdefault((pair.route.policy, pair.route.schedule), []).append(
            (pair.question, taken)
        )
    for (policy, schedule), asked in values.items():
        _enter(plan, sums, asked, policy, schedule)
    for contrast in plan.contrasts:
        for schedule in plan.schedules:
            if schedule.name != FORWARD.name:
                sides = [(sign, values[name, schedule.name]) for sign, name in contrast.terms]
                _enter(plan, sums, _combined(sides), contrast.policy, schedule.name, contrast)


def _enter(
    plan: Plan,
    sums: Sums[Key],
    asked: Sequence[tuple[Question, list[float | None]]],
    policy: str,
    schedule: str,
    contrast: Contrast | None = None,
) -> None:
    for at, (experiment, labels, coordinate) in enumerate(plan.coordinates):
        quantity = coordinate.name
        if contrast is not None:
            if experiment != "routes":
                continue
            experiment, quantity = contrast.experiment, f"{contrast.prefix}.{quantity}"
        arm = contrast.arm if contrast is not None else ""
        key = Key(experiment, policy, schedule, arm, labels, "all", quantity)
        inside: dict[str, Key] = {}
        for question, taken in asked:
            note(sums, key, taken[at])
            if question.kind:
                if question.kind not in inside:
                    inside[question.kind] = Key(
                        experiment, policy, schedule, arm, labels, question.kind, quantity
                    )
                note(sums, inside[question.kind], taken[at])


def _combined(
    sides: Sequence[tuple[int, Sequence[tuple[Question, list[float | None]]]]],
) -> list[tuple[Question, list[float | None]]]:
    """Take the signed sum per question; not applicable on one side is not applicable at all."""
    combined = []
    for at, (question, first) in enumerate(sides[0][1]):
        sums: list[float | None] = []
        for place in range(len(first)):
            parts = [(sign, asked[at][1][place]) for sign, asked in sides]
            known = [sign * value for sign, value in parts if value is not None]
            sums.append(sum(known) if len(known) == len(parts) else None)
        combined.append((question, sums))
    return combined


def _note_ties(plan: Plan, case: Case, sums: Sums[Key]) -> None:
    """Count, for each question, the ties that its pool's construction met (Appendix D.5)."""
    for policy in plan.policies:
        count = getattr(policy, "ties", None)
        if not callable(count):
            continue
        for schedule in dict.fromkeys((FORWARD, *plan.schedules)):
            order = schedule.order(len(case.pool), case.pool.user)
            met = count(tuple(case.pool.records[position] for position in order))
            for name, number in met.items():
                key = Key(
                    "routes", policy.name, schedule.name, "", "", "all", f"count.{name}"
                )
                for question in case.questions:
                    _note(sums, key, number, question)


def _count(plan: Plan, case: Case, counts: Counter[str]) -> None:
    counts["pools"] += 1
    counts["records"] += len(case.pool)
    counts["questions"] += len(case.questions)
    counts["pools of one record"] += len(case.pool) == 1
    for policy in plan.policies:
        unseen = getattr(policy, "unseen", None)
        if callable(unseen):
            counts[f"unseen\0{policy.name}"] += sum(map(unseen, case.pool.records))
        interface = getattr(policy, "interface", None)
        if interface is not None:
            key = f"too long\0{interface.name}"
            if key not in counts:
                counts[key] = sum(map(interface.too_long, case.pool.records))


def _tables(
    plan: Plan, case: Case, routes: Sequence[Route]
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

    interfaces = {policy.name: interface_of(policy) for policy in plan.policies}
    user = case.pool.user
    written: dict[tuple[Any, ...], str] = {}
    exposures: list[Sequence[Any]] = []
    traces: list[Sequence[Any]] = []
    for route in routes:
        start = (route.policy, interfaces[route.policy], route.schedule)
        events = [[event.kind, event.record, event.by, event.at] for event in route.events]
        traces.append(
            (
                *start,
                user,
                json.dumps(route.order),
                json.dumps(sorted(route.retained)),
                route.signature,
                json.dumps(events),
            )
        )
        for shown in route.exposures:
            blocks = written.get(shown.blocks)
            if blocks is None:
                blocks = written[shown.blocks] = json.dumps(
                    [[b.kind, keep(b.text), sorted(b.sources)] for b in shown.blocks]
                )
            exposures.append(
                (
                    *start,
                    shown.question.id,
                    json.dumps(sorted(shown.sources)),
                    shown.context_sha256,
                    shown.context_chars,
                    blocks,
                )
            )
    records = [
        (user, record.position, record.id, record.timestamp, keep(record.text))
        for record in case.pool.records
    ]
    return {
        "records": list(records),
        "questions": [_question_row(question) for question in case.questions],
        "traces": traces,
        "exposures": exposures,
        "texts": list(texts.items()),
    }


def _question_row(question: Question) -> Sequence[Any]:
    labels = {source: sorted(ids) for source, ids in question.labels.items()}
    return (
        question.id,
        question.user,
        question.text,
        json.dumps(question.options),
        question.gold,
        question.kind,
        question.detail,
        json.dumps(labels),
    )
