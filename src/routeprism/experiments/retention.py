"""The evidence that each route keeps and shows, and what a memory keeps as its history grows.

The paper leaves growing histories open. Their arms are moments: `t=5` after five records, over the
pools that have as many, and `t=all` at the end of each pool.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from routeprism.exhibits import (
    Chart,
    Results,
    Statement,
    Table,
    format_row,
    make_table,
    name_chart,
    read_limits,
    shorten,
)
from routeprism.experiments._experiment import AuditOutcome, Conclusion, Experiment
from routeprism.experiments._rows import Column, Key
from routeprism.experiments.statements import compose_rows, state_row
from routeprism.judge import list_arms
from routeprism.measures import Sums, jaccard
from routeprism.orders import describe_arrival, locate_base, name_base
from routeprism.policies import Policy
from routeprism.records import Case
from routeprism.routes import Moment, list_moments, trace_moments
from routeprism.runs import EstimateRow, Finding

_SIDES = ("forward", "route")


def tabulate_evidence(results: Results) -> list[Table]:
    """Show how much of the evidence each route still has."""
    groups = results.rows.where(experiment="retention", arm="").group(
        "policy", "schedule", "labels"
    )
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
            (*place, *(format_row(group.get(q)) for q in _RECALL), format_row(group.get("J_T")))
            for place, group in groups.items()
            if not _RECALL.keys().isdisjoint(group)
        ],
        names=3,
    )


_PLACES = {"retained": "kept", "exposed": "shown to the question"}
_RECALL = {f"recall.{where}.{side}": (where, side) for where in _PLACES for side in _SIDES}
"""Quantity → where it looks for evidence, and on which route."""

Cells = dict[tuple[str, str, str], EstimateRow]
"""(policy, kind of question, side) → its recall."""


def chart_evidence(results: Results) -> list[Chart]:
    """Draw recall of the evidence by policy, and by kind of question for each policy."""
    groups: dict[tuple[str, str], Cells] = {}
    for row in results.rows.where(experiment="retention", mask="", arm=""):
        if row.quantity in _RECALL and row.estimate is not None:
            where, side = _RECALL[row.quantity]
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
        sides = (name_base([schedule]), describe_arrival(schedule))
        for side, row in zip(sides, (forward, route), strict=True):
            if row is not None:
                values.append({"label": shorten(label), "side": side, **read_limits(row)})
        if forward and route:
            described.append(f"{label} {forward.estimate:.3f} and {route.estimate:.3f}")
    if values:
        orders = f"{locate_base([schedule])} and under {describe_arrival(schedule)}"
        words = f"Share of the evidence {orders}: {'; '.join(described[:24])}."
        yield Chart(name, title, words, "pairs", tuple(values))


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


_SCHEDULE = "replay"
_END = "t=all"


def enter_over_time(case: Case, policies: Sequence[Policy], labels: str, sums: Sums[Key]) -> None:
    """Enter every moment of a pool, for each of its questions."""
    common = list_moments(len(case.pool))
    for policy in policies:
        for moment in trace_moments(policy, case.pool):
            arms = [f"t={moment.after}"] if moment.after in common else []
            if moment.after == len(case.pool):
                arms.append(_END)
            for arm in arms:
                _enter(case, policy.name, arm, moment, labels, sums)


def _enter(case: Case, policy: str, arm: str, moment: Moment, labels: str, sums: Sums[Key]) -> None:
    column = Column("retention", "", policy, _SCHEDULE, arm)
    number = len(case.questions)
    sides = {"forward": moment.forward, "route": moment.reversed}
    values = {"overlap.retained": jaccard(moment.forward, moment.reversed)}
    for side, records in sides.items():
        values[f"fraction.retained.{side}"] = len(records) / moment.after
    for quantity, value in values.items():  # a pool's own, and so that of each of its questions
        sums[column._replace(quantity=quantity), "all"] = (value * number, number)
    if not labels:
        return
    labelled = [question.labels.get(labels, frozenset()) for question in case.questions]
    # What has not arrived cannot be retained.
    support = [arrived for support_set in labelled if (arrived := support_set & moment.arrived)]
    for side, records in sides.items():
        if support:
            target = column._replace(quantity=f"recall.retained.{side}", labels=labels)
            recalled = sum(len(support_set & records) / len(support_set) for support_set in support)
            sums[target, "all"] = (recalled, len(support))


Curve = dict[str, dict[str, EstimateRow]]
"""Arm → quantity → its row."""


def _curves(rows: Sequence[EstimateRow]) -> dict[tuple[str, str], Curve]:
    curves: dict[tuple[str, str], Curve] = {}
    for row in rows:
        if row.experiment == "retention" and row.arm.startswith("t="):
            curve = curves.setdefault((row.policy, row.interface), {})
            curve.setdefault(row.arm, {})[row.quantity] = row
    return {
        place: dict(sorted(curve.items(), key=lambda item: moment_of(item[0])))
        for place, curve in curves.items()
    }


def moment_of(arm: str) -> float:
    """Return the moment that an arm names; the end comes last."""
    return float("inf") if arm == _END else float(arm.removeprefix("t="))


def retention_curves(rows: Sequence[EstimateRow]) -> list[Finding]:
    """Return each policy's curve, to be drawn."""
    return [
        Finding(
            name="retention_curve",
            value=[
                {
                    "t": None if arm == _END else int(arm[2:]),
                    "units": quantities["overlap.retained"].units,
                    **{
                        name: [row.estimate, row.lower, row.upper]
                        for name, row in quantities.items()
                    },
                }
                for arm, quantities in curve.items()
            ],
            policy=policy,
            interface=interface,
            schedule=_SCHEDULE,
        )
        for (policy, interface), curve in _curves(rows).items()
    ]


def _describe_moments(curve: Curve) -> str:
    """Describe when order decides what is retained: from some moment on, or first at one."""
    moments = [arm for arm in curve if arm != _END]
    changed = [arm for arm in moments if (curve[arm]["overlap.retained"].estimate or 0.0) < 1]
    if not changed:
        return "at no moment"
    stays = changed == moments[-len(changed) :]
    return f"from {changed[0]} on" if stays else f"first at {changed[0]}"


def retention_statements(rows: Sequence[EstimateRow]) -> Iterator[Statement]:
    """Describe from when on order decides what is retained, and how much in the end."""
    for curve in _curves(rows).values():
        end = curve[_END]
        parts = compose_rows(
            "the retained records depend on order {when}; in the end overlap {overlap}, "
            "{forward:value} of the records are retained in source order and {route:value} in "
            "reversal",
            when=_describe_moments(curve),
            overlap=end["overlap.retained"],
            forward=end["fraction.retained.forward"],
            route=end["fraction.retained.route"],
        )
        if "recall.retained.forward" in end:
            parts += compose_rows(
                ", and {forward} and {route} of the evidence",
                forward=end["recall.retained.forward"],
                route=end["recall.retained.route"],
            )
        yield state_row("retention", end["overlap.retained"], parts, scope="over time")


def conclude_over_time(outcome: AuditOutcome) -> Conclusion:
    """Describe each policy over time, and store its curve."""
    statements = tuple(retention_statements(outcome.rows))
    return Conclusion(statements, {"retention": retention_curves(outcome.rows)})


_MOST_MOMENTS = 8


def tabulate_moments(results: Results) -> list[Table]:
    """Show the overlap of what is kept as a history grows."""
    groups = _curves(results.rows.where(stratum="all", mask="", batch=""))
    arms = sorted({arm for curve in groups.values() for arm in curve}, key=moment_of)
    caption = (
        "Overlap of the records kept in source order and in reversal after the first t records."
    )
    if len(arms) > _MOST_MOMENTS:
        arms = [arm for arm in arms if arm[2:] in ("all", *(str(2**at) for at in range(20)))]
        caption += " Shown: t = 1, 2, 4, 8, … and the end; estimates.csv has every moment."
    return make_table(
        "over-time",
        "What is kept as the history grows",
        caption,
        ("policy", *arms),
        [
            (policy, *(format_row(curve.get(arm, {}).get("overlap.retained")) for arm in arms))
            for (policy, _), curve in groups.items()
        ],
    )


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
