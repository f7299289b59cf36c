"""Put a planned life into words: records of several turns, and questions with four options."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from routeprism.records._nouns import Pool, Question, Record, Turn, letters
from routeprism.records._sample.tables import voices

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from routeprism.records._sample.people import Persona
    from routeprism.records._sample.plan import Fact, Inquiry, Life

__all__ = ["KINDS", "ask", "write_pool"]

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
    order: dict[Fact, list[str]],
    rng: Random,
) -> list[Turn]:
    thread = life.threads[position]
    told = [
        rng.choice(thread.facets[fact.type].told).format(x=order[fact][0])
        for fact in life.told(position)
    ]
    rng.shuffle(told)
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
    said = (
        [*opening, told[0], asides[0]],
        [told[1], colour, *told[3:], *asides[2:]],
        [told[2], asides[1], *strays, *back],
    )
    answered = [rng.choice(thread.replies), decks["reply"].pop(), decks["reply"].pop()]
    # Some sessions end with the user's last word.
    if rng.random() < 0.4:
        answered.pop()
    turns = []
    for index, sentences in enumerate(said):
        turns.append(Turn("user", " ".join(map(_capital, sentences))))
        turns.extend(Turn("assistant", answer) for answer in answered[index : index + 1])
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
    found = []
    for _ in range(count):
        found.append(moment.isoformat())
        moment += timedelta(days=rng.randrange(4, 40))
        moment = moment.replace(hour=rng.randrange(7, 23), minute=rng.randrange(60))
    return found


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
