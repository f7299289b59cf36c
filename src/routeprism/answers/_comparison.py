"""Prompts that are compared with each other: one class for every experiment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from routeprism.policies import Block
from routeprism.prompts import Control, Draft, Filler, Matched, Prompt, Unmatched, match
from routeprism.records import Question
from routeprism.runs import StoredExposure

RecordSpans = tuple[tuple[str, int, int], ...]
"""(record id, first character, character after the last) of each whole record in a prompt."""


@dataclass(frozen=True, slots=True, eq=False)  # compared by identity: its texts are long
class Comparison:
    """Prompts of one question under one filler whose answers are compared, side by side."""

    experiment: str
    """The name under which its answers are stored."""
    question: Question
    policy: str
    schedule: str
    """The route that is compared with forward."""
    filler: Filler
    names: tuple[str, ...]
    """The sides, such as two routes or four conditions."""
    prompts: tuple[Prompt, ...]
    """One for each side; none if they could not be made or matched."""
    condition: str = ""
    """What distinguishes it from comparisons of the same routes, such as a layout or a design."""
    reason: str = ""
    """Why there are no prompts."""
    exposures: tuple[StoredExposure, ...] = ()
    """What forward and the other route exposed."""
    records: tuple[RecordSpans, ...] = ()
    """For each prompt, where whole records are in it."""
    detail: Any = None
    """What else an experiment needs to know about it."""

    @property
    def group(self) -> str:
        """Identify the comparison, so that its sides take turns in being asked first."""
        parts = (self.policy, self.schedule, self.question.id, self.filler, self.condition)
        return "\0".join((self.experiment, *parts))

    @property
    def series(self) -> str:
        """Identify the comparisons over which sides take turns in being asked first."""
        return "\0".join((self.policy, self.schedule, self.condition, self.filler))

    @property
    def sides(self) -> tuple[tuple[str, Prompt], ...]:
        """Return (name, prompt) for each side; nothing if there are no prompts."""
        return tuple(zip(self.names, self.prompts, strict=True)) if self.prompts else ()

    @property
    def same_prompt(self) -> bool:
        """Whether the first two sides ask the same text."""
        return bool(self.prompts) and self.prompts[0].sha256 == self.prompts[1].sha256

    @property
    def same_sources(self) -> bool:
        """Whether both routes show the same sources in different texts."""
        forward, route = self.exposures
        return forward.sources == route.sources and forward.context_sha256 != route.context_sha256


def match_prompts(
    drafts: Sequence[Draft], control: Control, filler: Filler
) -> tuple[tuple[Prompt, ...], str]:
    """Pad drafts to matched prompts; give no prompts and a reason if that is impossible."""
    result: Matched | Unmatched = match(drafts, control, filler)
    return ((), result.reason) if isinstance(result, Unmatched) else (result.prompts, "")


def find_records(prompt: Prompt, blocks: Sequence[Block]) -> RecordSpans:
    """Find the blocks of single records in a prompt, in their order."""
    spans: list[tuple[str, int, int]] = []
    position = prompt.evidence_span.start
    for block in blocks:
        start = prompt.text.find(block.text, position)
        if start >= 0 and len(block.sources) == 1:
            position = start + len(block.text)
            (record,) = block.sources
            spans.append((record, start, position))
    return tuple(spans)
