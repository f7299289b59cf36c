"""Readings: the labels that one pass over a set of cards gave, and how they are stored as JSON."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, cast

from routeprism.errors import InputError, SpecError, nearest
from routeprism.files import read_input, write_output
from routeprism.labels._cards import LABELS, UNREAD, Card, CompiledCard, Kind, Rubric, ScreenCard
from routeprism.records import parse_json

CONFIDENCES = ("low", "medium", "high")
"""How sure a reader is; empty if the reader did not say."""

_NAME = re.compile(r"\w[\w.-]*\Z")


@dataclass(frozen=True, slots=True)
class ScreenReading:
    """The decision whether a pool may be reordered."""

    question: str
    """The question's id."""
    label: str
    """`admissible`, `ambiguous`, `inadmissible`, or `unread`."""
    reason: str = ""
    """The reader's reason, or why the reply could not be read."""


@dataclass(frozen=True, slots=True)
class RecordReading:
    """How a record bears on the right answer."""

    label: str
    """`direct`, `indirect` or `none`."""
    basis: str = ""
    """The reader's evidence, in a few words."""
    confidence: str = ""
    """`low`, `medium` or `high`; empty if the reader did not say."""


@dataclass(frozen=True, slots=True)
class SupportReading:
    """How every record of a pool bears on the right answer."""

    question: str
    """The question's id."""
    records: Mapping[str, RecordReading] = field(default_factory=dict, hash=False)
    """By record id, the complete pool; empty if the reply could not be read."""
    unread: str = ""
    """Why the reply could not be read."""

    @property
    def direct(self) -> frozenset[str]:
        """The ids of the records that carry the answer."""
        return frozenset(id for id, record in self.records.items() if record.label == "direct")


@dataclass(frozen=True, slots=True)
class Passage:
    """A quotation from a context."""

    text: str
    """The reader's quotation."""
    verified: bool
    """Whether the context contains it word for word, apart from white space."""


@dataclass(frozen=True, slots=True)
class CompiledReading:
    """The decision whether a compiled context supports the right answer."""

    question: str
    """The question's id."""
    context_sha256: str
    """The digest of the context."""
    outcome: str
    """`supports`, `jointly`, `none`, `unresolved`, or `unread`."""
    passages: tuple[Passage, ...] = ()
    """The quotations."""
    reason: str = ""
    """The reader's reason, or why the reply could not be read."""

    @property
    def standing(self) -> str:
        """The outcome, or `unverified` if its quotations do not support it.

        One verified passage is enough for `supports`; `jointly` requires all of its passages.
        """
        verified = [passage.verified for passage in self.passages]
        proven = {"supports": any(verified), "jointly": bool(verified) and all(verified)}
        return self.outcome if proven.get(self.outcome, True) else "unverified"


Reading: TypeAlias = ScreenReading | SupportReading | CompiledReading


@dataclass(frozen=True, slots=True)
class Readings:
    """One pass: a reading of every card of a set, under one rubric, by one source."""

    name: str
    """The name of the pass, which is its batch in a run's ledger."""
    kind: Kind
    """The kind of card that was read."""
    rubric: str
    """The rubric's name."""
    rubric_digest: str
    """SHA-256 of the rubric."""
    source: str
    """A model's spec, or `file:NAME`."""
    source_digest: str
    """SHA-256 of the model's settings, or of the file."""
    cards: Mapping[str, Reading] = field(hash=False)
    """By card id, in the order of the cards."""

    def __post_init__(self) -> None:
        check_name(self.name)
        if any(not isinstance(reading, _TYPES[self.kind]) for reading in self.cards.values()):
            raise SpecError(f"pass '{self.name}' mixes readings that are not of kind '{self.kind}'")

    @classmethod
    def under(
        cls, rubric: Rubric, name: str, source: str, content: bytes, cards: Mapping[str, Reading]
    ) -> Readings:
        """Make a pass under a rubric; the content of its source is stored as a digest."""
        digest = hashlib.sha256(content).hexdigest()
        return cls(name, rubric.kind, rubric.name, rubric.digest, source, digest, cards)

    @property
    def model(self) -> str:
        """The model that read; empty if people did."""
        return "" if self.source.startswith("file:") else self.source

    @property
    def counts(self) -> Mapping[str, int]:
        """Number of readings with each label of the kind, with `unverified` and with `unread`.

        Support labels are counted by record, and unread replies by card.
        """
        counts: Counter[str] = Counter()
        for reading in self.cards.values():
            if isinstance(reading, ScreenReading):
                counts[reading.label] += 1
            elif isinstance(reading, CompiledReading):
                counts[reading.standing] += 1
            else:
                counts[UNREAD] += bool(reading.unread)
                counts.update(record.label for record in reading.records.values())
        more = ("unverified", UNREAD) if self.kind == "compiled" else (UNREAD,)
        return {label: counts[label] for label in (*LABELS[self.kind], *more)}

    def screened(self) -> Mapping[str, str]:
        """Map each question id to its label; only for a screening."""
        self._require("screen", "is not a screening")
        readings = cast(Mapping[str, ScreenReading], self.cards).values()
        return {reading.question: reading.label for reading in readings}

    def supported(self) -> Mapping[str, SupportReading]:
        """Map each question id to its reading; only for a support pass."""
        self._require("support", "labels no records")
        readings = cast(Mapping[str, SupportReading], self.cards).values()
        return {reading.question: reading for reading in readings}

    def compiled(self) -> Mapping[tuple[str, str], CompiledReading]:
        """Map (question id, SHA-256 of the context) to readings, as a run's store names them."""
        self._require("compiled", "reads no contexts")
        readings = cast(Mapping[str, CompiledReading], self.cards).values()
        return {(reading.question, reading.context_sha256): reading for reading in readings}

    def _require(self, kind: Kind, problem: str) -> None:
        if self.kind != kind:
            raise SpecError(f"pass '{self.name}' {problem}: it reads '{self.rubric}'")

    def check(self, cards: Sequence[Card], rubric: Rubric) -> Readings:
        """Refuse readings of different cards or under a different rubric."""
        if self.rubric_digest != rubric.digest:
            raise InputError(
                f"pass '{self.name}' was read under another rubric ('{self.rubric}', "
                f"{self.rubric_digest[:8]}) than '{rubric.name}' ({rubric.digest[:8]})",
                field="rubric",
            )
        _match_cards(self.name, self.cards, "the cards", {card.id for card in cards})
        for card in cards:
            _check_card(self.name, card, self.cards[card.id])
        return self


_TYPES: Mapping[Kind, type[Reading]] = {
    "screen": ScreenReading,
    "support": SupportReading,
    "compiled": CompiledReading,
}


def check_name(name: str) -> str:
    """Refuse a pass name that does not fit into a file name or an arm such as `A~B`."""
    if not _NAME.match(name):
        raise SpecError(
            f"Expected letters, digits, '.', '_' or '-' but got name={name!r} for a pass"
        )
    return name


def same_cards(passes: Sequence[Readings]) -> None:
    """Refuse passes that differ in cards or rubric, or share a name."""
    names = [readings.name for readings in passes]
    if len(set(names)) < len(names):
        raise SpecError(f"two passes have the same name: {', '.join(names)}")
    first = passes[0]
    for readings in passes[1:]:
        if (first.kind, first.rubric_digest) != (readings.kind, readings.rubric_digest):
            raise SpecError(
                f"passes '{first.name}' and '{readings.name}' were read under different rubrics: "
                f"'{first.rubric}' ({first.rubric_digest[:8]}) and "
                f"'{readings.rubric}' ({readings.rubric_digest[:8]})"
            )
        _match_cards(first.name, first.cards, f"pass '{readings.name}'", readings.cards)


def verify_passages(passages: Iterable[str], context: str) -> tuple[Passage, ...]:
    """Look each quotation up in the context; runs of white space count as one space."""
    folded = " ".join(context.split())
    words = [(text, " ".join(text.split())) for text in passages]
    return tuple(
        Passage(text, bool(quotation) and quotation in folded) for text, quotation in words
    )


def find_misquotation(outcome: str, passages: int) -> str:
    """Describe a number of passages that does not fit the outcome; empty if it fits."""
    least = {"supports": 1, "jointly": 2}.get(outcome, 0)
    if passages < least:
        return f"'{outcome}' needs {least} quoted passage{'s' if least > 1 else ''} or more"
    if not least and passages:
        return f"'{outcome}' quotes no passage, but there is one"
    return ""


def list_some(ids: Sequence[str], most: int = 3) -> str:
    """List the first few ids."""
    return ", ".join(ids[:most]) + (", …" if len(ids) > most else "")


def _match_cards(name: str, ids: Iterable[str], label: str, reference: Iterable[str]) -> None:
    card_ids, reference_ids = set(ids), set(reference)
    parts = [
        f"{len(only)} only in {place} ({list_some(sorted(only))})"
        for only, place in (
            (card_ids - reference_ids, f"'{name}'"),
            (reference_ids - card_ids, label),
        )
        if only
    ]
    if parts:
        raise InputError(
            f"pass '{name}' and {label} are not about the same cards: {'; '.join(parts)}"
        )


def _check_card(name: str, card: Card, reading: Reading) -> None:
    if reading.question != card.question:
        raise InputError(
            f"pass '{name}': {card.id} is about question '{card.question}', "
            f"not '{reading.question}'"
        )
    if (
        isinstance(reading, SupportReading)
        and not isinstance(card, CompiledCard)
        and not reading.unread
    ):
        ids = {record.id for record in card.records}
        if unknown := sorted(set(reading.records) - ids):
            raise InputError(
                f"pass '{name}': {card.id} labels the record '{unknown[0]}', which its pool does "
                f"not have. {nearest(unknown[0], ids)}"
            )
        if missing := sorted(ids - set(reading.records)):
            raise InputError(f"pass '{name}': {card.id} has no label for record '{missing[0]}'")
    if isinstance(reading, CompiledReading) and isinstance(card, CompiledCard):
        problems = verify_passages((passage.text for passage in reading.passages), card.context)
        if reading.context_sha256 != card.context_sha256 or reading.passages != problems:
            raise InputError(f"pass '{name}': {card.id} was read on another context")
    if isinstance(card, ScreenCard) and not isinstance(reading, ScreenReading):
        raise InputError(f"pass '{name}': {card.id} shows no right answer, so it has no support")


FORMAT = 1
"""The version of the JSON format."""


def readings_to_json(readings: Readings) -> dict[str, Any]:
    """Convert a pass to plain JSON values."""
    return {
        "format": FORMAT,
        "name": readings.name,
        "kind": readings.kind,
        "rubric": readings.rubric,
        "rubric_sha256": readings.rubric_digest,
        "source": readings.source,
        "source_sha256": readings.source_digest,
        "cards": {id: _write_reading(reading) for id, reading in readings.cards.items()},
    }


def readings_from_json(value: object, *, file: str | Path | None = None) -> Readings:
    """Read a pass back; an InputError names the field of any problem."""
    place = JsonPlace(file)
    top = place.object(value)
    if top.get("format") != FORMAT:
        raise place.error(f"Expected format={FORMAT} but got {top.get('format')!r}", "format")
    kind = cast(Kind, place.choice(top, "kind", tuple(LABELS)))
    cards = place.descend("cards").object(top.get("cards"))
    return Readings(
        name=place.text(top, "name"),
        kind=kind,
        rubric=place.text(top, "rubric"),
        rubric_digest=place.text(top, "rubric_sha256"),
        source=place.text(top, "source"),
        source_digest=place.text(top, "source_sha256"),
        cards={
            id: _read_reading(kind, card, place.descend("cards", id)) for id, card in cards.items()
        },
    )


def save_readings(readings: Readings, path: Path) -> None:
    """Write a pass to a file, completely or not at all."""
    text = json.dumps(readings_to_json(readings), indent=1, ensure_ascii=False)
    try:
        write_output(path, f"{text}\n".encode())
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", file=path) from error


def load_readings(path: Path) -> Readings:
    """Read a pass from a file that `save_readings` wrote."""
    try:
        value = parse_json(read_input(path).decode("utf-8-sig"), strict=True)
    except ValueError as error:
        line = getattr(error, "lineno", None)
        raise InputError(f"is not valid JSON: {error}", file=path, line=line) from error
    return readings_from_json(value, file=path)


@dataclass(frozen=True, slots=True)
class JsonPlace:
    """A place inside a JSON file, which errors name."""

    file: str | Path | None = None
    path: tuple[str, ...] = ()

    def descend(self, *names: str) -> JsonPlace:
        """Go deeper."""
        return JsonPlace(self.file, (*self.path, *names))

    def error(self, problem: str, *names: str) -> InputError:
        """Make the error of a field."""
        return InputError(problem, file=self.file, field=".".join((*self.path, *names)) or None)

    def object(self, value: object) -> Mapping[str, Any]:
        """Expect an object."""
        if not isinstance(value, dict):
            raise self.error(f"Expected a JSON object but got {value!r:.60}")
        return value

    def text(self, entry: Mapping[str, Any], name: str, default: str | None = None) -> str:
        """Expect text, which must be there and not be empty unless there is a default."""
        value = entry.get(name, default)
        if not isinstance(value, str) or (default is None and not value):
            raise self.error(f"Expected text but got {name}={value!r:.60}", name)
        return value

    def choice(
        self,
        entry: Mapping[str, Any],
        name: str,
        words: tuple[str, ...],
        default: str | None = None,
    ) -> str:
        """Expect one of several words."""
        value = self.text(entry, name, default)
        if value not in words and (default is None or value != default):
            raise self.error(f"there is no {name} '{value}'. {nearest(value, words)}", name)
        return value


def _write_reading(reading: Reading) -> dict[str, Any]:
    if isinstance(reading, SupportReading) and reading.unread:
        return {"question": reading.question, "unread": reading.unread}
    values = asdict(reading)
    values.pop("unread", None)
    return values


def _read_reading(kind: Kind, value: object, place: JsonPlace) -> Reading:
    entry = place.object(value)
    question = place.text(entry, "question")
    if kind == "screen":
        label = place.choice(entry, "label", (*LABELS[kind], UNREAD))
        return ScreenReading(question, label, place.text(entry, "reason", ""))
    if kind == "compiled":
        return CompiledReading(
            question,
            place.text(entry, "context_sha256"),
            place.choice(entry, "outcome", (*LABELS[kind], UNREAD)),
            _read_passages(entry, place),
            place.text(entry, "reason", ""),
        )
    if "unread" in entry:
        return SupportReading(question, unread=place.text(entry, "unread"))
    records = place.descend("records").object(entry.get("records"))
    if not records:
        raise place.error("Expected a label for every record but got none", "records")
    return SupportReading(
        question,
        {id: _read_record(item, place.descend("records", id)) for id, item in records.items()},
    )


def _read_record(value: object, place: JsonPlace) -> RecordReading:
    entry = place.object(value)
    return RecordReading(
        place.choice(entry, "label", LABELS["support"]),
        place.text(entry, "basis", ""),
        place.choice(entry, "confidence", CONFIDENCES, ""),
    )


def _read_passages(entry: Mapping[str, Any], place: JsonPlace) -> tuple[Passage, ...]:
    entries = entry.get("passages", [])
    if not isinstance(entries, list | tuple):
        raise place.error(f"Expected a list but got passages={entries!r:.60}", "passages")
    passages = []
    for at, value in enumerate(entries):
        inner = place.descend("passages", str(at))
        item = inner.object(value)
        verified = item.get("verified")
        if not isinstance(verified, bool):
            raise inner.error(f"Expected true or false but got {verified!r}", "verified")
        passages.append(Passage(inner.text(item, "text"), verified))
    return tuple(passages)
