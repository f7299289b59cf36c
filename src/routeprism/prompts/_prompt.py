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

Matching brings the prompts of one comparison to the same length by computation, then checks them:

- `none`: no padding, and nothing is asserted.
- `exact`: fillers after the context, up to the longest prompt. Equal totals.
- `balanced`: fillers after the context, up to the longest prompt and 64 tokens more, so that every
  prompt of the comparison is padded. Equal totals.
- `aligned`: the same 32 fillers before every context, then as `exact`. Equal totals, and the
  evidence as well as the question begin after the same number of tokens.

Each prompt is tokenised once to measure it and, if it was padded, once more as a whole to check it.
Whatever fails the check is reported, never corrected until it fits.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from routeprism.errors import InputError, SpecError, nearest
from routeprism.models import Ask
from routeprism.prompts._draft import Draft
from routeprism.records import letters
from routeprism.text import tokens

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


Control = Literal["none", "exact", "balanced", "aligned"]
"""The lengths that are made equal in all prompts of a comparison."""
Filler = Literal["A", "B"]
"""Which word padding repeats."""

CONTROLS: tuple[Control, ...] = get_args(Control)
FILLERS: Mapping[Filler, str] = {"A": " one", "B": " x"}
"""The word of each filler; each is one token."""

PREFIX = 32
"""The number of fillers before every context under `aligned`."""
EXTENSION = 64
"""The smallest number of fillers of a prompt under `balanced`."""

_Laid: TypeAlias = tuple[Layout, list[int]]


@dataclass(frozen=True, slots=True)
class Matched:
    """Prompts that passed the check."""

    prompts: tuple[Prompt, ...]
    """One for each draft, in the drafts' order."""
    control: Control
    filler: Filler


@dataclass(frozen=True, slots=True)
class Unmatched:
    """Drafts that could not be matched; they stay out of matched estimates."""

    reason: str
    """Why, in words a person can act on."""
    control: Control
    filler: Filler


def match(drafts: Sequence[Draft], control: Control, filler: Filler = "A") -> Matched | Unmatched:
    """Bring the drafts of one comparison (a pair, or four conditions) to the same length."""
    _check_call(drafts, control, filler)
    word = FILLERS[filler]
    before = PREFIX if control == "aligned" else 0

    def lay(draft: Draft, after: int) -> _Laid:
        layout = lay_out(draft, word * before, word * after)
        return layout, tokens.encode(layout.text)

    laid = [lay(draft, 0) for draft in drafts]
    missing = [0] * len(laid)
    if control != "none":
        target = max(len(ids) for _, ids in laid) + (EXTENSION if control == "balanced" else 0)
        missing = [target - len(ids) for _, ids in laid]
        laid = [
            lay(draft, after) if after else whole  # what needs no padding was read as a whole
            for draft, whole, after in zip(drafts, laid, missing, strict=True)
        ]
    prompts = tuple(
        read_prompt(layout, ids, draft.options, (before, after))
        for draft, (layout, ids), after in zip(drafts, laid, missing, strict=True)
    )
    reason = _describe_inequality(prompts, control)
    return Unmatched(reason, control, filler) if reason else Matched(prompts, control, filler)


def _describe_inequality(prompts: Sequence[Prompt], control: Control) -> str:
    """Describe which promise of the control the tokens break."""
    if control == "none":
        return ""
    if reason := _describe_difference(
        "after padding the prompts have", [p.tokens for p in prompts]
    ):
        return f"{reason} tokens"
    if control != "aligned":
        return ""
    for part, spans in (
        ("evidence", [prompt.evidence_span for prompt in prompts]),
        ("question", [prompt.question_span for prompt in prompts]),
    ):
        if any(span.token is None for span in spans):
            return f"the {part} begins inside a token"
        begins = [span.token for span in spans if span.token is not None]
        if reason := _describe_difference(f"the {part} begins after", begins):
            return f"{reason} tokens"
    return ""


def _describe_difference(quantity: str, numbers: Sequence[int]) -> str:
    if len(set(numbers)) <= 1:
        return ""
    return f"{quantity} " + ", ".join(map(str, numbers[:-1])) + f" and {numbers[-1]}"


def _check_call(drafts: Sequence[Draft], control: Control, filler: Filler) -> None:
    if control not in CONTROLS:
        raise SpecError(f"There is no prompt control '{control}'. {nearest(control, CONTROLS)}")
    if filler not in FILLERS:
        raise SpecError(f"There is no filler '{filler}'. {nearest(filler, FILLERS)}")
    if not drafts:
        raise InputError("Expected at least one draft but got none", field="drafts")
    if any(draft.frame != drafts[0].frame for draft in drafts):
        raise InputError(
            "Expected drafts that differ in their evidence alone but got different instructions, "
            "questions, dates, options or suffixes",
            field="drafts",
        )
