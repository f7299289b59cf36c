"""Group commit: one thread writes whatever has queued up in one transaction, then says so.

A write counts when its future is resolved, and that happens after the commit has reached the disk.
While one commit waits for the disk the next ones queue, so that the rate is not one per fsync.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

__all__ = ["Committer"]

T = TypeVar("T")
Job = Callable[[sqlite3.Connection], Any]
Row = tuple[str, tuple[Any, ...]]
"""The beginning of an INSERT up to VALUES, and the values."""
Batch = list[tuple[Job | Row, Future[Any]]]

_PATIENCE = 60.0
"""Seconds to wait for another connection's transaction."""
_TOGETHER = 64
"""Rows in one statement; SQLite takes 999 values at least."""


class Committer:
    """Runs jobs on the one writing connection of a store, durably and in order."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._queue: SimpleQueue[tuple[Job | Row, Future[Any]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="ledger", daemon=True)
        self._closed = False
        self._thread.start()

    def submit(self, job: Callable[[sqlite3.Connection], T]) -> Future[T]:
        """Queue a job; its future gives the result once that is on the disk."""
        return self._queued(job)

    def insert(self, statement: str, values: tuple[Any, ...]) -> Future[None]:
        """Queue one row; rows that queue up for the same statement are written by one."""
        return self._queued((statement, values))

    def _queued(self, item: Job | Row) -> Future[Any]:
        future: Future[Any] = Future()
        # From here on it cannot be cancelled: what was handed over is written.
        future.set_running_or_notify_cancel()
        self._queue.put((item, future))
        return future

    def close(self) -> None:
        """Write what has queued up, and end."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
            self._thread.join()

    def _work(self) -> None:
        try:
            connection = sqlite3.connect(self._path, timeout=_PATIENCE, isolation_level=None)
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
        except sqlite3.Error as error:
            self._refuse(error)
            return
        try:
            ending = False
            while not ending:
                batch, ending = self._waiting()
                if batch:
                    _commit(connection, batch)
        finally:
            connection.close()

    def _waiting(self) -> tuple[Batch, bool]:
        """Wait for one job and take all that are there."""
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
            item[1].set_exception(error)


def _commit(connection: sqlite3.Connection, batch: Batch) -> None:
    try:
        connection.execute("BEGIN IMMEDIATE")
        results = _run(connection, [item for item, _ in batch])
        connection.execute("COMMIT")
    except BaseException as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        if len(batch) > 1:  # one bad job must not take the others with it
            for item in batch:
                _commit(connection, [item])
            return
        batch[0][1].set_exception(error)
        return
    for (_, future), result in zip(batch, results, strict=True):
        future.set_result(result)


def _run(connection: sqlite3.Connection, items: list[Job | Row]) -> list[Any]:
    """Run jobs and write rows, in order.

    One statement for many rows, because each call gives up the interpreter, and gets it back only
    when the thread with the requests lets go.
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
