"""What is kept of every comparison that was asked, so that a person can look at it later.

One finding `answers` for each question, policy and schedule: a list with one entry for each filler
and arm. An entry has its `sides` (name, SHA-256 of the prompt, tokens, padding, where the evidence
and where records stand in it), and for each model and batch what it `said` on each side, draw by
draw, and whether that was `right`. A comparison that could not be matched has a `reason` instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from routeprism.experiments._asking import Answers, Compared
from routeprism.policies import Block
from routeprism.prompts import Filler, Prompt
from routeprism.runs import Finding

__all__ = ["Exchanged", "Keepsakes", "Places", "places_of"]

Places = tuple[tuple[str, int, int], ...]
"""(record id, first character, character after the last) of each whole record in a prompt."""


class Exchanged(Compared, Protocol):
    """A comparison that says where it belongs."""

    @property
    def policy(self) -> str:
        """Whose memory was read."""

    @property
    def schedule(self) -> str:
        """The order compared with forward."""

    @property
    def filler(self) -> Filler:
        """The padding word."""

    @property
    def reason(self) -> str:
        """Why there are no prompts; empty where there are."""


def places_of(prompt: Prompt, blocks: Sequence[Block]) -> Places:
    """Find where the blocks of single records stand in a prompt, in their order."""
    places: list[tuple[str, int, int]] = []
    at = prompt.evidence_span.start
    for block in blocks:
        start = prompt.text.find(block.text, at)
        if start >= 0 and len(block.sources) == 1:
            at = start + len(block.text)
            (record,) = block.sources
            places.append((record, start, at))
    return tuple(places)


class Keepsakes:
    """Gathers what was asked and said, portion by portion."""

    def __init__(self, interfaces: Mapping[str, str]) -> None:
        self._interfaces = interfaces
        self._found: dict[tuple[str, str, str, str], list[dict[str, Any]]] = {}

    def add(
        self,
        items: Sequence[Exchanged],
        answered: Mapping[tuple[str, str], Answers],
        *,
        arms: Sequence[str] = (),
        places: Sequence[Sequence[Places]] = (),
    ) -> None:
        """Take comparisons with their answers; `arms` and `places` are given item by item."""
        for number, item in enumerate(items):
            arm = arms[number] if arms else ""
            where = places[number] if places else ()
            key = (item.policy, item.schedule, item.question.user, item.question.id)
            self._found.setdefault(key, []).append(_entry(item, answered, arm, where))

    def findings(self) -> list[Finding]:
        """Give all of it, ready to be kept."""
        return [
            Finding(
                name="answers",
                value=value,
                policy=policy,
                interface=self._interfaces.get(policy, ""),
                schedule=schedule,
                user=user,
                question=question,
            )
            for (policy, schedule, user, question), value in self._found.items()
        ]


def _entry(
    item: Exchanged,
    answered: Mapping[tuple[str, str], Answers],
    arm: str,
    places: Sequence[Places],
) -> dict[str, Any]:
    sides = [
        {
            "name": name,
            "prompt": prompt.sha256,
            "tokens": prompt.tokens,
            "padding": list(prompt.padding),
            "evidence": [prompt.evidence_span.start, prompt.evidence_span.end],
            "records": [list(one) for one in places[at]] if places else [],
        }
        for at, (name, prompt) in enumerate(item.sides)
    ]
    said = [
        {
            "model": model,
            "batch": batch,
            "said": [list(side) for side in answers.said[item]],
            "right": [list(side) for side in answers.right.get(item, ())],
        }
        for (model, batch), answers in answered.items()
        if item in answers.said
    ]
    return {
        "filler": item.filler,
        "arm": arm,
        "reason": item.reason,
        "sides": sides,
        "answers": said,
    }
