r"""Where everything stands in a prompt, and where padding may stand.

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

import re
from dataclasses import dataclass

from routeprism.prompts._draft import Draft
from routeprism.records import letters

__all__ = ["Layout", "lay_out"]

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
    named = zip(letters(len(draft.options)), draft.options, strict=True)
    listed = "".join(f"{letter}) {option}\n" for letter, option in named)
    options = f"Options\n{listed}\n" if listed else ""

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
    found = _BLANK_LINES.match(text)
    return found.end() if found else 0
