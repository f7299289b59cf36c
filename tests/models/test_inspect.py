"""Inspect AI's providers, through its mock; skipped where Inspect AI is not installed."""

from __future__ import annotations

import asyncio
import importlib.util
import pickle
import sys
from typing import Any

import pytest

from routeprism.errors import MissingExtraError, ModelError, SpecError
from routeprism.models import Ask, Model, Usage
from routeprism.models.inspect_ai import InspectModel
from routeprism.policies.interfaces import record_block
from routeprism.prompts import categorical, match
from routeprism.records import load_benchmark

installed = pytest.mark.skipif(
    importlib.util.find_spec("inspect_ai") is None,
    reason="inspect-ai not installed; pip install 'routeprism[inspect]' to run it",
)

pytestmark = pytest.mark.filterwarnings(
    # Inspect AI 0.3.285 calls its retry library in a way that the library has deprecated.
    "ignore:The 'initial' parameter is deprecated:DeprecationWarning"
)

PLAIN = Ask("Which one?", "", "Which one?", ("this", "that"), 0)


def test_it_keeps_the_contract_of_a_model() -> None:
    model = InspectModel("mockllm/model", temperature=0.5, concurrency=4)
    assert isinstance(model, Model)
    assert (model.name, model.embedded, model.concurrency) == ("inspect:mockllm/model", False, 4)
    assert model.settings == {"temperature": 0.5, "max_tokens": None, "seed": None}
    assert pickle.loads(pickle.dumps(model)) == model  # noqa: S301


def test_settings_hold_plain_arguments_and_no_key() -> None:
    model = InspectModel(
        "mockllm/model", arguments={"device": "cpu", "api_key": "never", "custom_outputs": []}
    )
    assert model.settings["arguments.device"] == "cpu"
    assert "never" not in f"{model.settings}{model!r}"


@pytest.mark.parametrize("name", ["", "openai", "openai/", "/model"])
def test_a_name_without_provider_or_model_is_refused(name: str) -> None:
    with pytest.raises(SpecError, match="Expected 'inspect:PROVIDER/MODEL'"):
        InspectModel(name)


def test_impossible_settings_are_refused() -> None:
    impossible: list[dict[str, Any]] = [{"concurrency": 0}, {"retries": -1}, {"temperature": -0.5}]
    for wrong in impossible:
        with pytest.raises(SpecError, match=f"but got {next(iter(wrong))}="):
            InspectModel("mockllm/model", **wrong)


def test_without_the_extra_it_says_which_one_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "inspect_ai.model", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'routeprism\[inspect\]'"):
        asyncio.run(InspectModel("mockllm/model").answer(PLAIN))


def output(text: str, **fields: Any) -> Any:
    """Make an answer with its usage; the mock would download a tokeniser to count it."""
    from inspect_ai.model import (  # type: ignore[import-not-found, unused-ignore]
        ModelOutput,
        ModelUsage,
    )

    result = ModelOutput.from_content("mockllm", text, **fields)
    result.usage = ModelUsage(input_tokens=7, output_tokens=2, total_tokens=9)
    return result


@pytest.mark.slow
@installed
def test_ten_sample_questions_go_through_the_mock() -> None:
    cases = load_benchmark("sample").cases
    pairs = [(case, question) for case in cases for question in case.questions][:10]
    entries: list[tuple[str, Any]] = []

    def reply(messages: Any, tools: Any, choice: Any, config: Any) -> Any:
        entries.append((messages[-1].text, config))
        return output("b")

    model = InspectModel(
        "mockllm/model", temperature=0.25, seed=100, arguments={"custom_outputs": reply}
    )
    prompts = []
    for case, question in pairs:
        blocks = [record_block(record) for record in case.pool.records]
        matched = match([categorical(blocks, question)], "none", "A")
        prompts.append(matched.prompts[0])  # type: ignore[union-attr]

    async def collect() -> list[Any]:
        return await asyncio.gather(*(model.answer(prompt.ask(3)) for prompt in prompts))

    replies = asyncio.run(collect())
    assert [reply.raw for reply in replies] == ["b"] * 10
    assert {reply.usage for reply in replies} == {Usage(7, 2)}
    assert sorted(text for text, _ in entries) == sorted(prompt.text for prompt in prompts)
    assert {(config.temperature, config.seed) for _, config in entries} == {(0.25, 103)}


@installed
def test_a_withheld_answer_is_a_refusal() -> None:
    outputs = [output("No.", stop_reason="content_filter")]
    model = InspectModel("mockllm/model", arguments={"custom_outputs": outputs})
    assert asyncio.run(model.answer(PLAIN)).raw == "[refused] No."


@installed
def test_failures_become_model_errors_that_quote_nothing() -> None:
    def fail(*arguments: Any) -> Any:
        raise RuntimeError("Incorrect key provided: sk-secret")

    failing = InspectModel("mockllm/model", retries=0, arguments={"custom_outputs": fail})
    with pytest.raises(ModelError, match="inspect:mockllm/model gave no answer: Runtime") as caught:
        asyncio.run(failing.answer(PLAIN))
    assert "secret" not in str(caught.value)


@installed
def test_an_unknown_provider_is_named() -> None:
    with pytest.raises(ModelError, match="inspect:nobody/model cannot be opened"):
        asyncio.run(InspectModel("nobody/model").answer(PLAIN))


@installed
def test_it_can_be_asked_from_one_event_loop_after_another() -> None:
    model = InspectModel(
        "mockllm/model", arguments={"custom_outputs": lambda *arguments: output("a")}
    )
    assert [asyncio.run(model.answer(PLAIN)).raw for _ in range(2)] == ["a", "a"]
