"""Readings: what one pass over a set of cards said, frozen, with where it came from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from routeprism.errors import InputError, SpecError, nearest
from routeprism.support._cards import Card, CompiledCard, ScreenCard
from routeprism.support._rubrics import LABELS, UNREAD, Kind, Rubric

__all__ = [
    "CONFIDENCES",
    "CompiledReading",
    "Passage",
    "Reading",
    "Readings",
    "RecordReading",
    "ScreenReading",
    "SupportReading",
    "check_name",
    "fold",
    "quoted",
    "same_cards",
]

CONFIDENCES = ("low", "medium", "high")
"""How sure a reader says to be; empty where nothing was said."""

_NAME = re.compile(r"\w[\w.-]*\Z")


@dataclass(frozen=True, slots=True)
class ScreenReading:
    """Whether one pool may be reordered."""

    question: str
    """The question's id."""
    label: str
    """`admissible`, `ambiguous`, `inadmissible`, or `unread`."""
    reason: str = ""
    """Why, in the reader's words; of an unread one, why it could not be read."""


@dataclass(frozen=True, slots=True)
class RecordReading:
    """How one record bears on the right answer."""

    label: str
    """`direct`, `indirect` or `none`."""
    basis: str = ""
    """What that rests on, in a few words."""
    confidence: str = ""
    """`low`, `medium` or `high`; empty where it was not said."""


@dataclass(frozen=True, slots=True)
class SupportReading:
    """How every record of one pool bears on the right answer."""

    question: str
    """The question's id."""
    records: Mapping[str, RecordReading] = field(default_factory=dict, hash=False)
    """By record id, the complete pool; empty where the reply could not be read."""
    unread: str = ""
    """Why it could not be read."""

    @property
    def direct(self) -> frozenset[str]:
        """The ids of the records that carry the answer."""
        return frozenset(id for id, one in self.records.items() if one.label == "direct")


@dataclass(frozen=True, slots=True)
class Passage:
    """A quotation from a context."""

    text: str
    """As it was quoted."""
    verified: bool
    """Whether it occurs in the context word for word; white space is folded on both sides."""


@dataclass(frozen=True, slots=True)
class CompiledReading:
    """Whether one compiled context supports the right answer."""

    question: str
    """The question's id."""
    context_sha256: str
    """Which context."""
    outcome: str
    """What was said: `supports`, `jointly`, `none`, `unresolved`, or `unread`."""
    passages: tuple[Passage, ...] = ()
    """What was quoted."""
    reason: str = ""
    """Why, in the reader's words; of an unread one, why it could not be read."""

    @property
    def standing(self) -> str:
        """What was said, or `unverified` where its quotations do not bear it out.

        One verified passage carries `supports`; `jointly` needs every passage of its set.
        """
        kept = [passage.verified for passage in self.passages]
        borne = {"supports": any(kept), "jointly": bool(kept) and all(kept)}
        return self.outcome if borne.get(self.outcome, True) else "unverified"


Reading: TypeAlias = ScreenReading | SupportReading | CompiledReading


@dataclass(frozen=True, slots=True)
class Readings:
    """One pass: a reading of every card of a set, under one rubric, by one source."""

    name: str
    """The pass; its batch in a run's ledger."""
    kind: Kind
    """What was read."""
    rubric: str
    """The rubric's name."""
    rubric_digest: str
    """SHA-256 of the rubric."""
    source: str
    """Who read: a model's spec, or `file:NAME`."""
    source_digest: str
    """SHA-256 of the model's settings, or of the file."""
    cards: Mapping[str, Reading] = field(hash=False)
    """By card id, in the order of the cards."""

    def __post_init__(self) -> None:
        check_name(self.name)
        wanted = {"screen": ScreenReading, "support": SupportReading, "compiled": CompiledReading}
        if any(not isinstance(one, wanted[self.kind]) for one in self.cards.values()):
            raise SpecError(f"pass '{self.name}' mixes readings that are not of kind '{self.kind}'")

    @property
    def model(self) -> str:
        """The model that read; empty where people did."""
        return "" if self.source.startswith("file:") else self.source

    @property
    def counts(self) -> Mapping[str, int]:
        """Count every label of the kind, `unverified` where passages are quoted, and `unread`.

        Support labels are counted record by record, unread ones card by card.
        """
        counted: Counter[str] = Counter()
        for one in self.cards.values():
            if isinstance(one, ScreenReading):
                counted[one.label] += 1
            elif isinstance(one, CompiledReading):
                counted[one.standing] += 1
            else:
                counted[UNREAD] += bool(one.unread)
                counted.update(record.label for record in one.records.values())
        more = ("unverified", UNREAD) if self.kind == "compiled" else (UNREAD,)
        return {label: counted[label] for label in (*LABELS[self.kind], *more)}

    def screened(self) -> Mapping[str, str]:
        """Give the label of each question id; only a screening has it."""
        found = {}
        for one in self.cards.values():
            if not isinstance(one, ScreenReading):
                raise SpecError(f"pass '{self.name}' is no screening: it reads '{self.rubric}'")
            found[one.question] = one.label
        return found

    def supported(self) -> Mapping[str, SupportReading]:
        """Give the support reading of each question id; only a support pass has it."""
        found = {}
        for one in self.cards.values():
            if not isinstance(one, SupportReading):
                raise SpecError(f"pass '{self.name}' labels no records: it reads '{self.rubric}'")
            found[one.question] = one
        return found

    def compiled(self) -> Mapping[tuple[str, str], CompiledReading]:
        """Give readings by (question id, SHA-256 of the context), as a run's store names them."""
        found = {}
        for one in self.cards.values():
            if not isinstance(one, CompiledReading):
                raise SpecError(f"pass '{self.name}' reads no contexts: it reads '{self.rubric}'")
            found[one.question, one.context_sha256] = one
        return found

    def check(self, cards: Sequence[Card], rubric: Rubric) -> Readings:
        """Refuse readings of other cards, or under another rubric, than these."""
        if self.rubric_digest != rubric.digest:
            raise InputError(
                f"pass '{self.name}' was read under another rubric ('{self.rubric}', "
                f"{self.rubric_digest[:8]}) than '{rubric.name}' ({rubric.digest[:8]})",
                field="rubric",
            )
        _compare(self.name, self.cards, "the cards", {card.id for card in cards})
        for card in cards:
            _check_card(self.name, card, self.cards[card.id])
        return self


def check_name(name: str) -> str:
    """Refuse a name that would not survive in a file name or an arm such as `A~B`."""
    if not _NAME.match(name):
        raise SpecError(
            f"Expected letters, digits, '.', '_' or '-' but got name={name!r} for a pass"
        )
    return name


def same_cards(passes: Sequence[Readings]) -> None:
    """Refuse passes that differ in cards or rubric, or share a name."""
    names = [one.name for one in passes]
    if len(set(names)) < len(names):
        raise SpecError(f"two passes have the same name: {', '.join(names)}")
    for other in passes[1:]:
        one = passes[0]
        if (one.kind, one.rubric_digest) != (other.kind, other.rubric_digest):
            raise SpecError(
                f"passes '{one.name}' and '{other.name}' were read under different rubrics: "
                f"'{one.rubric}' ({one.rubric_digest[:8]}) and "
                f"'{other.rubric}' ({other.rubric_digest[:8]})"
            )
        _compare(one.name, one.cards, f"pass '{other.name}'", other.cards)


def fold(text: str) -> str:
    """Make every run of white space one space."""
    return " ".join(text.split())


def quoted(passages: Iterable[str], context: str) -> tuple[Passage, ...]:
    """Look each quotation up in the context."""
    folded = fold(context)
    return tuple(Passage(text, bool(fold(text)) and fold(text) in folded) for text in passages)


def _compare(name: str, one: Iterable[str], what: str, other: Iterable[str]) -> None:
    mine, theirs = set(one), set(other)
    parts = []
    for ids, where in ((mine - theirs, f"'{name}'"), (theirs - mine, what)):
        if ids:
            parts.append(f"{len(ids)} only in {where} ({_some(ids)})")
    if parts:
        raise InputError(
            f"pass '{name}' and {what} are not about the same cards: {'; '.join(parts)}"
        )


def _some(ids: Iterable[str], most: int = 3) -> str:
    listed = sorted(ids)
    return ", ".join(listed[:most]) + (", …" if len(listed) > most else "")


def _check_card(name: str, card: Card, one: Reading) -> None:
    if one.question != card.question:
        raise InputError(
            f"pass '{name}': {card.id} is about question '{card.question}', not '{one.question}'"
        )
    if isinstance(one, SupportReading) and not isinstance(card, CompiledCard) and not one.unread:
        known = {record.id for record in card.records}
        if unknown := sorted(set(one.records) - known):
            raise InputError(
                f"pass '{name}': {card.id} labels the record '{unknown[0]}', which its pool does "
                f"not have. {nearest(unknown[0], known)}"
            )
        if missing := sorted(known - set(one.records)):
            raise InputError(f"pass '{name}': {card.id} has no label for record '{missing[0]}'")
    if isinstance(one, CompiledReading) and isinstance(card, CompiledCard):
        again = quoted((passage.text for passage in one.passages), card.context)
        if one.context_sha256 != card.context_sha256 or one.passages != again:
            raise InputError(f"pass '{name}': {card.id} was read on another context")
    if isinstance(card, ScreenCard) and not isinstance(one, ScreenReading):
        raise InputError(f"pass '{name}': {card.id} shows no right answer, so it has no support")
