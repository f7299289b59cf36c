"""Readings as JSON: what a run or a file keeps of them, checked when read back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from routeprism.errors import InputError, nearest
from routeprism.support._readings import (
    CONFIDENCES,
    CompiledReading,
    Passage,
    Reading,
    Readings,
    RecordReading,
    ScreenReading,
    SupportReading,
)
from routeprism.support._rubrics import LABELS, UNREAD, Kind

__all__ = [
    "Place",
    "load_readings",
    "readings_from_json",
    "readings_to_json",
    "save_readings",
]

FORMAT = 1
"""Raised when the shape changes."""


def readings_to_json(readings: Readings) -> dict[str, Any]:
    """Give a pass as plain JSON values, the same for the same pass."""
    return {
        "format": FORMAT,
        "name": readings.name,
        "kind": readings.kind,
        "rubric": readings.rubric,
        "rubric_sha256": readings.rubric_digest,
        "source": readings.source,
        "source_sha256": readings.source_digest,
        "cards": {id: _written(one) for id, one in readings.cards.items()},
    }


def readings_from_json(value: object, *, file: str | Path | None = None) -> Readings:
    """Read a pass back; whatever is wrong is an InputError that names the field."""
    place = Place(file)
    top = place.object(value)
    if top.get("format") != FORMAT:
        raise place.error(f"Expected format={FORMAT} but got {top.get('format')!r}", "format")
    kind = cast(Kind, place.choice(top, "kind", tuple(LABELS)))
    cards = place.inside("cards").object(top.get("cards"))
    return Readings(
        name=place.text(top, "name"),
        kind=kind,
        rubric=place.text(top, "rubric"),
        rubric_digest=place.text(top, "rubric_sha256"),
        source=place.text(top, "source"),
        source_digest=place.text(top, "source_sha256"),
        cards={id: _read(kind, one, place.inside("cards", id)) for id, one in cards.items()},
    )


def save_readings(readings: Readings, path: Path) -> None:
    """Write a pass to a file, as a whole or not at all."""
    beside = path.with_name(f".{path.name}.tmp")
    text = json.dumps(readings_to_json(readings), indent=1, ensure_ascii=False)
    try:
        beside.write_text(text + "\n", encoding="utf-8", newline="\n")
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise InputError(f"cannot be written: {error.strerror or error}", file=path) from error


def load_readings(path: Path) -> Readings:
    """Read a pass from a file that `save_readings` wrote."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        value = json.loads(text, object_pairs_hook=_each_once)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from error
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        raise InputError(f"is no valid JSON: {error}", file=path, line=line) from error
    return readings_from_json(value, file=path)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse an object that names something twice; JSON itself would keep the last in silence."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"'{name}' is there twice")
        found[name] = value
    return found


class Place:
    """Where in a JSON value we are, for errors that say so."""

    def __init__(self, file: str | Path | None = None, path: tuple[str, ...] = ()) -> None:
        self._file, self._path = file, path

    def inside(self, *names: str) -> Place:
        """Go deeper."""
        return Place(self._file, (*self._path, *names))

    def error(self, problem: str, *names: str) -> InputError:
        """Make the error of a field."""
        return InputError(problem, file=self._file, field=".".join((*self._path, *names)) or None)

    def object(self, value: object) -> Mapping[str, Any]:
        """Expect an object."""
        if not isinstance(value, dict):
            raise self.error(f"Expected a JSON object but got {value!r:.60}")
        return value

    def text(self, entry: Mapping[str, Any], name: str, default: str | None = None) -> str:
        """Expect text; where there is a default it may be missing, else it may not be empty."""
        value = entry.get(name, default)
        if not isinstance(value, str) or (default is None and not value):
            raise self.error(f"Expected text but got {name}={value!r:.60}", name)
        return value

    def choice(
        self,
        entry: Mapping[str, Any],
        name: str,
        known: tuple[str, ...],
        default: str | None = None,
    ) -> str:
        """Expect one of several words."""
        value = self.text(entry, name, default)
        if value not in known and (default is None or value != default):
            raise self.error(f"there is no {name} '{value}'. {nearest(value, known)}", name)
        return value


def _written(one: Reading) -> dict[str, Any]:
    if isinstance(one, ScreenReading):
        return {"question": one.question, "label": one.label, "reason": one.reason}
    if isinstance(one, CompiledReading):
        return {
            "question": one.question,
            "context_sha256": one.context_sha256,
            "outcome": one.outcome,
            "passages": [{"text": p.text, "verified": p.verified} for p in one.passages],
            "reason": one.reason,
        }
    if one.unread:
        return {"question": one.question, "unread": one.unread}
    records = {
        id: {"label": record.label, "basis": record.basis, "confidence": record.confidence}
        for id, record in one.records.items()
    }
    return {"question": one.question, "records": records}


def _read(kind: Kind, value: object, place: Place) -> Reading:
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
            _passages(entry, place),
            place.text(entry, "reason", ""),
        )
    if "unread" in entry:
        return SupportReading(question, unread=place.text(entry, "unread"))
    records = place.inside("records").object(entry.get("records"))
    if not records:
        raise place.error("Expected a label for every record but got none", "records")
    return SupportReading(
        question,
        {id: _record(one, place.inside("records", id)) for id, one in records.items()},
    )


def _record(value: object, place: Place) -> RecordReading:
    entry = place.object(value)
    return RecordReading(
        place.choice(entry, "label", LABELS["support"]),
        place.text(entry, "basis", ""),
        place.choice(entry, "confidence", CONFIDENCES, ""),
    )


def _passages(entry: Mapping[str, Any], place: Place) -> tuple[Passage, ...]:
    listed = entry.get("passages", [])
    if not isinstance(listed, list):
        raise place.error(f"Expected a list but got passages={listed!r:.60}", "passages")
    found = []
    for at, value in enumerate(listed):
        inner = place.inside("passages", str(at))
        one = inner.object(value)
        if not isinstance(one.get("verified"), bool):
            raise inner.error(f"Expected true or false but got {one.get('verified')!r}", "verified")
        found.append(Passage(inner.text(one, "text"), one["verified"]))
    return tuple(found)
