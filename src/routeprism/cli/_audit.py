"""What `audit`, `restore`, `remedy`, `merge` and `demo` print."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table as TerminalTable

from routeprism.api.audits import perform
from routeprism.api.demonstration import DEMO_POLICIES, prepare_demo, prepare_update_demo
from routeprism.api.requests import RunRequest, prepare
from routeprism.cli._app import COMMANDS, load_handler
from routeprism.cli._console import SafeConsole, fold_texts, print_json, print_line
from routeprism.cli._terminal import end_if_incomplete, execute, name_flags, shorten_notes
from routeprism.exhibits import Part, Table
from routeprism.experiments import Audit, registered_experiments, tabulate_layers
from routeprism.judge import (
    LEVELS,
    Verdict,
    choose_command,
    explain_verdict,
    tabulate_memories,
    tabulate_repairs,
)
from routeprism.runs import COLUMNS, REPORT, Rows


def show_audit(settings: Any) -> None:
    """Run `audit`."""
    _run_and_show("audit", settings)


def show_remedies(settings: Any) -> None:
    """Run `remedy`."""
    _run_and_show("remedy", settings)


def show_restoration(settings: Any) -> None:
    """Run `restore`."""
    _run_and_show("restore", settings)


def _run_and_show(command: str, settings: Any) -> None:
    request = prepare(command, settings)
    published = not request.benchmark.arrivals
    run_request(request, partial(_show, settings=settings, is_published=published))


def show_demo(settings: Any) -> None:
    """Run `demo`: facts that change, unless --json or --quiet is given, and the whole protocol."""
    if not (settings.json or settings.quiet):
        run_request(prepare_update_demo(settings), _show_updates)
    run_request(prepare_demo(settings), lambda audit: _show(_select_policies(audit), settings))


def _show_updates(audit: Audit) -> None:
    """Print which value of a changed fact each memory ends with."""
    console = SafeConsole()
    print_line(f"{audit.benchmark}: which value of a changed fact does a memory end with?")
    policies: set[str] = set()
    for statement in audit.statements:
        if statement.kind == "updates" and statement.policy not in policies:
            policies.add(statement.policy)
            console.say_whole(*fold_texts([str(statement)], console.width))
    if audit.directory is not None:
        print_line(f"Report: {audit.directory / REPORT}")
    print_line("")


def run_request(
    request: RunRequest,
    show: Callable[[Audit], None],
    to_json: Callable[[Audit], Mapping[str, Any]] | None = None,
    *,
    kind: str = "",
) -> None:
    """Perform a request, and print what comes out.

    With `--quiet` that is the most severe verdict, or the first statement of a `kind`.
    """
    audit = execute(request.with_run(), price, perform)
    if audit is None:
        return
    if request.settings.json:
        print_json((to_json or audit_to_json)(audit))
    elif request.settings.quiet:
        print_line(_summarise(audit, kind))
    else:
        show(audit)
    merged = bool(getattr(request.settings, "shards", ()))
    end_if_incomplete(audit.shortfall, audit.directory, merged=merged)


def _summarise(audit: Audit, kind: str) -> str:
    """Return the most severe verdict in one line, or the first statement of a kind."""
    statements = [s for s in audit.statements if s.kind == kind] or list(audit.statements)
    verdicts = [] if kind else audit.verdicts
    if not (verdicts or statements):
        return "Nothing was measured."
    more = (len(verdicts) or len(statements)) - 1
    text = str(statements[0])
    if verdicts:
        text = str(max(verdicts, key=lambda verdict: LEVELS.index(verdict.level)))
    place = "" if audit.directory is None else ": see the report"
    return text + (f" (and {more} more{place})" if more else "")


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
        "verdicts": [verdict.to_json() for verdict in audit.verdicts],
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


def _print_details(console: SafeConsole, audit: Audit, printed: Collection[str]) -> None:
    """Print every further table and every statement, with the symbols of the paper."""
    console.print(audit.limits, style="dim", highlight=False)
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


def _show(audit: Audit, settings: Any, *, is_published: bool = False) -> None:
    """Print the verdict on each memory, with its counts, its cause and one command.

    For a benchmark whose numbers are published, the numbers of the paper are printed as well.
    """
    console = SafeConsole()
    width, is_verbose = console.width, getattr(settings, "verbose", False)
    verdicts, repairs = audit.verdicts, tabulate_repairs(audit.results)
    tables = [*tabulate_memories(verdicts), *repairs]
    first = _list_first_lines(audit, width)
    captions = [fold_texts([table.caption], width) for table in tables]
    last = _list_last_lines(audit, settings, width)
    console.say_whole(*first)
    for table, caption in zip(tables, captions, strict=True):
        console.print(render_table(table))
        console.say_whole(*caption, style="dim")
    is_brief = len(verdicts) > 1 and not is_verbose
    room = _MOST_LINES - _FRAME - len(first) - len(last) - sum(map(len, captions))
    room -= sum(len(table.rows) + 2 for table in tables)
    most = None if is_verbose or repairs else max(_FEWEST_LINES, 0 if is_brief else room)
    for verdict in verdicts:
        phrases = _list_phrases(audit, verdict, is_brief=is_brief)
        _print_memory(console, verdict, audit.directory, fold_texts(phrases, width - 2, most))
    if is_published:
        _print_layers(console, audit)
    _print_restoration(console, audit)
    if is_verbose:
        _print_details(console, audit, {table.name for table in tables})
    console.say_whole(*last)
    if audit.directory is not None:
        console.say_whole(f"Report: {audit.directory / REPORT} (--verbose prints everything)")


def _list_first_lines(audit: Audit, width: int) -> list[str]:
    """List what was audited, and what is wrong with the whole run."""
    warnings = [str(s) for s in audit.statements if not s.policy and s.severity in _ALARMS]
    lines = fold_texts([describe_run(audit)], width, 2)
    return lines + fold_texts(warnings, width, _MOST_WARNINGS)


def _list_last_lines(audit: Audit, settings: Any, width: int) -> Sequence[str]:
    """List the notes: the first ones in a line each, or all of them if asked for."""
    notes = [f"Note: {name_flags(note, settings)}" for note in audit.notes]
    if getattr(settings, "verbose", False):
        return fold_texts(notes, width)
    return shorten_notes(notes, _MOST_NOTES, width)


def _print_restoration(console: SafeConsole, audit: Audit) -> None:
    """Print what records are worth that were put back, if any were."""
    statements = [str(s) for s in audit.statements if s.kind == "restoration"]
    console.say_whole(*fold_texts(statements, console.width))


def _print_layers(console: SafeConsole, audit: Audit) -> None:
    """Print the table of the paper, with the rule that its intervals follow."""
    for table in tabulate_layers(audit.results):
        _print_table(console, table)
    console.print(audit.limits, style="dim", highlight=False)


_ALARMS = ("warning", "problem")
_MOST_WARNINGS = 3
_MOST_LINES, _FRAME = 25, 4
"""How many lines the audit of one memory takes, and how many of them are level, command, report."""
_FEWEST_LINES = 6
"""How many lines an explanation may take in any case."""
_MOST_NOTES = 2


def _list_phrases(audit: Audit, verdict: Verdict, *, is_brief: bool) -> list[str]:
    """List what explains a verdict, and what the run found out about changed facts."""
    phrases = ["".join(map(str, parts)) for parts in explain_verdict(verdict, is_brief=is_brief)]
    phrases += [
        statement.text
        for statement in audit.statements
        if statement.policy == verdict.policy
        and (statement.kind, statement.severity) == ("updates", "problem")
    ]
    return phrases


def _print_memory(
    console: SafeConsole, verdict: Verdict, run: Path | None, lines: Iterable[str]
) -> None:
    """Print the level of a memory, the lines that explain it, and what to do next."""
    mark = "".join(f" [{flag}]" for flag in verdict.flags)
    console.say_whole(f"{verdict.policy}: {verdict.label}{mark}", style="bold")
    console.say_whole(*(f"  {line}" for line in lines))
    if command := choose_command(verdict, "" if run is None else str(run)):
        console.say_whole(f"  Next: {command}")


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
