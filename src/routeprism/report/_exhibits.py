"""The tables and charts of a run, read from its store and made by its experiments."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from typing import Any

from routeprism.exhibits import (
    Chart,
    Results,
    Series,
    Table,
    draw_forest,
    format_row,
    make_table,
    shorten,
)
from routeprism.experiments import registered_experiments
from routeprism.report._published import tabulate_published
from routeprism.runs import COLUMNS, Column, EstimateRow, Rows, StoredRun

__all__ = [
    "Section",
    "build_spec",
    "chart_estimates",
    "list_charts",
    "list_tables",
    "make_sections",
    "read_results",
    "read_template",
    "tabulate_estimates",
]


@dataclass(frozen=True, slots=True)
class Section:
    """The tables and charts of one experiment."""

    name: str
    title: str
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    tab: str = "experiments"

    @property
    def is_verdict(self) -> bool:
        """Whether it only repeats the table of verdicts."""
        return not self.charts and [table.name for table in self.tables] == ["summary"]


def make_sections(results: Results) -> list[Section]:
    """Make the tables and charts of every experiment that the run has results of."""
    sections = (
        Section(
            experiment.name,
            experiment.title,
            tuple(experiment.make_tables(results)),
            tuple(experiment.make_charts(results)),
            experiment.tab,
        )
        for experiment in registered_experiments()
    )
    return [section for section in sections if section.tables or section.charts]


def list_tables(results: Results) -> list[Table]:
    """List every table of a run, that of all estimates last."""
    return [
        *(table for section in make_sections(results) for table in section.tables),
        *tabulate_published(results.findings.get("printed_table", ())),
        *tabulate_estimates(results.rows),
    ]


def list_charts(results: Results) -> list[Chart]:
    """List every chart of a run, each with a name of its own: long names may be cut alike."""
    counts: Counter[str] = Counter()
    charts = []
    all_charts = (chart for section in make_sections(results) for chart in section.charts)
    for chart in (
        *all_charts,
        *(c for group in chart_estimates(results.rows).values() for c in group),
    ):
        counts[chart.name] += 1
        number = counts[chart.name]
        charts.append(replace(chart, name=f"{chart.name}-{number}") if number > 1 else chart)
    return charts


_UNIT_QUANTITIES = ("J", "H", "Delta", "accuracy.")


def read_results(stored: StoredRun, rows: Sequence[EstimateRow]) -> Results:
    """Read a finished run's findings and the means of its units."""
    findings: dict[str, list[Any]] = {}
    for experiment in stored.experiments():
        if experiment.startswith("answers."):  # read with each question
            continue
        for finding in stored.findings(experiment):
            findings.setdefault(finding.name, []).append(finding)
    return Results(Rows.of(rows), findings, _read_units(stored))


def _read_units(stored: StoredRun) -> dict[Series, Mapping[str, float]]:
    """Read each unit's mean over its questions, for quantities that are drawn unit by unit.

    Of several fillers the average over all of them is read, of several batches the first.
    """
    columns: dict[Series, Column] = {}
    means: dict[Series, Mapping[str, float]] = {}
    for column, users in stored.per_question().items():
        if column.arm or column.mask or not column.quantity.startswith(_UNIT_QUANTITIES):
            continue
        names = (column.quantity, column.policy, column.schedule, column.model)
        series = Series(column.experiment, *names)
        earlier = columns.get(series)
        if earlier is not None and (
            column.batch > earlier.batch or len(column.filler) < len(earlier.filler)
        ):
            continue
        columns[series] = column
        means[series] = {
            user: sum(values.values()) / len(values) for user, values in users.items() if values
        }
    return means


_HIDDEN = ("estimate", "lower", "upper", "benchmark", "seed", "unit")
_SIZES = ("queries", "units", "draws")


def tabulate_estimates(rows: Rows) -> list[Table]:
    """Show every number, leaving out columns that are empty throughout."""
    used = [
        name
        for name in COLUMNS
        if name not in _HIDDEN and any(getattr(row, name) not in ("", None) for row in rows)
    ]
    texts = [name for name in used if name not in _SIZES]
    sizes = [name for name in used if name in _SIZES]
    return make_table(
        "estimates",
        "Every estimate",
        "All rows of estimates.csv. routeprism trace RUN --row N lists the units, questions and "
        "answers behind row N.",
        ("row", *texts, "estimate [95%]", *sizes),
        [
            (
                str(number),
                *(str(getattr(row, name)) for name in texts),
                format_row(row),
                *("" if (n := getattr(row, name)) is None else str(n) for name in sizes),
            )
            for number, row in enumerate(rows, start=1)
        ],
        names=len(texts) + 1,
    )


_LABELS = (
    *("policy", "schedule", "model", "judge", "prompt_control", "filler", "arm", "labels", "batch"),
    *("stratum", "mask"),
)


def chart_estimates(rows: Rows) -> dict[str, list[Chart]]:
    """Draw a forest plot for each quantity of each experiment; kinds and masks have their own."""
    groups: dict[tuple[str, str, bool], list[EstimateRow]] = {}
    for row in rows:
        if row.estimate is not None and row.lower is not None:
            whole = row.stratum == "all" and not row.mask
            groups.setdefault((row.experiment, row.quantity, whole), []).append(row)
    charts: dict[str, list[Chart]] = {}
    single: dict[str, list[tuple[str, EstimateRow]]] = {}
    for (experiment, quantity, whole), group in groups.items():
        if len(group) == 1:
            single.setdefault(experiment, []).append((quantity, group[0]))
            continue
        name = f"forest-{experiment}-{quantity}{'' if whole else '-parts'}"
        title = quantity if whole else f"{quantity}, by kind of question and mask"
        charts.setdefault(experiment, []).append(draw_forest(name, title, list(_label(group))))
    for experiment, lines in single.items():
        labelled = [
            (f"{quantity}{' ' * at} · {label}", row)
            for at, (quantity, row) in enumerate(lines)
            for label, _ in _label([row])
        ]
        chart = draw_forest(f"forest-{experiment}-single", "quantities with one row", labelled)
        charts.setdefault(experiment, []).append(chart)
    return charts


def _label(rows: Sequence[EstimateRow]) -> Iterator[tuple[str, EstimateRow]]:
    """Label each row by the columns in which the rows differ."""
    varying = [
        name
        for name in _LABELS
        if name in ("policy", "schedule") or len({getattr(row, name) for row in rows}) > 1
    ]
    labels: set[str] = set()
    for row in rows:
        parts = [shorten(str(getattr(row, name))) for name in varying if getattr(row, name)]
        label = shorten(" · ".join(parts) or "all", 160)
        while label in labels:  # names that were cut may look alike
            label += " "
        labels.add(label)
        yield label, row


@lru_cache(maxsize=1)
def read_templates() -> dict[str, dict[str, Any]]:
    """Read the chart templates: Vega-Lite specs whose data set is called `values`."""
    text = resources.files("routeprism.report").joinpath("assets/charts.json").read_text("utf-8")
    templates: dict[str, dict[str, Any]] = json.loads(text)
    return templates


def read_template(chart: Chart) -> dict[str, Any]:
    """Read the template of a chart: one of this package, or the chart's own."""
    if not chart.template.startswith("{"):
        return read_templates()[chart.template]
    template: dict[str, Any] = json.loads(chart.template)
    return template


def build_spec(chart: Chart) -> dict[str, Any]:
    """Build the whole Vega-Lite specification of a chart."""
    spec: dict[str, Any] = {**read_template(chart), "description": chart.alternative}
    values = [dict(value) for value in chart.values]
    spec["datasets"] = {**spec.get("datasets", {}), "values": values}
    return spec
