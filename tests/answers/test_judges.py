"""Judges: what they see, how their word is read, and what the embedded one counts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from routeprism.answers import (
    EmbeddedJudge,
    Judge,
    Judged,
    ModelJudge,
    Verdict,
    ask_judge,
    judge_all,
    rubric_of,
)
from routeprism.errors import SpecError
from routeprism.models import Ask, Reply
from routeprism.runs import Run


@dataclass
class Says:
    """A model with one thing to say."""

    word: str
    name: str = "says"
    embedded: bool = False
    concurrency: int = 2
    asked: list[Ask] = field(default_factory=list)

    @property
    def settings(self) -> Mapping[str, str | int | float | bool | None]:
        return {}

    async def answer(self, ask: Ask, /) -> Reply:
        self.asked.append(ask)
        return Reply(self.word)


ITEM = Judged("Where does she live?", "in Bern", "Her flat is near Lausanne.", "multi-session")


@pytest.mark.parametrize(
    ("word", "correct"),
    [
        ("yes", True),
        ("Yes.", True),
        ("**No**", False),
        ("no, it says Basel", False),
        ("I would say yes", True),
        ("Yes, there is no doubt", True),
        ("perhaps", None),
        ("neither yes nor no", None),
        ("No doubt about it, yes", None),
        ("", None),
        ("yesterday", None),
    ],
)
def test_the_word_of_a_model_is_yes_no_or_none(word: str, correct: bool | None) -> None:
    judge = ModelJudge(Says(word))
    assert judge.judge("q", "g", "r", "factual") == Verdict(correct, word)


def test_a_judge_sees_question_gold_and_response_only() -> None:
    model = Says("yes")
    ModelJudge(model).judge(ITEM.question, ITEM.gold, ITEM.response, ITEM.kind)
    (ask,) = model.asked
    for text in (ITEM.question, ITEM.gold, ITEM.response):
        assert ask.text.count(text) == 1
    assert (ask.memory, ask.options, ITEM.kind in ask.text) == ("", (), False)


def test_each_kind_has_its_rubric() -> None:
    kinds = ("factual", "temporal", "update", "preference", "abstention")
    texts = {kind: ask_judge(Judged("q", "g", "r", kind)).text for kind in kinds}
    assert len(set(texts.values())) == 5
    assert "off by one" in texts["temporal"] and "off by one" not in texts["factual"]
    assert "earlier one" in texts["update"]
    assert "need not meet every point" in texts["preference"]
    assert "cannot be answered" in texts["abstention"]


@pytest.mark.parametrize(
    ("kind", "question", "rubric"),
    [
        ("single-session-user", "q1", "factual"),
        ("single-session-assistant", "q1", "factual"),
        ("multi-session", "q1", "factual"),
        ("temporal-reasoning", "q1", "temporal"),
        ("knowledge-update", "q1", "update"),
        ("single-session-preference", "q1", "preference"),
        ("knowledge-update", "q1_abs", "abstention"),
        ("something else", "", "factual"),
        ("abstention", "", "abstention"),
    ],
)
def test_longmemeval_types_find_their_rubric(kind: str, question: str, rubric: str) -> None:
    assert rubric_of(kind, question) == rubric


def test_verdicts_go_through_the_ledger(tmp_path: Path) -> None:
    model = Says("no")
    with Run.open(tmp_path / "run", {"a": 1}, inputs={}) as run:
        judge = ModelJudge(model, run)
        alternative = Judged("Where?", "in Bern", "Basel")
        assert judge_all(judge, [ITEM, alternative, ITEM]) == [Verdict(False, "no")] * 3
        assert judge_all(judge, [ITEM, alternative]) == [Verdict(False, "no")] * 2
        assert len(model.asked) == 2
        with run.ledger() as ledger:
            assert ledger.count() == 2


def test_the_embedded_judge_says_that_it_is() -> None:
    judge = EmbeddedJudge()
    assert isinstance(judge, Judge) and isinstance(ModelJudge(Says("")), Judge)
    assert (judge.name, judge.embedded) == ("embedded:f1=0.5", True)
    assert ModelJudge(Says("")).name == "says"
    with pytest.raises(SpecError, match="threshold=0 "):
        EmbeddedJudge(threshold=0)


@pytest.mark.parametrize(
    ("gold", "response", "correct"),
    [
        ("in Bern", "She lives in Bern, since May.", True),
        ("The blue kettle", "a blue kettle", True),
        ("three", "thirty-three", True),  # hyphens part words: a known limit of counting words
        ("art", "She started.", False),  # whole words only
        ("a small red bicycle", "a red bicycle", True),  # F1 = 2·2/(3+2) = 0.8
        ("on the second of May in Bern", "May", False),  # F1 = 2·1/(6+1) = 0.29
        ("Bern", "Basel", False),
        ("?", "?", True),
        ("?", "!", False),
    ],
)
def test_the_embedded_judge_counts_words(gold: str, response: str, correct: bool) -> None:
    assert EmbeddedJudge().judge("q", gold, response, "factual") == Verdict(correct)


@pytest.mark.parametrize(
    ("response", "correct"),
    [
        ("You did not mention a cat.", True),
        ("There is no information about that.", True),
        ("I don't know.", True),
        ("The cat is called Momo.", False),
    ],
)
def test_the_embedded_judge_knows_abstentions(response: str, correct: bool) -> None:
    gold = "The user never spoke of a cat."
    assert EmbeddedJudge().judge("q", gold, response, "abstention") == Verdict(correct)


@pytest.mark.parametrize(
    ("gold", "response", "f1"),
    [
        # One of two tokens shared on either side: precision and recall are one half.
        ("red kettle", "blue kettle", 0.5),
        ("red", "blue", 0.0),
        ("red red", "red", 2 / 3),
    ],
)
def test_token_f1_by_hand(gold: str, response: str, f1: float) -> None:
    """A response is correct up to the threshold that equals its F1, and not above it."""
    above = EmbeddedJudge(math.nextafter(f1, 1)).judge("q", gold, response, "factual")
    assert above == Verdict(False)
    if f1:
        assert EmbeddedJudge(f1).judge("q", gold, response, "factual") == Verdict(True)
