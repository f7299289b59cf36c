"""The contracts of models: `Model`, its requests (`Ask`) and its replies (`Reply`)."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


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
    """The number of the draw; a sampling model in this process derives its seed from it."""
    place: tuple[tuple[str, str], ...] = ()
    """(name, value) of question, policy, schedule, condition and other columns, for recorded
    answers that are found by their place; a model does not read it."""
    turn: int = 0
    """The number of the draw within its route or condition, from 0."""
    batch: str = ""
    """The realisation of the same requests that this belongs to, likewise for recorded answers."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens and the cost of an answer; None if they are not known."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    """In the currency of the prices."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The unchanged reply of a model, from which others read the answer."""

    raw: str
    """The text of the answer; the letter, if the model chooses among options."""
    usage: Usage = Usage()
    scores: tuple[float, ...] | None = None
    """A score for each option, if the model has them."""
    attempts: tuple[str, ...] = ()
    """A line for each earlier attempt that failed, without secrets."""
    correct: bool | None = None
    """The verdict of an answer that was judged elsewhere."""
    order: int | None = None
    """Its place in the order of requests, if it was collected elsewhere."""
    marks: tuple[str, ...] = ()
    """The parts of it that could not be stored unchanged, in words."""


@runtime_checkable
class Model(Protocol):
    """Answers prompts. `answer` may be a plain method or a coroutine."""

    @property
    def name(self) -> str:
        """The spec in every output, such as `reader` or `openai:some-model`."""

    @property
    def settings(self) -> Mapping[str, str | int | float | bool | None]:
        """Everything that can change an answer; part of the ledger's key. Never a secret."""

    @property
    def embedded(self) -> bool:
        """Whether it is built into this package; every output then marks it."""

    @property
    def concurrency(self) -> int:
        """The number of requests that it accepts at once."""

    def answer(self, ask: Ask, /) -> Reply | Awaitable[Reply]:
        """Answer once; raise `routeprism.errors.ModelError` if there is no answer."""
