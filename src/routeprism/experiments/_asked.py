"""Which prompts a pair of routes needs, and what its answers are worth, question by question."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from routeprism.experiments._plans import interface_of
from routeprism.measures import Draws
from routeprism.orders import FORWARD, Schedule
from routeprism.policies import Block, Policy
from routeprism.prompts import (
    Control,
    Draft,
    Filler,
    Matched,
    Prompt,
    Provenance,
    Unmatched,
    categorical,
    free_text,
    match,
)
from routeprism.records import Case, Pool, Question
from routeprism.runs import Shown, Stored

__all__ = ["AskedPair", "Manner", "asked_pairs", "drafted", "draws_of", "in_flip_sample"]

FLIP_SAMPLE = 3
"""How many questions of each unit measure the same-prompt flip rate."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How prompts are made and how often each is asked."""

    draws: int = 1
    """Answers per route and prompt; two or more give a residual."""
    control: Control = "exact"
    """What is held equal between the prompts of a pair."""
    fillers: tuple[Filler, ...] = ("A",)
    """Which padding words are used, each giving its own pair of prompts."""
    provenance: Provenance = "preserved"
    """What the prompt says of conflicting records."""

    def numbers(self, side: int) -> range:
        """Give a side's draw numbers; the two sides of a pair never share one (PROTOCOL §6)."""
        return range(side * self.draws, (side + 1) * self.draws)


@dataclass(frozen=True, slots=True, eq=False)  # told apart by identity: its texts are long
class AskedPair:
    """One question on two routes under one filler."""

    question: Question
    policy: str
    schedule: str
    filler: Filler
    shown: tuple[Shown, Shown]
    """What forward and the other route exposed."""
    prompts: tuple[Prompt, Prompt] | None
    """What is read on the two routes; None where they could not be matched."""
    reason: str = ""
    """Why they could not."""

    condition: str = ""
    """What else its answers belong to, such as an instruction; empty for the plain pair."""

    @property
    def experiment(self) -> str:
        """Name whose answers these are."""
        return "routes"

    @property
    def group(self) -> str:
        """Name the comparison."""
        parts = (self.policy, self.schedule, self.question.id, self.filler)
        return "\0".join((*parts, self.condition) if self.condition else parts)

    @property
    def sides(self) -> tuple[tuple[str, Prompt], ...]:
        """Give the two routes with their prompts."""
        if self.prompts is None:
            return ()
        return (("forward", self.prompts[0]), (self.schedule, self.prompts[1]))

    @property
    def fixed_source(self) -> bool:
        """Whether both routes show the same sources, in another text."""
        forward, route = self.shown
        return forward.sources == route.sources and forward.context_sha256 != route.context_sha256

    @property
    def same_prompt(self) -> bool:
        """Whether the two routes ask the very same text."""
        return self.prompts is not None and self.prompts[0].sha256 == self.prompts[1].sha256


def asked_pairs(
    case: Case,
    stored: Stored,
    policies: Sequence[Policy],
    schedules: Sequence[Schedule],
    manner: Manner,
    *,
    condition: str = "",
) -> Iterator[AskedPair]:
    """Make the prompts of every pair of a case from what the run stored."""
    for policy in policies:
        interface = interface_of(policy)
        user = case.pool.user
        there = [one for one in schedules if stored.both(policy.name, interface, one.name, user)]
        for question in case.questions if there else ():
            base = stored.shown(policy.name, interface, FORWARD.name, question.id)
            for schedule in there:
                other = stored.shown(policy.name, interface, schedule.name, question.id)
                drafts = [
                    drafted([Block(*block) for block in shown.blocks], question, case.pool, manner)
                    for shown in (base, other)
                ]
                for filler in manner.fillers:
                    found = match(drafts, manner.control, filler)
                    yield AskedPair(
                        question,
                        policy.name,
                        schedule.name,
                        filler,
                        (base, other),
                        _two(found),
                        found.reason if isinstance(found, Unmatched) else "",
                        condition,
                    )
    stored.forget()


def _two(found: Matched | Unmatched) -> tuple[Prompt, Prompt] | None:
    if isinstance(found, Unmatched):
        return None
    forward, route = found.prompts
    return forward, route


def drafted(blocks: Sequence[Block], question: Question, pool: Pool, manner: Manner) -> Draft:
    """Draft a question over blocks: with its options, or as free text with the records' dates."""
    if question.options:
        return categorical(blocks, question, provenance=manner.provenance)
    dates = {r.id: r.timestamp for r in pool.records if r.timestamp is not None}
    return free_text(
        blocks,
        question,
        question_date=question.date,
        dates=dates,
        provenance=manner.provenance,
    )


def draws_of(
    question: Question, symbols: Sequence[Sequence[str]], verdicts: Sequence[Sequence[bool]]
) -> Draws:
    """Put two sides' answers together: symbols only where options make them comparable."""
    forward, route = symbols if question.options else ((), ())
    forward_right, route_right = verdicts or ((), ())
    return Draws(tuple(forward), tuple(route), tuple(forward_right), tuple(route_right))


def in_flip_sample(case: Case) -> frozenset[str]:
    """Choose the questions whose same-prompt flips are measured: by id alone, before any answer."""
    ids = sorted(
        (question.id for question in case.questions),
        key=lambda identity: hashlib.sha256(identity.encode()).hexdigest(),
    )
    return frozenset(ids[:FLIP_SAMPLE])
