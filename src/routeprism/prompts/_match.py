"""Matching: prompts of one comparison brought to the same length by computation, then checked.

- `none`: no padding, and nothing is asserted.
- `exact`: fillers after the context, up to the longest prompt. Equal totals.
- `balanced`: fillers after the context, up to the longest prompt and 64 tokens more, so that every
  prompt of the comparison is padded. Equal totals.
- `aligned`: the same 32 fillers before every context, then as `exact`. Equal totals, and the
  evidence as well as the question begin after the same number of tokens.

Each prompt is tokenised once to measure it and, if it was padded, once more as a whole to check it:
`routeprism.prompts._prompt` says why k fillers are k tokens. Whatever fails the check is reported,
never corrected until it fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from routeprism.errors import InputError, SpecError, nearest
from routeprism.prompts._draft import Draft
from routeprism.prompts._prompt import Layout, Prompt, lay_out, read_prompt
from routeprism.text import tokens

__all__ = ["CONTROLS", "FILLERS", "Control", "Filler", "Matched", "Unmatched", "match"]

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
