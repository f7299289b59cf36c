"""Rubrics: what a reader of cards is asked to decide, in our own words, fixed before any reading.

A rubric's digest goes into every reading and declaration, so that readings made under different
words are never compared or combined as if they were the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from routeprism.errors import SpecError, nearest

__all__ = [
    "COMPILED",
    "Kind",
    "LABELS",
    "RUBRICS",
    "Rubric",
    "SCREEN",
    "SCREEN_GOLD",
    "SUPPORT",
    "UNREAD",
    "rubric_named",
]

Kind: TypeAlias = Literal["screen", "support", "compiled"]
"""What is read: a pool's admissibility, its records' support, or a compiled context's support."""

LABELS: Mapping[Kind, tuple[str, ...]] = {
    "screen": ("admissible", "ambiguous", "inadmissible"),
    "support": ("direct", "indirect", "none"),
    "compiled": ("supports", "jointly", "none", "unresolved"),
}
"""The labels of each kind of reading."""

UNREAD = "unread"
"""What stands for a reply that could not be read; it is counted, and never a label."""


@dataclass(frozen=True, slots=True)
class Rubric:
    """A rule for reading cards; one of your own may have other words, not other labels."""

    name: str
    """What every output calls it."""
    kind: Kind
    """What is read under it."""
    shows_gold: bool
    """Whether the reader is shown the right answer."""
    text: str
    """The rule, as people and models read it."""

    def __post_init__(self) -> None:
        if self.kind not in LABELS:
            raise SpecError(
                f"There is no kind of reading '{self.kind}'. {nearest(self.kind, LABELS)}"
            )
        if not self.name or not self.text.strip():
            raise SpecError("Expected a rubric with a name and a text")
        if self.kind != "screen" and not self.shows_gold:
            raise SpecError(
                f"rubric '{self.name}' asks what supports the right answer, so it has to show it"
            )

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels it allows."""
        return LABELS[self.kind]

    @property
    def digest(self) -> str:
        """SHA-256 of all that a reader is told by it."""
        parts = {"kind": self.kind, "shows_gold": self.shows_gold, "text": self.text}
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


SCREEN = Rubric(
    "screen",
    "screen",
    shows_gold=False,
    text="""\
Below is a question with its answer options, if it has any, and every record that is kept about \
one user, each at its own source position. Decide whether these records could be put into any \
other order without changing which answer the question is after.

admissible: the intended answer stays the same in whatever order the complete records stand.
ambiguous: what is shown does not settle whether the order of events is a part of that answer.
inadmissible: the question, or the evidence for it, needs an order: what came first or last, \
how something developed, what holds most recently, or what took the place of what.

Judge the question together with all records. You are not told the right answer, and need not \
find it. Give your reason in one short sentence.""",
)
"""Outcome-blind screening of complete pools (Appendix B.2)."""

SCREEN_GOLD = Rubric(
    "screen-gold",
    "screen",
    shows_gold=True,
    text="""\
Below is a question with its answer options, if it has any, its right answer, and every record \
that is kept about one user. Decide whether the records support this same right answer both in \
the order in which they are shown and in the reverse of it. Only whole records change places: \
dates, and the talk inside a record, stay as they are.

A relation in time that the records state themselves, by a date or in words, is fixed evidence \
and survives another order. An update that can be told only from which record stands later is \
not.

admissible: the right answer is supported equally in both orders.
ambiguous: what is shown does not settle it.
inadmissible: in one of the orders the right answer loses its support, or another answer gains \
it.

Give your reason in one short sentence.""",
)
"""The re-reading with the right answer in sight: a sensitivity rule of its own (Appendix N.3)."""

SUPPORT = Rubric(
    "support",
    "support",
    shows_gold=True,
    text="""\
Below is a question with its answer options, if it has any, its right answer, and every record \
that is kept about one user. Say of each record by itself how it bears on the right answer.

direct: what the user says in this record supplies the fact, preference, event or state that \
one needs in order to arrive at the right answer.
indirect: it gives background that has to do with the question, but the right answer does not \
follow from it.
none: it gives no support for the right answer.

What an assistant says counts only as far as the user takes it up. Several records may be \
direct, and so may none. For each record name the basis in a few words, and how confident you \
are: low, medium or high.""",
)
"""Which records carry the answer (Appendix F.1)."""

COMPILED = Rubric(
    "compiled",
    "compiled",
    shows_gold=True,
    text="""\
Below is a question with its answer options, if it has any, its right answer, and a context \
that some memory compiled from records of one user. Decide whether this context, as it is \
written, supports the right answer.

supports: at least one passage is enough to arrive at the right answer. Quote each such \
passage.
jointly: no passage is enough alone, but two or more together are. Quote all that are needed.
none: nothing in the context supports the right answer.
unresolved: it cannot be decided from this context.

Quote word for word, without leaving anything out: a quotation that does not occur in the \
context counts as unverified. Where the records came from, and what anybody answered, is not \
your concern.""",
)
"""Support after compilation: the context itself is read, not its sources (Appendix N.1)."""

RUBRICS: Mapping[str, Rubric] = {
    rubric.name: rubric for rubric in (SCREEN, SCREEN_GOLD, SUPPORT, COMPILED)
}
"""The rubrics that ship, by name."""


def rubric_named(name: str) -> Rubric:
    """Give a rubric that ships."""
    if name not in RUBRICS:
        raise SpecError(f"There is no rubric '{name}'. {nearest(name, RUBRICS)}")
    return RUBRICS[name]
