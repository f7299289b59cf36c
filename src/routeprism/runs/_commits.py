"""Group commit: one thread writes everything that is queued in one transaction.

A write counts when its future is resolved, after the commit has reached the disk. While one commit
waits for the disk the next writes queue, so that the rate is not limited to one per fsync.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from routeprism.runs._store import StorageError, is_refusal

T = TypeVar("T")
Job = Callable[[sqlite3.Connection], Any]
Row = tuple[str, tuple[Any, ...]]
"""The beginning of an INSERT up to VALUES, and the values."""
Batch = list[tuple[Job | Row, Future[Any]]]

_PATIENCE = 60.0
"""Seconds to wait for another connection's transaction."""
_TOGETHER = 64
"""Rows in one statement; SQLite accepts at least 999 values."""


class Committer:
    """Runs jobs on the one writing connection of a store, durably and in order."""

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
