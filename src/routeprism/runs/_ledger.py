"""The ledger: what was asked, what came back, and what failed. Nothing in it is paid for twice.

A request gets its place in the dispatch order when it is first planned and keeps it, so that a
run that was killed and continued has the same order on record as one that was not. An answer is on
the disk before anyone is told that it exists.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple

from routeprism.errors import RunError
from routeprism.runs._commits import Committer

__all__ = ["Answer", "Failure", "Key", "Ledger", "Outcome", "Request", "has_answers", "sha256"]

Outcome = Literal["answered", "refused", "unparsable"]
"""How an answer ended; a request that failed has no answer, and is made again."""
Settings = Mapping[str, str | int | float | bool | None]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS models (
    settings_sha256 TEXT, model TEXT, settings TEXT,
    PRIMARY KEY (settings_sha256, model)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS prompts (sha256 TEXT PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS requests (
    submission INTEGER PRIMARY KEY, model TEXT NOT NULL, settings_sha256 TEXT NOT NULL,
    prompt_sha256 TEXT NOT NULL, batch TEXT NOT NULL, draw INTEGER NOT NULL,
    question TEXT, route TEXT,
    UNIQUE (prompt_sha256, draw, model, settings_sha256, batch));
CREATE TABLE IF NOT EXISTS answers (
    submission INTEGER PRIMARY KEY REFERENCES requests, outcome TEXT NOT NULL, answer TEXT,
    raw TEXT NOT NULL, scores TEXT, input_tokens INTEGER, output_tokens INTEGER, cost REAL,
    asked_at TEXT NOT NULL, latency REAL NOT NULL, attempts TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS failures (
    submission INTEGER REFERENCES requests, error TEXT NOT NULL, asked_at TEXT NOT NULL,
    latency REAL NOT NULL, attempts TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS recorded (
    submission INTEGER PRIMARY KEY REFERENCES requests, correct INTEGER, position INTEGER);
"""
"""Lists and maps are JSON. Question and route say who asked first: comparisons may share. What came
with an answer that was collected elsewhere is in `recorded`."""


class Key(NamedTuple):
    """What makes an answer this answer."""

    model: str
    settings: str
    """SHA-256 of the settings as canonical JSON."""
    prompt: str
    """SHA-256 of the whole prompt."""
    batch: str
    draw: int

    @classmethod
    def of(cls, model: str, settings: Settings, prompt: str, *, batch: str, draw: int) -> Key:
        """Make the key of a prompt's text."""
        return cls(model, sha256(canonical(settings)), sha256(prompt), batch, draw)


@dataclass(frozen=True, slots=True)
class Request:
    """An answer that is wanted."""

    key: Key
    text: str
    """The whole prompt."""
    question: str = ""
    route: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer as it is kept."""

    submission: int
    """Its place in the dispatch order."""
    outcome: Outcome
    answer: str | None
    """The option's letter or the text, where there is one."""
    raw: str
    scores: tuple[float, ...] | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    asked_at: str
    """UTC."""
    latency: float
    """Seconds from the first attempt to the answer."""
    attempts: tuple[str, ...] = ()
    """One line for each attempt that failed."""
    correct: bool | None = None
    """The verdict that came with it, where it was collected elsewhere."""
    order: int | None = None
    """Its place in the order in which it was asked for there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One request that ended without an answer."""

    submission: int
    error: str
    asked_at: str
    latency: float
    attempts: tuple[str, ...] = ()


class Ledger:
    """The ledger of one store, open for reading and writing."""

    def __init__(self, path: Path) -> None:
        try:
            self._reading = sqlite3.connect(path, timeout=60.0)
            self._reading.execute("PRAGMA journal_mode=WAL")
            self._reading.executescript(_SCHEMA)
        except sqlite3.Error as error:
            raise RunError(f"{path} cannot be used as a ledger: {error}") from error
        self._committer = Committer(path)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Write what was handed over, and close."""
        self._committer.close()
        self._reading.close()

    def reserve(self, settings: Settings, requests: Sequence[Request]) -> Future[list[int]]:
        """Write down what will be asked, in dispatch order; the future gives submission indices.

        A request that was written down before keeps the index it has.
        """
        digest = sha256(canonical(settings))

        def write(connection: sqlite3.Connection) -> list[int]:
            models = {(digest, request.key.model, canonical(settings)) for request in requests}
            connection.executemany("INSERT OR IGNORE INTO models VALUES (?, ?, ?)", models)
            texts = {request.key.prompt: request.text for request in requests}
            connection.executemany("INSERT OR IGNORE INTO prompts VALUES (?, ?)", texts.items())
            connection.executemany(
                "INSERT OR IGNORE INTO requests VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)",
                [(*request.key, request.question, request.route) for request in requests],
            )
            return [_submission(connection, request.key) for request in requests]

        return self._committer.submit(write)

    def put(self, entry: Answer | Failure) -> Future[None]:
        """Keep an answer or a failure; the future is resolved when it is on the disk."""
        if isinstance(entry, Failure):
            return self._committer.insert("INSERT INTO failures", _failure_row(entry))
        if entry.correct is not None or entry.order is not None:
            came = (entry.submission, entry.correct, entry.order)
            self._committer.insert("INSERT OR IGNORE INTO recorded", came)
        return self._committer.insert("INSERT OR IGNORE INTO answers", _answer_row(entry))

    def answers(self, keys: Iterable[Key]) -> dict[Key, Answer]:
        """Give the answers that are there."""
        found: dict[Key, Answer] = {}
        if self._reading.execute("SELECT 1 FROM answers LIMIT 1").fetchone() is None:
            return found
        for key in keys:
            row = self._reading.execute(_ANSWER, _places(key)).fetchone()
            if row is not None:
                found[key] = _answer(row)
        return found

    def missing(self, keys: Iterable[Key]) -> list[Key]:
        """Give the keys without an answer, each once."""
        wanted = dict.fromkeys(keys)
        found = self.answers(wanted)
        return [key for key in wanted if key not in found]

    def failures(self, key: Key) -> list[Failure]:
        """Give every time that a request failed."""
        rows = self._reading.execute(_FAILURES, _places(key))
        return [
            Failure(
                submission=row[0],
                error=row[1],
                asked_at=row[2],
                latency=row[3],
                attempts=tuple(json.loads(row[4])),
            )
            for row in rows
        ]

    def count(self) -> int:
        """Count the answers."""
        (number,) = self._reading.execute("SELECT count(*) FROM answers").fetchone()
        return int(number)


_WHERE = "prompt_sha256 = ? AND draw = ? AND model = ? AND settings_sha256 = ? AND batch = ?"
_ALL = "answers.*, recorded.correct, recorded.position"
_KEPT = "JOIN answers USING (submission) LEFT JOIN recorded USING (submission)"
_ANSWER = f"SELECT {_ALL} FROM requests {_KEPT} WHERE {_WHERE}"  # noqa: S608
_FAILURES = f"SELECT failures.* FROM requests JOIN failures USING (submission) WHERE {_WHERE}"  # noqa: S608
_SUBMISSION = f"SELECT submission FROM requests WHERE {_WHERE}"  # noqa: S608


def _places(key: Key) -> tuple[Any, ...]:
    return key.prompt, key.draw, key.model, key.settings, key.batch


def _submission(connection: sqlite3.Connection, key: Key) -> int:
    return int(connection.execute(_SUBMISSION, _places(key)).fetchone()[0])


def _answer_row(entry: Answer) -> tuple[Any, ...]:
    scores = None if entry.scores is None else json.dumps(entry.scores)
    return (
        entry.submission,
        entry.outcome,
        entry.answer,
        entry.raw,
        scores,
        entry.input_tokens,
        entry.output_tokens,
        entry.cost,
        entry.asked_at,
        entry.latency,
        _lines(entry.attempts),
    )


def _failure_row(entry: Failure) -> tuple[Any, ...]:
    return entry.submission, entry.error, entry.asked_at, entry.latency, _lines(entry.attempts)


def _answer(row: Sequence[Any]) -> Answer:
    return Answer(
        submission=row[0],
        outcome=row[1],
        answer=row[2],
        raw=row[3],
        scores=None if row[4] is None else tuple(json.loads(row[4])),
        input_tokens=row[5],
        output_tokens=row[6],
        cost=row[7],
        asked_at=row[8],
        latency=row[9],
        attempts=tuple(json.loads(row[10])),
        correct=None if row[11] is None else bool(row[11]),
        order=row[12],
    )


def _lines(attempts: tuple[str, ...]) -> str:
    return json.dumps(attempts, ensure_ascii=False)


def canonical(settings: Settings) -> str:
    """Write settings as JSON in the one way that is hashed."""
    return json.dumps(dict(settings), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def sha256(text: str) -> str:
    """Give a text's SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()


def has_answers(path: Path) -> bool:
    """Say whether a store holds answers, which somebody may have paid for."""
    if not path.exists():
        return False
    try:
        with closing(sqlite3.connect(path)) as connection:
            return connection.execute("SELECT 1 FROM answers LIMIT 1").fetchone() is not None
    except sqlite3.Error:
        return False
