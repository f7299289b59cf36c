"""Cards: all that a reader sees of one question, and nothing of what happened to it.

No card has a route, an answer, or an id that tells anything: benchmarks name questions and records
so that one can guess from the name which of them matter (`…_abs`, `answer_…`). A reader sees the
card's own id and the records' numbers; the ids behind them come back when a reading is made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from routeprism.errors import InputError, SpecError, nearest
from routeprism.records import Benchmark, Case, Question, letters
from routeprism.support._rubrics import Rubric

__all__ = [
    "Card",
    "CardRecord",
    "CompiledCard",
    "ScreenCard",
    "SupportCard",
    "cards_for",
    "compiled_cards",
]


@dataclass(frozen=True, slots=True)
class CardRecord:
    """One record of a card's pool."""

    number: int
    """What readers call it: its source position, counted from 1."""
    id: str
    """The record's id; readers are not shown it."""
    text: str
    """The whole text, all roles."""
    date: str
    """Its timestamp as the benchmark writes it; empty where it has none."""


@dataclass(frozen=True, slots=True)
class ScreenCard:
    """A question with its complete pool, to be screened blind: no gold, no route, no answer."""

    id: str
    """An opaque id."""
    question: str
    """The question's id; readers are not shown it."""
    text: str
    """The question."""
    options: tuple[str, ...]
    """Its answer options, each with its letter; empty for free text."""
    records: tuple[CardRecord, ...]
    """The complete pool in source order."""


@dataclass(frozen=True, slots=True)
class SupportCard:
    """A question with its right answer and its complete pool: no route, no answer."""

    id: str
    """An opaque id; the same question's blind card has the same."""
    question: str
    """The question's id; readers are not shown it."""
    text: str
    """The question."""
    options: tuple[str, ...]
    """Its answer options, each with its letter; empty for free text."""
    gold: str
    """The right answer: the option with its letter, or the text."""
    records: tuple[CardRecord, ...]
    """The complete pool in source order."""


@dataclass(frozen=True, slots=True)
class CompiledCard:
    """A question with its right answer and one compiled context; which route made it is not said.

    Routes that compile the same text share the card.
    """

    id: str
    """An opaque id, made from the question and the context alone."""
    question: str
    """The question's id; readers are not shown it."""
    text: str
    """The question."""
    options: tuple[str, ...]
    """Its answer options, each with its letter; empty for free text."""
    gold: str
    """The right answer: the option with its letter, or the text."""
    context: str
    """C, byte for byte."""

    @property
    def context_sha256(self) -> str:
        """The digest by which a run knows this context."""
        return hashlib.sha256(self.context.encode()).hexdigest()


Card: TypeAlias = ScreenCard | SupportCard | CompiledCard
"""Whatever can be read."""
CardT = TypeVar("CardT", bound=Card)


def cards_for(benchmark: Benchmark, rubric: Rubric) -> tuple[ScreenCard | SupportCard, ...]:
    """Make one card for each question of a benchmark, in its order."""
    if rubric.kind == "compiled":
        raise SpecError(f"rubric '{rubric.name}' reads contexts: make its cards by compiled_cards")
    made: list[ScreenCard | SupportCard] = []
    for case in benchmark.cases:
        if not case.questions:
            continue
        records = _records(case)
        for question in case.questions:
            start = (_id(question.id), question.id, question.text, _options(question))
            if rubric.shows_gold:
                made.append(SupportCard(*start, _gold(question, rubric), records))
            else:
                made.append(ScreenCard(*start, records))
    return distinct(made)


def compiled_cards(
    benchmark: Benchmark, contexts: Iterable[tuple[str, str]], rubric: Rubric
) -> tuple[CompiledCard, ...]:
    """Make one card for each distinct (question id, context) pair, ordered by their opaque ids.

    So neither the order of cards nor their number per question tells which route made which.
    """
    if rubric.kind != "compiled":
        raise SpecError(f"rubric '{rubric.name}' reads pools: make its cards by cards_for")
    questions = {q.id: q for case in benchmark.cases for q in case.questions}
    made: dict[tuple[str, str], CompiledCard] = {}
    for identity, context in contexts:
        if identity not in questions:
            raise InputError(
                f"there is a context for the question '{identity}', which benchmark "
                f"'{benchmark.name}' does not have. {nearest(identity, questions)}"
            )
        if (identity, context) not in made:
            question = questions[identity]
            made[identity, context] = CompiledCard(
                _id(identity, context),
                identity,
                question.text,
                _options(question),
                _gold(question, rubric),
                context,
            )
    return distinct(sorted(made.values(), key=lambda card: card.id))


def distinct(cards: Sequence[CardT]) -> tuple[CardT, ...]:
    """Refuse two cards with the same id: a benchmark that has a question twice."""
    seen: dict[str, str] = {}
    for card in cards:
        if card.id in seen:
            raise InputError(
                f"two cards have the id '{card.id}': is '{card.question}' there twice?"
            )
        seen[card.id] = card.question
    return tuple(cards)


def _id(*parts: str) -> str:
    """Make an id that a spreadsheet takes for text, and that tells nothing."""
    return f"card-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:12]}"


def _records(case: Case) -> tuple[CardRecord, ...]:
    return tuple(
        CardRecord(record.position + 1, record.id, record.text, record.timestamp or "")
        for record in case.pool.records
    )


def _options(question: Question) -> tuple[str, ...]:
    named = zip(letters(len(question.options)), question.options, strict=True)
    return tuple(f"{letter}) {option}" for letter, option in named)


def _gold(question: Question, rubric: Rubric) -> str:
    if question.gold is None:
        raise InputError(
            f"question '{question.id}' has no gold answer, which rubric '{rubric.name}' shows",
            field="gold",
        )
    if not question.options:
        return question.gold
    return _options(question)[letters(len(question.options)).index(question.gold)]
