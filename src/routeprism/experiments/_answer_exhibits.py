"""Tables and charts of experiments that ask a model about both routes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from routeprism.exhibits import (
    Chart,
    Results,
    Table,
    draw_forest,
    format_row,
    make_table,
    name_chart,
    read_limits,
    shorten,
)
from routeprism.experiments._route_exhibits import draw_profile
from routeprism.runs import EstimateRow, Rows

__all__ = [
    "chart_answers",
    "chart_display",
    "chart_instructions",
    "chart_mechanism",
    "chart_replication",
    "chart_reuse",
    "tabulate_answers",
    "tabulate_display",
    "tabulate_instructions",
    "tabulate_mechanism",
    "tabulate_replication",
    "tabulate_reuse",
]

_PLACE = ("policy", "schedule", "model")
_SYMBOLS = {"H": "H", "Delta": "Δ", "D_res": "D_res", "Delta_rep": "Δ_rep"}
_TRANSITIONS = {
    "CC": "right on both",
    "CI": "right, then wrong",
    "IC": "wrong, then right",
    "II": "wrong on both",
}


def tabulate_answers(results: Results) -> list[Table]:
    """Show what the answers did on both routes."""
    quantities = (*_SYMBOLS, "accuracy.forward", "accuracy.route")
    cells = []
    groups = results.rows.where(experiment="routes", arm="").group(*_PLACE)
    for place, group in groups.items():
        values = [format_row(group.get(quantity)) for quantity in quantities]
        moves = [format_row(group.get(f"count.transition.{way}")) for way in _TRANSITIONS]
        if place[2] and any(map(str, values)):
            cells.append((*place, *values, *moves))
    return make_table(
        "answers",
        "What the answers do",
        "H: first answers differ. Δ: change of correctness. D_res: disagreement beyond the "
        "model's own sampling. Δ_rep: change of accuracy over all draws. The last columns count "
        "first answers, forward and then in the other order: C correct, I incorrect.",
        (
            *_PLACE,
            *_SYMBOLS.values(),
            "accuracy, forward",
            "accuracy, other order",
            *_TRANSITIONS,
        ),
        cells,
        names=3,
    )


def chart_answers(results: Results) -> list[Chart]:
    """Draw transitions, disagreement unit by unit, and pairs that show the same records."""
    rows = results.rows.where(experiment="routes")
    return [
        *_chart_transitions(rows),
        *draw_profile(results, rows, "profile-H", "Answers differ (H)", "H"),
        *draw_profile(results, rows, "profile-Delta", "Change of correctness (Δ)", "Delta"),
        *_chart_fixed_source(rows),
    ]


def _chart_transitions(rows: Rows) -> Iterator[Chart]:
    values: list[dict[str, Any]] = []
    described = []
    for place, group in rows.where(arm="").group(*_PLACE).items():
        counts = {
            words: group[f"count.transition.{way}"].estimate or 0.0
            for way, words in _TRANSITIONS.items()
            if f"count.transition.{way}" in group
        }
        if not counts:
            continue
        label = " · ".join(map(shorten, place))
        described.append(f"{label}: " + ", ".join(f"{n:.0f} {w}" for w, n in counts.items()))
        values.extend(
            {"label": label, "way": words, "order": at, "count": number}
            for at, (words, number) in enumerate(counts.items())
        )
    if values:
        title = "Correctness of the first answers, forward and then in the other order"
        words = "; ".join(described) + "."
        yield Chart("transitions", title, words, "transitions", tuple(values))


_FIXED = {"D_res": "D_res", "H": "H", "D_correct": "D_correct", "Delta_rep": "Δ_rep"}


def _chart_fixed_source(rows: Rows) -> Iterator[Chart]:
    """Draw the pairs that show the same records in a different text, beside all pairs."""
    groups: dict[tuple[str, ...], dict[tuple[str, str], EstimateRow]] = {}
    for row in rows.where(stratum="all", arm="", mask=("", "fixed-source"), quantity=_FIXED):
        if row.model and row.estimate is not None:
            group = groups.setdefault((row.policy, row.schedule, row.model), {})
            group.setdefault((row.mask, row.quantity), row)
    for place, group in groups.items():
        if len({mask for mask, _ in group}) == 2:
            policy, schedule, model = map(shorten, place)
            yield draw_forest(
                f"fixed-source-{name_chart(*place)}",
                f"{policy}, {schedule}, read by {model}: same records, different text",
                [
                    (f"{words} {symbol}", group[mask, quantity])
                    for mask, words in (("", "all pairs:"), ("fixed-source", "same records:"))
                    for quantity, symbol in _FIXED.items()
                    if (mask, quantity) in group
                ],
            )


_COMPARED = {
    **{name: _SYMBOLS[name] for name in ("H", "D_res", "Delta_rep")},
    "restored-absent": "restored − absent",
    "restored-replacement": "restored − replacement",
}
"""Quantities that are compared between models."""


def _read_models(results: Results) -> dict[tuple[str, ...], dict[str, EstimateRow]]:
    """Group the answer rows of a run with several models; nothing for fewer than two."""
    rows = Rows.of(
        row
        for row in results.rows.where(arm="")
        if row.model and row.policy and row.quantity in _COMPARED
    )
    return rows.group(*_PLACE) if len(rows.values("model")) > 1 else {}


def tabulate_replication(results: Results) -> list[Table]:
    """Show the main answer quantities model by model."""
    cells = [
        (*place, *(format_row(group.get(quantity)) for quantity in _COMPARED))
        for place, group in _read_models(results).items()
    ]
    return make_table(
        "replication",
        "Model by model",
        "The same prompts read by different models.",
        (*_PLACE, *_COMPARED.values()),
        sorted(cells, key=lambda line: (str(line[0]), str(line[1]))),
        names=3,
    )


def chart_replication(results: Results) -> list[Chart]:
    """Draw each main quantity for every model."""
    charts = []
    groups = _read_models(results)
    for quantity in _COMPARED:
        rows = [row for g in groups.values() if (row := g.get(quantity)) and row.estimate]
        rows.sort(key=lambda row: (row.policy, row.schedule))
        if len({row.model for row in rows}) > 1:
            lines = [(" · ".join(map(shorten, (r.policy, r.schedule, r.model))), r) for r in rows]
            title = f"{quantity}, model by model"
            charts.append(draw_forest(f"replication-{quantity}", title, lines))
    return charts


_MECHANISM = ("J", "C_changed", "H", "Delta", "D_res", "Delta_rep")
"""Quantities by which operations are compared; the rest is among all estimates."""
_REPEATED = {"H": "D_res", "Delta": "Delta_rep"}
"""Quantities that are drawn in place of single-draw ones if there are several draws."""


def _read_mechanism(results: Results) -> list[EstimateRow]:
    rows = results.rows.where(experiment="mechanism", stratum="all", mask="")
    return [row for row in rows if row.quantity.partition(".")[2] in _MECHANISM]


def tabulate_mechanism(results: Results) -> list[Table]:
    """Show what each order-dependent operation does."""
    return make_table(
        "mechanism",
        "Which operation does it",
        "δ^op compares the policy with the arm in which the named operations follow source order. "
        "The interaction is what two operations do together beyond the sum of each.",
        ("policy", "schedule", "model", "operations", "quantity", "estimate"),
        [
            (row.policy, row.schedule, row.model, row.arm, row.quantity, format_row(row))
            for row in _read_mechanism(results)
        ],
        names=5,
    )


def chart_mechanism(results: Results) -> list[Chart]:
    """Draw the arms of a policy side by side: each operation, all together, interactions."""
    groups: dict[tuple[str, str, str], list[EstimateRow]] = {}
    for row in _read_mechanism(results):
        if not row.batch and row.lower is not None:
            family = row.policy.partition(":")[0]
            key = (row.quantity.partition(".")[2], family, row.model)
            groups.setdefault(key, []).append(row)
    return [
        _draw_mechanism(*key, rows)
        for key, rows in groups.items()
        if (_REPEATED.get(key[0]), *key[1:]) not in groups
    ]


def _draw_mechanism(quantity: str, family: str, model: str, rows: list[EstimateRow]) -> Chart:
    rows.sort(key=lambda row: (row.quantity.startswith("interaction"), row.arm.count("+")))
    ambiguous = len({(row.policy, row.arm) for row in rows}) > len({row.arm for row in rows})

    def label(row: EstimateRow) -> str:
        interaction = "interaction " if row.quantity.startswith("interaction") else ""
        return shorten(f"{interaction}{row.arm}" + (f", {row.policy}" if ambiguous else ""))

    words = "; ".join(f"{row.schedule}, {label(row)}, {format_row(row)}" for row in rows)
    reader = f", read by {shorten(model)}" if model else ""
    return Chart(
        f"mechanism-{name_chart(quantity, family, model)}",
        f"{shorten(family)}: change of {quantity} by operation{reader}",
        f"Difference of {quantity} that operations in arrival order make: {words}.",
        "mechanism",
        tuple(
            {"schedule": shorten(row.schedule), "arm": label(row), **read_limits(row)}
            for row in rows
        ),
    )


_DISPLAY = {
    "construction": "different memories",
    "display": "different layouts",
    "construction-display": "difference",
    "serialisation:native": "routes, native order",
    "serialisation:source": "routes, source order",
    "serialisation:native-source": "native − source",
}
_REUSE = {
    "": "all questions",
    "support-changed": "evidence changed",
    "support-preserved": "evidence preserved",
    "support-absent": "no evidence on either route",
    "changed-preserved": "changed − preserved",
    "changed-absent": "changed − absent (means)",
    "changed-absent.within": "changed − absent within units",
}
_INSTRUCTIONS = ("preserved", "gated", "neutral", "placebo")

Cells = dict[tuple[str, str], EstimateRow]
"""(arm, quantity) → its row; the arm of a contrast of groups is the contrast."""


def _read_cells(rows: Rows, arms: Mapping[str, str]) -> dict[tuple[str, ...], Cells]:
    """Arrange the rows of an experiment by place, arm and quantity."""
    groups: dict[tuple[str, ...], Cells] = {}
    for place, group in rows.group(*_PLACE, "arm", "quantity").items():
        (row,) = group.values()
        arm, quantity = _read_contrast(row)
        if row.model and arm in arms and row.estimate is not None:
            groups.setdefault(place[:3], {})[arm, quantity] = row
    return groups


def _read_contrast(row: EstimateRow) -> tuple[str, str]:
    """Split a contrast's quantity into the contrast and the quantity itself."""
    prefix, dot, quantity = row.quantity.partition(".")
    if prefix in ("changed-preserved", "changed-absent"):
        within = quantity.startswith("within.")
        return (f"{prefix}.within" if within else prefix), quantity.removeprefix("within.")
    return row.arm, quantity if dot and prefix == "Gamma" else row.quantity


def _tabulate_arms(
    rows: Rows, arms: Mapping[str, str], name: str, title: str, caption: str
) -> list[Table]:
    quantities = ("H", "D_res", "Delta_rep")
    cells = []
    for place, group in _read_cells(rows, arms).items():
        for arm, words in arms.items():
            values = [group.get((arm, quantity)) for quantity in quantities]
            pairs = next((row.queries for row in values if row is not None), None)
            if pairs is not None:
                cells.append((*place, words, str(pairs), *map(format_row, values)))
    columns = (*_PLACE, "comparison", "pairs", *(_SYMBOLS[q] for q in quantities))
    return make_table(name, title, caption, columns, cells, names=4)


def _chart_arms(
    rows: Rows, arms: Mapping[str, str], name: str, quantities: Sequence[str], title: str
) -> list[Chart]:
    """Draw the arms below each other, by the first quantity that the run has."""
    charts = []
    for place, group in _read_cells(rows, arms).items():
        for quantity in quantities:
            lines = [
                (words, row) for arm, words in arms.items() if (row := group.get((arm, quantity)))
            ]
            if len(lines) > 1:
                policy, schedule, model = map(shorten, place)
                heading = f"{policy}, {schedule}, read by {model}: {title.format(quantity)}"
                charts.append(draw_forest(f"{name}-{name_chart(*place)}", heading, lines))
                break
    return charts


def tabulate_display(results: Results) -> list[Table]:
    """Show what different memories and different layouts of one memory do to the answers."""
    return _tabulate_arms(
        results.rows.where(experiment="display"),
        _DISPLAY,
        "display",
        "Different memories or different layouts?",
        "Disagreement beyond the model's own (D_res) and change of accuracy: between the two "
        "memories, between two layouts of one memory, and their difference question by question; "
        "for serialisation, between the routes under each layout.",
    )


def chart_display(results: Results) -> list[Chart]:
    """Draw what different memories and different layouts do to the answers."""
    rows = results.rows.where(experiment="display")
    return _chart_arms(rows, _DISPLAY, "display", ("D_res", "H"), "{} by what differs")


def tabulate_reuse(results: Results) -> list[Table]:
    """Show what one memory does for different questions."""
    return _tabulate_arms(
        results.rows.where(experiment="reuse"),
        _REUSE,
        "reuse",
        "One memory, different questions",
        "The memory of each route is built for the user's first question and asked all other "
        "questions, grouped by what happened to their evidence.",
    )


def chart_reuse(results: Results) -> list[Chart]:
    """Draw the change of accuracy by what happened to the evidence."""
    rows = results.rows.where(experiment="reuse")
    title = "change of accuracy by evidence"
    return _chart_arms(rows, _REUSE, "reuse", ("Delta_rep", "Delta"), title)


def _read_instructions(results: Results) -> tuple[Rows, dict[str, str]]:
    """Return the rows under each instruction, and the contrasts between instructions."""
    contrasts = {f"{a}-{b}" for a in _INSTRUCTIONS for b in _INSTRUCTIONS}
    rows = results.rows.where(experiment="routes", arm=(*_INSTRUCTIONS, *contrasts))
    return rows, {arm: arm.replace("-", " − ") for arm in rows.values("arm") if arm in contrasts}


def tabulate_instructions(results: Results) -> list[Table]:
    """Show the answers under each instruction about conflicting records."""
    rows, contrasts = _read_instructions(results)
    return _tabulate_arms(
        rows,
        {**{arm: arm for arm in _INSTRUCTIONS}, **contrasts},
        "instructions",
        "Does an instruction repair it?",
        "The same records, in order of arrival, under different instructions about conflicting "
        "records, and the paired differences between instructions.",
    )


def chart_instructions(results: Results) -> list[Chart]:
    """Draw accuracy under each instruction, and the differences between instructions."""
    rows, contrasts = _read_instructions(results)
    if not contrasts:
        return []
    charts = []
    for place, group in _read_cells(rows, {arm: arm for arm in _INSTRUCTIONS}).items():
        policy, schedule, model = map(shorten, place)
        values: list[dict[str, Any]] = [
            {"label": arm, "side": side, **read_limits(row)}
            for arm in _INSTRUCTIONS
            for side, quantity in (("forward", "accuracy.forward"), (schedule, "accuracy.route"))
            if (row := group.get((arm, quantity)))
        ]
        words = "; ".join(f"{v['label']}, {v['side']} {v['estimate']:.3f}" for v in values)
        if values:
            charts.append(
                Chart(
                    f"instructions-{name_chart(*place)}",
                    f"{policy}, {schedule}, read by {model}: accuracy under each instruction",
                    f"Accuracy on both routes: {words}.",
                    "pairs",
                    tuple(values),
                )
            )
    name = "instruction-contrasts"
    return [*charts, *_chart_arms(rows, contrasts, name, ("D_res", "H"), "change of {}")]
