"""Write the reference pages, which are made from the program itself: `make docs-reference`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from routeprism.cli._app import app
from routeprism.measures import (
    ANSWER_COORDINATES,
    BUILD_COORDINATES,
    COORDINATES,
    RETENTION,
    Coordinate,
)

PAGES = Path(__file__).parents[1] / "docs" / "reference"

_SECTIONS: Mapping[str, Sequence[Coordinate[Any]]] = {
    "Of every pair of routes": COORDINATES,
    "With support labels": RETENTION,
    "With several builds of a route (`--builds`)": BUILD_COORDINATES,
    "With a model": ANSWER_COORDINATES,
}

_DERIVED = (
    ("`Q_count`", "pairs with value 1, for names in `_changed`", "the table", "diagnosis.md"),
    ("`Gamma.Q`", "Q minus a comparator's, or another arm's", "experiments", "experiments.md"),
    (
        "`delta_op.Q`, `interaction.Q`",
        "what operations in arrival order add to Q",
        "which operation",
        "diagnosis.md#which-operation",
    ),
    ("`dispatch.Q`", "Q by which route was asked first", "models", "models.md"),
    ("`loo_min.Q`, `loo_max.Q`", "range of Q, one unit left out", "statistics", "statistics.md"),
    (
        "`changed-preserved.Q`",
        "Q where exposed support changed, minus Q where it did not, within users",
        "where support changed",
        "restoration.md#where-support-changed",
    ),
    (
        "`accuracy.present`, `restored-absent`, …",
        "the four conditions and their contrasts",
        "restoration",
        "restoration.md#restoration-four-conditions",
    ),
    (
        "`order_change`, `support_kept.…`, `mean_clusters`",
        "over every order",
        "orders",
        "orders.md#estimates",
    ),
    ("`agreement`, `kappa`", "of readings and labels", "restoration", "restoration.md"),
    ("`count.X`", "how many pairs are X", "restoration", "restoration.md"),
    ("`miss.X`, `extra.X`", "changes a simpler readout X misses, or adds", "models", "models.md"),
)
"""Name, meaning, page; Q stands for any quantity above."""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _code(text: str) -> str:
    return f"`{text}`"


def commands() -> str:
    """Give the command reference."""
    group: Any = typer.main.get_command(app)
    lines = [
        "# Commands",
        "",
        "Made from the program by `make docs-reference`; `routeprism COMMAND --help` says it, too.",
        "Exit codes: 0 fine, 1 a gate or finding failed, 2 the call or the input was wrong.",
    ]
    with typer.Context(group, info_name="routeprism") as above:
        lines += ["", "## `routeprism`", "", _cell(group.help), "", *_options(group, above)]
        for name, command in group.commands.items():
            with typer.Context(command, info_name=name, parent=above) as context:
                usage = " ".join(command.collect_usage_pieces(context))
                lines += ["", f"## `{name}`", "", _cell(command.help), ""]
                lines += ["```text", f"routeprism {name} {usage}", "```", ""]
                lines += _options(command, context)
    return "\n".join(lines) + "\n"


def _options(command: Any, context: typer.Context) -> Iterable[str]:
    yield "| argument or option | meaning |"
    yield "| --- | --- |"
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record:
            yield f"| {_code(_cell(record[0]))} | {_cell(record[1])} |"


def coordinates() -> str:
    """Give the coordinate reference."""
    lines = [
        "# Coordinates",
        "",
        "What is observed of a question, by its name in `estimates.csv`. Made from the program by",
        "`make docs-reference`; references are to the paper. An empty cell has no such reading.",
    ]
    for title, every in _SECTIONS.items():
        lines += ["", f"## {title}", "", "| name | symbol | meaning | 0 | 1 | defined in |"]
        lines += ["| --- | --- | --- | --- | --- | --- |"]
        for one in every:
            cells = (one.symbol, one.meaning, one.zero, one.one, one.reference)
            lines.append(f"| {_code(one.name)} | {' | '.join(map(_cell, cells))} |")
    lines += ["", "## Derived from these", "", "Q stands for any quantity above.", ""]
    lines += ["| name | meaning | page |", "| --- | --- | --- |"]
    lines += [f"| {name} | {meaning} | [{page}](../{at}) |" for name, meaning, page, at in _DERIVED]
    return "\n".join(lines) + "\n"


def pages() -> dict[Path, str]:
    """Give every generated page with its text."""
    os.environ["COLUMNS"] = "100"  # nothing here may depend on the terminal
    return {PAGES / "commands.md": commands(), PAGES / "coordinates.md": coordinates()}


if __name__ == "__main__":
    PAGES.mkdir(exist_ok=True)
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
