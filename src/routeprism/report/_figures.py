"""Charts on the page: few at once, alike ones with the same axes, the remaining ones on demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from routeprism.exhibits import Chart
from routeprism.report._exhibits import Section, read_template
from routeprism.report._html import Markup, fragment, reveal_controls, tag
from routeprism.report._tables import RowNumbers, as_html

__all__ = [
    "chart_data",
    "choose_charts",
    "figure",
    "figure_choice",
    "merge_forests",
    "show_section",
]

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
        tag(
            "figcaption",
            tag("label", "Quantity ", tag("select", *options, data_choice=name)),
        ),
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
