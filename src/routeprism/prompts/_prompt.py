r"""Prompts: their layout, the places of padding, their lengths and identities.

    INSTRUCTION

    <memory>
    records begin[ one one …]
    CONTEXT
    records end[ one one …]
    </memory>

    [RULE

    ][Question date
    DATE

    ]Question
    QUESTION

    [Options
    a) FIRST
    b) SECOND

    ]SUFFIX

Padding continues one of the two lines around the context, so it never touches a record, and k
fillers are k tokens more, whatever the context is. That follows from how `o200k_base` cuts text
before it merges bytes: it cuts from left to right, without looking back, and

- a filler (a space and letters) after the letters of `begin` or `end`, or after another filler, is
  a piece of its own, and so is the line break that follows it;
- a piece that holds a line break ends at the latest line break of its white space, unless a slash
  follows punctuation and a line break. Both lines begin and end with letters, so a cut falls before
  `records end`, whatever the context ends with, and before the context's first line that is not
  blank, whatever that begins with.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from routeprism.models import Ask
from routeprism.prompts._draft import Draft
from routeprism.records import letters
from routeprism.text import tokens

__all__ = ["Layout", "Prompt", "Span", "lay_out", "read_prompt"]


_BLANK_LINES = re.compile(
    r"[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*[\r\n]"
)
"""White space (as the tokeniser understands it) up to its last line break."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A whole prompt's text and the places of its parts, known from writing it."""

    text: str
    memory: tuple[int, int]
    """The characters of the memory field: both its lines, their padding, and the context."""
    evidence: tuple[int, int]
    """The characters of the context."""
    evidence_begins: int
    """Where the context's first line that is not blank begins."""
    question: tuple[int, int]
    """The characters of the question."""
    question_begins: int
    """Where the question's first line that is not blank begins."""


def lay_out(draft: Draft, before: str = "", after: str = "") -> Layout:
    """Write a draft out, with padding before and after its context."""
    head = f"{draft.instruction}\n\n<memory>\n"
    opening = f"records begin{before}\n"
    # Without a context the two lines follow each other, so that both still start with a token.
    context = f"{draft.context}\n" if draft.context else ""
    closing = f"records end{after}"
    rule = f"{draft.rule}\n\n" if draft.rule else ""
    date = f"Question date\n{draft.date}\n\n" if draft.date else ""
    asking = f"\n</memory>\n\n{rule}{date}Question\n"
    lettered = zip(letters(len(draft.options)), draft.options, strict=True)
    option_lines = "".join(f"{letter}) {option}\n" for letter, option in lettered)
    options = f"Options\n{option_lines}\n" if option_lines else ""

    evidence = len(head) + len(opening)
    end = evidence + len(context) + len(closing)
    question = end + len(asking)
    return Layout(
        text=f"{head}{opening}{context}{closing}{asking}{draft.question}\n\n{options}{draft.suffix}",
        memory=(len(head), end),
        evidence=(evidence, evidence + len(draft.context)),
        evidence_begins=evidence + _blank(context),
        question=(question, question + len(draft.question)),
        question_begins=question + _blank(draft.question),
    )


def _blank(text: str) -> int:
    match = _BLANK_LINES.match(text)
    return match.end() if match else 0


@dataclass(frozen=True, slots=True)
class Span:
    """The place of a part in a prompt."""

    start: int
    """Its first character."""
    end: int
    """The character after its last."""
    begins: int
    """The character where its first line that is not blank begins; `start` for ordinary text."""
    token: int | None
    """The number of tokens before `begins`; None if it falls inside a token."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """The whole text that a model reads once."""

    text: str
    """All of it."""
    sha256: str
    """The digest of the text: the prompt's identity."""
    tokens: int
    """The number of `o200k_base` tokens of the text."""
    memory: str
    """The memory field as it is shown, padding included."""
    question: str
    """The question."""
    options: tuple[str, ...]
    """The answer options, without their letters; empty for free text."""
    evidence_span: Span
    """The place of the context."""
    question_span: Span
    """The place of the question."""
    padding: tuple[int, int] = (0, 0)
    """The numbers of fillers before and after the context."""

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
