"""What `orders` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.markup import escape
from rich.table import Table

from routeprism.api.requests import prepare
from routeprism.cli._audit import audit_to_json, run_request
from routeprism.cli._console import SafeConsole
from routeprism.experiments import Audit
from routeprism.experiments.reach import summarise_reaches
from routeprism.report import REPORT
from routeprism.runs import EstimateRow

__all__ = ["show_orders"]

_MOST_SAID = 10
"""How many reorderings and worst orders are printed; the run and --json contain all."""


def show_orders(settings: Any) -> None:
    """Run `orders`."""
    run_request(prepare("orders", settings), _show, _as_json, kind="orders")


def _as_json(audit: Audit) -> Mapping[str, Any]:
    fields = {name: value for name, value in audit_to_json(audit).items() if name != "missing"}
    return {**fields, "findings": [asdict(finding) for finding in audit.findings]}


def _show(audit: Audit) -> None:
    console = SafeConsole()

    def say(text: str, **style: Any) -> None:
        console.print(text, highlight=False, markup=False, soft_wrap=True, **style)

    synthetic = any("synthetic" in row.flags for row in audit.rows)
    say(
        f"{audit.benchmark}{' (synthetic)' if synthetic else ''}: "
        + ", ".join(
            f"{number} {name if number != 1 else name[:-1]}"
            for name, number in audit.counts.items()
        )
    )
    console.print(_table(audit.rows))
    say(
        "Changed: share of orders in which the memory keeps a different set of records from "
        "source order. Kept: share of orders in which it keeps the evidence of a question. "
        "Forward and reverse: share of questions whose evidence it keeps in these two orders.",
        style="dim",
    )
    say(audit.limits, style="dim")
    if verdict := summarise_reaches(audit.reaches):
        say(verdict, style="bold")
    for sentence in audit.sentences:
        say(sentence)
    for heading, lines in (
        ("Worst orders, the largest loss first", _worst(audit)),
        ("Smallest reorderings that change the outcome", _reorderings(audit)),
    ):
        if lines:
            say(f"{heading} (records are numbered from 0 in source order):")
        for line in lines[:_MOST_SAID]:
            say(f"  {line}")
        if len(lines) > _MOST_SAID:
            say(f"  … and {len(lines) - _MOST_SAID} more; --json and the run contain them all")
    for note in audit.notes:
        say(f"Note: {note}")
    if audit.directory is not None:
        say(f"Run: {audit.directory} (estimates.csv, run.sqlite, manifest.json)")
        say(f"Report: {audit.directory / REPORT}")


def _worst(audit: Audit) -> list[str]:
    """Return the worst orders, those that lose most first."""
    findings = [finding for finding in audit.findings if finding.name == "worst_order"]
    findings.sort(key=lambda finding: finding.value["value"] - finding.value["forward"])
    return [
        f"{finding.policy}, {finding.schedule}, {finding.value['sentence']}" for finding in findings
    ]


def _reorderings(audit: Audit) -> list[str]:
    """Return the smallest reorderings: first those that lose something, the smallest first."""
    findings = [
        finding
        for finding in audit.findings
        if finding.name == "smallest_reordering" and finding.value["found"]
    ]
    findings.sort(
        key=lambda finding: (finding.value["forward_keeps"] is False, finding.value["inversions"])
    )
    return [
        f"{finding.policy}, {finding.user}: {finding.value['sentence']}" for finding in findings
    ]


def _failed_share(group: Mapping[str, EstimateRow]) -> str:
    row = group.get("order_failed")
    return f"{0 if row is None else row.estimate or 0:.3f}"


def _table(rows: Sequence[EstimateRow]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("policy", overflow="fold", min_width=16)
    table.add_column("arrival", overflow="fold")
    failed = any(row.quantity == "order_failed" for row in rows)
    for heading in ("changed", "kept", "forward", "reverse", *(["failed"] if failed else [])):
        table.add_column(heading, justify="right", no_wrap=True)
    grouped: dict[tuple[str, str], dict[str, EstimateRow]] = {}
    for row in rows:
        if row.stratum == "all" and not row.mask:
            grouped.setdefault((row.policy, row.schedule), {})[row.quantity] = row
    for (policy, arrival), group in grouped.items():
        across = group.get("support_kept.uniform") or group.get("support_kept.arrival")
        table.add_row(
            escape(policy),
            escape(arrival),
            *(
                "n/a" if entry is None or entry.estimate is None else f"{entry.estimate:.3f}"
                for entry in (
                    group.get("order_change"),
                    across,
                    group.get("support_kept.forward"),
                    group.get("support_kept.reverse"),
                )
            ),
            *([_failed_share(group)] if failed else []),
        )
    return table
