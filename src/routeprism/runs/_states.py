"""Built states: memories that a run can expose again without building them again."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from routeprism.errors import RunError

__all__ = ["States"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS states (
    policy TEXT, user TEXT, arrivals TEXT, build INTEGER, snapshot TEXT NOT NULL,
    PRIMARY KEY (policy, user, arrivals, build)) WITHOUT ROWID;
"""
"""Arrivals and snapshot are JSON; builds of one route are counted from 0."""


class States:
    """The snapshots in a store, open for reading and writing in one thread."""

    def __init__(self, path: Path) -> None:
        try:
            self._connection = sqlite3.connect(path, timeout=60.0)
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute(_SCHEMA)
        except sqlite3.Error as error:
            raise RunError(f"{path} cannot be used for built states: {error}") from error

    def __enter__(self) -> States:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

    def get(self, policy: str, user: str, order: Sequence[int], build: int = 0) -> Any:
        """Give the snapshot of one build of a route; None where there is none."""
        row = self._connection.execute(
            "SELECT snapshot FROM states "
            "WHERE policy = ? AND user = ? AND arrivals = ? AND build = ?",
            (policy, user, json.dumps(list(order)), build),
        ).fetchone()
        return None if row is None else json.loads(row[0])

    def put(
        self, policy: str, user: str, order: Sequence[int], snapshot: Any, build: int = 0
    ) -> None:
        """Keep a snapshot; it is on the disk when this returns."""
        written = json.dumps(snapshot, ensure_ascii=False)
        with self._connection:
            self._connection.execute(
                "INSERT OR REPLACE INTO states VALUES (?, ?, ?, ?, ?)",
                (policy, user, json.dumps(list(order)), build, written),
            )
