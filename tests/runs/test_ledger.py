"""The ledger: durable before it counts, in order, never twice, and one process at a time."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from routeprism.errors import RunError
from routeprism.runs import Answer, Committer, Failure, Key, Ledger, Request, Run, sha256

SETTINGS = {"temperature": 0.5, "seed": None}


def key(prompt: str = "why?", *, batch: str = "", draw: int = 0) -> Key:
    return Key.of("openai:m", SETTINGS, prompt, batch=batch, draw=draw)


def entry(submission: int, letter: str = "b") -> Answer:
    return Answer(
        submission=submission,
        outcome="answered",
        answer=letter,
        raw=f"{letter}) because",
        scores=(0.25, 0.75),
        input_tokens=11,
        output_tokens=2,
        cost=0.001,
        asked_at="2026-01-02T03:04:05.000+00:00",
        latency=0.2,
        attempts=("2026-01-02T03:04:04Z HTTP 500: no", "2026-01-02T03:04:05Z é"),
    )


def test_an_answer_comes_back_as_it_was_kept(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    with Ledger(path) as ledger:
        (submission,) = ledger.reserve(SETTINGS, [Request(key(), "why?", "q1", "forward")]).result()
        ledger.put(entry(submission)).result()
    with Ledger(path) as ledger:
        assert ledger.answers([key()]) == {key(): entry(submission)}
        assert ledger.count() == 1


def test_the_key_is_model_settings_prompt_batch_and_draw(tmp_path: Path) -> None:
    other_model = Key.of("openai:n", SETTINGS, "why?", batch="", draw=0)
    other_settings = Key.of("openai:m", {"seed": None}, "why?", batch="", draw=0)
    keys = [key("who?"), key(batch="second"), key(draw=1), other_model, other_settings]
    assert key().settings == sha256('{"seed":null,"temperature":0.5}')  # canonical JSON
    with Ledger(tmp_path / "run.sqlite") as ledger:
        (submission,) = ledger.reserve(SETTINGS, [Request(key(), "why?")]).result()
        ledger.put(entry(submission)).result()
        assert ledger.missing([key(), *keys, *keys]) == keys


def test_dispatch_order_is_fixed_when_first_written_down(tmp_path: Path) -> None:
    def list_requests(*prompts: str) -> list[Request]:
        return [Request(key(prompt), prompt) for prompt in prompts]

    with Ledger(tmp_path / "run.sqlite") as ledger:
        assert ledger.reserve(SETTINGS, list_requests("a", "b", "c")).result() == [1, 2, 3]
    with Ledger(tmp_path / "run.sqlite") as ledger:  # continued, then extended
        assert ledger.reserve(SETTINGS, list_requests("c", "b", "d")).result() == [3, 2, 4]


def test_the_store_can_be_read_without_us(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    with Ledger(path) as ledger:
        (submission,) = ledger.reserve(SETTINGS, [Request(key(), "why?", "q1", "forward")]).result()
        ledger.put(entry(submission)).result()
    with closing(sqlite3.connect(path)) as store:
        joined = store.execute(
            "SELECT models.settings, prompts.text, question, route, batch, draw, raw, attempts "
            "FROM answers JOIN requests USING (submission) "
            "JOIN models USING (model, settings_sha256) "
            "JOIN prompts ON prompts.sha256 = prompt_sha256"
        ).fetchall()
    settings = '{"seed":null,"temperature":0.5}'
    attempts = json.dumps(entry(1).attempts, ensure_ascii=False)
    assert joined == [(settings, "why?", "q1", "forward", "", 0, "b) because", attempts)]


def test_a_failure_is_kept_apart_and_still_missing(tmp_path: Path) -> None:
    with Ledger(tmp_path / "run.sqlite") as ledger:
        (submission,) = ledger.reserve(SETTINGS, [Request(key(), "why?")]).result()
        failure = Failure(
            submission=submission, error="no", asked_at="then", latency=1.5, attempts=("x", "y")
        )
        ledger.put(failure).result()
        ledger.put(failure).result()
        assert ledger.missing([key()]) == [key()]
        assert ledger.failures(key()) == [failure, failure]
        assert ledger.count() == 0


def test_a_first_answer_is_never_replaced(tmp_path: Path) -> None:
    with Ledger(tmp_path / "run.sqlite") as ledger:
        (submission,) = ledger.reserve(SETTINGS, [Request(key(), "why?")]).result()
        ledger.put(entry(submission, "b")).result()
        ledger.put(entry(submission, "c")).result()
        assert ledger.answers([key()])[key()].answer == "b"


def test_what_queues_up_during_a_commit_shares_the_next(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with closing(sqlite3.connect(path)) as store:
        store.execute("CREATE TABLE n (transaction_number INTEGER)")
        store.commit()
    committer = Committer(path)
    gate = threading.Event()
    transactions: list[bool] = []

    def first(connection: sqlite3.Connection) -> None:
        gate.wait(120)

    def insert(connection: sqlite3.Connection) -> None:
        transactions.append(connection.in_transaction)
        connection.execute("INSERT INTO n VALUES (?)", (connection.total_changes,))

    blocking = committer.submit(first)
    queued = [committer.submit(insert) for _ in range(50)]
    assert not any(future.done() for future in queued)  # nothing counts before it is committed
    with closing(sqlite3.connect(path)) as store:
        assert store.execute("SELECT count(*) FROM n").fetchone() == (0,)
    gate.set()
    blocking.result(120)
    for future in queued:
        future.result(120)
    with closing(sqlite3.connect(path)) as store:
        assert store.execute("SELECT count(*) FROM n").fetchone() == (50,)
    assert transactions == [True] * 50
    committer.close()


def test_a_bad_write_does_not_take_others_with_it(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with closing(sqlite3.connect(path)) as store:
        store.execute("CREATE TABLE n (value INTEGER PRIMARY KEY)")
        store.commit()
    committer = Committer(path)
    gate = threading.Event()
    committer.submit(lambda connection: gate.wait(120))
    futures = [
        committer.submit(lambda c, v=value: c.execute("INSERT INTO n VALUES (?)", (v,)) and None)
        for value in (1, 1, 2)
    ]
    gate.set()
    assert futures[0].result(120) is None
    with pytest.raises(sqlite3.IntegrityError):
        futures[1].result(120)
    assert futures[2].result(120) is None
    committer.close()


def test_a_run_that_is_written_again_keeps_its_answers(tmp_path: Path) -> None:
    for _ in range(2):
        with Run.open(tmp_path / "run", {"a": 1}, inputs={}) as run:
            with run.writing() as writer:
                writer.insert("texts", [("sha", "text")])
            with run.ledger() as ledger:
                (submission,) = ledger.reserve(SETTINGS, [Request(key(), "why?")]).result()
                ledger.put(entry(submission)).result()
                assert ledger.count() == 1


def test_a_new_run_that_fails_stays_if_it_holds_answers(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt), Run.open(directory, {"a": 1}, inputs={}) as run:
        with run.ledger() as ledger:
            ledger.reserve(SETTINGS, [Request(key(), "why?")]).result()
        raise KeyboardInterrupt
    assert not directory.exists()  # asked, but nothing answered: as before
    with pytest.raises(KeyboardInterrupt), Run.open(directory, {"a": 1}, inputs={}) as run:
        with run.ledger() as ledger:
            ledger.put(entry(*ledger.reserve(SETTINGS, [Request(key(), "why?")]).result())).result()
        raise KeyboardInterrupt
    with Run.open(directory, {"a": 1}, inputs={}) as run, run.ledger() as ledger:
        assert not run.fresh
        assert ledger.missing([key()]) == []


def test_two_processes_on_one_run_are_refused(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    code = (
        "import sys; from pathlib import Path; from routeprism.runs import Run\n"
        "with Run.open(Path(sys.argv[1]), {'a': 1}, inputs={}): pass\n"
    )
    command = [sys.executable, "-c", code, str(directory)]
    with Run.open(directory, {"a": 1}, inputs={}):
        refused = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "is being written by another process" in refused.stderr
        assert (directory / "manifest.json").exists()
        with (
            pytest.raises(RunError, match="another process"),
            Run.open(directory, {"a": 1}, inputs={}),
        ):
            pass
    subprocess.run(command, check=True)


def test_a_store_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    path.write_bytes(b"this is no database at all, whatever its name says" * 100)
    with pytest.raises(RunError, match="cannot be used as a ledger"):
        Ledger(path)
