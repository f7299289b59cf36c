"""Cassettes: replies recorded once are replayed exactly, and an unknown prompt is refused."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism import files
from routeprism.errors import InputError, LimitError, RunError
from routeprism.runs import Cassette

from ..counting_server import Counting
from . import asking_memory

DIRECTORY = Path(__file__)
SMALL = asking_memory.SMALL
KEY = "sk-cassette-secret-0123456789"
MEMOCHAT = "memochat:words=5,model=openai:m"


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = Counting()
    yield server
    server.stop()


def audit(server: Any, tape: dict[str, Path], run: Path | None = None, words: int = 5) -> Any:
    """Audit a memory that asks through the ledger and one with its own client, with answers."""
    return routeprism.audit(
        SMALL,
        f"memochat:words={words},model=openai:m",
        asking_memory.Asking(f"{server.address}/v1"),
        models=["openai:n"],
        base_url=f"{server.address}/v1",
        resamples=100,
        run=run,
        **tape,
    )


@pytest.mark.slow
def test_a_cassette_replays_construction_and_answers_byte_for_byte(
    counting: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = tmp_path / "calls.jsonl"
    audit(counting, {"record": tape}, tmp_path / "recorded")
    calls = counting.model_calls()
    assert calls and KEY not in tape.read_text()
    assert len(tape.read_text().splitlines()) == calls + 1
    monkeypatch.delenv("OPENAI_API_KEY")
    result = audit(counting, {"replay": tape}, tmp_path / "replayed")
    assert counting.model_calls() == calls
    first, second = (tmp_path / name / "estimates.csv" for name in ("recorded", "replayed"))
    assert first.read_bytes() == second.read_bytes()
    assert any("No model was asked" in note for note in result.notes)
    assert audit(counting, {"replay": tape}).rows == result.rows  # without a run, too
    assert counting.model_calls() == calls


@pytest.mark.slow
def test_an_unknown_prompt_is_refused_and_the_nearest_is_shown(
    counting: Any, tmp_path: Path
) -> None:
    tape = tmp_path / "calls.jsonl"
    settings: dict[str, Any] = {"base_url": f"{counting.address}/v1", "resamples": 100}
    routeprism.audit(SMALL, MEMOCHAT, record=tape, **settings)
    calls = counting.model_calls()
    lines = tape.read_text().splitlines()
    entry = json.loads(lines[1])
    entry["prompt"] = entry["prompt"].replace("the", "THE", 1)
    tape.write_text("\n".join([lines[0], json.dumps(entry), *lines[2:]]) + "\n")
    with pytest.raises(InputError, match="nearest recorded prompt is the same up to") as error:
        routeprism.audit(SMALL, MEMOCHAT, replay=tape, **settings)
    assert "THE" in str(error.value)
    assert counting.model_calls() == calls


def test_an_unknown_prompt_of_a_memory_system_is_refused(counting: Any, tmp_path: Path) -> None:
    tape = tmp_path / "calls.jsonl"
    policy = asking_memory.Asking(f"{counting.address}/v1")
    routeprism.audit(SMALL, policy, record=tape, resamples=100)
    calls = counting.model_calls()
    with pytest.raises(InputError, match="fewer of them"):
        routeprism.audit(SMALL, policy, replay=tape, builds=2, resamples=100)
    assert counting.model_calls() == calls


@pytest.mark.slow
def test_recording_again_adds_to_the_cassette(counting: Any, tmp_path: Path) -> None:
    tape = tmp_path / "calls.jsonl"
    url = f"{counting.address}/v1"
    routeprism.audit(SMALL, asking_memory.Asking(url), record=tape, resamples=100)
    before = tape.read_text().splitlines()
    routeprism.audit(SMALL, MEMOCHAT, record=tape, base_url=url, resamples=100)
    assert tape.read_text().splitlines()[: len(before)] == before
    routeprism.audit(SMALL, asking_memory.Asking(url), replay=tape, resamples=100)


def test_other_files_and_contradictions_are_refused(
    tmp_path: Path, cli: Callable[..., Any]
) -> None:
    file = tmp_path / "notes.jsonl"
    file.write_text('{"a": 1}\n')
    call = ("audit", "sample", "-p", "focal", "-m", "openai:m", "--replay", file)
    done = cli(*call)
    assert done.code == 2 and "is not a cassette of RoutePrism" in done.err
    done = cli(*call, "--dry-run")
    assert done.code == 2 and "nothing to count" in done.err
    done = cli(*call, "--record", tmp_path / "new.jsonl")
    assert done.code == 2 and "exclude each other" in done.err


@pytest.fixture(scope="module")
def replies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[dict[str, Any]]]:
    """Give the lines of a recorded cassette."""
    tape = tmp_path_factory.mktemp("tape") / "calls.jsonl"
    server = Counting()
    routeprism.audit(SMALL, MEMOCHAT, record=tape, base_url=f"{server.address}/v1", resamples=100)
    server.stop()
    yield [json.loads(line) for line in tape.read_text(encoding="utf-8").splitlines()]


def write_lines(path: Path, entries: list[Any]) -> Path:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
    return path


FIELDS = {
    **{name: [None, 5, []] for name in ("model", "prompt", "batch", "question", "route", "raw")},
    "asked_at": [None],
    "settings": [None, "x", [[1]], {"a": [1]}],
    "draw": [None, "x", -1, 10**30, 1.5],
    "outcome": [None, "odd", 1, []],
    "answer": [5, [], "\ud800"],
    "scores": ["x", [None], [float("inf")]],
    "input_tokens": ["5", -1, 10**30],
    "output_tokens": [1.5],
    "cost": ["1", float("nan")],
    "latency": [None, "1"],
    "attempts": ["x", [1]],
    "correct": ["yes", 2],
    "position": ["x"],
    "marks": [[None], {}],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in FIELDS.items() for value in values]
)
def test_a_wrong_value_in_a_cassette_is_refused_with_its_line_and_field(
    replies: list[dict[str, Any]], tmp_path: Path, name: str, value: Any
) -> None:
    entries = [*replies[:2], {**replies[2], name: value}, *replies[3:]]
    tape = write_lines(tmp_path / "calls.jsonl", entries)
    with pytest.raises(InputError, match=rf"calls\.jsonl, line 3, field '{name}': Expected"):
        Cassette.read(tape)


def test_every_line_break_that_a_reply_contains_is_replayed(
    replies: list[dict[str, Any]], tmp_path: Path
) -> None:
    """JSON writes these characters as they are; only "\\n" ends a line of the file."""
    raw = "a\u2028b\x85c\x0bd\x1ce\u2029f"
    tape = tmp_path / "calls.jsonl"
    entries = [replies[0], *({**entry, "raw": raw} for entry in replies[1:])]
    lines = [json.dumps(entry, ensure_ascii=False) for entry in entries]
    tape.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert [entry["raw"] for entry in Cassette.read(tape).entries] == [raw] * len(replies[1:])


def test_a_cassette_that_cannot_be_written_is_refused_before_a_model_is_asked(
    counting: Any, tmp_path: Path
) -> None:
    foreign = tmp_path / "notes.txt"
    foreign.write_text("my notes\n")
    for path, reason in (
        (tmp_path / "nowhere" / "calls.jsonl", "there is no such directory"),
        (foreign, "is not a cassette of RoutePrism"),
        (tmp_path, "is a directory"),
    ):
        with pytest.raises(InputError, match=reason):
            audit(counting, {"record": path}, tmp_path / "run")
    assert counting.model_calls() == 0
    assert foreign.read_text() == "my notes\n"
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_cassette_whose_name_ends_in_gz_is_packed(counting: Any, tmp_path: Path) -> None:
    tape = tmp_path / "calls.jsonl.gz"
    recorded = audit(counting, {"record": tape})
    calls = counting.model_calls()
    assert gzip.decompress(tape.read_bytes()).startswith(b'{"routeprism_cassette": 1}\n')
    assert audit(counting, {"replay": tape}).rows == recorded.rows
    assert counting.model_calls() == calls


@pytest.mark.slow
def test_a_full_disk_loses_the_cassette_but_no_answer(
    counting: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = tmp_path / "calls.jsonl"
    replace_file = files.replace_file

    def fail(path: Path, *content: Any) -> None:
        if path == tape:
            raise OSError(28, "No space left on device")
        replace_file(path, *content)

    with monkeypatch.context() as patch:
        patch.setattr(files, "replace_file", fail)
        with pytest.raises(RunError, match=r"calls\.jsonl cannot be written: No space .* are kept"):
            audit(counting, {"record": tape}, tmp_path / "run")
    calls = counting.model_calls()
    audit(counting, {"record": tape}, tmp_path / "run")
    assert counting.model_calls() == calls
    assert len(tape.read_text().splitlines()) == calls + 1


def test_a_ledger_that_a_full_disk_cut_off_reports_the_disk(
    counting: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tables are created one by one, so some of them may be missing."""
    run = tmp_path / "run"

    def fail(*_: object, **__: object) -> None:
        with closing(sqlite3.connect(run / "run.sqlite")) as store:
            store.execute("CREATE TABLE IF NOT EXISTS answers (submission)")
            store.execute("DROP TABLE IF EXISTS recorded")
        raise LimitError("the disk is full")

    monkeypatch.setattr("routeprism.experiments.routes.trace_cases", fail)
    with pytest.raises(LimitError, match="the disk is full"):
        audit(counting, {"record": tmp_path / "calls.jsonl"}, run)
