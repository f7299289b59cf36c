"""Small benchmarks, as the lines of own data, that show what a memory of the zoo does."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from routeprism import Benchmark, load_benchmark

Line = Mapping[str, Any]

TOPICS = ("key", "dentist", "flight", "recipe", "bicycle", "choir", "garden", "library")
PEOPLE = ("Ada", "Ben", "Cleo", "Dag", "Eva", "Finn", "Greta", "Hugo", "Ines", "Jon", "Kit", "Lea")
CITIES = ("Porto", "Tbilisi", "Oslo", "Lima", "Quito", "Hanoi", "Turin", "Bergen", "Accra")


@dataclass(frozen=True)
class Lines:
    """The lines of `records.jsonl` and of `questions.jsonl`."""

    records: Sequence[Line]
    questions: Sequence[Line]

    def write(self, directory: Path) -> Path:
        """Write a directory of own data."""
        directory.mkdir(parents=True, exist_ok=True)
        for name, lines in (("records", self.records), ("questions", self.questions)):
            text = "".join(json.dumps(line) + "\n" for line in lines)
            (directory / f"{name}.jsonl").write_text(text, "utf-8")
        return directory


_FOLDER = TemporaryDirectory(prefix="routeprism-zoo-")


@cache
def load(write_lines: Callable[[], Lines]) -> Benchmark:
    """Write the lines into a directory that lasts as long as the process, and load it."""
    directory = Path(_FOLDER.name) / write_lines.__name__
    return load_benchmark(str(write_lines().write(directory)), None)


def make_record(user: str, name: str, text: str, day: int | None) -> Line:
    date = {"timestamp": f"2025-03-{day:02d}"} if day is not None else {}
    return {"user": user, "id": name, "text": text, **date}


def make_question(user: str, name: str, support: Sequence[str], gold: str, text: str) -> Line:
    identity = f"{user}-{name}"
    return {"user": user, "id": identity, "text": text, "gold": gold, "support": list(support)}


def name_value(user: int, at: int) -> str:
    """Return a value that no other record of the user has."""
    return f"{PEOPLE[(user + at) % len(PEOPLE)]} of {CITIES[(2 * user + at) % len(CITIES)]}"


def make_diary(
    positions: Sequence[int],
    *,
    users: int = 8,
    length: int = len(TOPICS),
    texts: Mapping[int, str] | None = None,
) -> Lines:
    """Write one record about each topic, with a date, and questions about some of them.

    `texts` replaces the text of records by position; `{value}` in it stands for the value.
    """
    records, questions = [], []
    for number in range(users):
        user = PEOPLE[number % len(PEOPLE)].lower() + ("" if number < 12 else str(number))
        for at in range(length):
            topic, value = (
                f"{TOPICS[at % len(TOPICS)]}{'' if at < 8 else at}",
                name_value(number, at),
            )
            text = (texts or {}).get(at, f"{topic}: the matter of the {topic} is with {{value}}.")
            records.append(make_record(user, f"{user}-n{at}", text.format(value=value), at + 1))
            if at in positions:
                question = f"Who has to do with the {topic}?"
                questions.append(make_question(user, topic, [f"{user}-n{at}"], value, question))
    return Lines(records, questions)


def write_diary() -> Lines:
    """Eight unrelated records, and a question about each of them."""
    return make_diary(range(8))


def write_late_diary() -> Lines:
    """Eight unrelated records, and questions about those after the third."""
    return make_diary((3, 5, 6, 7))


def write_newest_diary() -> Lines:
    """Eight unrelated records, and questions about the last four."""
    return make_diary((4, 5, 6, 7))


def write_early_diary() -> Lines:
    """Eight unrelated records, and questions about the first three."""
    return make_diary((0, 1, 2))


def write_mentions() -> Lines:
    """Two of the late records mention the topics of the first two."""
    mentions = {
        5: "choir: {value} sings, and the key and the dentist are as they were.",
        6: "garden: {value} waters it, and the key is as it was.",
    }
    return make_diary((0, 1, 4, 6, 7), texts=mentions)


def write_import() -> Lines:
    """The second record is an import, after which an index starts again."""
    return make_diary((2, 4, 7), texts={1: "Import: all that was noted before {value} came."})


def write_twins() -> Lines:
    """The third and the sixth record have almost the same words; the later one is asked."""
    twins = {
        2: "flight: the seat on the flight to the north is booked by {value} for Monday",
        5: "choir: the seat on the flight to the north is booked by {value} for Friday",
    }
    return make_diary((4, 5, 7), texts=twins)


def write_prices() -> Lines:
    """The fourth and the seventh record contain a sign that an adapter cannot pass on."""
    prices = {
        3: "recipe: {value} pays 30 € for the recipe.",
        6: "garden: {value} pays 70 € for the garden.",
    }
    return make_diary((1, 3, 5, 6), texts=prices)


def write_ties() -> Lines:
    """Five records name the garden; the question about it needs the second of them."""
    words = ("the wall", "the gate", "the pond", "the bench", "the shed")
    texts = {
        at: f"note: {part} of the garden is built by {{value}}."
        for at, part in zip((0, 2, 3, 5, 6), words, strict=True)
    }
    lines = make_diary((), texts=texts)
    questions = [
        make_question(
            line["user"], "garden", [line["id"]], "the gate", "What does the garden need?"
        )
        for line in lines.records
        if line["id"].endswith("-n2")
    ]
    return Lines(lines.records, questions)


def write_names() -> Lines:
    """Six records about two people, who have three names each."""
    records, questions = [], []
    for number, user in enumerate(name.lower() for name in PEOPLE[:8]):
        for at in range(6):
            name = (("Dr Brook", "Ada Brook", "A. B."), ("Mr Lund", "Nils", "N. L."))[at % 2][
                at // 2
            ]
            text = f"{name} (client {at % 2}): bought {name_value(number, at)}."
            records.append(make_record(user, f"{user}-n{at}", text, at + 1))
        for at in (0, 3, 5):
            text = f"What did client {at % 2} buy on day {at + 1}?"
            questions.append(
                make_question(user, f"q{at}", [f"{user}-n{at}"], name_value(number, at), text)
            )
    return Lines(records, questions)


FACTS = (
    ("plan", 1),
    ("city", 2),
    ("city", 3),
    ("talk", 5),
    ("plan", 8),
    ("plan", 9),
    ("pet", 12),
    ("pet", 14),
)
"""Fact and day of each record; two updates come one day after what they replace."""


def make_ledger(
    facts: Sequence[tuple[str, int]], *, users: int = 8, supersedes: bool = True
) -> Lines:
    """Write facts that change, and a question about the newest value of each."""
    records, questions = [], []
    for number, user in enumerate(name.lower() for name in PEOPLE[:users]):
        chains: dict[str, list[tuple[int, int]]] = {}
        for at, (fact, day) in enumerate(facts):
            line = make_record(
                user, f"{user}-n{at}", f"{fact}: now it is {name_value(number, at)}.", day
            )
            if supersedes and fact in chains:
                line = {**line, "supersedes": [f"{user}-n{chains[fact][-1][1]}"]}
            chains.setdefault(fact, []).append((day, at))
            records.append(line)
        for fact, chain in chains.items():
            at = max(chain, key=lambda member: (member[0], member[1]))[1]
            question = make_question(
                user,
                fact,
                [f"{user}-n{at}"],
                name_value(number, at),
                f"What is the {fact} of {user} now?",
            )
            outdated = [name_value(number, place) for _, place in chain if place != at]
            stale = [f"{user}-n{place}" for _, place in chain if place != at]
            more = {"stale": stale, "outdated": outdated} if stale else {}
            questions.append({**question, **more})
    return Lines(records, questions)


def write_ledger() -> Lines:
    """Three facts that change, and one that does not."""
    return make_ledger(FACTS)


def write_small_ledger() -> Lines:
    """Two facts that change, for six users."""
    return make_ledger(FACTS[:6], users=6)


def write_newest_first() -> Lines:
    """The same facts, but source order has the newest record first."""
    return make_ledger(FACTS[::-1], supersedes=False)


def write_equal_days() -> Lines:
    """Old and new value of two facts have the same date; only source order tells them apart."""
    days = {2: 2, 5: 8}
    return make_ledger([(fact, days.get(at, day)) for at, (fact, day) in enumerate(FACTS)])


def write_sixty() -> Lines:
    """Ask sixty questions about old records but one: 59 are about the first five, one the last."""
    lines = make_diary((0, 1, 2, 3, 4), users=12, length=10)
    *questions, _ = lines.questions
    (newest,) = make_diary((9,), users=12, length=10).questions[-1:]
    return Lines(lines.records, [*questions, newest])


def write_many_pools() -> Lines:
    """Five hundred users with three records each, and one question about a fact that changed."""
    records, questions = [], []
    for number in range(500):
        user = f"u{number:03d}"
        for at, fact in enumerate(("plan", "talk", "plan")):
            text = f"{fact}: user {user} settles on {name_value(number, at)}."
            line = make_record(user, f"{user}-n{at}", text, at + 1)
            records.append(line)
        text = f"What is the plan of {user}?"
        questions.append(make_question(user, "plan", [f"{user}-n2"], name_value(number, 2), text))
    return Lines(records, questions)


def write_pairs() -> Lines:
    """Three records for each of three users, for writes that overlap."""
    return make_ledger((("plan", 1), ("city", 2), ("plan", 4)), users=3)
