"""The rows of answers, by who answered what: statements, tables and charts share these groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from routeprism.exhibits import (
    Chart,
    Results,
    Severity,
    Statement,
    Table,
    draw_forest,
    format_row,
    make_table,
    name_chart,
    shorten,
)
from routeprism.experiments.statements import Value, compose_rows, keep_widest, state_row
from routeprism.judge import P_ADJUSTED, is_claim_shown
from routeprism.quantities import find_quantity
from routeprism.runs import EstimateRow, Rows

PLACE = ("policy", "schedule", "model")
SYMBOLS = {name: find_quantity(name).symbol for name in ("H", "Delta", "D_res", "Delta_rep")}
_MEASURES = ("D_res", "H", "D_correct", "Delta_rep")
"""What a statement is about: the first that the answers allow."""


@dataclass(frozen=True, slots=True)
class AnswerRows:
    """The rows of one policy, schedule, model, batch and filler."""

    schedule: str
    scope: str
    rows: Mapping[tuple[str, str, str], EstimateRow]
    """By arm, mask and quantity."""

    def find(self, quantity: str, arm: str = "", mask: str = "") -> EstimateRow | None:
        """Find a row; None if the run does not have it."""
        return self.rows.get((arm, mask, quantity))

    def choose_measure(self, arm: str = "", mask: str = "") -> str:
        """Choose the residual if there are enough draws; free text has only correctness."""
        candidates = (name for name in _MEASURES if (arm, mask, name) in self.rows)
        return next(candidates, _MEASURES[0])

    def is_shown(self, row: EstimateRow) -> bool:
        """Whether the claim of a row holds among all claims of the run."""
        adjusted = self.find(f"{P_ADJUSTED}.{row.quantity}")
        return is_claim_shown(row, {} if adjusted is None else {adjusted.quantity: adjusted})

    def state(
        self,
        kind: str,
        row: EstimateRow,
        template: str,
        severity: Severity = "info",
        **values: Value,
    ) -> Statement:
        """Make a statement about one of the rows, as `state_row` does."""
        parts = compose_rows(template, row=row, **values)
        return state_row(kind, row, parts, severity=severity, scope=self.scope)


def list_answer_rows(rows: Sequence[EstimateRow], experiment: str) -> Iterator[AnswerRows]:
    """Group the rows over all questions by who answered what."""
    grouped: dict[tuple[str, ...], dict[tuple[str, str, str], EstimateRow]] = {}
    for row in Rows.of(rows).where(experiment=experiment, stratum="all"):
        if row.model:
            place = (row.policy, row.schedule, row.model, row.batch, row.filler)
            grouped.setdefault(place, {})[row.arm, row.mask, row.quantity] = row
    for (_, schedule, model, batch, filler), group in keep_widest(grouped):
        batched = f", batch {batch}" if batch else ""
        scope = f"{schedule}, read by {model}{batched}, filler {filler}"
        yield AnswerRows(schedule, scope, group)


Cells = dict[tuple[str, str], EstimateRow]
"""(arm, quantity) → its row; the arm of a contrast of groups is the contrast."""


def read_cells(rows: Rows, arms: Mapping[str, str]) -> dict[tuple[str, ...], Cells]:
    """Arrange the rows of an experiment by place, arm and quantity."""
    groups: dict[tuple[str, ...], Cells] = {}
    for place, group in rows.group(*PLACE, "arm", "quantity").items():
        (row,) = group.values()
        arm, quantity = _read_contrast(row)
        if row.model and arm in arms and row.estimate is not None:
            groups.setdefault(place[:3], {})[arm, quantity] = row
    return groups


def _read_contrast(row: EstimateRow) -> tuple[str, str]:
    """Split a contrast's quantity into the contrast and the quantity itself."""
    quantity = find_quantity(row.quantity)
    if quantity.estimator == "difference":
        return quantity.derivation, quantity.base.name
    return row.arm, quantity.base.name if quantity.derivation == "Gamma" else quantity.name


def tabulate_arms(
    name: str, arms: Mapping[str, str], title: str, caption: str, results: Results, *, of: str = ""
) -> list[Table]:
    """Show what the answers do in each arm; `arms` gives the words for each of them.

    `of` is the experiment whose rows have these arms, by default the name of the table.
    """
    quantities = ("H", "D_res", "Delta_rep")
    cells = []
    for place, group in read_cells(results.rows.where(experiment=of or name), arms).items():
        for arm, words in arms.items():
            values = [group.get((arm, quantity)) for quantity in quantities]
            pairs = next((row.queries for row in values if row is not None), None)
            if pairs is not None:
                cells.append((*place, words, str(pairs), *map(format_row, values)))
    columns = (*PLACE, "comparison", "pairs", *(SYMBOLS[q] for q in quantities))
    return make_table(name, title, caption, columns, cells, names=4)


def chart_arms(
    name: str,
    arms: Mapping[str, str],
    quantities: Sequence[str],
    title: str,
    results: Results,
    *,
    of: str = "",
) -> list[Chart]:
    """Draw the arms below each other, by the first quantity that the run has."""
    charts = []
    for place, group in read_cells(results.rows.where(experiment=of or name), arms).items():
        for quantity in quantities:
            lines = [
                (words, row) for arm, words in arms.items() if (row := group.get((arm, quantity)))
            ]
            if len(lines) > 1:
                heading = f"{title_place(place)}: {title.format(quantity)}"
                charts.append(draw_forest(f"{name}-{name_chart(*place)}", heading, lines))
                break
    return charts


def title_place(place: Sequence[str]) -> str:
    """Name a policy, a schedule and a model in the title of a chart."""
    policy, schedule, model = map(shorten, place)
    return f"{policy}, {schedule}, read by {model}"
