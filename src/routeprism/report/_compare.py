"""Two versions of a memory on one page: what changed, and which questions lost their support."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from routeprism.experiments import Comparison
from routeprism.experiments.comparison import Difference, SupportChange, said_experiment
from routeprism.report._charts import Chart, short, templates
from routeprism.report._html import Markup, data_block, fragment, tag
from routeprism.report._page import figure, shell
from routeprism.report._table import Table
from routeprism.report._table_writing import as_html
from routeprism.report._write import write_page

__all__ = ["write_comparison"]


def write_comparison(found: Comparison, path: Path) -> Path:
    """Write a comparison as a page of its own."""
    plain = [one for one in found.differences if not (one.column.arm or one.column.mask)]
    charts = _charts(plain)
    lost = [change for change in found.support if change.lost]
    kept = [change for change in found.support if change.kept]
    body = [
        _section("Verdict", _sentences(found)),
        _section("What changed", as_html(_differences(plain))) if plain else None,
        _section("Changes with intervals", tag("div", *map(figure, charts), class_="charts"))
        if charts
        else None,
        _section("Support newly lost", as_html(_support(lost, lost=True))) if lost else None,
        _section("Support newly kept", as_html(_support(kept, lost=False))) if kept else None,
    ]
    number = len({change.question for change in lost})
    said = (
        f"The second version newly loses support for {number} question{'s' * (number != 1)}."
        if lost
        else "The second version newly loses no support."
    )
    header = tag(
        "header",
        tag(
            "div",
            tag("p", "RoutePrism", class_="brand"),
            tag("button", "Theme: auto", type="button", id="theme", class_="quiet"),
            class_="bar",
        ),
        tag("h1", said),
        tag("p", f"{found.benchmark} · from {found.first} to {found.second}", class_="about"),
    )
    data = {
        "templates": templates(),
        "charts": {chart.name: [chart.template, list(chart.values)] for chart in charts},
    }
    title = f"RoutePrism: {found.first} against {found.second}"
    blocks = [data_block("rp-charts", data)]
    write_page(path, shell(title, header, fragment(body), blocks, charted=bool(charts)))
    return path


def _section(title: str, content: Markup) -> Markup:
    return tag("section", tag("h2", title), content, aria_label=title)


def _sentences(found: Comparison) -> Markup:
    said = [*found.sentences, found.limits, *(f"Note: {note}" for note in found.notes)]
    return tag("ul", *(tag("li", one) for one in said))


def _names(one: Difference) -> tuple[str, ...]:
    column = one.column
    before = one.policy_before
    policy = column.policy if before == column.policy else f"{before} → {column.policy}"
    where = (policy, column.schedule, said_experiment(one), column.model, column.filler)
    return *where, column.quantity


def _change(one: Difference) -> str:
    change = f"{one.difference.value:+.3f}"
    if one.difference.lower is None or one.difference.upper is None:
        return change
    return f"{change} [{one.difference.lower:+.3f}, {one.difference.upper:+.3f}]"


def _differences(plain: Sequence[Difference]) -> Table:
    return Table(
        "differences",
        "What changed",
        "Every quantity that both runs have; the difference is paired within units.",
        (
            *("policy", "schedule", "experiment", "model", "filler", "quantity"),
            *("before", "after", "change [95 %]", "questions"),
        ),
        tuple(
            (
                *_names(one),
                f"{one.before:.3f}",
                f"{one.after:.3f}",
                _change(one),
                str(one.difference.queries),
            )
            for one in plain
        ),
        names=6,
    )


def _charts(plain: Sequence[Difference]) -> list[Chart]:
    grouped: dict[str, list[Difference]] = {}
    for one in plain:
        if one.difference.lower is not None and not one.column.quantity.startswith("count."):
            grouped.setdefault(one.column.quantity, []).append(one)
    return [
        Chart(
            f"change-{at}",
            "changes",
            f"Change of {quantity}",
            f"Change of {quantity}, second minus first: "
            + "; ".join(f"{_label(one)} {_change(one)}" for one in several),
            "forest",
            tuple(
                {
                    "label": _label(one),
                    "estimate": one.difference.value,
                    "lower": one.difference.lower,
                    "upper": one.difference.upper,
                    "questions": one.difference.queries,
                }
                for one in several
            ),
        )
        for at, (quantity, several) in enumerate(grouped.items())
    ]


def _label(one: Difference) -> str:
    return " · ".join(short(name) for name in _names(one)[:5] if name)


def _support(changes: Sequence[SupportChange], *, lost: bool) -> Table:
    return Table(
        "support",
        "Support newly lost" if lost else "Support newly kept",
        "Records that carry the answer, shown by the first version and no longer by the second."
        if lost
        else "Records that carry the answer, shown by the second version and not by the first.",
        ("question", "user", "text", "policy", "schedule", "records"),
        tuple(
            (
                change.question,
                change.user,
                change.text,
                change.policy_after,
                change.schedule,
                ", ".join(change.lost if lost else change.kept),
            )
            for change in changes
        ),
        names=6,
    )
