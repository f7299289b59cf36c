"""What `orders` does and prints."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from routeprism.api import Audit, explore_orders
from routeprism.cli._passes import read_masks
from routeprism.cli._terminal import default_run, progress
from routeprism.errors import SpecError
from routeprism.policies import make_policy, own_source
from routeprism.records import load_benchmark
from routeprism.report import REPORT, write_report
from routeprism.runs import COLUMNS, EstimateRow
from routeprism.support import with_label_file

__all__ = ["run_orders_and_show"]

_MOST_SAID = 10
"""How many reorderings and worst orders are printed; the run and --json hold all."""


def run_orders_and_show(
    benchmark: str,
    policies: Sequence[str],
    *,
    run: Path | None,
    as_json: bool,
    quiet: bool,
    data: Path | None = None,
    readings: Sequence[Path] = (),
    masks: Sequence[str] = (),
    shrink: str | None = None,
    **settings: Any,
) -> None:
    """Look at orders, then print a table, sentences, and the smallest reorderings."""
    loaded = load_benchmark(benchmark, data)
    for file in readings:
        loaded = with_label_file(loaded, file)
    if readings and settings.get("labels") is None:
        raise SpecError(f"say which labels to use: --labels {loaded.labels[-1]}")
    named = {mask.name: mask.question_ids for mask in read_masks(masks, loaded)}
    sources = [own_source(make_policy(text)) for text in policies]
    told = {
        **settings,
        "call": "orders",
        "shrink": shrink,
        "masks": sorted(named),
        "content": [loaded.fingerprint, *sources],
    }
    told.pop("ray", None)
    with progress(quiet or as_json) as (pools, _):
        found = explore_orders(
            loaded,
            *policies,
            masks=named,
            shrink=False if shrink is None else shrink,
            run=run or default_run(benchmark, policies, told),
            progress=pools,
            **settings,
        )
        if found.directory is not None:
            write_report(found.directory)
    if as_json:
        json.dump(_as_json(found), sys.stdout, indent=2, ensure_ascii=False)
        sys.stdout.write("\n")
        return
    _show(found, Console())


def _as_json(found: Audit) -> Mapping[str, Any]:
    return {
        "benchmark": found.benchmark,
        "counts": dict(found.counts),
        "notes": list(found.notes),
        "limits": found.limits,
        "sentences": list(found.sentences),
        "run": None if found.directory is None else str(found.directory),
        "report": None if found.directory is None else str(found.directory / REPORT),
        "estimates": [{name: getattr(row, name) for name in COLUMNS} for row in found.rows],
        "findings": [asdict(finding) for finding in found.findings],
    }


def _show(found: Audit, console: Console) -> None:
    def say(text: str, **style: Any) -> None:
        console.print(text, highlight=False, markup=False, soft_wrap=True, **style)

    synthetic = any("synthetic" in row.flags for row in found.rows)
    say(
        f"{found.benchmark}{' (synthetic)' if synthetic else ''}: "
        + ", ".join(
            f"{number} {name if number != 1 else name[:-1]}"
            for name, number in found.counts.items()
        )
    )
    console.print(_table(found.rows))
    say(
        "changed: share of orders that retain another set than forward; kept: share that retains "
        "support; forward, reverse: questions whose support those two keep",
        style="dim",
    )
    say(found.limits, style="dim")
    for sentence in found.sentences:
        say(sentence)
    for heading, lines in (
        ("Worst orders, those that lose most first", _worst(found)),
        ("Smallest reorderings, the smallest first", _reorderings(found)),
    ):
        if lines:
            say(f"{heading} (records are numbered from 0 in source order):")
        for line in lines[:_MOST_SAID]:
            say(f"  {line}")
        if len(lines) > _MOST_SAID:
            say(f"  … and {len(lines) - _MOST_SAID} more; --json and the run hold them all")
    for note in found.notes:
        say(f"Note: {note}")
    if found.directory is not None:
        say(f"Run: {found.directory} (estimates.csv, run.sqlite, manifest.json)")
        say(f"Report: {found.directory / REPORT}")


def _worst(found: Audit) -> list[str]:
    """Give the worst orders, those that lose most first."""
    said = [one for one in found.findings if one.name == "worst_order"]
    said.sort(key=lambda one: one.value["value"] - one.value["forward"])
    return [f"{one.policy}, {one.schedule}, {one.value['sentence']}" for one in said]


def _reorderings(found: Audit) -> list[str]:
    """Give the smallest reorderings: first those that lose something, the smallest first."""
    said = [
        one for one in found.findings if one.name == "smallest_reordering" and one.value["found"]
    ]
    said.sort(key=lambda one: (one.value["forward_keeps"] is False, one.value["inversions"]))
    return [f"{one.policy}, {one.user}: {one.value['sentence']}" for one in said]


def _table(rows: Sequence[EstimateRow]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("policy", overflow="fold", min_width=16)
    table.add_column("arrival", overflow="fold")
    for heading in ("changed", "kept", "forward", "reverse"):
        table.add_column(heading, justify="right", no_wrap=True)
    grouped: dict[tuple[str, str], dict[str, EstimateRow]] = {}
    for row in rows:
        if row.stratum == "all" and not row.mask:
            grouped.setdefault((row.policy, row.schedule), {})[row.quantity] = row
    for (policy, arrival), held in grouped.items():
        across = held.get("support_kept.uniform") or held.get("support_kept.arrival")
        table.add_row(
            escape(policy),
            escape(arrival),
            *(
                "n/a" if one is None or one.estimate is None else f"{one.estimate:.3f}"
                for one in (
                    held.get("order_change"),
                    across,
                    held.get("support_kept.forward"),
                    held.get("support_kept.reverse"),
                )
            ),
        )
    return table
