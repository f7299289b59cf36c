"""Tables as HTML, Markdown, LaTeX and CSV, what their columns mean, and answers as a table."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from routeprism.errors import InputError, RunError
from routeprism.exhibits import Number, Part, Table
from routeprism.experiments import AnswerNames, list_answer_sources, name_answer
from routeprism.files import write_output
from routeprism.measures import COORDINATES, RETENTION, Coordinate, registered_coordinates
from routeprism.report._html import Markup, fragment, tag
from routeprism.review.answers import TracedAnswer, judge_answers
from routeprism.runs import EstimateRow, StoredRun, read_configuration
from routeprism.spreadsheets import guard_cell, write_csv

__all__ = [
    "ANSWER_COLUMNS",
    "RowNumbers",
    "as_csv",
    "as_html",
    "as_latex",
    "as_markdown",
    "explain_column",
    "link_number",
    "write_answers",
]

NO_BREAK = "\N{NO-BREAK SPACE}"
RowNumbers = Mapping[EstimateRow, int]
"""The number of each row of a run, counted from 1."""


def link_number(number: Number, rows: RowNumbers) -> Markup | str:
    """Link a number to its row in the table of all estimates."""
    at = rows.get(number.row)
    text = _join_interval(number.text)
    if at is None:
        return text
    return tag("a", text, href=f"#row={at}", title=f"Row {at} of all estimates")


def as_csv(table: Table) -> str:
    """Write a table as CSV."""
    cells = ([guard_cell(str(cell)) for cell in row] for row in table.rows)
    return write_csv(table.columns, cells)


_SHOWN_ROWS = 10
"""How many rows a long table shows before it is opened."""
_MANY_COLUMNS = 9


def as_html(
    table: Table,
    rows: RowNumbers | None = None,
    *,
    marks: Mapping[str, Markup] | None = None,
    bars: Collection[str] = (),
    stacked: bool = False,
) -> Markup:
    """Write a table for the page, whose script adds sorting, copying and downloading.

    `marks` stand before the names of rows; percentages in the columns `bars` also have a bar. On
    a phone, a `stacked` table shows the cells of a row below each other.
    """
    style = _Style(table, rows or {}, marks or {}, bars, stacked)
    head = tag("tr", *(_header(table, at) for at in range(len(table.columns))))
    beyond = len(table.rows) > _SHOWN_ROWS + 2
    body = [
        tag(
            "tr",
            *(_cell(cell, at, style) for at, cell in enumerate(row)),
            class_="beyond" if beyond and number >= _SHOWN_ROWS else None,
        )
        for number, row in enumerate(table.rows)
    ]
    table_tag = tag(
        "table",
        tag("caption", table.caption) if table.caption else None,
        tag("thead", head),
        tag("tbody", fragment(body)),
        class_="dense" if len(table.columns) > _MANY_COLUMNS else None,
    )
    scroll = tag(
        "div", table_tag, class_="scroll", tabindex="0", role="region", aria_label=table.title
    )
    kind = "exhibit stacked" if stacked else "exhibit"
    return tag("div", scroll, class_=kind, data_table=table.name)


def _header(table: Table, at: int) -> Markup:
    column = table.columns[at]
    words = at < table.names or all(_is_words(str(row[at])) for row in table.rows if row[at])
    return tag(
        "th",
        column,
        scope="col",
        class_=None if words else "number",
        data_help=explain_column(column) or table.caption or table.title,
    )


def _is_words(text: str) -> bool:
    return len(text) > _LONG or not any(character.isdigit() for character in text)


@dataclass(frozen=True, slots=True)
class _Style:
    """How the cells of a table are shown."""

    table: Table
    rows: RowNumbers
    marks: Mapping[str, Markup]
    bars: Collection[str]
    stacked: bool


_LONG = 40
_SHARE = re.compile(r"(\d+) of (\d+)")
_PERCENT = re.compile(r"(\d+)%")


def _cell(cell: Part, at: int, style: _Style) -> Markup:
    """Make a cell; shares also have a bar."""
    text, table = str(cell), style.table
    long = "long" if len(text) > _LONG else None
    if at == 0:
        mark = style.marks.get(text)
        return tag("th", mark, " " if mark else None, tag("bdi", text), scope="row", class_=long)
    column = table.columns[at] if style.stacked else None
    if at < table.names:
        return tag("td", text, class_=long, data_column=column)
    if not text:
        none = tag("span", "n/a", class_="none")
        return tag("td", none, class_="number", data_column=column)
    if _is_words(text):
        return tag("td", text, class_="words", data_column=column)
    content = _join_interval(text) if isinstance(cell, str) else link_number(cell, style.rows)
    bar = _bar(text, table.columns[at] in style.bars)
    return tag("td", content, bar, class_="number", data_column=column)


def _bar(text: str, is_bar: bool) -> Markup | None:
    """Draw a share as a bar: a count out of a number, or a percentage where one is wanted."""
    if share := _SHARE.fullmatch(text):
        part, whole = map(int, share.groups())
        value = part / whole if whole else 0
    elif is_bar and (percent := _PERCENT.fullmatch(text)):
        value = int(percent[1]) / 100
    else:
        return None
    return tag("span", class_="share", style=f"--share:{value:.4f}")


def _join_interval(text: str) -> str:
    """Keep an interval on one line, which may be the line below its estimate."""
    estimate, bracket, interval = text.partition(" [")
    joined = interval.replace(" ", NO_BREAK)
    return f"{estimate}{bracket}{joined}" if bracket else text


def as_markdown(table: Table) -> str:
    """Write a table as GitHub-flavoured Markdown."""
    marks = ["---" if at < table.names else "---:" for at in range(len(table.columns))]
    lines = [f"### {_markdown(table.title)}", "", _markdown(table.caption), ""]
    for cells in (table.columns, marks, *table.rows):
        texts = cells if cells is marks else [_markdown(str(cell)) or "n/a" for cell in cells]
        lines.append(f"| {' | '.join(texts)} |")
    return "\n".join(lines) + "\n"


def _markdown(text: str) -> str:
    escaped = "".join(f"\\{c}" if c in "\\`*_{}[]<>#|~$" else c for c in text)
    return " ".join(escaped.replace("&", "&amp;").split())


def as_latex(table: Table) -> str:
    """Write a table for LaTeX with the booktabs package."""
    columns = "l" * table.names + "r" * (len(table.columns) - table.names)
    lines = [
        r"\begin{table}",
        rf"\caption{{{_latex(table.caption)}}}",
        rf"\label{{tab:{table.name}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(_latex(column) for column in table.columns) + r" \\",
        r"\midrule",
        *(" & ".join(_latex(str(cell)) or "--" for cell in row) + r" \\" for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


_LATEX = {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "κ": r"$\kappa$",
    "Δ": r"$\Delta$",
    "δ": r"$\delta$",
    "Γ": r"$\Gamma$",
    "−": "$-$",
    "×": r"$\times$",
    "[": "{[}",
    "]": "{]}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def _latex(text: str) -> str:
    return " ".join("".join(_LATEX.get(character, character) for character in text).split())


ANSWER_COLUMNS = (
    *("model", "batch", "question", "policy", "schedule", "pair", "condition", "design"),
    *("filler", "prompt_control", "draw", "answer", "correct", "submission"),
)
"""What is written of each answer."""


def write_answers(run: Path, file: Path) -> int:
    """Write every answer that a run's numbers depend on, and say how many there are."""
    with StoredRun(run) as stored:
        rows = [[guard_cell(cell) for cell in row] for row in _rows(stored, run)]
    if not rows:
        raise RunError(f"{run} contains no answers: no model was asked")
    try:
        write_output(file, write_csv(ANSWER_COLUMNS, rows).encode())
    except OSError as error:
        raise InputError(f"cannot be written ({error.strerror or error})", file=file) from error
    return len(rows)


def _rows(stored: StoredRun, run: Path) -> Iterator[list[str]]:
    configuration = read_configuration(stored, run)
    questions = stored.questions()
    identities: set[tuple[str, ...]] = set()
    for model in configuration.get("models", ()):
        for batch in configuration["batches"]:
            for experiment in list_answer_sources():
                for policy in configuration["policies"]:
                    answers = stored.answers(experiment, model=model, batch=batch, policy=policy)
                    for answer in judge_answers(stored, configuration["judge"], answers, questions):
                        has_gold = questions[answer.answer.question].gold is not None
                        names = _names(
                            experiment, answer, configuration["prompt_control"], has_gold
                        )
                        row = [names.get(column, "") for column in ANSWER_COLUMNS]
                        place = tuple(row[: ANSWER_COLUMNS.index("answer")])
                        if place not in identities:  # experiments may share answers
                            identities.add(place)
                            yield row


def _names(experiment: str, traced: TracedAnswer, control: str, has_gold: bool) -> dict[str, str]:
    answer = traced.answer
    names = AnswerNames(
        answer.question,
        answer.policy,
        answer.schedule,
        answer.filler,
        answer.condition,
        answer.side,
    )
    place = name_answer(experiment, names, control)
    order = answer.order
    if order is None and not answer.model.startswith("recorded:"):
        order = answer.submission  # that of recorded answers is only the order of looking them up
    return {
        **dict(place),
        "model": answer.model,
        "batch": answer.batch,
        "draw": str(answer.turn),
        "answer": answer.raw,
        # A verdict that could not be read counts as wrong, and so it is wrong in the file.
        "correct": str(bool(traced.correct)).lower() if has_gold else "",
        "submission": "" if order is None else str(order),
    }


_REFERENCE = "in source order, or in the order of --against"

_COLUMNS: Mapping[str, str] = {
    "memory": "The memory that was audited, as the command names it.",
    "policy": "The memory that was audited, as the command names it.",
    "arrival": "How records arrive, compared with source order unless a name after 'vs' follows.",
    "schedule": "How records arrive, compared with source order unless a name after 'vs' follows.",
    "kept": f"Share of the records that the memory keeps {_REFERENCE}.",
    "evidence": f"Share of the evidence that questions are shown {_REFERENCE}.",
    "ordinary disorder": "Neighbouring records may swap places, as they do on a real network.",
    "late batch": "A batch of records arrives after the others.",
    "reversal": "All records arrive in reverse: the worst case, not an ordinary one.",
    "right answers": (
        "Share of right answers in source order → in the other order; ≈ if the difference is not "
        "shown to be more than noise."
    ),
    "severity": "How bad it is, on one scale from stable to answers worse.",
    "cause": "Why questions are shown something different, read from the traces.",
    "what to do": "The usual repair for this cause.",
    "cases": "Explained cases: a question under an order of arrival.",
    "model": "The model that answered.",
    "filler": "The text that pads prompts to the same length.",
    "labels": "The source of the labels that name the evidence of each question.",
    "questions": "Number of questions.",
    "pairs": "Number of questions with both routes.",
    "users": "Number of users, whose records form one pool each.",
    "units": "Number of units that the interval resamples.",
    "queries": "Number of questions.",
    "draws": "How often each prompt was asked.",
    "row": "The number of the row in estimates.csv.",
    "experiment": "The experiment that the number belongs to.",
    "quantity": "The name of the number; see the reference for its definition.",
    "conditions": "Memory, order, model and everything else that the number depends on.",
    "stratum": "The group of questions that is averaged over.",
    "estimate [95%]": "The mean over users and, in brackets, its 95% interval.",
    "change [95%]": "The new version minus the old one, with its 95% interval.",
    "before": "The value of the old version.",
    "after": "The value of the new version.",
    "user": "The user whose records the question is about.",
    "question": "The question's identifier.",
}


@lru_cache(maxsize=4)
def _read_meanings(own: tuple[Coordinate[Any], ...]) -> dict[str, str]:
    """Return what each measured quantity means, by its name and its symbol."""
    coordinates = (*COORDINATES, *RETENTION, *own)
    meanings = {coordinate.name: coordinate.meaning for coordinate in coordinates}
    return {**{coordinate.symbol: coordinate.meaning for coordinate in coordinates}, **meanings}


def explain_column(name: str) -> str:
    """Explain a column in a sentence; empty if its name says nothing more."""
    return _COLUMNS.get(name) or _read_meanings(registered_coordinates()).get(
        name.removesuffix(" [95%]"), ""
    )
