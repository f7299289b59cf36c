"""The contracts: who can be asked, what they are asked, and what comes back."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

__all__ = ["Ask", "Model", "Reply", "Usage"]


@dataclass(frozen=True, slots=True)
class Ask:
    """One request for one answer."""

    text: str
    """The whole prompt; its SHA-256 is the prompt's identity."""
    memory: str
    """The memory field within it, for models that read passages or score with and without it."""
    question: str
    """The question within it."""
    options: tuple[str, ...]
    """The answer options, without their letters; empty for free text."""
    draw: int
    """Which draw this is; a sampling model in process takes its seed from prompt and draw."""
    place: tuple[tuple[str, str], ...] = ()
    """(name, value) of question, policy, schedule, condition and what else tells it apart, for
    answers that are looked up by where they belong; nobody who answers reads it."""
    turn: int = 0
    """Which draw of its own route or condition this is, from 0."""
    batch: str = ""
    """Which realisation of the same requests this is, likewise for answers that are looked up."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What an answer took; None where it is not known."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    """In the currency of the prices that were given."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back, as it came; reading a letter out of it is not the model's business."""

    raw: str
    """The text of the answer; a model that chooses among options gives the letter."""
    usage: Usage = Usage()
    scores: tuple[float, ...] | None = None
    """One score for each option, from models that have them."""
    attempts: tuple[str, ...] = ()
    """One line for each attempt that failed before this one, without secrets."""
    correct: bool | None = None
    """The verdict that came with it, from answers that were judged elsewhere."""
    order: int | None = None
    """Its place in the order of asking, from answers that were collected elsewhere."""


@runtime_checkable
class Model(Protocol):
    """Answers prompts. `answer` may be a plain method or a coroutine."""

    @property
    def name(self) -> str:
        """The spec that every output says, such as `reader` or `openai:some-model`."""

    @property
    def settings(self) -> Mapping[str, str | int | float | bool | None]:
        """All that can change an answer; part of the ledger's key. Never a secret."""

    @property
    def embedded(self) -> bool:
        """Whether it is built into this package, which every output then says."""

    @property
    def concurrency(self) -> int:
        """How many requests it takes at once."""

    def answer(self, ask: Ask, /) -> Reply | Awaitable[Reply]:
        """Answer once; raise `routeprism.errors.ModelError` where no answer can be had."""
