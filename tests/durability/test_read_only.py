"""A finished run can be read where nothing can be written, by every command that reads runs.

A read-only file system is a bind mount in a name space of its own, which needs no privileges where
the system allows user name spaces. As this is not so everywhere, the first tests look at the store.
"""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import routeprism
from routeprism.runs import Ledger, StoredRun

ROLLBACK, LOG = 1, 2
"""Bytes 18 and 19 of a database: written with a rollback journal, or with a log beside it."""

COMMANDS = {
    "report": ("report", "RUN", "--out", "OUT/page.html", "--answers", "OUT/answers.csv"),
    "check": ("check", "RUN", "--gate", "J>=0"),
    "baseline": ("check", "RUN", "--baseline", "BASE"),
    "compare": ("compare", "BASE", "RUN"),
    "trace": ("trace", "RUN", "--row", "1"),
    "plan": ("plan", "RUN", "--schedule", "replay", "--quantity", "J", "--half-width", "0.1"),
}


def format_of(run: Path) -> tuple[int, int]:
    header = (run / "run.sqlite").read_bytes()[:100]
    return header[18], header[19]


@pytest.fixture(scope="module")
def finished(small_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("runs")
    for name in ("run", "base"):
        routeprism.audit(
            small_data, "recent:k=2", models=["reader"], run=directory / name, resamples=100
        )
    return directory / "run"


def test_a_finished_run_has_no_log_beside_its_store(finished: Path) -> None:
    assert format_of(finished) == (ROLLBACK, ROLLBACK)
    assert sorted(path.name for path in finished.iterdir()) == [
        "estimates.csv",
        "manifest.json",
        "run.sqlite",
    ]


def test_an_extended_run_has_none_either(small_data: Path, finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    routeprism.audit(small_data, "recent:k=2", models=["reader"], draws=2, run=run, resamples=100)
    assert format_of(run) == (ROLLBACK, ROLLBACK)


def test_an_interrupted_run_has_none_either(small_data: Path, tmp_path: Path) -> None:
    def stop(model: str, progress: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        routeprism.audit(
            small_data, "recent:k=2", models=["reader"], run=tmp_path / "run", answer_progress=stop
        )
    assert format_of(tmp_path / "run") == (ROLLBACK, ROLLBACK)


def test_reading_leaves_no_file_behind(finished: Path) -> None:
    before = {path.name: path.read_bytes() for path in finished.iterdir()}
    with StoredRun(finished) as stored:
        assert stored.estimates()
    assert {path.name: path.read_bytes() for path in finished.iterdir()} == before


# --- a file system ---------------------------------------------------------------------------

MOUNT = 'mount --bind {0} {0} && mount -o remount,bind,ro {0} && exec "$@"'


def read_only(place: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command for which a directory is read-only."""
    shell = ["unshare", "-rm", "sh", "-c", MOUNT.format(place), "sh", *command]
    return subprocess.run(shell, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture
def mounted(tmp_path: Path) -> None:
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed: install util-linux to mount a file system")
    (tmp_path / "probe").mkdir()
    probe = read_only(tmp_path / "probe", ["touch", str(tmp_path / "probe" / "file")])
    if "Read-only file system" not in probe.stderr:
        pytest.skip(f"a read-only file system cannot be mounted here: {probe.stderr.strip()}")


def call(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    script = "from routeprism.cli import main; main()"
    return read_only(place, [sys.executable, "-c", script, *words])


@pytest.mark.slow
@pytest.mark.usefixtures("mounted")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("logged", [False, True])
def test_a_run_on_a_read_only_file_system_can_be_read(
    finished: Path, tmp_path: Path, command: str, logged: bool
) -> None:
    """`logged` is a store as earlier versions left it."""
    place = tmp_path / "media"
    shutil.copytree(finished.parent, place)
    (tmp_path / "out").mkdir()
    if logged:
        with Ledger(place / "run" / "run.sqlite") as ledger:
            assert ledger.count() == 3 * 2 * 2
        assert format_of(place / "run") == (LOG, LOG)
    places = {"RUN": place / "run", "BASE": place / "base"}
    words = [
        str(places.get(word, word)).replace("OUT", str(tmp_path / "out"))
        for word in COMMANDS[command]
    ]
    done = call(place, *words)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.usefixtures("mounted")
def test_a_run_that_was_killed_cannot_be_read_there_and_says_so(
    finished: Path, tmp_path: Path
) -> None:
    place = tmp_path / "media"
    shutil.copytree(finished.parent, place)
    with closing(sqlite3.connect(place / "run" / "run.sqlite")) as store:
        store.execute("PRAGMA journal_mode=WAL")
        store.execute("PRAGMA wal_autocheckpoint=0")
        with store:
            store.execute("DELETE FROM failures")
            store.execute("CREATE TABLE more (name)")
        shutil.copytree(place / "run", tmp_path / "copy")
    shutil.rmtree(place / "run")
    shutil.copytree(tmp_path / "copy", place / "run")
    (place / "run" / "run.sqlite-shm").unlink()
    done = call(place, "check", str(place / "run"), "--gate", "J>=0")
    assert done.returncode == 2
    assert done.stderr == (
        f"routeprism: {place}/run/run.sqlite cannot be read here: the process that wrote it was "
        f"killed, and SQLite must complete it first; copy the run to a directory that can be "
        f"written\n"
    )


@pytest.mark.slow
@pytest.mark.usefixtures("mounted")
def test_writing_there_is_refused_in_one_line(
    small_data: Path, finished: Path, tmp_path: Path
) -> None:
    place = tmp_path / "media"
    shutil.copytree(finished.parent, place)
    audit = (
        "audit",
        str(small_data),
        "-p",
        "recent:k=2",
        "--model",
        "reader",
        "--resamples",
        "100",
    )
    for words in (
        (*audit, "--run", str(place / "new")),
        (*audit, "--draws", "2", "--run", str(place / "run")),
        ("report", str(place / "run")),
    ):
        done = call(place, *words)
        assert done.returncode == 2
        assert done.stderr.startswith("routeprism: ")
        assert len(done.stderr.splitlines()) == 1
        assert "Read-only file system" in done.stderr
