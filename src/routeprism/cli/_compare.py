"""What `compare` prints: the change of every layer, and the questions whose support moved."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from routeprism.errors import SpecError
from routeprism.experiments import Comparison, compare_runs
from routeprism.experiments.comparison import Difference, SupportChange, said_pair
from routeprism.report import write_comparison

__all__ = ["show_comparison"]

_SHOWN = (
    *("J", "retained_changed", "V_changed", "C_changed", "I_changed"),
    *("recall.exposed.forward", "recall.exposed.route", "all_covered.exposed.route"),
    *("accuracy.forward", "accuracy.route", "H", "D_res"),
    *("restored-absent", "restored-replacement"),
)
_MOST = 10
"""Questions listed for each of lost and kept; --json gives them all."""
_WIDEST = 36
"""How wide names of quantities may make their column: 80 have to do for all."""


def show_comparison(
    first: Path,
    second: Path,
    policies_before: Sequence[str],
    policies_after: Sequence[str],
    *,
    html: Path | None,
    as_json: bool,
) -> None:
    """Compare two runs and print what changed; also as a page where one is named."""
    if len(policies_before) != len(policies_after):
        raise SpecError(
            f"Expected as many --policy-a as --policy-b but got {len(policies_before)} and "
            f"{len(policies_after)}"
        )
    pairs = list(zip(policies_before, policies_after, strict=True))
    found = compare_runs(first, second, pairs)
    if html is not None:
        write_comparison(found, html)
    if as_json:
        json.dump(_as_json(found), sys.stdout, indent=2, ensure_ascii=False)
        sys.stdout.write("\n")
        return
    console = Console()
    for table in _tables(found):
        console.print(table)
    console.print(found.limits, style="dim", highlight=False)
    for sentence in (*found.sentences, *(f"Note: {note}" for note in found.notes)):
        console.print(sentence, highlight=False, markup=False, soft_wrap=True)
    for title, chosen in (
        ("Support newly lost", [change for change in found.support if change.lost]),
        ("Support newly kept", [change for change in found.support if change.kept]),
    ):
        for line in _listed(title, chosen, lost="lost" in title):
            console.print(line, highlight=False, markup=False, soft_wrap=True)
    if html is not None:
        console.print(f"Page: {html}", highlight=False, markup=False, soft_wrap=True)


def _tables(found: Comparison) -> Iterator[Table]:
    """Give a table for each policy and schedule; beside the numbers long names have no room."""
    shown = [
        one
        for one in found.differences
        if one.column.quantity in _SHOWN and not one.column.arm and not one.column.mask
    ]
    widest = max((len(_quantity(one)) for one in shown), default=0)
    groups: dict[str, list[Difference]] = {}
    for one in shown:
        groups.setdefault(said_pair(one), []).append(one)
    for heading, rows in groups.items():
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        table.title = Text(heading, style="bold")
        table.title_justify = "left"
        table.add_column("quantity", overflow="fold", min_width=min(widest, _WIDEST))
        for side in ("before", "after", "change [95%]"):
            table.add_column(side, justify="right", no_wrap=True)
        for one in rows:
            change = f"{one.difference.value:+.3f}"
            if one.difference.lower is not None and one.difference.upper is not None:
                change += f" [{one.difference.lower:+.3f}, {one.difference.upper:+.3f}]"
            table.add_row(escape(_quantity(one)), f"{one.before:.3f}", f"{one.after:.3f}", change)
        yield table


def _quantity(one: Difference) -> str:
    column = one.column
    return f"{column.quantity} ({column.model})" if column.model else column.quantity


def _listed(title: str, changes: Sequence[SupportChange], *, lost: bool) -> list[str]:
    if not changes:
        return []
    lines = [f"{title} ({len(changes)}):"]
    for change in changes[:_MOST]:
        records = ", ".join(change.lost if lost else change.kept)
        asked = " ".join(change.text.split())
        lines.append(
            f"  {change.question} on {change.schedule}, {change.policy_after}: {records} "
            f"(«{asked[:80]}{'…' if len(asked) > 80 else ''}»)"
        )
    if len(changes) > _MOST:
        lines.append(f"  … and {len(changes) - _MOST} more; --json gives them all")
    return lines


def _as_json(found: Comparison) -> dict[str, Any]:
    return {
        "benchmark": found.benchmark,
        "first": found.first,
        "second": found.second,
        "policies": [list(pair) for pair in found.pairs],
        "labels": found.labels,
        "sentences": list(found.sentences),
        "notes": list(found.notes),
        "limits": found.limits,
        "differences": [
            {
                **one.column._asdict(),
                "policy_before": one.policy_before,
                "before": one.before,
                "after": one.after,
                "difference": one.difference.value,
                "lower": one.difference.lower,
                "upper": one.difference.upper,
                "queries": one.difference.queries,
                "units": one.difference.units,
                "flags": one.flags,
            }
            for one in found.differences
        ],
        "support": [asdict(change) for change in found.support],
    }
