"""Tables and charts of restoration: accuracy in each condition, contrasts, eligible pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from routeprism.exhibits import (
    Chart,
    Results,
    Series,
    Table,
    draw_forest,
    format_row,
    make_table,
    name_chart,
    place_point,
    read_limits,
    shorten,
)
from routeprism.runs import EstimateRow

__all__ = ["chart_restoration", "tabulate_restoration"]

_DESIGNS = ("", "bundle", "identity-swap", "presence", "update")
_CONDITIONS = ("present", "absent", "restored", "replacement")
_CONTRASTS = (
    *("restored-absent", "restored-replacement", "restored-present"),
    *("present-absent", "replacement-absent"),
)


def tabulate_restoration(results: Results) -> list[Table]:
    """Show the conditions with their contrasts, and which pairs were eligible."""
    rows = results.rows.where(experiment="restoration", arm=_DESIGNS)
    main = _CONTRASTS[:3]
    cells = []
    for (*place, arm), group in rows.group("policy", "schedule", "model", "arm").items():
        first = group.get("restored-absent") or group.get("present-absent")
        if first is not None:
            cells.append(
                (
                    *place,
                    arm or "single record",
                    str(first.queries),
                    *(format_row(group.get(f"accuracy.{name}")) for name in _CONDITIONS),
                    *(format_row(group.get(name)) for name in main),
                )
            )
    eligible = [
        (policy, schedule, arm or "single record", name.removeprefix("count."), format_row(row))
        for (policy, schedule, arm), group in rows.where(model="")
        .group("policy", "schedule", "arm")
        .items()
        for name, row in group.items()
        if name.startswith("count.") and row.estimate is not None
    ]
    return [
        *_tabulate_updates(results),
        *make_table(
            "restoration",
            "Does the displaced record matter?",
            "Accuracy with the record present, absent, put back (restored), and with a matched "
            "record without evidence in its place (replacement). Differences are paired within "
            "units.",
            (
                *("policy", "schedule", "model", "design", "pairs"),
                *_CONDITIONS,
                *(name.replace("-", " − ") for name in main),
            ),
            cells,
            names=4,
        ),
        *make_table(
            "eligibility",
            "Which pairs could be restored",
            "Decided by labels and the records shown alone, before any answer existed.",
            ("policy", "schedule", "design", "verdict", "pairs"),
            eligible,
            names=4,
        ),
    ]


_UPDATE_CONDITIONS = ("stale", "both", "neither", "current")


def _tabulate_updates(results: Results) -> list[Table]:
    """Show what the old and the new record of a changed fact do to the answers."""
    rows = results.rows.where(experiment="restoration", arm="update")
    contrasts = ("neither-stale", "both-stale", "current-stale")
    return make_table(
        "update-conditions",
        "Misled by the old record, or missing the new one?",
        "Accuracy where only the old record is shown (stale), with the current record put back "
        "(both), with the old record taken out (neither), and with both changes (current). "
        "Unrelated records of the same pool take the free places.",
        (
            *("policy", "schedule", "model", "pairs"),
            *_UPDATE_CONDITIONS,
            *(name.replace("-", " − ") for name in contrasts),
        ),
        [
            (
                *place,
                str(group["both-stale"].queries),
                *(format_row(group.get(f"accuracy.{name}")) for name in _UPDATE_CONDITIONS),
                *(format_row(group.get(name)) for name in contrasts),
            )
            for place, group in rows.group("policy", "schedule", "model").items()
            if "both-stale" in group
        ],
        names=3,
    )


def chart_restoration(results: Results) -> list[Chart]:
    """Draw accuracy in each condition, unit by unit, and the paired contrasts."""
    groups = results.rows.where(experiment="restoration", arm="").group(
        "policy", "schedule", "model"
    )
    return [
        chart
        for place, group in groups.items()
        if place[2]
        for chart in _chart_group(place, group, results)
    ]


def _chart_group(
    place: tuple[str, ...], group: Mapping[str, EstimateRow], results: Results
) -> Iterator[Chart]:
    policy, schedule, model = place
    values: list[dict[str, Any]] = []
    for name in _CONDITIONS:
        row = group.get(f"accuracy.{name}")
        if row is None or row.estimate is None:
            continue
        values.append({"kind": "mean", "condition": name, **read_limits(row)})
        series = Series(row.experiment, row.quantity, policy, schedule, model)
        means = results.units.get(series, {})
        values.extend(
            {"kind": "unit", "condition": name, "estimate": mean, "jitter": place_point(unit)}
            for unit, mean in enumerate(means.values())
        )
    if not values:
        return
    accuracy = "; ".join(
        f"{name} {format_row(group[f'accuracy.{name}'])}"
        for name in _CONDITIONS
        if f"accuracy.{name}" in group
    )
    contrasts = [
        (name.replace("-", " − "), row)
        for name in _CONTRASTS
        if (row := group.get(name)) is not None and row.estimate is not None
    ]
    words = "; ".join(f"{label} {format_row(row)}" for label, row in contrasts).replace(
        "−", "minus"
    )
    title = f"{shorten(policy)}, {shorten(schedule)}, read by {shorten(model)}"
    name = name_chart(policy, schedule, model)
    yield Chart(
        f"restoration-{name}",
        title,
        f"Accuracy in the four conditions: {accuracy}. Paired contrasts: {words}.",
        "restoration",
        tuple(values),
    )
    if contrasts:
        yield draw_forest(f"contrasts-{name}", f"{title}: paired contrasts", contrasts)
