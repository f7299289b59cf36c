"""Local transformers weights, on a tiny model that is made here with random weights."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path

import pytest

from routeprism.errors import InputError, MissingExtraError, ModelError, SpecError
from routeprism.models import Ask, Model
from routeprism.models import hf as module
from routeprism.models.hf import HuggingFace

absent = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
installed = pytest.mark.skipif(
    bool(absent),
    reason=f"{' and '.join(absent)} not installed; pip install 'routeprism[hf]' to run it",
)

OPTIONS = ("rye bread", "the ferry", "tar")


def make_ask(draw: int = 0, options: tuple[str, ...] = OPTIONS, memory: str = "rye bread") -> Ask:
    return Ask(f"{memory} what ?", memory, "what ?", options, draw)


def test_a_directory_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no model in it: no config\.json"):
        HuggingFace(str(tmp_path))


def test_settings_are_checked_and_name_the_weights(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    model = HuggingFace(str(tmp_path), temperature=0.5)
    assert isinstance(model, Model)
    assert (model.name, model.embedded, model.concurrency) == (f"hf:{tmp_path}", False, 1)
    assert model.settings["temperature"] == 0.5
    expected = tmp_path / "other"
    expected.mkdir()
    (expected / "config.json").write_text('{"a": 1}')
    assert HuggingFace(str(expected)).settings["weights"] != model.settings["weights"]
    with pytest.raises(SpecError, match="but got max_tokens=0"):
        HuggingFace(str(tmp_path), max_tokens=0)


def test_without_the_extra_it_says_which_one_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.json").write_text("{}")
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(module, "_engine", module._engine.__wrapped__)
    with pytest.raises(MissingExtraError, match=r"pip install 'routeprism\[hf\]'"):
        HuggingFace(str(tmp_path)).answer(make_ask())


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A two-layer model over a vocabulary of a few words, saved as transformers saves them."""
    import tokenizers  # type: ignore[import-not-found, unused-ignore]
    import torch  # type: ignore[import-not-found, unused-ignore]
    import transformers  # type: ignore[import-not-found, unused-ignore]

    vocabulary = "[PAD] [EOS] [UNK] rye bread the ferry tar what ? Question: Answer:".split()
    plain = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({w: i for i, w in enumerate(vocabulary)}, unk_token="[UNK]")  # noqa: S106
    )
    plain.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=plain,
        pad_token="[PAD]",  # noqa: S106
        eos_token="[EOS]",  # noqa: S106
        unk_token="[UNK]",  # noqa: S106
    )
    torch.manual_seed(7)
    model = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=len(vocabulary),
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            max_position_embeddings=64,
            bos_token_id=1,
            eos_token_id=1,
            pad_token_id=0,
            initializer_range=0.5,
        )
    )
    directory = tmp_path_factory.mktemp("tiny")
    tokenizer.save_pretrained(directory)
    model.save_pretrained(directory)
    return str(directory)


@installed
def test_options_are_scored_by_likelihood_with_memory_minus_without(tiny: str) -> None:
    import torch  # type: ignore[import-not-found, unused-ignore]
    import transformers  # type: ignore[import-not-found, unused-ignore]

    model = transformers.AutoModelForCausalLM.from_pretrained(tiny).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny)

    def likelihood(context: str, text: str) -> float:
        """Work it out token by token, each after all before it."""
        before = tokenizer.encode(context, add_special_tokens=False)
        total = 0.0
        for token in tokenizer.encode(text, add_special_tokens=False):
            with torch.no_grad():
                last = model(torch.tensor([before])).logits[0, -1].double()
            total += math.log(float(torch.softmax(last, -1)[token]))
            before.append(token)
        return total

    alone = "Question: what ? Answer:"
    expected = [
        (likelihood(f"rye bread {alone}", text) - likelihood(alone, text)) / len(text.split())
        for text in OPTIONS
    ]
    reply = HuggingFace(tiny).answer(make_ask())
    assert reply.scores == pytest.approx(expected, abs=1e-4)
    assert reply.raw == "abc"[expected.index(max(expected))]
    assert reply.usage.input_tokens == 6  # two words of memory, four of the question


@installed
def test_draws_are_repeatable_and_differ_at_a_high_temperature(tiny: str) -> None:
    hot = HuggingFace(tiny, temperature=50.0)
    texts = [hot.answer(make_ask(draw)).raw for draw in range(40)]
    assert set(texts) == {"a", "b", "c"}
    assert texts == [hot.answer(make_ask(draw)).raw for draw in range(40)]


@installed
def test_free_text_is_greedy_or_sampled_and_leaves_the_random_state_alone(tiny: str) -> None:
    import torch  # type: ignore[import-not-found, unused-ignore]

    greedy = HuggingFace(tiny, max_tokens=5)
    sampled = HuggingFace(tiny, max_tokens=5, temperature=5.0)
    before = torch.random.get_rng_state()
    first = greedy.answer(make_ask(0, ()))
    assert first.raw == greedy.answer(make_ask(1, ())).raw
    assert first.usage.output_tokens is not None
    assert first.usage.output_tokens <= 5
    texts = [sampled.answer(make_ask(draw, ())).raw for draw in range(8)]
    assert len(set(texts)) > 1
    assert texts == [sampled.answer(make_ask(draw, ())).raw for draw in range(8)]
    assert torch.equal(before, torch.random.get_rng_state())


@installed
def test_a_memory_beyond_its_positions_is_refused(tiny: str) -> None:
    with pytest.raises(ModelError, match="reads 64 tokens at once"):
        HuggingFace(tiny).answer(make_ask(memory="rye " * 80))
    with pytest.raises(ModelError, match="reads 64 tokens at once"):
        HuggingFace(tiny).answer(make_ask(options=(), memory="rye " * 80))


@installed
def test_broken_weights_are_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "none"}')
    with pytest.raises(ModelError, match="cannot be loaded"):
        HuggingFace(str(tmp_path)).answer(make_ask())
