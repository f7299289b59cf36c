"""Drafts: everything in a prompt before padding, and our own wording of the instructions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Literal, get_args

from routeprism.errors import InputError, SpecError, nearest
from routeprism.policies import Block, Exposure
from routeprism.records import Question, letters

LETTER_SUFFIX = "Your answer, one lower-case letter:"
FREE_TEXT_SUFFIX = "Your answer:"

FREE_TEXT = (
    "You answer questions for a user, with the help of the memory records below, which come from "
    "earlier sessions. Anything you say about the user's own life, preferences or past events must "
    "be found in these records. Only where the user asks for a recommendation may you add general "
    "background knowledge. Use no tools and look nothing up."
)
"""Personal facts from the records only; background knowledge for recommendations (O.6)."""

_RANKED = (
    "Where two records contradict each other, the one with the higher {number} says how things "
    "stand now, and those with lower numbers say how they were before. The order in which records "
    "arrived or are shown must not overrule that number."
)

GATED = _RANKED.format(number="session number, as its header [session N] shows it,")
"""Conflicts go to the higher benchmark session index."""

NEUTRAL = (
    "Where two records contradict each other, weigh what each of them says. Do not infer from "
    "their order which one is the more recent."
)
"""Evidence is compared, with no rule about recency."""


def choose(options: int) -> str:
    """Ask for one option on the ground of the records alone."""
    valid = letters(options)
    letters_text = ", ".join(valid[:-1]) + f" or {valid[-1]}" if options > 1 else valid[0]
    return (
        "You answer questions for a user, with the help of the memory records below, which come "
        "from earlier sessions. Going by these records alone, pick the option that answers the "
        "question best. Reply with one lower-case letter and nothing else. "
        f"Valid replies: {letters_text}."
    )


def placebo(blocks: Sequence[Block], user: str) -> str:
    """Return the gated rule with a number that means nothing.

    The numbers are listed here, in the order of the blocks, and not written into the blocks: so
    the context has the same bytes whatever the provenance.
    """
    numbers = ", ".join(str(number) for number in catalogue_numbers(blocks, user)) or "none"
    return (
        f"The records above have these catalogue numbers, in the order shown: {numbers}. "
        + _RANKED.format(number="catalogue number")
    )


def catalogue_numbers(blocks: Sequence[Block], user: str) -> tuple[int, ...]:
    """Return every block its rank, from 1, in the order of their digests.

    A digest knows neither source position nor arrival. It is the block's own, so that any two
    blocks stand in the same relation on every route, as they do under the benchmark's index.
    """

    def digest(index: int) -> bytes:
        block = blocks[index]
        parts = (user, block.kind, *sorted(block.sources), block.text)
        return hashlib.sha256("\0".join(parts).encode()).digest()

    ranked = sorted(range(len(blocks)), key=digest)
    return tuple(ranked.index(index) + 1 for index in range(len(blocks)))


Provenance = Literal["preserved", "gated", "neutral", "placebo"]
"""What the prompt says about conflicting records (Appendix I.12)."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A prompt before padding, piece by piece."""

    instruction: str
    """The instruction before the memory field."""
    context: str
    """The evidence: the compiled context, byte for byte."""
    rule: str
    """The rule of the provenance variant after the memory field; empty for `preserved`."""
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
        question = (self.date, self.question, self.options)
        return (self.instruction, rule, *question, self.suffix, self.provenance)


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
        instruction=choose(len(question.options)),
        context=context if isinstance(context, str) else Exposure(tuple(context)).context,
        rule=_rule(provenance, context, question.user),
        date="",
        question=question.text,
        options=question.options,
        suffix=LETTER_SUFFIX,
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
    body = _add_dates(context, dates) if dates else context
    return Draft(
        instruction=FREE_TEXT,
        context=body if isinstance(body, str) else Exposure(tuple(body)).context,
        rule=_rule(provenance, context, question.user),
        date=question_date or "",
        question=question.text,
        options=(),
        suffix=FREE_TEXT_SUFFIX,
        provenance=provenance,
    )


def _rule(provenance: Provenance, context: str | Sequence[Block], user: str) -> str:
    if provenance == "placebo":
        return placebo(_blocks(context, "the placebo's numbers"), user)
    rules = {"preserved": "", "gated": GATED, "neutral": NEUTRAL}
    if provenance not in rules:
        raise SpecError(
            f"There is no provenance '{provenance}'. {nearest(provenance, get_args(Provenance))}"
        )
    return rules[provenance]


def _add_dates(context: str | Sequence[Block], dates: Mapping[str, str]) -> tuple[Block, ...]:
    dated = []
    for block in _blocks(context, "dates"):
        days = dict.fromkeys(day for id, day in dates.items() if id in block.sources)
        head = f"[date {', '.join(days)}]\n" if days else ""
        dated.append(Block(block.kind, head + block.text, block.sources))
    return tuple(dated)


def _blocks(context: str | Sequence[Block], role: str) -> Sequence[Block]:
    if isinstance(context, str):
        raise InputError(
            f"Expected the blocks of an exposure but got their text; {role} belong to blocks",
            field="context",
        )
    return context
