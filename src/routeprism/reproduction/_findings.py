"""Storing the checked tables as findings of a run, so that a report can show them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from routeprism.exhibits import Statement
from routeprism.reproduction._numbers import CheckedNumber, check_table
from routeprism.reproduction._page import (
    COUNTED,
    count_numbers,
    explain_blanks,
    format_heading,
    group_lines,
)
from routeprism.reproduction._published import PROTOCOL, TABLES, PublishedTable
from routeprism.reproduction._sources import ObtainedValues
from routeprism.runs import Finding, Run

__all__ = ["store_tables"]


def store_tables(directory: Path, obtained: ObtainedValues) -> None:
    """Write every table into a run directory as a finding whose question is the table's label."""
    checked = {table.label: check_table(table, obtained) for table in TABLES.values()}
    findings = [
        Finding(
            name="printed_table",
            question=label,
            value={"place": place, **_describe(TABLES[label], numbers)},
        )
        for place, (label, numbers) in enumerate(checked.items())
    ]
    runs = {name: dict(values.made) for name, values in sorted(obtained.items())}
    configuration = {"command": "reproduce", "sources": runs}
    counts = {label: count_numbers(numbers) for label, numbers in checked.items()}
    targets = counts.pop(PROTOCOL)
    statements = _summarise(sum(counts.values(), Counter[str]()), targets)
    with Run.open(directory, configuration, inputs={}, growing=("sources",)) as run:
        run.keep("reproduction", findings)
        run.finish([], {"tables": len(findings)}, statements=statements)


def _describe(table: PublishedTable, numbers: Sequence[CheckedNumber]) -> dict[str, Any]:
    counts = count_numbers(numbers)
    return {
        "title": table.title,
        "counts": [
            [format_heading(name), counts[name]] for name in (*COUNTED, "target") if counts[name]
        ],
        "lines": [
            [line.row, line.column, line.printed, line.obtained, line.status]
            for line in group_lines(numbers)
        ],
        "embedded": any(number.embedded for number in numbers),
        "reasons": [
            *([table.note] if table.note else []),
            *dict.fromkeys(number.reason for number in numbers if number.reason),
            *(f"no value here: {blank}" for blank in explain_blanks(numbers)),
        ],
        "commands": list(dict.fromkeys(number.command for number in numbers if number.command)),
    }


def _summarise(counts: Counter[str], targets: Counter[str]) -> list[Statement]:
    texts = [
        f"Of the paper's {counts.total()} numbers, {counts['measured']} measured values are "
        f"reproduced from the data available and {counts['differs']} differ",
        f"Also reproduced are {counts['denominator']} denominators and {counts['arithmetic']} "
        f"numbers that follow from other printed numbers; {counts['machinery']} depend on answers, "
        f"labels or files that are not here, and {counts['not derivable']} cannot be derived",
        f"{targets['target']} of {targets.total()} target values that are not in the paper are "
        f"reached",
    ]
    return [Statement((text,), "reproduction") for text in texts]
