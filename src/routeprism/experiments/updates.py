"""Facts that change: which value a memory ends with, and what keeps it from ending with the old."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
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
from routeprism.experiments._update_values import PREVENTED
from routeprism.experiments.severity import describe_arrival
from routeprism.experiments.statements import is_claim_shown, show_estimate, show_flags
from routeprism.orders import FORWARD, name_reference
from routeprism.runs import EstimateRow, Rows

__all__ = ["describe_updates", "experiment"]

_NEGLIGIBLE = 1e-6
"""Below this a difference of mean counts is a rounding error."""

Group = Mapping[str, EstimateRow]
"""Quantity → its row."""

Phrase = tuple[Severity, tuple[Part, ...]]
"""A part of a diagnosis, and how severe it is."""


def describe_updates(rows: Rows, arrivals: Collection[str] = ()) -> list[Statement]:
    """Describe for each policy which value it ends with in source order and in each order, and why.

    Of `arrivals`, the names of arrival models, the rows are expectations over many orders.
    """
    plain = rows.where(experiment="updates", stratum="all", mask="", batch="", arm="", model="")
    groups: dict[str, dict[str, Group]] = {}
    for (policy, schedule), quantities in plain.group("policy", "schedule").items():
        if policy:
            groups.setdefault(policy, {})[schedule] = quantities
    statements: list[Statement] = []
    expected: list[Statement] = []
    for policy, by_schedule in groups.items():
        forward = by_schedule.get(FORWARD.name, {})
        routes = {name: group for name, group in by_schedule.items() if "stale_only.route" in group}
        if not routes:
            continue
        source = list(_describe_source(policy, next(iter(routes.values())), forward))
        ranked: list[tuple[int, Statement]] = []
        for schedule, group in routes.items():
            if schedule in arrivals:
                expected += _describe_expected(policy, schedule, group)
            else:
                ranked += _describe_route(policy, schedule, group, is_clean=not source)
        ranked += source
        statements += [statement for _, statement in sorted(ranked, key=lambda pair: pair[0])]
    return statements + expected


def _describe_expected(policy: str, schedule: str, group: Group) -> Iterator[Statement]:
    """Describe how many questions end with the old value on average over an arrival model."""
    if not _is_changed(group):
        return
    parts = compose(
        "on average {number} questions about updates end with the old value under {when}{already}; "
        "{remedy}",
        number=format_share(group["stale_only.route_count"]),
        when=describe_arrival(schedule),
        already=_describe_already(group),
        remedy=_describe_remedy(group),
    )
    flags = show_flags(group["stale_only.route"])
    yield Statement(parts, "updates", policy, schedule, "problem", scope=schedule, flags=flags)


def _is_changed(group: Group) -> bool:
    return bool(_count(group, "stale_only.by_order_count"))


def _describe_route(
    policy: str, schedule: str, group: Group, *, is_clean: bool
) -> Iterator[tuple[int, Statement]]:
    """Describe what one order does, each statement with its rank.

    `is_clean` means that nothing is wrong in source order.
    """
    phrases = [
        _describe_stale(group, schedule),
        _describe_missing(group, "route", "in this order"),
        _describe_both(group, "route", "in this order"),
        _describe_inverted(group, "in this order"),
        _describe_discarded(group, "in this order"),
    ]
    if is_clean and not any(phrases):
        number = group["current_exposed.route_count"]
        parts = compose(
            "all {number} questions about changed facts are shown the current value alone, in "
            "source order and in this order",
            number=Number(str(number.queries), number),
        )
        phrases = [("good", parts)]
    yield from _rank(phrases, group, policy, schedule)


def _describe_source(policy: str, group: Group, forward: Group) -> Iterator[tuple[int, Statement]]:
    """Describe what is wrong in source order; `group` is that of any route."""
    phrases = [
        _describe_stale_source(group),
        _describe_missing(group, "forward", "in source order"),
        _describe_both(group, "forward", "in source order"),
        _describe_inverted(forward, "in source order"),
        _describe_discarded(forward, "in source order"),
    ]
    yield from _rank(phrases, group, policy)


def _rank(
    phrases: Sequence[Phrase | None], group: Group, policy: str, schedule: str = ""
) -> Iterator[tuple[int, Statement]]:
    """Make the statements of a route, each with its rank among those of its memory."""
    flags = show_flags(group["stale_only.route"])
    for rank, phrase in enumerate(phrases):
        if phrase is not None:
            severity, parts = phrase
            yield (
                rank,
                Statement(
                    parts, "updates", policy, schedule, severity, scope=schedule, flags=flags
                ),
            )


def _count(group: Group, quantity: str) -> float:
    row = group.get(quantity)
    return 0 if row is None else row.estimate or 0


def _describe_stale(group: Group, schedule: str) -> Phrase | None:
    """Count what ends with the old value in this order, and what event time would prevent."""
    if not _is_changed(group):
        return None
    is_redelivery = schedule.startswith("redeliver")
    when = (
        "when old records are delivered again"
        if is_redelivery
        else "when records arrive in this order"
    )
    return "problem", compose(
        "{number} questions about updates end with the old value {when}{already}{remedy}",
        number=format_share(group["stale_only.route_count"]),
        when=when,
        already=_describe_already(group),
        remedy=() if schedule == "event-time" else ("; ", *_describe_remedy(group)),
    )


def _describe_already(group: Group) -> tuple[Part, ...]:
    row = group["stale_only.forward_count"]
    if not row.estimate:
        return ()
    return compose(" ({number} in source order)", number=format_share(row))


def _describe_remedy(group: Group) -> tuple[Part, ...]:
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


def _describe_stale_source(group: Group) -> Phrase | None:
    row = group["stale_only.forward_count"]
    if not row.estimate:
        return None
    return "problem", compose(
        "{number} questions about updates end with the old value in source order already",
        number=format_share(row),
    )


def _describe_missing(group: Group, side: str, when: str) -> Phrase | None:
    """Count the questions that are shown neither value."""
    row = group[f"stale_only.{side}_count"]
    number = (row.queries or 0) - _count(group, f"current_exposed.{side}_count")
    number -= row.estimate or 0
    if number < _NEGLIGIBLE:
        return None
    return "problem", compose(
        "{number} questions about updates end with neither value {when}",
        number=Number(f"{format_count(number)} of {row.queries}", row),
        when=when,
    )


def _describe_both(group: Group, side: str, when: str) -> Phrase | None:
    row = group[f"both_exposed.{side}_count"]
    if not row.estimate:
        return None
    last = group.get(f"stale_last.{side}_count")
    parts = compose(
        "{number} questions are shown both values {when}", number=format_share(row), when=when
    )
    if last is not None:
        parts += compose(", and the old one comes last in {number}", number=format_row(last))
    return "warning", parts


def _describe_inverted(group: Group, when: str) -> Phrase | None:
    row = group.get("count.inverted_supersessions")
    if row is None or not row.estimate:
        return None
    return "problem", compose(
        "an older record displaced a newer one {when} ({number} in all)",
        number=format_row(row),
        when=when,
    )


def _describe_discarded(group: Group, when: str) -> Phrase | None:
    row = group.get("count.discarded_updates")
    if row is None or not row.estimate:
        return None
    return "problem", compose(
        "{number} {updates} discarded {when} although nothing newer had arrived",
        number=format_row(row),
        updates="update was" if row.estimate == 1 else "updates were",
        when=when,
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
