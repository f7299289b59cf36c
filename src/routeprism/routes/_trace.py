"""Traces of routes: what each retained, exposed and compiled, before any answer exists."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from routeprism.errors import (
    ContractError,
    InapplicableError,
    LimitError,
    PeekError,
    RouteError,
    RoutePrismError,
)
from routeprism.orders import FORWARD, ONE_BY_ONE, Procedure, Schedule
from routeprism.policies import (
    Block,
    Event,
    Exposure,
    JsonValue,
    Memory,
    Policy,
    can_revive,
    complete_counts,
    count_calls_per_write,
    revive_memory,
)
from routeprism.policies.own import (
    check_build,
    check_expose,
    check_memory,
    check_retained,
    closing_memory,
    own_source,
    report_own_errors,
    retained_ids,
)
from routeprism.policies.remedies import name_exposures
from routeprism.records import Case, Question
from routeprism.redaction import Redactor
from routeprism.routes._leaks import Leak, explain_stranger, refuse_leaking

_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))
Digests = dict[tuple[Block, ...], tuple[frozenset[str], str, int]]
"""Blocks → their sources, the digest of their text, its length."""
SharedExposures = dict[Hashable, tuple[Memory, tuple["ExposureTrace", ...]]]
"""The key of what memories expose → one of these memories, and what it exposed."""
Snapshots = Callable[[str, str, Sequence[int]], Any]
"""(policy, user, order) → the stored snapshot of that route's memory, or None."""
RouteLookup = Callable[[Case, Policy, Schedule, tuple[int, ...]], "Route | None"]
"""Gives the stored route of an external memory system as an earlier call traced it, or None."""


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
    """Source ids retained before any retrieval."""
    signature: str | None
    """I: the digest of the internal state; None if the memory has none."""
    exposures: tuple[ExposureTrace, ...]
    """One for each question, in the case's order."""
    events: tuple[Event, ...]
    """What each arrival did, if the memory reports it."""
    stand_ins: Mapping[str, str]
    """Dropped record → the retained one that replaced it, if the memory reports it."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """How often something happened while it was built, if the memory reports it."""
    canonical: str | None = None
    """The digest of the state without insertion order, if the memory offers it."""
    notes: Mapping[str, Mapping[str, JsonValue]] = field(default_factory=dict)
    """Record → field → value of its note, if the memory has notes."""
    failed: str = ""
    """Why the memory system could not be built or asked; the other fields are then empty."""
    leak: Leak | None = None
    """What the memory leaked, if it failed for that reason."""
    applicable: bool = True
    """Whether the memory can perform the procedure of the route."""
    reference: str = FORWARD.name
    """The schedule that the route is compared with; empty for a route that is only a reference."""
    procedure: str = ONE_BY_ONE.name
    """How the records were handed to the memory."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A reference route, which is forward unless named, and another route, for one question."""

    question: Question
    forward: Route
    route: Route
    forward_exposure: ExposureTrace
    route_exposure: ExposureTrace


@dataclass(slots=True)
class RouteCounts:
    """How many routes were traced and checked."""

    traced: Counter[str] = field(default_factory=Counter)
    """Policy → routes."""
    rebuilt: Counter[str] = field(default_factory=Counter)
    """Policy → routes that were built a second time and came out the same."""
    isolation: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(policy, outcome) → pools on which builds were checked for shared state."""


def hash_state(state: JsonValue) -> str | None:
    """Compute the digest of an internal state's canonical JSON; None stays None."""
    if state is None:
        return None
    try:
        text = _CANONICAL.encode(state).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ContractError(
            f"state() must give plain JSON values (text, numbers, lists, maps): {error}"
        ) from None
    return hashlib.sha256(text).hexdigest()


def trace_case(
    case: Case,
    policies: Sequence[Policy],
    schedules: Sequence[Schedule],
    *,
    events: bool = True,
    rebuilt: Mapping[str, Collection[str]] | None = None,
    counts: RouteCounts | None = None,
    snapshots: Snapshots | None = None,
    stored_routes: RouteLookup | None = None,
) -> tuple[Route, ...]:
    """Trace every policy under forward and every schedule; a pool is built once for each route.

    Schedules that give this pool the same order share one build. Event logs, which can be long,
    are read only if requested. Routes in `rebuilt` (policy → schedules) are built a second time,
    and refused if that gives a different memory; `counts` counts them. A memory with a snapshot is
    revived, and a route in `stored_routes` is not traced again. If a memory system fails, only
    its route fails.
    """
    counts = RouteCounts() if counts is None else counts
    digests: Digests = {}
    shared: SharedExposures = {}
    routes = []
    for policy in policies:
        if own_source(policy):
            check_build(policy)
        calls = count_calls_per_write(policy)
        tracer = _Tracer(policy, policy.name, calls, case, events, digests, shared, snapshots)
        built: dict[tuple[tuple[int, ...], Procedure], Route] = {}
        rebuilds = (rebuilt or {}).get(tracer.name, ())
        for schedule, reference in _list_references(schedules).items():
            order = schedule.on(case.pool)
            key = order, schedule.procedure
            if key not in built:
                before = (
                    None if stored_routes is None else stored_routes(case, policy, schedule, order)
                )
                built[key] = before or tracer.trace(schedule, order, reference)
                counts.traced[tracer.name] += 1
                if schedule.name in rebuilds and not before and not built[key].failed:
                    counts.rebuilt[tracer.name] += _refuse_chance(tracer, schedule, built[key])
            names = (schedule.name, reference, schedule.procedure.name)
            routes.append(_name_route(built[key], *names))
    return tuple(routes)


def _name_route(route: Route, schedule: str, reference: str, procedure: str) -> Route:
    """Return a route under the names of the schedule that it was built for, or shares."""
    if (route.schedule, route.reference, route.procedure) == (schedule, reference, procedure):
        return route
    return replace(route, schedule=schedule, reference=reference, procedure=procedure)


def _list_references(schedules: Sequence[Schedule]) -> dict[Schedule, str]:
    """Map every schedule that is built to the name of its reference; references have none."""
    references = {FORWARD: ""}
    for schedule in schedules:
        if schedule.reference is not None and schedule.reference not in schedules:
            references[schedule.reference] = ""
    return references | {
        schedule: (schedule.reference or FORWARD).name
        for schedule in schedules
        if schedule not in references
    }


@dataclass(frozen=True, slots=True)
class _Tracer:
    """Traces routes of one policy on one case, with what is the same for all of them."""

    policy: Policy
    name: str
    calls_per_write: float | None
    case: Case
    events: bool
    digests: Digests
    shared: SharedExposures
    snapshots: Snapshots | None

    def trace(
        self, schedule: Schedule, order: tuple[int, ...], reference: str = FORWARD.name
    ) -> Route:
        """Build the memory of a route, and trace it; if the memory system fails, so does this."""
        case, policy = self.case, self.policy
        try:
            refuse_leaking(self.name)
            with (
                report_own_errors(policy, user=case.pool.user, route=schedule.name),
                closing_memory(
                    _check_built(
                        _make_memory(policy, case, order, self.snapshots, schedule.procedure),
                        self.name,
                    )
                ) as memory,
            ):
                return self._trace_memory(memory, schedule, order, reference)
        except (ContractError, RouteError, LimitError) as error:
            # Beyond a limit, routes are not built any more.
            leak = explain_stranger(error, case.pool.user)
            if leak is None and isinstance(error, ContractError):
                raise
            return Route(
                self.name,
                schedule.name,
                case.pool.user,
                order,
                retained=frozenset(),
                signature=None,
                exposures=(),
                events=(),
                stand_ins={},
                failed=Redactor.configured().redact_text(str(leak or error)),
                applicable=not isinstance(error, InapplicableError),
                leak=leak,
            )

    def _trace_memory(
        self, memory: Memory, schedule: Schedule, order: tuple[int, ...], reference: str
    ) -> Route:
        name, case, shared = self.name, self.case, self.shared
        try:
            retained = check_retained(memory, name, case.pool)
        except (ContractError, RouteError) as error:
            raise _find_question(memory, case, error) from None
        before = hash_state(memory.state())
        key = name_exposures(memory)
        if key in shared:
            exposures = shared[key][1]
        else:
            exposures = tuple(
                _expose(memory, name, question, retained, self.digests)
                for question in case.questions
            )
        if key is not None:
            # The interfaces with keys change nothing. The key is valid while its records live.
            shared[key] = memory, exposures
        elif (after := _read_memory(memory, name)) != (retained, before):
            if after != _read_memory(memory, name):
                raise ContractError(
                    f"{name}: retained() or state() of user '{case.pool.user}' differs each "
                    f"time it is read. Is there chance or time in it?"
                )
            raise PeekError(
                f"{name}: the memory of user '{case.pool.user}' changed while it was exposed. "
                f"Expected expose(query) to change neither retained() nor state()"
            )
        log = getattr(memory, "events", None) if self.events else None
        canonical = getattr(memory, "canonical", None)
        return Route(
            name,
            schedule.name,
            case.pool.user,
            order,
            retained,
            before,
            exposures,
            tuple(log()) if callable(log) else (),
            _read_map(memory, "stand_ins"),
            complete_counts(_read_map(memory, "counts"), self.calls_per_write),
            hash_state(canonical()) if callable(canonical) else None,
            _read_map(memory, "notes"),
            reference=reference,
            procedure=schedule.procedure.name,
        )


def _find_question(memory: Memory, case: Case, error: RoutePrismError) -> RoutePrismError:
    """Find a question that is shown what the memory never received."""
    for question in case.questions if error.stranger is not None else ():
        try:
            strangers = sorted(memory.expose(question.text).sources.difference(case.pool.ids))
        except RoutePrismError as shown_error:
            stranger = shown_error.stranger
            strangers = [stranger.record] if stranger is not None else []
        if strangers:
            return error.naming(strangers[0], question=question.text)
    return error


def _read_memory(memory: Memory, name: str) -> tuple[frozenset[str], str | None]:
    """Read what exposing must not change: the retained ids and the digest of the state."""
    return retained_ids(memory, name), hash_state(memory.state())


def _read_map(memory: Memory, name: str) -> dict[str, Any]:
    """Read one of the optional maps of a memory."""
    offered = getattr(memory, name, None)
    return dict(offered()) if callable(offered) else {}


def _refuse_chance(tracer: _Tracer, schedule: Schedule, first: Route) -> bool:
    """Build the user's own memory again: a difference would look like an effect of order.

    The second memory is asked in the opposite sequence, so that a memory that remembers earlier
    questions shows it. If their number is odd, the first question is also asked first, so that
    none keeps its place, nor an even or odd one. Gives whether the route was built again; a
    system may fail.
    """
    case, number = tracer.case, len(tracer.case.questions)
    backwards = replace(case, questions=case.questions[: number % 2] + case.questions[::-1])
    repeater = replace(tracer, events=False, shared={}, snapshots=None)
    repeated = replace(repeater, case=backwards).trace(schedule, first.order)
    if repeated.failed:
        return False
    repeated = replace(repeated, exposures=repeated.exposures[::-1][:number])
    if _list_visible(repeated) == _list_visible(first):
        return True
    third = replace(repeater, shared={}).trace(schedule, first.order)
    if _list_visible(third) == _list_visible(first) and third.retained == repeated.retained:
        question = next(
            before.question.id
            for before, after in zip(first.exposures, repeated.exposures, strict=True)
            if (before.sources, before.context_sha256) != (after.sources, after.context_sha256)
        )
        raise PeekError(
            f"{tracer.name}: what question '{question}' of user '{case.pool.user}' is shown "
            f"depends on the questions that were asked before it, or on chance. Expected "
            f"expose(query) to read alone and to store nothing"
        )
    raise ContractError(
        f"{tracer.name}: two builds from the same records in the same order differ (user "
        f"'{case.pool.user}', order {schedule.name}), so a difference between orders would say "
        f"nothing. Is there chance, time or shared state in it? If chance is part of it, declare "
        f"deterministic = False and audit with builds=N"
    )


def _list_visible(route: Route) -> tuple[object, ...]:
    """Return everything that an audit compares of a route."""
    exposures = tuple((exposure.sources, exposure.context_sha256) for exposure in route.exposures)
    return route.retained, route.signature, exposures, route.failed


def build_memory(policy: Policy, case: Case, order: Sequence[int]) -> Memory:
    """Build a memory for one order."""
    return _check_built(_make_memory(policy, case, order, None, ONE_BY_ONE), policy.name)


def _check_built(memory: Any, name: str) -> Memory:
    built = check_memory(memory, name)
    check_expose(built, name)
    return built


def _make_memory(
    policy: Policy,
    case: Case,
    order: Sequence[int],
    snapshots: Snapshots | None,
    procedure: Procedure,
) -> Any:
    """Build a memory for one route, or revive it if there is a snapshot of it."""
    snapshot = None
    in_order = procedure.kind in (ONE_BY_ONE.kind, "twice")
    if snapshots is not None and in_order and can_revive(policy):
        snapshot = snapshots(policy.name, case.pool.user, order)
    recall = getattr(policy, "recall", None)  # of traces that were recorded elsewhere
    if callable(recall) and in_order:
        return recall(_without_labels(case), order)
    arrivals = tuple(case.pool.records[position] for position in order)
    if not in_order:
        seed = f"{case.pool.user}\0{'-'.join(map(str, order))}"
        from routeprism.overlap import build_by_procedure

        return build_by_procedure(policy, arrivals, procedure, seed=seed)
    if snapshot is not None:
        return revive_memory(policy, arrivals, snapshot)
    return policy.build(arrivals)


def _without_labels(case: Case) -> Case:
    """Return the records of a case and the texts of its questions: all that a policy may see."""
    return Case(case.pool, tuple(Question(q.id, q.user, q.text) for q in case.questions))


def _expose(
    memory: Memory,
    name: str,
    question: Question,
    retained: frozenset[str],
    digests: Digests,
) -> ExposureTrace:
    try:
        exposure = memory.expose(question.text)
    except RoutePrismError as error:
        if error.stranger is not None:
            error.stranger = replace(error.stranger, question=question.text)
        raise
    if not isinstance(exposure, Exposure):
        raise ContractError(f"{name}.expose gave {type(exposure).__name__}. Expected an Exposure")
    # Many questions are shown the same blocks, so each set of blocks is read once.
    cached = digests.get(exposure.blocks)
    if cached is None:
        context = exposure.context
        try:
            digest = hashlib.sha256(context.encode()).hexdigest()
        except UnicodeEncodeError as error:
            raise ContractError(
                f"{name} exposes text to question '{question.id}' that no file can contain: "
                f"half a surrogate pair ({error.reason})"
            ) from None
        cached = digests[exposure.blocks] = (exposure.sources, digest, len(context))
    if unknown := sorted(cached[0] - retained):
        raise ContractError(
            f"{name} exposes '{unknown[0]}' to question '{question.id}' without retaining it"
        ).naming(unknown[0], question=question.text)
    return ExposureTrace(question, *cached, exposure.blocks)


def list_counterparts(routes: Sequence[Route]) -> list[tuple[Route, Route]]:
    """List every route after its policy's reference route, unless one of the two failed."""
    built = {(route.policy, route.schedule): route for route in routes}
    pairs = [(built[route.policy, route.reference], route) for route in routes if route.reference]
    return [(base, route) for base, route in pairs if not (base.failed or route.failed)]


def pair_routes(routes: Sequence[Route]) -> Iterator[Pair]:
    """Pair every route with its policy's reference route, question by question.

    If one of the two failed, there is no pair.
    """
    for base, route in list_counterparts(routes):
        for first, second in zip(base.exposures, route.exposures, strict=True):
            yield Pair(first.question, base, route, first, second)
