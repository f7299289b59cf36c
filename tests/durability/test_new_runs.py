"""A new run that fails removes its own files alone, and never an answer."""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

import routeprism
from routeprism.errors import OwnCodeError, RunError
from routeprism.files import is_draft
from routeprism.records import Record
from routeprism.runs import Answer, EstimateRow, Key, Request, Run

CONFIGURATION = {"command": "audit", "policies": ["raw"], "seed": 1}
ROW = EstimateRow(experiment="routes", benchmark="mine", quantity="J", estimate=0.5)
SETTINGS = {"temperature": 0.0}


class BrokenMemoryError(Exception):
    """What a memory of the user's may raise."""


def answer(run: Run) -> None:
    """Ask for one answer and keep it."""
    key = Key.of("openai:m", SETTINGS, "why?", batch="", draw=0)
    with run.ledger() as ledger:
        (submission,) = ledger.reserve(SETTINGS, [Request(key, "why?")]).result()
        stored_answer = Answer(
            submission=submission,
            outcome="answered",
            answer="a",
            raw="a",
            asked_at="2026-01-02T03:04:05.000+00:00",
            latency=0.1,
        )
        ledger.put(stored_answer).result()


def answers(directory: Path) -> int:
    with closing(sqlite3.connect(directory / "run.sqlite")) as store:
        (number,) = store.execute("SELECT count(*) FROM answers").fetchone()
    return int(number)


def tree(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


# --- other runs ------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [BrokenMemoryError(), KeyboardInterrupt()])
def test_a_failing_run_leaves_the_runs_beside_it(tmp_path: Path, error: BaseException) -> None:
    """The first run makes `runs/`; a second one is finished in it before the first one fails."""
    runs = tmp_path / "runs"
    with (
        pytest.raises(type(error)),
        Run.open(runs / "first", CONFIGURATION, inputs={}) as first,
        first.writing(),
    ):
        with Run.open(runs / "second", CONFIGURATION, inputs={}) as second:
            answer(second)
            second.finish([ROW], {})
        raise error
    assert tree(runs) == [
        "second",
        "second/estimates.csv",
        "second/manifest.json",
        "second/run.sqlite",
    ]
    assert answers(runs / "second") == 1


def test_a_failing_run_leaves_files_of_the_user_in_its_directory(tmp_path: Path) -> None:
    with (
        pytest.raises(BrokenMemoryError),
        Run.open(tmp_path / "new" / "run", CONFIGURATION, inputs={}),
    ):
        (tmp_path / "new" / "run" / "notes.txt").write_text("mine")
        raise BrokenMemoryError
    assert tree(tmp_path) == ["new", "new/run", "new/run/notes.txt"]


class Fragile:
    """Keeps everything but the records of one user, at which it breaks."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def add(self, record: Record) -> None:
        if record.id.startswith("cleo"):
            raise BrokenMemoryError(record.id)
        self.records.append(record)

    def retained(self) -> list[Record]:
        return self.records

    def expose(self, query: str) -> list[Record]:
        return self.records


def test_an_audit_that_fails_leaves_the_runs_beside_it(small_data: Path, tmp_path: Path) -> None:
    """The failing audit has made `runs/`, and another one comes to its end in the meantime."""
    runs = tmp_path / "runs"

    def meanwhile(done: int, total: int) -> None:
        if done == 1:
            routeprism.audit(small_data, "recent:k=2", run=runs / "good", resamples=100)

    with pytest.raises(OwnCodeError, match="BrokenMemoryError"):
        routeprism.audit(small_data, Fragile, run=runs / "bad", progress=meanwhile)
    assert [path.name for path in runs.iterdir()] == ["good"]
    assert (runs / "good" / "estimates.csv").is_file()


# --- answers ---------------------------------------------------------------------------------


def test_a_store_that_cannot_be_read_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether there are answers cannot be told when SQLite fails, so they are kept."""
    directory = tmp_path / "run"
    connect = sqlite3.connect

    def refuse(*arguments: object, **options: object) -> sqlite3.Connection:
        raise sqlite3.OperationalError("disk I/O error")

    with (
        pytest.raises(BrokenMemoryError),
        Run.open(directory, CONFIGURATION, inputs={}) as run,
    ):
        answer(run)
        monkeypatch.setattr(sqlite3, "connect", refuse)
        raise BrokenMemoryError
    monkeypatch.setattr(sqlite3, "connect", connect)
    assert answers(directory) == 1


def test_a_full_disk_after_the_last_answer_keeps_every_answer(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    with (
        pytest.raises(
            RunError,
            match=r"run\.sqlite cannot be written: database or disk is full\. "
            r"1 answer is kept; run the same command again to resume$",
        ),
        Run.open(directory, CONFIGURATION, inputs={}) as run,
    ):
        answer(run)
        with run.writing() as writer:
            writer.execute("PRAGMA max_page_count = 1")  # not below what is used
            for number in range(10_000):
                writer.insert("texts", [(str(number), "x" * 1000)])
    assert answers(directory) == 1
    with Run.open(directory, CONFIGURATION, inputs={}) as run:
        assert not run.fresh
        run.finish([ROW], {})
    assert json.loads((directory / "manifest.json").read_text())["status"] == "complete"


def test_a_finished_run_without_answers_is_kept_when_its_caller_fails(tmp_path: Path) -> None:
    with (
        pytest.raises(BrokenMemoryError),
        Run.open(tmp_path / "run", CONFIGURATION, inputs={}) as run,
    ):
        run.finish([ROW], {})
        raise BrokenMemoryError
    assert tree(tmp_path / "run") == ["estimates.csv", "manifest.json", "run.sqlite"]


# --- the first manifest ----------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b'{"configur'])
def test_a_run_that_was_killed_in_its_first_write_can_be_resumed(
    tmp_path: Path, content: bytes
) -> None:
    """Before the manifest is in its place, there is a draft of it and nothing else."""
    (tmp_path / ".routeprism-0123456789abcdef.tmp").write_bytes(content)
    with Run.open(tmp_path, CONFIGURATION, inputs={}) as run:
        assert run.fresh
        run.finish([ROW], {})
    assert tree(tmp_path) == ["estimates.csv", "manifest.json", "run.sqlite"]


def test_a_draft_does_not_make_foreign_files_ours(tmp_path: Path) -> None:
    (tmp_path / ".routeprism-0123456789abcdef.tmp").write_bytes(b"")
    (tmp_path / "thesis.txt").write_text("years of work")
    with (
        pytest.raises(RunError, match="contains files that do not belong to a run"),
        Run.open(tmp_path, CONFIGURATION, inputs={}),
    ):
        pass
    assert tree(tmp_path) == [".routeprism-0123456789abcdef.tmp", "thesis.txt"]


@pytest.mark.parametrize("staged", [False, True])
def test_a_run_that_is_killed_at_its_start_is_recognised(tmp_path: Path, staged: bool) -> None:
    """Whenever something else is in the directory, so is the manifest."""
    run = tmp_path / "run"
    checks: list[bool] = []

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if watching and event in ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir"):
            names = {path.name for path in run.iterdir()} if run.is_dir() else set()
            files = {name for name in names if not is_draft(name)}
            checks.append(not files or "manifest.json" in files)

    sys.addaudithook(watch)
    watching = True
    try:
        with (
            pytest.raises(BrokenMemoryError),
            Run.open(run, CONFIGURATION, inputs={}, staged=staged) as opened,
        ):
            with opened.writing():
                pass
            raise BrokenMemoryError
    finally:
        watching = False
    assert len(checks) > 5
    assert all(checks)
    assert not run.exists()
