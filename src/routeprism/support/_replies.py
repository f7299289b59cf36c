"""What a model is asked of a card, and what its reply says: read leniently, never guessed.

A reply may have words around its JSON, a code fence, or thoughts before it. It is *unread* where no
object has what was asked for, where two objects say different things, or where a label is no label.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from routeprism.errors import InputError
from routeprism.models import Ask
from routeprism.support._cards import Card, CardRecord, CompiledCard, ScreenCard
from routeprism.support._forms import misquoted
from routeprism.support._readings import (
    CONFIDENCES,
    CompiledReading,
    Reading,
    RecordReading,
    ScreenReading,
    SupportReading,
    quoted,
)
from routeprism.support._rubrics import LABELS, UNREAD, Kind, Rubric

__all__ = ["ask_of", "read_reply"]

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
    """A reply that says nothing that could be kept."""


def ask_of(card: Card, rubric: Rubric) -> Ask:
    """Write the one prompt for a card."""
    if isinstance(card, CompiledCard):
        shown = f"<context>\n{card.context}\n</context>"
    else:
        shown = "\n\n".join(map(_record, card.records))
    options = "\n".join(("Options", *card.options, "")) + "\n" if card.options else ""
    gold = "" if isinstance(card, ScreenCard) else f"Right answer\n{card.gold}\n\n"
    text = (
        f"{rubric.text}\n\n{shown}\n\nQuestion\n{card.text}\n\n{options}{gold}"
        f"Reply with one JSON object and nothing else:\n{_FORMATS[rubric.kind]}"
    )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"question '{card.question}': its card has half of a surrogate pair, which no prompt "
            f"can hold ({error.reason}); repair the text it came from"
        ) from None
    return Ask(text=text, memory=shown, question=card.text, options=(), draw=0)


def read_reply(raw: str, card: Card, rubric: Rubric) -> Reading:
    """Read a model's reply to a card's prompt."""
    try:
        found = _object(raw, _KEYS[rubric.kind])
        if isinstance(card, CompiledCard):
            return _compiled(found, card)
        if rubric.kind == "screen":
            label = _word(found.get("label"), LABELS["screen"], "label")
            return ScreenReading(card.question, label, _text(found.get("reason")))
        return _supported(found, card.question, card.records)
    except _UnreadError as error:
        return unread(card, rubric, str(error))


def unread(card: Card, rubric: Rubric, why: str) -> Reading:
    """Make the reading that says that there is none."""
    if isinstance(card, CompiledCard):
        return CompiledReading(card.question, card.context_sha256, UNREAD, reason=why)
    if rubric.kind == "screen":
        return ScreenReading(card.question, UNREAD, why)
    return SupportReading(card.question, unread=why)


def _record(record: CardRecord) -> str:
    date = f' date="{record.date}"' if record.date else ""
    return f'<record number="{record.number}"{date}>\n{record.text}\n</record>'


def _object(raw: str, key: str) -> Mapping[str, Any]:
    """Give the one object that has what was asked for."""
    text = _THOUGHTS.sub("", raw)
    found = [one for one in _objects(text) if key in one]
    if not found:
        if text.count("{") > text.count("}"):
            raise _UnreadError("the reply ends before its JSON does; allow the model more tokens")
        raise _UnreadError(f"the reply has no JSON object with '{key}'")
    if any(one != found[0] for one in found):
        raise _UnreadError(f"the reply has {len(found)} JSON objects that differ")
    return found[0]


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Give every outermost JSON object, with its keys in lower case."""
    decoder = json.JSONDecoder(object_pairs_hook=_pairs, strict=False)
    at = text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield value
        at = text.find("{", end)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        folded = name.strip().casefold()
        if folded in found and found[folded] != value:
            raise ValueError(f"'{name}' is there twice")
        found[folded] = value
    return found


def _word(value: object, known: tuple[str, ...], name: str) -> str:
    said = value.strip(" \t\r\n.\"'*").casefold() if isinstance(value, str) else ""
    if said not in known:
        raise _UnreadError(f"{name}={value!r:.60} is none of {', '.join(known)}")
    return said


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _supported(found: Mapping[str, Any], question: str, records: tuple[CardRecord, ...]) -> Reading:
    labelled: dict[int, RecordReading] = {}
    for number, entry in _entries(found["records"]):
        if number in labelled:
            raise _UnreadError(f"record {number} is labelled twice")
        label = _word(entry.get("label"), LABELS["support"], f"the label of record {number}")
        confidence = _text(entry.get("confidence")).casefold()
        labelled[number] = RecordReading(
            label,
            _text(entry.get("basis")),
            confidence if confidence in CONFIDENCES else "",
        )
    known = {record.number for record in records}
    if unknown := sorted(set(labelled) - known):
        raise _UnreadError(f"record {unknown[0]} is labelled, which the card does not have")
    if missing := sorted(known - set(labelled)):
        raise _UnreadError(f"record {missing[0]} is not labelled")
    return SupportReading(question, {record.id: labelled[record.number] for record in records})


def _entries(value: object) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Give record numbers with what is said of them, from a list or an object by number."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield _number(name), one if isinstance(one, dict) else {"label": one}
    elif isinstance(value, list) and all(isinstance(one, dict) for one in value):
        for one in value:
            yield _number(one.get("record")), one
    else:
        raise _UnreadError("'records' is no list of objects")


def _number(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    named = _NUMBER.match(value.strip()) if isinstance(value, str) else None
    if named is None:
        raise _UnreadError(f"{value!r:.60} is no record's number")
    return int(named[1])


def _compiled(found: Mapping[str, Any], card: CompiledCard) -> CompiledReading:
    outcome = _word(found.get("outcome"), LABELS["compiled"], "outcome")
    listed = found.get("passages") or []
    listed = [listed] if isinstance(listed, str) else listed
    if not isinstance(listed, list) or any(not isinstance(one, str) for one in listed):
        raise _UnreadError("'passages' is no list of texts")
    texts = [text for text in listed if text.strip()]
    if problem := misquoted(outcome, len(texts)):
        raise _UnreadError(problem)
    return CompiledReading(
        card.question,
        card.context_sha256,
        outcome,
        quoted(texts, card.context),
        _text(found.get("reason")),
    )
