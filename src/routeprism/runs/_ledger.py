"""The ledger of requests, answers and failures, and the states of built memories.

Both survive when a run is repeated, so that nothing is paid for twice. A request gets its place in
the dispatch order when it is first planned and keeps it, so that a run that was killed and resumed
records the same order as one that was not. An answer is on the disk before it counts.
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
from typing import Any, Literal, NamedTuple

from routeprism.runs._commits import Committer
from routeprism.runs._store import StorageError, storing

Outcome = Literal["answered", "refused", "unparsable"]
"""How an answer ended; a request that failed has no answer and is repeated."""
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
CREATE TABLE IF NOT EXISTS marks (
    submission INTEGER PRIMARY KEY REFERENCES requests, marks TEXT NOT NULL);
"""
"""Lists and maps are JSON. Question and route name the first comparison that made a request, which
others may share. `recorded` has the verdict and place that came with an answer collected elsewhere,
`marks` the parts of an answer that could not be stored unchanged."""


class Key(NamedTuple):
    """The identity of an answer."""

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
    """A request for one answer."""

    key: Key
    text: str
    """The whole prompt."""
    question: str = ""
    route: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One stored answer."""

    submission: int
    """Its place in the dispatch order."""
    outcome: Outcome
    answer: str | None
    """The option's letter or the text, if there is one."""
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
    """The verdict that came with an answer collected elsewhere."""
    order: int | None = None
    """Its place in the order of requests there."""
    marks: tuple[str, ...] = ()
    """The parts of it that could not be stored unchanged, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One request that ended without an answer."""

    submission: int
    error: str
    asked_at: str
    latency: float
    attempts: tuple[str, ...] = ()


def _open_store(path: Path, schema: str, use: str) -> sqlite3.Connection:
    """Open a store and create the tables that it does not have yet."""
    try:
        connection = sqlite3.connect(path, timeout=60.0)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.executescript(schema)
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise StorageError(f"{path} cannot be used {use}: {error}") from error
    return connection


class Ledger:
    """The ledger of one store, open for reading and writing."""

    def __init__(self, path: Path) -> None:
        self._reading = _open_store(path, _SCHEMA, "as a ledger")
        self._committer = Committer(path)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Write everything that is queued, and close."""
        self._committer.close()
        self._reading.close()

    def reserve(self, settings: Settings, requests: Sequence[Request]) -> Future[list[int]]:
        """Store the requests in dispatch order; the future gives their submission indices.

        A request that was stored before keeps its index.
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
        """Store an answer or a failure; the future is resolved once it is on the disk."""
        if isinstance(entry, Failure):
            return self._committer.insert("INSERT INTO failures", _failure_row(entry))
        if entry.correct is not None or entry.order is not None:
            recorded = (entry.submission, entry.correct, entry.order)
            self._committer.insert("INSERT OR IGNORE INTO recorded", recorded)
        if entry.marks:
            marks = (entry.submission, _lines(entry.marks))
            self._committer.insert("INSERT OR IGNORE INTO marks", marks)
        return self._committer.insert("INSERT OR IGNORE INTO answers", _answer_row(entry))

    def answers(self, keys: Iterable[Key]) -> dict[Key, Answer]:
        """Read the stored answers to some of these keys."""
        answers: dict[Key, Answer] = {}
        if self._reading.execute("SELECT 1 FROM answers LIMIT 1").fetchone() is None:
            return answers
        for key in keys:
            row = self._reading.execute(_ANSWER, _places(key)).fetchone()
            if row is not None:
                answers[key] = _answer(row)
        return answers

    def missing(self, keys: Iterable[Key]) -> list[Key]:
        """List the keys without an answer, each once."""
        distinct = dict.fromkeys(keys)
        answers = self.answers(distinct)
        return [key for key in distinct if key not in answers]

    def failures(self, key: Key) -> list[Failure]:
        """Read every failure of a request."""
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

    def count_route(self, route: str) -> int:
        """Count the answers to requests with this name of a route."""
        statement = "SELECT count(*) FROM requests JOIN answers USING (submission) WHERE route = ?"
        (number,) = self._reading.execute(statement, (route,)).fetchone()
        return int(number)

    def count(self) -> int:
        """Count the answers."""
        (number,) = self._reading.execute("SELECT count(*) FROM answers").fetchone()
        return int(number)


_WHERE = "prompt_sha256 = ? AND draw = ? AND model = ? AND settings_sha256 = ? AND batch = ?"
_ALL = "answers.*, recorded.correct, recorded.position, marks.marks"
_JOINS = (
    "JOIN answers USING (submission) LEFT JOIN recorded USING (submission) "
    "LEFT JOIN marks USING (submission)"
)
_ANSWER = f"SELECT {_ALL} FROM requests {_JOINS} WHERE {_WHERE}"  # noqa: S608
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
        marks=() if row[13] is None else tuple(json.loads(row[13])),
    )


def _lines(lines: tuple[str, ...]) -> str:
    return json.dumps(lines, ensure_ascii=False)


def canonical(settings: Settings) -> str:
    """Write settings as canonical JSON, which is hashed."""
    return json.dumps(dict(settings), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def sha256(text: str) -> str:
    """Compute a text's SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()


def count_answers(path: Path) -> int | None:
    """Count the answers of a store, which may have cost money; None if they cannot be counted."""
    if path.exists() and not path.is_file():
        return None
    if not path.exists():
        return 0
    try:
        with closing(sqlite3.connect(path)) as connection:
            table = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'answers'")
            if table.fetchone() is None:
                return 0
            (number,) = connection.execute("SELECT count(*) FROM answers").fetchone()
            return int(number)
    except sqlite3.Error:  # a full or failing disk says nothing about what is on it
        return None


_STATES_SCHEMA = """
CREATE TABLE IF NOT EXISTS states (
    policy TEXT, user TEXT, arrivals TEXT, build INTEGER, snapshot TEXT NOT NULL,
    PRIMARY KEY (policy, user, arrivals, build)) WITHOUT ROWID;
"""
"""Arrivals and snapshot are JSON; builds of one route are counted from 0."""


class States:
    """The snapshots of built memories in a store, open for reading and writing in one thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = _open_store(path, _STATES_SCHEMA, "for built states")

    def __enter__(self) -> States:
        return self

    def __exit__(self, *error: object) -> None:
        self._connection.close()

    def get(self, policy: str, user: str, order: Sequence[int], build: int = 0) -> Any:
        """Read the snapshot of one build of a route; None if there is none."""
        row = self._connection.execute(
            "SELECT snapshot FROM states "
            "WHERE policy = ? AND user = ? AND arrivals = ? AND build = ?",
            (policy, user, json.dumps(list(order)), build),
        ).fetchone()
        return None if row is None else json.loads(row[0])

    def put(
        self, policy: str, user: str, order: Sequence[int], snapshot: Any, build: int = 0
    ) -> None:
        """Store a snapshot; it is on the disk when this returns."""
        text = json.dumps(snapshot, ensure_ascii=False)
        with storing(self._path), self._connection:
            self._connection.execute(
                "INSERT OR REPLACE INTO states VALUES (?, ?, ?, ?, ?)",
                (policy, user, json.dumps(list(order)), build, text),
            )
