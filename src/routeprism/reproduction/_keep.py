"""Keeping the result as a run, so that a report can show it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from routeprism.reproduction._obtained import Obtained
from routeprism.reproduction._page import STATUSES, blanks, lines_of
from routeprism.reproduction._registry import TABLES, cells_of
from routeprism.runs import Finding, Run

__all__ = ["keep"]


def keep(directory: Path, obtained: Obtained) -> None:
    """Write every table into a run directory: findings of the experiment `reproduction`.

    A finding's question is the label of its table.
    """
    total: Counter[str] = Counter()
    made = {name: dict(kept.made) for name, kept in sorted(obtained.items())}
    findings = []
    for place, table in enumerate(TABLES.values()):
        cells = cells_of(table, obtained)
        counts: Counter[str] = Counter(cell.status for cell in cells)
        total += counts
        value = {
            "place": place,
            "title": table.title,
            "counts": [[status, counts[status]] for status in STATUSES if counts[status]],
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
        run.finish([], {"tables": len(findings)}, sentences=[_sentence(total)])


def _sentence(counts: Counter[str]) -> str:
    return (
        f"{counts['reproduced']} of {counts.total()} printed numbers are reproduced from the data "
        f"at hand, {counts['differs']} differ; {counts['machinery']} rest on answers, labels or "
        f"files that are not here, and {counts['not derivable']} cannot be derived"
    )
