"""The entities of a fact, and the edge between them, for systems that store a graph."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from routeprism.models._facts import Fact
from routeprism.models._passages import terms, words

SPEAKER = "user"
"""The entity that stands for the person whose memory it is."""
_PROPER_NAME = re.compile(r"(?<=[a-z,] )[A-Z][\w'-]+(?: [A-Z][\w'-]+)*")
"""A name inside a sentence; its first word is capitalised anyway."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A fact as a relation of the speaker to something."""

    source: str
    relation: str
    target: str
    fact: Fact


def relate_entities(facts: Iterable[Fact], names: Sequence[str] | None = None) -> list[Edge]:
    """Return an edge for each fact; with `names`, only between entities of these names."""
    by_name = None if names is None else {name.lower(): name for name in names}
    edges = []
    for fact in facts:
        source, target = SPEAKER, _target(fact)
        if by_name is not None:
            source, target = by_name.get(source, ""), by_name.get(target.lower(), "")
        if source and target and source != target:
            relation = "HAS" if fact.attribute else "MENTIONS"
            edges.append(Edge(source, relation, target, fact))
    return edges


def name_entities(facts: Iterable[Fact]) -> list[str]:
    """Name the speaker and what each fact is about, each once."""
    targets = [edge.target for edge in relate_entities(facts)]
    return list(dict.fromkeys([SPEAKER, *targets])) if targets else []


def _target(fact: Fact) -> str:
    """Name what a fact is about: its attribute, a name in it, or its longest word."""
    if fact.attribute:
        return fact.attribute
    name = _PROPER_NAME.search(fact.text)
    if name is not None:
        return name[0].removesuffix("'s")
    content = [word for word in words(fact.text) if terms([word])]
    return max(content, key=len, default="")
