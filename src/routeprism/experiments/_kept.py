"""Routes of memory systems outside: kept from an earlier call, and said where they failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from routeprism.errors import RunError
from routeprism.experiments._rows import Column, Key
from routeprism.measures import Sums
from routeprism.orders import FORWARD, Schedule
from routeprism.policies import Block, Event, Exposure, Policy, innermost, revivable
from routeprism.records import Case, Question
from routeprism.routes import ExposureTrace, Route
from routeprism.runs import Stored

__all__ = ["KeptRoutes", "enter_failures", "failure_notes", "outside"]

_FAILED = "failed"


def outside(policy: Policy) -> bool:
    """Whether a policy's memories are built by a system outside, which may fail or cost.

    One that can be revived from its state is not traced by its routes: the state says more.
    """
    return callable(getattr(innermost(policy), "origin", None)) and not revivable(policy)


@dataclass(frozen=True, slots=True)
class KeptRoutes:
    """The routes that an earlier call of the same run traced to their end."""

    stored: Stored
    interfaces: Mapping[str, str]
    """Policy → the interface it exposes through."""

    def route(
        self, case: Case, policy: Policy, schedule: Schedule, order: tuple[int, ...]
    ) -> Route | None:
        """Give a route as it was traced; None where it has to be built (again)."""
        if not outside(policy):
            return None
        start = (policy.name, self.interfaces[policy.name], schedule.name)
        found = self.stored.trace(*start, case.pool.user)
        if found is None or found.arrivals != order:
            return None
        try:
            exposures = tuple(self._exposure(start, question) for question in case.questions)
        except RunError:
            return None  # a question that was not asked then
        self.stored.forget()
        events: Sequence[Any] = found.events
        return Route(
            policy.name,
            schedule.name,
            case.pool.user,
            order,
            found.retained,
            found.signature,
            exposures,
            tuple(Event(*event) for event in events),
            found.stand_ins,
        )

    def _exposure(self, start: tuple[str, str, str], question: Question) -> ExposureTrace:
        shown = self.stored.shown(*start, question.id)
        blocks = tuple(Block(*block) for block in shown.blocks)
        chars = len(Exposure(blocks).context)
        return ExposureTrace(question, shown.sources, shown.context_sha256, chars, blocks)


def enter_failures(
    case: Case, routes: Sequence[Route], sums: Sums[Key], counts: Counter[str]
) -> None:
    """Count the pairs that a failed route leaves without an estimate, and keep the reasons."""
    bases = {route.policy: route for route in routes if route.schedule == FORWARD.name}
    for route in routes:
        if route.failed:
            why = f"user '{route.user}', {route.schedule}: {route.failed}"
            counts[f"{_FAILED}\0{route.policy}\0{why}"] += 1
        if route.schedule != FORWARD.name and (route.failed or bases[route.policy].failed):
            column = Column("routes", "count.failed_pairs", route.policy, route.schedule)
            number = len(case.questions)
            sums[column, "all"] = (float(number), number)


def failure_notes(counts: Mapping[str, int]) -> tuple[str, ...]:
    """Say for each policy how many routes failed, and why the first one did."""
    reasons: dict[str, list[str]] = {}
    for key in counts:
        what, _, rest = key.partition("\0")
        if what == _FAILED:
            policy, _, why = rest.partition("\0")
            reasons.setdefault(policy, []).append(why)
    return tuple(
        f"{len(whys)} route{'s' if len(whys) > 1 else ''} of {policy} failed; no estimate has "
        f"their pairs, and the same command with the same --run tries only them again ({whys[0]})"
        for policy, whys in reasons.items()
    )
