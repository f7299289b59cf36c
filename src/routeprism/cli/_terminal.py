"""What commands share at the terminal: where runs go, progress, and asking before spending."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from routeprism.answers import Plan, Progress
from routeprism.errors import SpecError
from routeprism.models import Model

__all__ = ["confirm", "default_run", "progress", "show_costs", "spends"]


def spends(model: Model) -> bool:
    """Whether asking may cost money: a model elsewhere, unless it is on this machine."""
    if model.embedded or not model.settings.get("remote", hasattr(model, "base_url")):
        return False
    host = urlsplit(str(model.settings.get("base_url") or "")).hostname
    return host not in ("localhost", "127.0.0.1", "::1")


def show_costs(costs: Mapping[str, Plan], as_json: bool) -> None:
    if as_json:
        json.dump({name: asdict(plan) for name, plan in costs.items()}, sys.stdout, indent=2)
        sys.stdout.write("\n")
        return
    for name, plan in costs.items():
        print(f"{name}: {plan}")


def confirm(costs: Mapping[str, Plan]) -> None:
    if not any(plan.calls for plan in costs.values()):
        return
    asked = "; ".join(f"{name}: {plan}" for name, plan in costs.items())
    if not sys.stdin.isatty():
        raise SpecError(f"this would ask a model that may cost money ({asked}); say --yes to go on")
    print(asked, file=sys.stderr)
    if input("Go on? [y/N] ").strip().lower() not in ("y", "yes"):
        raise SpecError("not asked; nothing was spent")


_WHERE = ("workers", "ray")
"""Settings that say where the work is done, which changes nothing about it."""


def default_run(benchmark: str, policies: Sequence[str], settings: Mapping[str, Any]) -> Path:
    """Name the run by what is asked, so that the same command meets its own run again."""
    asked = {key: str(value) for key, value in settings.items() if key not in _WHERE}
    written = json.dumps([benchmark, list(policies), asked], sort_keys=True)
    name = Path(benchmark.partition(":")[0]).name or "data"
    return Path("runs") / f"{name}-{hashlib.sha256(written.encode()).hexdigest()[:8]}"


Pools = Callable[[int, int], None]
Answers = Callable[[str, Progress], None]


@contextmanager
def progress(silent: bool) -> Iterator[tuple[Pools | None, Answers | None]]:
    """Show pools, then for each model its answers, with rate, cost and time left."""
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
            speed = bar.tasks[task].speed
            said = "" if speed is None else f"{speed:.1f}/s"
            bar.update(task, completed=done, total=total, said=said)

        def answers(model: str, now: Progress) -> None:
            if model not in models:
                models[model] = bar.add_task(escape(model), total=None, said="")
            elif now.done < bar.tasks[models[model]].completed:  # the next experiment asks it
                bar.reset(models[model], total=now.total, said="")
            said = f"{now.rate:.0f}/s" + (f", {now.cost:.2f} so far" if now.cost else "")
            said += f", {now.failed} failed" if now.failed else ""
            bar.update(models[model], completed=now.done, total=now.total, said=said)

        yield pools, answers
