"""The tables and charts of a run: read from its store, made by its experiments, on the page."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
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
from routeprism.quantities import find_quantity
from routeprism.report._html import (
    Markup,
    RowNumbers,
    as_html,
    fragment,
    read_asset,
    reveal_controls,
    tag,
)
from routeprism.runs import COLUMNS, Column, EstimateRow, Finding, Rows, StoredRun


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
    counts: Counter[str] = Counter()
    sections = []
    for experiment in registered_experiments():
        tables = tuple(experiment.make_tables(results))
        charts = tuple(_name_apart(experiment.make_charts(results), counts))
        if tables or charts:
            title, tab = experiment.title, experiment.tab
            sections.append(Section(experiment.name, title, tables, charts, tab))
    return sections


def _name_apart(charts: Iterable[Chart], counts: Counter[str]) -> Iterator[Chart]:
    """Add a number to names of charts that became alike when they were made fit for files."""
    for chart in charts:
        counts[chart.name] += 1
        number = counts[chart.name]
        yield replace(chart, name=f"{chart.name}-{number}") if number > 1 else chart


def list_tables(results: Results) -> list[Table]:
    """List every table of a run, that of all estimates last."""
    return [
        *(table for section in make_sections(results) for table in section.tables),
        *tabulate_published(results.findings.get("printed_table", ())),
        *tabulate_estimates(results.rows),
    ]


def list_charts(results: Results) -> list[Chart]:
    """List every chart of a run, the forest plots of all estimates last."""
    return [
        *(chart for section in make_sections(results) for chart in section.charts),
        *(chart for group in chart_estimates(results.rows).values() for chart in group),
    ]


def read_results(stored: StoredRun, rows: Sequence[EstimateRow]) -> Results:
    """Read a finished run's findings and the means of its units."""
    findings: dict[str, list[Any]] = {}
    for experiment in stored.experiments():
        if experiment.startswith("answers."):  # read with each question
            continue
        for finding in stored.findings(experiment):
            findings.setdefault(finding.name, []).append(finding)
    incomplete = bool(stored.shortfall())
    return Results(Rows.of(rows), findings, _read_units(stored), incomplete)


def _read_units(stored: StoredRun) -> dict[Series, Mapping[str, float]]:
    """Read each unit's mean over its questions, for quantities that are drawn unit by unit.

    Of several fillers the average over all of them is read, of several batches the first.
    """
    columns: dict[Series, Column] = {}
    means: dict[Series, Mapping[str, float]] = {}
    for column, users in stored.per_question().items():
        if column.arm or column.mask or not find_quantity(column.quantity).is_profiled:
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
    templates: dict[str, dict[str, Any]] = json.loads(read_asset("charts.json"))
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


# --- on the page -----------------------------------------------------------------------------

_SHOWN_CHARTS = 3
"""How many charts a tab shows before the others are asked for."""
_SHOWN_OF_SECTION = 2
"""How many of them are of the same section."""


def figure(chart: Chart) -> Markup:
    """Make the place of a chart, with what it says in words."""
    return tag(
        "figure",
        tag("figcaption", chart.title),
        _canvas(chart),
        class_="wide" if chart.template == "forest" else None,
    )


def _canvas(chart: Chart) -> Markup:
    return tag(
        "div", class_="chart", data_chart=chart.name, role="img", aria_label=chart.alternative
    )


def figure_choice(name: str, charts: Sequence[Chart]) -> Markup:
    """Make one place for many charts, of which the reader chooses one."""
    options = [
        tag("option", chart.title, value=chart.name, data_alternative=chart.alternative)
        for chart in charts
    ]
    return tag(
        "figure",
        tag("figcaption", tag("label", "Quantity ", tag("select", *options, data_choice=name))),
        _canvas(charts[0]),
        class_="wide",
    )


def choose_charts(sections: Sequence[Section]) -> list[Chart]:
    """Choose the charts that a tab shows at once: one of each section, then of another kind."""
    leading = []
    for section in sections:
        first = {chart.template: chart for chart in reversed(section.charts)}
        leading.append([chart for chart in section.charts if first[chart.template] is chart])
    selection = [
        charts[at] for at in range(_SHOWN_OF_SECTION) for charts in leading if at < len(charts)
    ]
    return selection[:_SHOWN_CHARTS]


def show_section(section: Section, numbers: RowNumbers, charts: Sequence[Chart]) -> Markup:
    """Show the chosen charts of an experiment, the others on demand, and its tables."""
    visible = [chart for chart in section.charts if chart in charts]
    rest = [chart for chart in section.charts if chart not in visible]
    tables = [
        tag("div", tag("h3", table.title), as_html(table, numbers)) for table in section.tables
    ]
    more = tag(
        "details",
        tag("summary", f"{len(rest)}{' more' * bool(visible)} chart{'s' * (len(rest) != 1)}"),
        tag("div", *map(figure, rest), class_="charts"),
    )
    return fragment(
        [
            tag("div", *map(figure, visible), class_="charts") if visible else None,
            more if rest else None,
            *tables,
        ]
    )


def merge_forests(section: Section) -> Section:
    """Put the forest plots of a section into one, whose lines share an axis."""
    forests = [chart for chart in section.charts if chart.template == "forest"]
    if len(forests) < 2:
        return section
    names = _shorten_titles([chart.title for chart in forests])
    values = [
        {**value, "label": f"{name} · {value['label']}"}
        for name, chart in zip(names, forests, strict=True)
        for value in chart.values
    ]
    merged = replace(
        forests[0],
        title=section.title,
        alternative=" ".join(chart.alternative for chart in forests),
        values=tuple(values),
    )
    rest = [chart for chart in section.charts if chart.template != "forest"]
    return replace(section, charts=(merged, *rest))


def _shorten_titles(titles: Sequence[str]) -> list[str]:
    """Leave out the parts that all titles share, unless they then look alike."""
    split = [title.replace(": ", ", ").split(", ") for title in titles]
    shared = set(split[0]).intersection(*split[1:])
    short = [", ".join(part for part in parts if part not in shared) for parts in split]
    return short if len(set(short)) == len(short) and all(short) else list(titles)


def chart_data(charts: Sequence[Chart]) -> Mapping[str, object]:
    """Return the templates and values that the page's script draws charts from."""
    templates: dict[str, object] = {}
    data = {}
    for chart in charts:
        template = chart.name if chart.template.startswith("{") else chart.template
        templates[template] = read_template(chart)
        data[chart.name] = [template, [_reveal(value) for value in chart.values]]
    return {"templates": templates, "charts": data}


def _reveal(value: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: reveal_controls(item) if isinstance(item, str) else item
        for name, item in value.items()
    }


# --- published numbers -----------------------------------------------------------------------

_PRINTED = ("row", "column", "status", "published", "here")


def tabulate_published(findings: Iterable[Finding]) -> Iterable[Table]:
    """List the numbers of all labels in one table, for files."""
    cells = tuple(
        (finding.question, *line)
        for finding in _in_order(findings)
        for line in _lines(finding.value["lines"])
    )
    if cells:
        yield Table(
            "reproduction",
            "Published numbers",
            "Each printed number beside what was obtained, and whether it is reproduced, differs, "
            "is consistent with some set of primary users, needs answers or labels that are not "
            "public (machinery), or cannot be derived.",
            ("label", *_PRINTED),
            cells,
            names=4,
        )


def printed_section(findings: Iterable[Finding]) -> Markup | None:
    """Show each table behind its label, with the reasons and commands below it."""
    details = [_details(finding) for finding in _in_order(findings)]
    if not details:
        return None
    sentence = (
        "Each table and figure by its label. Machinery: the experiment runs, by the command below "
        "the table; the printed value depends on answers or labels that are not public."
    )
    return fragment([tag("p", sentence), *details])


def _in_order(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: int(finding.value["place"]))


def _lines(lines: Iterable[Sequence[str]]) -> list[tuple[str, ...]]:
    return [
        (row, column, status, published, obtained)
        for row, column, published, obtained, status in lines
    ]


def _details(finding: Finding) -> Markup:
    value = finding.value
    counts = ", ".join(f"{number} {status}" for status, number in value.get("counts", ()))
    table = Table(
        finding.question, finding.question, "", _PRINTED, tuple(_lines(value["lines"])), names=3
    )
    reasons = [tag("li", reason) for reason in value["reasons"]]
    commands = [tag("pre", tag("code", command)) for command in value["commands"]]
    return tag(
        "details",
        tag("summary", f"{finding.question}: {value['title']}{f' ({counts})' if counts else ''}"),
        as_html(table),
        tag("ul", *reasons) if reasons else None,
        fragment(commands),
        id=finding.question.replace(":", "-"),
    )
