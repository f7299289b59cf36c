"""A run is a directory, and all there is to keep, resume, compare, delete or send to somebody."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from routeprism.errors import RunError
from routeprism.runs._rows import COLUMNS, EstimateRow, to_csv, unique

__all__ = ["Run"]

MANIFEST = "manifest.json"
STORE = "run.sqlite"
ESTIMATES = "estimates.csv"

_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS texts (sha256 TEXT PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS records (
    user TEXT, position INTEGER, id TEXT, timestamp TEXT, text_sha256 TEXT,
    PRIMARY KEY (user, position)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS questions (
    id TEXT PRIMARY KEY, user TEXT, text TEXT, options TEXT, gold TEXT, kind TEXT, detail TEXT,
    labels TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS traces (
    policy TEXT, interface TEXT, schedule TEXT, user TEXT, arrivals TEXT, retained TEXT,
    signature TEXT, events TEXT,
    PRIMARY KEY (policy, interface, schedule, user)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS exposures (
    policy TEXT, interface TEXT, schedule TEXT, question TEXT, context TEXT,
    PRIMARY KEY (policy, interface, schedule, question)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS contexts (
    id TEXT PRIMARY KEY, context_sha256 TEXT, context_chars INTEGER, sources TEXT, blocks TEXT);
CREATE TABLE IF NOT EXISTS estimates ({", ".join(COLUMNS)});
"""
"""Lists and maps are JSON; a block is [kind, SHA-256 of its text, source ids]; a context's id is
the SHA-256 of its blocks, so that questions and routes that see the same share one row."""

_TABLES = ("texts", "records", "questions", "traces", "exposures", "contexts")
_PACKAGES = ("routeprism", "numpy", "splintr-rs")


class Run:
    """A run directory that is being written."""

    def __init__(self, directory: Path, manifest: dict[str, Any], *, fresh: bool) -> None:
        self.directory = directory
        self.manifest = manifest
        self.fresh = fresh

    @classmethod
    @contextmanager
    def open(
        cls,
        directory: Path,
        configuration: Mapping[str, Any],
        *,
        inputs: Mapping[str, str],
    ) -> Iterator[Run]:
        """Create a run, or open the one that has just this configuration.

        If the body fails, a directory that was made for it goes again.
        """
        wanted = json.loads(json.dumps(configuration))
        fresh, made = _claim(directory, wanted, dict(inputs))
        versions = {name: _version(name) for name in _PACKAGES}
        run = cls(
            directory,
            {
                "configuration": wanted,
                "inputs": dict(inputs),
                "packages": versions,
                "status": "running",
                "counts": {},
            },
            fresh=fresh,
        )
        try:
            run._write_manifest()
            yield run
        except BaseException:
            if fresh:
                _remove(directory, made)
            raise

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """Replace the stored traces in one transaction."""
        connection = sqlite3.connect(self.directory / STORE)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.executescript(_SCHEMA)
            with connection:
                for table in _TABLES:
                    connection.execute(f"DELETE FROM {table}")  # noqa: S608 (fixed names)
                yield Writer(connection)
        finally:
            connection.close()

    def finish(self, rows: Sequence[EstimateRow], counts: Mapping[str, Any]) -> None:
        """Write the estimates, then say that the run is complete."""
        unique(rows)
        connection = sqlite3.connect(self.directory / STORE)
        try:
            connection.executescript(_SCHEMA)
            with connection:
                connection.execute("DELETE FROM estimates")
                places = ", ".join("?" * len(COLUMNS))
                connection.executemany(
                    f"INSERT INTO estimates VALUES ({places})",  # noqa: S608 (fixed names)
                    [[getattr(row, name) for name in COLUMNS] for row in rows],
                )
        finally:
            connection.close()
        _replace(self.directory / ESTIMATES, to_csv(rows))
        self.manifest["counts"] = dict(counts)
        self.manifest["status"] = "complete"
        self._write_manifest()

    def _write_manifest(self) -> None:
        written = json.dumps(self.manifest, indent=2, sort_keys=True, ensure_ascii=False)
        _replace(self.directory / MANIFEST, written + "\n")


class Writer:
    """Inserts rows into the tables of an open run."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def insert(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        """Add rows; a text that is there already stays."""
        if table not in _TABLES:
            raise RunError(f"there is no table '{table}'")
        listed = list(rows)
        if listed:
            places = ", ".join("?" * len(listed[0]))
            self._connection.executemany(
                f"INSERT OR IGNORE INTO {table} VALUES ({places})",  # noqa: S608 (checked above)
                listed,
            )


def _claim(
    directory: Path, configuration: dict[str, Any], inputs: dict[str, str]
) -> tuple[bool, Path | None]:
    """Say whether the directory is new to us, and the topmost folder that had to be made."""
    if directory.exists() and not directory.is_dir():
        raise RunError(f"{directory} is a file; a run is a directory")
    manifest = directory / MANIFEST
    if manifest.exists():
        try:
            before = json.loads(manifest.read_text(encoding="utf-8"))
            stored = before["configuration"], before["inputs"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunError(f"{manifest} cannot be read ({error}); choose another --run") from error
        if stored != (configuration, inputs):
            changes = _difference(
                {**stored[0], "inputs": stored[1]}, {**configuration, "inputs": inputs}
            )
            raise RunError(
                f"{directory} holds another run; choose another --run. It differs in:\n" + changes
            )
        return False, None
    if directory.exists() and any(directory.iterdir()):
        raise RunError(
            f"{directory} holds files that are no run of RoutePrism; choose an empty directory"
        )
    made = None
    if not directory.exists():
        made = directory
        while not made.parent.exists():
            made = made.parent
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{directory} cannot be created: {error.strerror or error}") from error
    return True, made


def _difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    lines = []
    for name in sorted({*before, *now}):
        one, other = before.get(name), now.get(name)
        if one != other:
            lines.append(f"  {name}: {json.dumps(one)} there, {json.dumps(other)} here")
    return "\n".join(lines)


def _remove(directory: Path, made: Path | None) -> None:
    """Take back what was made; a directory that the user had made stays, empty."""
    if made is not None:
        shutil.rmtree(made, ignore_errors=True)
        return
    for name in (MANIFEST, ESTIMATES, STORE, f"{STORE}-wal", f"{STORE}-shm"):
        (directory / name).unlink(missing_ok=True)


def _replace(path: Path, text: str) -> None:
    """Write a file as a whole or not at all."""
    beside = path.with_name(f".{path.name}.tmp")
    with beside.open("w", encoding="utf-8", newline="") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    beside.replace(path)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
