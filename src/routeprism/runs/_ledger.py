"""The ledger of requests, answers and failures, and the states of built memories.

Both survive when a run is repeated, so that nothing is paid for twice. A request gets its place in
the dispatch order when it is first planned and keeps it, so that a run that was killed and resumed
records the same order as one that was not. An answer is on the disk before it counts.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Literal, NamedTuple, TypeVar

from routeprism.runs._store import StorageError, is_refusal, read_schema, storing

T = TypeVar("T")
Job = Callable[[sqlite3.Connection], Any]
Row = tuple[str, tuple[Any, ...]]
"""The beginning of an INSERT up to VALUES, and the values."""
Batch = list[tuple[Job | Row, Future[Any]]]

_PATIENCE = 60.0
"""Seconds to wait for another connection's transaction."""
_TOGETHER = 64
"""Rows in one statement; SQLite accepts at least 999 values."""

Outcome = Literal["answered", "refused", "unparsable"]
"""How an answer ended; a request that failed has no answer and is repeated."""
Settings = Mapping[str, str | int | float | bool | None]


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


def open_store(path: Path, tables: str, use: str) -> sqlite3.Connection:
    """Open a store and create the tables of a schema that it does not have yet."""
    try:
        connection = sqlite3.connect(path, timeout=60.0)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.executescript(read_schema(tables))
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise StorageError(f"{path} cannot be used {use}: {error}") from error
    return connection


class Ledger:
    """The ledger of one store, open for reading and writing."""

    def __init__(self, path: Path) -> None:
        self._reading = open_store(path, "ledger", "as a ledger")
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
            return self._committer.insert("INSERT INTO failures", _list_values(entry))
        if entry.correct is not None or entry.order is not None:
            recorded = (entry.submission, entry.correct, entry.order)
            self._committer.insert("INSERT OR IGNORE INTO recorded", recorded)
        if entry.marks:
            marks = (entry.submission, _lines(entry.marks))
            self._committer.insert("INSERT OR IGNORE INTO marks", marks)
        answer = _list_values(entry)[:_STORED_WITH_ANSWER]
        return self._committer.insert("INSERT OR IGNORE INTO answers", answer)

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
        return [Failure(**_read_fields(Failure, row)) for row in rows]

    def count_route(self, route: str) -> int:
        """Count the answers to requests with this name of a route."""
        statement = "SELECT count(*) FROM requests JOIN answers USING (submission) WHERE route = ?"
        (number,) = self._reading.execute(statement, (route,)).fetchone()
        return int(number)

    def count(self) -> int:
        """Count the answers."""
        (number,) = self._reading.execute("SELECT count(*) FROM answers").fetchone()
        return int(number)


_FIELDS = {kind: tuple(part.name for part in fields(kind)) for kind in (Answer, Failure)}
_STORED_WITH_ANSWER = _FIELDS[Answer].index("correct")
"""The number of fields in the table `answers`; the later ones have tables of their own."""
_LISTS = {"scores", "attempts", "marks"}
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


def _list_values(entry: Answer | Failure) -> tuple[Any, ...]:
    """List the values of the fields in the order of the table's columns; tuples as JSON."""
    values = (getattr(entry, name) for name in _FIELDS[type(entry)])
    return tuple(_lines(value) if isinstance(value, tuple) else value for value in values)


def _read_fields(kind: type[Answer | Failure], row: Sequence[Any]) -> dict[str, Any]:
    values = dict(zip(_FIELDS[kind], row, strict=True))
    for name in _LISTS & values.keys():
        values[name] = None if values[name] is None else tuple(json.loads(values[name]))
    return values


def _answer(row: Sequence[Any]) -> Answer:
    values = _read_fields(Answer, row)
    correct, marks = values["correct"], values["marks"]
    values["correct"] = None if correct is None else bool(correct)
    return Answer(**{**values, "marks": marks or ()})


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


class States:
    """The snapshots of built memories in a store, open for reading and writing in one thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = open_store(path, "states", "for built states")

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


class Committer:
    """Runs jobs on the one writing connection of a store, durably and in order.

    One thread writes everything that is queued in one transaction. A write counts when its future
    is resolved, after the commit has reached the disk. While one commit waits for the disk the next
    writes queue, so that the rate is not limited to one per fsync.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._queue: SimpleQueue[tuple[Job | Row, Future[Any]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="ledger", daemon=True)
        self._closed = False
        self._thread.start()

    def submit(self, job: Callable[[sqlite3.Connection], T]) -> Future[T]:
        """Queue a job; its future gives the result once it is on the disk."""
        return self._enqueue(job)

    def insert(self, statement: str, values: tuple[Any, ...]) -> Future[None]:
        """Queue one row; queued rows of the same statement are written together."""
        return self._enqueue((statement, values))

    def _enqueue(self, item: Job | Row) -> Future[Any]:
        future: Future[Any] = Future()
        # From here on it cannot be cancelled: a queued item is always written.
        future.set_running_or_notify_cancel()
        self._queue.put((item, future))
        return future

    def close(self) -> None:
        """Write everything that is queued, and end."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
            self._thread.join()

    def _work(self) -> None:
        try:
            connection = sqlite3.connect(self._path, timeout=_PATIENCE, isolation_level=None)
        except sqlite3.Error as error:
            self._refuse(error)
            return
        with closing(connection):
            try:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA synchronous=FULL")
            except sqlite3.Error as error:
                self._refuse(error)
                return
            ending = False
            while not ending:
                batch, ending = self._take_batch()
                if batch:
                    _commit(connection, batch, self._path)

    def _take_batch(self) -> tuple[Batch, bool]:
        """Wait for one item and take all that are queued."""
        item = self._queue.get()
        batch: Batch = []
        while item is not None:
            batch.append(item)
            try:
                item = self._queue.get_nowait()
            except Empty:
                return batch, False
        return batch, True

    def _refuse(self, error: sqlite3.Error) -> None:
        while (item := self._queue.get()) is not None:
            item[1].set_exception(_storage_error(self._path, error))


def _storage_error(path: Path, error: BaseException) -> BaseException:
    """Name the file if SQLite cannot write; any other error of a job is unchanged."""
    if is_refusal(error):
        return StorageError(f"{path} cannot be written: {error}")
    return error


def _commit(connection: sqlite3.Connection, batch: Batch, path: Path) -> None:
    try:
        connection.execute("BEGIN IMMEDIATE")
        results = _run(connection, [item for item, _ in batch])
        connection.execute("COMMIT")
    except BaseException as error:
        if connection.in_transaction:
            with suppress(sqlite3.Error):  # on a full disk SQLite rolls back by itself
                connection.execute("ROLLBACK")
        if len(batch) > 1:  # one bad job must not take the others with it
            for item in batch:
                _commit(connection, [item], path)
            return
        batch[0][1].set_exception(_storage_error(path, error))
        return
    for (_, future), result in zip(batch, results, strict=True):
        future.set_result(result)


def _run(connection: sqlite3.Connection, items: list[Job | Row]) -> list[Any]:
    """Run jobs and write rows, in order.

    Many rows share one statement, because each call releases the interpreter lock and must wait
    for the thread with the requests to get it back.
    """
    results: list[Any] = []
    rows: list[tuple[Any, ...]] = []
    for number, item in enumerate(items):
        if not isinstance(item, tuple):
            results.append(item(connection))
            continue
        statement, values = item
        rows.append(values)
        results.append(None)
        following = items[number + 1] if number + 1 < len(items) else None
        same = isinstance(following, tuple) and following[0] == statement
        if not same or len(rows) == _TOGETHER:
            places = "(" + ", ".join("?" * len(values)) + ")"
            every = ", ".join([places] * len(rows))
            connection.execute(f"{statement} VALUES {every}", [v for row in rows for v in row])
            rows.clear()
    return results
