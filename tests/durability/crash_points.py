"""Kill a command at every write, run it again, and compare with the run that was not disturbed.

A *point* is a moment before, inside or after a write: a statement of SQLite that changes
something, a commit, half of a file's content, a file that is created, renamed, removed or synced.
The process kills itself with SIGKILL at one point, in a copy of the scenario's first state. Then
the same command runs again. Everything it leaves must be the same, byte by byte, but for clocks.

Add a scenario by adding a function to `SCENARIOS`. To try one by hand:

    python tests/durability/crash_points.py extension DATA SCRATCH [EVERY]
"""

from __future__ import annotations

import builtins
import io
import json
import os
import shutil
import signal
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

import routeprism
from routeprism.errors import RunError
from routeprism.models import Ask, Reply
from routeprism.models.reader import Reader
from routeprism.report import write_answers, write_report, write_tables

CLOCKS = {"asked_at", "latency"}
_CHANGES = ("INSERT", "DELETE", "UPDATE", "CREATE", "BEGIN", "COMMIT", "ATTACH", "PRAGMA JOURNAL")
_MOVES = ("open", "replace", "rename", "unlink", "mkdir", "rmdir", "fsync")


class CountingReader(Reader):
    """The embedded reader, which writes down how often it is asked."""

    asked: ClassVar[int] = 0

    def answer(self, ask: Ask, /) -> Reply:
        CountingReader.asked += 1
        return super().answer(ask)


# --- points ----------------------------------------------------------------------------------


class Points:
    """Counts the points that a process passes, and kills it at one of them."""

    def __init__(self, fatal: int | None) -> None:
        self.number = 0
        self._fatal = fatal
        self._lock = threading.Lock()

    def __call__(self) -> None:
        with self._lock:
            self.number += 1
            if self.number == self._fatal:
                os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def watching(points: Points, below: Path) -> Iterator[None]:
    """Make every write below a directory pass its points."""

    class Connection(sqlite3.Connection):
        def execute(self, statement: str, *values: Any) -> Any:
            with _around(points, statement.lstrip().upper().startswith(_CHANGES)):
                return super().execute(statement, *values)

        def executemany(self, statement: str, rows: Any) -> Any:
            entries = list(rows)
            points()
            super().executemany(statement, entries[: len(entries) // 2])
            points()
            return super().executemany(statement, entries[len(entries) // 2 :])

        def executescript(self, script: str) -> Any:
            with _around(points):
                return super().executescript(script)

        def commit(self) -> None:
            with _around(points):
                super().commit()

        def __exit__(self, *error: Any) -> Any:
            with _around(points):
                return super().__exit__(*error)

        def close(self) -> None:
            with _around(points):
                super().close()

    connect, opened = sqlite3.connect, builtins.open

    def open_torn(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        stream = opened(file, mode, *arguments, **options)
        ours = isinstance(file, int) or str(file).startswith(str(below))
        return _Torn(stream, points) if ours and set(mode) & set("wax+") else stream

    with mock.patch.multiple(os, **{name: _moving(name, points) for name in _MOVES}):
        sqlite3.connect = lambda *a, **o: connect(*a, factory=Connection, **o)  # type: ignore
        builtins.open = io.open = open_torn  # type: ignore[assignment]
        try:
            yield
        finally:
            sqlite3.connect = connect
            builtins.open = io.open = opened


@contextmanager
def _around(points: Points, changing: bool = True) -> Iterator[None]:
    if changing:
        points()
    yield
    if changing:
        points()


def _moving(name: str, points: Points) -> Callable[..., Any]:
    original = getattr(os, name)

    def move(*arguments: Any, **options: Any) -> Any:
        changing = name != "open" or (len(arguments) > 1 and arguments[1] & os.O_CREAT)
        with _around(points, bool(changing)):
            return original(*arguments, **options)

    return move


class _Torn:
    """A stream whose writes can be cut off in the middle."""

    def __init__(self, stream: Any, points: Points) -> None:
        self._stream, self._points = stream, points

    def write(self, content: Any) -> int:
        self._points()
        self._stream.write(content[: len(content) // 2])
        self._stream.flush()
        self._points()
        self._stream.write(content[len(content) // 2 :])
        return len(content)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __enter__(self) -> _Torn:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stream.close()


# --- scenarios -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scenario:
    """A command, and what there is before it."""

    prepare: Callable[[Path, Path], None]
    """Called with the data and an empty directory."""
    command: Callable[[Path, Path], None]


def audit(data: Path, place: Path, draws: int) -> None:
    routeprism.audit(
        data,
        "recent:k=2",
        models=[CountingReader()],
        draws=draws,
        display=["reversed"],
        run=place / "run",
        resamples=100,
    )


def report(data: Path, place: Path) -> None:
    write_report(place / "run")
    write_answers(place / "run", place / "answers.csv")
    write_tables(place / "run", place / "tables")


def audit_and_report(draws: int) -> Callable[[Path, Path], None]:
    def command(data: Path, place: Path) -> None:
        audit(data, place, draws)
        report(data, place)

    return command


SCENARIOS = {
    "run": Scenario(lambda data, place: None, audit_and_report(2)),
    "extension": Scenario(audit_and_report(1), audit_and_report(2)),
    "repetition": Scenario(audit_and_report(1), audit_and_report(1)),
    "report": Scenario(lambda data, place: audit(data, place, 1), report),
}


# --- trying ----------------------------------------------------------------------------------


def in_child(work: Callable[[], Any]) -> tuple[int, Any]:
    """Run something in a process of its own; give its signal, or 0, and what it returns."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            result = json.dumps(work()).encode()
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(result)
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        content = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return os.WTERMSIG(status), None
    if os.WEXITSTATUS(status):
        raise RuntimeError("the command failed; what it raised is printed above")
    return 0, json.loads(content)


def perform(scenario: Scenario, data: Path, place: Path, fatal: int | None) -> dict[str, int]:
    """Run the command, to its end or to a point."""
    points = Points(fatal)
    CountingReader.asked = 0
    with watching(points, place):
        scenario.command(data, place)
    return {"points": points.number, "asked": CountingReader.asked}


def answers(place: Path) -> int:
    """Count the answers on the disk."""
    store = place / "run" / "run.sqlite"
    if not store.exists():
        return 0
    with closing(sqlite3.connect(store)) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name='answers'").fetchone():
            return 0
        return int(connection.execute("SELECT count(*) FROM answers").fetchone()[0])


def left(place: Path) -> dict[str, Any]:
    """Give everything below a directory: files as they are, stores by their rows but for clocks."""
    values: dict[str, Any] = {}
    for path in sorted(place.rglob("*")):
        name = str(path.relative_to(place))
        if path.suffix == ".sqlite":
            values[name] = _rows(path)
        else:
            values[name] = path.read_bytes().hex() if path.is_file() else "directory"
    return values


def _rows(path: Path) -> dict[str, list[str]]:
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        values = {}
        for (table,) in tables.fetchall():
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            text = ", ".join(name for name in columns if name not in CLOCKS)
            values[table] = sorted(map(repr, connection.execute(f"SELECT {text} FROM {table}")))
        return values


def exported(place: Path) -> str | None:
    """Give the answers that a reader sees; None where it says that the run is not finished."""
    target = place / "seen.csv"
    try:
        write_answers(place / "run", target)
        return target.read_text(encoding="utf-8")
    except RunError as error:
        if "is not finished" in str(error) or "contain" in str(error) or "no run" in str(error):
            return None
        raise
    finally:
        target.unlink(missing_ok=True)


@dataclass(frozen=True)
class Outcome:
    """What became of all points of a scenario."""

    points: int
    tried: int
    failures: list[str]


def try_points(name: str, data: Path, scratch: Path, every: int = 1) -> Outcome:
    """Kill at every point, or at each `every`-th one, and compare what the next call leaves."""
    scenario = SCENARIOS[name]
    first, place = scratch / "first", scratch / "place"
    (scratch / "warm").mkdir(parents=True)
    audit_and_report(1)(data, scratch / "warm")  # what children would each import anew
    first.mkdir()
    in_child(lambda: scenario.prepare(data, first))
    shutil.copytree(first, place)
    _, counted = in_child(lambda: perform(scenario, data, place, None))
    expected, before, after = left(place), exported(first), exported(place)
    total = answers(place)
    shutil.rmtree(place)
    failures = []
    tried = range(1, counted["points"] + 1, every)
    for point in tried:
        shutil.copytree(first, place)
        ended, _ = in_child(lambda: perform(scenario, data, place, point))  # noqa: B023
        present, observations = answers(place), exported(place)
        _, repetition = in_child(lambda: perform(scenario, data, place, None))
        result = left(place)
        problems = {
            "it was not killed": ended != signal.SIGKILL and point < counted["points"] - 10,
            "answers were lost or requested twice": present + repetition["asked"] != total,
            "readers saw neither state of the run": observations not in (None, before, after),
            f"it differs in {_unlike(result, expected)}": result != expected,
        }
        failures += [f"point {point}: {text}" for text, wrong in problems.items() if wrong]
        shutil.rmtree(place)
    return Outcome(counted["points"], len(tried), failures)


def _unlike(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    return sorted(name for name in {*first, *second} if first.get(name) != second.get(name))


if __name__ == "__main__":
    outcome = try_points(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), *map(int, sys.argv[4:]))
    print(json.dumps(outcome.__dict__))
