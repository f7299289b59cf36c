"""A case as the store contains it: values, traces, contexts and texts, written and read back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from routeprism.errors import RunError
from routeprism.experiments._rows import Column, Key
from routeprism.measures import Sums
from routeprism.orders import Schedule
from routeprism.policies import (
    Block,
    Event,
    Exposure,
    Policy,
    can_revive,
    describe_client,
    interface_of,
    unwrap_policy,
    uses_gateway,
)
from routeprism.records import Case, Question
from routeprism.routes import ExposureTrace, Route
from routeprism.runs import StoredRun, UnitValues, question_row, unit_rows, value_rows


def rows_of(case: Case, sums: Sums[Key]) -> list[Sequence[str]]:
    """Return the values of a case's questions as the store keeps them."""
    values = {column: entry[2] for (column, _), entry in sums.items() if len(entry) == 3}
    every = tuple(question.id for question in case.questions)
    order = sorted(range(len(every)), key=every.__getitem__)
    stored_values: dict[Column, Sequence[float | None]] = {}
    for column, (questions, numbers) in values.items():
        if questions == every:
            stored_values[column] = [numbers[at] for at in order]
        else:
            by_question = dict(zip(questions, numbers, strict=True))
            stored_values[column] = [by_question.get(every[at]) for at in order]
    return value_rows(case.pool.user, stored_values)


def unit_rows_of(case: Case, sums: Sums[Key]) -> list[Sequence[str]]:
    """Return the numbers of a whole pool, which are not means over questions, for the store."""
    weighted = {column for (column, _), entry in sums.items() if len(entry) == 3}
    own = {
        column: UnitValues(case.pool.user, entry[0], entry[1])
        for (column, stratum), entry in sums.items()
        if stratum == "all" and len(entry) == 2 and column._replace(mask="") not in weighted
    }
    return unit_rows(own)


def value_rows_of(
    policies: Sequence[Policy], quantities: Collection[str], case: Case, sums: Sums[Key]
) -> list[Sequence[str]]:
    """Return the values that a curve's points are the means of, each with its interface."""
    rows: list[Sequence[str]] = []
    for policy in policies:
        units: dict[Column, UnitValues] = {}
        for (column, _), entry in sums.items():
            if len(entry) == 3 and column.policy == policy.name and column.quantity in quantities:
                pairs = zip(*entry[2], strict=True)
                values = {question: value for question, value in pairs if value is not None}
                units[column] = UnitValues(case.pool.user, entry[0], entry[1], values)
        rows += unit_rows(units, interface=interface_of(policy))
    return rows


def make_tables(
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
    counts: list[Sequence[Any]] = []
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
        if route.counts:
            counts.append((*start, user, json.dumps(dict(route.counts))))
        for exposure in route.exposures:
            context = contexts.get(exposure.blocks)
            if context is None:
                blocks = json.dumps(
                    [[b.kind, keep(b.text), sorted(b.sources)] for b in exposure.blocks]
                )
                context = contexts[exposure.blocks] = hashlib.sha256(blocks.encode()).hexdigest()
                sources = json.dumps(sorted(exposure.sources))
                context_rows.append(
                    (context, exposure.context_sha256, exposure.context_chars, sources, blocks)
                )
            exposures.append((*start, exposure.question.id, context))
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
        "route_counts": counts,
        "failed_routes": failed,
    }


def is_external(policy: Policy) -> bool:
    """Whether a policy's memories are built by a system is_external, which may fail or cost.

    One that can be revived from its state is not traced by its routes: the state says more. Nor is
    one whose requests go through the run's proxy: its replies are in the ledger.
    """
    if can_revive(policy) or uses_gateway(policy):
        return False
    if callable(getattr(unwrap_policy(policy), "origin", None)):
        return True
    client = describe_client(policy)
    return client is not None and bool(client.calls_per_add)


@dataclass(frozen=True, slots=True)
class StoredRoutes:
    """The routes that an earlier call of the same run traced to their end."""

    stored: StoredRun
    interfaces: Mapping[str, str]
    """Policy → the interface it exposes through."""

    def route(
        self, case: Case, policy: Policy, schedule: Schedule, order: tuple[int, ...]
    ) -> Route | None:
        """Return a route as it was traced; None where it has to be built (again)."""
        if not is_external(policy):
            return None
        start = (policy.name, self.interfaces[policy.name], schedule.name)
        trace = self.stored.trace(*start, case.pool.user)
        if trace is None or trace.arrivals != order:
            return None
        try:
            exposures = tuple(self._exposure(start, question) for question in case.questions)
        except RunError:
            return None  # a question that was not asked then
        self.stored.clear_texts()
        events: Sequence[Any] = trace.events
        return Route(
            policy.name,
            schedule.name,
            case.pool.user,
            order,
            trace.retained,
            trace.signature,
            exposures,
            tuple(Event(*event) for event in events),
            trace.stand_ins,
            trace.counts,
        )

    def _exposure(self, start: tuple[str, str, str], question: Question) -> ExposureTrace:
        exposure = self.stored.exposure(*start, question.id)
        blocks = tuple(Block(*block) for block in exposure.blocks)
        chars = len(Exposure(blocks).context)
        return ExposureTrace(question, exposure.sources, exposure.context_sha256, chars, blocks)
