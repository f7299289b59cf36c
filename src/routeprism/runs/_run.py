"""A run is a directory, and all there is to keep, resume, compare, delete or send to somebody."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from routeprism.errors import RunError
from routeprism.runs._findings import MASKS, Finding
from routeprism.runs._index import experiment_index
from routeprism.runs._ledger import Ledger, has_answers
from routeprism.runs._lock import locked
from routeprism.runs._rows import COLUMNS, EstimateRow, to_csv, unique
from routeprism.runs._stored import Stored
from routeprism.runs._values import NAMES

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
    signature TEXT, events TEXT, stand_ins TEXT,
    PRIMARY KEY (policy, interface, schedule, user)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS exposures (
    policy TEXT, interface TEXT, schedule TEXT, question TEXT, context TEXT,
    PRIMARY KEY (policy, interface, schedule, question)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS failed_routes (
    policy TEXT, interface TEXT, schedule TEXT, user TEXT, reason TEXT,
    PRIMARY KEY (policy, interface, schedule, user)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS contexts (
    id TEXT PRIMARY KEY, context_sha256 TEXT, context_chars INTEGER, sources TEXT, blocks TEXT);
CREATE TABLE IF NOT EXISTS per_question ({", ".join(NAMES)}, user, quantities);
CREATE TABLE IF NOT EXISTS per_unit (interface, {", ".join(NAMES)}, user, quantities);
CREATE TABLE IF NOT EXISTS comparisons (
    experiment TEXT, policy TEXT, schedule TEXT, question TEXT, filler TEXT, condition TEXT,
    side TEXT, prompt_sha256 TEXT, first_draw INTEGER, draws INTEGER, place TEXT,
    PRIMARY KEY (experiment, policy, schedule, question, filler, condition, side)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS findings (
    experiment TEXT, policy TEXT, interface TEXT, schedule TEXT, user TEXT, question TEXT,
    name TEXT, value TEXT,
    PRIMARY KEY (experiment, policy, interface, schedule, user, question, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS estimates ({", ".join(COLUMNS)});
"""
"""Lists and maps are JSON; a block is [kind, SHA-256 of its text, source ids]; a context's id is
the SHA-256 of its blocks, so that questions and routes that see the same share one row. Values
per question are lists by quantity, in the order of the user's question ids; values per unit,
for what a pool counts once, are [sum, number] or [sum, number, {question: value}]. A comparison
says which prompt each of its sides reads, with which draws. A finding is what an experiment says
of a pool or a question that is no single number."""

_TABLES = (
    "texts",
    "records",
    "questions",
    "traces",
    "exposures",
    "failed_routes",
    "contexts",
    "per_question",
    "per_unit",
    "comparisons",
)
_PACKAGES = ("routeprism", "numpy", "scikit-learn", "splintr-rs")


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
        growing: Collection[str] = (),
    ) -> Iterator[Run]:
        """Create a run, or open the one that has just this configuration.

        Entries named in `growing` may differ: more of them is more of the same run.

        If the body fails, a directory that was made for it goes again, unless it holds answers,
        and a run that was there stays as it was. One process at a time has a run open.
        """
        wanted = json.loads(json.dumps(configuration))
        try:
            fresh, made = _claim(directory, wanted, dict(inputs), growing)
        except (OSError, ValueError) as error:  # a name that no directory can have, or no access
            reason = getattr(error, "strerror", None) or error
            raise RunError(f"{directory} cannot be used: {reason}") from error
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
        with locked(directory):
            try:
                if fresh:
                    run._write_manifest()
                yield run
            except BaseException:
                if fresh and not has_answers(directory / STORE):
                    _remove(directory, made)
                raise

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """Replace the stored traces in one transaction."""
        with self._store() as connection:
            for table in _TABLES:
                connection.execute(f"DELETE FROM {table}")  # noqa: S608 (fixed names)
            yield Writer(connection)

    def add(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        """Add rows to a table, in one transaction; `writing` has emptied it before."""
        with self._store() as connection:
            Writer(connection).insert(table, rows)

    def keep(self, experiment: str, findings: Iterable[Finding]) -> None:
        """Replace what an experiment found, in one transaction."""
        with self._store() as connection:
            connection.execute("DELETE FROM findings WHERE experiment = ?", (experiment,))
            connection.executemany(
                "INSERT INTO findings VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                ((experiment, *finding.row()) for finding in findings),
            )

    def keep_masks(self, masks: Mapping[str, Collection[str]]) -> None:
        """Keep which questions each mask holds, so that its estimates can be traced."""
        self.keep(MASKS, (Finding(name=name, value=sorted(ids)) for name, ids in masks.items()))

    @property
    def store(self) -> Path:
        """Where the tables are."""
        return self.directory / STORE

    def ledger(self) -> Ledger:
        """Open the ledger; re-runs replace traces, and leave the ledger alone."""
        return Ledger(self.directory / STORE)

    def finish(
        self,
        rows: Sequence[EstimateRow],
        counts: Mapping[str, Any],
        *,
        sentences: Sequence[str] = (),
        notes: Sequence[str] = (),
        limits: str = "",
    ) -> None:
        """Write the estimates, then that the run is complete, what it found and how to read it."""
        unique(rows)
        with self._store() as connection:
            connection.execute("DELETE FROM estimates")
            places = ", ".join("?" * len(COLUMNS))
            connection.executemany(
                f"INSERT INTO estimates VALUES ({places})",  # noqa: S608 (fixed names)
                [[getattr(row, name) for name in COLUMNS] for row in rows],
            )
        _replace(self.directory / ESTIMATES, to_csv(rows))
        self.manifest["counts"] = dict(counts)
        self.manifest["sentences"] = list(sentences)
        self.manifest["notes"] = list(notes)
        self.manifest["limits"] = limits
        with Stored(self.directory) as stored:
            index = experiment_index(self.manifest["configuration"], rows, stored)
        self.manifest["experiments"] = index
        self.manifest["status"] = "complete"
        self._write_manifest()

    @contextmanager
    def _store(self) -> Iterator[sqlite3.Connection]:
        """Open the store for one transaction."""
        with closing(_connect(self.directory / STORE)) as connection, connection:
            yield connection

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
    directory: Path,
    configuration: dict[str, Any],
    inputs: dict[str, str],
    growing: Collection[str],
) -> tuple[bool, Path | None]:
    """Say whether the directory is new to us, and the topmost folder that had to be made."""
    if directory.exists() and not directory.is_dir():
        raise RunError(f"{directory} is a file; a run is a directory")
    manifest = directory / MANIFEST
    if manifest.exists():
        try:
            before = json.loads(manifest.read_text(encoding="utf-8"))
            stored = dict(before["configuration"]), dict(before["inputs"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunError(f"{manifest} cannot be read ({error}); choose another --run") from error
        before = {**stored[0], "inputs": stored[1]}
        now = {**configuration, "inputs": inputs}
        for name in growing:
            before.pop(name, None)
            now.pop(name, None)
        if before != now:
            changes = _difference(before, now)
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
        if made is not None:
            shutil.rmtree(made, ignore_errors=True)
        raise RunError(f"{directory} cannot be created: {error.strerror or error}") from error
    return True, made


def _connect(path: Path) -> sqlite3.Connection:
    # A new store has nothing to lose, so its pages are written once, without a log beside them.
    journal = "WAL" if path.exists() else "DELETE"
    connection = sqlite3.connect(path)
    try:
        connection.execute(f"PRAGMA journal_mode={journal}")
        connection.execute("PRAGMA cache_size=-16384")
        connection.executescript(f"BEGIN; {_SCHEMA} COMMIT;")  # else each table waits for the disk
    except sqlite3.Error as error:
        connection.close()
        raise RunError(f"{path} cannot be written ({error}); choose another --run") from error
    return connection


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
    for name in (MANIFEST, ESTIMATES, STORE, f"{STORE}-wal", f"{STORE}-shm", f"{STORE}-journal"):
        (directory / name).unlink(missing_ok=True)


def _replace(path: Path, text: str) -> None:
    """Write a file as a whole or not at all."""
    beside = path.with_name(f".{path.name}.tmp")
    try:
        with beside.open("w", encoding="utf-8", newline="") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return ""
