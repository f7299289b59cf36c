"""Traces: what a route retained, exposed and compiled, before any answer exists."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from routeprism.errors import ContractError, PeekError, RouteError
from routeprism.orders import FORWARD, Schedule
from routeprism.policies import (
    Block,
    Event,
    Exposure,
    JsonValue,
    Memory,
    Policy,
    revivable,
    revived,
)
from routeprism.policies.own import own_source, refuse_curiosity, refuse_peeking
from routeprism.records import Case, Pool, Question

__all__ = [
    "ExposureTrace",
    "Kept",
    "Pair",
    "Route",
    "Snapshots",
    "build_memory",
    "pairs",
    "signature",
    "trace_case",
]

_NEEDED = ("retained", "state", "expose")
"""What a memory has to have; asking the protocol itself takes long on older Pythons."""
_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))
Digests = dict[tuple[Block, ...], tuple[frozenset[str], str, int]]
"""Blocks → their sources, the digest of their text, its length."""
Snapshots = Callable[[str, str, Sequence[int]], Any]
"""(policy, user, order) → the stored snapshot of that route's memory, or None."""
Kept = Callable[[Case, Policy, Schedule, tuple[int, ...]], "Route | None"]
"""Gives a route of a memory system outside as an earlier call traced it, or None."""


@dataclass(frozen=True, slots=True)
class ExposureTrace:
    """What one question brought to the prompt on one route."""

    question: Question
    sources: frozenset[str]
    """V: the exposed source ids."""
    context_sha256: str
    """The digest of the compiled context C."""
    context_chars: int
    """How long C is."""
    blocks: tuple[Block, ...]
    """The blocks C is made of."""

    @property
    def length(self) -> int:
        """The descriptive length proxy ⌈characters/4⌉ (Appendix A.3)."""
        return -(-self.context_chars // 4)


@dataclass(frozen=True, slots=True)
class Route:
    """One policy under one schedule on one pool, with everything it exposed."""

    policy: str
    schedule: str
    user: str
    order: tuple[int, ...]
    """Source positions in arrival order."""
    retained: frozenset[str]
    """Source ids held before any retrieval."""
    signature: str | None
    """I: the digest of the internal state; None where the memory shows none."""
    exposures: tuple[ExposureTrace, ...]
    """One for each question, in the case's order."""
    events: tuple[Event, ...]
    """What each arrival did, where the memory says so."""
    stand_ins: Mapping[str, str]
    """Dropped record → the retained one that took its place, where the memory says so."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """How often something happened while it was built, where the memory says so."""
    canonical: str | None = None
    """The digest of the state with insertion order taken out, where the memory offers that."""
    notes: Mapping[str, Mapping[str, JsonValue]] = field(default_factory=dict)
    """Record → field → value of the note made of it, where the memory has such."""
    failed: str = ""
    """Why the memory system could not be built or asked; then there is nothing else."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The forward route and another one, for one question."""

    question: Question
    forward: Route
    route: Route
    forward_exposure: ExposureTrace
    route_exposure: ExposureTrace


def signature(state: JsonValue) -> str | None:
    """Give the digest of an internal state's canonical JSON; None stays None."""
    if state is None:
        return None
    try:
        written = _CANONICAL.encode(state)
    except (TypeError, ValueError) as error:
        raise ContractError(
            f"state() must give plain JSON values (text, numbers, lists, maps): {error}"
        ) from None
    return hashlib.sha256(written.encode()).hexdigest()


def trace_case(
    case: Case,
    policies: Sequence[Policy],
    schedules: Sequence[Schedule],
    *,
    events: bool = True,
    twice: bool = False,
    snapshots: Snapshots | None = None,
    kept: Kept | None = None,
) -> tuple[Route, ...]:
    """Trace every policy under forward and every schedule; a pool is built once for each route.

    Schedules that give this pool the same order share one build. Event logs, which can be long,
    are asked for only if wanted. With `twice`, a memory that is not built in is built forward once
    more, and refused if that gives another one. A memory of which there is a snapshot is revived;
    a route that was kept is not traced again. A memory system that fails, fails on its route alone.
    """
    digests: Digests = {}
    routes = []
    for policy in policies:
        if own_source(policy):
            refuse_peeking(policy)
        built: dict[tuple[int, ...], Route] = {}
        for schedule in dict.fromkeys((FORWARD, *schedules)):
            order = schedule.on(case.pool)
            if order not in built:
                before = None if kept is None else kept(case, policy, schedule, order)
                built[order] = before or _trace_route(
                    case, policy, schedule, order, digests, events, snapshots
                )
                if twice and not before and own_source(policy) and schedule == FORWARD:
                    _refuse_chance(case, policy, built[order], digests)
            found = built[order]
            routes.append(
                found if found.schedule == schedule.name else replace(found, schedule=schedule.name)
            )
    return tuple(routes)


def _trace_route(
    case: Case,
    policy: Policy,
    schedule: Schedule,
    order: tuple[int, ...],
    digests: Digests,
    events: bool,
    snapshots: Snapshots | None = None,
) -> Route:
    try:
        memory = build_memory(policy, case, order, snapshots)
        try:
            return _traced(memory, case, policy, schedule, order, digests, events)
        finally:
            close = getattr(memory, "close", None)
            if callable(close):
                close()
    except RouteError as error:
        return Route(
            policy.name,
            schedule.name,
            case.pool.user,
            order,
            retained=frozenset(),
            signature=None,
            exposures=(),
            events=(),
            stand_ins={},
            failed=str(error),
        )


def _traced(
    memory: Memory,
    case: Case,
    policy: Policy,
    schedule: Schedule,
    order: tuple[int, ...],
    digests: Digests,
    events: bool,
) -> Route:
    retained = _retained(memory, policy, case.pool)
    before = signature(memory.state())
    exposures = tuple(
        _expose(memory, policy, question, retained, digests) for question in case.questions
    )
    if memory.retained() != retained or signature(memory.state()) != before:
        raise PeekError(
            f"{policy.name}: the memory of user '{case.pool.user}' changed while it was exposed. "
            f"Expected expose(query) to change neither retained() nor state()"
        )
    log = getattr(memory, "events", None) if events else None
    canonical = getattr(memory, "canonical", None)
    return Route(
        policy.name,
        schedule.name,
        case.pool.user,
        order,
        retained,
        before,
        exposures,
        tuple(log()) if callable(log) else (),
        _said(memory, "stand_ins"),
        _said(memory, "counts"),
        signature(canonical()) if callable(canonical) else None,
        _said(memory, "notes"),
    )


def _said(memory: Memory, name: str) -> dict[str, Any]:
    """Give one of the maps that a memory may offer."""
    offered = getattr(memory, name, None)
    return dict(offered()) if callable(offered) else {}


def _refuse_chance(case: Case, policy: Policy, first: Route, digests: Digests) -> None:
    """Build somebody's own memory once more: a difference now would pass for an effect of order."""
    if getattr(policy, "deterministic", True) is False or first.failed:
        return
    again = _trace_route(case, policy, FORWARD, first.order, digests, events=False)
    if again.failed:
        return
    same = [(e.sources, e.context_sha256) for e in first.exposures] == [
        (e.sources, e.context_sha256) for e in again.exposures
    ]
    if not same or (first.retained, first.signature) != (again.retained, again.signature):
        raise ContractError(
            f"{policy.name}: two builds from the same records in the same order differ (user "
            f"'{case.pool.user}'), so a difference between orders would say nothing. Is there "
            f"chance, time or shared state in it?"
        )


def build_memory(
    policy: Policy, case: Case, order: Sequence[int], snapshots: Snapshots | None = None
) -> Memory:
    """Build a memory for one route, or revive it where there is a snapshot of it."""
    snapshot = None
    if snapshots is not None and revivable(policy):
        snapshot = snapshots(policy.name, case.pool.user, order)
    recall = getattr(policy, "recall", None)  # of traces that were recorded elsewhere
    memory: Any
    if callable(recall):
        memory = recall(case, order)
    else:
        arrivals = tuple(case.pool.records[position] for position in order)
        memory = (
            revived(policy, arrivals, snapshot) if snapshot is not None else policy.build(arrivals)
        )
    if not all(callable(getattr(memory, needed, None)) for needed in _NEEDED):
        raise ContractError(
            f"{policy.name}.build gave {type(memory).__name__}. "
            f"Expected a memory with retained(), state() and expose(query)"
        )
    refuse_curiosity(memory, policy.name)
    built: Memory = memory
    return built


def _retained(memory: Memory, policy: Policy, pool: Pool) -> frozenset[str]:
    retained = frozenset(memory.retained())
    if unknown := sorted(retained - frozenset(pool.ids)):
        raise ContractError(
            f"{policy.name} retains '{unknown[0]}', which user '{pool.user}' does not have"
        )
    return retained


def _expose(
    memory: Memory,
    policy: Policy,
    question: Question,
    retained: frozenset[str],
    digests: Digests,
) -> ExposureTrace:
    exposure = memory.expose(question.text)
    if not isinstance(exposure, Exposure):
        raise ContractError(
            f"{policy.name}.expose gave {type(exposure).__name__}. Expected an Exposure"
        )
    # Many questions see the same blocks; reading them once is enough.
    known = digests.get(exposure.blocks)
    if known is None:
        context = exposure.context
        digest = hashlib.sha256(context.encode()).hexdigest()
        known = digests[exposure.blocks] = (exposure.sources, digest, len(context))
    if unknown := sorted(known[0] - retained):
        raise ContractError(
            f"{policy.name} exposes '{unknown[0]}' to question '{question.id}' without retaining it"
        )
    return ExposureTrace(question, *known, exposure.blocks)


def pairs(routes: Sequence[Route]) -> Iterator[Pair]:
    """Pair every route with its policy's forward route, question by question.

    Where one of the two failed there is no pair.
    """
    forward: Mapping[str, Route] = {
        route.policy: route for route in routes if route.schedule == FORWARD.name
    }
    for route in routes:
        if route.schedule != FORWARD.name:
            base = forward[route.policy]
            if base.failed or route.failed:
                continue
            for one, other in zip(base.exposures, route.exposures, strict=True):
                yield Pair(one.question, base, route, one, other)
