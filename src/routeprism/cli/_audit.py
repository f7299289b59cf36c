"""What `audit` and `demo` do and print."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from routeprism.api import Audit, audit
from routeprism.cli._passes import read_masks
from routeprism.cli._terminal import confirm, default_run, progress, show_costs, spends
from routeprism.errors import SpecError
from routeprism.models import make_model
from routeprism.policies import builder_model, make_policy, own_source
from routeprism.records import load_benchmark
from routeprism.runs import COLUMNS, EstimateRow
from routeprism.support import load_readings, with_readings

__all__ = ["run_and_show", "show_demo"]

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
    call: Callable[..., Audit] = audit,
    data: Path | None = None,
    readings: Sequence[Path] = (),
    masks: Sequence[str] = (),
    models: Sequence[str] = (),
    base_url: str | None = None,
    dry_run: bool = False,
    yes: bool = False,
    **settings: Any,
) -> None:
    """Audit, then print the layer table and a sentence for each policy."""
    made = [make_model(text, base_url=base_url) for text in models]
    told = {
        **settings,
        "call": call.__name__,
        "models": [(one.name, dict(one.settings)) for one in made],
    }
    named_policies = [make_policy(text, base_url=base_url) for text in policies]
    builders = [model for one in named_policies if (model := builder_model(one)) is not None]
    if builders:
        told["builders"] = [(one.name, dict(one.settings)) for one in builders]
        settings["base_url"] = base_url
    _refuse_idle(settings, dry_run=dry_run and not builders, models=models)
    loaded = load_benchmark(benchmark, data)
    for file in readings:
        loaded = with_readings(loaded, load_readings(file))
    if readings and settings.get("labels") is None:
        raise SpecError(f"say which labels to use: --labels {loaded.labels[-1]}")
    told["content"] = [loaded.fingerprint, *map(own_source, named_policies)]
    directory = run or default_run(benchmark, policies, told)
    named = {mask.name: mask.question_ids for mask in read_masks(masks, loaded)}
    ask = partial(call, loaded, *policies, models=made, masks=named, run=directory, **settings)
    if dry_run or (not yes and any(map(spends, (*made, *builders)))):
        costs = ask(dry_run=True).costs
        if dry_run:
            show_costs(costs, as_json)
            return
        confirm(costs)
    with progress(quiet or as_json) as (pools, answers):
        found = ask(progress=pools, asked=answers)
    if as_json:
        json.dump(_as_json(found), sys.stdout, indent=2, ensure_ascii=False)
        sys.stdout.write("\n")
        return
    _show(found, Console())


_ANSWER_DEFAULTS: Mapping[str, tuple[str, object]] = {
    "--draws": ("draws", 1),
    "--control": ("control", "exact"),
    "--filler": ("fillers", ["A"]),
    "--provenance": ("provenance", ["preserved"]),
    "--margin": ("margin", 0.02),
    "--display": ("display", []),
    "--reuse": ("reuse", False),
    "--batch": ("batches", [""]),
    "--judge": ("judge", "embedded"),
}


def _refuse_idle(settings: Mapping[str, Any], *, dry_run: bool, models: Sequence[str]) -> None:
    """Refuse options that do nothing because nobody is asked."""
    if models:
        return
    idle = [
        option
        for option, (name, default) in _ANSWER_DEFAULTS.items()
        if name in settings and settings[name] != default
    ]
    if dry_run:
        idle.insert(0, "--dry-run")
    if idle:
        raise SpecError(f"{idle[0]} is about answers, and nobody is asked: say --model, too")


def show_demo(*, run: Path | None, as_json: bool, quiet: bool) -> None:
    """Audit five policies on the synthetic sample with the embedded reader."""
    run_and_show(
        "sample",
        ["focal", "recent:k=3", "utility:k=3", "lexical", "raw"],
        schedules=["replay"],
        models=["reader"],
        draws=3,
        run=run,
        as_json=as_json,
        quiet=quiet,
    )


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
        f"{number} {name if number != 1 else name[:-1]}" for name, number in found.counts.items()
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
        traced = row.experiment == "routes" and not (row.model or row.mask) and row.policy
        if traced and row.stratum == "all" and not row.arm:
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
