"""Facts that change: which value a memory ends with, and what keeps it from ending with the old."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from routeprism.exhibits import (
    Chart,
    Number,
    Part,
    Results,
    Severity,
    Statement,
    Table,
    compose,
    draw_forest,
    format_count,
    format_row,
    format_share,
    make_table,
    shorten,
)
from routeprism.experiments._experiment import AnswerSelection, AuditOutcome, Conclusion, Experiment
from routeprism.experiments.severity import describe_arrival
from routeprism.experiments.statements import is_claim_shown, show_estimate, show_flags
from routeprism.orders import FORWARD, name_reference
from routeprism.runs import EstimateRow, Rows

__all__ = ["describe_updates", "experiment"]

EVENT_TIME = "event-time"
"""The schedule that shows what resolving by event time would prevent."""

_NEGLIGIBLE = 1e-6
"""Below this a difference of mean counts is a rounding error."""

Group = Mapping[str, EstimateRow]
"""Quantity → its row."""


def describe_updates(rows: Rows, arrivals: Collection[str] = ()) -> list[Statement]:
    """Describe for each policy and order which value it ends with, and why.

    Of `arrivals`, the names of arrival models, the rows are expectations over many orders.
    """
    plain = rows.where(experiment="updates", stratum="all", mask="", batch="", arm="")
    groups = plain.where(model="").group("policy", "schedule")
    late = {
        schedule: group["count.updates_out_of_order"]
        for (policy, schedule), group in groups.items()
        if not policy and "count.updates_out_of_order" in group
    }
    statements: list[Statement] = []
    expected: list[Statement] = []
    for (policy, schedule), group in groups.items():
        if policy and "stale_only.route" in group:
            forward = groups.get((policy, FORWARD.name), {})
            resolved = groups.get((policy, EVENT_TIME), {})
            if schedule in arrivals:
                expected += _describe_expected(policy, schedule, group, resolved, late)
            else:
                statements += _describe_route(policy, schedule, group, forward, resolved, late)
    return statements + expected


def _describe_expected(
    policy: str, schedule: str, group: Group, resolved: Group, late: Mapping[str, EstimateRow]
) -> Iterator[Statement]:
    """Describe how many questions end with the old value on average over an arrival model."""
    if not _is_changed(group):
        return
    parts = compose(
        "on average {number} questions about updates end with the old value under {when}; {remedy}",
        number=format_share(group["stale_only.route_count"]),
        when=describe_arrival(schedule),
        remedy=_describe_remedy(group, resolved, late),
    )
    flags = show_flags(group["stale_only.route"])
    yield Statement(parts, "updates", policy, schedule, "problem", scope=schedule, flags=flags)


def _is_changed(group: Group) -> bool:
    row = group.get("stale_only.by_order_count")
    return row is not None and bool(row.estimate)


def _describe_route(
    policy: str,
    schedule: str,
    group: Group,
    forward: Group,
    resolved: Group,
    late: Mapping[str, EstimateRow],
) -> Iterator[Statement]:
    phrases = [
        _describe_stale(group, schedule, resolved, late),
        _describe_forward(group),
        _describe_missing(group),
        _describe_both(group),
        _describe_inverted(group),
        _describe_discarded(forward or group),
    ]
    flags = show_flags(group["stale_only.route"])
    severities: list[tuple[Severity, tuple[Part, ...]]] = [
        phrase for phrase in phrases if phrase is not None
    ]
    if not severities:
        number = group["current_exposed.route_count"]
        parts = compose(
            "all {number} questions about changed facts are shown the current value alone, in "
            "source order and in this order",
            number=Number(str(number.queries), number),
        )
        severities = [("good", parts)]
    for severity, parts in severities:
        yield Statement(parts, "updates", policy, schedule, severity, scope=schedule, flags=flags)


def _count(group: Group, quantity: str) -> float:
    row = group.get(quantity)
    return 0 if row is None else row.estimate or 0


def _describe_stale(
    group: Group, schedule: str, resolved: Group, late: Mapping[str, EstimateRow]
) -> tuple[Severity, tuple[Part, ...]] | None:
    """Count what ends with the old value in this order, and what event time would prevent."""
    row = group["stale_only.route_count"]
    if not _is_changed(group):
        return None
    is_redelivery = schedule.startswith("redeliver")
    when = (
        "when old records are delivered again"
        if is_redelivery
        else "when records arrive in this order"
    )
    return "problem", compose(
        "{number} questions about updates end with the old value {when}; {remedy}",
        number=format_share(row),
        when=when,
        remedy=_describe_remedy(group, resolved, late),
    )


def _describe_remedy(
    group: Group, resolved: Group, late: Mapping[str, EstimateRow]
) -> tuple[Part, ...]:
    """Describe how many cases disappear when records are added by event time, if measured."""
    ends = _count(group, "stale_only.route_count")
    in_order = late.get(FORWARD.name)
    if in_order is not None and not in_order.estimate:  # source order is event time
        left = ends - _count(group, "stale_only.by_order_count")
        row = group["stale_only.by_order_count"]
    elif "stale_only.route_count" in resolved:
        row = resolved["stale_only.route_count"]
        left = min(ends, _count(resolved, "stale_only.route_count"))
    else:
        return ("audit with schedule event-time to see how many resolving by event time prevents",)
    if left < _NEGLIGIBLE:
        return compose("resolving by event time prevents {all} of them", all=Number("all", row))
    prevented = Number(format_count(ends - left), row)
    return compose("resolving by event time prevents {number} of them", number=prevented)


def _describe_forward(group: Group) -> tuple[Severity, tuple[Part, ...]] | None:
    row = group["stale_only.forward_count"]
    if not row.estimate:
        return None
    return "problem", compose(
        "{number} questions about updates end with the old value in source order already",
        number=format_share(row),
    )


def _describe_missing(group: Group) -> tuple[Severity, tuple[Part, ...]] | None:
    """Count the questions that are shown neither value in source order."""
    row = group["stale_only.forward_count"]
    current, stale = (f"{name}.forward_count" for name in ("current_exposed", "stale_only"))
    number = (row.queries or 0) - _count(group, current) - _count(group, stale)
    if number <= 0:
        return None
    return "problem", compose(
        "{number} questions about updates end with neither value in source order",
        number=Number(f"{format_count(number)} of {row.queries}", row),
    )


def _describe_both(group: Group) -> tuple[Severity, tuple[Part, ...]] | None:
    row = group["both_exposed.route_count"]
    if not row.estimate:
        return None
    last = group.get("stale_last.route_count")
    parts = compose("{number} questions are shown both values", number=format_share(row))
    if last is not None:
        parts += compose(", and the old one comes last in {number}", number=format_row(last))
    return "warning", parts


def _describe_inverted(group: Group) -> tuple[Severity, tuple[Part, ...]] | None:
    row = group.get("count.inverted_supersessions")
    if row is None or not row.estimate:
        return None
    return "problem", compose(
        "an older record displaced a newer one ({number} in all)", number=format_row(row)
    )


def _describe_discarded(group: Group) -> tuple[Severity, tuple[Part, ...]] | None:
    row = group.get("count.discarded_updates")
    if row is None or not row.estimate:
        return None
    return "problem", compose(
        "{number} updates were discarded although nothing newer had arrived in source order",
        number=format_row(row),
    )


def _describe_answers(rows: Rows) -> Iterator[Statement]:
    """Describe how often a model gives an answer that was once right."""
    plain = rows.where(experiment="updates", stratum="all", mask="", batch="", arm="")
    for (policy, schedule, model, filler), group in plain.group(
        "policy", "schedule", "model", "filler"
    ).items():
        if model and "outdated_answer.route-forward" in group:
            change = group["outdated_answer.route-forward"]
            raised = (change.estimate or 0.0) > 0 and is_claim_shown(change, group)
            parts = compose(
                "{forward} of the answers are outdated in source order, {route} in this order "
                "({change})",
                forward=show_estimate(group["outdated_answer.forward"]),
                route=show_estimate(group["outdated_answer.route"]),
                change=format_row(change, signed=True),
            )
            yield Statement(
                parts,
                "updates",
                policy,
                schedule,
                "problem" if raised else "info",
                scope=f"{schedule}, read by {model}, filler {filler}",
                flags=show_flags(change),
            )


def _conclude(outcome: AuditOutcome) -> Conclusion:
    arrivals = [model.name for model in outcome.plan.arrivals]
    return Conclusion((*describe_updates(outcome.rows, arrivals), *_describe_answers(outcome.rows)))


_COLUMNS = {
    "old value alone, source order": "stale_only.forward_count",
    "old value alone": "stale_only.route_count",
    "both": "both_exposed.route_count",
    "current value shown": "current_exposed.route_count",
}


def tabulate_updates(results: Results) -> list[Table]:
    """Show which value each memory ends with, and what it did to updates on the way."""
    rows = results.rows.where(experiment="updates", arm="", batch="")
    models = [model for model in rows.values("model") if model]
    groups = rows.group("policy", "schedule", "model")
    counts = ("count.inverted_supersessions", "count.discarded_updates")
    lines = [
        (
            policy,
            schedule,
            *(format_share(group.get(quantity)) for quantity in _COLUMNS.values()),
            *(format_row(group.get(quantity)) for quantity in counts),
            *(
                format_row(groups.get((policy, schedule, m), {}).get("outdated_answer.route"))
                for m in models
            ),
        )
        for (policy, schedule), group in rows.where(model="").group("policy", "schedule").items()
        if "stale_only.route_count" in group
    ]
    return make_table(
        "updates",
        "Which value a memory ends with",
        "Questions about facts that changed: how many are shown the old value without the current "
        "one, how many both, how often an older record displaced a newer one, how many updates "
        "were discarded, and the share of outdated answers.",
        (
            "policy",
            "schedule",
            *_COLUMNS,
            "displaced by older",
            "discarded",
            *(f"outdated answers ({model})" for model in models),
        ),
        lines,
        names=2,
    )


_CHARTED = ("stale_only.forward", "stale_only.route", "outdated_answer.route")


def chart_updates(results: Results) -> list[Chart]:
    """Draw the share of questions that are shown the old value alone."""
    lines = [
        (" · ".join(filter(None, map(shorten, (row.policy, row.schedule, row.quantity)))), row)
        for row in results.rows.where(
            experiment="updates", stratum="all", mask="", batch="", arm="", quantity=_CHARTED
        )
        if row.estimate is not None
    ]
    return [draw_forest("updates", "Questions that end with the old value", lines)] if lines else []


def _answers_behind(
    row: EstimateRow, configuration: Mapping[str, Any], conditions: Collection[str]
) -> AnswerSelection:
    side = row.quantity.rpartition(".")[2]
    reference = name_reference(row.schedule)
    sides = {"forward": (reference,), "route": (row.schedule,)}.get(side, ())
    return AnswerSelection("routes", sides, ("",))


experiment = Experiment(
    name="updates",
    title="Facts that change",
    summary="Compare which value of a changed fact each route ends with: current or old.",
    rank=7,
    answers="routes",
    answers_behind=_answers_behind,
    conclude=_conclude,
    tables=tabulate_updates,
    charts=chart_updates,
)
