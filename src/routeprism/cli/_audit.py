"""What `audit`, `restore`, `remedy`, `merge` and `demo` print."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from textwrap import wrap
from typing import Any

from rich.markup import escape
from rich.table import Table as TerminalTable

from routeprism.api.audits import perform
from routeprism.api.demonstration import DEMO_POLICIES, prepare_demo, prepare_update_demo
from routeprism.api.requests import RunRequest, prepare
from routeprism.cli._app import COMMANDS, load_handler
from routeprism.cli._console import SafeConsole, print_json, print_line
from routeprism.cli._terminal import end_if_incomplete, execute, name_flags, shorten_notes
from routeprism.exhibits import Part, Statement, Table
from routeprism.experiments import Audit, registered_experiments, tabulate_layers
from routeprism.experiments.repairs import summarise_remedies
from routeprism.experiments.severity import tabulate_verdicts
from routeprism.experiments.statements import choose_statements, comes_first
from routeprism.printing import printable
from routeprism.runs import COLUMNS, REPORT, Rows


def show_audit(settings: Any) -> None:
    """Run `audit`."""
    _run_and_show("audit", settings)


def show_remedies(settings: Any) -> None:
    """Run `remedy`."""
    _run_and_show("remedy", settings, kind="recommendation")


def show_restoration(settings: Any) -> None:
    """Run `restore`."""
    _run_and_show("restore", settings, kind="restoration")


def _run_and_show(command: str, settings: Any, *, kind: str = "severity") -> None:
    request = prepare(command, settings)
    published = not request.benchmark.arrivals
    show = partial(_show, settings=settings, is_published=published, kind=kind)
    run_request(request, show, kind=kind)


def show_demo(settings: Any) -> None:
    """Run `demo`: facts that change, unless --json or --quiet is given, and the whole protocol."""
    if not (settings.json or settings.quiet):
        run_request(prepare_update_demo(settings), _show_updates, kind="updates")
    run_request(prepare_demo(settings), lambda audit: _show(_select_policies(audit), settings))


def _show_updates(audit: Audit) -> None:
    """Print which value of a changed fact each memory ends with."""
    print_line(f"{audit.benchmark}: which value of a changed fact does a memory end with?")
    policies: set[str] = set()
    for statement in audit.statements:
        if statement.kind == "updates" and statement.policy not in policies:
            policies.add(statement.policy)
            print_line(str(statement))
    if audit.directory is not None:
        print_line(f"Report: {audit.directory / REPORT}")
    print_line("")


def run_request(
    request: RunRequest,
    show: Callable[[Audit], None],
    to_json: Callable[[Audit], Mapping[str, Any]] | None = None,
    *,
    kind: str = "severity",
) -> None:
    """Perform a request, and print what comes out; `kind` names the statements of its verdict."""
    audit = execute(request.with_run(), price, perform)
    if audit is None:
        return
    if request.settings.json:
        print_json((to_json or audit_to_json)(audit))
    elif request.settings.quiet:
        print_line(state_verdict(audit, kind))
    else:
        show(audit)
    merged = bool(getattr(request.settings, "shards", ()))
    end_if_incomplete(audit.shortfall, audit.directory, merged=merged)


def state_verdict(audit: Audit, kind: str) -> str:
    """Return the verdict in one line: the most severe statement of a kind, or else the first."""
    statements = [statement for statement in audit.statements if statement.kind == kind] or list(
        audit.statements
    )
    if not statements:
        return "Nothing was measured."
    worst = max(statements, key=lambda statement: _SEVERITIES.index(statement.severity))
    more = len(statements) - 1
    place = "" if audit.directory is None else ": see the report"
    return str(worst) + (f" (and {more} more{place})" if more else "")


_SEVERITIES = ("good", "info", "warning", "problem")


def price(request: RunRequest) -> Mapping[str, Any]:
    """Count what a request would take."""
    return perform(replace(request, settings=replace(request.settings, dry_run=True))).costs


def audit_to_json(audit: Audit) -> Mapping[str, Any]:
    """Return the object that --json prints."""
    return {
        "benchmark": audit.benchmark,
        "counts": dict(audit.counts),
        "notes": list(audit.notes),
        "missing": dict(audit.shortfall.to_manifest()),
        "limits": audit.limits,
        "verdicts": [asdict(reach) for reach in audit.reaches],
        "sentences": list(audit.sentences),
        "run": None if audit.directory is None else str(audit.directory),
        "report": None if audit.directory is None else str(audit.directory / REPORT),
        "estimates": [{name: getattr(row, name) for name in COLUMNS} for row in audit.rows],
    }


def _select_policies(audit: Audit) -> Audit:
    """Leave out the arms of the demonstration's first policy."""
    rows = (row for row in audit.rows if row.policy in DEMO_POLICIES)
    statements = (s for s in audit.statements if s.policy in ("", *DEMO_POLICIES))
    return replace(audit, rows=Rows.of(rows), statements=tuple(statements))


def _print_details(console: SafeConsole, audit: Audit) -> None:
    """Print every table and every statement, with the symbols of the paper."""
    console.print(audit.limits, style="dim", highlight=False)
    printed = {table.name for table in tabulate_verdicts(audit.results)}
    for experiment in registered_experiments():
        for table in experiment.make_tables(audit.results):
            if table.name in printed:
                continue
            _print_table(console, table)
    for sentence in audit.sentences:
        console.say(sentence)


def _print_table(console: SafeConsole, table: Table) -> None:
    console.print(f"\n{table.title}", style="bold", highlight=False)
    console.print(render_table(table))
    console.print(table.caption, style="dim", highlight=False)


def describe_run(audit: Audit) -> str:
    """Describe in one line what was audited, and who answered."""
    synthetic = any("synthetic" in row.flags for row in audit.rows)
    title = f"{audit.benchmark}{' (synthetic)' if synthetic else ''}: " + ", ".join(
        f"{number} {name if number != 1 else name[:-1]}" for name, number in audit.counts.items()
    )
    readers = dict.fromkeys((row.model, "embedded" in row.flags) for row in audit.rows if row.model)
    for model, embedded in readers:
        title += f"; answers by {model}{' (embedded)' * embedded}"
    return title


def _print_memories(console: SafeConsole, statements: Sequence[Statement]) -> None:
    """Print what matters most about each memory below its name."""
    for memory in dict.fromkeys(statement.policy for statement in statements):
        console.say(memory, style="bold")
        for statement in statements:
            if statement.policy == memory:
                _print_indented(console, statement.text)
                if statement.confirmation:
                    _print_indented(console, f"Confirm: {statement.confirmation}")
                if statement.next_step:
                    _print_indented(console, f"Try: {statement.next_step}")


def _print_indented(console: SafeConsole, text: str) -> None:
    """Print a text below a heading; a terminal wraps it between words and keeps it indented."""
    if not console.is_terminal:
        console.say(f"  {text}")
        return
    for line in wrap(printable(text), max(40, console.width - 2)):
        console.say(f"  {line}")


def _show(
    audit: Audit, settings: Any, *, is_published: bool = False, kind: str = "severity"
) -> None:
    """Print the verdict table, at most three statements for each memory, and where the rest is.

    For a benchmark whose numbers are published, the numbers of the paper are printed as well.
    """
    console = SafeConsole()
    console.say(describe_run(audit))
    for statement in audit.statements:
        if comes_first(statement):
            console.say(str(statement))
    for table in tabulate_verdicts(audit.results):
        console.print(render_table(table))
        console.print(table.caption, style="dim", highlight=False)
    remedies = summarise_remedies(audit.results)
    for table in remedies:
        console.print(f"\n{table.title}", style="bold", highlight=False)
        console.print(render_table(table))
    for caption in dict.fromkeys(table.caption for table in remedies):
        console.print(caption, style="dim", highlight=False)
    if is_published:
        for table in tabulate_layers(audit.results):
            _print_table(console, table)
        console.print(audit.limits, style="dim", highlight=False)
    if getattr(settings, "verbose", False):
        _print_details(console, audit)
    else:
        # A memory has no verdict if none of its routes could be built.
        memories = dict.fromkeys(
            (
                *(verdict.policy for verdict in audit.verdicts),
                *(s.policy for s in audit.statements if s.kind == "overlap"),
            )
        )
        _print_memories(console, list(choose_statements(audit.statements, [*memories], first=kind)))
        console.say("Use --verbose for every table and statement, with the symbols of the paper.")
    for note in shorten_notes(audit.notes):
        console.say(f"Note: {name_flags(note, settings)}")
    if audit.directory is not None:
        console.say(
            f"Run: {audit.directory} (estimates.csv, run.sqlite, manifest.json)\n"
            f"Report: {audit.directory / REPORT}"
        )


def show_merge(settings: Any) -> None:
    """Run `merge`: perform the shards' command with their results instead of their work."""
    from routeprism.merging import read_shards

    with read_shards(settings) as (name, merged):
        printing = {
            option: getattr(settings, option)
            for option in ("json", "quiet", "verbose")
            if hasattr(merged, option)
        }
        load_handler(COMMANDS[name])(replace(merged, **printing))


_LONGEST_NAME = 16
"""How wide the first column of names is at least, if its names are that long."""


def fit_table(console: SafeConsole, table: Table) -> TerminalTable:
    """Render a table with intervals, or with estimates alone where they would not fit."""
    rendered = render_table(table)
    unbound = console.options.update(width=_ANY)
    if console.measure(rendered, options=unbound).maximum <= console.width:
        return rendered
    rows = tuple(tuple(map(_leave_out_limits, row)) for row in table.rows)
    return render_table(replace(table, rows=rows))


_ANY = 1000
"""A width that no table needs."""


def _leave_out_limits(cell: Part) -> Part:
    if isinstance(cell, str) or cell.row.lower is None:
        return cell
    return replace(cell, text=f"{cell.row.estimate:.3f}")


def render_table(table: Table) -> TerminalTable:
    """Render a table for the terminal; the console folds it where it is too wide."""
    rendered = TerminalTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), caption_justify="left")
    for at, column in enumerate(table.columns):
        if at < table.names:
            longest = max((len(str(row[at])) for row in table.rows), default=0)
            width = min(_LONGEST_NAME, longest) if at == 0 else None
            rendered.add_column(escape(column), overflow="fold", min_width=width)
        else:
            is_text = any(len(str(row[at])) > _LONGEST_NAME + 8 for row in table.rows)
            heading = column if is_text else column.replace(" ", "\n")
            rendered.add_column(
                escape(heading), justify="left" if is_text else "right", no_wrap=not is_text
            )
    before = ""
    for row in table.rows:
        first, *rest = (str(cell) or "–" for cell in row)
        repeated = first == before and table.names > 1
        rendered.add_row("" if repeated else escape(first), *map(escape, rest))
        before = first
    return rendered
