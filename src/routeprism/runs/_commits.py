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

_PATIENCE = 60.0
"""Seconds to wait for another connection's transaction."""


class Committer:
    """Runs jobs on the one writing connection of a store, durably and in order."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._queue: SimpleQueue[tuple[Job, Future[Any]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="ledger", daemon=True)
        self._closed = False
        self._thread.start()

    def submit(self, job: Callable[[sqlite3.Connection], T]) -> Future[T]:
        """Queue a job; its future gives the result once that is on the disk."""
        future: Future[T] = Future()
        # From here on it cannot be cancelled: what was handed over is written.
        future.set_running_or_notify_cancel()
        self._queue.put((job, future))
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

    def _waiting(self) -> tuple[list[tuple[Job, Future[Any]]], bool]:
        """Wait for one job and take all that are there."""
        item = self._queue.get()
        batch: list[tuple[Job, Future[Any]]] = []
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


def _commit(connection: sqlite3.Connection, batch: list[tuple[Job, Future[Any]]]) -> None:
    try:
        connection.execute("BEGIN IMMEDIATE")
        results = [job(connection) for job, _ in batch]
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
