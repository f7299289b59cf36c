"""What restoration shows: statements, accuracy in each condition, contrasts, eligible pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from routeprism.exhibits import (
    Chart,
    Results,
    Series,
    Statement,
    Table,
    draw_forest,
    format_row,
    make_table,
    name_chart,
    place_point,
    read_limits,
)
from routeprism.experiments._answer_rows import PLACE, AnswerRows, list_answer_rows, title_place
from routeprism.experiments.statements import compose_rows, join_phrases
from routeprism.judge import describe_floor, is_at_floor
from routeprism.quantities import find_quantity
from routeprism.runs import EstimateRow, Rows


def restoration_statements(rows: Sequence[EstimateRow]) -> Iterator[Statement]:
    """Describe for each policy, schedule and model whether the displaced record matters."""
    for answers in list_answer_rows(rows, "restoration"):
        if (update := answers.find("both-stale", "update")) is not None:
            yield _describe_update(answers, update)
        for arm in ("", "bundle", "identity-swap", "presence"):
            if arm == "presence" and (row := answers.find("present-absent", arm)) is not None:
                yield answers.state(
                    "restoration",
                    row,
                    "the route that shows the displaced record gains {row} of accuracy over the "
                    "route that does not ({row:size}, labels {row:labels})",
                )
            gain = answers.find("restored-absent", arm)
            control = answers.find("restored-replacement", arm)
            if gain is not None and control is not None:
                yield _describe_restoration(answers, arm, gain, control)
    yield from _eligibility_statements(rows)


_RESTORED = {
    "": ("the displaced record", "a matched record"),
    "bundle": ("the whole missing bundle", "an equal bundle"),
}
"""What is put back, and what is put there instead as a control."""


def _describe_restoration(
    answers: AnswerRows, arm: str, gain: EstimateRow, control: EstimateRow
) -> Statement:
    """Describe what a record that was put back, or exchanged, is worth."""
    record, matched = _RESTORED.get(arm, ("exchanging records with evidence", ""))
    if is_at_floor(gain):
        return _describe_floor(answers, gain, record)
    if arm == "identity-swap":
        return answers.state(
            "restoration",
            gain,
            "where one record with evidence stands in another's place, exchanging them is worth "
            "{row} of accuracy; against a record without evidence there {control} "
            "({row:size}, labels {row:labels})",
            control=control,
        )
    present = answers.find("restored-present", arm)
    helps = (gain.estimate or 0.0) > 0 and answers.is_shown(gain)
    return answers.state(
        "restoration",
        gain,
        "putting {record} back {verdict} {row} of accuracy; against {matched} without evidence "
        "{control}{beside} ({row:size}, labels {row:labels})",
        "problem" if helps else "info",
        record=record,
        verdict="recovers" if helps else "is not shown to help:",
        matched=matched,
        control=control,
        beside=""
        if present is None
        else compose_rows(", against the order that had it {row}", row=present),
    )


def _describe_floor(answers: AnswerRows, row: EstimateRow, record: str) -> Statement:
    template = "{floor} about {record} ({row:size}, labels {row:labels})"
    floor = describe_floor(row)
    return answers.state("restoration", row, template, "warning", floor=floor, record=record)


def _is_gain(row: EstimateRow | None) -> bool:
    return row is not None and row.lower is not None and row.lower > 0


_UPDATE_VERDICTS = {
    (True, True): "the new record is missing, and the old one misleads",
    (True, False): "the old record misleads",
    (False, True): "the new record is missing",
    (False, False): "neither alone is shown to matter",
}
"""By whether the old record misleads, and whether the new one is missing."""


def _describe_update(answers: AnswerRows, put_back: EstimateRow) -> Statement:
    """Distinguish a reader that the old record misleads from a reader that lacks the new one."""
    if is_at_floor(put_back):
        return _describe_floor(answers, put_back, "the old and the new record")
    out, both, beside = (
        answers.find(name, "update") for name in ("neither-stale", "current-stale", "current-both")
    )
    missing, misled = _is_gain(put_back), _is_gain(out) or _is_gain(beside)
    return answers.state(
        "restoration",
        put_back,
        "where only the old value is shown, taking the old record out is worth {out} of accuracy, "
        "putting the current one back {row}, both {both}; taking it out beside the current one "
        "{beside}: {verdict} ({row:size}, labels {row:labels})",
        "problem" if misled or missing or _is_gain(both) else "info",
        out=out or "not applicable",
        both=both or "not applicable",
        beside=beside or "not applicable",
        verdict=_UPDATE_VERDICTS[misled, missing],
    )


def _eligibility_statements(rows: Sequence[EstimateRow]) -> Iterator[Statement]:
    """Count the pairs that are eligible, and give the reasons why the rest is not."""
    from routeprism.labels import ELIGIBILITY  # which workers do without

    plain = Rows.of(rows).plain(experiment="restoration", model="")
    for (policy, schedule), group in plain.group("policy", "schedule").items():
        quantities = ((find_quantity(name), row) for name, row in group.items())
        counts = {quantity.part: row for quantity, row in quantities if quantity.is_count}
        if not counts:
            continue
        rules = {rule: counts.pop(f"eligible.{rule}", None) for rule in ELIGIBILITY}
        total = sum(int(row.estimate or 0) for row in counts.values())
        eligible = counts.pop("eligible", None)
        reasons = [compose_rows("{n:count} {name}", n=row, name=n) for n, row in counts.items()]
        parts = compose_rows(
            "{eligible:count} of {total} pairs are eligible ({rules}){reasons}",
            eligible=eligible or "0",
            total=str(total),
            rules=join_phrases(
                (
                    compose_rows("{n:count} by the rule {rule}", n=row or "0", rule=rule)
                    for rule, row in rules.items()
                ),
                ", ",
            ),
            reasons=("; left out: ", *join_phrases(reasons, ", ")) if reasons else "",
        )
        yield Statement(parts, "eligibility", policy, schedule, scope=schedule)


_DESIGNS = ("", "bundle", "identity-swap", "presence", "update")
_CONDITIONS = ("present", "absent", "restored", "replacement")
_CONTRASTS = (
    *("restored-absent", "restored-replacement", "restored-present"),
    *("present-absent", "replacement-absent"),
)
_UPDATE_CONDITIONS = ("stale", "both", "neither", "current")
_UPDATE_CONTRASTS = ("neither-stale", "both-stale", "current-stale")


def tabulate_restoration(results: Results) -> list[Table]:
    """Show the conditions with their contrasts, and which pairs were eligible."""
    rows = results.rows.where(experiment="restoration", arm=_DESIGNS)
    eligible = [
        (*place, arm or "single record", quantity.part, format_row(row))
        for (*place, arm), group in rows.where(model="").group("policy", "schedule", "arm").items()
        for name, row in group.items()
        if (quantity := find_quantity(name)).is_count and row.estimate is not None
    ]
    return [
        *_tabulate_conditions(
            "update-conditions",
            "Misled by the old record, or missing the new one?",
            "Accuracy where only the old record is shown (stale), with the current record put back "
            "(both), with the old record taken out (neither), and with both changes (current). "
            "Unrelated records of the same pool take the free places.",
            rows.where(arm="update").group(*PLACE),
            PLACE,
            _UPDATE_CONDITIONS,
            _UPDATE_CONTRASTS,
        ),
        *_tabulate_conditions(
            "restoration",
            "Does the displaced record matter?",
            "Accuracy with the record present, absent, put back (restored), and with a matched "
            "record without evidence in its place (replacement). Differences are paired within "
            "units.",
            {
                (*place, arm or "single record"): group
                for (*place, arm), group in rows.group(*PLACE, "arm").items()
            },
            (*PLACE, "design"),
            _CONDITIONS,
            _CONTRASTS[:3],
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


def _tabulate_conditions(
    name: str,
    title: str,
    caption: str,
    groups: Mapping[tuple[str, ...], Mapping[str, EstimateRow]],
    place: Sequence[str],
    conditions: Sequence[str],
    contrasts: Sequence[str],
) -> list[Table]:
    """Show for each group the accuracy in each condition, and its differences."""
    lines = []
    for names, group in groups.items():
        accuracies = [group.get(f"accuracy.{condition}") for condition in conditions]
        pairs = next((row.queries for row in accuracies if row is not None), None)
        if pairs is not None:
            differences = (group.get(contrast) for contrast in contrasts)
            lines.append((*names, str(pairs), *map(format_row, (*accuracies, *differences))))
    columns = (*place, "pairs", *conditions, *(name.replace("-", " − ") for name in contrasts))
    return make_table(name, title, caption, columns, lines, names=len(place))


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
    title, name = title_place(place), name_chart(*place)
    yield Chart(
        f"restoration-{name}",
        title,
        f"Accuracy in the four conditions: {accuracy}. Paired contrasts: {words}.",
        "restoration",
        tuple(values),
    )
    if contrasts:
        yield draw_forest(f"contrasts-{name}", f"{title}: paired contrasts", contrasts)
