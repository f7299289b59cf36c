"""What `orders` and `curve` print: shares of orders, and which budget buys stability."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.markup import escape
from rich.table import Table

from routeprism.api.requests import prepare
from routeprism.cli._audit import audit_to_json, describe_run, run_request
from routeprism.cli._console import SafeConsole, make_grid
from routeprism.cli._terminal import shorten_notes
from routeprism.exhibits import format_row
from routeprism.experiments import Audit
from routeprism.experiments.reach import summarise_reaches
from routeprism.report import REPORT
from routeprism.runs import EstimateRow

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
    say = console.say_whole
    say(describe_run(audit))
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
    say(*audit.sentences)
    for heading, lines in (
        ("Worst orders, the largest loss first", _worst(audit)),
        ("Smallest reorderings that change the outcome", _reorderings(audit)),
    ):
        if lines:
            say(f"{heading} (records are numbered from 0 in source order):")
        say(*(f"  {line}" for line in lines[:_MOST_SAID]))
        if len(lines) > _MOST_SAID:
            say(f"  … and {len(lines) - _MOST_SAID} more; --json and the run contain them all")
    say(*(f"Note: {note}" for note in audit.notes))
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


_QUANTITIES = ("order_change", "", "support_kept.forward", "support_kept.reverse")
"""The quantities of the columns; what is kept over all orders has two names."""


def _table(rows: Sequence[EstimateRow]) -> Table:
    failed = any(row.quantity == "order_failed" for row in rows)
    table = make_grid(
        policy={"min_width": 16},
        arrival={},
        numbers=("changed", "kept", "forward", "reverse", *(["failed"] if failed else [])),
    )
    grouped: dict[tuple[str, str], dict[str, EstimateRow]] = {}
    for row in rows:
        if row.stratum == "all" and not row.mask:
            grouped.setdefault((row.policy, row.schedule), {})[row.quantity] = row
    for names, group in grouped.items():
        across = group.get("support_kept.uniform") or group.get("support_kept.arrival")
        numbers = [_show_value(group.get(name) if name else across) for name in _QUANTITIES]
        if failed:
            failures = group.get("order_failed")
            numbers.append(f"{0 if failures is None else failures.estimate or 0:.3f}")
        table.add_row(*map(escape, names), *numbers)
    return table


def _show_value(row: EstimateRow | None) -> str:
    return "n/a" if row is None or row.estimate is None else f"{row.estimate:.3f}"


# --- budgets ---------------------------------------------------------------------------------

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


def show_curve(settings: Any) -> None:
    """Run `curve`."""
    run_request(prepare("curve", settings), _show_budgets, kind="curve")


def _show_interval(row: EstimateRow | None) -> str:
    return str(format_row(row)) or "n/a"


def _show_budgets(audit: Audit) -> None:
    console = SafeConsole()
    counts = ", ".join(f"{number} {name}" for name, number in audit.counts.items())
    console.print(f"{audit.benchmark}: {counts}", highlight=False, markup=False)
    tables, unbound = _make_tables(audit, _show_interval), console.options.update(width=_ANY)
    wide = max(console.measure(table, options=unbound).maximum for table in tables)
    fits = wide <= console.width
    for table in tables if fits else _make_tables(audit, _show_value):
        console.print(table)
    limits = audit.limits if fits else f"{audit.limits}; a wider terminal shows them"
    console.print(limits, style="dim", highlight=False)
    console.say_whole(
        *audit.sentences,
        *(f"Note: {note}" for note in shorten_notes(audit.notes)),
        f"Run: {audit.directory} (estimates.csv, run.sqlite, manifest.json)",
        f"Report: {audit.directory / REPORT}" if audit.directory else "",
    )


def _make_tables(audit: Audit, format_value: Callable[[EstimateRow | None], str]) -> list[Table]:
    """Make a table for each order and interface: side by side they would not fit on a screen."""
    rows = [row for row in audit.rows if row.stratum == "all" and row.policy]
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
        table = make_grid(title, policy={"no_wrap": True})
        for _, heading in columns:
            table.add_column(heading, justify="right", min_width=max(map(len, heading.split())))
        for policy, budget in grouped[place].items():
            table.add_row(escape(policy), *(format_value(budget.get(name)) for name, _ in columns))
        tables.append(table)
    return tables
