"""What `trace` and `report` print: how a number was made, and where a page was written."""

from __future__ import annotations

import json
import sys
import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.markup import escape
from rich.table import Table

from routeprism.api.reviews import write_files
from routeprism.cli._console import SafeConsole, make_grid, print_json, print_line
from routeprism.cli._terminal import reading
from routeprism.review.tracing import RULES, Trail, trace_row
from routeprism.runs import COLUMNS, EstimateRow, UnitValues

_NUMBERS = ("estimate", "lower", "upper", "queries", "units", "draws", "seed")
_UNWEIGHTED = ("sum", "items")
"""Rules by which nothing is weighted."""
_LONGEST = 60
"""How much of a text one line shows."""
_DIGITS = 12
"""How much of a prompt's SHA-256 a line shows; `--json` and `--prompts` give all of it."""


def show_trail(settings: Any) -> None:
    """Run `trace`."""
    with reading(settings.run):
        _show(
            trace_row(
                settings.run, settings.row, question=settings.question, prompts=settings.prompts
            ),
            as_json=settings.json,
        )


def _show(trail: Trail, *, as_json: bool) -> None:
    if as_json:
        print_json(_as_json(trail))
        return
    console = SafeConsole()
    console.say_whole(*_describe_trail(trail), *_entry(trail.experiment))
    for table in _tables(trail):
        console.print()
        console.print(table)
    for digest, text in (trail.prompts or {}).items():
        console.say_whole(f"\nPrompt {digest}:\n{text}")


def _describe_trail(trail: Trail) -> Iterator[str]:
    row = trail.row
    names = [name for name in COLUMNS if name not in _NUMBERS and getattr(row, name)]
    yield f"Row {trail.number}: " + ", ".join(f"{name}={getattr(row, name)}" for name in names)
    numbers = {"question": row.queries, row.unit or "unit": row.units, "draw": row.draws}
    counts = [
        f"{number} {name}{'' if number == 1 else 's'}"
        for name, number in numbers.items()
        if number is not None
    ]
    yield f"{row.quantity} = {_interval(row)}" + (f" ({', '.join(counts)})" if counts else "")
    recomputed = "nothing" if trail.recomputed is None else f"{trail.recomputed:.10g}"
    weighed = f"; every {trail.weighting} counts equally" if trail.rule not in _UNWEIGHTED else ""
    agrees = "as in the run" if trail.agrees else "which is NOT the number in the run"
    yield f"It is {RULES[trail.rule]}{weighed}. Computed again, it is {recomputed}, {agrees}."


def _interval(row: EstimateRow) -> str:
    if row.estimate is None:
        return "not applicable"
    if row.lower is None or row.upper is None:
        return f"{row.estimate:.10g}"
    return f"{row.estimate:.10g} [{row.lower:.6g}, {row.upper:.6g}]"


def _entry(entry: Mapping[str, Any]) -> Iterator[str]:
    """Print the index entry, a line for each of its parts."""
    for part, values in entry.items():
        if values is None:
            yield f"  {part}: none"
            continue
        pairs = (
            f"{name} {_write_value(value)}"
            for name, value in values.items()
            if value not in ([], {})
        )
        yield f"  {part}: {'; '.join(pairs)}"


def _write_value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(
            f"{name} {_write_value(item)}" if item != {} else name for name, item in value.items()
        )
    if isinstance(value, list):
        return ", ".join(map(_write_value, value))
    if value is None:
        return "–"  # not said
    return str(value) if value != "" else "(default)"


def _tables(trail: Trail) -> Iterator[Table]:
    unit = trail.row.unit or "unit"
    for arm, units in trail.groups.items():
        title = arm if len(trail.groups) > 1 else ""
        rows = [_unit(entry) for entry in units]
        yield _table((unit, "mean", "sum", "number", "values by question"), rows, title)
    if trail.sources:
        source_rows = [
            (s.policy, s.question, _ids(s.forward), _ids(s.route)) for s in trail.sources
        ]
        yield _table(
            ("policy", "question", "shown in source order", "shown in the other order"), source_rows
        )
    if trail.answers:
        yield _answers(trail)
    if trail.items:
        passes = list(trail.items[0].labels)
        items = [(i.user, i.question, i.item, *i.labels.values()) for i in trail.items]
        yield _table((unit, "question", "item", *passes), items)
    if trail.findings:
        finding_rows = [
            (f.name, f.user, f.question, _shorten_text(json.dumps(f.value))) for f in trail.findings
        ]
        yield _table(("finding", unit, "question", "value"), finding_rows)


def _unit(unit: UnitValues) -> tuple[str, ...]:
    values = "  ".join(f"{question}={value:.4g}" for question, value in unit.questions.items())
    return unit.user, f"{unit.mean:.6g}", f"{unit.total:.6g}", str(unit.number), values


def _answers(trail: Trail) -> Table:
    rows = []
    for answer in trail.answers:
        cell = answer.answer
        right = {True: "yes", False: "no", None: "n/a"}[answer.correct]
        names = (cell.policy, cell.question, cell.side, cell.condition, cell.filler, cell.batch)
        text = _shorten_text(f"({cell.outcome})" if cell.answer is None else cell.answer)
        rows.append((*names, str(cell.turn), text, right, cell.prompt_sha256[:_DIGITS]))
    headings = ("policy", "question", "route or condition", "of", "filler", "batch", "draw")
    return _table((*headings, "answer", "correct", "prompt SHA-256"), rows)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> Table:
    """Make a table without the columns that are empty in every row."""
    used = [at for at in range(len(headings)) if any(row[at] for row in rows)]
    table = make_grid(escape(title) or None)
    for at in used:
        table.add_column(headings[at], overflow="fold")
    for row in rows:
        table.add_row(*(escape(row[at]) for at in used))
    return table


def _ids(ids: Sequence[str]) -> str:
    return " ".join(ids) or "(nothing)"


def _shorten_text(text: str) -> str:
    folded = " ".join(text.split())
    return folded if len(folded) <= _LONGEST else f"{folded[:_LONGEST]}…"


def _as_json(trail: Trail) -> dict[str, Any]:
    values = ("experiment", "rule", "weighting", "recomputed", "agrees")
    questions = {q for units in trail.groups.values() for unit in units for q in unit.questions}
    questions |= {item.question for item in trail.items}
    return {
        "number": trail.number,
        "row": {name: getattr(trail.row, name) for name in COLUMNS},
        **{name: getattr(trail, name) for name in values},
        "groups": {
            arm: [{**asdict(unit), "mean": unit.mean} for unit in units]
            for arm, units in trail.groups.items()
        },
        "questions": {id: trail.texts[id] for id in sorted(questions)},
        "sources": [asdict(source) for source in trail.sources],
        "answers": [{**asdict(item.answer), "correct": item.correct} for item in trail.answers],
        "items": [asdict(source) for source in trail.items],
        "findings": [asdict(source) for source in trail.findings],
        **({} if trail.prompts is None else {"prompts": trail.prompts}),
    }


def show_report(settings: Any) -> None:
    """Run `report`: write the page, and tables, charts and answers if they are wanted."""
    with reading(settings.run):
        files = write_files(settings)
    page, answers = files["report"], settings.answers
    if settings.json:
        print_json(
            {
                "report": str(page),
                "tables": [str(path) for path in files["tables"]],
                "charts": [str(path) for path in files["charts"]],
                "answers": str(answers) if answers else None,
            }
        )
    elif not settings.quiet:
        recorded = f"{files['answers']:,} in {answers}; --model recorded:{answers} reads them"
        lines = {
            "Report": page,
            "Tables": settings.tables and f"{len(files['tables'])} files in {settings.tables}",
            "Charts": settings.charts and f"{len(files['charts'])} files in {settings.charts}",
            "Answers": answers and recorded,
            "Parquet": settings.parquet,
            "Inspect log": settings.inspect,
        }
        SafeConsole().say_whole(*(f"{name}: {text}" for name, text in lines.items() if text))
    if settings.open and not webbrowser.open(page.resolve().as_uri()):
        print_line(f"routeprism: no browser could be started; open {page}", file=sys.stderr)
