"""Charts and tables of what was tried on the same states: displays, reuse, instructions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from routeprism.report._charts import Chart, chart_name, limits, short
from routeprism.report._table import Table, shown_interval
from routeprism.runs import EstimateRow

__all__ = ["intervention_charts", "intervention_tables"]

_DISPLAY = {
    "construction": "what was built",
    "display": "how it is laid out",
    "construction-display": "difference",
    "serialisation:native": "route, native order",
    "serialisation:source": "route, source order",
    "serialisation:native-source": "native − source",
}
_REUSE = {
    "": "all targets",
    "support-changed": "support changed",
    "support-preserved": "support preserved",
    "support-absent": "no support on either",
    "changed-preserved": "changed − preserved",
    "changed-absent": "changed − absent",
}
_INSTRUCTIONS = ("preserved", "gated", "neutral", "placebo")

Place = tuple[str, str, str]
"""(policy, schedule, model)."""
Cells = dict[tuple[str, str], EstimateRow]
"""(arm, quantity) → its row; of a contrast of groups the arm is the contrast."""


def intervention_charts(rows: Sequence[EstimateRow]) -> list[Chart]:
    """Draw what the run tried."""
    return [
        *_forests(rows, "display", "display", _DISPLAY, ("D_res", "H"), "D_res by what differs"),
        *_forests(
            rows, "reuse", "reuse", _REUSE, ("Delta_rep", "Delta"), "change of accuracy by support"
        ),
        *_instructions(rows),
        *_fixed_source(rows),
    ]


def intervention_tables(rows: Sequence[EstimateRow]) -> list[Table]:
    """List the same numbers."""
    made = (
        _table(
            rows,
            "display",
            _DISPLAY,
            "What was built, or how it is laid out?",
            "Disagreement beyond the model's own (D_res) and change of accuracy: between the two "
            "states, between two layouts of one state, and their difference question by question; "
            "for serialisation, between the routes under each display.",
        ),
        _table(
            rows,
            "reuse",
            _REUSE,
            "One state, other questions",
            "The state of each route stands for the user's first question and is asked all others; "
            "by what happened to their support.",
        ),
        _table(
            rows,
            "routes",
            {**{arm: arm for arm in _INSTRUCTIONS}, **_contrasts(rows)},
            "Does an instruction repair it?",
            "The same contexts under other instructions about conflicting records, and the paired "
            "differences between instructions.",
            name="instructions",
        ),
    )
    return [table for table in made if table is not None]


def _cells(rows: Sequence[EstimateRow], experiment: str, arms: Iterable[str]) -> dict[Place, Cells]:
    """Sort the plain rows of an experiment; of several fillers the average over all stays."""
    wanted = set(arms)
    found: dict[Place, Cells] = {}
    for row in rows:
        if row.experiment != experiment or not row.model or row.stratum != "all" or row.mask:
            continue
        arm, quantity = _told(row)
        if arm not in wanted or row.estimate is None:
            continue
        cells = found.setdefault((row.policy, row.schedule, row.model), {})
        before = cells.get((arm, quantity))
        if before is None or (before.batch == row.batch and len(row.filler) > len(before.filler)):
            cells[arm, quantity] = row
    return found


def _told(row: EstimateRow) -> tuple[str, str]:
    """Name a contrast by what is contrasted, and its quantity without the contrast's name."""
    before, dot, quantity = row.quantity.partition(".")
    if before in ("changed-preserved", "changed-absent"):
        return before, quantity
    return row.arm, quantity if dot and before == "Gamma" else row.quantity


def _forests(
    rows: Sequence[EstimateRow],
    experiment: str,
    section: str,
    arms: dict[str, str],
    quantities: Sequence[str],
    title: str,
) -> Iterable[Chart]:
    for (policy, schedule, model), cells in _cells(rows, experiment, arms).items():
        for quantity in quantities:  # with one draw there is no residual, and H stands for it
            shown = [
                (words, row) for arm, words in arms.items() if (row := cells.get((arm, quantity)))
            ]
            if len(shown) > 1:
                yield _forest(
                    f"{section}-{chart_name(policy, schedule, model)}",
                    section,
                    f"{short(policy)}, {short(schedule)}, read by {short(model)}: "
                    + title.replace("D_res", quantity),
                    shown,
                )
                break


def _forest(name: str, section: str, title: str, shown: Sequence[tuple[str, EstimateRow]]) -> Chart:
    told = "; ".join(f"{words} {shown_interval(row)}" for words, row in shown)
    return Chart(
        name,
        section,
        title,
        f"Estimates with 95 % intervals: {told}.",
        "forest",
        tuple({"label": words, **limits(row), "questions": row.queries} for words, row in shown),
    )


def _contrasts(rows: Sequence[EstimateRow]) -> dict[str, str]:
    """Name the contrasts between instructions that the run has."""
    named = {f"{one}-{other}" for one in _INSTRUCTIONS for other in _INSTRUCTIONS}
    there = dict.fromkeys(
        row.arm for row in rows if row.experiment == "routes" and row.arm in named
    )
    return {arm: arm.replace("-", " − ") for arm in there}


def _instructions(rows: Sequence[EstimateRow]) -> Iterable[Chart]:
    contrasts = _contrasts(rows)
    arms = (*_INSTRUCTIONS, *contrasts)
    for (policy, schedule, model), cells in _cells(rows, "routes", arms).items():
        who = f"{short(policy)}, {short(schedule)}, read by {short(model)}"
        place = chart_name(policy, schedule, model)
        sides = (("forward", "accuracy.forward"), (schedule, "accuracy.route"))
        shown = [
            {"label": arm, "side": short(side), **limits(row)}
            for arm in _INSTRUCTIONS
            for side, quantity in sides
            if (row := cells.get((arm, quantity)))
        ]
        if shown and contrasts:
            told = "; ".join(
                f"{one['label']}, {one['side']} {one['estimate']:.3f}" for one in shown
            )
            yield Chart(
                f"instructions-{place}",
                "instructions",
                f"{who}: accuracy under each instruction",
                f"Accuracy on both routes: {told}.",
                "pairs",
                tuple(shown),
            )
        for quantity in ("D_res", "H"):
            differences = [
                (words, row)
                for arm, words in contrasts.items()
                if (row := cells.get((arm, quantity)))
            ]
            if differences:
                yield _forest(
                    f"instruction-contrasts-{place}",
                    "instructions",
                    f"{who}: change of {quantity}",
                    differences,
                )
                break


_FIXED = {"D_res": "D_res", "H": "H", "D_correct": "D_correct", "Delta_rep": "Δ_rep"}


def _fixed_source(rows: Sequence[EstimateRow]) -> Iterable[Chart]:
    """Draw the pairs that expose the same sources in another text, beside all pairs."""
    found: dict[Place, Cells] = {}
    for row in rows:
        named = (row.experiment, row.stratum, row.arm)
        if named == ("routes", "all", "") and row.model and row.mask in ("", "fixed-source"):
            own = found.setdefault((row.policy, row.schedule, row.model), {})
            if row.estimate is not None and row.quantity in _FIXED:
                own.setdefault((row.mask, row.quantity), row)
    for place, cells in found.items():
        shown = [
            (f"{words} {symbol}", cells[mask, quantity])
            for mask, words in (("", "all pairs:"), ("fixed-source", "same sources:"))
            for quantity, symbol in _FIXED.items()
            if (mask, quantity) in cells
        ]
        if any(mask for mask, _ in cells) and any(not mask for mask, _ in cells):
            policy, schedule, model = (short(name) for name in place)
            yield _forest(
                f"fixed-source-{chart_name(*place)}",
                "answers",
                f"{policy}, {schedule}, read by {model}: where sources agree and texts differ",
                shown,
            )


_COLUMNS = {"H": "H", "D_res": "D_res", "Delta_rep": "Δ_rep"}


def _table(
    rows: Sequence[EstimateRow],
    experiment: str,
    arms: dict[str, str],
    title: str,
    caption: str,
    *,
    name: str = "",
) -> Table | None:
    cells = []
    for place, found in _cells(rows, experiment, arms).items():
        for arm, words in arms.items():
            shown = [found.get((arm, quantity)) for quantity in _COLUMNS]
            pairs = next((row.queries for row in shown if row is not None), None)
            if pairs is not None and any(shown):
                cells.append((*place, words, str(pairs), *map(shown_interval, shown)))
    if not cells:
        return None
    columns = ("policy", "schedule", "model", "what", "pairs", *_COLUMNS.values())
    return Table(name or experiment, title, caption, columns, tuple(cells), names=4)
