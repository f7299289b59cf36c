"""What `curve` does and prints: a table of budgets, and which of them buys stability."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from routeprism.api import Audit, curve
from routeprism.cli._audit import shortened, written
from routeprism.cli._tables import cell, point
from routeprism.cli._terminal import default_run, progress
from routeprism.records import load_benchmark
from routeprism.report import REPORT, write_report
from routeprism.runs import EstimateRow

__all__ = ["run_and_show_curve"]

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


def run_and_show_curve(
    benchmark: str,
    policy: str,
    *,
    data: Path | None,
    run: Path | None,
    as_json: bool,
    quiet: bool,
    **settings: Any,
) -> None:
    """Audit at every budget, then print the table and a sentence for each order."""
    loaded = load_benchmark(benchmark, data)
    told = {**settings, "call": "curve", "content": loaded.fingerprint}
    directory = run or default_run(benchmark, [policy], told)
    with progress(quiet or as_json) as (pools, _):
        found = curve(loaded, policy, run=directory, progress=pools, **settings)
        write_report(directory)
    if as_json:
        json.dump(written(found), sys.stdout, indent=2, ensure_ascii=False)
        sys.stdout.write("\n")
        return
    console = Console()
    counted = ", ".join(f"{number} {name}" for name, number in found.counts.items())
    console.print(f"{found.benchmark}: {counted}", highlight=False, markup=False)
    tables, unbound = _tables(found, cell), console.options.update(width=_ANY)
    wide = max(console.measure(table, options=unbound).maximum for table in tables)
    fits = wide <= console.width
    for table in tables if fits else _tables(found, point):
        console.print(table)
    limits = found.limits if fits else f"{found.limits}; a wider terminal shows them"
    console.print(limits, style="dim", highlight=False)
    for line in (
        *found.sentences,
        *(f"Note: {note}" for note in shortened(found.notes)),
        f"Run: {directory} (estimates.csv, run.sqlite, manifest.json)",
        f"Report: {directory / REPORT}",
    ):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _tables(found: Audit, written: Callable[[EstimateRow | None], str]) -> list[Table]:
    """Make a table for each order and interface: side by side they would not fit on a screen."""
    rows = [row for row in found.rows if row.stratum == "all" and row.policy]
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
            table.add_row(escape(policy), *(written(budget.get(name)) for name, _ in columns))
        tables.append(table)
    return tables
