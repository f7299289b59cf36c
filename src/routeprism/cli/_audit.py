"""What `audit` and `demo` do and print."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table

from routeprism.answers import Plan, Progress
from routeprism.api import Audit, audit
from routeprism.errors import SpecError
from routeprism.models import Model, make_model
from routeprism.runs import COLUMNS, EstimateRow

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
    directory = run or _default_run(benchmark, policies, told)
    ask = partial(call, benchmark, *policies, models=made, run=directory, **settings)
    if made and (dry_run or not yes) and (dry_run or any(map(_spends, made))):
        costs = ask(dry_run=True).costs
        if dry_run:
            _show_costs(costs, as_json)
            return
        _confirm(costs)
    with _progress(quiet or as_json) as (pools, answers):
        found = ask(progress=pools, asked=answers)
    if as_json:
        json.dump(_as_json(found), sys.stdout, indent=2, ensure_ascii=False)
        sys.stdout.write("\n")
        return
    _show(found, Console())


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


def _spends(model: Model) -> bool:
    """Whether asking may cost money: a model elsewhere, unless it is on this machine."""
    if model.embedded or not model.settings.get("remote", hasattr(model, "base_url")):
        return False
    host = urlsplit(str(model.settings.get("base_url") or "")).hostname
    return host not in ("localhost", "127.0.0.1", "::1")


def _show_costs(costs: Mapping[str, Plan], as_json: bool) -> None:
    if as_json:
        json.dump({name: asdict(plan) for name, plan in costs.items()}, sys.stdout, indent=2)
        sys.stdout.write("\n")
        return
    for name, plan in costs.items():
        print(f"{name}: {plan}")


def _confirm(costs: Mapping[str, Plan]) -> None:
    if not any(plan.calls for plan in costs.values()):
        return
    asked = "; ".join(f"{name}: {plan}" for name, plan in costs.items())
    if not sys.stdin.isatty():
        raise SpecError(f"this would ask a model that may cost money ({asked}); say --yes to go on")
    print(asked, file=sys.stderr)
    if input("Go on? [y/N] ").strip().lower() not in ("y", "yes"):
        raise SpecError("not asked; nothing was spent")


def _default_run(benchmark: str, policies: Sequence[str], settings: Mapping[str, Any]) -> Path:
    """Name the run by what is asked, so that the same command meets its own run again."""
    asked = {key: str(value) for key, value in settings.items() if key != "workers"}
    written = json.dumps([benchmark, list(policies), asked], sort_keys=True)
    name = Path(benchmark.partition(":")[0]).name or "data"
    return Path("runs") / f"{name}-{hashlib.sha256(written.encode()).hexdigest()[:8]}"


Pools = Callable[[int, int], None]
Answers = Callable[[str, Progress], None]


@contextmanager
def _progress(silent: bool) -> Iterator[tuple[Pools | None, Answers | None]]:
    """Show pools, then for each model its answers with rate, cost and time left."""
    console = Console(stderr=True)
    if silent or not console.is_terminal:
        yield None, None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[said]}"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("pools", total=None, said="")
        models: dict[str, TaskID] = {}

        def pools(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        def answers(model: str, now: Progress) -> None:
            if model not in models:
                models[model] = bar.add_task(escape(model), total=None, said="")
            said = f"{now.rate:.0f}/s" + (f", {now.cost:.2f} so far" if now.cost else "")
            said += f", {now.failed} failed" if now.failed else ""
            bar.update(models[model], completed=now.done, total=now.total, said=said)

        yield pools, answers


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
        traced = row.experiment == "routes" and not row.model and row.policy
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
