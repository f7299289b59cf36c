"""`hf:PATH`: weights on this machine, through `transformers`; nothing is downloaded.

Options are scored by the likelihood of their texts, with the memory minus without it; the rest of
the prompt is not read then. Free text is generated from the whole prompt, in the model's own chat
format if it has one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from routeprism import specs
from routeprism.errors import InputError, MissingExtraError, ModelError
from routeprism.models._contracts import Ask, Reply, Usage
from routeprism.models._scores import (
    OptionContrast,
    check_temperature,
    choose_option,
    contrast_options,
    derive_seed,
)

__all__ = ["HuggingFace"]


@dataclass(frozen=True, slots=True)
class HuggingFace:
    """A causal language model from a directory in the format of `transformers`."""

    path: str
    """The directory with `config.json`, the weights and the tokeniser."""
    temperature: float = 0.0
    """Temperature of the softmax over scores and of free text; 0 answers greedily."""
    max_tokens: int = 128
    """The longest free-text answer."""
    device: str = "cpu"
    """The torch device."""

    embedded: ClassVar[bool] = False
    concurrency: ClassVar[int] = 1
    """One answer already uses the whole device."""

    def __post_init__(self) -> None:
        check_temperature("hf", self.temperature)
        specs.positive("hf", max_tokens=self.max_tokens)
        if not (Path(self.path) / "config.json").is_file():
            raise InputError("there is no model in it: no config.json", file=self.path)

    @property
    def name(self) -> str:
        """The spec in every output."""
        return f"hf:{self.path}"

    @property
    def settings(self) -> Mapping[str, str | int | float | bool | None]:
        """The weights, and how they are used."""
        return {
            "weights": _identity(self.path),
            "temperature": float(self.temperature),
            "max_tokens": self.max_tokens,
            "device": self.device,
            "version": 1,
        }

    def scores(self, ask: Ask) -> tuple[float, ...]:
        """Return each option's mean token log-likelihood with the memory minus without it."""
        return self._contrast(ask).scores

    def answer(self, ask: Ask, /) -> Reply:
        """Return an option's letter, or a generated text."""
        if not ask.options:
            return _engine(self.path, self.device).write(
                ask.text, self.temperature, self.max_tokens, derive_seed(ask.text, ask.draw)
            )
        scores, tokens = self._contrast(ask)
        return choose_option(ask, scores, self.temperature, Usage(tokens, 0))

    def _contrast(self, ask: Ask) -> OptionContrast:
        return _contrast(self.path, self.device, ask.memory, ask.question, ask.options)


@lru_cache(maxsize=256)
def _contrast(
    path: str, device: str, memory: str, question: str, options: tuple[str, ...]
) -> OptionContrast:
    engine = _engine(path, device)
    return contrast_options(
        engine, memory, question, options, model=f"hf:{path}", longest=engine.longest
    )


@lru_cache(maxsize=8)
def _identity(path: str) -> str:
    """Identify weights without reading gigabytes: by the configuration and all names and sizes."""
    directory = Path(path)
    digest = hashlib.sha256((directory / "config.json").read_bytes())
    for file in sorted(directory.iterdir()):
        if file.is_file():
            digest.update(f"\n{file.name} {file.stat().st_size}".encode())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class _Engine:
    """A loaded model and its tokeniser."""

    torch: Any
    tokenizer: Any
    model: Any

    @property
    def longest(self) -> int | None:
        """The number of positions that it was trained on."""
        value = getattr(self.model.config, "max_position_embeddings", None)
        return int(value) if value else None

    def tokens(self, text: str, /) -> list[int]:
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False)
        return ids

    def likelihood(self, context: Sequence[int], text: Sequence[int], /) -> float:
        """Sum the log-probabilities of a text's tokens after a context, in one pass."""
        if not text:
            return 0.0
        ids = self.torch.tensor([[*context, *text]], device=self.model.device)
        with self.torch.inference_mode():
            logits = self.model(input_ids=ids).logits[0, len(context) - 1 : -1].float()
        targets = ids[0, len(context) :].unsqueeze(1)
        return float(logits.log_softmax(dim=-1).gather(1, targets).sum())

    def write(self, text: str, temperature: float, max_tokens: int, seed: int) -> Reply:
        """Generate an answer with a random state of its own."""
        ids = self._prompt(text)
        if self.longest is not None and len(ids) >= self.longest:
            raise ModelError(
                f"hf reads {self.longest} tokens at once but this prompt has {len(ids)}"
            )
        room = max_tokens if self.longest is None else min(max_tokens, self.longest - len(ids))
        prompt = self.torch.tensor([ids], device=self.model.device)
        sampling = {"do_sample": True, "temperature": temperature} if temperature else {}
        end = self.tokenizer.pad_token_id
        with self.torch.random.fork_rng(), self.torch.inference_mode():
            self.torch.manual_seed(seed % (1 << 63))
            output = self.model.generate(
                input_ids=prompt,
                attention_mask=self.torch.ones_like(prompt),
                max_new_tokens=room,
                pad_token_id=self.tokenizer.eos_token_id if end is None else end,
                **(sampling or {"do_sample": False}),
            )[0, len(ids) :]
        answer: str = self.tokenizer.decode(output, skip_special_tokens=True)
        return Reply(answer.strip(), Usage(len(ids), len(output)))

    def _prompt(self, text: str) -> list[int]:
        if not getattr(self.tokenizer, "chat_template", None):
            ids: list[int] = self.tokenizer.encode(text)
            return ids
        prompt = self.tokenizer.apply_chat_template(
            [{"role": "user", "content": text}], add_generation_prompt=True, tokenize=False
        )
        return self.tokens(prompt)


@lru_cache(maxsize=1)
def _engine(path: str, device: str) -> _Engine:
    """Load the weights once for a process."""
    try:
        import torch  # type: ignore[import-not-found, unused-ignore]
        import transformers  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise MissingExtraError(f"hf:{path}", "hf") from None
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(path, local_files_only=True)
        load: Any = transformers.AutoModelForCausalLM
        model = load.from_pretrained(path, local_files_only=True)
        return _Engine(torch, tokenizer, model.to(device).eval())
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise ModelError(f"hf:{path} cannot be loaded: {error}") from error
