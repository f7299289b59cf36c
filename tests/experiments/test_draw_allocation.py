"""`--draws N --allocate`: a pilot of every prompt, and the other answers where they differ most."""

from __future__ import annotations

import hashlib
import json
import random
import sqlite3
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

import routeprism
from routeprism.errors import LimitError, SpecError
from routeprism.models import Ask, Reply

DRAWS = 10
REQUESTS: dict[str, Any] = {"schedules": ["replay"], "draws": DRAWS, "allocate": True}


@dataclass(frozen=True)
class Noisy:
    """Answers a quarter of the questions at random, from the prompt and the draw, else with a."""

    asks: list[tuple[str, int]] = field(default_factory=list, compare=False)
    settings: dict[str, str] = field(default_factory=dict)
    name: str = "noisy"
    embedded: bool = False
    concurrency: int = 4

    def answer(self, ask: Ask) -> Reply:
        self.asks.append((ask.text, ask.draw))
        if not is_noisy(ask.question):
            return Reply("a")
        return Reply(random.Random(f"{ask.text} {ask.draw}").choice("abcd"))  # noqa: S311


def is_noisy(question: str) -> bool:
    return hashlib.sha256(question.encode()).digest()[0] % 4 == 0


def read_run(directory: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(directory / "run.sqlite")) as connection:
        return connection.execute(query).fetchall()


@pytest.mark.slow
def test_answers_are_drawn_where_they_differ_for_the_same_calls(tmp_path: Path) -> None:
    equal, model = Noisy(), Noisy()
    routeprism.audit("sample", "recent:k=2", models=[equal], **REQUESTS | {"allocate": False})
    result = routeprism.audit(
        "sample", "recent:k=2", models=[model], run=tmp_path / "run", **REQUESTS
    )
    assert 0.98 * len(equal.asks) < len(model.asks) <= len(equal.asks)
    assert len({*model.asks}) == len(model.asks)
    texts = dict(read_run(tmp_path / "run", "SELECT id, text FROM questions"))
    draws = defaultdict(list)
    for question, number in read_run(tmp_path / "run", "SELECT question, draws FROM comparisons"):
        draws[is_noisy(texts[question])].append(number)
    assert fmean(draws[True]) > DRAWS > fmean(draws[False])
    assert any("after a pilot of 2 draws of each prompt" in note for note in result.notes)
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["configuration"]["allocate"] is True


@pytest.mark.slow
def test_the_pilot_counts_a_fifth_whatever_number_follows(tmp_path: Path) -> None:
    """The accuracy of every question, from the answers in the ledger."""
    directory = tmp_path / "run"
    result = routeprism.audit("sample", "recent:k=2", models=[Noisy()], run=directory, **REQUESTS)
    gold = dict(read_run(directory, "SELECT id, gold FROM questions"))
    right: dict[str, list[bool]] = defaultdict(list)
    for question, answer in read_run(
        directory,
        "SELECT c.question, a.answer FROM comparisons c JOIN requests r ON "
        "r.prompt_sha256 = c.prompt_sha256 AND r.draw BETWEEN c.first_draw AND "
        "c.first_draw + c.draws - 1 JOIN answers a USING (submission) "
        "WHERE c.side = 'forward' ORDER BY c.question, r.draw",
    ):
        right[question].append(answer == gold[question])
    expected = {
        question: 0.2 * fmean(verdicts[:2]) + 0.8 * fmean(verdicts[2:])
        for question, verdicts in right.items()
    }
    name = "recent:k=2, noisy, forward: accuracy"
    stored = {row["question"]: row[name] for row in result.questions()}
    assert stored == pytest.approx(expected)


@pytest.mark.slow
def test_a_run_that_reached_its_limit_continues_with_the_missing_answers(tmp_path: Path) -> None:
    whole = Noisy()
    routeprism.audit("sample", "recent:k=2", models=[whole], run=tmp_path / "whole", **REQUESTS)
    first, second = Noisy(), Noisy()
    limit = len(whole.asks) // 2
    with pytest.raises(LimitError):
        routeprism.audit(
            "sample",
            "recent:k=2",
            models=[first],
            run=tmp_path / "run",
            max_calls=limit,
            **REQUESTS,
        )
    routeprism.audit("sample", "recent:k=2", models=[second], run=tmp_path / "run", **REQUESTS)
    assert len(first.asks) == limit
    assert sorted([*first.asks, *second.asks]) == sorted(whole.asks)
    files = [(tmp_path / name / "estimates.csv").read_bytes() for name in ("whole", "run")]
    assert files[0] == files[1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"draws": 4}, "Expected 5 draws or more to allocate but got draws=4"),
        ({"shard": "1/2", "run": "shard"}, "allocate does not apply to a shard"),
    ],
)
def test_what_cannot_be_allocated_is_refused(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    if "run" in settings:
        settings = settings | {"run": tmp_path / settings["run"]}
    with pytest.raises(SpecError, match=message):
        routeprism.audit("sample", "recent:k=2", models=[Noisy()], **REQUESTS | settings)
