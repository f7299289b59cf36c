"""What `curve` prints: a table of budgets, and which of them buys stability."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from routeprism.api.requests import prepare
from routeprism.cli._audit import run_request
from routeprism.cli._console import SafeConsole
from routeprism.cli._terminal import shorten_notes
from routeprism.exhibits import format_row
from routeprism.experiments import Audit
from routeprism.report import REPORT
from routeprism.runs import EstimateRow

__all__ = ["show_curve"]

_COLUMNS = (
    ("overlap.retained", "retained overlap"),
    ("recall.retained.forward", "recall forward"),
    ("recall.retained.route", "recall route"),
    ("overlap.exposed", "exposed overlap"),
    ("recall.exposed.forward", "recall forward"),
    ("recall.exposed.route", "recall route"),
)
_UNLABELLED = (("J", "exposed overlap J"),)
_ANY = 1000
"""A width that no table needs."""


def show_curve(settings: Any) -> None:
    """Run `curve`."""
    run_request(prepare("curve", settings), _show, kind="curve")


def _show_interval(row: EstimateRow | None) -> str:
    return str(format_row(row)) or "n/a"


def _show_value(row: EstimateRow | None) -> str:
    return "n/a" if row is None or row.estimate is None else f"{row.estimate:.3f}"


def _show(audit: Audit) -> None:
    console = SafeConsole()
    counts = ", ".join(f"{number} {name}" for name, number in audit.counts.items())
    console.print(f"{audit.benchmark}: {counts}", highlight=False, markup=False)
    tables, unbound = _tables(audit, _show_interval), console.options.update(width=_ANY)
    wide = max(console.measure(table, options=unbound).maximum for table in tables)
    fits = wide <= console.width
    for table in tables if fits else _tables(audit, _show_value):
        console.print(table)
    limits = audit.limits if fits else f"{audit.limits}; a wider terminal shows them"
    console.print(limits, style="dim", highlight=False)
    for line in (
        *audit.sentences,
        *(f"Note: {note}" for note in shorten_notes(audit.notes)),
        f"Run: {audit.directory} (estimates.csv, run.sqlite, manifest.json)",
        f"Report: {audit.directory / REPORT}" if audit.directory else "",
    ):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _tables(audit: Audit, format_value: Callable[[EstimateRow | None], str]) -> list[Table]:
    """Make a table for each order and interface: side by side they would not fit on a screen."""
    rows = [row for row in audit.rows if row.stratum == "all" and row.policy]
    labelled = any(row.quantity == "overlap.retained" for row in rows)
    columns: Sequence[tuple[str, str]] = _COLUMNS if labelled else _UNLABELLED
    grouped: dict[tuple[str, str], dict[str, dict[str, EstimateRow]]] = {}
    for row in rows:
        budgets = grouped.setdefault((row.schedule, row.interface), {})
        budgets.setdefault(row.policy, {})[row.quantity] = row
    orders = list(dict.fromkeys(row.schedule for row in rows))
    tables = []
    for place in sorted(grouped, key=lambda place: orders.index(place[0])):
        title = escape(f"{place[0]}, shown through {place[1]}")
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title=title)
        table.title_justify = "left"
        table.add_column("policy", no_wrap=True)
        for _, heading in columns:
            table.add_column(heading, justify="right", min_width=max(map(len, heading.split())))
        for policy, budget in grouped[place].items():
            table.add_row(escape(policy), *(format_value(budget.get(name)) for name, _ in columns))
        tables.append(table)
    return tables
