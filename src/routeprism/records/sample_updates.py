"""Generate the sample with updates: invented people whose facts change, and questions about them.

It is synthetic: a seeded generator writes it and needs no file. The benchmark's notes mark it.
Every record has a date. A fact has two to four values; each new record replaces the one before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, lru_cache
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING

from routeprism.records._benchmarks import (
    Benchmark,
    Case,
    Pool,
    Question,
    Record,
    Turn,
    letters,
)
from routeprism.records._people import deal, invent, read_sections, voices
from routeprism.records.sample import DEFAULT_SEED, make_benchmark

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from routeprism.records._people import Persona

__all__ = ["DEFAULT_SEED", "generate", "load", "name_fact"]

_USERS = 24
_FACTS = 2
"""Facts per user."""
_LENGTHS = (2, 3, 4)
"""Values per fact, dealt round."""


def load(data: Path | None = None, *, seed: int = DEFAULT_SEED) -> Benchmark:
    """Return the sample as a benchmark. `data` is ignored: there is no file to read."""
    return _make(seed)


@lru_cache(maxsize=4)
def _make(seed: int) -> Benchmark:
    return make_benchmark("sample-updates", generate(seed), seed, updates=("benchmark",))


def generate(seed: int) -> tuple[Case, ...]:
    """Write all pools and questions of a seed; the same on every machine and in every process."""
    rng = Random(seed)  # noqa: S311 - reproducible text, no secret
    lengths = deal(_LENGTHS, _USERS * _FACTS, rng)
    cases = []
    for index, persona in enumerate(invent(_USERS, rng)):
        topics = rng.sample(_read_topics(), _FACTS)
        dealt = lengths[index * _FACTS : (index + 1) * _FACTS]
        cases.append(_write_case(f"u{index + 1:02d}", persona, topics, dealt, rng))
    return tuple(cases)


_EPOCH = datetime(2024, 1, 8, 9, 0)
_DISTRACTORS = (2, 3)
_OPTIONS = 4
_OPENING = re.compile(r"About the ([a-z ]+):")


@dataclass(frozen=True, slots=True)
class _Topic:
    """A fact that can change, and the values that it can have."""

    name: str
    """The name in records and questions, such as `wifi password`."""
    opening: str
    """A sentence about it that tells no value."""
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Statement:
    """One record of a chain, before it is written."""

    topic: _Topic
    value: str
    previous: str | None
    time: datetime

    @property
    def day(self) -> str:
        return f"{self.time:%d %B}"


@cache
def _read_topics() -> tuple[_Topic, ...]:
    topics = []
    for lines in read_sections("updates").values():
        name, opening, values = (line.split(" ", 1)[1].strip() for line in lines)
        topics.append(_Topic(name, opening, tuple(map(str.strip, values.split("|")))))
    return tuple(topics)


def name_fact(record: Record) -> str | None:
    """Name the fact that a record of the sample tells, from its text; None for small talk."""
    opening = _OPENING.match(record.user_text)
    return opening[1] if opening else None


def _write_case(
    user: str,
    persona: Persona,
    topics: Sequence[_Topic],
    lengths: Sequence[int],
    rng: Random,
) -> Case:
    """Write one user's records in the order of their dates, and the questions about them."""
    bank = {topic: rng.sample(topic.values, len(topic.values)) for topic in topics}
    number = sum(lengths) + rng.choice(_DISTRACTORS)
    times = _moments(number, rng)
    plan = _plan(topics, lengths, bank, times, rng)
    decks = {use: rng.sample(lines, len(lines)) for use, lines in voices().items()}
    records = []
    chains: dict[_Topic, list[tuple[str, _Statement]]] = {topic: [] for topic in topics}
    for position, (time, statement) in enumerate(zip(times, plan, strict=True)):
        identity = f"{user}-r{position}"
        if statement is None:
            topic = rng.choice(topics)
            turns = _small_talk(topic, bank[topic][-1], persona, decks)
        else:
            turns = _statement_turns(statement, persona, decks)
            chains[statement.topic].append((identity, statement))
        records.append(Record.from_turns(identity, position, turns, timestamp=time.isoformat()))
    supersedes = {
        later: frozenset((earlier,))
        for chain in chains.values()
        for (earlier, _), (later, _) in pairwise(chain)
    }
    questions: list[Question] = []
    for topic, chain in chains.items():
        for kind in _TEXTS:
            identity = f"{user}-q{len(questions)}"
            questions.append(_ask(identity, user, persona, kind, chain, bank[topic], rng))
    return Case(Pool(user, tuple(records)), tuple(questions), supersedes)


def _moments(count: int, rng: Random) -> list[datetime]:
    moment = _EPOCH + timedelta(days=rng.randrange(60))
    moments = []
    for _ in range(count):
        moments.append(moment.replace(hour=rng.randrange(8, 21), minute=rng.randrange(60)))
        moment += timedelta(days=rng.randrange(5, 23))
    return moments


def _plan(
    topics: Sequence[_Topic],
    lengths: Sequence[int],
    bank: dict[_Topic, list[str]],
    times: Sequence[datetime],
    rng: Random,
) -> list[_Statement | None]:
    """Deal the chains over the moments; what is left over is small talk."""
    owners: list[_Topic | None] = [
        topic for topic, length in zip(topics, lengths, strict=True) for _ in range(length)
    ]
    owners += [None] * (len(times) - len(owners))
    rng.shuffle(owners)
    plan: list[_Statement | None] = []
    for time, topic in zip(times, owners, strict=True):
        if topic is None:
            plan.append(None)
            continue
        step = sum(statement is not None and statement.topic is topic for statement in plan)
        previous = bank[topic][step - 1] if step else None
        plan.append(_Statement(topic, bank[topic][step], previous, time))
    return plan


def _statement_turns(
    statement: _Statement, persona: Persona, decks: dict[str, list[str]]
) -> list[Turn]:
    topic = statement.topic.name
    verb = "changed" if statement.previous else "began"
    turns_of_statement = [
        f"About the {topic}: {statement.topic.opening.format(topic=topic)} "
        f"The current {topic} is {statement.value}.",
        f"{persona.fill(decks['home'].pop())} The {topic} {verb} on {statement.day}.",
    ]
    if statement.previous:
        turns_of_statement.append(f"The previous {topic} was {statement.previous}.")
    turns = []
    for text in turns_of_statement:
        turns += [Turn("user", text), Turn("assistant", decks["reply"].pop())]
    return turns[:-1]


def _small_talk(
    topic: _Topic, value: str, persona: Persona, decks: dict[str, list[str]]
) -> list[Turn]:
    """Write a record that tells no fact, but names a value that no fact of the user has."""
    return [
        Turn("user", f"{persona.fill(decks['town'].pop())} {persona.fill(decks['town'].pop())}"),
        Turn("assistant", decks["reply"].pop()),
        Turn(
            "user",
            f"{persona.names['neighbour']} from next door recommends {value}, but not to me.",
        ),
    ]


_TEXTS = {  # by kind: the current value, the value before it, the time of the change
    "current": "What is {name}'s current {topic}?",
    "previous": "What was {name}'s previous {topic}?",
    "change": "On which day did {name}'s {topic} change to what it is?",
}


def _ask(
    identity: str,
    user: str,
    persona: Persona,
    kind: str,
    ids_and_statements: Sequence[tuple[str, _Statement]],
    bank: Sequence[str],
    rng: Random,
) -> Question:
    """Ask for what the last record of a chain tells: the records before it are outdated."""
    ids, chain = zip(*ids_and_statements, strict=True)
    if kind == "change":
        days = [statement.day for statement in chain]
        offset = chain[-1].time + timedelta(days=3)
        spare = [f"{offset + timedelta(days=later):%d %B}" for later in (0, 11, -50)]
    elif kind == "previous":
        days = [statement.value for statement in chain[:-1]]
        spare = [chain[-1].value, bank[-1], bank[-2]]
    else:
        days = [statement.value for statement in chain]
        spare = [bank[-1], bank[-2], bank[-3]]
    once = days[:-1][-(_OPTIONS - 1) :]
    wrong = [*once, *(value for value in spare if value not in days)][: _OPTIONS - 1]
    options = rng.sample([days[-1], *wrong], 1 + len(wrong))
    letter_of = dict(zip(options, letters(len(options)), strict=True))
    return Question(
        id=identity,
        user=user,
        text=_TEXTS[kind].format(name=persona.names["name"], topic=chain[0].topic.name),
        options=tuple(options),
        gold=letter_of[days[-1]],
        kind=kind,
        detail=f"{chain[0].topic.name}/{len(chain)} values",
        labels={"benchmark": frozenset((ids[-1],))},
        stale={"benchmark": frozenset(ids[:-1])},
        outdated=tuple(sorted(letter_of[value] for value in once)),
    )
