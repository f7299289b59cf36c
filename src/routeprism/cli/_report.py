"""What `report` does."""

from __future__ import annotations

import json
import sys
import webbrowser
from pathlib import Path
from typing import Any

from rich.console import Console

from routeprism.report import write_answers, write_charts, write_report, write_tables

__all__ = ["run_report"]


def run_report(
    run: Path,
    *,
    out: Path | None,
    tables: Path | None,
    charts: Path | None,
    answers: Path | None,
    megabytes: float,
    show: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write a run's report, and its tables, charts and answers where asked for; open it."""
    path = write_report(run, out, megabytes=megabytes)
    number = write_answers(run, answers) if answers else 0
    written: dict[str, Any] = {
        "report": str(path),
        "tables": [str(one) for one in write_tables(run, tables)] if tables else [],
        "charts": [str(one) for one in write_charts(run, charts)] if charts else [],
        "answers": str(answers) if answers else None,
    }
    if as_json:
        json.dump(written, sys.stdout, indent=2, ensure_ascii=False)
        sys.stdout.write("\n")
    elif not quiet:
        console = Console()
        _say(console, f"Report: {path}")
        if tables:
            _say(console, f"Tables: {len(written['tables'])} files in {tables}")
        if charts:
            _say(console, f"Charts: {len(written['charts'])} files in {charts}")
        if answers:
            _say(
                console, f"Answers: {number:,} in {answers}; --model recorded:{answers} reads them"
            )
    if show and not webbrowser.open(path.resolve().as_uri()):
        print(f"routeprism: no browser could be started; open {path}", file=sys.stderr)


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)
