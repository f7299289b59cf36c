"""Prompts: what a model reads, with its identity, its length and the places of its parts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from routeprism.models import Ask
from routeprism.prompts._layout import Layout
from routeprism.text import tokens

__all__ = ["Prompt", "Span", "read_prompt"]


@dataclass(frozen=True, slots=True)
class Span:
    """Where a part of a prompt stands."""

    start: int
    """Its first character."""
    end: int
    """The character after its last."""
    begins: int
    """The character where its first line that is not blank begins; `start` for ordinary text."""
    token: int | None
    """How many tokens stand before `begins`; None where that falls inside a token."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """The whole text that a model reads once."""

    text: str
    """All of it."""
    sha256: str
    """The digest of the text: the prompt's identity."""
    tokens: int
    """How many `o200k_base` tokens the text has."""
    memory: str
    """The memory field as it is shown, padding included."""
    question: str
    """The question."""
    options: tuple[str, ...]
    """The answer options, without their letters; empty for free text."""
    evidence_span: Span
    """Where the context stands."""
    question_span: Span
    """Where the question stands."""
    padding: tuple[int, int] = (0, 0)
    """How many fillers stand before and after the context."""

    @property
    def evidence(self) -> str:
        """The context alone: the memory field without its two lines and their padding."""
        return self.text[self.evidence_span.start : self.evidence_span.end]

    def ask(self, draw: int) -> Ask:
        """Make the request for one draw."""
        return Ask(self.text, self.memory, self.question, self.options, draw)


def read_prompt(
    layout: Layout, ids: Sequence[int], options: tuple[str, ...], padding: tuple[int, int]
) -> Prompt:
    """Make the prompt of a laid-out text from the text's own tokens."""
    text = layout.text
    # The evidence begins near the front and the question near the end: neither needs all tokens.
    evidence = tokens.boundary(ids, len(text[: layout.evidence_begins].encode()))
    asking = tokens.boundary(reversed(ids), len(text[layout.question_begins :].encode()))
    return Prompt(
        text=text,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        tokens=len(ids),
        memory=text[slice(*layout.memory)],
        question=text[slice(*layout.question)],
        options=options,
        evidence_span=Span(*layout.evidence, layout.evidence_begins, evidence),
        question_span=Span(
            *layout.question,
            layout.question_begins,
            None if asking is None else len(ids) - asking,
        ),
        padding=padding,
    )
