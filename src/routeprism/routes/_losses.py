"""Why a record that one route shows is missing on another: which arrival displaced it, and how.

A memory that keeps events is taken at its word. Any other memory is built again from each beginning
of the route, until the record is gone: the arrival that came last displaced it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from routeprism.errors import RoutePrismError
from routeprism.frames import OWN_ERRORS
from routeprism.orders import FORWARD, Order
from routeprism.policies import Event, Policy, is_deterministic
from routeprism.policies.own import closing_memory, retained_ids
from routeprism.policies.remedies import sort_events
from routeprism.records import Case
from routeprism.routes._checks import is_costly
from routeprism.routes._trace import Pair, Route, build_memory, pair_routes

Cause = Literal[
    "older overwrote newer",
    "newer overwrote older",
    "window too short",
    "merge kept another record",
    "discarded as a duplicate",
    "discarded as late",
    "never kept",
    "retrieval chose other records",
    "blocks in a different order",
    "text rewritten",
    "state only",
    "not explained",
]
CAUSES: dict[Cause, str] = {
    "older overwrote newer": "an older record overwrote a newer one because it arrived later",
    "newer overwrote older": "a newer record replaced an older one that the question needs",
    "window too short": "the memory was full, and later arrivals pushed the record out",
    "merge kept another record": "a merge kept another record in its place",
    "discarded as a duplicate": "the record was discarded when it arrived",
    "discarded as late": "the record was discarded because it arrived too late",
    "never kept": "the memory does not keep the record, even if it arrives alone",
    "retrieval chose other records": "the record is kept, but other records were retrieved",
    "blocks in a different order": "the same blocks are shown in a different order",
    "text rewritten": "the same records are shown in a different text",
    "state only": "only internal state differs",
    "not explained": "the traces do not explain it",
}
"""Causes, and what happened in each case."""


def describe_displacer(cause: Cause, record: str, by: str, name: Callable[[str], str]) -> str:
    """Describe which arrival displaced a record, with a name for it; empty if none did."""
    if not by or by == record:
        return ""
    if cause in ("discarded as a duplicate", "discarded as late"):
        return f"because {name(by)} had arrived before"
    return f"when {name(by)} arrived"


@dataclass(frozen=True, slots=True)
class Loss:
    """A record that a question is no longer shown, or a difference without a lost record."""

    cause: Cause
    policy: str
    schedule: str
    user: str
    question: str
    record: str = ""
    by: str = ""
    """The arrival that displaced it; empty if none did."""
    at: int | None = None
    """Which arrival that was, counted from 0."""


@dataclass(frozen=True, slots=True)
class _Rebuilds:
    """Builds parts of a pool's routes, each once, to find the arrival that displaced a record."""

    case: Case
    policy: Policy
    retained: dict[Order, frozenset[str]] = field(default_factory=dict)

    @property
    def allowed(self) -> bool:
        """Whether building is cheap and shows something: not by chance."""
        return is_deterministic(self.policy) and not is_costly(self.policy)

    def retain(self, order: Order) -> frozenset[str]:
        """Return what is retained of these arrivals."""
        if order not in self.retained:
            with closing_memory(build_memory(self.policy, self.case, order)) as memory:
                self.retained[order] = retained_ids(memory, self.policy.name)
        return self.retained[order]


def list_lost(pair: Pair, labels: str) -> list[str]:
    """List the evidence that the forward route shows and the other route does not.

    Without labels, every record that only the forward route shows counts.
    """
    lost = pair.forward_exposure.sources - pair.route_exposure.sources
    support = pair.question.labels.get(labels)
    return sorted(lost & support if support else lost)


def _explain_pair(rebuilds: _Rebuilds, pair: Pair, labels: str) -> Iterator[Loss]:
    """Explain each lost record of a pair, or what else differs if none is lost."""
    route = pair.route
    place = (route.policy, route.schedule, route.user, pair.question.id)
    lost = list_lost(pair, labels)
    for record in lost:
        cause, by, at = _explain_record(rebuilds, route, record)
        yield Loss(cause, *place, record, by, at)
    display = _explain_display(pair)
    if not lost and display is not None:
        yield Loss(display, *place)


def _explain_display(pair: Pair) -> Cause | None:
    before, after = pair.forward_exposure, pair.route_exposure
    if before.context_sha256 != after.context_sha256:
        if before.sources != after.sources:
            return None  # records that carry no evidence
        texts = [sorted(block.text for block in side.blocks) for side in (before, after)]
        return "blocks in a different order" if texts[0] == texts[1] else "text rewritten"
    has_signatures = pair.forward.signature is not None and pair.route.signature is not None
    return (
        "state only" if has_signatures and pair.forward.signature != pair.route.signature else None
    )


LossLevel = Literal["record", "display", "state"]
"""What a case is about: a lost record, what is shown without one, or internal state alone."""
LossPlace = tuple[str, str, LossLevel]
"""Policy, schedule and level of cases that are counted together."""


def count_cases(routes: Sequence[Route], labels: str) -> Counter[LossPlace]:
    """Count all cases of a pool, of which a few are explained, by policy, schedule and level."""
    counts: Counter[LossPlace] = Counter()
    for pair in pair_routes(routes):
        policy, schedule = pair.route.policy, pair.route.schedule
        if lost := list_lost(pair, labels):
            counts[policy, schedule, "record"] += len(lost)
        elif display := _explain_display(pair):
            level: LossLevel = "state" if display == "state only" else "display"
            counts[policy, schedule, level] += 1
    return counts


def count_absence(case: Case, routes: Sequence[Route], labels: str) -> Counter[LossPlace]:
    """Count all evidence of a pool that is not shown in source order, by policy."""
    counts: Counter[LossPlace] = Counter()
    for route in routes:
        if route.schedule == FORWARD.name and not route.failed:
            for question, exposure in zip(case.questions, route.exposures, strict=True):
                absent = question.labels.get(labels, frozenset()) - exposure.sources
                counts[route.policy, route.schedule, "record"] += len(absent)
    return counts


def explain_loss(
    case: Case, policy: Policy, order: Order, record: str
) -> tuple[Cause, str, int | None]:
    """Explain why an order of arrival loses a record: cause, displacing arrival and its place."""
    with closing_memory(build_memory(policy, case, order)) as memory:
        log = getattr(memory, "events", None)
        events = tuple(log()) if callable(log) else ()
        retained = retained_ids(memory, policy.name)
    return _explain_removal(_Rebuilds(case, policy), order, record, retained, events)


def _explain_record(
    rebuilds: _Rebuilds, route: Route, record: str
) -> tuple[Cause, str, int | None]:
    return _explain_removal(rebuilds, route.order, record, route.retained, route.events)


def _explain_removal(
    rebuilds: _Rebuilds,
    order: Order,
    record: str,
    retained: frozenset[str],
    events: Sequence[Event],
) -> tuple[Cause, str, int | None]:
    if record in retained:
        return "retrieval chose other records", "", None
    removals = [e for e in events if e.record == record and e.kind != "add"]
    event = removals[-1] if removals else None
    try:
        if event is None and rebuilds.allowed:
            event = _observe_removal(rebuilds, order, record)
        if event is not None and event.by == record and rebuilds.allowed:
            event = _find_blocker(rebuilds, order, event)
            if event is None:
                return "never kept", "", None
    except (*OWN_ERRORS, RoutePrismError):  # it cannot be built from a part of the records
        pass
    if event is None:
        return "not explained", "", None
    return _name_cause(event, rebuilds.case), event.by, event.at


def _name_cause(event: Event, case: Case) -> Cause:
    if event.kind == "evict":
        return "window too short"
    if event.kind == "merge":
        return "merge kept another record"
    places = {record.id: place for place, record in enumerate(sort_events(case.pool.records))}
    is_newer = places[event.by] > places[event.record]
    if event.kind == "skip":
        return "discarded as late" if is_newer else "discarded as a duplicate"
    return "newer overwrote older" if is_newer else "older overwrote newer"


def _find_blocker(rebuilds: _Rebuilds, order: Order, event: Event) -> Event | None:
    """Find the latest earlier arrival because of which a record did not get in.

    None if the memory does not keep the record alone; the same event if no single arrival explains
    it.
    """
    ids = [rebuilds.case.pool.records[position].id for position in order]
    first = ids.index(event.record)
    if event.record not in rebuilds.retain(order[first : first + 1]):
        return None
    for at in range(first - 1, -1, -1):
        if event.record not in rebuilds.retain((order[at], order[first])):
            return replace(event, by=ids[at])
    return event


def _observe_removal(rebuilds: _Rebuilds, order: Order, record: str) -> Event | None:
    """Build beginnings of a route, and find an arrival that displaced the record."""
    ids = [rebuilds.case.pool.records[position].id for position in order]
    first = ids.index(record)
    if record not in rebuilds.retain(order[: first + 1]):
        return Event("skip", record, record, first)
    present, absent = first, len(ids) - 1
    if record in (retained := rebuilds.retain(order)):
        return None  # the memory differs by chance
    while absent - present > 1:
        middle = (present + absent) // 2
        retained_before = rebuilds.retain(order[: middle + 1])
        if record in retained_before:
            present = middle
        else:
            absent, retained = middle, retained_before
    places = (order[first], order[absent])
    kind = _name_removal(rebuilds, places, is_replaced=ids[absent] in retained)
    return Event(kind, record, ids[absent], absent)


_MOST_PARTNERS = 8
"""With how many other records a record is built to find out whether the memory holds two at all."""


def _name_removal(
    rebuilds: _Rebuilds, two: tuple[int, int], *, is_replaced: bool
) -> Literal["evict", "merge", "overwrite"]:
    """Find out how a record was removed by building a memory from it and its displacer alone.

    If both fit into a separate memory, the record had to leave because the memory was full. The
    same applies if the record does not stay with any other record: there is room for one alone.
    Otherwise the displacer replaced it, or was merged with it if neither remains by itself.
    """
    pool = rebuilds.case.pool
    record = pool.records[two[0]].id
    if record in rebuilds.retain(two):
        return "evict"
    if not is_replaced:
        return "merge"
    partners = [place for place in range(len(pool)) if place not in two][:_MOST_PARTNERS]
    stays = any(record in rebuilds.retain((two[0], partner)) for partner in partners)
    return "evict" if partners and not stays else "overwrite"


def explain_absence(
    case: Case, policy: Policy, routes: Sequence[Route], labels: str
) -> Iterator[Loss]:
    """Explain why evidence is not shown in source order, for a few questions of a pool."""
    forward = next(
        (r for r in routes if r.policy == policy.name and r.schedule == FORWARD.name), None
    )
    if forward is None or forward.failed:
        return
    explained, rebuilds = 0, _Rebuilds(case, policy)
    for question, exposure in zip(case.questions, forward.exposures, strict=True):
        absent = sorted(question.labels.get(labels, frozenset()) - exposure.sources)
        for record in absent:
            cause, by, at = _explain_record(rebuilds, forward, record)
            place = (policy.name, FORWARD.name, forward.user, question.id)
            yield Loss(cause, *place, record, by, at)
        explained += bool(absent)
        if explained == MOST_EXPLAINED:
            return


MOST_EXPLAINED = 3
"""How many questions of a pool are explained for each memory and schedule."""


def observe_losses(
    case: Case, policies: Sequence[Policy], routes: Sequence[Route], labels: str
) -> Iterator[Loss]:
    """Explain a few lost records of a pool for each memory and schedule."""
    by_name = {policy.name: _Rebuilds(case, policy) for policy in policies}
    explained: Counter[tuple[str, str]] = Counter()
    pairs = sorted(pair_routes(routes), key=lambda pair: not list_lost(pair, labels))
    for pair in pairs:
        place = (pair.route.policy, pair.route.schedule)
        if explained[place] < MOST_EXPLAINED and _differs(pair):
            losses = list(_explain_pair(by_name[pair.route.policy], pair, labels))
            explained[place] += bool(losses)
            yield from losses


def _differs(pair: Pair) -> bool:
    return (
        pair.forward_exposure.context_sha256 != pair.route_exposure.context_sha256
        or pair.forward.signature != pair.route.signature
    )
