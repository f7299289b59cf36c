"""Tables and charts of the route audit: layers, evidence, ties, and what is kept over time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from routeprism.exhibits import (
    Chart,
    Results,
    Table,
    format_row,
    format_share,
    make_table,
    name_chart,
    place_point,
    read_limits,
    shorten,
)
from routeprism.experiments._diagnosis import conclude_layers
from routeprism.experiments._experiment import Experiment
from routeprism.experiments.over_time import conclude_over_time, moment_of
from routeprism.runs import EstimateRow, Finding, Rows

_LAYERS = ("retained_changed", "V_changed", "C_changed", "I_changed")


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


def tabulate_evidence(results: Results) -> list[Table]:
    """Show how much of the evidence each route still has."""
    groups = results.rows.where(experiment="retention", arm="").group(
        "policy", "schedule", "labels"
    )
    quantities = [f"recall.{where}.{side}" for where in ("retained", "exposed") for side in _SIDES]
    return make_table(
        "evidence",
        "What is left of the evidence",
        "Share of the records that carry an answer that each route keeps and shows, and J^T, the "
        "overlap of the evidence shown. The label source names where these labels come from.",
        (
            *("policy", "schedule", "labels", "kept, forward", "kept, other order"),
            *("shown, forward", "shown, other order", "J^T"),
        ),
        [
            (*place, *(format_row(group.get(q)) for q in quantities), format_row(group.get("J_T")))
            for place, group in groups.items()
            if any(quantity.startswith("recall.") for quantity in group)
        ],
        names=3,
    )


def tabulate_ties(results: Results) -> list[Table]:
    """Show how often processing order decided between equals."""
    groups = {
        place: {name: row for name, row in group.items() if name.endswith("_ties")}
        for place, group in results.rows.where(experiment="routes", model="", arm="")
        .group("policy", "schedule")
        .items()
    }
    counts = list(dict.fromkeys(name for group in groups.values() for name in group))
    return make_table(
        "ties",
        "Ties that processing order decided",
        "How often two records were equal and the one processed first won, summed over questions.",
        ("policy", "schedule", *(c.removeprefix("count.").removesuffix("_ties") for c in counts)),
        [
            (*place, *(format_row(group.get(name)) for name in counts))
            for place, group in groups.items()
            if group
        ],
        names=2,
    )


_MOST_MOMENTS = 8


def tabulate_moments(results: Results) -> list[Table]:
    """Show the overlap of what is kept as a history grows."""
    rows = results.rows.where(experiment="retention", quantity="overlap.retained", stratum="all")
    groups: dict[str, dict[str, EstimateRow]] = {}
    for row in rows.where(mask="", batch=""):
        if row.arm.startswith("t="):
            groups.setdefault(row.policy, {})[row.arm] = row
    arms = sorted({arm for group in groups.values() for arm in group}, key=moment_of)
    caption = "Overlap of the records kept forward and reversed after the first t records."
    if len(arms) > _MOST_MOMENTS:
        arms = [arm for arm in arms if arm[2:] in ("all", *(str(2**at) for at in range(20)))]
        caption += " Shown: t = 1, 2, 4, 8, … and the end; estimates.csv has every moment."
    return make_table(
        "over-time",
        "What is kept as the history grows",
        caption,
        ("policy", *arms),
        [(policy, *(format_row(g.get(arm)) for arm in arms)) for policy, g in groups.items()],
    )


def list_arms(results: Results) -> frozenset[str]:
    """Name the policies that are an arm of another one, with some operations in source order."""
    return frozenset(
        arm["policy"]
        for finding in results.findings.get("arms", ())
        for arm in finding.value
        if arm["policy"] != finding.policy
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


_SIDES = ("forward", "route")
_PLACES = {"retained": "kept", "exposed": "shown to the question"}

Cells = dict[tuple[str, str, str], EstimateRow]
"""(policy, kind of question, side) → its recall."""


def chart_evidence(results: Results) -> list[Chart]:
    """Draw recall of the evidence by policy, and by kind of question for each policy."""
    groups: dict[tuple[str, str], Cells] = {}
    for row in results.rows.where(experiment="retention", mask="", arm=""):
        quantity, _, rest = row.quantity.partition(".")
        where, _, side = rest.partition(".")
        if quantity == "recall" and side in _SIDES and row.estimate is not None:
            cells = groups.setdefault((row.schedule, where), {})
            cells[row.policy, row.stratum, side] = row
    arms = list_arms(results)
    charts: list[Chart] = []
    for (schedule, where), cells in groups.items():
        exposed = groups.get((schedule, "exposed"), {})
        if where != "retained" or _read_estimates(cells) != _read_estimates(exposed):
            charts += _chart_place(schedule, where, cells, arms)
    return charts


def _read_estimates(cells: Cells) -> dict[tuple[str, str, str], float | None]:
    return {place: row.estimate for place, row in cells.items()}


def _chart_place(schedule: str, where: str, cells: Cells, arms: Collection[str]) -> Iterator[Chart]:
    policies = list(dict.fromkeys(policy for policy, _, _ in cells))
    name = name_chart(where, schedule)
    title = f"Evidence {_PLACES.get(where, where)}, {shorten(schedule)}"
    if len(policies) > 1:
        lines = {policy: (policy, "all") for policy in policies}
        yield from _draw_pairs(f"coverage-{name}", f"{title}: by policy", lines, cells, schedule)
    for policy in policies:
        kinds = sorted({kind for owner, kind, _ in cells if owner == policy and kind != "all"})
        if len(kinds) < 2 or policy in arms or not _changes_recall(cells, policy):
            continue
        yield from _draw_pairs(
            f"coverage-{name_chart(policy, where, schedule)}-kinds",
            f"{title}: {shorten(policy)} by kind of question",
            {kind: (policy, kind) for kind in ("all", *kinds)},
            cells,
            schedule,
        )


def _changes_recall(cells: Cells, policy: str) -> bool:
    return any(
        row.estimate != cells[owner, kind, "route"].estimate
        for (owner, kind, side), row in cells.items()
        if owner == policy and side == "forward" and (owner, kind, "route") in cells
    )


def _draw_pairs(
    name: str, title: str, lines: Mapping[str, tuple[str, str]], cells: Cells, schedule: str
) -> Iterator[Chart]:
    values: list[dict[str, Any]] = []
    described = []
    for label, (policy, kind) in lines.items():
        forward, route = (cells.get((policy, kind, side)) for side in _SIDES)
        for side, row in (("forward", forward), (shorten(schedule), route)):
            if row is not None:
                values.append({"label": shorten(label), "side": side, **read_limits(row)})
        if forward and route:
            described.append(f"{label} {forward.estimate:.3f} forward, {route.estimate:.3f} other")
    if values:
        words = f"Share of the evidence, forward and on {schedule}: {'; '.join(described[:24])}."
        yield Chart(name, title, words, "pairs", tuple(values))


_LINES = (
    *("overlap.retained", "overlap.exposed", "recall.retained.forward", "recall.retained.route"),
    *("recall.exposed.forward", "recall.exposed.route"),
)
_LIMITS = ("estimate", "lower", "upper")


def chart_curves(results: Results) -> list[Chart]:
    """Draw overlap and recall by budget, and by the number of records that have arrived."""
    curves: list[tuple[str, Finding, str, Sequence[Mapping[str, Any]]]] = [
        ("budget", finding, str(finding.value["parameter"]), finding.value["points"])
        for finding in results.findings.get("budget_curve", ())
    ]
    curves += [
        ("t", finding, "records that have arrived", finding.value)
        for finding in results.findings.get("retention_curve", ())
    ]
    return [chart for curve in curves for chart in _draw_curve(*curve)]


def _draw_curve(
    x: str, finding: Finding, axis: str, points: Sequence[Mapping[str, Any]]
) -> Iterator[Chart]:
    values = [
        {"x": point[x], "line": line, **dict(zip(_LIMITS, point[line], strict=True))}
        for point in points
        for line in _LINES
        if point.get(x) is not None and line in point
    ]
    if not values:
        return
    words = "; ".join(f"{v['line']} at {v['x']:g} {v['estimate']:.3f}" for v in values[:18])
    who = ", ".join(shorten(n) for n in (finding.policy, finding.schedule, finding.interface))
    yield Chart(
        f"curve-{x}-{name_chart(finding.policy, finding.schedule, finding.interface)}",
        f"{who}: by {axis}",
        f"Overlap and recall of the evidence by {axis}: {words}.",
        "curve",
        tuple(values),
    )


layers = Experiment(
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
evidence = Experiment(
    name="evidence",
    title="Evidence",
    summary="Compare how much of the evidence each route keeps and shows.",
    rank=5,
    columns=("retention",),
    row_filter=lambda row: not row.arm,
    tables=tabulate_evidence,
    charts=chart_evidence,
)
curves = Experiment(
    name="curves",
    title="Budgets and time",
    summary="Follow overlap and evidence over budgets, and as a history grows.",
    commands=("audit", "curve"),
    rank=75,
    tab="orders",
    columns=("retention",),
    row_filter=lambda row: bool(row.arm),
    tables=tabulate_moments,
    charts=chart_curves,
    conclude=conclude_over_time,
)
