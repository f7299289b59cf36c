"""What was asked of a question and what was said, with the prompts cut into their parts.

A prompt is a list of pieces. `[text]` is its frame, `[text, records]` a block that comes from these
records, `[text, [], times]` padding: the text so many times. Put together they are the prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from routeprism.orders import FORWARD
from routeprism.prompts import FILLERS
from routeprism.runs import Finding, Stored

__all__ = ["Asked", "Shown", "Texts", "asked_of", "comparison"]

Entry = Mapping[str, Any]
"""One comparison as `experiments` keeps it: its sides and its answers."""
Place = tuple[str, str, str]
"""(policy, schedule, question)."""
Shown = Sequence[tuple[str, Sequence[int]]]
"""Blocks that may stand in a prompt: their texts, and the records that they come from."""

_PADDING = {word: re.compile(f"(?:{re.escape(word)}){{8,}}") for word in FILLERS.values()}
"""Fewer fillers are left in the text."""


class Texts:
    """Texts of one chunk, each kept once."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def place(self, text: str) -> int:
        """Give the place of a text."""
        return self._places.setdefault(text, len(self._places))

    def all(self) -> list[str]:
        """Give them in the order of their places."""
        return list(self._places)


@dataclass(slots=True)
class Asked:
    """The findings of a pool, sorted by what they are about."""

    comparisons: dict[Place, list[tuple[str, Entry]]] = field(default_factory=dict)
    """What was asked, each with its experiment."""
    eligibility: dict[Place, Mapping[str, Any]] = field(default_factory=dict)
    """What restoration decided."""
    anchor: str = ""
    """The question whose state reuse asks the others of; empty where it did not."""
    others: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    """All other findings, by question."""


def asked_of(findings: Iterable[tuple[str, Finding]]) -> Asked:
    """Sort the findings of a pool, each with the name it is kept under."""
    found = Asked()
    for experiment, one in sorted(findings, key=lambda found: _turn(found[0])):
        key = (one.policy, one.schedule, one.question)
        kind, _, asked = experiment.partition(".")
        if kind == "answers" and one.name == "answers":
            found.comparisons.setdefault(key, []).extend((asked, entry) for entry in one.value)
        elif kind == "answers" and one.name == "eligibility":
            found.eligibility[key] = one.value
        elif kind == "answers" and one.name == "anchor":
            found.anchor = one.value
        else:
            found.others.setdefault(one.question, []).append(
                {
                    "experiment": experiment,
                    "name": one.name,
                    "policy": one.policy,
                    "schedule": one.schedule,
                    "value": one.value,
                }
            )
    return found


def _turn(experiment: str) -> int:
    """Give the routes first, then what was tried on them."""
    known = ("answers.routes", "answers.provenance", "answers.display", "answers.restoration")
    return known.index(experiment) if experiment in known else len(known)


def comparison(
    stored: Stored,
    asked: tuple[str, Entry],
    texts: Texts,
    place: Mapping[str, int],
    shown: tuple[Shown, Shown],
) -> dict[str, Any]:
    """Make one comparison ready to be shown; `shown` are the blocks of the pair's two contexts."""
    experiment, entry = asked
    sides = [
        {
            "name": side["name"],
            "prompt": side["prompt"],
            "tokens": side["tokens"],
            "pieces": list(
                _pieces(stored, side, entry["filler"], texts, place, shown[_on_route(side)])
            ),
        }
        for side in entry["sides"]
    ]
    return {
        "experiment": experiment,
        "filler": entry["filler"],
        "arm": entry["arm"],
        "reason": entry["reason"],
        "sides": sides,
        "answers": entry["answers"],
    }


def _on_route(side: Mapping[str, Any]) -> bool:
    """Whether a side reads the other route's state: `replay`, or `route-native` of a display."""
    return bool(side["name"].partition("-")[0] != FORWARD.name)


def _pieces(
    stored: Stored,
    side: Mapping[str, Any],
    filler: str,
    texts: Texts,
    place: Mapping[str, int],
    shown: Shown,
) -> Iterator[list[Any]]:
    text = stored.prompt(side["prompt"])
    if not text:
        return
    cuts: list[tuple[int, int, Sequence[int]]] = [
        (start, end, [place[record]] if record in place else [])
        for record, start, end in side["records"]
    ]
    if not cuts:
        cuts = list(_found(text, side.get("evidence") or (0, len(text)), shown))
    at = 0
    for start, end, records in cuts:
        yield from _frame(text[at:start], filler, texts)
        yield [texts.place(text[start:end]), records]
        at = end
    yield from _frame(text[at:], filler, texts)


def _found(
    text: str, evidence: Sequence[int], shown: Shown
) -> Iterator[tuple[int, int, Sequence[int]]]:
    """Find blocks in the evidence, in whatever order they stand there."""
    at, last = evidence
    waiting = {block: (text.find(block, at, last), records) for block, records in shown if block}
    while waiting := {block: spot for block, spot in waiting.items() if spot[0] >= 0}:
        # Of two that begin at the same place the longer one is there.
        block = min(waiting, key=lambda one: (waiting[one][0], -len(one)))
        start, records = waiting[block]
        if start >= at:
            at = start + len(block)
            yield start, at, records
        waiting[block] = (text.find(block, at, last), records)


def _frame(text: str, filler: str, texts: Texts) -> Iterator[list[Any]]:
    """Give what stands around the blocks, with its padding counted instead of written out."""
    word = FILLERS["B" if filler == "B" else "A"]
    padding = _PADDING[word].search(text)
    if padding is None:
        if text:
            yield [texts.place(text)]
        return
    start, end = padding.span()
    yield [texts.place(text[:start])]
    yield [texts.place(word), [], (end - start) // len(word)]
    yield [texts.place(text[end:])]
