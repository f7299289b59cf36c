"""What `audit` and `restore` do and print."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from routeprism.api import Audit, audit
from routeprism.cli._passes import read_masks
from routeprism.cli._tables import (
    evidence_table,
    interface_table,
    mechanism_table,
    replication_table,
    restoration_table,
    retention_table,
    ties_table,
)
from routeprism.cli._terminal import confirm, default_run, progress, show_costs, spends
from routeprism.errors import SpecError
from routeprism.models import Model, make_model, make_models
from routeprism.policies import builder_model, make_policy, own_source
from routeprism.records import load_benchmark
from routeprism.report import REPORT, write_report
from routeprism.runs import COLUMNS
from routeprism.support import with_label_file

__all__ = ["run_and_show", "shortened", "written"]


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
    main: Callable[[Audit], Audit] | None = None,
    **settings: Any,
) -> None:
    """Audit, then print the layer table and a sentence for each policy.

    `main` chooses what of it is printed; --json has all.
    """
    made = [one for text in models for one in make_models(text, base_url=base_url)]
    told = {
        **settings,
        "call": call.__name__,
        "models": [(one.name, dict(one.settings)) for one in made],
    }
    named_policies = [make_policy(text, base_url=base_url) for text in policies]
    builders = [model for one in named_policies if (model := builder_model(one)) is not None]
    if builders:
        told["builders"] = [(one.name, dict(one.settings)) for one in builders]
    _refuse_idle(settings, dry_run=dry_run and not builders, models=models)
    loaded = load_benchmark(benchmark, data)
    for file in readings:
        loaded = with_label_file(loaded, file)
    if readings and settings.get("labels") is None:
        raise SpecError(f"say which labels to use: --labels {loaded.labels[-1]}")
    told["content"] = [loaded.fingerprint, *map(own_source, named_policies)]
    directory = run or default_run(benchmark, policies, told)
    named = {mask.name: mask.question_ids for mask in read_masks(masks, loaded)}
    if base_url is not None:
        settings["base_url"] = base_url
    ask = partial(call, loaded, *policies, models=made, masks=named, run=directory, **settings)
    paid = (*made, *builders, *_judging(settings.get("judge"), base_url))
    if dry_run or (not yes and any(map(spends, paid))):
        costs = ask(dry_run=True).costs
        if dry_run:
            show_costs(costs, as_json)
            return
        confirm(costs)
    with progress(quiet or as_json) as (pools, answers):
        found = ask(progress=pools, asked=answers)
        if found.directory is not None:
            write_report(found.directory)
    if as_json:
        json.dump(written(found), sys.stdout, indent=2, ensure_ascii=False)
        sys.stdout.write("\n")
        return
    _show(found if main is None else main(found), Console())


def _judging(judge: str | None, base_url: str | None) -> list[Model]:
    """Give the model that judges, where one does."""
    if judge is None or judge in ("embedded", "recorded"):
        return []
    return [make_model(judge, base_url=base_url)]


_ANSWER_DEFAULTS: Mapping[str, tuple[str, object]] = {
    "--draws": ("draws", 1),
    "--control": ("control", "exact"),
    "--filler": ("fillers", ["A"]),
    "--provenance": ("provenance", ["preserved"]),
    "--margin": ("margin", 0.02),
    "--display": ("display", []),
    "--reuse": ("reuse", False),
    "--batch": ("batches", [""]),
    "--judge": ("judge", None),
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


def written(found: Audit) -> Mapping[str, Any]:
    """Give the object that --json prints."""
    return {
        "benchmark": found.benchmark,
        "counts": dict(found.counts),
        "notes": list(found.notes),
        "limits": found.limits,
        "sentences": list(found.sentences),
        "run": None if found.directory is None else str(found.directory),
        "report": None if found.directory is None else str(found.directory / REPORT),
        "estimates": [{name: getattr(row, name) for name in COLUMNS} for row in found.rows],
    }


def _show(found: Audit, console: Console) -> None:
    synthetic = any("synthetic" in row.flags for row in found.rows)
    title = f"{found.benchmark}{' (synthetic)' if synthetic else ''}: " + ", ".join(
        f"{number} {name if number != 1 else name[:-1]}" for name, number in found.counts.items()
    )
    console.print(title, highlight=False, markup=False)
    console.print(interface_table(found.rows))
    legend = (
        "retained, V (sources), C (context), I (state): pairs that changed; "
        "J: overlap of sources, 1 = the same"
    )
    answered = {row.quantity for row in found.rows if row.model}
    if "D_res" in answered:
        legend += "; D_res: disagreement beyond the model's own"
    elif "H" in answered:
        legend += "; H: disagreement of the answers"
    if "Delta_rep" in answered:
        legend += "; Δ_rep: change of accuracy"
    console.print(legend, style="dim", highlight=False)
    console.print(found.limits, style="dim", highlight=False)
    tables = {
        "Evidence kept and shown: its recall forward (F) and on the other route (R)": (
            evidence_table(found.rows)
        ),
        "Answers, model by model": replication_table(found.rows),
        "Accuracy in the four conditions": restoration_table(found.rows),
        "Each operation against the canonical arm (δ)": mechanism_table(found.rows),
        "Overlap of what is retained after t records, forward and reversed": retention_table(
            found.rows
        ),
        "Ties that processing order decided, summed over questions": ties_table(found.rows),
    }
    for heading, table in tables.items():
        if table is not None:
            console.print(f"\n{heading}", style="bold", highlight=False)
            console.print(table)
    for sentence in found.sentences:
        console.print(sentence, highlight=False, markup=False, soft_wrap=True)
    for note in shortened(found.notes):
        console.print(f"Note: {note}", highlight=False, markup=False, soft_wrap=True)
    if found.directory is not None:
        console.print(
            f"Run: {found.directory} (estimates.csv, run.sqlite, manifest.json)\n"
            f"Report: {found.directory / REPORT}",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )


def shortened(notes: Sequence[str], most: int = 8) -> Sequence[str]:
    """Give the first notes, and say how many more there are."""
    if len(notes) <= most:
        return notes
    return (*notes[:most], f"… and {len(notes) - most} more; --json gives them all")
