"""What `audit` and `demo` do and print."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from routeprism.api import Audit, audit
from routeprism.runs import COLUMNS, EstimateRow

__all__ = ["run_and_show"]

_LAYERS = (
    ("retained_changed_count", "retained"),
    ("V_changed_count", "V"),
    ("C_changed_count", "C"),
    ("I_changed_count", "I"),
    ("J", "J [95%]"),
)


def run_and_show(
    benchmark: str,
    policies: Sequence[str],
    *,
    run: Path | None,
    as_json: bool,
    quiet: bool,
    **settings: Any,
) -> None:
    """Audit, then print the layer table and a sentence for each policy."""
    directory = run or _default_run(benchmark, policies, settings)
    with _progress(quiet or as_json) as progress:
        found = audit(benchmark, *policies, run=directory, progress=progress, **settings)
    if as_json:
        json.dump(_as_json(found), sys.stdout, indent=2, ensure_ascii=False)
        sys.stdout.write("\n")
        return
    _show(found, Console())


def _default_run(benchmark: str, policies: Sequence[str], settings: Mapping[str, Any]) -> Path:
    """Name the run by what is asked, so that the same command meets its own run again."""
    asked = {key: str(value) for key, value in settings.items() if key != "workers"}
    written = json.dumps([benchmark, list(policies), asked], sort_keys=True)
    name = Path(benchmark.partition(":")[0]).name or "data"
    return Path("runs") / f"{name}-{hashlib.sha256(written.encode()).hexdigest()[:8]}"


@contextmanager
def _progress(silent: bool) -> Iterator[Callable[[int, int], None] | None]:
    console = Console(stderr=True)
    if silent or not console.is_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("pools", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _as_json(found: Audit) -> Mapping[str, Any]:
    return {
        "benchmark": found.benchmark,
        "counts": dict(found.counts),
        "notes": list(found.notes),
        "sentences": list(found.sentences),
        "run": None if found.directory is None else str(found.directory),
        "estimates": [{name: getattr(row, name) for name in COLUMNS} for row in found.rows],
    }


def _show(found: Audit, console: Console) -> None:
    synthetic = any("synthetic" in row.flags for row in found.rows)
    title = f"{found.benchmark}{' (synthetic)' if synthetic else ''}: " + ", ".join(
        f"{number} {name}" for name, number in found.counts.items()
    )
    console.print(title, highlight=False, markup=False)
    console.print(_layer_table(found.rows))
    console.print(
        "retained, V (sources), C (context), I (state): pairs that changed; "
        "J: overlap of sources, 1 = the same",
        style="dim",
        highlight=False,
    )
    for sentence in found.sentences:
        console.print(sentence, highlight=False, markup=False, soft_wrap=True)
    for note in _shortened(found.notes):
        console.print(f"Note: {note}", highlight=False, markup=False, soft_wrap=True)
    if found.directory is not None:
        console.print(
            f"Run: {found.directory} (estimates.csv, run.sqlite, manifest.json)",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )


def _shortened(notes: Sequence[str], most: int = 8) -> Sequence[str]:
    if len(notes) <= most:
        return notes
    return (*notes[:most], f"… and {len(notes) - most} more; --json gives them all")


def _layer_table(rows: Sequence[EstimateRow]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("policy", overflow="fold", min_width=16)
    table.add_column("schedule", no_wrap=True)
    for _, heading in _LAYERS:
        table.add_column(heading, justify="right", no_wrap=True)
    grouped: dict[str, dict[str, dict[str, EstimateRow]]] = {}
    for row in rows:
        if row.experiment == "routes" and row.stratum == "all" and not row.arm and row.policy:
            routes = grouped.setdefault(row.policy, {})
            routes.setdefault(row.schedule, {})[row.quantity] = row
    for policy, routes in grouped.items():
        name = policy
        for schedule, found in routes.items():
            if "J" in found:
                cells = (_cell(found.get(quantity)) for quantity, _ in _LAYERS)
                table.add_row(escape(name), escape(schedule), *cells)
                name = ""
    return table


def _cell(row: EstimateRow | None) -> str:
    if row is None or row.estimate is None:
        return "n/a"
    if row.quantity.endswith("_count"):
        return f"{row.estimate:.0f}"
    if row.lower is None or row.upper is None:
        return f"{row.estimate:.3f}"
    return f"{row.estimate:.3f} [{row.lower:.3f}, {row.upper:.3f}]"
