"""The files of a run directory, and how its SQLite store is checked, read and settled."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

from routeprism.errors import RunError

MANIFEST = "manifest.json"
STORE = "run.sqlite"
ESTIMATES = "estimates.csv"
REPORT = "report.html"
STORE_FILES = (STORE, f"{STORE}-wal", f"{STORE}-shm", f"{STORE}-journal")
"""The store and what SQLite puts beside it."""

FORMAT = 1
"""The version of the directory's layout."""
RUNNING, COMPLETE, INCOMPLETE = "running", "complete", "incomplete"
"""The status in a manifest; an incomplete run has estimates but lacks answers or routes."""
FINISHED = (COMPLETE, INCOMPLETE)
"""The states in which a run's estimates count."""


PROGRESS = "progress"
"""The table of checkpoints, which exists only while a run is made."""
PENDING_RESULTS = "cases.part"
"""The results of a shard's pools so far, a file that exists only while the run is made."""


@cache
def read_schema(name: str, **parts: str) -> str:
    """Read the statements that create tables, with `{part}` replaced by the given parts."""
    return files(__package__).joinpath(f"{name}.sql").read_text("utf-8").format(**parts)


class StorageError(RunError):
    """A file of a run cannot be written: the disk is full, or for another reason."""


@contextmanager
def storing(path: Path) -> Iterator[None]:
    """Name the file in the error if SQLite cannot write."""
    try:
        yield
    except sqlite3.Error as error:
        if not is_refusal(error):
            raise
        raise StorageError(f"{path} cannot be written: {error}") from error


def is_refusal(error: BaseException) -> bool:
    """Whether SQLite could not read or write, rather than a statement being wrong."""
    return isinstance(error, sqlite3.OperationalError) or type(error) is sqlite3.DatabaseError


def check_store(path: Path) -> None:
    """Refuse a store that is missing or no regular file; SQLite would wait at a pipe for ever."""
    if not path.exists():
        if not (path.parent / MANIFEST).exists():
            raise RunError(f"{path.parent} contains no run: there is no {MANIFEST}")
        raise RunError(
            f"{path.parent} contains no complete run: {path.name} is missing; restore this file, "
            f"or make the run again in a different directory"
        )
    check_regular(path)


def verify_store(path: Path, *, finished: bool) -> None:
    """Refuse a store that lost content, as in a copy that was interrupted or has holes."""
    check_store(path)
    status = path.stat()
    problem = _find_damage(path.resolve(), status.st_ino, status.st_size, status.st_mtime_ns)
    if not problem and finished and not status.st_size and not _unfinished(path):
        problem = "it is empty"  # SQLite reads that as a database without tables
    if problem:
        raise RunError(
            f"{path} is damaged: {problem}; get it again from where it was copied, or make the run "
            f"again in a different directory. Nothing was changed"
        )


@lru_cache(maxsize=64)
def _find_damage(path: Path, *state: int) -> str:
    """Read a whole store once, in the state in which the file system describes it."""
    with closing(_open(path)) as connection:
        try:
            return next(_list_damage(connection, path), "")
        except sqlite3.Error as error:
            return str(error)


_LOCKED_AT = 1 << 30
"""SQLite keeps the page at this byte empty, for locks."""


def _list_damage(connection: sqlite3.Connection, path: Path) -> Iterator[str]:
    """Describe what is missing: the end of the file, parts of its tables, or whole pages."""

    def ask(name: str) -> Any:
        return connection.execute(f"PRAGMA {name}").fetchone()[0]

    connection.execute("BEGIN")  # no other process writes meanwhile
    pages, size = ask("page_count"), ask("page_size")
    settled = not _unfinished(path)  # else a log has the newest pages
    missing = pages * size - path.stat().st_size
    if settled and missing > 0:
        yield f"{missing:,} bytes are missing at its end"
    if (report := ask("quick_check(1)")) != "ok":
        yield " ".join(report.split())
    if settled:
        blank = bytes(size)
        with path.open("rb") as stream:
            empty = sum(page == blank for page in iter(lambda: stream.read(size), b""))
        if empty > ask("freelist_count") + (pages * size > _LOCKED_AT):
            yield f"{empty:,} of its {pages:,} pages are empty"


def check_format(path: Path, manifest: Mapping[str, Any], use: str) -> None:
    """Refuse a manifest of another format, or of none."""
    version = manifest.get("format")
    if type(version) is not int or version != FORMAT:
        stated = f"has the format {version!r:.60}" if "format" in manifest else "has no format"
        raise RunError(f"{path} {stated}, and this version of RoutePrism {use}")


def check_regular(path: Path) -> None:
    """Refuse a pipe, a device or a directory in the place of a run's file."""
    if path.exists() and not path.is_file():
        raise RunError(f"{path} is not a regular file, so it does not belong to a run")


def settle_store(path: Path) -> None:
    """Leave a store as one file, which can be read from a read-only directory.

    If a reader has it open, the log beside it is in use and stays.
    """
    if not path.is_file():
        return
    with suppress(sqlite3.Error), closing(sqlite3.connect(path, timeout=1.0)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")


def has_progress(connection: sqlite3.Connection) -> bool:
    """Whether a store has checkpoints."""
    query = "SELECT 1 FROM sqlite_master WHERE name = ?"
    return connection.execute(query, (PROGRESS,)).fetchone() is not None


def find_progress(path: Path) -> bool:
    """Whether there is a store with checkpoints at a path."""
    if path.is_file():
        with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as connection:
            return has_progress(connection)
    return False


class Tables:
    """A connection for reading that names the damaged file if SQLite cannot read it."""

    def __init__(self, path: Path, *, stage: Path | None = None) -> None:
        self._path = path
        self._places = ["main"]
        self._known: frozenset[str] = frozenset()
        self._connection = _open(stage or path)
        try:
            if stage is not None:
                # A name is looked up in the stage first, and then in the store.
                self._connection.execute("ATTACH ? AS store", (str(path),))
                self._places.append("store")
        except sqlite3.Error as error:
            self._connection.close()
            raise self._damage(error) from error

    @property
    def names(self) -> frozenset[str]:
        """The tables that exist."""
        tables = (self.execute(_NAMES.format(place)) for place in self._places)
        return frozenset(name for rows in tables for (name,) in rows)

    def has(self, *tables: str) -> bool:
        """Whether these tables exist; a ledger may be created while the store is open."""
        if not self._known.issuperset(tables):
            self._known = self.names
        return self._known.issuperset(tables)

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """Run a statement and give its rows."""
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise self._damage(error) from error

    def close(self) -> None:
        """Close the store."""
        self._connection.close()

    def _damage(self, error: sqlite3.Error) -> RunError:
        return RunError(
            f"{self._path} cannot be read: {error}. It is damaged, or no store of this version of "
            f"RoutePrism; nothing was changed"
        )


_NAMES = "SELECT name FROM {}.sqlite_master WHERE type = 'table'"


def _open(path: Path) -> sqlite3.Connection:
    """Open an existing store; as it is, if nothing can be written beside it."""
    place = quote(str(path.resolve()))
    for options in ("mode=rw", "mode=ro", "immutable=1"):
        connection = sqlite3.connect(f"file:{place}?{options}", uri=True)
        try:
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as error:
            connection.close()
            if options == "immutable=1" or "unable to open" not in str(error):
                raise _refusal(path, error) from error
            if options == "mode=ro" and _unfinished(path):
                raise RunError(
                    f"{path} cannot be read here: the process that wrote it was killed, and SQLite "
                    f"must complete it first; copy the run to a directory that can be written"
                ) from error
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the schema is read as text
            connection.close()
            raise _refusal(path, error) from error
        else:
            return connection
    raise AssertionError("the last way to open a store returns or raises")


def _refusal(path: Path, error: Exception) -> RunError:
    return RunError(f"{path} cannot be read: {error}; nothing was changed")


def _unfinished(path: Path) -> bool:
    """Whether a log beside a store contains what the store does not."""
    beside = (path.with_name(name) for name in STORE_FILES if name != path.name)
    logs = (log for log in beside if not log.name.endswith("shm"))
    return any(log.exists() and log.stat().st_size > 0 for log in logs)
