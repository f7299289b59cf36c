"""Plan the life of each user of the sample, and put it into records and questions.

The plan decides which record contains which fact and what is asked. Options of one type are all
true of the same user, each about a different matter, so that a wrong option is in the pool as
surely as the right one, and only the matter it belongs to distinguishes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import cycle, islice
from typing import TYPE_CHECKING

from routeprism.records._benchmarks import Pool, Question, Record, Turn, letters
from routeprism.records._sample.tables import TYPES, values, voices

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from random import Random

    from routeprism.records._sample.tables import Persona, Thread, Value

__all__ = ["CIRCLES", "KINDS", "Inquiry", "Life", "LifeFact", "ask", "plan_life", "write_pool"]


CIRCLES = ("home", "work", "town")
"""The people whom a record is about. Records of one circle mention the same people and places, so
they resemble each other more than records of two circles: a similarity policy can merge them."""

_CIRCLES_BY_SIZE = {4: (1, 2, 2), 5: (1, 2, 2, 2), 6: (1, 2, 2, 3), 7: (2, 2, 3, 3)}

_TOO_FEW = 4
"""In a pool of four, two supporting records would leave too few others for three wrong options."""

RETOLD = 0.36
"""How often a fact that is asked comes up a second time, where the pool is large enough."""

STRAY = 0.4
"""How often the words of any other fact that is asked also fall about somebody or something else,
so that without its support the right option is not simply the one the pool never heard of."""


@dataclass(frozen=True, slots=True)
class LifeFact:
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
        """The positions that tell it."""
        return (self.position,) if self.again is None else (self.position, self.again)


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A fact that is asked, and what else could be answered."""

    fact: LifeFact
    wrong: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Life:
    """One user's threads with their circles, the facts, and the questions."""

    threads: tuple[Thread, ...]
    circles: tuple[str, ...]
    facts: tuple[LifeFact, ...]
    inquiries: tuple[Inquiry, ...]

    def list_facts(self, position: int) -> tuple[LifeFact, ...]:
        """Return the facts of a record's own thread."""
        return tuple(fact for fact in self.facts if fact.position == position)

    def retold(self, position: int) -> tuple[LifeFact, ...]:
        """Return the facts of other threads that a record comes back to."""
        return tuple(fact for fact in self.facts if fact.again == position)

    def strays(self, position: int) -> tuple[LifeFact, ...]:
        """Return the facts whose words a record uses for something else."""
        return tuple(fact for fact in self.facts if fact.stray == position)


def plan_life(threads: tuple[Thread, ...], questions: int, rng: Random) -> Life:
    """Plan the life of a user with these threads, one per record, and so many questions."""
    size = len(threads)
    types = _some_types(rng)
    bank = {name: rng.sample(values()[name], size) for name in types}
    pairs = _asked_pairs(size, types, questions, rng)
    circles = _circles(size, rng)
    second_places = _second_places(pairs, circles, RETOLD, rng) if size > _TOO_FEW else {}
    left = [pair for pair in pairs if pair not in second_places]
    stray = _second_places(left, circles, STRAY, rng)
    facts = tuple(
        LifeFact(
            position,
            name,
            bank[name][position],
            second_places.get((position, name)),
            stray.get((position, name)),
        )
        for position in range(size)
        for name in types
    )
    by_pair = {(fact.position, fact.type): fact for fact in facts}
    inquiries = tuple(_inquiry(by_pair[pair], facts, rng) for pair in pairs)
    return Life(threads, circles, facts, inquiries)


def _some_types(rng: Random) -> tuple[str, ...]:
    # Not all five: records would all have the same build, and their common words would drown the
    # difference between circles.
    types = rng.sample(TYPES, rng.choice((3, 4)))
    return tuple(name for name in TYPES if name in types)


def _circles(size: int, rng: Random) -> tuple[str, ...]:
    count = rng.choice(_CIRCLES_BY_SIZE[size])
    dealt = list(islice(cycle(rng.sample(CIRCLES, count)), size))
    rng.shuffle(dealt)
    return tuple(dealt)


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


def _inquiry(fact: LifeFact, facts: tuple[LifeFact, ...], rng: Random) -> Inquiry:
    rivals = [
        rival for rival in facts if rival.type == fact.type and rival.position not in fact.support
    ]
    rng.shuffle(rivals)
    # Rather those that no supporting record mentions; the sort is stable, so chance decides else.
    rivals.sort(key=lambda rival: rival.again in fact.support)
    return Inquiry(fact, tuple(rival.value for rival in rivals[:3]))


KINDS = {
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


def write_pool(user: str, persona: Persona, life: Life, rng: Random) -> Pool:
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
    life: Life,
    decks: dict[str, list[str]],
    order: dict[LifeFact, list[str]],
    rng: Random,
) -> list[Turn]:
    thread = life.threads[position]
    facts = [
        rng.choice(thread.facets[fact.type].told).format(x=order[fact][0])
        for fact in life.list_facts(position)
    ]
    rng.shuffle(facts)
    circle = decks[life.circles[position]]
    asides = [persona.fill(circle.pop()) for _ in range(_ASIDES)]
    back = [
        _join(
            decks["callback"].pop(),
            life.threads[fact.position].facets[fact.type].retold.format(x=order[fact][1]),
        )
        for fact in life.retold(position)
    ]
    strays = [
        decks[f"stray {fact.type}"].pop().format(x=order[fact][1]) for fact in life.strays(position)
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


def ask(
    user: str, number: int, persona: Persona, life: Life, inquiry: Inquiry, gold: str, rng: Random
) -> Question:
    """Write one question; the right option stands at the letter `gold`."""
    fact = inquiry.fact
    thread = life.threads[fact.position]
    options = rng.sample([value.option for value in inquiry.wrong], len(inquiry.wrong))
    options.insert(letters(4).index(gold), fact.value.option)
    return Question(
        id=f"{user}-q{number}",
        user=user,
        text=persona.fill(thread.facets[fact.type].question),
        options=tuple(options),
        gold=gold,
        kind=KINDS[fact.type],
        detail=f"{thread.key}/{fact.type}",
        labels={"benchmark": _ids(user, fact.support)},
    )


def _ids(user: str, positions: Sequence[int]) -> frozenset[str]:
    return frozenset(f"{user}-r{position}" for position in positions)
