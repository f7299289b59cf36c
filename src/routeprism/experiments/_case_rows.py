"""A case as the store keeps it: its values, traces, contexts and texts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from routeprism.experiments._plans import Plan, interface_of
from routeprism.experiments._rows import Column, Key
from routeprism.measures import Sums
from routeprism.policies import Policy
from routeprism.records import Case
from routeprism.routes import Route
from routeprism.runs import UnitValues, question_row, unit_rows, value_rows

__all__ = ["rows_of", "tables", "unit_rows_of", "value_rows_of"]


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
