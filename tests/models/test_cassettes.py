"""Cassettes: replies recorded once are replayed exactly, and an unknown prompt is refused."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.errors import InputError

HERE = Path(__file__)
SYSTEM = runpy.run_path(str(HERE.with_name("asking_memory.py")))
COUNTING = runpy.run_path(str(HERE.parents[1] / "counting_server.py"))["Counting"]
SMALL = SYSTEM["SMALL"]
KEY = "sk-cassette-secret-0123456789"
MEMOCHAT = "memochat:words=5,model=openai:m"


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = COUNTING()
    yield server
    server.stop()


def audit(server: Any, tape: dict[str, Path], run: Path | None = None, words: int = 5) -> Any:
    """Audit a memory that asks through the ledger and one with its own client, with answers."""
    return routeprism.audit(
        SMALL,
        f"memochat:words={words},model=openai:m",
        SYSTEM["Asking"](f"{server.address}/v1"),
        models=["openai:n"],
        base_url=f"{server.address}/v1",
        resamples=100,
        run=run,
        **tape,
    )


def test_a_cassette_replays_construction_and_answers_byte_for_byte(
    counting: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = tmp_path / "calls.jsonl"
    audit(counting, {"record": tape}, tmp_path / "recorded")
    calls = counting.model_calls()
    assert calls and KEY not in tape.read_text()
    assert len(tape.read_text().splitlines()) == calls + 1
    monkeypatch.delenv("OPENAI_API_KEY")
    found = audit(counting, {"replay": tape}, tmp_path / "replayed")
    assert counting.model_calls() == calls
    first, second = (tmp_path / name / "estimates.csv" for name in ("recorded", "replayed"))
    assert first.read_bytes() == second.read_bytes()
    assert any("No model was asked" in note for note in found.notes)
    assert audit(counting, {"replay": tape}).rows == found.rows  # without a run, too
    assert counting.model_calls() == calls


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
    policy = SYSTEM["Asking"](f"{counting.address}/v1")
    routeprism.audit(SMALL, policy, record=tape, resamples=100)
    calls = counting.model_calls()
    with pytest.raises(InputError, match="fewer of them"):
        routeprism.audit(SMALL, policy, replay=tape, builds=2, resamples=100)
    assert counting.model_calls() == calls


def test_recording_again_adds_to_the_cassette(counting: Any, tmp_path: Path) -> None:
    tape = tmp_path / "calls.jsonl"
    url = f"{counting.address}/v1"
    routeprism.audit(SMALL, SYSTEM["Asking"](url), record=tape, resamples=100)
    before = tape.read_text().splitlines()
    routeprism.audit(SMALL, MEMOCHAT, record=tape, base_url=url, resamples=100)
    assert tape.read_text().splitlines()[: len(before)] == before
    routeprism.audit(SMALL, SYSTEM["Asking"](url), replay=tape, resamples=100)


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
