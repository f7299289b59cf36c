"""Rows, findings and verdicts that are made by hand, for tests of the judgement alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from routeprism.exhibits import Results
from routeprism.judge import Cause, Verdict
from routeprism.routes import CauseKind, Loss
from routeprism.runs import EstimateRow, Finding, Rows

Values = Mapping[str, Any]
"""Quantity → its estimate, or its estimate with both limits."""

EXPERIMENTS = {
    "evidence": "retention",
    "recall": "retention",
    "stale_only": "updates",
    "anomaly": "overlap",
    "order_change": "orders",
    "order_failed": "orders",
}
"""The beginning of a quantity → the experiment that measures it; `routes` measures all others."""


def make_row(quantity: str, value: Any, **columns: Any) -> EstimateRow:
    """Make a row about 40 questions of 10 users, under reversal."""
    estimate, lower, upper = value if isinstance(value, tuple) else (value, None, None)
    usual: dict[str, Any] = {
        "experiment": EXPERIMENTS.get(quantity.partition(".")[0], "routes"),
        "benchmark": "own",
        "policy": "memory",
        "schedule": "replay",
        "queries": 40,
        "units": 10,
        "unit": "user",
    }
    return EstimateRow(
        **{**usual, **columns}, quantity=quantity, estimate=estimate, lower=lower, upper=upper
    )


def make_rows(values: Values, **columns: Any) -> list[EstimateRow]:
    return [make_row(quantity, value, **columns) for quantity, value in values.items()]


def make_group(values: Values, **columns: Any) -> dict[str, EstimateRow]:
    """Make the rows of one memory and one order, by quantity."""
    return {row.quantity: row for row in make_rows(values, **columns)}


def make_results(
    rows: Iterable[EstimateRow], *findings: Finding, incomplete: bool = False
) -> Results:
    return Results.of(Rows.of(list(rows)), findings, incomplete=incomplete)


def count_evidence(lost: float, gained: float = 0.0) -> Values:
    """Count questions of 40 that lose evidence, and that gain some."""
    return {
        "evidence.lost": lost / 40,
        "evidence.lost_count": lost,
        "evidence.gained": gained / 40,
        "evidence.gained_count": gained,
    }


def make_verdict(
    depths: Mapping[str, Any] | str = "stable",
    values: Values | Mapping[str, Values] | None = None,
    **more: Any,
) -> Verdict:
    """Make a verdict on one memory, whose rows are those of reversal unless orders are named."""
    named_depths = {"replay": depths} if isinstance(depths, str) else depths
    named_values: Any = values or {}
    if not all(isinstance(value, Mapping) for value in named_values.values()):
        named_values = {"replay": named_values}
    rows = {
        schedule: make_group(named_values.get(schedule, {}), schedule=schedule)
        for schedule in {**named_depths, **named_values}
    }
    return Verdict("memory", named_depths, rows, **more)


def make_loss(cause: CauseKind = "overwritten", **more: Any) -> Loss:
    """Make the loss of 'n1' under reversal, because of 'n2'."""
    usual: dict[str, Any] = {
        "policy": "memory",
        "schedule": "replay",
        "user": "ada",
        "question": "q",
        "record": "n1",
        "by": ("n2",),
    }
    return Loss(cause, **{**usual, **more})


def make_cause(cause: CauseKind = "overwritten", **more: Any) -> Cause:
    """Make a cause that explains 2 of 3 tested losses, of 5 in all."""
    loss = more.pop("example", None) or make_loss(cause)
    usual: dict[str, Any] = {
        "schedules": (loss.schedule,),
        "record": loss.record,
        "by": loss.by,
        "user": loss.user,
        "question": loss.question,
        "tested": 3,
        "explained": 2,
        "cases": 5,
    }
    return Cause(loss.policy, cause, **{**usual, **more}, example=loss)
