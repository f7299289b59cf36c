"""Facts that the scripted model reads from text, and how they relate to stored ones and entities.

The rules are few and fixed, so that anyone can foresee what the model does. A fact is a declarative
sentence. It has an *attribute* where it names something with one value at a time ("The current desk
is …", "My dentist is …", "I live in …"). It is negated where it takes something back ("I no longer
like …", "I hate …").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from routeprism.models.reader import affect, sentences, terms, words

Relation = Literal["same", "update", "delete", "unrelated"]
"""What a new fact does to a stored one."""

_SHORTEST = 3
"""Words; a shorter sentence states nothing ("Good morning.")."""
_SHARED = 0.75
"""The share of a negated fact's terms that the fact it takes back must contain."""

_OWNED = r"(?:my|our|his|her|their|the user's|user's|[A-Z]\w+'s)"
_MARKED = r"(?:the |my |our |his |her |their |user's )?(?:current|new|latest|usual|preferred|"
_MARKED += r"favourite|favorite|previous|former)"
_NAME = re.compile(
    rf"^(?P<subject>(?:{_OWNED}|{_MARKED}) [^,;:]{{1,60}}?) (?:is|are|was|were) "
    r"(?:now )?(?P<value>.+)$",
    re.IGNORECASE,
)
"""Something that the speaker has one of, or that is marked as the current one."""
_DATED = re.compile(
    r"^(?P<subject>[^,;:]{1,60}? (?:began|changed|starts?|started|ends?|ended) (?:on|at|in)) "
    r"(?P<value>.+)$",
    re.IGNORECASE,
)
_SITUATED = re.compile(
    r"^(?P<subject>(?:I|we|he|she|they|user)(?:'ve| have)?(?: now)? "
    r"(?P<verb>live|lives|moved|work|works|drive|drives|study|studies)) "
    r"(?P<value>(?:in|to|at|for|as|on|an?|the) .+)$",
    re.IGNORECASE,
)
_DROPPED = frozenset("the a an my our his her their current new latest usual now user's".split())
"""Words at the start of a subject that do not change which attribute it is."""
_STAYS = {"moved": "live", "lives": "live", "works": "work", "drives": "drive", "studies": "study"}
_TAKEN_BACK = re.compile(
    r"n't\b|\b(?:no longer|any ?more|not|never|stopped|quit|gave up|given up|cancelled|"
    r"forget that|no more)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Fact:
    """One sentence, with its subject."""

    text: str
    attribute: str = ""
    """What has one value at a time, in lower case; empty if the sentence names no such thing."""
    value: str = ""
    negated: bool = False

    @property
    def terms(self) -> frozenset[str]:
        """The stems of the words that carry content, without liking, dislike and negation."""
        plain = words(_TAKEN_BACK.sub(" ", self.text))
        return frozenset(terms(word for word in plain if not affect([word])))


def read_facts(texts: Iterable[str]) -> list[Fact]:
    """Read the facts of some texts: every declarative sentence, each once."""
    facts: dict[str, Fact] = {}
    for text in texts:
        for sentence in sentences(text):
            plain = " ".join(sentence.split())
            if len(words(plain)) >= _SHORTEST and not plain.rstrip("\"'”’)").endswith("?"):
                facts.setdefault(_strip_text(plain), read_fact(plain))
    return list(facts.values())


def read_fact(sentence: str) -> Fact:
    """Read what a sentence is about."""
    bare = sentence.strip().rstrip(".!")
    for pattern in (_NAME, _DATED, _SITUATED):
        match = pattern.match(bare)
        if match is not None:
            negated = _TAKEN_BACK.search(match["value"]) is not None
            return Fact(sentence, _name_attribute(match["subject"]), match["value"], negated)
    negated = _TAKEN_BACK.search(bare) is not None or affect(words(bare)) < 0
    return Fact(sentence, negated=negated)


def _name_attribute(subject: str) -> str:
    plain = subject.lower().split()
    while len(plain) > 1 and plain[0] in _DROPPED:
        plain = plain[1:]
    return " ".join(_STAYS.get(word, word) for word in plain if word not in ("have", "now"))


def _strip_text(text: str) -> str:
    return " ".join(words(text))


def relate_facts(new: Fact, stored: Fact) -> Relation:
    """Decide what a new fact does to a stored one.

    The same words change nothing. A negation of the same content takes the stored fact back.
    Another value of the same attribute replaces it.
    """
    if _strip_text(new.text) == _strip_text(stored.text):
        return "same"
    takes_back = 0 < _SHARED * len(own := new.terms) <= len(own & stored.terms)
    if new.negated and not stored.negated and takes_back:
        return "delete"
    if new.attribute and new.attribute == stored.attribute:
        return "same" if _strip_text(new.value) == _strip_text(stored.value) else "update"
    return "unrelated"


_PRECEDENCE: tuple[Relation, ...] = ("same", "delete", "update", "unrelated")


@dataclass(frozen=True, slots=True)
class Decision:
    """The effect of one new fact."""

    event: Literal["ADD", "UPDATE", "DELETE", "NONE"]
    id: str
    """The stored memory that it concerns; empty for a new one."""
    text: str
    old: str = ""


def decide_changes(new: Sequence[Fact], stored: Sequence[tuple[str, str]]) -> list[Decision]:
    """Decide about each new fact: keep, replace or remove a stored memory, or add the fact.

    Each stored memory is changed once at most. A fact that takes another back is not stored itself.
    """
    left = {id: read_fact(text) for id, text in stored}
    decisions: list[Decision] = []
    for fact in new:
        related = [(relate_facts(fact, old), id) for id, old in left.items()]
        kind, id = min(
            related, key=lambda pair: _PRECEDENCE.index(pair[0]), default=("unrelated", "")
        )
        if kind == "unrelated":
            decisions.append(Decision("ADD", "", fact.text))
        elif kind == "same":
            decisions.append(Decision("NONE", id, left[id].text))
        elif kind == "delete":
            decisions.append(Decision("DELETE", id, left.pop(id).text))
        else:
            decisions.append(Decision("UPDATE", id, fact.text, left.pop(id).text))
    return decisions


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
