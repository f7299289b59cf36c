"""Every table with its published and obtained numbers: as a page, and as findings of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any

from routeprism.exhibits import Statement
from routeprism.reproduction._numbers import (
    CheckedNumber,
    Reference,
    check_table,
    find_row,
    locomo_references,
)
from routeprism.reproduction._published import (
    ALIASES,
    LOCOMO,
    PROTOCOL,
    QUESTION_SETS,
    TABLES,
    PublishedTable,
)
from routeprism.reproduction._sources import SOURCES, MeasuredRow, ObtainedValues
from routeprism.runs import Finding, Run, format_interval

COUNTED = (
    *("measured", "denominator", "arithmetic", "differs"),
    *("consistent", "inconsistent", "machinery", "not derivable"),
)
"""How the paper's numbers are counted: reproduced ones by their basis, the others by status."""
REPRODUCED = COUNTED[:3]
"""Those that count reproduced numbers."""
Cells = Sequence[str | None]
"""The cells of a Markdown table; None for a cell that does not apply."""


@dataclass(frozen=True, slots=True)
class TableLine:
    """A line of a table: an estimate with its limits, or a single number."""

    numbers: tuple[CheckedNumber, ...]

    @property
    def row(self) -> str:
        """The row of the table, with its panel unless that is the first."""
        first = self.numbers[0].printed
        return first.row if first.panel == "1" else f"{first.row} ({first.panel})"

    @property
    def column(self) -> str:
        """The column of the table."""
        return self.numbers[0].printed.quantity or "Estimate"

    @property
    def printed(self) -> str:
        """The published value."""
        return self._combine([number.printed.text for number in self.numbers])

    @property
    def obtained(self) -> str:
        """The obtained value, with one digit more than the published one."""
        if all(number.value is None for number in self.numbers):
            return ""
        marks = ["(embedded)"] if any(number.embedded for number in self.numbers) else []
        marks += dict.fromkeys(f"({n.stand_in})" for n in self.numbers if n.stand_in)
        return " ".join([self._combine(list(map(_format_value, self.numbers))), *marks])

    @property
    def status(self) -> str:
        """Notes on its numbers."""
        texts = []
        for number in self.numbers:
            mark = " (noise)" if number.noise is not None else ""
            if number.status == "reproduced" and number.basis in ("denominator", "arithmetic"):
                mark = f" ({number.basis})"
            texts.append(f"{number.status}{mark}")
        if len(set(texts)) == 1:
            return texts[0]
        parts = [number.printed.part for number in self.numbers]
        return "; ".join(f"{part}: {text}" for part, text in zip(parts, texts, strict=True))

    def _combine(self, texts: Sequence[str]) -> str:
        estimate, limits = texts[: len(texts) % 2], texts[len(texts) % 2 :]
        return " ".join([*estimate, *([f"[{', '.join(limits)}]"] if limits else [])])


def group_lines(numbers: Iterable[CheckedNumber]) -> list[TableLine]:
    """Put an estimate and its limits into one line."""
    return [
        TableLine(tuple(group))
        for _, group in groupby(
            numbers,
            key=lambda number: (number.printed.panel, number.printed.row, number.printed.quantity),
        )
    ]


def count_numbers(numbers: Iterable[CheckedNumber]) -> Counter[str]:
    """Count numbers by status, and reproduced numbers by their basis."""
    return Counter(
        number.basis if number.status == "reproduced" else number.status for number in numbers
    )


def count_tables(obtained: ObtainedValues) -> list[tuple[PublishedTable, Counter[str]]]:
    """Count the numbers of each table of the paper."""
    tables = (table for table in TABLES.values() if table.label != PROTOCOL)
    return [(table, count_numbers(check_table(table, obtained))) for table in tables]


def format_heading(status: str) -> str:
    """Name a column of counts."""
    plural = "s" * (status == "denominator")
    return f"reproduced: {status}{plural}" if status in REPRODUCED else status


def list_reasons(numbers: Sequence[CheckedNumber]) -> list[tuple[str, str]]:
    """List why numbers are not reproduced, as status and reason, each pair once."""
    return [
        (status, reason)
        for status in COUNTED[len(REPRODUCED) :]
        for reason in dict.fromkeys(n.reason for n in numbers if n.status == status and n.reason)
    ]


def list_commands(numbers: Sequence[CheckedNumber]) -> list[str]:
    """List the commands that give numbers of this kind."""
    return list(dict.fromkeys(n.command for n in numbers if n.status == "machinery" and n.command))


def explain_blanks(numbers: Sequence[CheckedNumber]) -> list[str]:
    """Explain which rows have numbers without a value, and why."""
    rows: dict[str, list[str]] = {}
    for number in numbers:
        if number.status == "machinery" and number.value is None and number.blank:
            rows.setdefault(number.blank, []).append(number.printed.row)
    several = len({number.printed.row for number in numbers}) > 1
    return [
        f"{', '.join(dict.fromkeys(names)).replace('|', '·')}: {why}" if several else why
        for why, names in rows.items()
    ]


def render_page(obtained: ObtainedValues) -> str:
    """Write the whole page."""
    head = files(__package__).joinpath("page.md").read_text(encoding="utf-8")
    checked = {label: check_table(table, obtained) for label, table in TABLES.items()}
    lines = [head, *_summarise(checked), *_list_question_sets()]
    lines += [*_list_differences(checked), *_list_runs(obtained)]
    for label, numbers in checked.items():
        lines += _show_table(TABLES[label], numbers)
    return "\n".join([*lines, *_show_locomo(obtained)])


def _format_lines(columns: Cells, rows: Iterable[Cells]) -> list[str]:
    """Write a Markdown table, and an empty line below it."""
    lines = [
        "".join("| " if cell is None else f"| {cell} " for cell in cells) + "|"
        for cells in (columns, ["---"] * len(columns), *rows)
    ]
    return [*lines, ""]


def _summarise(checked: Mapping[str, Sequence[CheckedNumber]]) -> list[str]:
    counts_by_label = {label: count_numbers(numbers) for label, numbers in checked.items()}
    targets = counts_by_label.pop(PROTOCOL)
    total = sum(counts_by_label.values(), Counter[str]())
    rows: list[Cells] = []
    for label, counts in counts_by_label.items():
        cells = [str(counts[name] or "") for name in COUNTED]
        link = f"[{label}](#{_anchor(label)})"
        rows.append([link, TABLES[label].title, str(counts.total()), *cells])
    rows.append(["all", None, str(total.total()), *(str(total[name]) for name in COUNTED)])
    headings = ("label", "shows", "numbers", *map(format_heading, COUNTED))
    second = (f"`{alias}` is a second label of `{label}`" for alias, label in ALIASES.items())
    return [
        "## Summary",
        "",
        *_format_lines(headings, rows),
        f"Not counted above: [{PROTOCOL}](#{_anchor(PROTOCOL)}) has {targets.total()} target "
        f"values, of which {targets['target']} are reached here. The paper prints them with fewer "
        f"digits, for different questions or histories, with limits from other resamples, or not "
        f"at all.",
        "",
        _sentence(", ".join(second)),
        "",
    ]


def _list_question_sets() -> list[str]:
    rows = [(f"`{name}`", meaning) for name, meaning in QUESTION_SETS.items()]
    return [
        "## Sets of questions",
        "",
        "The paper chose them by readings that are not public. [`routeprism screen`]"
        "(restoration.md#screening-can-the-pool-be-reordered) writes such a list from readings of "
        "your own (for `gold` and `strict` with `--gold-visible`).",
        "",
        *_format_lines(("`--mask`", "questions of the paper"), rows),
    ]


def _list_differences(checked: Mapping[str, Sequence[CheckedNumber]]) -> list[str]:
    rows = []
    for label, numbers in checked.items():
        for number in numbers:
            if number.noise is not None:
                why = f"noise: over seeds this limit has a standard deviation of {number.noise:.4f}"
            elif number.status == "differs":
                why = number.reason
            else:
                continue
            printed = number.printed
            cells = (printed.row, printed.column, printed.text, _format_value(number), why)
            rows.append((label, *map(_escape, cells)))
    columns = ("label", "row", "column", "published", "here", "why")
    return ["## Numbers that differ, and limits within noise", "", *_format_lines(columns, rows)]


def _list_runs(obtained: ObtainedValues) -> list[str]:
    rows: list[Cells] = []
    for name, source in SOURCES.items():
        values = obtained.get(name)
        if values is None:
            rows.append((name, source.meaning, None, None, "not available"))
            continue
        # Sorted by role, as in the file of values: the page does not depend on the order of a run.
        specs = ", ".join(f"`{spec}`" for _, spec in sorted(values.made["policies"].items()))
        model = f"{values.made.get('model') or ''}{' (embedded)' if values.embedded else ''}"
        fingerprint = str(values.made.get("fingerprint", ""))[:12]
        rows.append((name, source.meaning, specs, model, fingerprint))
    columns = ("run", "what it is", "policies", "model", "data")
    return ["## What was run", "", *_format_lines(columns, rows)]


def _show_table(table: PublishedTable, numbers: Sequence[CheckedNumber]) -> list[str]:
    lines = [f"## {table.label}", "", _sentence(table.title), ""]
    if table.note:
        lines += [_sentence(table.note), ""]
    rows = [
        list(map(_escape, (line.row, line.column, line.printed, line.obtained, line.status)))
        for line in group_lines(numbers)
    ]
    lines += _format_lines(("row", "column", "published", "here", "status"), rows)
    lines += [f"- {status}: {reason}" for status, reason in list_reasons(numbers)]
    lines += [f"- no value here: {blank}" for blank in explain_blanks(numbers)]
    lines += [f"- runs with `{command}`" for command in list_commands(numbers)]
    for name in dict.fromkeys(number.source for number in numbers if number.value is not None):
        counts = {number.questions for number in numbers if number.source == name} - {None}
        questions = f", {counts.pop()} questions" if len(counts) == 1 else ""
        lines.append(f"- here: run `{name}`{questions}")
    return [*lines, ""]


_LOCOMO = """## LoCoMo, end to end

No table of the paper: the same experiments on a complete public benchmark. LoCoMo is
used under CC BY-NC 4.0; intervals resample its ten conversations.
"""
_EMBEDDED = """The embedded reader quotes one sentence and the embedded judge counts words, so
accuracies are low and say nothing about language models; what can be read is the direction.
"""


def _show_locomo(obtained: ObtainedValues) -> list[str]:
    """Write the tables of LoCoMo whose source runs were executed."""
    tables = [table for table in LOCOMO if table.base["source"] in obtained]
    if not tables:
        return []
    embedded = any(obtained[table.base["source"]].embedded for table in tables)
    lines = [_LOCOMO, *([_EMBEDDED] if embedded else [])]
    for table in tables:
        values = obtained[table.base["source"]]
        rows = [
            (row, *(_format_row(find_row(values.rows, ref), ref) for ref in references))
            for row, references in locomo_references(table).items()
        ]
        command = f"{table.base['command']} --model {values.made['model']}"
        lines += [f"### {table.title}", "", *_format_lines((None, *table.columns), rows)]
        lines += [f"- here: run `{table.base['source']}`, `{command}`", ""]
    return lines


def _format_row(measured: MeasuredRow | None, reference: Reference) -> str:
    if measured is None or measured.row.estimate is None:
        return "–"
    row = measured.row
    if reference.number == "queries":
        return f"{row.queries:,}"
    text = format_interval(row.estimate, row.lower, row.upper)
    return text.replace("-0.000", "0.000").replace("-", "−")


def _format_value(number: CheckedNumber) -> str:
    """Write a value with one digit more than is printed, or as many if it is whole."""
    if number.value is None:
        return "–"
    if float(number.value).is_integer() and "." not in number.printed.text:
        return f"{number.value:,.0f}" if number.value >= 10_000 else f"{number.value:.0f}"
    digits = len(number.printed.text.partition(".")[2]) + 1
    text = f"{number.value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _escape(text: str) -> str:
    return text.replace("|", "·").replace("*", "\\*").replace("(embedded)", "*embedded*")


def _anchor(label: str) -> str:
    return label.replace(":", "")


def store_tables(directory: Path, obtained: ObtainedValues) -> None:
    """Write every table into a run directory as a finding whose question is the table's label."""
    checked = {table.label: check_table(table, obtained) for table in TABLES.values()}
    findings = [
        Finding(
            name="printed_table",
            question=label,
            value={"place": place, **_describe_table(TABLES[label], numbers)},
        )
        for place, (label, numbers) in enumerate(checked.items())
    ]
    runs = {name: dict(values.made) for name, values in sorted(obtained.items())}
    configuration = {"command": "reproduce", "sources": runs}
    counts = {label: count_numbers(numbers) for label, numbers in checked.items()}
    targets = counts.pop(PROTOCOL)
    statements = _state_counts(sum(counts.values(), Counter[str]()), targets)
    with Run.open(directory, configuration, inputs={}, growing=("sources",)) as run:
        run.keep("reproduction", findings)
        run.finish([], {"tables": len(findings)}, statements=statements)


def _describe_table(table: PublishedTable, numbers: Sequence[CheckedNumber]) -> dict[str, Any]:
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
        "commands": list_commands(numbers),
    }


def _state_counts(counts: Counter[str], targets: Counter[str]) -> list[Statement]:
    texts = [
        f"Of the paper's {counts.total()} numbers, {counts['measured']} measured values are "
        f"reproduced from the data available and {counts['differs']} differ",
        f"Also reproduced are {counts['denominator']} denominators and {counts['arithmetic']} "
        f"numbers that follow from other printed numbers; {counts['machinery']} depend on answers, "
        f"labels or files that are not here, and {counts['not derivable']} cannot be derived",
        f"{counts['consistent']} numbers depend only on which users are primary and are consistent "
        f"with each other; {counts['inconsistent']} are not",
        f"{targets['target']} of {targets.total()} target values of a correct build are reached",
    ]
    return [Statement((text,), "reproduction") for text in texts]
