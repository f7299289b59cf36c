"""Kill a command at every write, run it again, and compare with the run that was not disturbed.

A *point* is a moment before, inside or after a write: a statement of SQLite that changes
something, a commit, half of a file's content, a file that is created, renamed, removed or synced.
The process kills itself with SIGKILL at one point, in a copy of the state before the command. Then
the same command runs again. Everything it leaves must be the same, byte by byte, but for clocks.

The commands are those of `kinds_of_runs.py`. To try a kind by hand, at all points or at some:

    python tests/durability/crash_points.py extension DATA SCRATCH [POINTS]
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest import mock

from kinds_of_runs import KINDS, Command, ModelServer, environment, reserve_port

from routeprism.cli import main
from routeprism.errors import RunError
from routeprism.report import write_answers

CLOCKS = {"asked_at", "latency"}
_CHANGES = ("INSERT", "DELETE", "UPDATE", "CREATE", "BEGIN", "COMMIT", "ATTACH", "PRAGMA JOURNAL")
_MOVES = ("open", "replace", "rename", "unlink", "mkdir", "rmdir", "fsync")


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


# --- trying ----------------------------------------------------------------------------------


def in_child(work: Callable[[], Any]) -> tuple[int, Any]:
    """Run something in a process of its own; give its signal, or 0, and what it returns."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        code, content = 1, b""
        try:
            code, content = 0, json.dumps(work()).encode()
        except BaseException as error:
            content = str(error).encode()
        finally:
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(content)
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        content = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return os.WTERMSIG(status), None
    if os.WEXITSTATUS(status):
        raise RuntimeError(content.decode())
    return 0, json.loads(content)


def perform(commands: Sequence[Command], data: Path, place: Path, port: int, fatal: int) -> Any:
    """Run commands, to their end or to a point; 0 is none."""
    points = Points(fatal)
    os.environ.update(environment(port))
    with ModelServer(port) as model, watching(points, place):
        for command in commands:
            _run_command([word.format(data=data, place=place) for word in command])
    return {"points": points.number, "replies": model.replies, "modules": sorted(sys.modules)}


def _run_command(words: Sequence[str]) -> None:
    output = io.StringIO()
    arguments = mock.patch.object(sys, "argv", ["routeprism", *words])
    try:
        with arguments, redirect_stdout(output), redirect_stderr(output):
            main()
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"{end.code}: {output.getvalue()[-600:]}") from end


def answers(place: Path) -> int:
    """Count the answers on the disk, in the runs inside a run as well."""
    number = 0
    for store in place.glob("run/**/run.sqlite"):
        with closing(sqlite3.connect(store)) as connection:
            tables = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'answers'")
            if tables.fetchone() is not None:
                number += connection.execute("SELECT count(*) FROM answers").fetchone()[0]
    return number


def left(place: Path) -> dict[str, Any]:
    """Give everything below a directory: files as they are, stores by their rows but for clocks."""
    values: dict[str, Any] = {}
    for path in sorted(place.rglob("*")):
        name = str(path.relative_to(place))
        if path.suffix == ".sqlite":
            values[name] = _rows(path)
        elif path.suffix == ".jsonl":
            entries = map(json.loads, path.read_text(encoding="utf-8").splitlines())
            values[name] = [
                {k: v for k, v in entry.items() if k not in CLOCKS} for entry in entries
            ]
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
    """What became of all points of a kind of run."""

    points: int
    tried: int
    replies: int
    failures: list[str]


def choose_points(number: int, most: int) -> Sequence[int]:
    """Choose points, most of them near the beginning and the end, where files appear and move."""
    if number <= most:
        return range(1, number + 1)
    half = most // 2
    early = {round(number ** (step / half)) for step in range(half)}
    return sorted(early | {number + 1 - point for point in early})


def try_points(name: str, data: Path, scratch: Path, most: int = sys.maxsize) -> Outcome:
    """Kill at every point, or at so many of them, and compare what the next call leaves."""
    kind = KINDS[name]
    first, place = scratch / "first", scratch / "place"
    first.mkdir(parents=True)
    port = reserve_port()

    def call(commands: Sequence[Command], fatal: int = 0) -> tuple[int, Any]:
        return in_child(lambda: perform(commands, data, place, port, fatal))

    place.mkdir()
    _, prepared = call(kind.before)
    shutil.copytree(place, first, dirs_exist_ok=True)
    _, counted = call(kind.commands)
    expected, before, after = left(place), exported(first), exported(place)
    earlier, total = answers(first), answers(place)
    for module in (*prepared["modules"], *counted["modules"]):
        with suppress(Exception):  # what children would each import anew
            import_module(module)
    tried = choose_points(counted["points"], most)
    failures = []
    for point in tried:
        shutil.rmtree(place)
        shutil.copytree(first, place)
        ended, _ = call(kind.commands, point)
        present, observations = answers(place), exported(place)
        try:
            _, repetition = call(kind.commands)
        except RuntimeError as error:
            failures.append(f"point {point}: {error}")
            continue
        result = left(place)
        missing = counted["replies"] and total - present
        problems = {
            "it was not killed": ended != signal.SIGKILL and point < 0.9 * counted["points"],
            "an answer was lost": present < earlier,
            f"{repetition['replies'] - missing} too many replies": repetition["replies"] != missing,
            "readers saw neither state of the run": observations not in (None, before, after),
            f"it differs in {_unlike(result, expected)}": result != expected,
        }
        failures += [f"point {point}: {text}" for text, wrong in problems.items() if wrong]
    return Outcome(counted["points"], len(tried), counted["replies"], failures)


def _unlike(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    return sorted(name for name in {*first, *second} if first.get(name) != second.get(name))


if __name__ == "__main__":
    outcome = try_points(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), *map(int, sys.argv[4:]))
    print(json.dumps(outcome.__dict__))
