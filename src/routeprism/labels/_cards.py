"""Cards and rubrics: what a reader of a question is shown, and by which rule the reader decides.

A card shows no route and no answer of a model, and no id from which a reader could guess:
benchmarks name questions and records so that the important ones can be recognised (`…_abs`,
`answer_…`). A reader sees the card's own id and the records' numbers. A rubric's digest is part of
every reading, so that readings under different wordings are never compared as if they were the
same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from routeprism.errors import InputError, RunError, SpecError, nearest
from routeprism.policies import Block, Exposure
from routeprism.records import Benchmark, Case, Question, letters
from routeprism.runs import Rows, StoredRun, read_configuration

Kind: TypeAlias = Literal["screen", "support", "compiled"]
"""What is read: a pool's admissibility, its records' support, or a compiled context's support."""

LABELS: Mapping[Kind, tuple[str, ...]] = {
    "screen": ("admissible", "ambiguous", "inadmissible"),
    "support": ("direct", "indirect", "none"),
    "compiled": ("supports", "jointly", "none", "unresolved"),
}
"""The labels of each kind of reading."""

UNREAD = "unread"
"""The mark of a reply that could not be read; it is counted, but it is not a label."""


@dataclass(frozen=True, slots=True)
class Rubric:
    """A rule for reading cards; your own may use different words, but not different labels."""

    name: str
    """Its name in every output."""
    kind: Kind
    """The kind of card that it applies to."""
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
        """SHA-256 of everything that it shows to a reader."""
        parts = {"kind": self.kind, "shows_gold": self.shows_gold, "text": self.text}
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _load_rubric(name: str, kind: Kind, *, shows_gold: bool = True) -> Rubric:
    text = files("routeprism.labels").joinpath(f"rubrics/{name}.txt").read_text("utf-8")
    return Rubric(name, kind, shows_gold, text.removesuffix("\n"))


SCREEN = _load_rubric("screen", "screen", shows_gold=False)
"""Outcome-blind screening of complete pools (Appendix B.2)."""
SCREEN_GOLD = _load_rubric("screen-gold", "screen")
"""Screening with the right answer in sight, a separate sensitivity rule (Appendix N.3)."""
SUPPORT = _load_rubric("support", "support")
"""Which records carry the answer (Appendix F.1)."""
STALE = _load_rubric("stale", "support")
"""Which records state an outdated value: `direct` is outdated evidence (docs/updates.md)."""
COMPILED = _load_rubric("compiled", "compiled")
"""Support after compilation: the context itself is read, not its sources (Appendix N.1)."""


@dataclass(frozen=True, slots=True)
class CardRecord:
    """A record of a card's pool."""

    number: int
    """Its number for readers: its source position, counted from 1."""
    id: str
    """The record's id; readers are not shown it."""
    text: str
    """The whole text, all roles."""
    date: str
    """Its timestamp as the benchmark writes it; empty if it has none."""


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
    """A question with its right answer and its complete pool; fields as in `ScreenCard`."""

    id: str
    question: str
    text: str
    options: tuple[str, ...]
    gold: str
    """The right answer: the option with its letter, or the text."""
    records: tuple[CardRecord, ...]


@dataclass(frozen=True, slots=True)
class CompiledCard:
    """A question with its right answer and one compiled context; fields as in `SupportCard`.

    It does not name the route, and routes that compile the same text share the card.
    """

    id: str
    question: str
    text: str
    options: tuple[str, ...]
    gold: str
    context: str
    """C, byte for byte."""

    @property
    def context_sha256(self) -> str:
        """The digest under which a run stores this context."""
        return hashlib.sha256(self.context.encode()).hexdigest()


Card: TypeAlias = ScreenCard | SupportCard | CompiledCard
"""A card of any kind."""
CardT = TypeVar("CardT", bound=Card)


def cards_for(benchmark: Benchmark, rubric: Rubric) -> tuple[ScreenCard | SupportCard, ...]:
    """Make one card for each question of a benchmark, in its order."""
    if rubric.kind == "compiled":
        raise SpecError(f"rubric '{rubric.name}' reads contexts: make its cards by compiled_cards")
    cards: list[ScreenCard | SupportCard] = []
    for case in benchmark.cases:
        records = _list_records(case) if case.questions else ()
        for question in case.questions:
            start = (_make_id(question.id), question.id, question.text, _list_options(question))
            if rubric.shows_gold:
                cards.append(SupportCard(*start, _show_gold(question, rubric), records))
            else:
                cards.append(ScreenCard(*start, records))
    return _check_ids(cards)


def compiled_cards(
    benchmark: Benchmark, contexts: Iterable[tuple[str, str]], rubric: Rubric
) -> tuple[CompiledCard, ...]:
    """Make one card for each distinct (question id, context) pair, ordered by their opaque ids.

    Neither the order of the cards nor their number per question reveals the routes.
    """
    if rubric.kind != "compiled":
        raise SpecError(f"rubric '{rubric.name}' reads pools: make its cards by cards_for")
    questions = {q.id: q for case in benchmark.cases for q in case.questions}
    cards: list[CompiledCard] = []
    for id, context in dict.fromkeys(contexts):
        if id not in questions:
            raise InputError(
                f"there is a context for the question '{id}', which benchmark "
                f"'{benchmark.name}' does not have. {nearest(id, questions)}"
            )
        question = questions[id]
        options, gold = _list_options(question), _show_gold(question, rubric)
        cards.append(CompiledCard(_make_id(id, context), id, question.text, options, gold, context))
    return _check_ids(sorted(cards, key=lambda card: card.id))


def _check_ids(cards: Sequence[CardT]) -> tuple[CardT, ...]:
    """Refuse two cards with the same id: the benchmark lists a question twice."""
    ids: set[str] = set()
    for card in cards:
        if card.id in ids:
            raise InputError(
                f"two cards have the id '{card.id}': is '{card.question}' there twice?"
            )
        ids.add(card.id)
    return tuple(cards)


def _make_id(*parts: str) -> str:
    """Make an id that reveals nothing and that a spreadsheet treats as text."""
    return f"card-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:12]}"


def _list_records(case: Case) -> tuple[CardRecord, ...]:
    return tuple(
        CardRecord(record.position + 1, record.id, record.text, record.timestamp or "")
        for record in case.pool.records
    )


def _list_options(question: Question) -> tuple[str, ...]:
    lettered = zip(letters(len(question.options)), question.options, strict=True)
    return tuple(f"{letter}) {option}" for letter, option in lettered)


def _show_gold(question: Question, rubric: Rubric) -> str:
    if question.gold is None:
        raise InputError(
            f"question '{question.id}' has no gold answer, which rubric '{rubric.name}' shows",
            field="gold",
        )
    if not question.options:
        return question.gold
    return _list_options(question)[letters(len(question.options)).index(question.gold)]


class RouteName(NamedTuple):
    """The columns that name a route in a run's store."""

    policy: str
    interface: str
    schedule: str


def routes_of(directory: Path) -> tuple[RouteName, ...]:
    """List the routes that a finished run traced, from its estimates; forward comes first."""
    with StoredRun(directory) as stored:
        read_configuration(stored, directory)
        rows = Rows.of(stored.estimates()).where(experiment="routes")
        traced = set(stored.routes())  # rows of an arrival model have no route of their own
    routes: dict[RouteName, None] = {}
    for row in rows:
        if row.policy and row.schedule:
            for schedule in ("forward", row.schedule):
                route = RouteName(row.policy, row.interface, schedule)
                if route in traced:
                    routes[route] = None
    if not routes:
        raise RunError(f"{directory} traced no routes; make it with `routeprism audit`")
    return tuple(routes)


def stored_contexts(
    directory: Path, routes: Sequence[RouteName], questions: Iterable[str]
) -> Iterator[tuple[str, str]]:
    """Read (question id, context) for each question on each route from a run's store."""
    with StoredRun(directory) as stored:
        for question in questions:
            for route in routes:
                if not stored.has_exposure(*route, question):
                    continue  # the route failed for this user
                exposure = stored.exposure(*route, question)
                blocks = tuple(Block(kind, text, ids) for kind, text, ids in exposure.blocks)
                yield question, Exposure(blocks).context
            stored.clear_texts()
