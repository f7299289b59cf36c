"""Checks of the user's own memories: routes built again, and whether builds share state.

The numbers of a memory that depends on chance, or whose builds share state, mean nothing. An audit
of the user's own memory builds a seeded sample of its routes a second time, and on some pools the
same records in two orders, in every sequence. None of that enters an estimate. A memory that costs
money or needs a network is built again only if the user asks for it.

Shared state cannot be seen on the same records, which the first build has touched. So every
sequence gets a copy of the records with a mark in ids and texts, and the marks are removed before
the comparison. If a difference shows, more copies are built alone: if those differ as well, the
memory depends on names or on chance, and nothing is concluded about shared state.

There are two kinds of copies, because a store may be keyed by anything. A `light` copy changes the
end of ids and texts. A `full` copy also changes their beginnings and the positions, so that a store
that is keyed by a position, by the first line or by a part of the id does not know it yet.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Literal, TypeAlias

from routeprism.errors import ContractError, LimitError
from routeprism.frames import OWN_ERRORS
from routeprism.orders import FORWARD, Schedule
from routeprism.policies import (
    REPAIRS,
    Incremental,
    Memory,
    NamedPolicy,
    Policy,
    SourceOrder,
    builder_model,
    describe_client,
    find_class,
    is_deterministic,
    own_source,
    stores_states,
    unwrap_policy,
)
from routeprism.policies.own import (
    OwnMemory,
    close_memory,
    closing_memory,
    refuse_awaitable,
    retained_ids,
)
from routeprism.records import Case, Record
from routeprism.routes._trace import RouteCounts

REBUILDS = 100
"""How many routes of the user's own memory are built a second time by default."""
FIRST_POOLS = 2
"""The number of first pools on which isolation is always checked."""
MORE_POOLS = 10
"""The number of further pools, drawn by the seed, on which isolation is checked."""
RARE = 50
"""Notes give the probability of detecting chance in one of this many builds."""
_SPREAD = 1_000_000
"""The distance between the positions of two full copies: more than any pool has records."""
_CONTROLS = 8
"""How many copies are built alone where builds differ: an embedding sees the marks of copies, and
may rank items differently for some of them."""
_QUERIES = 3
"""How many questions of a pool the compared memories are asked."""


@dataclass(frozen=True, slots=True)
class RouteChecks:
    """The routes that are built again, by policy; pools by their index in the benchmark."""

    rebuilt: Mapping[str, frozenset[tuple[int, str]]] = field(default_factory=dict)
    """Policy → (pool, schedule) of the routes that are built a second time."""
    isolated: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """Policy → pools on which builds are checked for shared state."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Policy → the reason why nothing, or only one route, is built again."""

    def schedules(self, policy: str, pool: int) -> frozenset[str]:
        """List the schedules of a pool that are built a second time."""
        routes = self.rebuilt.get(policy, frozenset())
        return frozenset(schedule for index, schedule in routes if index == pool)


def choose_checks(
    policies: Sequence[Policy],
    schedules: Sequence[Schedule],
    pools: int,
    *,
    seed: int,
    rebuilds: int | None = None,
) -> RouteChecks:
    """Draw the routes that are built again; None for the usual number, 0 for none."""
    # Overlapping writes on threads differ by themselves; a second build would show no defect.
    repeatable = [schedule for schedule in schedules if schedule.procedure.kind != "overlap"]
    names = [FORWARD.name, *(schedule.name for schedule in repeatable)]
    routes = [(pool, name) for pool in range(pools) for name in names]
    rebuilt: dict[str, frozenset[tuple[int, str]]] = {}
    isolated: dict[str, frozenset[int]] = {}
    skipped: dict[str, str] = {}
    for policy in policies:
        if not _is_checked(policy, policies):
            continue
        number, reason = _count_rebuilds(policy, rebuilds)
        if reason:
            skipped[policy.name] = reason
        if number:
            generator = random.Random(f"{seed} rebuilds {policy.name}")  # noqa: S311
            sample = generator.sample(routes[1:], min(number, len(routes)) - 1)
            rebuilt[policy.name] = frozenset([routes[0], *sample])
            if not reason:
                most = max(0, min(MORE_POOLS, pools - FIRST_POOLS))
                later = generator.sample(range(min(FIRST_POOLS, pools), pools), most)
                isolated[policy.name] = frozenset([*range(min(FIRST_POOLS, pools)), *later])
    return RouteChecks(rebuilt, isolated, skipped)


def _is_checked(policy: Policy, policies: Sequence[Policy]) -> bool:
    """Whether a policy is the user's own, is built for each route, and is not checked anyway."""
    has_recall = callable(getattr(unwrap_policy(policy), "recall", None))
    if not own_source(policy) or stores_states(policy) or has_recall:
        return False
    # The comparator or repair of an audited policy builds nothing but that policy.
    return not (isinstance(policy, (SourceOrder, *REPAIRS)) and policy.inner in policies)


def _count_rebuilds(policy: Policy, rebuilds: int | None) -> tuple[int, str]:
    """Return the number of routes to build again, and the reason if it is not the usual one."""
    if not is_deterministic(policy):
        return 0, "it declares deterministic = False"
    if rebuilds is not None:
        return rebuilds, "" if rebuilds else "rebuilds=0 was given"
    reason = reason_to_save(policy)
    if not reason:
        return REBUILDS, ""
    return 0 if reason == _COSTLY else 1, reason


_COSTLY = "building it may cost money or go over a network"
_OUTSIDE = "it is a system outside this process"


def reason_to_save(policy: Policy) -> str:
    """Return the reason not to build a memory again unless the user asks for it; empty if none."""
    inner = unwrap_policy(policy)
    declared = getattr(find_class(inner), "costly", False)
    client = describe_client(policy)
    declared = declared or (client is not None and bool(client.calls_per_add))
    remote = any(getattr(inner, name, "") for name in ("url", "profile", "base_url", "model"))
    if declared or (remote and callable(getattr(inner, "origin", None))):
        return _COSTLY
    return _OUTSIDE if callable(getattr(inner, "origin", None)) else ""


def is_costly(policy: Policy) -> bool:
    """Whether building a memory asks a model, may cost money or happens outside this process."""
    client = describe_client(policy)
    spends = client is not None and client.spends
    return spends or builder_model(policy) is not None or bool(reason_to_save(policy))


def check_isolation(
    case: Case, policy: Policy, schedules: Sequence[Schedule], *, full: bool = True
) -> str:
    """Refuse a memory whose builds share state; give `separate`, `alternating` or `unclear`.

    A memory that shares state only while two builds are open has the right numbers in an audit,
    which closes each before the next: that is reported and not refused. Without `full`, only the
    ends of ids and texts differ between copies of the records.
    """
    size = len(case.pool)
    if size < 2:
        return "unclear"
    forward = tuple(range(size))
    orders = (schedule.on(case.pool) for schedule in schedules)
    alternative = next(
        (o for o in orders if o != forward and sorted(o) == [*forward]), forward[::-1]
    )
    queries = [question.text for question in case.questions[:_QUERIES]]
    try:
        isolation = find_leak(policy, case.pool.records, alternative, queries, full=full)
    except LimitError:
        return "unclear"
    if isolation.outcome == "shared" and isolation.sequence == "second":
        raise ContractError(
            f"{policy.name}: {describe_leak(isolation)} (user '{case.pool.user}'), so a comparison "
            f"of orders means nothing. Create every store, collection, file and list separately "
            f"for each build; run check-adapter for details"
        )
    if isolation.outcome == "chance":
        raise ContractError(
            f"{policy.name}: two builds from the same records in the same order differ (user "
            f"'{case.pool.user}'), so a difference between orders would say nothing. Is there "
            f"chance or time in it?"
        )
    return "alternating" if isolation.outcome == "shared" else isolation.outcome


def describe_checks(checks: RouteChecks, counts: RouteCounts, pools: int) -> Iterable[str]:
    """Describe how many routes of the user's own memories were built again, alike ones together."""
    texts: dict[str, list[str]] = {}
    for name in dict.fromkeys([*checks.rebuilt, *checks.skipped]):
        if counts.traced[name]:
            for text in _describe_check(name, checks, counts, pools):
                texts.setdefault(text, []).append(name)
    for text, names in texts.items():
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        yield f"{', '.join(names[:_MOST_NAMED])}{more}: {text}"


_MOST_NAMED = 3


def _describe_check(
    name: str, checks: RouteChecks, counts: RouteCounts, pools: int
) -> Iterable[str]:
    if rebuilt := counts.rebuilt[name]:
        likely = 1 - (1 - 1 / RARE) ** (2 * rebuilt)
        yield (
            f"{rebuilt} of {counts.traced[name]} routes were built a second time, with the same "
            f"result; randomness in 1 of {RARE} builds would have been detected with probability "
            f"{likely:.2f}"
        )
    if name in checks.skipped:
        reason = checks.skipped[name]
        rest = (
            ": shared state could not be distinguished from chance"
            if "deterministic" in reason
            else "; pass rebuilds=N to check it"
        )
        yield f"shared state between builds was not checked, because {reason}{rest}"
    yield from _describe_outcomes(name, counts, pools)


def describe_isolation(name: str, counts: RouteCounts, pools: int) -> Iterable[str]:
    """Describe on how many pools the builds of a memory were checked for shared state."""
    return (f"{name}: {text}" for text in _describe_outcomes(name, counts, pools))


def _describe_outcomes(name: str, counts: RouteCounts, pools: int) -> Iterable[str]:
    outcomes = {
        outcome: counts.isolation[name, outcome]
        for outcome in ("separate", "alternating", "unclear")
    }
    if outcomes["separate"]:
        yield (
            f"no build influenced another on {outcomes['separate']} of {pools} pools, on which the "
            f"same records were built in two orders, one after the other and alternating"
        )
    if outcomes["alternating"]:
        yield (
            f"on {outcomes['alternating']} pools two builds that are open at the same time "
            f"influence each other; the audit closes one before the next, so its numbers are valid"
        )
    if outcomes["unclear"]:
        yield (
            f"on {outcomes['unclear']} of {pools} pools shared state between builds could "
            f"not be checked: there is only one record, or building copies of the records under "
            f"new ids failed or gave memories that cannot be compared"
        )


_LAYERS = ("retained records", "shown sources", "shown text", "state")


@dataclass(frozen=True, slots=True)
class Isolation:
    """The result of building the same records in two orders, in every sequence."""

    outcome: Literal["separate", "shared", "unclear", "chance"]
    """Whether builds are separate, share something, depend on names or chance, or differ by chance:
    the same sequence on other copies did not show the difference again."""
    layer: str = ""
    """The first layer with a difference."""
    order: str = ""
    """The order with a different result: `forward` or `other`."""
    sequence: Literal["", "second", "interleaved"] = ""
    """Whether it was built after the same records in the other order, or at the same time."""


CopyKind: TypeAlias = Literal["light", "full"]
Order: TypeAlias = Sequence[int]
View: TypeAlias = tuple[str, str, str, str]
"""Each layer of a memory as text, without the marks of its copy."""


def find_leak(
    policy: Policy,
    records: Sequence[Record],
    alternative: Order,
    queries: Sequence[str],
    *,
    full: bool = True,
) -> Isolation:
    """Build copies of the records in two orders: in both sequences, and interleaved.

    Light copies are always built, full copies only if `full` is set and light ones show nothing.
    """
    kinds: tuple[CopyKind, ...] = ("light", "full") if full else ("light",)
    outcomes = []
    for kind in kinds:
        try:
            isolation = _find_leak(
                _Probe(policy, tuple(records), tuple(queries), kind), alternative
            )
        except OWN_ERRORS:  # a memory may not accept these ids or this order: nothing is concluded
            isolation = Isolation("unclear")
        if isolation.outcome in ("shared", "chance"):
            return isolation
        outcomes.append(isolation)
    return next((outcome for outcome in outcomes if outcome.outcome == "separate"), outcomes[0])


def _find_leak(probe: _Probe, alternative: Order) -> Isolation:
    records = probe.records
    forward = tuple(range(len(records)))
    ahead = probe.in_sequence(forward, alternative)
    behind = probe.in_sequence(alternative, forward)
    between = probe.interleaved(forward, alternative)
    for name, order, views in (
        ("forward", forward, (ahead[0], behind[1], between[0])),
        ("other", alternative, (behind[0], ahead[1], between[1])),
    ):
        if len(set(views)) > 1:
            controls = [probe.alone(order) for _ in range(_CONTROLS)]
            isolation = _conclude_isolation(name, views, controls)
            if isolation.outcome != "shared":
                return isolation
            repeated = probe.repeat(isolation, forward, alternative)
            layer = _LAYERS.index(isolation.layer)
            same = repeated[layer] == views[0][layer]
            return Isolation("chance", isolation.layer, name) if same else isolation
    return Isolation("separate")


def describe_leak(isolation: Isolation) -> str:
    """Describe which build influenced which."""
    when = {
        "second": "after the same records were built in the opposite order",
        "interleaved": "while the same records were built in the opposite order",
    }[isolation.sequence or "second"]
    name = "forward order" if isolation.order == "forward" else "another order"
    return (
        f"builds share state: built {when}, {name} has different {isolation.layer} than built alone"
    )


def _conclude_isolation(
    name: str, views: tuple[View, View, View], alone: Sequence[View]
) -> Isolation:
    first, second, between = views
    unclear = False
    for at, layer in enumerate(_LAYERS):
        steady = {view[at] for view in (first, *alone)}
        if len(steady) > 1:
            unclear = True
            continue
        if second[at] not in steady:
            return Isolation("shared", layer, name, "second")
        if between[at] not in steady:
            return Isolation("shared", layer, name, "interleaved")
    return Isolation("unclear" if unclear else "separate")


class _Probe:
    """Builds copies of some records; no two sequences get the same copy."""

    def __init__(
        self,
        policy: Policy,
        records: tuple[Record, ...],
        queries: tuple[str, ...],
        kind: CopyKind,
    ) -> None:
        self.policy, self.records, self.queries, self.kind = policy, records, queries, kind
        self.copies = 0
        # Pools may use the same ids: a store that has seen the copies of one knows no other's.
        content = json.dumps([kind, *([record.id, record.text] for record in records)])
        self.digits = int(sha256(content.encode()).hexdigest(), 16) % 10_000

    def repeat(self, isolation: Isolation, forward: Order, alternative: Order) -> View:
        """Build the order with a different result again, in the same sequence."""
        if isolation.sequence == "interleaved":
            return self.interleaved(forward, alternative)[isolation.order != "forward"]
        pair = (alternative, forward) if isolation.order == "forward" else (forward, alternative)
        return self.in_sequence(*pair)[1]

    def in_sequence(self, first: Order, second: Order) -> tuple[View, View]:
        """Build, show and close one order, then the other, from the same copy."""
        mark, records = self._copy()
        views = []
        for order in (first, second):
            with closing_memory(self.policy.build(_arrange_records(records, order))) as memory:
                views.append(self._view(memory, mark))
        return views[0], views[1]

    def alone(self, order: Order) -> View:
        """Build one order from a copy of its own."""
        mark, records = self._copy()
        with closing_memory(self.policy.build(_arrange_records(records, order))) as memory:
            return self._view(memory, mark)

    def interleaved(self, first: Order, second: Order) -> tuple[View, View]:
        """Let two builds take turns, if possible, and expose both while both are open."""
        mark, records = self._copy()
        arrivals = _arrange_records(records, first), _arrange_records(records, second)
        with ExitStack() as stack:
            memories = [
                stack.enter_context(closing_memory(memory))
                for memory in _build_in_turns(self.policy, *arrivals)
            ]
            views = [self._view(memory, mark) for memory in memories]
        return views[0], views[1]

    def _copy(self) -> tuple[str, tuple[Record, ...]]:
        self.copies += 1
        mark = f"731{self.digits:04d}{self.copies:02d}"
        return mark, copy_records(self.records, mark, self.kind)

    def _view(self, memory: Memory, mark: str) -> View:
        exposures = [memory.expose(query) for query in self.queries]
        layers: tuple[Any, ...] = (
            sorted(retained_ids(memory, self.policy.name)),
            [sorted(exposure.sources) for exposure in exposures],
            [[[block.kind, block.text] for block in exposure.blocks] for exposure in exposures],
            memory.state(),
        )
        texts = [json.dumps(layer, sort_keys=True, default=repr) for layer in layers]
        word = re.compile(f"{mark}|{_spell(mark)}", re.IGNORECASE)
        clean = [word.sub("copy", text) for text in texts]
        return clean[0], clean[1], clean[2], clean[3]


def copy_records(
    records: Sequence[Record], mark: str, kind: CopyKind = "light"
) -> tuple[Record, ...]:
    """Return the records with a mark at the end, or at both ends, of ids and texts.

    An id that ends with a number still does in a light copy, so that `int(record.id)` works.
    """
    return tuple(
        (_copy_lightly if kind == "light" else _copy_fully)(record, mark, at)
        for at, record in enumerate(records)
    )


def _copy_lightly(record: Record, mark: str, at: int) -> Record:
    *earlier, last = record.spoken or (None,)
    marked = () if last is None else (*earlier, replace(last, text=f"{last.text} {mark}"))
    return replace(record, id=f"{record.id}{mark}", text=f"{record.text} {mark}", spoken=marked)


def _spell(mark: str) -> str:
    """Write a mark of digits in letters, for stores whose keys are words without digits."""
    return "".join("abcdefghij"[int(digit)] for digit in mark)


def _copy_fully(record: Record, mark: str, at: int) -> Record:
    word = f"{_spell(mark)}{_spell(f'{at:04d}')}"
    turns = tuple(replace(turn, text=f"{word} {turn.text} {word}") for turn in record.turns)
    copied = (
        Record.from_turns(record.id, record.position, turns)
        if any(turn.role for turn in turns)
        else replace(record, text=turns[0].text, spoken=())
    )
    return replace(
        copied,
        id=f"{mark}-{record.id}-{mark}",
        position=int(mark) * _SPREAD + record.position,
        timestamp=record.timestamp,
    )


def _arrange_records(records: Sequence[Record], order: Order) -> tuple[Record, ...]:
    return tuple(records[position] for position in order)


def _build_in_turns(
    policy: Policy, first: tuple[Record, ...], second: tuple[Record, ...]
) -> tuple[Memory, Memory]:
    """Build two memories record by record, alternating, or else one after the other."""
    inner = unwrap_policy(policy) if isinstance(policy, NamedPolicy) else policy
    if isinstance(inner, OwnMemory):
        with inner.begin() as left, inner.begin() as two:
            for pair in zip(first, second, strict=True):
                for memory, record in zip((left, two), pair, strict=True):
                    refuse_awaitable(memory.add(record), inner.name, "add")
            inner.settle(left)
            inner.settle(two)
        return inner.finish(left, first), inner.finish(two, second)
    if isinstance(inner, Incremental):
        states: list[Any] = [inner.start(), inner.start()]
        for pair in zip(first, second, strict=True):
            states = [inner.step(state, record) for state, record in zip(states, pair, strict=True)]
        return inner.finish(states[0]), inner.finish(states[1])
    built = policy.build(first)
    try:
        return built, policy.build(second)
    except BaseException:
        close_memory(built)
        raise
