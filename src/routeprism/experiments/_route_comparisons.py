"""Which prompts a pair of routes needs, made from the traces that a run stored."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from routeprism.answers import Comparison, match_prompts
from routeprism.experiments._collection import Manner
from routeprism.orders import FORWARD, Schedule, name_reference
from routeprism.policies import Block, Policy, interface_of
from routeprism.prompts import Draft, categorical, free_text
from routeprism.records import Case, Pool, Question
from routeprism.runs import StoredExposure, StoredRun

FLIP_SAMPLE = 3
"""How many questions of each unit measure the same-prompt flip rate."""


class RoutePair(NamedTuple):
    """What forward and another route of one policy show for one question."""

    policy: Policy
    question: Question
    schedule: Schedule
    forward: StoredExposure
    route: StoredExposure


Arrange = Callable[[Policy, Pool, StoredExposure, Schedule], StoredExposure]
"""Gives what a route shows in a different order."""


def list_route_pairs(
    case: Case, stored: StoredRun, policies: Sequence[Policy], schedules: Sequence[Schedule]
) -> Iterator[RoutePair]:
    """List the pairs of routes that were built for a case, question by question."""
    for policy in policies:
        interface, user = interface_of(policy), case.pool.user
        built = [
            schedule
            for schedule in schedules
            for names in [(schedule.name, user, name_reference(schedule.name))]
            if stored.has_pair(policy.name, interface, *names)
        ]
        for question in case.questions if built else ():
            for schedule in built:
                reference = name_reference(schedule.name)
                forward = stored.exposure(policy.name, interface, reference, question.id)
                route = stored.exposure(policy.name, interface, schedule.name, question.id)
                yield RoutePair(policy, question, schedule, forward, route)
    stored.clear_texts()


def compare_routes(
    case: Case,
    stored: StoredRun,
    policies: Sequence[Policy],
    schedules: Sequence[Schedule],
    manner: Manner,
    *,
    experiment: str = "routes",
    condition: str = "",
    arrange: Arrange | None = None,
) -> Iterator[Comparison]:
    """Make the prompts of every pair of a case from what the run stored, arranged if asked."""
    for policy, question, schedule, *exposures in list_route_pairs(
        case, stored, policies, schedules
    ):
        forward, route = exposures
        if arrange is not None:
            forward = arrange(policy, case.pool, forward, schedule.reference or FORWARD)
            route = arrange(policy, case.pool, route, schedule)
        drafts = [
            draft_question(list_blocks(side), question, case.pool, manner)
            for side in (forward, route)
        ]
        for filler in manner.fillers:
            prompts, reason = match_prompts(drafts, manner.control, filler)
            yield Comparison(
                experiment,
                question,
                policy.name,
                schedule.name,
                filler,
                (name_reference(schedule.name), schedule.name),
                prompts,
                condition,
                reason,
                (forward, route),
            )


def list_blocks(exposure: StoredExposure) -> tuple[Block, ...]:
    """Return the blocks that a route shows."""
    return tuple(Block(*block) for block in exposure.blocks)


def draft_question(
    blocks: Sequence[Block], question: Question, pool: Pool, manner: Manner
) -> Draft:
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


def choose_flip_sample(case: Case) -> frozenset[str]:
    """Choose the questions whose same-prompt flips are measured: by id alone, before any answer."""
    ids = sorted(
        (question.id for question in case.questions),
        key=lambda identity: hashlib.sha256(identity.encode()).hexdigest(),
    )
    return frozenset(ids[:FLIP_SAMPLE])
