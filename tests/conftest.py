"""What tests share: the real data, own data written on the spot, and the command line."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

import routeprism
from routeprism.api.settings import settings_for
from routeprism.cli import main, run_command
from routeprism.settings import options_of

from .doubles import Scripted

# Tests take no time; and a failing example is printed, not kept in a directory.
settings.register_profile("routeprism", deadline=None, database=None, print_blob=True)
settings.load_profile("routeprism")

# A shell starts background jobs with SIGINT ignored, and tests press Ctrl-C.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

REAL_FILES = (
    "personamem-32k/documents.json.gz",
    "personamem-32k/queries.json.gz",
    "personamem-32k/questions_32k.csv.gz",
    "locomo/locomo10.json.gz",
    "longmemeval/one_question.json.gz",
    "longmemeval/session_index_237.json.gz",
)

OWN_CODE = (str(Path(__file__).parent), str(Path(routeprism.__file__).parent))

Lines = Sequence[Mapping[str, Any]] | bytes


@pytest.fixture(scope="session")
def data() -> Path:
    """The directory with the benchmark files; where CI is set, they have to be there."""
    folder = os.environ.get("ROUTEPRISM_DATA")
    missing = [name for name in REAL_FILES if not folder or not (Path(folder) / name).is_file()]
    if missing:
        where = f"'{folder}' has no {missing[0]}" if folder else "ROUTEPRISM_DATA is not set"
        reason = f"{where}; set ROUTEPRISM_DATA to the directory that holds {', '.join(REAL_FILES)}"
        _skip_outside_ci(reason)
    return Path(str(folder))


@pytest.fixture(scope="session")
def chromium() -> str:
    """Find the browser; where CI is set, it must be installed."""
    path = shutil.which("chromium")
    if path is None:
        _skip_outside_ci(
            "there is no chromium; as root `make test` installs it, else apt-get install it"
        )
    return str(path)


def _skip_outside_ci(reason: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(f"{reason} (CI is set, so that nothing may skip)", pytrace=False)
    pytest.skip(reason)


class Connections:
    """Counts the connections to SQLite that a test opens, those closed, and those forgotten."""

    def __init__(self) -> None:
        self.open = 0
        self.forgotten = 0
        counts = self

        class Connection(sqlite3.Connection):
            """One that says when it is closed, and when it is let go of without that."""

            def __init__(self, *arguments: Any, **options: Any) -> None:
                self._counted = False
                super().__init__(*arguments, **options)
                self._counted = True
                counts.open += 1

            def close(self) -> None:
                super().close()
                counts.open -= self._counted
                self._counted = False

            def __del__(self) -> None:
                if self._counted:
                    counts.forgotten += 1
                    self.close()

        self.kind = Connection

    def forgive(self) -> None:
        """Let the forgotten connections be; for the test of the count itself."""
        self.forgotten = 0


@pytest.fixture(autouse=True)
def open_connections(monkeypatch: pytest.MonkeyPatch) -> Iterator[Connections]:
    """Fail a test that forgets to close a connection, as Python 3.13 does by a warning."""
    counts, connect = Connections(), sqlite3.connect

    def counted(*arguments: Any, **options: Any) -> sqlite3.Connection:
        caller = sys._getframe(1).f_code.co_filename
        if caller.startswith(OWN_CODE):  # libraries of others are not ours to close
            options = {"factory": counts.kind, **options}
        return connect(*arguments, **options)

    monkeypatch.setattr(sqlite3, "connect", counted)
    yield counts
    assert counts.forgotten == 0, "a connection to SQLite was let go of without being closed"


@pytest.fixture
def scripted() -> type[Scripted]:
    """Make models from functions."""
    return Scripted


@pytest.fixture
def own_data(tmp_path: Path) -> Callable[..., Path]:
    """Write a directory of own data: entries, or the very bytes of a file; None leaves it out."""

    def write(records: Lines | None, questions: Lines | None, name: str = "mydata") -> Path:
        directory = tmp_path / name
        directory.mkdir()
        for file, lines in (("records.jsonl", records), ("questions.jsonl", questions)):
            if lines is not None:
                content = lines if isinstance(lines, bytes) else as_lines(lines)
                (directory / file).write_bytes(content)
        return directory

    return write


def as_lines(entries: Sequence[Mapping[str, Any]]) -> bytes:
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    code: int
    out: str
    err: str
    left: tuple[str, ...]
    """Every file and folder below the (first empty) directory that it was called in."""


@pytest.fixture
def cli(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Outcome]:
    """Call the command line in this process, from an empty directory, with no data named."""
    expected = tmp_path / "here"
    expected.mkdir()
    monkeypatch.chdir(expected)
    monkeypatch.delenv("ROUTEPRISM_DATA", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))  # naming a class adds the current directory
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: str | Path) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["routeprism", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        captured = capsys.readouterr()
        left = tuple(sorted(str(path.relative_to(expected)) for path in expected.rglob("*")))
        return Outcome(int(end.value.code or 0), captured.out, captured.err, left)

    return call


@pytest.fixture
def command() -> Callable[..., None]:
    """Run a command in this process with its settings by their Python names; errors are raised."""

    def call(name: str, *arguments: str | Path, **values: Any) -> None:
        flags = {item.name: item.flag for item in options_of(settings_for(name))}
        words = [name, *map(str, arguments)]
        for setting, value in values.items():
            for single in value if isinstance(value, list) else [value]:
                words += [flags[setting], *([] if single is True else [str(single)])]
        run_command(words)

    return call


@pytest.fixture
def only_reversal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare with full reversal alone where a test names no order of arrival."""
    from dataclasses import replace

    from routeprism.api import audits

    choose = audits.choose_arrivals

    def choose_reversal(request):  # type: ignore[no-untyped-def]
        settings = request.settings
        if not settings.schedules and not getattr(settings, "arrivals", ()):
            request = replace(request, settings=replace(settings, schedules=("replay",)))
        return choose(request)

    monkeypatch.setattr(audits, "choose_arrivals", choose_reversal)


@dataclass(frozen=True)
class Installation:
    """A small environment with RoutePrism's wheel, its dependencies and nothing else."""

    wheel: Path
    python: Path
    size: int
    """Bytes on disk before pytest was added."""


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """Build a wheel from the files that git knows, and install it.

    pytest is added after the size was taken, because the pages show how to use it.
    """
    folder = _make_once(tmp_path_factory, "installation", _install_wheel)
    [wheel] = (folder / "dist").glob("*.whl")
    size = int((folder / "size").read_text())
    return Installation(wheel, folder / "env" / "bin" / "python", size)


@dataclass(frozen=True)
class Demonstration:
    """What `make demo` printed and wrote in an empty directory."""

    directory: Path
    printed: str


@pytest.fixture(scope="session")
def demonstration(
    installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Demonstration:
    """Run the demonstration once, as the installed program."""

    def demonstrate(folder: Path) -> None:
        (folder / "empty").mkdir(parents=True)
        command = installation.python.with_name("routeprism")
        words = (command, "demo", "--run", "runs/demo")
        printed = _run_quietly(*words, cwd=folder / "empty", COLUMNS="100")
        (folder / "printed.txt").write_text(printed, encoding="utf-8")

    folder = _make_once(tmp_path_factory, "demonstration", demonstrate)
    printed = (folder / "printed.txt").read_text(encoding="utf-8")
    return Demonstration(folder / "empty", printed)


@pytest.fixture(scope="session")
def restored_sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Restore lost records on the sample once, as a run that no test changes."""

    def restore(run: Path) -> None:
        routeprism.restore("sample", "focal", models=["reader"], draws=2, run=run, resamples=100)

    return _make_once(tmp_path_factory, "restored-sample", restore)


def _make_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """Make a directory once for each test session: workers of pytest-xdist wait for the first."""
    shared = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    done = shared / f"{name}.done"
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.is_file():
            make(shared / name)
            done.touch()
    return shared / name


def _install_wheel(folder: Path) -> None:
    root = Path(__file__).parent.parent
    checkout = folder / "checkout"
    for name in _list_sources(root):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / name, checkout / name)
    pip = ("-m", "pip", "--disable-pip-version-check")
    build = ("wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir")
    _run_quietly(sys.executable, *pip, *build, folder / "dist", checkout)
    _run_quietly(sys.executable, "-m", "venv", folder / "env")
    python = folder / "env" / "bin" / "python"
    [wheel] = (folder / "dist").glob("*.whl")
    _run_quietly(python, *pip, "install", "--quiet", "-r", root / "requirements-core.txt")
    _run_quietly(python, *pip, "install", "--quiet", "--no-deps", wheel)
    size = sum(path.lstat().st_blocks * 512 for path in (folder / "env").rglob("*"))
    pins = re.sub(r" \\\n +--hash=\S+", "", (root / "requirements.txt").read_text("utf-8"))
    (folder / "pins").write_text(pins, "utf-8")  # with hashes, pytest would have to be one of them
    _run_quietly(python, *pip, "install", "--quiet", "--constraint", folder / "pins", "pytest")
    (folder / "size").write_text(str(size))


def _list_sources(root: Path) -> list[str]:
    """List what a clean clone has, with the changes of the working tree."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode:
        pytest.skip("this is no git checkout: clone the repository to build its wheel")
    return [name for name in listing.stdout.split("\0") if name and (root / name).is_file()]


def _run_quietly(*words: object, cwd: Path | None = None, **more: str) -> str:
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "COLUMNS")}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={**environment, **more},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout
