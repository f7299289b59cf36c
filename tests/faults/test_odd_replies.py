"""Replies that cannot be stored as they came, and errors that must not pass for Ctrl-C."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from routeprism.answers import Cell, collect
from routeprism.models import Ask, Reply, Usage
from routeprism.runs import Ledger, Run

CELLS = [Cell(Ask(f"p{n}", "", "", ("one", "two"), 0), f"q{n}", "forward") for n in range(6)]


@dataclass(frozen=True)
class Odd:
    """A model that answers one prompt as it is told to, and the others well."""

    odd: Callable[[], Any]
    concurrency: int = 3
    name: str = "odd"
    embedded: bool = False

    @property
    def settings(self) -> Mapping[str, str]:
        return {}

    async def answer(self, ask: Ask, /) -> Reply:
        result: Reply = self.odd() if ask.text == "p3" else Reply("a")
        return result


def run_at(directory: Path) -> Any:
    return Run.open(directory, {"x": 1}, inputs={})


@pytest.mark.parametrize(
    ("reply", "raw", "tokens", "marks"),
    [
        (Reply("a\ud800"), "a\ufffd", None, ["half a surrogate pair"]),
        (Reply("\ud83d\ude00 a"), "\U0001f600 a", None, ["half a surrogate pair"]),
        (Reply("a", Usage(10**30, 1)), "a", None, ["the input token count"]),
        (Reply("a", Usage("7", 1)), "a", None, ["the input token count"]),  # type: ignore[arg-type]
        (Reply("a", Usage(7, -1)), "a", 7, ["the output token count"]),
        (Reply("a", Usage(7, 1, float("nan"))), "a", 7, ["the cost"]),
        (Reply("a", Usage(7, 1, float("inf"))), "a", 7, ["the cost"]),
    ],
)
def test_the_answer_is_stored_and_marked(
    tmp_path: Path, reply: Reply, raw: str, tokens: int | None, marks: list[str]
) -> None:
    with run_at(tmp_path / "run") as run:
        collected = collect(run, Odd(lambda: reply), CELLS)
        answer = collected.of(CELLS[3])
        assert answer is not None
        assert (answer.raw, answer.input_tokens) == (raw, tokens)
        assert all(mark.startswith(start) for mark, start in zip(answer.marks, marks, strict=True))
        assert collected.outcomes["answered"] + collected.outcomes["unparsable"] == 6
        repetition = collect(run, Odd(lambda: reply), CELLS)
        assert (repetition.new_requests, repetition.of(CELLS[3])) == (0, answer)


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        (lambda: None, "odd gave NoneType instead of a reply with text"),
        (lambda: Reply(None), "odd gave NoneType instead of a reply with text"),  # type: ignore[arg-type]
        (lambda: "a", "odd gave str instead of a reply with text"),
        (lambda: 1 / 0, "odd gave no answer: ZeroDivisionError: division by zero"),
        (lambda: {}["\ud800"], "odd gave no answer: KeyError: '\\ud800'"),
    ],
)
def test_what_a_model_does_wrong_fails_one_request(
    tmp_path: Path, odd: Callable[[], Any], reason: str
) -> None:
    with run_at(tmp_path / "run") as run:
        collected = collect(run, Odd(odd), CELLS)
        assert [failure.error for failure in collected.failures.values()] == [reason]
        assert len(collected.answers) == 5
        shortfall = run.shortfall()
    assert (shortfall.answers, shortfall.reasons) == (1, (f"1 answer: {reason}",))


def test_an_error_in_one_request_is_not_reported_as_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other requests are cancelled, and that says nothing."""

    def fail(*_: object) -> None:
        raise sqlite3.OperationalError("made up")

    monkeypatch.setattr(Ledger, "put", fail)
    with run_at(tmp_path / "run") as run, pytest.raises(sqlite3.OperationalError, match="made up"):
        collect(run, Odd(lambda: Reply("a")), CELLS)


RECORDS = [{"user": "u", "id": f"r{n}", "text": f"fact {n}"} for n in range(2)]
QUESTIONS = [{"user": "u", "id": "q", "text": "Which?", "options": ["one", "two"], "gold": "a"}]
ROWS = [
    {"question": "q", "policy": "recent:k=1", "schedule": schedule, "draw": 0, "answer": answer}
    for schedule, answer in (("forward", "a"), ("replay", "b \ud800"))
]


def test_recorded_answers_are_stored_and_the_line_is_named(
    cli: Callable[..., Any], own_data: Callable[..., Path], tmp_path: Path
) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    data = own_data(RECORDS, QUESTIONS)
    call = ("audit", data, "-p", "recent:k=1", "--model", f"recorded:{file}", "--run", "run")
    ended = cli(*call)
    assert ended.code == 0, ended.err
    assert "1 answer was stored with a mark" in ended.out
    with closing(sqlite3.connect("run/run.sqlite")) as connection:
        ((marks,),) = connection.execute("SELECT marks FROM marks").fetchall()
        raw = connection.execute("SELECT raw FROM answers ORDER BY raw").fetchall()
    assert json.loads(marks)[0].startswith(f"{file}, line 2: half a surrogate pair")
    assert raw == [("a",), ("b \ufffd",)]


@pytest.mark.parametrize("field", ["question", "policy", "model", "batch"])
def test_half_a_character_in_a_name_is_refused_with_its_line(
    cli: Callable[..., Any], own_data: Callable[..., Path], tmp_path: Path, field: str
) -> None:
    file = tmp_path / "answers.jsonl"
    rows = [ROWS[0], {**ROWS[1], field: "x\ud800"}]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = own_data(RECORDS, QUESTIONS)
    ended = cli("audit", data, "-p", "recent:k=1", "--model", f"recorded:{file}")
    assert ended.code == 2
    assert f"line 2, field '{field}': half a surrogate pair is not valid text" in ended.err


def test_a_memory_of_ones_own_that_shows_half_a_character_is_refused_in_one_line(
    cli: Callable[..., Any], own_data: Callable[..., Path]
) -> None:
    Path("halves.py").write_text(
        "class Halves:\n"
        "    def __init__(self): self.ids = []\n"
        "    def add(self, record): self.ids.append(record.id)\n"
        "    def retained(self): return self.ids\n"
        "    def expose(self, query): return [(self.ids[0], 'x' + chr(0xd800))]\n"
    )
    ended = cli("audit", own_data(RECORDS, QUESTIONS), "-p", "halves:Halves")
    assert ended.code == 2
    assert "Traceback" not in ended.err


def test_a_model_whose_package_is_missing_is_refused_at_once(
    cli: Callable[..., Any], own_data: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("inspect_ai", "inspect_ai.model"):
        monkeypatch.setitem(sys.modules, name, None)
    data = own_data(RECORDS, QUESTIONS)
    ended = cli("audit", data, "-p", "raw", "--model", "inspect:mockllm/m", "--run", "run", "--yes")
    assert ended.code == 2
    assert "pip install 'routeprism[inspect]'" in ended.err
    assert not Path("run").exists()


def test_every_order_of_a_service_that_is_gone_exits_with_3(
    cli: Callable[..., Any], own_data: Callable[..., Path]
) -> None:
    data = own_data(RECORDS, QUESTIONS)
    ended = cli("orders", data, "-p", "http:url=http://127.0.0.1:9", "--run", "run")
    assert ended.code == 3
    assert "reset: http://127.0.0.1:9 cannot be asked: Connection refused" in ended.err
    assert "Traceback" not in ended.err


def test_a_pass_over_cards_without_answers_exits_with_3(
    cli: Callable[..., Any], own_data: Callable[..., Path]
) -> None:
    data = own_data(RECORDS, QUESTIONS)
    model = "first=openai:m,retries=0"
    ended = cli("screen", data, "--pass", model, "--base-url", "http://127.0.0.1:9/v1")
    assert ended.code == 3
    assert "pass 'first': 1 of 1 requests failed" in ended.err
