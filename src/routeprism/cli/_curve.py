"""What `curve` does and prints: a table of budgets, and which of them buys stability."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from routeprism.api import Audit, curve
from routeprism.cli._audit import shortened, written
from routeprism.cli._tables import cell
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
_UNLABELLED = (("J", "exposed overlap J [95%]"),)


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
    console.print(_table(found))
    console.print(found.limits, style="dim", highlight=False)
    for line in (
        *found.sentences,
        *(f"Note: {note}" for note in shortened(found.notes)),
        f"Run: {directory} (estimates.csv, run.sqlite, manifest.json)",
        f"Report: {directory / REPORT}",
    ):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _table(found: Audit) -> Table:
    rows = [row for row in found.rows if row.stratum == "all" and row.policy]
    labelled = any(row.quantity == "overlap.retained" for row in rows)
    columns: Sequence[tuple[str, str]] = _COLUMNS if labelled else _UNLABELLED
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("schedule", "interface", "policy"):
        table.add_column(name, no_wrap=True)
    for _, heading in columns:
        table.add_column(heading, justify="right")
    grouped: dict[tuple[str, str, str], dict[str, EstimateRow]] = {}
    for row in rows:
        place = (row.schedule, row.interface, row.policy)
        grouped.setdefault(place, {})[row.quantity] = row
    orders = list(dict.fromkeys(row.schedule for row in rows))
    for place in sorted(grouped, key=lambda place: orders.index(place[0])):
        cells = (cell(grouped[place].get(quantity)) for quantity, _ in columns)
        table.add_row(*map(escape, place), *cells)
    return table
