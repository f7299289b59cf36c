"""What `orders` and `curve` print: shares of orders, and which budget buys stability."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from routeprism.api.requests import prepare
from routeprism.cli._audit import audit_to_json, describe_run, fit_table, run_request
from routeprism.cli._console import SafeConsole
from routeprism.cli._terminal import shorten_notes
from routeprism.experiments import Audit
from routeprism.experiments.curves import tabulate_budgets
from routeprism.experiments.orders import tabulate_shares
from routeprism.judge import summarise_verdicts
from routeprism.runs import REPORT

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
    for table in tabulate_shares(audit.results):
        console.print(fit_table(console, table))
        say(table.caption, style="dim")
    say(audit.limits, style="dim")
    if verdict := summarise_verdicts(audit.verdicts):
        say(verdict, style="bold")
    say(*audit.sentences)
    for heading, lines in (
        ("Worst orders, the largest loss first", _worst(audit)),
        ("Smallest reorderings that change the outcome", _reorderings(audit)),
    ):
        if lines:
            say(f"{heading}:")
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


def show_curve(settings: Any) -> None:
    """Run `curve`."""
    run_request(prepare("curve", settings), _show_budgets, kind="curve")


def _show_budgets(audit: Audit) -> None:
    console = SafeConsole()
    console.say(describe_run(audit))
    for table in tabulate_budgets(audit.results):
        console.print(table.title, style="bold", highlight=False, markup=False)
        console.print(fit_table(console, table))
    limits = f"{audit.limits}; a wide terminal shows them in the tables"
    console.print(limits, style="dim", highlight=False)
    console.say_whole(
        *audit.sentences,
        *(f"Note: {note}" for note in shorten_notes(audit.notes)),
        f"Run: {audit.directory} (estimates.csv, run.sqlite, manifest.json)",
        f"Report: {audit.directory / REPORT}" if audit.directory else "",
    )
