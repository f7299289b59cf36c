"""Cards as sheets that people fill in, and the filled sheets as readings.

A sheet has one row for each card, and for support labels one for each card and record. Columns to
fill in are on the left, texts to read on the right. Your own sheet may name `question` instead of
`card`, and `record_id` instead of `record`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from routeprism.errors import InputError, closest, nearest
from routeprism.files import read_input
from routeprism.labels._cards import (
    LABELS,
    UNREAD,
    Card,
    CardRecord,
    CompiledCard,
    Kind,
    Rubric,
    ScreenCard,
    SupportCard,
)
from routeprism.labels._readings import (
    CONFIDENCES,
    CompiledReading,
    Reading,
    Readings,
    RecordReading,
    ScreenReading,
    SupportReading,
    find_misquotation,
    list_some,
    verify_passages,
)
from routeprism.spreadsheets import SheetRow, read_table, split_cell, write_table

PASSAGES = 3
"""How many columns for passages are written; a filled sheet may have more."""

_PASSAGE = re.compile(r"passage (\d+)\Z")
_WHOLE = re.compile(r"(\d+)(?:[.,]0+)?\Z")


def write_sheet(
    cards: Sequence[Card], rubric: Rubric, *, readings: Readings | None = None
) -> bytes:
    """Write cards as CSV to be filled in, or filled in with these readings."""
    if readings is not None:
        readings.check(cards, rubric)
    rows: list[_CardRow] = []
    for card in cards:
        rows += _list_rows(card, rubric.kind, readings.cards[card.id] if readings else None)
    columns = list(dict.fromkeys(name for _, _, texts in rows for name in texts))
    if rubric.kind == "screen":
        columns.sort(key=_order_column)
    fields = _name_fields(rubric.kind, [values for _, values, _ in rows])
    gold = ["gold"] if rubric.shows_gold else []
    return write_table(
        ["card", *fields, "text", "options", *gold, *columns],
        (
            [
                card.id,
                *_fill(values, len(fields), rubric.kind),
                card.text,
                "\n".join(card.options),
                *(getattr(card, name, "") for name in gold),
                *(texts.get(name, "") for name in columns),
            ]
            for card, values, texts in rows
        ),
    )


def read_sheet(path: Path, cards: Sequence[Card], rubric: Rubric, *, name: str) -> Readings:
    """Read a sheet that was filled in for these cards; it has to contain every card once."""
    content = read_input(path)
    keys = ["card"] if rubric.kind == "compiled" else ["card", "question"]
    needed = [keys, ["outcome" if rubric.kind == "compiled" else "label"]]
    if rubric.kind == "support":
        needed.append(["record", "record_id"])
    rows: dict[str, list[SheetRow]] = {}
    ids = {card.id for card in cards}
    questions = {card.question: card.id for card in cards}
    for row in read_table(content, path, needed):
        rows.setdefault(_find_card(row, ids, questions), []).append(row)
    if missing := [card.id for card in cards if card.id not in rows]:
        raise InputError(
            f"{len(missing)} of {len(cards)} cards have no row: {list_some(missing)}",
            file=path,
            field="card",
        )
    parse = _READERS[rubric.kind]
    readings = {card.id: parse(card, rows[card.id]) for card in cards}
    return Readings.under(rubric, name, f"file:{path.name}", content, readings)


_CardRow = tuple[Card, list[str], dict[str, str]]
"""A row to write: its card, the fields that are filled in, and the texts that are shown."""


def _list_rows(card: Card, kind: Kind, reading: Reading | None) -> Iterator[_CardRow]:
    if isinstance(card, CompiledCard):
        values: list[str] = []
        if isinstance(reading, CompiledReading):
            passages = (passage.text for passage in reading.passages)
            values = [reading.outcome, *passages, reading.reason]
        yield card, values, _split_text("context", card.context)
    elif kind == "screen":
        texts: dict[str, str] = {}
        for record in card.records:
            date = f"[date {record.date}]\n" if record.date else ""
            texts |= _split_text(f"record {record.number}", date + record.text)
        screened = isinstance(reading, ScreenReading) and [reading.label, reading.reason]
        yield card, screened or [], texts
    else:
        labelled = reading.records if isinstance(reading, SupportReading) else {}
        for record in card.records:
            values = [str(record.number)]
            if label := labelled.get(record.id):
                values += [label.label, label.basis, label.confidence]
            yield card, values, {"date": record.date, **_split_text("content", record.text)}


def _name_fields(kind: Kind, values: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Name the columns to fill in; there are enough for every passage."""
    if kind == "screen":
        return ("label", "reason")
    if kind == "support":
        return ("record", "label", "basis", "confidence")
    passages = max([PASSAGES, *(len(filled) - 2 for filled in values)])
    return ("outcome", *(f"passage {at + 1}" for at in range(passages)), "reason")


def _fill(values: Sequence[str], width: int, kind: Kind) -> list[str]:
    """Fill a row up; a compiled reading's reason stays in the last column."""
    empty = [""] * (width - len(values))
    if kind == "compiled" and values:
        return [*values[:-1], *empty, values[-1]]
    return [*values, *empty]


def _split_text(name: str, text: str) -> dict[str, str]:
    pieces = enumerate(split_cell(text), start=1)
    return {name if at == 1 else f"{name} ({at})": piece for at, piece in pieces}


def _order_column(column: str) -> tuple[int, int]:
    number, piece, *_ = (*map(int, re.findall(r"\d+", column)), 1)
    return number, piece


def _find_card(row: SheetRow, ids: set[str], questions: Mapping[str, str]) -> str:
    if "card" in row.cells or "question" not in row.cells:
        card = row.get("card")
        if card in ids:
            return card
        problem = f"there is no card '{card}'. {closest(card, ids)}" if card else "no card is named"
        raise row.error(problem.rstrip(), "card")
    question = row.get("question")
    if question not in questions:
        problem = f"there is no question '{question}'. {closest(question, questions)}"
        raise row.error(problem.rstrip(), "question")
    return questions[question]


def _read_label(card: Card, rows: Sequence[SheetRow], kind: Kind, column: str) -> str:
    """Read the label of a card that has exactly one row."""
    row = rows[0]
    if len(rows) > 1:
        raise rows[1].error(f"{card.id} is in row {row.number} already", "card")
    if row.get(column).casefold() == UNREAD:
        raise row.error(f"'{UNREAD}' is not a reading; fill in the {column}", column)
    return row.choice(column, LABELS[kind])


def _read_screen(card: Card, rows: Sequence[SheetRow]) -> ScreenReading:
    label = _read_label(card, rows, "screen", "label")
    return ScreenReading(card.question, label, rows[0].cells.get("reason", ""))


def _read_support(card: Card, rows: Sequence[SheetRow]) -> SupportReading:
    records = cast(ScreenCard | SupportCard, card).records
    readings: dict[str, RecordReading] = {}
    numbers: dict[str, int] = {}
    for row in rows:
        record = _find_record(row, records)
        if record.id in readings:
            at = numbers[record.id]
            raise row.error(f"record {record.number} of {card.id} is in row {at} already", "record")
        numbers[record.id] = row.number
        readings[record.id] = RecordReading(
            row.choice("label", LABELS["support"]),
            row.cells.get("basis", ""),
            row.choice("confidence", CONFIDENCES, may_be_empty=True),
        )
    for record in records:
        if record.id not in readings:
            raise rows[0].error(f"{card.id} has no row for its record {record.number}", "record")
    return SupportReading(card.question, {record.id: readings[record.id] for record in records})


def _find_record(row: SheetRow, records: Sequence[CardRecord]) -> CardRecord:
    column = "record" if "record" in row.cells else "record_id"
    text = row.get(column)
    number = _WHOLE.match(text)
    for record in records:
        same = number and int(number[1]) == record.number
        if same if column == "record" else text == record.id:
            return record
    hint = f"the card's records are 1 to {len(records)}"
    if column == "record_id":
        hint = nearest(text, (record.id for record in records))
    problem = f"there is no record '{text}'" if text else "there is no record"
    raise row.error(f"{problem}; {hint}", column)


def _read_compiled(card: Card, rows: Sequence[SheetRow]) -> CompiledReading:
    outcome = _read_label(card, rows, "compiled", "outcome")
    cells = rows[0].cells
    columns = sorted((int(match[1]), name) for name in cells if (match := _PASSAGE.match(name)))
    passages = [cells[name] for _, name in columns if cells[name].strip()]
    if problem := find_misquotation(outcome, len(passages)):
        raise rows[0].error(problem, "passage 1")
    compiled = cast(CompiledCard, card)
    verified = verify_passages(passages, compiled.context)
    reason = cells.get("reason", "")
    return CompiledReading(card.question, compiled.context_sha256, outcome, verified, reason)


_READERS: Mapping[Kind, Callable[[Card, Sequence[SheetRow]], Reading]] = {
    "screen": _read_screen,
    "support": _read_support,
    "compiled": _read_compiled,
}
