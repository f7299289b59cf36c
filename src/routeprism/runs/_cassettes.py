"""Cassettes: the prompts and replies of a run's ledger as a file, to replay them without a model.

A cassette is a file of JSON lines. The first line names the format. Each further line is one reply
with its place in the ledger: model and settings, prompt, batch and draw. It contains no
credentials, because the ledger has none.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from routeprism.errors import InputError
from routeprism.files import write_output
from routeprism.inputs import read_input
from routeprism.redaction import Redactor
from routeprism.runs._ledger import Answer, Key, Request
from routeprism.runs._run import Run

__all__ = ["Cassette", "write_cassette"]

_FORMAT = {"routeprism_cassette": 1}
_KEY = ("model", "settings", "prompt", "batch", "draw")
_PLACE = ("question", "route")
_REPLY = ("outcome", "answer", "raw", "scores", "input_tokens", "output_tokens", "cost")
_TIMES = ("asked_at", "latency", "attempts")
_REST = ("correct", "position", "marks")
_FIELDS = (*_KEY, *_PLACE, *_REPLY, *_TIMES, *_REST)
_SELECT = """
SELECT requests.model, models.settings, prompts.text, batch, draw, question, route,
    outcome, answer, raw, scores, input_tokens, output_tokens, cost, asked_at, latency, attempts,
    recorded.correct, recorded.position, marks.marks
FROM requests JOIN answers USING (submission)
JOIN models ON models.model = requests.model
    AND models.settings_sha256 = requests.settings_sha256
JOIN prompts ON prompts.sha256 = prompt_sha256
LEFT JOIN recorded USING (submission) LEFT JOIN marks USING (submission)
ORDER BY submission
"""
_SHOWN = 60
"""Characters of two prompts that are shown where they differ."""


def write_cassette(run: Run, path: Path) -> int:
    """Write every reply of a run's ledger to a cassette, beside those that it has; count them."""
    entries = {_identify(entry): entry for entry in (_read(path) if path.exists() else ())}
    redactor = Redactor.configured()
    for entry in _export(run.store):
        entries[_identify(entry)] = {**entry, "raw": redactor.redact(entry["raw"])}
    lines = [_FORMAT, *entries.values()]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    write_output(path, text.encode())
    return len(entries)


def _export(store: Path) -> Iterator[dict[str, Any]]:
    if not store.exists():
        return
    with closing(sqlite3.connect(store)) as connection:
        tables = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'answers'")
        if tables.fetchone() is None:
            return
        for row in connection.execute(_SELECT):
            entry = dict(zip(_FIELDS, row, strict=True))
            for name in ("settings", "scores", "attempts", "marks"):
                entry[name] = None if entry[name] is None else json.loads(entry[name])
            yield entry


def _identify(entry: Mapping[str, Any]) -> str:
    return json.dumps([entry[name] for name in _KEY], sort_keys=True)


def _read(path: Path) -> list[dict[str, Any]]:
    """Read the entries of a cassette; refuse any other file."""
    lines = read_input(path).decode("utf-8", errors="replace").splitlines()
    entries = []
    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError("is not a line of a cassette", file=path, line=number) from error
        if number == 1:
            if entry != _FORMAT:
                raise InputError("is not a cassette of RoutePrism", file=path, line=1)
            continue
        if not isinstance(entry, dict) or (missing := [n for n in _FIELDS if n not in entry]):
            field = missing[0] if isinstance(entry, dict) else None
            raise InputError("it is missing", file=path, line=number, field=field)
        entries.append(entry)
    if not lines:
        raise InputError("is not a cassette of RoutePrism", file=path)
    return entries


@dataclass(frozen=True, slots=True)
class Cassette:
    """Recorded replies that stand for a model."""

    path: Path
    sha256: str
    entries: tuple[Mapping[str, Any], ...]

    @classmethod
    def read(cls, path: Path) -> Cassette:
        """Read a cassette."""
        digest = hashlib.sha256(read_input(path)).hexdigest()
        return cls(path, digest, tuple(_read(path)))

    def restore(self, run: Run) -> None:
        """Put the replies into a run's ledger, where they are found like collected ones."""
        with run.ledger() as ledger:
            keys = [_key(entry) for entry in self.entries]
            missing = set(ledger.missing(keys))
            rows = []
            for key, entry in zip(keys, self.entries, strict=True):
                if key not in missing:
                    continue
                request = Request(key, entry["prompt"], entry["question"], entry["route"])
                (submission,) = ledger.reserve(entry["settings"], [request]).result()
                rows.append(ledger.put(_answer(submission, entry)))
            for future in rows:
                future.result()

    def refuse(self, model: str, prompt: str) -> InputError:
        """Make the error about a prompt without a recorded reply; it shows the nearest prompt."""
        problem = f"has no reply of {model} to a prompt of this call. "
        nearest = _find_nearest(prompt, {entry["prompt"] for entry in self.entries})
        if nearest is None:
            return InputError(problem + "It has no replies at all", file=self.path)
        if nearest == prompt:
            kinds = sorted({e["model"] for e in self.entries if e["prompt"] == prompt})
            problem += (
                f"It has replies of {', '.join(kinds)} to this prompt, recorded with different "
                f"settings, for a different build, or fewer of them"
            )
            return InputError(problem, file=self.path)
        pairs = enumerate(zip(prompt, nearest, strict=False))
        shorter = min(len(prompt), len(nearest))
        at = next((at for at, (first, second) in pairs if first != second), shorter)
        start = max(0, at - _SHOWN // 2)
        problem += (
            f"The nearest recorded prompt is the same up to character {at:,}. Here: "
            f"{prompt[start : start + _SHOWN]!r}. Recorded: {nearest[start : start + _SHOWN]!r}"
        )
        return InputError(problem, file=self.path)


def _find_nearest(prompt: str, recorded: Iterable[str]) -> str | None:
    """Find the recorded prompt with the largest share of common words; ties by text."""
    prompt_words = set(_WORD.findall(prompt))

    def share(text: str) -> float:
        words = set(_WORD.findall(text))
        return len(words & prompt_words) / max(1, len(words | prompt_words))

    ranked = sorted(recorded, key=lambda text: (text != prompt, -share(text), text))
    return ranked[0] if ranked else None


_WORD = re.compile(r"\w+")


def _key(entry: Mapping[str, Any]) -> Key:
    return Key.of(
        entry["model"],
        entry["settings"],
        entry["prompt"],
        batch=entry["batch"],
        draw=entry["draw"],
    )


def _answer(submission: int, entry: Mapping[str, Any]) -> Answer:
    scores = entry["scores"]
    return Answer(
        submission=submission,
        scores=None if scores is None else tuple(scores),
        attempts=tuple(entry["attempts"] or ()),
        correct=entry["correct"],
        order=entry["position"],
        marks=tuple(entry["marks"] or ()),
        **{name: entry[name] for name in (*_REPLY, "asked_at", "latency") if name != "scores"},
    )
