"""What `reproduce` does and prints: the paper's numbers beside what this package gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table as RichTable

from routeprism.cli._console import SafeConsole, make_grid, print_json, print_line
from routeprism.cli._terminal import may_proceed, progress
from routeprism.reproduction import (
    COUNTED,
    PROTOCOL,
    REPRODUCED,
    TABLES,
    CheckedNumber,
    ObtainedValues,
    PublishedTable,
    RefreshResult,
    check_table,
    count_numbers,
    count_tables,
    explain_blanks,
    format_heading,
    group_lines,
    list_commands,
    list_reasons,
    perform_reproduction,
    prepare_reproduction,
)
from routeprism.runs import REPORT


def show_reproduction(settings: Any) -> None:
    """Run `reproduce`: print a summary of all tables, or the numbers of some."""
    request = prepare_reproduction(settings)
    if not may_proceed(settings, request.may_spend(), request.price):
        return
    silent = settings.quiet or settings.json
    console = SafeConsole(stderr=True)

    def announce(meaning: str) -> None:
        if not silent:
            console.print(meaning, style="dim", highlight=False, markup=False)

    with progress(silent) as meter:
        result = perform_reproduction(request, announce, meter.pools)
    if settings.json:
        print_json(_as_json(result.tables, result.obtained, result.refresh))
        return
    tables = result.tables if settings.tables else ()
    if settings.quiet:
        print_line(_state_verdict(tables or tuple(TABLES.values()), result.obtained))
        return
    _show(tables, result.obtained, result.refresh, SafeConsole())
    places: tuple[tuple[str, Path | None], ...] = (("Values", result.values_file),)
    if request.shard is None:  # else merging writes these
        page = settings.keep and settings.keep / REPORT
        places += (("Written", settings.write), ("Report", page))
    for name, path in places:
        if path is not None:
            SafeConsole().say_whole(f"{name}: {path}")


def _as_json(
    tables: Sequence[PublishedTable], obtained: ObtainedValues, done: RefreshResult | None
) -> Mapping[str, Any]:
    return {
        "tables": [
            {
                "label": table.label,
                "title": table.title,
                "cells": [_cell(cell) for cell in check_table(table, obtained)],
            }
            for table in tables
        ],
        "sources": {name: dict(source.made) for name, source in sorted(obtained.items())},
        "executed": None if done is None else list(done.executed),
        "missing": None if done is None else dict(done.missing),
    }


def _cell(cell: CheckedNumber) -> Mapping[str, Any]:
    printed = cell.printed
    return {
        "panel": printed.panel,
        "row": printed.row,
        "column": printed.column,
        "published": printed.text,
        "status": cell.status,
        "obtained": cell.value,
        "agreement": cell.agreement,
        "basis": cell.basis,
        "embedded": cell.embedded,
        "stand_in": cell.stand_in,
        "source": cell.source,
        "queries": cell.questions,
        "reason": cell.reason,
        "blank": cell.blank,
        "command": cell.command,
    }


def _state_verdict(tables: Sequence[PublishedTable], obtained: ObtainedValues) -> str:
    """Return in one line how many of the printed numbers are reproduced and how many differ."""
    printed = (table for table in tables if table.label != PROTOCOL)
    counts: Counter[str] = Counter()
    for table in printed:
        counts.update(count_numbers(check_table(table, obtained)))
    parts = [f"{format_heading(name)} {counts[name]}" for name in COUNTED if counts[name]]
    return f"{counts.total()} numbers: {', '.join(parts)}"


def _show(
    tables: Sequence[PublishedTable],
    obtained: ObtainedValues,
    done: RefreshResult | None,
    console: SafeConsole,
) -> None:
    say = console.say_whole
    if not tables:
        console.print(_overview(obtained, titles=console.width >= _WIDE))
        targets = count_numbers(check_table(TABLES[PROTOCOL], obtained))
        say("reproduced: measured values + denominators + arithmetic on printed numbers")
        say(
            f"Not counted: {PROTOCOL}, {targets['target']} of {targets.total()} target values of "
            f"a correct build are reached"
        )
        say(
            "routeprism reproduce LABEL prints the numbers of a table; --run computes them again",
            style="dim",
        )
    for table in tables:
        cells = check_table(table, obtained)
        say(f"{table.label}: {table.title}", style="bold")
        console.print(_details(cells))
        if table.note:
            say(f"note: {table.note}")
        say(*(f"{status}: {reason}" for status, reason in list_reasons(cells)))
        say(*(f"no value here: {blank}" for blank in explain_blanks(cells)))
        say(*(f"runs with: {command}" for command in list_commands(cells)))
    if done is not None:
        say(f"Executed: {', '.join(done.executed) or 'nothing'}")
        say(*(f"Left as it was: {name} ({why})" for name, why in done.missing.items()))


_WIDE = 110
"""From how many columns on the overview has room for what each table shows."""


def _overview(obtained: ObtainedValues, *, titles: bool) -> RichTable:
    names = {
        "label": {"no_wrap": True},
        **({"shows": {}} if titles else {}),
    }
    grid = make_grid(**names)
    for name in ("reproduced", *_REST):
        grid.add_column(name, justify="right", min_width=max(map(len, name.split())))
    total: Counter[str] = Counter()
    for table, counts in count_tables(obtained):
        total += counts
        grid.add_row(table.label, *([escape(table.title)] if titles else []), *_counts(counts))
    grid.add_row("all", *([""] if titles else []), *_counts(total))
    return grid


_REST = COUNTED[len(REPRODUCED) :]


def _counts(counts: Mapping[str, int]) -> list[str]:
    """Write the counts of a table: what is reproduced as a sum that keeps its kinds apart."""
    kinds = [counts[name] for name in REPRODUCED]
    reproduced = "+".join(map(str, kinds)) if any(kinds) else ""
    return [reproduced, *(str(counts[name] or "") for name in _REST)]


def _details(cells: Sequence[CheckedNumber]) -> RichTable:
    grid = make_grid(
        row={"min_width": 12},
        column={"min_width": 8},
        published={"no_wrap": True},
        here={},
        status={},
    )
    for line in group_lines(cells):
        texts = (line.row, line.column, line.printed, line.obtained, line.status)
        grid.add_row(*map(escape, texts))
    return grid
