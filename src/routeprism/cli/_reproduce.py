"""What `reproduce` does and prints: the paper's numbers beside what this package gives."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Shown

from routeprism.cli._terminal import progress, spends
from routeprism.errors import InputError, SpecError
from routeprism.models import make_models
from routeprism.report import REPORT, write_report
from routeprism.reproduction import (
    STATUSES,
    STORED,
    Cell,
    Obtained,
    Refreshed,
    Table,
    blanks,
    cells_of,
    chosen,
    keep,
    lines_of,
    page,
    read_obtained,
    refresh,
    summary,
    write_obtained,
)

__all__ = ["run_reproduce"]


def run_reproduce(
    labels: Sequence[str],
    *,
    run: bool,
    model: str | None,
    support: str | None,
    readings: Sequence[Path],
    mask: Path | None,
    data: Path | None,
    write: Path | None,
    obtained: Path | None,
    kept: Path | None,
    workers: int | None,
    yes: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Print a summary of all tables, or the numbers of some; execute and write where asked."""
    tables = chosen(tuple(labels))
    if model is not None and not run:
        raise SpecError(f"--model {model} answers while tables are executed; say --run, too")
    given: dict[str, Any] = {"labels": support, "readings": tuple(readings), "mask": mask}
    given = {name: value for name, value in given.items() if value}
    if given and model is None:
        raise SpecError(f"--{next(iter(given))} is about answers, and nobody is asked: say --model")
    if readings and support is None:
        raise SpecError("say which labels to use: --labels audited:NAME")
    # The user named these: a wrong name ends the call, where missing data only leaves tables empty.
    named = [*readings, *([mask] if mask else []), *([] if run or not obtained else [obtained])]
    for file in named:
        if not file.is_file():
            raise InputError("there is no such file", file=file)
    if model is not None and not yes and any(map(spends, make_models(model))):
        raise SpecError(
            f"{model} may cost money, and these tables take tens of thousands of answers; "
            f"say --yes to go on, or audit with --dry-run to see what one run would take"
        )
    store = obtained or STORED
    values = read_obtained(store)
    done: Refreshed | None = None
    if run:

        def hold(values: Obtained) -> None:
            try:
                write_obtained(values, store)
            except OSError as error:
                raise InputError(
                    f"cannot be written ({error.strerror or error}); say --obtained FILE",
                    file=store,
                ) from error

        done = _refreshed(values, tables, model, given, data, workers, quiet or as_json, hold)
        values = done.obtained
    if write is not None:
        try:
            write.write_text(page(values), encoding="utf-8")
        except OSError as error:
            raise InputError(
                f"cannot be written ({error.strerror or error})", file=write
            ) from error
    if kept is not None:
        keep(kept, values)
        write_report(kept)
    if as_json:
        json.dump(_as_json(tables, values, done), sys.stdout, indent=2, ensure_ascii=False)
        sys.stdout.write("\n")
        return
    _show(tables if labels else (), values, done, Console())
    for said, path in (("Written", write), ("Report", kept and kept / REPORT)):
        if path is not None:
            Console().print(f"{said}: {path}", highlight=False, markup=False, soft_wrap=True)


def _refreshed(
    before: Obtained,
    tables: tuple[Table, ...],
    model: str | None,
    given: Mapping[str, Any],
    data: Path | None,
    workers: int | None,
    silent: bool,
    hold: Callable[[Obtained], None],
) -> Refreshed:
    console = Console(stderr=True)

    def told(meaning: str) -> None:
        if not silent:
            console.print(meaning, style="dim", highlight=False, markup=False)

    with progress(silent) as (pools, _):
        return refresh(
            before,
            tables,
            data=data,
            model=model,
            workers=workers,
            told=told,
            hold=hold,
            progress=pools,
            **given,
        )


def _as_json(
    tables: Sequence[Table], obtained: Obtained, done: Refreshed | None
) -> Mapping[str, Any]:
    return {
        "tables": [
            {
                "label": table.label,
                "title": table.title,
                "cells": [_cell(cell) for cell in cells_of(table, obtained)],
            }
            for table in tables
        ],
        "sources": {name: dict(kept.made) for name, kept in sorted(obtained.items())},
        "executed": None if done is None else list(done.executed),
        "missing": None if done is None else dict(done.missing),
    }


def _cell(cell: Cell) -> Mapping[str, Any]:
    printed = cell.printed
    return {
        "panel": printed.panel,
        "row": printed.row,
        "column": printed.column,
        "published": printed.text,
        "status": cell.status,
        "obtained": cell.value,
        "agreement": cell.agreement,
        "embedded": cell.embedded,
        "stand_in": cell.stand_in,
        "source": cell.source,
        "queries": cell.questions,
        "reason": cell.reason,
        "blank": cell.blank,
        "command": cell.command,
    }


def _show(
    tables: Sequence[Table],
    obtained: Obtained,
    done: Refreshed | None,
    console: Console,
) -> None:
    def say(text: str, **style: Any) -> None:
        console.print(text, highlight=False, markup=False, soft_wrap=True, **style)

    if not tables:
        console.print(_overview(obtained, titles=console.width >= _WIDE))
        say(
            "routeprism reproduce LABEL prints a table's numbers; --run executes again", style="dim"
        )
    for table in tables:
        cells = cells_of(table, obtained)
        say(f"{table.label}: {table.title}", style="bold")
        console.print(_details(cells))
        if table.note:
            say(f"note: {table.note}")
        for status in ("differs", "machinery", "not derivable"):
            for reason in dict.fromkeys(one.reason for one in cells if one.status == status):
                if reason:
                    say(f"{status}: {reason}")
        for blank in blanks(cells):
            say(f"no value here: {blank}")
        for command in dict.fromkeys(one.command for one in cells if one.status == "machinery"):
            if command:
                say(f"runs with: {command}")
    if done is not None:
        say(f"Executed: {', '.join(done.executed) or 'nothing'}")
        for name, why in done.missing.items():
            say(f"Left as it was: {name} ({why})")


_WIDE = 110
"""From how many columns on the overview has room for what each table shows."""


def _overview(obtained: Obtained, *, titles: bool) -> Shown:
    shown = Shown(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    shown.add_column("label", no_wrap=True)
    if titles:
        shown.add_column("shows", overflow="fold")
    for status in STATUSES:
        shown.add_column(status, justify="right", min_width=max(map(len, status.split())))
    totals = [0] * len(STATUSES)
    for table, counts in summary(obtained):
        numbers = [counts[status] for status in STATUSES]
        totals = [one + other for one, other in zip(totals, numbers, strict=True)]
        named = [table.label, *([escape(table.title)] if titles else [])]
        shown.add_row(*named, *(str(n) if n else "" for n in numbers))
    shown.add_row("all", *([""] if titles else []), *map(str, totals))
    return shown


def _details(cells: Sequence[Cell]) -> Shown:
    shown = Shown(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    shown.add_column("row", overflow="fold", min_width=12)
    shown.add_column("column", overflow="fold", min_width=8)
    shown.add_column("published", no_wrap=True)
    shown.add_column("here", overflow="fold")
    shown.add_column("status", overflow="fold")
    for line in lines_of(cells):
        here = line.here.replace("*embedded*", "(embedded)")
        texts = (line.row, line.column, line.printed, here, line.status)
        shown.add_row(*map(escape, texts))
    return shown
