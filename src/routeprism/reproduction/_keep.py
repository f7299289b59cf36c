"""Keeping the result as a run, so that a report can show it."""

from __future__ import annotations

from pathlib import Path

from routeprism.reproduction._obtained import Obtained
from routeprism.reproduction._page import blanks, lines_of
from routeprism.reproduction._registry import TABLES, cells_of
from routeprism.runs import Finding, Run

__all__ = ["keep"]


def keep(directory: Path, obtained: Obtained) -> None:
    """Write every table into a run directory: findings of the experiment `reproduction`.

    A finding's question is the label of its table.
    """
    made = {name: dict(kept.made) for name, kept in sorted(obtained.items())}
    findings = []
    for place, table in enumerate(TABLES.values()):
        cells = cells_of(table, obtained)
        value = {
            "place": place,
            "title": table.title,
            "lines": [
                [line.row, line.column, line.printed, line.here, line.status]
                for line in lines_of(cells)
            ],
            "embedded": any(cell.embedded for cell in cells),
            "reasons": [
                *([table.note] if table.note else []),
                *dict.fromkeys(cell.reason for cell in cells if cell.reason),
                *(f"no value here: {one}" for one in blanks(cells)),
            ],
            "commands": list(dict.fromkeys(cell.command for cell in cells if cell.command)),
        }
        findings.append(Finding(name="printed_table", question=table.label, value=value))
    configuration = {"command": "reproduce", "sources": made}
    with Run.open(directory, configuration, inputs={}, growing=("sources",)) as run:
        run.keep("reproduction", findings)
        run.finish([], {"tables": len(findings)})
