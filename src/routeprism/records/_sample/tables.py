"""Read the text tables into nouns.

The tables are plain prose with one mark per paragraph, so that they can be read and mended like
prose; a line that is indented deeper goes on with the paragraph above it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from routeprism.records._sample import text_cast, text_craft, text_life, text_music, text_outdoors
from routeprism.records._sample.text_values import VALUES
from routeprism.records._sample.text_voices import VOICES

__all__ = [
    "TYPES",
    "Facet",
    "Job",
    "Thread",
    "Value",
    "cast",
    "jobs",
    "threads",
    "values",
    "voices",
]

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
    """What is asked about it; `{name}` stands for the user."""
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


@dataclass(frozen=True, slots=True)
class Job:
    """What somebody does for a living."""

    trade: str
    workplace: str
    duty: str


def _sections(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for block in re.split(r"^= ", text, flags=re.MULTILINE)[1:]:
        key, *lines = block.splitlines()
        found[key] = [line for line in lines if line.strip()]
    return found


def _paragraphs(lines: list[str], *, margin: str) -> Iterator[str]:
    held = ""
    for line in lines:
        if line.startswith(margin):
            held = f"{held} {line.strip()}"
        else:
            if held:
                yield held
            held = line.rstrip()
    if held:
        yield held


@cache
def values() -> Mapping[str, tuple[Value, ...]]:
    """Give the values of every type."""
    found: dict[str, tuple[Value, ...]] = {}
    for key, lines in _sections(VALUES).items():
        grouped: list[tuple[str, list[str]]] = []
        for paragraph in _paragraphs(lines, margin="    "):
            if paragraph.startswith("  "):
                grouped[-1][1].append(paragraph.strip())
            else:
                grouped.append((paragraph, []))
        found[key] = tuple(Value(option, tuple(tellings)) for option, tellings in grouped)
    return found


@cache
def threads() -> tuple[Thread, ...]:
    """Give all threads.

    Marks: `+` opening, `-` colour, `>` reply; then for each type `TYPE?` its question,
    `TYPE:` a sentence that tells the fact, `TYPE<` one that comes back to it elsewhere.
    """
    modules = (text_music, text_outdoors, text_craft, text_life)
    return tuple(
        _thread(key, list(_paragraphs(lines, margin="  ")))
        for module in modules
        for key, lines in _sections(module.THREADS).items()
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
    """Give sentences and openings by use."""
    return {key: tuple(_paragraphs(lines, margin="  ")) for key, lines in _sections(VOICES).items()}


@cache
def cast() -> Mapping[str, tuple[str, ...]]:
    """Give names of people, animals, streets and towns by use."""
    return {
        key: tuple(name.strip() for name in " ".join(lines).split(",") if name.strip())
        for key, lines in _sections(text_cast.CAST).items()
        if key != "job"
    }


@cache
def jobs() -> tuple[Job, ...]:
    """Give all jobs."""
    lines = _sections(text_cast.CAST)["job"]
    return tuple(Job(*(part.strip() for part in line.split("|"))) for line in lines)
