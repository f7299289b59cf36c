"""Read the text files of both samples, and invent their people from them.

The files are plain prose with one mark per paragraph, so that they can be read and edited like
prose. A line that is indented deeper continues the paragraph above it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import cycle, islice
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from random import Random

T = TypeVar("T")

TYPES = ("place", "person", "time", "thing", "liking")
"""What a fact can be about. Options of a question are all of one type."""


@dataclass(frozen=True, slots=True)
class Value:
    """One thing a fact can be about."""

    option: str
    """How an answer option names it."""
    tellings: tuple[str, ...]
    """How people say it in a record: all of the option's words, never in the option's order."""


@dataclass(frozen=True, slots=True)
class Facet:
    """One fact of a thread, still without its value: `{x}` stands for a telling."""

    question: str
    """The question about it; `{name}` stands for the user."""
    told: tuple[str, ...]
    """Sentences for the record that is about the thread."""
    retold: str
    """A sentence for a record that is about something else."""


@dataclass(frozen=True, slots=True)
class Thread:
    """One matter in a life: a hobby, a plan, a worry."""

    key: str
    openings: tuple[str, ...]
    colour: tuple[str, ...]
    replies: tuple[str, ...]
    facets: Mapping[str, Facet]
    """By type; every thread has all of them."""


_THREADS = ("music", "outdoors", "craft", "life")
"""The files with the texts of threads."""


def read_sections(name: str) -> dict[str, list[str]]:
    """Read a text file by its headings."""
    text = files(__package__).joinpath(f"_sample/{name}.txt").read_text("utf-8")
    sections: dict[str, list[str]] = {}
    for block in re.split(r"^= ", text, flags=re.MULTILINE)[1:]:
        key, *lines = block.splitlines()
        sections[key] = [line for line in lines if line.strip()]
    return sections


def _paragraphs(lines: list[str], *, margin: str) -> Iterator[str]:
    paragraph = ""
    for line in lines:
        if line.startswith(margin):
            paragraph = f"{paragraph} {line.strip()}"
        else:
            if paragraph:
                yield paragraph
            paragraph = line.rstrip()
    if paragraph:
        yield paragraph


@cache
def values() -> Mapping[str, tuple[Value, ...]]:
    """Return the values of every type."""
    values_by_type: dict[str, tuple[Value, ...]] = {}
    for key, lines in read_sections("values").items():
        grouped: list[tuple[str, list[str]]] = []
        for paragraph in _paragraphs(lines, margin="    "):
            if paragraph.startswith("  "):
                grouped[-1][1].append(paragraph.strip())
            else:
                grouped.append((paragraph, []))
        values_by_type[key] = tuple(Value(option, tuple(tellings)) for option, tellings in grouped)
    return values_by_type


@cache
def threads() -> tuple[Thread, ...]:
    """Return all threads.

    Marks: `+` opening, `-` colour, `>` reply; then for each type `TYPE?` its question,
    `TYPE:` a sentence that tells the fact, `TYPE<` one that comes back to it elsewhere.
    """
    return tuple(
        _thread(key, list(_paragraphs(lines, margin="  ")))
        for name in _THREADS
        for key, lines in read_sections(name).items()
    )


def _thread(key: str, paragraphs: list[str]) -> Thread:
    def marked(mark: str) -> tuple[str, ...]:
        return tuple(p[len(mark) :].strip() for p in paragraphs if p.startswith(mark))

    facets = {
        name: Facet(marked(f"{name}?")[0], marked(f"{name}:"), marked(f"{name}<")[0])
        for name in TYPES
    }
    return Thread(key, marked("+ "), marked("- "), marked("> "), facets)


@cache
def voices() -> Mapping[str, tuple[str, ...]]:
    """Return sentences and openings by use."""
    return {
        key: tuple(_paragraphs(lines, margin="  "))
        for key, lines in read_sections("voices").items()
    }


@cache
def cast() -> Mapping[str, tuple[str, ...]]:
    """Return names of people, animals, streets and towns by use."""
    return {
        key: tuple(name.strip() for name in " ".join(lines).split(",") if name.strip())
        for key, lines in read_sections("cast").items()
        if key != "job"
    }


@dataclass(frozen=True, slots=True)
class Persona:
    """Who a user is, in three circles: home, work and town."""

    names: Mapping[str, str]
    """By use: `name`, `partner`, `rel` (what the partner is to the user, such as a sister), `pet`,
    `street`; `occupation` (with its article), `work`, `task`, `boss`, `mate`; `town`, `landmark`,
    `river`, `neighbour`."""

    def fill(self, sentence: str) -> str:
        """Put this life's names into a sentence."""
        return sentence.format(**self.names)


def invent(count: int, rng: Random) -> tuple[Persona, ...]:
    """Invent that many personas."""
    names = cast()
    jobs = rng.sample(read_sections("cast")["job"], count)
    uses = ("name", "partner", "pet", "street", "boss", "town", "landmark")
    columns = [rng.sample(names[use], count) for use in uses]
    people = []
    for job, *row in zip(jobs, *columns, strict=True):
        trade, work, task = map(str.strip, job.split("|"))
        texts = {**dict(zip(uses, row, strict=True)), "work": work, "task": task}
        texts["rel"], texts["partner"] = texts["partner"].split()
        texts["mate"], texts["neighbour"] = rng.sample(names["other"], 2)
        texts["occupation"] = f"{'an' if trade[0] in 'aeiou' else 'a'} {trade}"
        texts["river"] = rng.choice(names["river"])
        people.append(Persona(texts))
    return tuple(people)


def deal(items: Sequence[T], count: int, rng: Random) -> list[T]:
    """Repeat items until there are `count`, and shuffle them."""
    dealt = list(islice(cycle(items), count))
    rng.shuffle(dealt)
    return dealt
