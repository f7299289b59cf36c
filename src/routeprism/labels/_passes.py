"""Passes over cards by a model: one prompt for each card, through the ledger like every answer.

A pass is a batch, so several passes of one model are independent readings, and a pass that was
interrupted can be resumed. A reply may have words around its JSON, a code fence, or thoughts before
it. It is *unread* if no object has the requested key, if two objects differ, or if a label is
unknown. An unread reply stays unread under its pass's name: asking again until something fits would
select among readings. A new pass asks again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from routeprism.answers import Cell, Cost, Progress, collect, plan
from routeprism.errors import InputError, SpecError, UnansweredError
from routeprism.labels._cards import (
    LABELS,
    UNREAD,
    Card,
    CardRecord,
    CompiledCard,
    Kind,
    Rubric,
    ScreenCard,
)
from routeprism.labels._readings import (
    CONFIDENCES,
    CompiledReading,
    Reading,
    Readings,
    RecordReading,
    ScreenReading,
    SupportReading,
    check_name,
    find_misquotation,
    verify_passages,
)
from routeprism.models import Allowance, Ask, Model
from routeprism.runs import Ledger, Run

_FORMATS: Mapping[Kind, str] = {
    "screen": '{"label": "admissible" or "ambiguous" or "inadmissible", "reason": "…"}',
    "support": (
        '{"records": [{"record": 1, "label": "direct" or "indirect" or "none", "basis": "…", '
        '"confidence": "low" or "medium" or "high"}, …]} with one entry for each record'
    ),
    "compiled": (
        '{"outcome": "supports" or "jointly" or "none" or "unresolved", '
        '"passages": ["…", …], "reason": "…"}'
    ),
}
_KEYS: Mapping[Kind, str] = {"screen": "label", "support": "records", "compiled": "outcome"}
_THOUGHTS = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_NUMBER = re.compile(r"(?:record\s*)?#?(\d+)\Z", re.IGNORECASE)


class _UnreadError(Exception):
    """A reply that cannot be read."""


def make_ask(card: Card, rubric: Rubric) -> Ask:
    """Write the prompt for a card."""
    if isinstance(card, CompiledCard):
        passage = f"<context>\n{card.context}\n</context>"
    else:
        passage = "\n\n".join(map(_show_record, card.records))
    options = "\n".join(("Options", *card.options, "")) + "\n" if card.options else ""
    gold = "" if isinstance(card, ScreenCard) else f"Right answer\n{card.gold}\n\n"
    text = (
        f"{rubric.text}\n\n{passage}\n\nQuestion\n{card.text}\n\n{options}{gold}"
        f"Reply with one JSON object and nothing else:\n{_FORMATS[rubric.kind]}"
    )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"question '{card.question}': its card has half of a surrogate pair, which no prompt "
            f"can hold ({error.reason}); repair the text it came from"
        ) from None
    return Ask(text=text, memory=passage, question=card.text, options=(), draw=0)


def read_reply(raw: str, card: Card, rubric: Rubric) -> Reading:
    """Read a model's reply to a card's prompt."""
    try:
        reply = _find_object(raw, _KEYS[rubric.kind])
        if isinstance(card, CompiledCard):
            return _read_compiled(reply, card)
        if rubric.kind == "screen":
            label = _read_word(reply.get("label"), LABELS["screen"], "label")
            return ScreenReading(card.question, label, _read_text(reply.get("reason")))
        return _read_support(reply, card.question, card.records)
    except _UnreadError as error:
        return _make_unread(card, rubric, str(error))


def _make_unread(card: Card, rubric: Rubric, why: str) -> Reading:
    """Make the reading of a reply that cannot be read."""
    if isinstance(card, CompiledCard):
        return CompiledReading(card.question, card.context_sha256, UNREAD, reason=why)
    if rubric.kind == "screen":
        return ScreenReading(card.question, UNREAD, why)
    return SupportReading(card.question, unread=why)


def _show_record(record: CardRecord) -> str:
    date = f' date="{record.date}"' if record.date else ""
    return f'<record number="{record.number}"{date}>\n{record.text}\n</record>'


def _find_object(raw: str, key: str) -> Mapping[str, Any]:
    """Find the only JSON object with the requested key."""
    text = _THOUGHTS.sub("", raw)
    objects = [value for value in _parse_objects(text) if key in value]
    if not objects:
        if text.count("{") > text.count("}"):
            raise _UnreadError("the reply ends before its JSON does; allow the model more tokens")
        raise _UnreadError(f"the reply has no JSON object with '{key}'")
    if any(value != objects[0] for value in objects):
        raise _UnreadError(f"the reply has {len(objects)} JSON objects that differ")
    return objects[0]


def _parse_objects(text: str) -> Iterator[dict[str, Any]]:
    """Parse every outermost JSON object, with its keys in lower case."""
    decoder = json.JSONDecoder(object_pairs_hook=_fold_keys, strict=False)
    at = text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield value
        at = text.find("{", end)


def _fold_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in pairs:
        folded = name.strip().casefold()
        if folded in values and values[folded] != value:
            raise ValueError(f"'{name}' is there twice")
        values[folded] = value
    return values


def _read_word(value: object, words: tuple[str, ...], name: str) -> str:
    word = value.strip(" \t\r\n.\"'*").casefold() if isinstance(value, str) else ""
    if word not in words:
        raise _UnreadError(f"{name}={value!r:.60} is none of {', '.join(words)}")
    return word


def _read_text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _read_support(
    reply: Mapping[str, Any], question: str, records: tuple[CardRecord, ...]
) -> SupportReading:
    labelled: dict[int, RecordReading] = {}
    for number, entry in _list_entries(reply["records"]):
        if number in labelled:
            raise _UnreadError(f"record {number} is labelled twice")
        label = _read_word(entry.get("label"), LABELS["support"], f"the label of record {number}")
        confidence = _read_text(entry.get("confidence")).casefold()
        labelled[number] = RecordReading(
            label,
            _read_text(entry.get("basis")),
            confidence if confidence in CONFIDENCES else "",
        )
    numbers = {record.number for record in records}
    if unknown := sorted(set(labelled) - numbers):
        raise _UnreadError(f"record {unknown[0]} is labelled, which the card does not have")
    if missing := sorted(numbers - set(labelled)):
        raise _UnreadError(f"record {missing[0]} is not labelled")
    return SupportReading(question, {record.id: labelled[record.number] for record in records})


def _list_entries(value: object) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Read record numbers with their entries, from a list or from an object by number."""
    if isinstance(value, dict):
        for name, entry in value.items():
            yield _read_number(name), entry if isinstance(entry, dict) else {"label": entry}
    elif isinstance(value, list) and all(isinstance(entry, dict) for entry in value):
        for entry in value:
            yield _read_number(entry.get("record")), entry
    else:
        raise _UnreadError("'records' is not a list of objects")


def _read_number(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _NUMBER.match(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise _UnreadError(f"{value!r:.60} is not the number of a record")
    return int(match[1])


def _read_compiled(reply: Mapping[str, Any], card: CompiledCard) -> CompiledReading:
    outcome = _read_word(reply.get("outcome"), LABELS["compiled"], "outcome")
    passages = reply.get("passages") or []
    passages = [passages] if isinstance(passages, str) else passages
    if not isinstance(passages, list) or any(not isinstance(text, str) for text in passages):
        raise _UnreadError("'passages' is not a list of texts")
    texts = [text for text in passages if text.strip()]
    if problem := find_misquotation(outcome, len(texts)):
        raise _UnreadError(problem)
    return CompiledReading(
        card.question,
        card.context_sha256,
        outcome,
        verify_passages(texts, card.context),
        _read_text(reply.get("reason")),
    )


def check_reader(model: Model) -> None:
    """Refuse a model that cannot follow a written rule."""
    if model.embedded:
        raise SpecError(
            f"'{model.name}' scores options and quotes sentences; it cannot follow a rubric or "
            f"write JSON, so it cannot read cards. Models that answer in free text can: "
            f"openai:MODEL, inspect:PROVIDER/MODEL, hf:PATH, or recorded:FILE with such replies; "
            f"and so can people: export the cards as a sheet, and give the filled sheet as a pass"
        )


def _list_cells(cards: Sequence[Card], rubric: Rubric) -> list[Cell]:
    """List the requests of a pass."""
    return [Cell(make_ask(card, rubric), card.question, rubric.name, card.id) for card in cards]


def plan_pass(
    cards: Sequence[Card],
    rubric: Rubric,
    model: Model,
    *,
    name: str,
    ledger: Ledger | None = None,
) -> Cost:
    """Count the requests of a pass and estimate their cost."""
    check_reader(model)
    return plan(_list_cells(cards, rubric), ledger, model, batch=check_name(name))


def read_cards(
    cards: Sequence[Card],
    rubric: Rubric,
    model: Model,
    *,
    name: str,
    run: Run | None = None,
    progress: Callable[[Progress], None] | None = None,
    rate_limit: float | None = None,
    concurrency: int | None = None,
    allowance: Allowance | None = None,
) -> Readings:
    """Let a model read every card once, as the pass `name`.

    Args:
        cards: the cards to read.
        rubric: the rule to read them by.
        model: the reader.
        name: the name of the pass, which is the batch of its requests.
        run: the run whose ledger stores the replies; without one they are not stored.
        progress: a callback, called at intervals and at the end.
        rate_limit: the largest number of requests per minute.
        concurrency: the number of simultaneous requests, by default the model's own number.
        allowance: the calls and money that may still be spent.

    """
    check_reader(model)
    check_name(name)
    cells = _list_cells(cards, rubric)
    collected = collect(
        run,
        model,
        cells,
        batch=name,
        progress=progress,
        rate_limit=rate_limit,
        concurrency=concurrency,
        allowance=allowance,
    )
    if collected.failures:
        last = list(collected.failures.values())[-1]
        raise UnansweredError(
            f"pass '{name}': {len(collected.failures)} of {len(cards)} requests failed; the last "
            f"error was: {last.error}. A pass must be complete; run the same command to request "
            f"the others",
            attempts=last.attempts,
        )
    readings: dict[str, Reading] = {}
    for card, cell in zip(cards, cells, strict=True):
        answer = collected.of(cell)
        if answer is None:
            raise UnansweredError(
                f"pass '{name}': {card.id} has no reply; run the same command to retry"
            )
        if answer.outcome == "refused":
            readings[card.id] = _make_unread(card, rubric, "the model refused")
        else:
            readings[card.id] = read_reply(answer.raw, card, rubric)
    settings = json.dumps(dict(model.settings), sort_keys=True, ensure_ascii=False)
    return Readings.under(rubric, name, model.name, settings.encode(), readings)
