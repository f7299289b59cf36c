"""Cards as sheets that people fill in, and the filled sheets as readings.

Screening and compiled contexts have one row for each card, support labels one for each card and
record. What is to be filled in stands on the left, what is to be read on the right. A sheet of your
own may name `question` instead of `card`, and `record_id` instead of `record`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from routeprism.errors import InputError, nearest
from routeprism.support._cards import Card, CardRecord, CompiledCard
from routeprism.support._readings import (
    CONFIDENCES,
    CompiledReading,
    Reading,
    Readings,
    RecordReading,
    ScreenReading,
    SupportReading,
    quoted,
)
from routeprism.support._rubrics import LABELS, UNREAD, Kind, Rubric
from routeprism.support._sheets import Row, read_bytes, read_table, split, write_table

__all__ = ["read_sheet", "write_sheet"]

PASSAGES = 3
"""How many columns for passages are written; a sheet that comes back may have more."""

_PASSAGE = re.compile(r"passage (\d+)\Z")
_WHOLE = re.compile(r"(\d+)(?:[.,]0+)?\Z")
_FIELDS: Mapping[Kind, tuple[str, ...]] = {
    "screen": ("label", "reason"),
    "support": ("record", "label", "basis", "confidence"),
    "compiled": (
        "outcome",
        *(f"passage {number + 1}" for number in range(PASSAGES)),
        "reason",
    ),
}


def write_sheet(
    cards: Sequence[Card], rubric: Rubric, *, readings: Readings | None = None
) -> bytes:
    """Write cards as CSV to be filled in; with readings, as these filled them in."""
    if readings is not None:
        readings.check(cards, rubric)
    rows: list[_Filled] = []
    for card in cards:
        one = None if readings is None else readings.cards[card.id]
        rows += _card_rows(card, rubric.kind, one)
    shared = ["text", "options", *(["gold"] if rubric.shows_gold else [])]
    shown = list(dict.fromkeys(name for _, _, named in rows for name in named))
    if rubric.kind == "screen":
        shown.sort(key=_record_place)
    filled = _FIELDS[rubric.kind]
    if rubric.kind == "compiled":
        most = max((len(values) for _, values, _ in rows), default=0) - 2
        filled = ("outcome", *(f"passage {n + 1}" for n in range(max(most, PASSAGES))), "reason")
    return write_table(
        ["card", *filled, *shared, *shown],
        (
            [
                card.id,
                *_widened(values, len(filled), rubric.kind),
                card.text,
                "\n".join(card.options),
                *([getattr(card, "gold", "")] if rubric.shows_gold else []),
                *(named.get(name, "") for name in shown),
            ]
            for card, values, named in rows
        ),
    )


def read_sheet(path: Path, cards: Sequence[Card], rubric: Rubric, *, name: str) -> Readings:
    """Read a sheet that was filled in for these cards; every card has to be in it, once."""
    content = read_bytes(path)
    keys = ["card"] if rubric.kind == "compiled" else ["card", "question"]
    needed = [keys, ["outcome" if rubric.kind == "compiled" else "label"]]
    if rubric.kind == "support":
        needed.append(["record", "record_id"])
    rows = read_table(content, path, needed)
    found: dict[str, list[Row]] = {}
    find = _finder(cards)
    for row in rows:
        found.setdefault(find(row), []).append(row)
    if missing := [card.id for card in cards if card.id not in found]:
        listed = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
        raise InputError(
            f"{len(missing)} of {len(cards)} cards have no row: {listed}", file=path, field="card"
        )
    read = _READ[rubric.kind]
    return Readings(
        name=name,
        kind=rubric.kind,
        rubric=rubric.name,
        rubric_digest=rubric.digest,
        source=f"file:{path.name}",
        source_digest=hashlib.sha256(content).hexdigest(),
        cards={card.id: read(card, found[card.id]) for card in cards},
    )


_Filled = tuple[Card, list[str], dict[str, str]]
"""A card, what is filled in, and what is shown in columns whose number depends on the cards."""


def _card_rows(card: Card, kind: Kind, one: Reading | None) -> Iterator[_Filled]:
    if isinstance(card, CompiledCard):
        said = one if isinstance(one, CompiledReading) else None
        passages = [passage.text for passage in said.passages] if said else []
        values = [said.outcome, *passages, said.reason] if said else []
        yield card, values, _pieces("context", card.context)
    elif kind == "screen":
        screened = one if isinstance(one, ScreenReading) else None
        named: dict[str, str] = {}
        for record in card.records:
            named |= _pieces(f"record {record.number}", _dated(record))
        yield card, [screened.label, screened.reason] if screened else [], named
    else:
        labelled = one.records if isinstance(one, SupportReading) else {}
        for record in card.records:
            values = [str(record.number)]
            if label := labelled.get(record.id):
                values += [label.label, label.basis, label.confidence]
            yield card, values, {"date": record.date, **_pieces("content", record.text)}


def _widened(values: Sequence[str], width: int, kind: Kind) -> list[str]:
    """Fill a row up; a compiled reading's reason stays in the last column."""
    if kind == "compiled" and values:
        return [*values[:-1], *[""] * (width - len(values)), values[-1]]
    return [*values, *[""] * (width - len(values))]


def _pieces(name: str, text: str) -> dict[str, str]:
    pieces = split(text)
    return {name if at == 0 else f"{name} ({at + 1})": piece for at, piece in enumerate(pieces)}


def _dated(record: CardRecord) -> str:
    return f"[date {record.date}]\n{record.text}" if record.date else record.text


def _record_place(column: str) -> tuple[int, int]:
    numbers = [int(number) for number in re.findall(r"\d+", column)]
    return numbers[0], numbers[1] if len(numbers) > 1 else 1


def _finder(cards: Sequence[Card]) -> Callable[[Row], str]:
    ids = {card.id for card in cards}
    questions = {card.question: card.id for card in cards}

    def find(row: Row) -> str:
        if "card" in row.cells or "question" not in row.cells:
            card = row.get("card")
            if card in ids:
                return card
            said = f"there is no card '{card}'. {_close(card, ids)}" if card else "no card is named"
            raise row.error(said.rstrip(), "card")
        question = row.get("question")
        if question not in questions:
            raise row.error(
                f"there is no question '{question}'. {_close(question, questions)}".rstrip(),
                "question",
            )
        return questions[question]

    return find


def _close(name: str, known: Iterable[str]) -> str:
    """Suggest the nearest; there are too many to list."""
    said = nearest(name, known)
    return said if said.startswith("Did") else ""


def _only(card: Card, rows: Sequence[Row]) -> Row:
    if len(rows) > 1:
        raise rows[1].error(f"{card.id} is in row {rows[0].number} already", "card")
    return rows[0]


def _refuse_unread(row: Row, column: str) -> None:
    if row.get(column).casefold() == UNREAD:
        raise row.error(f"'{UNREAD}' stands for no reading; fill the {column} in", column)


def _screened(card: Card, rows: Sequence[Row]) -> ScreenReading:
    row = _only(card, rows)
    _refuse_unread(row, "label")
    label = row.choice("label", LABELS["screen"])
    return ScreenReading(card.question, label, row.cells.get("reason", ""))


def _supported(card: Card, rows: Sequence[Row]) -> SupportReading:
    records = () if isinstance(card, CompiledCard) else card.records
    found: dict[str, tuple[Row, RecordReading]] = {}
    for row in rows:
        record = _record_of(row, records)
        if record.id in found:
            raise row.error(
                f"record {record.number} of {card.id} is in row {found[record.id][0].number} "
                f"already",
                "record",
            )
        found[record.id] = (
            row,
            RecordReading(
                row.choice("label", LABELS["support"]),
                row.cells.get("basis", ""),
                row.choice("confidence", CONFIDENCES, may_be_empty=True),
            ),
        )
    for record in records:
        if record.id not in found:
            raise rows[0].error(f"{card.id} has no row for its record {record.number}", "record")
    return SupportReading(card.question, {record.id: found[record.id][1] for record in records})


def _record_of(row: Row, records: Sequence[CardRecord]) -> CardRecord:
    column = "record" if "record" in row.cells else "record_id"
    written = row.get(column)
    number = _WHOLE.match(written)
    for record in records:
        same = number and int(number[1]) == record.number
        if same if column == "record" else written == record.id:
            return record
    said = f"there is no record '{written}'" if written else "there is no record"
    known = f"the card's records are 1 to {len(records)}"
    if column == "record_id":
        known = nearest(written, (record.id for record in records))
    raise row.error(f"{said}; {known}", column)


def _compiled(card: Card, rows: Sequence[Row]) -> CompiledReading:
    row = _only(card, rows)
    _refuse_unread(row, "outcome")
    outcome = row.choice("outcome", LABELS["compiled"])
    columns = sorted((int(m[1]), name) for name in row.cells if (m := _PASSAGE.match(name)))
    texts = [row.cells[name] for _, name in columns if row.cells[name].strip()]
    if problem := misquoted(outcome, len(texts)):
        raise row.error(problem, "passage 1")
    assert isinstance(card, CompiledCard)  # noqa: S101 (the rubric's kind says so)
    return CompiledReading(
        card.question,
        card.context_sha256,
        outcome,
        quoted(texts, card.context),
        row.cells.get("reason", ""),
    )


def misquoted(outcome: str, passages: int) -> str:
    """Say what is wrong with the number of passages under an outcome."""
    least = {"supports": 1, "jointly": 2}.get(outcome, 0)
    if passages < least:
        return f"'{outcome}' needs {least} quoted passage{'s' if least > 1 else ''} or more"
    if not least and passages:
        return f"'{outcome}' quotes no passage, but there is one"
    return ""


_READ: Mapping[Kind, Callable[[Card, Sequence[Row]], Reading]] = {
    "screen": _screened,
    "support": _supported,
    "compiled": _compiled,
}
