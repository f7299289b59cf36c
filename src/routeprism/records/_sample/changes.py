"""Write lives in which facts change: chains of values, distractors, and questions about both."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING

from routeprism.records._benchmarks import Case, Pool, Question, Record, Turn, letters
from routeprism.records._sample.tables import read_sections, voices

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from routeprism.records._sample.tables import Persona

__all__ = ["KINDS", "ChangeTopic", "name_fact", "topics", "write_case"]

KINDS = ("current", "previous", "change")
"""The strata of the questions: the current value, the value before it, the time of the change."""

_EPOCH = datetime(2024, 1, 8, 9, 0)
_DISTRACTORS = (2, 3)
_OPTIONS = 4
_OPENING = re.compile(r"About the ([a-z ]+):")


@dataclass(frozen=True, slots=True)
class ChangeTopic:
    """A fact that can change, and the values that it can have."""

    name: str
    """The name in records and questions, such as `wifi password`."""
    opening: str
    """A sentence about it that tells no value."""
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Statement:
    """One record of a chain, before it is written."""

    topic: ChangeTopic
    value: str
    previous: str | None
    time: datetime
    step: int
    """Its place in the chain, from 0."""

    @property
    def day(self) -> str:
        return f"{self.time:%d %B}"


@cache
def topics() -> tuple[ChangeTopic, ...]:
    """Return all topics of the sample."""
    topics = []
    for lines in read_sections("updates").values():
        name, opening, values = (line.split(" ", 1)[1].strip() for line in lines)
        topics.append(
            ChangeTopic(name, opening, tuple(value.strip() for value in values.split("|")))
        )
    return tuple(topics)


def name_fact(record: Record) -> str | None:
    """Name the fact that a record of the sample tells, from its text; None for small talk."""
    opening = _OPENING.match(record.user_text)
    return opening[1] if opening else None


def write_case(
    user: str,
    persona: Persona,
    change_topics: Sequence[ChangeTopic],
    lengths: Sequence[int],
    rng: Random,
) -> Case:
    """Write one user's records in the order of their dates, and the questions about them."""
    bank = {topic: rng.sample(topic.values, len(topic.values)) for topic in change_topics}
    number = sum(lengths) + rng.choice(_DISTRACTORS)
    times = _moments(number, rng)
    plan = _plan(change_topics, lengths, bank, times, rng)
    decks = {use: rng.sample(lines, len(lines)) for use, lines in voices().items()}
    records, places = [], {}
    for position, (time, statement) in enumerate(zip(times, plan, strict=True)):
        if statement is None:
            topic = rng.choice(change_topics)
            turns = _small_talk(topic, bank[topic][-1], persona, decks)
        else:
            turns = _statement_turns(statement, persona, decks)
            places[statement.topic, statement.step] = position
        identity = f"{user}-r{position}"
        record = Record.from_turns(identity, position, turns, timestamp=time.isoformat())
        records.append(record)
    chains = {
        topic: [plan[places[topic, step]] for step in range(length)]
        for topic, length in zip(change_topics, lengths, strict=True)
    }
    supersedes = {
        records[places[topic, step]].id: frozenset((records[places[topic, step - 1]].id,))
        for topic, length in zip(change_topics, lengths, strict=True)
        for step in range(1, length)
    }
    questions: list[Question] = []
    for topic, chain in chains.items():
        ids = [records[places[topic, step]].id for step in range(len(chain))]
        statements = [statement for statement in chain if statement is not None]
        for kind in KINDS:
            identity = f"{user}-q{len(questions)}"
            questions.append(_ask(identity, user, persona, kind, statements, ids, bank[topic], rng))
    return Case(Pool(user, tuple(records)), tuple(questions), supersedes)


def _moments(count: int, rng: Random) -> list[datetime]:
    moment = _EPOCH + timedelta(days=rng.randrange(60))
    moments = []
    for _ in range(count):
        moments.append(moment.replace(hour=rng.randrange(8, 21), minute=rng.randrange(60)))
        moment += timedelta(days=rng.randrange(5, 23))
    return moments


def _plan(
    change_topics: Sequence[ChangeTopic],
    lengths: Sequence[int],
    bank: dict[ChangeTopic, list[str]],
    times: Sequence[datetime],
    rng: Random,
) -> list[_Statement | None]:
    """Deal the chains over the moments; what is left over is small talk."""
    owners: list[ChangeTopic | None] = [
        topic for topic, length in zip(change_topics, lengths, strict=True) for _ in range(length)
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
        plan.append(_Statement(topic, bank[topic][step], previous, time, step))
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
    topic: ChangeTopic, value: str, persona: Persona, decks: dict[str, list[str]]
) -> list[Turn]:
    """Write a record that tells no fact, but names a value that is nobody's here."""
    return [
        Turn("user", f"{persona.fill(decks['town'].pop())} {persona.fill(decks['town'].pop())}"),
        Turn("assistant", decks["reply"].pop()),
        Turn("user", f"{persona.neighbour} from next door recommends {value}, but not to me."),
    ]


_TEXTS = {
    "current": "What is {name}'s current {topic}?",
    "previous": "What was {name}'s previous {topic}?",
    "change": "On which day did {name}'s {topic} change to what it is?",
}


def _ask(
    identity: str,
    user: str,
    persona: Persona,
    kind: str,
    chain: Sequence[_Statement],
    ids: Sequence[str],
    bank: Sequence[str],
    rng: Random,
) -> Question:
    """Ask for what the last record of a chain tells: the records before it are outdated."""
    if kind == "change":
        days = [statement.day for statement in chain]
        offset = chain[-1].time + timedelta(days=3)
        spare = [f"{day:%d %B}" for day in (offset, offset + timedelta(days=11))]
        spare += [f"{day:%d %B}" for day in (offset - timedelta(days=50),)]
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
        text=_TEXTS[kind].format(name=persona.name, topic=chain[0].topic.name),
        options=tuple(options),
        gold=letter_of[days[-1]],
        kind=kind,
        detail=f"{chain[0].topic.name}/{len(chain)} values",
        labels={"benchmark": frozenset((ids[-1],))},
        stale={"benchmark": frozenset(ids[:-1])},
        outdated=tuple(sorted(letter_of[value] for value in once)),
    )
