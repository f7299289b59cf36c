"""Drafts: everything of a prompt before padding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Literal, get_args

from routeprism.errors import InputError, SpecError, nearest
from routeprism.policies import Block, Exposure
from routeprism.prompts import _wording as wording
from routeprism.records import Question

__all__ = ["Draft", "Provenance", "categorical", "free_text"]

Provenance = Literal["preserved", "gated", "neutral", "placebo"]
"""What the prompt says about conflicting records (Appendix I.12)."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A prompt before padding, piece by piece."""

    instruction: str
    """What to do, before the memory field."""
    context: str
    """The evidence: the compiled context, byte for byte."""
    rule: str
    """What the provenance variant says after the memory field; empty for `preserved`."""
    date: str
    """The day the question is asked, as the benchmark writes it; empty where it has none."""
    question: str
    """The question's text."""
    options: tuple[str, ...]
    """The answer options, without their letters; empty for free text."""
    suffix: str
    """The line that asks for the answer."""
    provenance: Provenance = "preserved"
    """Which variant the rule is."""

    def __post_init__(self) -> None:
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            for text in (value,) if isinstance(value, str) else value:
                try:
                    text.encode()
                except UnicodeEncodeError as error:
                    raise InputError(
                        f"character {error.start} is half of a surrogate pair, which no prompt "
                        f"can hold; repair the text it came from",
                        field=name,
                    ) from None

    @property
    def frame(self) -> tuple[object, ...]:
        """What drafts must share to be compared: everything except the evidence.

        The placebo's rule numbers the blocks of its own evidence, so it is not part of this.
        """
        rule = "" if self.provenance == "placebo" else self.rule
        return (
            self.instruction,
            rule,
            self.date,
            self.question,
            self.options,
            self.suffix,
            self.provenance,
        )


def categorical(
    context: str | Sequence[Block], question: Question, *, provenance: Provenance = "preserved"
) -> Draft:
    """Draft a question with options, to be answered by one lower-case letter.

    `context` is the compiled text or the blocks it is made of; `placebo` needs the blocks.
    """
    if not question.options:
        raise InputError(
            f"question '{question.id}' has no options; ask it with free_text", field="options"
        )
    return Draft(
        instruction=wording.choose(len(question.options)),
        context=context if isinstance(context, str) else Exposure(tuple(context)).context,
        rule=_rule(provenance, context, question.user),
        date="",
        question=question.text,
        options=question.options,
        suffix=wording.LETTER_SUFFIX,
        provenance=provenance,
    )


def free_text(
    context: str | Sequence[Block],
    question: Question,
    *,
    question_date: str | None = None,
    dates: Mapping[str, str] | None = None,
    provenance: Provenance = "preserved",
) -> Draft:
    """Draft a question to be answered in words; its options, if any, are not shown.

    `dates` gives records' dates by their ids, in source order: each block is then shown under the
    dates of its sources, which needs the blocks. No block's own text changes.
    """
    shown = _dated(context, dates) if dates else context
    return Draft(
        instruction=wording.FREE_TEXT,
        context=shown if isinstance(shown, str) else Exposure(tuple(shown)).context,
        rule=_rule(provenance, context, question.user),
        date=question_date or "",
        question=question.text,
        options=(),
        suffix=wording.FREE_TEXT_SUFFIX,
        provenance=provenance,
    )


def _rule(provenance: Provenance, context: str | Sequence[Block], user: str) -> str:
    if provenance == "placebo":
        return wording.placebo(_blocks(context, "the placebo's numbers"), user)
    rules = {"preserved": "", "gated": wording.GATED, "neutral": wording.NEUTRAL}
    if provenance not in rules:
        raise SpecError(
            f"There is no provenance '{provenance}'. {nearest(provenance, get_args(Provenance))}"
        )
    return rules[provenance]


def _dated(context: str | Sequence[Block], dates: Mapping[str, str]) -> tuple[Block, ...]:
    dated = []
    for block in _blocks(context, "dates"):
        days = dict.fromkeys(day for id, day in dates.items() if id in block.sources)
        head = f"[date {', '.join(days)}]\n" if days else ""
        dated.append(Block(block.kind, head + block.text, block.sources))
    return tuple(dated)


def _blocks(context: str | Sequence[Block], what: str) -> Sequence[Block]:
    if isinstance(context, str):
        raise InputError(
            f"Expected the blocks of an exposure but got their text; {what} belong to blocks",
            field="context",
        )
    return context
