"""Facts that change: which value a memory ends with, and what keeps it from ending with the old."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

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
    write_share,
)
from routeprism.experiments._experiment import AuditOutcome, Conclusion, Experiment, select_sides
from routeprism.experiments._update_values import PREVENTED
from routeprism.experiments.statements import Phrase, compose_rows, state_row
from routeprism.judge import is_claim_shown
from routeprism.orders import FORWARD, describe_arrival
from routeprism.runs import EstimateRow, Rows

_NEGLIGIBLE = 1e-6
"""Below this a difference of mean counts is a rounding error."""

Group = Mapping[str, EstimateRow]
"""Quantity → its row."""

Fault = tuple[Severity, Phrase]
"""A part of a diagnosis, and how severe it is."""


def describe_updates(rows: Rows, arrivals: Collection[str] = ()) -> list[Statement]:
    """Describe for each policy which value it ends with in source order and in each order, and why.

    Of `arrivals`, the names of arrival models, the rows are expectations over many orders.
    """
    groups: dict[str, dict[str, Group]] = {}
    plain = rows.plain(experiment="updates", model="")
    for (policy, schedule), quantities in plain.group("policy", "schedule").items():
        if policy:
            groups.setdefault(policy, {})[schedule] = quantities
    statements: list[Statement] = []
    expected: list[Statement] = []
    for by_schedule in groups.values():
        forward = by_schedule.get(FORWARD.name, {})
        routes = {name: group for name, group in by_schedule.items() if "stale_only.route" in group}
        if not routes:
            continue
        any_route = next(iter(routes.values()))
        stale = _describe_count(
            any_route["stale_only.forward_count"],
            "{row:share} questions about updates end with the old value in source order already",
        )
        source = [stale, *_list_faults(any_route, forward, "forward", "in source order")]
        ranked: list[tuple[int, Statement]] = []
        for schedule, group in routes.items():
            if schedule in arrivals:
                expected += _describe_expected(group)
            else:
                ranked += _describe_route(group, is_clean=not any(source))
        ranked += _rank(source, any_route, schedule="")
        statements += [statement for _, statement in sorted(ranked, key=lambda pair: pair[0])]
    return statements + expected


def _describe_expected(group: Group) -> Iterator[Statement]:
    """Describe how many questions end with the old value on average over an arrival model."""
    row = group["stale_only.route"]
    if _count(group, "stale_only.by_order_count"):
        yield state_row(
            "updates",
            row,
            "on average {number} questions about updates end with the old value under "
            "{when}{already}; {remedy}",
            severity="problem",
            number=_show_mean(group["stale_only.route_count"]),
            when=describe_arrival(row.schedule),
            already=_describe_already(group),
            remedy=_describe_remedy(group),
        )


def _show_mean(row: EstimateRow) -> Number:
    return Number(f"{format_count(row.estimate or 0)} of {row.queries}", row)


def _describe_route(group: Group, *, is_clean: bool) -> Iterator[tuple[int, Statement]]:
    """Describe what one order does, each statement with its rank.

    `is_clean` means that nothing is wrong in source order.
    """
    faults = [_describe_stale(group), *_list_faults(group, group, "route", "in this order")]
    if is_clean and not any(faults):
        number = group["current_exposed.route_count"]
        parts = compose(
            "all {number} questions about changed facts are shown the current value alone, in "
            "source order and in this order",
            number=Number(str(number.queries), number),
        )
        faults = [("good", parts)]
    yield from _rank(faults, group, schedule=group["stale_only.route"].schedule)


def _rank(
    faults: Sequence[Fault | None], group: Group, schedule: str
) -> Iterator[tuple[int, Statement]]:
    """Make the statements of a route, each with its rank among those of its memory."""
    row = group["stale_only.route"]
    for rank, fault in enumerate(faults):
        if fault is not None:
            severity, parts = fault
            scope = describe_arrival(schedule)
            statement = state_row("updates", row, parts, severity=severity, scope=scope)
            yield rank, replace(statement, schedule=schedule)


def _count(group: Group, quantity: str) -> float:
    row = group.get(quantity)
    return 0 if row is None else row.estimate or 0


def _describe_stale(group: Group) -> Fault | None:
    """Count what ends with the old value in this order, and what event time would prevent."""
    if not _count(group, "stale_only.by_order_count"):
        return None
    row = group["stale_only.route_count"]
    is_redelivery = row.schedule.startswith("redeliver")
    return "problem", compose_rows(
        "{row:share} questions about updates end with the old value when {when}{already}{remedy}",
        row=row,
        when="old records are delivered again" if is_redelivery else "records arrive in this order",
        already=_describe_already(group),
        remedy=() if row.schedule == "event-time" else ("; ", *_describe_remedy(group)),
    )


def _describe_already(group: Group) -> Phrase:
    row = group["stale_only.forward_count"]
    return compose_rows(" ({row:share} in source order)", row=row) if row.estimate else ()


def _describe_remedy(group: Group) -> Phrase:
    """Describe how many cases disappear when records are added by event time, if measured."""
    ends, row = group["stale_only.route_count"], group.get(PREVENTED)
    if row is None or row.queries != ends.queries:  # some pools have no route in that order
        return ("audit with schedule event-time to see how many resolving by event time prevents",)
    prevented = row.estimate or 0.0
    if prevented < _NEGLIGIBLE:
        return ("adding the records in event-time order prevents none of them",)
    left = (ends.estimate or 0.0) - prevented
    amount = "all" if left < _NEGLIGIBLE else format_count(prevented)
    return compose("resolving by event time prevents {amount} of them", amount=Number(amount, row))


def _list_faults(group: Group, built: Group, side: str, when: str) -> Iterator[Fault | None]:
    """List what else is wrong on one route; `built` has the counts of its builds."""
    yield _describe_missing(group, side, when)
    both = _describe_count(
        group[f"both_exposed.{side}_count"],
        "{row:share} questions are shown both values {when}",
        "warning",
        when=when,
    )
    if both is not None and (last := group.get(f"stale_last.{side}_count")) is not None:
        both = (
            both[0],
            both[1] + compose_rows(", and the old one comes last in {n:count}", n=last),
        )
    yield both
    yield _describe_count(
        built.get("count.inverted_supersessions"),
        "an older record displaced a newer one {when} ({row:count} in all)",
        when=when,
    )
    alone = _count(built, "count.discarded_updates") == 1
    yield _describe_count(
        built.get("count.discarded_updates"),
        "{row:count} {updates} discarded {when} although nothing newer had arrived",
        updates="update was" if alone else "updates were",
        when=when,
    )


def _describe_count(
    row: EstimateRow | None, template: str, severity: Severity = "problem", **values: Part
) -> Fault | None:
    if row is None or not row.estimate:
        return None
    return severity, compose_rows(template, row=row, **values)


def _describe_missing(group: Group, side: str, when: str) -> Fault | None:
    """Count the questions that are shown neither value."""
    row = group[f"stale_only.{side}_count"]
    number = (row.queries or 0) - _count(group, f"current_exposed.{side}_count")
    number -= row.estimate or 0
    if number < _NEGLIGIBLE:
        return None
    return "problem", compose(
        "{number} questions about updates end with neither value {when}",
        number=Number(write_share(number, row.queries or 0), row),
        when=when,
    )


def _describe_answers(rows: Rows) -> Iterator[Statement]:
    """Describe how often a model gives an answer that was once right."""
    groups = rows.plain(experiment="updates").group("policy", "schedule", "model", "filler")
    for (_, schedule, model, filler), group in groups.items():
        change = group.get("outdated_answer.route-forward")
        if model and change is not None:
            raised = (change.estimate or 0.0) > 0 and is_claim_shown(change, group)
            yield state_row(
                "updates",
                change,
                "{forward} of the answers are outdated in source order, {route} in this order "
                "({change})",
                severity="problem" if raised else "info",
                scope=f"{schedule}, read by {model}, filler {filler}",
                forward=group["outdated_answer.forward"],
                route=group["outdated_answer.route"],
                change=format_row(change, signed=True),
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


experiment = Experiment(
    name="updates",
    title="Facts that change",
    summary="Compare which value of a changed fact each route ends with: current or old.",
    rank=7,
    answers="routes",
    answers_behind=partial(select_sides, "routes"),
    conclude=_conclude,
    tables=tabulate_updates,
    charts=chart_updates,
)
