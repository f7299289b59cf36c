"""The layers that order reaches: records kept, records shown, text and state, for each policy."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from routeprism.exhibits import (
    Chart,
    Results,
    Statement,
    Table,
    format_row,
    format_share,
    make_table,
    place_point,
    read_limits,
    shorten,
)
from routeprism.experiments._case_values import (
    NOTES_DIFFER,
    NOTES_MATCHED,
    STATES_CHANGED,
    STATES_COMPARED,
)
from routeprism.experiments._experiment import AuditOutcome, Conclusion, Experiment
from routeprism.experiments._observations import mark_blind_spots
from routeprism.experiments.builds import build_statements
from routeprism.experiments.statements import (
    compose_rows,
    join_phrases,
    mark_incomplete,
    show_flags,
)
from routeprism.orders import describe_arrival
from routeprism.quantities import find_quantity
from routeprism.runs import Rows


def describe_layers(rows: Rows) -> Iterator[Statement]:
    """State for each policy and schedule how many pairs of routes differ at each layer."""
    for (policy, schedule), group in (
        rows.plain(experiment="routes", model="").group("policy", "schedule").items()
    ):
        if not schedule or "J" not in group:
            continue
        counts = [
            compose_rows("{layer} {count:share}", layer=layer, count=row)
            for layer, quantity in zip(_LAYER_NAMES, _LAYERS, strict=True)
            if (row := group.get(f"{quantity}_count")) is not None
        ]
        parts = compose_rows(
            "questions that differ: {counts}; J = {J}",
            counts=join_phrases(counts, ", "),
            J=group["J"],
        )
        scope, flags = describe_arrival(schedule), show_flags(group["J"])
        yield Statement(parts, "layers", policy, schedule, scope=scope, flags=flags)


def describe_notes(rows: Rows) -> Iterator[Statement]:
    """Describe for each policy and schedule in which fields notes of the same records differ."""
    plain = rows.plain(experiment="routes", model="")
    for (policy, schedule), counts in plain.group("policy", "schedule").items():
        if NOTES_MATCHED not in counts or not counts[NOTES_MATCHED].estimate:
            continue
        differing = (
            compose_rows("{n:count} in {field}", n=row, field=quantity.part)
            for name, row in counts.items()
            if (quantity := find_quantity(name)).family == NOTES_DIFFER
        )
        parts = compose_rows(
            "of {matched:count} notes of the same records, these differ: {differing}",
            matched=counts[NOTES_MATCHED],
            differing=join_phrases(differing, ", "),
        )
        if STATES_COMPARED in counts:
            parts += compose_rows(
                "; without their insertion order, the states still differ in {changed:count} of "
                "{pools:count} pools",
                changed=counts[STATES_CHANGED],
                pools=counts[STATES_COMPARED],
            )
        yield Statement(parts, "notes", policy, schedule, scope=describe_arrival(schedule))


def conclude_layers(outcome: AuditOutcome) -> Conclusion:
    """Describe at which layers order shows, and what chance and blind spots make of it."""
    plan, observations = outcome.plan, outcome.observations
    statements: dict[str, tuple[Statement, ...]] = {}
    for statement in describe_layers(outcome.rows):
        statements[statement.policy] = (*statements.get(statement.policy, ()), statement)
    statements |= build_statements(outcome.rows, outcome.noisy, plan.builds)
    statements = mark_blind_spots(observations, statements)
    if outcome.is_incomplete:
        statements = {
            policy: tuple(map(mark_incomplete, each)) for policy, each in statements.items()
        }
    return Conclusion((*chain.from_iterable(statements.values()), *describe_notes(outcome.rows)))


_LAYERS = ("retained_changed", "V_changed", "C_changed", "I_changed")
_LAYER_NAMES = ("records kept", "records shown", "text", "internal state")


def tabulate_layers(results: Results) -> list[Table]:
    """Show at which layers order had an effect, for each policy and schedule."""
    rows = results.rows.where(experiment="routes", arm="")
    models = [model for model in rows.values("model") if model]
    groups = rows.group("policy", "schedule", "model")
    cells = [
        (
            policy,
            schedule,
            *(format_share(group.get(f"{layer}_count")) for layer in _LAYERS),
            *(format_row(groups.get((policy, schedule, m), {}).get("H")) for m in models),
            format_row(group["J"]),
        )
        for (policy, schedule), group in rows.where(model="").group("policy", "schedule").items()
        if policy and "J" in group
    ]
    answers = tuple(f"answers differ ({model})" for model in models)
    return make_table(
        "layers",
        "Where order enters",
        "Pairs of routes that differ, layer by layer: records kept, records shown (V), text shown "
        "(C), internal state (I), and the share of first answers that differ (H). J is the overlap "
        "of the records shown: 1 means that both routes show the same records.",
        ("policy", "schedule", "kept", "shown", "text", "state", *answers, "J"),
        cells,
        names=2,
    )


_TIES = "count.{part}_ties"
"""The family of ties that processing order decided."""


def tabulate_ties(results: Results) -> list[Table]:
    """Show how often processing order decided between equals."""
    groups = {
        place: {name: row for name, row in group.items() if find_quantity(name).family == _TIES}
        for place, group in results.rows.where(experiment="routes", model="", arm="")
        .group("policy", "schedule")
        .items()
    }
    counts = list(dict.fromkeys(name for group in groups.values() for name in group))
    return make_table(
        "ties",
        "Ties that processing order decided",
        "How often two records were equal and the one processed first won, summed over questions.",
        ("policy", "schedule", *(find_quantity(name).part for name in counts)),
        [
            (*place, *(format_row(group.get(name)) for name in counts))
            for place, group in groups.items()
            if group
        ],
        names=2,
    )


def draw_profile(
    results: Results, rows: Rows, name: str, title: str, quantity: str, *, reverse: bool = False
) -> list[Chart]:
    """Draw a quantity unit by unit, with the mean and its interval; `reverse` draws 1 minus it."""
    values: list[dict[str, Any]] = []
    described = []
    groups = rows.where(arm="").group("policy", "schedule", "model")
    series = {
        place[2:]: means
        for place, means in results.units.items()
        if place[:2] == ("routes", quantity)
    }
    for names, means in series.items():
        label = " · ".join(map(shorten, filter(None, names)))
        values.extend(
            {
                "kind": "unit",
                "label": label,
                "estimate": 1 - mean if reverse else mean,
                "jitter": place_point(unit),
            }
            for unit, mean in enumerate(means.values())
        )
        row = groups.get(names, {}).get(quantity)
        if row is None or row.estimate is None:
            continue
        limits = read_limits(row)
        if reverse:
            lower, upper = (None if x is None else 1 - x for x in (row.upper, row.lower))
            limits = {"estimate": 1 - row.estimate, "lower": lower, "upper": upper}
        values.append({"kind": "mean", "label": label, **limits})
        described.append(f"{label} {limits['estimate']:.3f}")
    if not values:
        return []
    unit = next((row.unit for row in rows if row.unit), "unit")
    words = f"One point for each {unit}, with the mean and its interval. Means: "
    return [Chart(name, title, f"{words}{'; '.join(described)}.", "profile", tuple(values))]


def chart_overlap(results: Results) -> list[Chart]:
    """Draw the change of the records shown, unit by unit."""
    rows = results.rows.where(experiment="routes")
    title = "Change of the records shown (1 − J)"
    return draw_profile(results, rows, "profile-J", title, "J", reverse=True)


experiment = Experiment(
    name="layers",
    title="Layers",
    summary="Compare the records kept, the records shown, the text and the state of both routes.",
    rank=0,
    columns=("routes",),
    row_filter=lambda row: not row.model,
    tables=lambda results: [*tabulate_layers(results), *tabulate_ties(results)],
    charts=chart_overlap,
    conclude=conclude_layers,
)
