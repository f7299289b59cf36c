"""A run is a directory: it can be resumed, compared, copied and deleted as a whole."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from routeprism.errors import LimitError, RunError
from routeprism.files import draft_file, replace_file
from routeprism.runs._claims import claim_directory
from routeprism.runs._comparisons import SIDE_PARTS, add_side_parts
from routeprism.runs._entries import MASKS, NAMES, Finding, Shortfall
from routeprism.runs._index import experiment_index
from routeprism.runs._ledger import Key, Ledger
from routeprism.runs._rows import COLUMNS, EstimateRow, to_csv, unique
from routeprism.runs._store import (
    COMPLETE,
    ESTIMATES,
    FORMAT,
    INCOMPLETE,
    MANIFEST,
    PROGRESS,
    RUNNING,
    STORE,
    StorageError,
    has_progress,
    read_schema,
    storing,
    verify_store,
)
from routeprism.runs._stored_run import StoredRun


class Storable(Protocol):
    """Something that the manifest stores, such as a statement."""

    def to_json(self, numbers: Mapping[EstimateRow, int]) -> Mapping[str, Any]:
        """Write it, given the number of each row, counted from 1."""


_SCHEMA = read_schema(
    "run",
    names=", ".join(NAMES),
    side_parts=", ".join(SIDE_PARTS),
    columns=", ".join(COLUMNS),
)
_EVERY_TABLE = re.findall(r"CREATE TABLE IF NOT EXISTS (\w+)", _SCHEMA)
_TABLES = [table for table in _EVERY_TABLE if table not in ("findings", "estimates")]
_PACKAGES = ("routeprism", "numpy", "scikit-learn", "splintr-rs")


class Run:
    """A run directory that is being written."""

    def __init__(
        self,
        directory: Path,
        manifest: dict[str, Any],
        *,
        fresh: bool,
    ) -> None:
        self.directory = directory
        self.manifest = manifest
        self.fresh = fresh
        self._stage: Path | None = None
        """The store of the tables until the extension of a finished run is complete."""
        self.finished = False
        """Whether `finish` has succeeded."""
        self._unanswered: dict[Key, str] = {}

    @classmethod
    @contextmanager
    def open(
        cls,
        directory: Path,
        configuration: Mapping[str, Any],
        *,
        inputs: Mapping[str, str],
        growing: Collection[str] = (),
        trial: bool = False,
        staged: bool = False,
    ) -> Iterator[Run]:
        """Create a run, or open the one that has just this configuration.

        Entries named in `growing` may differ: they extend the same run.

        If the body fails, the files of a new run are removed, unless it contains answers. A
        finished run stays as it was until `finish` replaces it in one step. A `trial` reads the
        ledger and changes nothing. One process at a time has a run open. With `staged`, the ledger
        can be written while traces are: the tables are in a store of their own until the end.
        """
        manifest = {
            "configuration": json.loads(json.dumps(configuration)),
            "inputs": dict(inputs),
            "packages": {name: _version(name) for name in _PACKAGES},
            "format": FORMAT,
            "status": RUNNING,
            "counts": {},
        }
        with claim_directory(directory, manifest, growing) as claim:
            run = cls(directory, manifest, fresh=claim.fresh)
            try:
                if claim.fresh:
                    # First: by the manifest the next call recognises the directory.
                    run._write_manifest()
                if claim.complete or staged or (trial and not claim.fresh):
                    run._stage = claim.create_stage() / STORE
                if not claim.fresh:
                    if claim.complete or run.store.exists():
                        verify_store(run.store, finished=claim.complete)
                    _connect(run.store).close()  # refuse what is not a store before any work
                yield run
            except StorageError as error:
                remainder = claim.settle(finished=run.finished)
                raise RunError(f"{error}. {remainder}") from error
            except LimitError:
                claim.settle(finished=True)  # the same command resumes from what was built
                raise
            except BaseException as error:
                interrupted = isinstance(error, KeyboardInterrupt)
                claim.settle(finished=run.finished, interrupted=interrupted)
                raise
            claim.settle(finished=run.finished or not trial)

    @contextmanager
    def writing(self, job: str = "") -> Iterator[Writer]:
        """Replace the stored traces in one transaction.

        If an earlier call kept checkpoints of the same job, its rows stay.
        """
        with self._store() as connection:
            writer = Writer(connection, self.store, "" if self._stage else job)
            if not writer.has_progress:
                writer.clear()
            yield writer

    def add(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        """Add rows to a table, in one transaction; `writing` has emptied it before."""
        with self._store() as connection:
            Writer(connection, self.store).insert(table, rows)

    def keep(self, experiment: str, findings: Iterable[Finding]) -> None:
        """Replace the findings of an experiment, in one transaction."""
        with self._store() as connection, storing(self.store):
            _replace_findings(connection, experiment, findings)

    def keep_masks(self, masks: Mapping[str, Collection[str]]) -> None:
        """Store the question ids of each mask, so that its estimates can be traced."""
        self.keep(MASKS, _list_masks(masks))

    def note_unanswered(self, reasons: Mapping[Key, str]) -> None:
        """Remember the requests without an answer, and why, until the run is finished."""
        self._unanswered.update(reasons)

    def shortfall(self, failed_routes: Sequence[str] = ()) -> Shortfall:
        """Count what the run lacks, given the reason for each failed route."""
        return Shortfall.count(tuple(self._unanswered.values()), failed_routes)

    @staticmethod
    def exists(directory: Path) -> bool:
        """Whether a directory contains a run."""
        return (directory / MANIFEST).exists()

    @property
    def store(self) -> Path:
        """The path of the SQLite store."""
        return self.directory / STORE

    def ledger(self) -> Ledger:
        """Open the ledger; a repeated run replaces traces, but not the ledger."""
        return Ledger(self.directory / STORE)

    def suspend(self) -> None:
        """Keep the traces of a run that will be resumed."""
        if self._stage is not None:
            self._write_manifest()
            with closing(_connect(self.store)) as connection, storing(self.store):
                _copy_tables(connection, self._stage, _TABLES)
                connection.commit()

    def read(self) -> StoredRun:
        """Open the store for reading, with the tables written so far and the whole ledger."""
        return StoredRun(self.directory, stage=self._stage, is_open=True)

    def finish(
        self,
        rows: Sequence[EstimateRow],
        counts: Mapping[str, Any],
        *,
        statements: Sequence[Storable] = (),
        notes: Sequence[str] = (),
        limits: str = "",
        shortfall: Shortfall | None = None,
        answer_sources: Mapping[str, str] = MappingProxyType({}),
        own_entries: Mapping[str, str] = MappingProxyType({}),
        findings: Mapping[str, Iterable[Finding]] = MappingProxyType({}),
        masks: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        """Write the estimates, then the manifest with the sentences and notes of the run.

        `answer_sources` and `own_entries` are those of the index of experiments. The `findings` of
        each experiment, and the `masks`, replace those of the run in the same transaction.

        A run that lacks answers or routes is incomplete; its manifest has what is missing and why.
        """
        unique(rows)
        with self._store() as connection, storing(self.store):
            entries = dict(findings) if masks is None else {**findings, MASKS: _list_masks(masks)}
            for experiment, items in entries.items():
                _replace_findings(connection, experiment, items)
            connection.execute(f"DROP TABLE IF EXISTS {PROGRESS}")
            connection.execute("DELETE FROM estimates")
            places = ", ".join("?" * len(COLUMNS))
            connection.executemany(
                f"INSERT INTO estimates VALUES ({places})",  # noqa: S608 (fixed names)
                [[getattr(row, name) for name in COLUMNS] for row in rows],
            )
        with self.read() as stored:
            index = experiment_index(
                self.manifest["configuration"],
                rows,
                stored,
                sources=answer_sources,
                own_entries=own_entries,
            )
        self.manifest["counts"] = dict(counts)
        numbers = {row: number for number, row in enumerate(rows, start=1)}
        self.manifest["statements"] = [statement.to_json(numbers) for statement in statements]
        self.manifest["notes"] = list(notes)
        self.manifest["limits"] = limits
        self.manifest["experiments"] = index
        lacks = self.shortfall() if shortfall is None else shortfall
        self.manifest["missing"] = lacks.to_manifest()
        self.manifest["status"] = INCOMPLETE if lacks else COMPLETE
        if self._stage is None:
            _replace(self.directory / ESTIMATES, to_csv(rows).encode())
            self._write_manifest()
        else:
            self._publish(self._stage, to_csv(rows).encode())
        self.finished = True

    @contextmanager
    def _store(self) -> Iterator[sqlite3.Connection]:
        """Open the store for one transaction."""
        with closing(_connect(self._stage or self.store)) as connection:
            try:
                yield connection
            except BaseException:
                with suppress(sqlite3.Error):  # a full disk has rolled it back already
                    connection.rollback()
                raise
            with storing(self.store):
                connection.commit()

    def _publish(self, stage: Path, estimates: bytes) -> None:
        """Replace the finished run by its extension.

        The tables are replaced by one commit, and two files by a rename each. Everything that
        needs disk space is written before. From just before the commit to the last rename, the
        status in the manifest is running; if the commit fails, the old manifest is restored.
        """
        path = self.directory / MANIFEST
        with ExitStack() as stack:
            connection = stack.enter_context(closing(_connect(self.store)))
            stack.enter_context(storing(self.store))
            stack.enter_context(_name_path(self.directory))
            _copy_tables(connection, stage, _EVERY_TABLE)
            place_estimates = stack.enter_context(draft_file(self.directory / ESTIMATES, estimates))
            place_manifest = stack.enter_context(draft_file(path, _as_json(self.manifest)))
            restore = stack.enter_context(draft_file(path, path.read_bytes()))
            try:
                replace_file(path, _as_json({**self.manifest, "status": RUNNING}))
                connection.commit()
            except BaseException:
                restore()
                raise
            place_estimates()
            place_manifest()

    def _write_manifest(self) -> None:
        _replace(self.directory / MANIFEST, _as_json(self.manifest))


class Writer:
    """Inserts rows into the tables of an open run."""

    def __init__(self, connection: sqlite3.Connection, path: Path, job: str = "") -> None:
        self._connection = connection
        self._path = path
        self.job = job
        """Identifies the work that an interrupted call can continue; empty if it cannot."""

    def execute(self, statement: str) -> None:
        """Run a statement without values."""
        with storing(self._path):
            self._connection.execute(statement)

    def clear(self) -> None:
        """Empty the tables, and forget earlier checkpoints."""
        self.execute(f"DROP TABLE IF EXISTS {PROGRESS}")
        for table in _TABLES:
            self.execute(f"DELETE FROM {table}")  # noqa: S608 (fixed names)

    @property
    def has_progress(self) -> bool:
        """Whether an earlier call kept checkpoints of the job."""
        return next(self.read_progress(), None) is not None

    def last_progress(self) -> bytes:
        """Read what the last checkpoint of the job kept."""
        return next(self.read_progress(backwards=True))

    def read_progress(self, *, backwards: bool = False) -> Iterator[bytes]:
        """Read what the checkpoints of the job kept, in their order."""
        if self.job and has_progress(self._connection):
            query = f"SELECT content FROM {PROGRESS} WHERE job = ? ORDER BY part"  # noqa: S608 (fixed name)
            query += " DESC" if backwards else ""
            for (content,) in self._connection.execute(query, (self.job,)):
                yield content

    def keep_progress(self, content: bytes) -> None:
        """Commit the rows so far, with what is needed to continue after them."""
        columns = "(part INTEGER PRIMARY KEY, job TEXT, content BLOB)"
        with storing(self._path):
            self._connection.execute(f"CREATE TABLE IF NOT EXISTS {PROGRESS} {columns}")
            self._connection.execute(
                f"INSERT INTO {PROGRESS} (job, content) VALUES (?, ?)",  # noqa: S608 (fixed name)
                (self.job, content),
            )
            self._connection.commit()

    def insert(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        """Add rows; a text that is stored already stays."""
        if table not in _TABLES:
            raise RunError(f"there is no table '{table}'")
        items = list(rows)
        if items:
            places = ", ".join("?" * len(items[0]))
            with storing(self._path):
                self._connection.executemany(
                    f"INSERT OR IGNORE INTO {table} VALUES ({places})",  # noqa: S608 (checked above)
                    items,
                )


def _list_masks(masks: Mapping[str, Collection[str]]) -> list[Finding]:
    """Write the question ids of each mask as findings of the experiment `MASKS`."""
    return [Finding(name=name, value=sorted(ids)) for name, ids in masks.items()]


def _replace_findings(
    connection: sqlite3.Connection, experiment: str, findings: Iterable[Finding]
) -> None:
    connection.execute("DELETE FROM findings WHERE experiment = ?", (experiment,))
    connection.executemany(
        "INSERT INTO findings VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        ((experiment, *finding.row()) for finding in findings),
    )


def _copy_tables(connection: sqlite3.Connection, stage: Path, tables: Sequence[str]) -> None:
    """Replace a store's tables by the staged ones, without the commit; the ledger stays."""
    connection.execute("ATTACH ? AS stage", (str(stage),))
    for table in tables:
        connection.execute(f"DELETE FROM main.{table}")  # noqa: S608 (fixed names)
        connection.execute(f"INSERT INTO main.{table} SELECT * FROM stage.{table}")  # noqa: S608


def _connect(path: Path) -> sqlite3.Connection:
    # A new store has nothing to lose, so its pages are written once, without a log beside them.
    journal = "WAL" if path.exists() else "DELETE"
    connection = None
    try:
        connection = sqlite3.connect(path)
        connection.execute(f"PRAGMA journal_mode={journal}")
        connection.execute("PRAGMA cache_size=-16384")
        connection.executescript(f"BEGIN; {_SCHEMA} COMMIT;")
        add_side_parts(connection)
    except sqlite3.Error as error:
        if connection is not None:
            connection.close()
        if not isinstance(error, sqlite3.OperationalError):  # damaged, or no store at all
            raise RunError(
                f"{path} cannot be written ({error}); choose a different directory"
            ) from error
        raise StorageError(f"{path} cannot be written: {error}") from error
    return connection


def _replace(path: Path, content: bytes) -> None:
    """Write a file completely or not at all."""
    with _name_path(path):
        replace_file(path, content)


@contextmanager
def _name_path(path: Path) -> Iterator[None]:
    """Name the file or directory in the error if the system cannot write it."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror or error}") from error


def _as_json(manifest: Mapping[str, Any]) -> bytes:
    text = json.dumps(manifest, indent=2, sort_keys=True, ensure_ascii=False)
    return f"{text}\n".encode()


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return ""
