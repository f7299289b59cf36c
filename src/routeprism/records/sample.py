"""The bundled sample: invented people, their talks with an assistant, and questions about them.

It is synthetic: a seeded generator writes it and needs no file. The benchmark's notes mark it. A
plan decides which record contains which fact and what is asked. Options of one type are all true of
the same user, each about a different matter, so that a wrong option is in the pool as surely as the
right one, and only the matter it belongs to distinguishes them.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import cycle, islice, product
from random import Random
from typing import TYPE_CHECKING, Any

from routeprism.records._benchmarks import (
    Benchmark,
    Case,
    Pool,
    Question,
    Record,
    Turn,
    letters,
)
from routeprism.records._people import TYPES, deal, invent, threads, values, voices

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from routeprism.records._people import Persona, Thread, Value

__all__ = ["DEFAULT_SEED", "generate", "load", "make_benchmark"]

DEFAULT_SEED = 20240607
"""The seed of both samples that ship."""

_SIZES = (4, 5, 6, 7, 5, 6)
"""Records per user, dealt round; pools of four can't replace a record under recent:k=3."""

_QUESTIONS = (5, 6)
"""Questions per user, dealt round."""

_USERS = 30


def load(data: Path | None = None, *, seed: int = DEFAULT_SEED) -> Benchmark:
    """Return the sample as a benchmark. `data` is ignored: there is no file to read."""
    return _make(seed)


@lru_cache(maxsize=4)
def _make(seed: int) -> Benchmark:
    return make_benchmark("sample", generate(seed), seed)


def make_benchmark(name: str, cases: tuple[Case, ...], seed: int, **more: Any) -> Benchmark:
    """Make the benchmark of a sample that was generated with a seed."""
    return Benchmark(
        name=name,
        cases=cases,
        fingerprint=_fingerprint_cases(cases),
        synthetic=True,
        labels=("benchmark",),
        notes=(f"The sample is synthetic: written by a generator with seed {seed}.",),
        licence="CC0-1.0 (synthetic, generated)",
        **more,
    )


def generate(seed: int) -> tuple[Case, ...]:
    """Write all pools and questions of a seed; the same on every machine and in every process."""
    rng = Random(seed)  # noqa: S311 - reproducible text, no secret
    sizes = deal(_SIZES, _USERS, rng)
    counts = deal(_QUESTIONS, _USERS, rng)
    golds = iter(deal(letters(4), sum(counts), rng))
    shelf: list[Thread] = []
    cases = []
    for index, persona in enumerate(invent(_USERS, rng)):
        user = f"u{index + 1:02d}"
        life = _plan_life(_take(shelf, sizes[index], rng), counts[index], rng)
        pool = _write_pool(user, persona, life, rng)
        questions = tuple(
            _ask(user, number, persona, life, next(golds), rng)
            for number in range(len(life.inquiries))
        )
        cases.append(Case(pool, questions))
    return tuple(cases)


def _take(shelf: list[Thread], count: int, rng: Random) -> tuple[Thread, ...]:
    # A thread is put back only when all have been used, so that each is told about as often.
    selection: list[Thread] = []
    while len(selection) < count:
        if not any(thread not in selection for thread in shelf):
            shelf.extend(rng.sample(threads(), len(threads())))
        index = next(i for i, thread in enumerate(shelf) if thread not in selection)
        selection.append(shelf.pop(index))
    return tuple(selection)


def _fingerprint_cases(cases: Sequence[Case]) -> str:
    """Return the digest of all that a sample says, its labels included."""
    content = [
        {
            "user": case.pool.user,
            "records": [[record.id, record.timestamp, record.text] for record in case.pool.records],
            "questions": [
                {
                    "id": question.id,
                    "text": question.text,
                    "options": question.options,
                    "gold": question.gold,
                    "kind": question.kind,
                    "detail": question.detail,
                    "support": _write_ids(question.labels),
                    **({"outdated": question.outdated} if question.outdated else {}),
                }
                for question in case.questions
            ],
            **({"supersedes": _write_ids(case.supersedes)} if case.supersedes else {}),
        }
        for case in cases
    ]
    canonical = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _write_ids(labels: Mapping[str, frozenset[str]]) -> dict[str, list[str]]:
    return {name: sorted(ids) for name, ids in sorted(labels.items())}


_CIRCLES = ("home", "work", "town")
"""The people whom a record is about. Records of one circle mention the same people and places, so
they are more alike than records of two circles: a similarity policy can merge them."""

_CIRCLES_BY_SIZE = {4: (1, 2, 2), 5: (1, 2, 2, 2), 6: (1, 2, 2, 3), 7: (2, 2, 3, 3)}

_TOO_FEW = 4
"""In a pool of four, two supporting records would leave too few others for three wrong options."""

_RETOLD = 0.36
"""How often a fact that is asked comes up a second time, where the pool is large enough."""

_STRAY = 0.4
"""How often the words of any other fact that is asked also describe a different person or thing,
so that without its support the right option is not simply the one the pool never heard of."""


@dataclass(frozen=True, slots=True)
class _Fact:
    """One value of one type in the thread of one record."""

    position: int
    """The record whose thread it belongs to."""
    type: str
    value: Value
    again: int | None = None
    """The other record that comes back to it."""
    stray: int | None = None
    """A record that uses the same words about a different matter and supports nothing."""

    @property
    def support(self) -> tuple[int, ...]:
        return (self.position,) if self.again is None else (self.position, self.again)


@dataclass(frozen=True, slots=True)
class _Life:
    """One user's threads with their circles, the facts, and the questions."""

    threads: tuple[Thread, ...]
    circles: tuple[str, ...]
    facts: tuple[_Fact, ...]
    inquiries: tuple[tuple[_Fact, tuple[Value, ...]], ...]
    """The facts that are asked, each with the wrong options."""


def _plan_life(threads: tuple[Thread, ...], questions: int, rng: Random) -> _Life:
    """Plan the life of a user with these threads, one per record, and this number of questions."""
    size = len(threads)
    # Not all five: records would all have the same build, and their common words would drown the
    # difference between circles.
    selection = rng.sample(TYPES, rng.choice((3, 4)))
    types = tuple(name for name in TYPES if name in selection)
    bank = {name: rng.sample(values()[name], size) for name in types}
    pairs = _asked_pairs(size, types, questions, rng)
    circles = tuple(deal(rng.sample(_CIRCLES, rng.choice(_CIRCLES_BY_SIZE[size])), size, rng))
    second_places = _second_places(pairs, circles, _RETOLD, rng) if size > _TOO_FEW else {}
    left = [pair for pair in pairs if pair not in second_places]
    stray = _second_places(left, circles, _STRAY, rng)
    facts = tuple(
        _Fact(*pair, bank[pair[1]][pair[0]], second_places.get(pair), stray.get(pair))
        for pair in product(range(size), types)
    )
    by_pair = {(fact.position, fact.type): fact for fact in facts}
    inquiries = ((by_pair[pair], _choose_wrong(by_pair[pair], facts, rng)) for pair in pairs)
    return _Life(threads, circles, facts, tuple(inquiries))


def _asked_pairs(
    size: int, types: tuple[str, ...], questions: int, rng: Random
) -> tuple[tuple[int, str], ...]:
    # Positions go round before one comes twice, so support is spread over the pool.
    positions = list(islice(cycle(rng.sample(range(size), size)), questions))
    left = {position: rng.sample(types, len(types)) for position in range(size)}
    return tuple((position, left[position].pop()) for position in positions)


def _second_places(
    pairs: Sequence[tuple[int, str]], circles: tuple[str, ...], chance: float, rng: Random
) -> Mapping[tuple[int, str], int]:
    # One per record at most, so that no record is crowded with other records' matters; among those
    # left rather one of the same circle, so that circles stay apart for a similarity policy.
    free = rng.sample(range(len(circles)), len(circles))
    second_place: dict[tuple[int, str], int] = {}
    for pair in pairs:
        places = [place for place in free if place != pair[0]]
        if places and rng.random() < chance:
            apart = {place: circles[place] != circles[pair[0]] for place in places}
            second_place[pair] = min(places, key=apart.__getitem__)
            free.remove(second_place[pair])
    return second_place


def _choose_wrong(fact: _Fact, facts: tuple[_Fact, ...], rng: Random) -> tuple[Value, ...]:
    rivals = [
        rival for rival in facts if rival.type == fact.type and rival.position not in fact.support
    ]
    rng.shuffle(rivals)
    # Rather those that no supporting record mentions; the sort is stable, so chance decides else.
    rivals.sort(key=lambda rival: rival.again in fact.support)
    return tuple(rival.value for rival in rivals[:3])


_KINDS = {
    "place": "fact",
    "person": "fact",
    "time": "plan",
    "thing": "event",
    "liking": "preference",
}
"""The stratum of a question by the type of its answer."""

_ASIDES = 3
"""Sentences per record from its circle: enough that records of one circle look alike."""

_EPOCH = datetime(2023, 1, 9, 7, 0)


def _write_pool(user: str, persona: Persona, life: _Life, rng: Random) -> Pool:
    """Write all records of a user."""
    size = len(life.threads)
    decks = {use: rng.sample(lines, len(lines)) for use, lines in voices().items()}
    order = {fact: rng.sample(fact.value.tellings, 2) for fact in life.facts}
    moments = _moments(size, rng)
    records = []
    for position in range(size):
        turns = _turns(position, persona, life, decks, order, rng)
        records.append(
            Record.from_turns(f"{user}-r{position}", position, turns, timestamp=moments[position])
        )
    return Pool(user, tuple(records))


def _turns(
    position: int,
    persona: Persona,
    life: _Life,
    decks: dict[str, list[str]],
    order: dict[_Fact, list[str]],
    rng: Random,
) -> list[Turn]:
    thread = life.threads[position]
    facts = [
        rng.choice(thread.facets[fact.type].told).format(x=order[fact][0])
        for fact in life.facts
        if fact.position == position
    ]
    rng.shuffle(facts)
    circle = decks[life.circles[position]]
    asides = [persona.fill(circle.pop()) for _ in range(_ASIDES)]
    back = [
        _join(
            decks["callback"].pop(),
            life.threads[fact.position].facets[fact.type].retold.format(x=order[fact][1]),
        )
        for fact in life.facts
        if fact.again == position
    ]
    strays = [
        decks[f"stray {fact.type}"].pop().format(x=order[fact][1])
        for fact in life.facts
        if fact.stray == position
    ]
    opening = [_join(decks["prefix"].pop(), rng.choice(thread.openings))]
    if position == 0:
        opening.append(persona.fill(decks["intro"].pop()))
    colour = rng.choice(thread.colour)
    spoken = (
        [*opening, facts[0], asides[0]],
        [facts[1], colour, *facts[3:], *asides[2:]],
        [facts[2], asides[1], *strays, *back],
    )
    replies = [rng.choice(thread.replies), decks["reply"].pop(), decks["reply"].pop()]
    # Some sessions end with the user's last word.
    if rng.random() < 0.4:
        replies.pop()
    turns = []
    for index, sentences in enumerate(spoken):
        turns.append(Turn("user", " ".join(map(_capital, sentences))))
        turns.extend(Turn("assistant", answer) for answer in replies[index : index + 1])
    return turns


def _join(opening: str, sentence: str) -> str:
    # "Before I forget:" and "Oh, and" go on in lower case; "I" and "I'd" stay as they are.
    first = sentence.split(" ", 1)[0]
    keep = first == "I" or first.startswith("I'")
    return f"{opening} {sentence if keep else sentence[0].lower() + sentence[1:]}"


def _capital(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]


def _moments(count: int, rng: Random) -> list[str]:
    moment = _EPOCH + timedelta(days=rng.randrange(500), minutes=rng.randrange(14 * 60))
    moments = []
    for _ in range(count):
        moments.append(moment.isoformat())
        moment += timedelta(days=rng.randrange(4, 40))
        moment = moment.replace(hour=rng.randrange(7, 23), minute=rng.randrange(60))
    return moments


def _ask(user: str, number: int, persona: Persona, life: _Life, gold: str, rng: Random) -> Question:
    """Write one question; the right option has the letter `gold`."""
    fact, wrong = life.inquiries[number]
    thread = life.threads[fact.position]
    options = rng.sample([value.option for value in wrong], len(wrong))
    options.insert(letters(4).index(gold), fact.value.option)
    return Question(
        id=f"{user}-q{number}",
        user=user,
        text=persona.fill(thread.facets[fact.type].question),
        options=tuple(options),
        gold=gold,
        kind=_KINDS[fact.type],
        detail=f"{thread.key}/{fact.type}",
        labels={"benchmark": frozenset(f"{user}-r{position}" for position in fact.support)},
    )
