"""Mechanism localisation in words: which operation of a policy makes the difference."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from routeprism.exhibits import Severity, Statement, compose
from routeprism.experiments._answer_exhibits import chart_mechanism, tabulate_mechanism
from routeprism.experiments._contrasts import Mechanism, mechanisms
from routeprism.experiments._experiment import AnswerSelection, AuditOutcome, Conclusion, Experiment
from routeprism.experiments.answers import sides_read
from routeprism.experiments.statements import excludes_zero, show_estimate, show_flags
from routeprism.runs import EstimateRow, Rows

__all__ = ["experiment", "mechanism_statements"]

_HALF = 0.5
"""The share of the whole change at which an operation counts as its cause."""

Place = tuple[str, str, str]
"""Schedule, model, filler."""
Parts = dict[tuple[str, str, str], EstimateRow]
"""(quantity, policy, arm) → its row."""


def mechanism_statements(
    rows: Sequence[EstimateRow], mechanisms: Sequence[Mechanism]
) -> Iterator[Statement]:
    """Describe each policy and schedule: its sources, and each model's answers."""
    places: dict[Place, Parts] = {}
    for row in Rows.of(rows).where(experiment="mechanism", stratum="all", mask="", batch=""):
        parts = places.setdefault((row.schedule, row.model, row.filler), {})
        parts[row.quantity, row.policy, row.arm] = row
    for mechanism in mechanisms:
        for place, parts in places.items():
            readings = ("D_res", "H") if place[1] else ("J",)
            statements = (_describe(mechanism, name, place, parts) for name in readings)
            yield from [statement for statement in statements if statement is not None][:1]


def _describe(mechanism: Mechanism, quantity: str, place: Place, parts: Parts) -> Statement | None:
    """Make the statement about one quantity; None if the run does not have it."""
    arms = {
        following: row
        for following, name in mechanism.arms.items()
        if (row := parts.get((f"delta_op.{quantity}", name, "+".join(following))))
    }
    whole = arms.get(mechanism.operations)
    if whole is None:
        return None
    schedule, model, filler = place
    alone = {following[0]: row for following, row in arms.items() if len(following) == 1}
    reader = f", read by {model}, filler {filler}" if model else ""
    phrase = compose("{quantity} changes by {value}", quantity=quantity, value=show_estimate(whole))
    if len(mechanism.operations) > 1:
        phrase += (f" with {' and '.join(mechanism.operations)} in arrival order",)
        for name, row in alone.items():
            phrase += compose(", {value} with {name} alone", value=show_estimate(row), name=name)
        phrase += (f"; {_describe_cause(whole, alone)}",)
    severity: Severity = "problem" if excludes_zero(whole) else "info"
    return Statement(
        phrase,
        "mechanism",
        mechanism.policy,
        schedule,
        severity,
        scope=f"{schedule}{reader}, against its canonical arm",
        flags=show_flags(whole),
    )


def _describe_cause(whole: EstimateRow, alone: Mapping[str, EstimateRow]) -> str:
    """Name the operations that alone make half of the change or more, with an interval of it."""
    if not excludes_zero(whole):
        return "no effect of order is shown"
    total = whole.estimate or 0.0
    causes = [
        name
        for name, row in alone.items()
        if excludes_zero(row) and (row.estimate or 0.0) / total >= _HALF
    ]
    if not causes:
        return "no operation alone accounts for half of it"
    return f"{' and '.join(causes)} alone accounts for half of it or more"


def _select_answers(
    row: EstimateRow, configuration: Mapping[str, Any], conditions: Collection[str]
) -> AnswerSelection:
    return AnswerSelection("routes", sides_read(row), ("",))


def conclude_mechanism(outcome: AuditOutcome) -> Conclusion:
    """Describe which operations make the difference, and store which policy is which arm."""
    effects = mechanisms(outcome.plan.policies)
    interfaces = outcome.setting.interfaces
    return Conclusion(
        tuple(mechanism_statements(outcome.rows, effects)),
        {"mechanism": [each.finding(interfaces[each.policy]) for each in effects]},
    )


experiment = Experiment(
    name="mechanism",
    title="Mechanism",
    summary="Fix order-dependent operations to source order, one by one and together.",
    rank=15,
    answers="routes",
    answers_behind=_select_answers,
    tables=tabulate_mechanism,
    charts=chart_mechanism,
    conclude=conclude_mechanism,
)
