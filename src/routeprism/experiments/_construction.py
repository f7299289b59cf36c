"""Building what asks a model, and what building takes.

Policies that ask through the ledger are built before any tracing. Each memory is stored as a
snapshot and revived wherever it is exposed, in this call and in later ones: nothing is built, or
paid for, again. A dry run builds no memory that makes requests of its own. Stand-ins count the
records that each would be given; what cannot be known is marked as an estimate.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from routeprism.answers import AnswerProgress, Consultant, Cost, Pace, Progress
from routeprism.errors import ContractError, LimitError, ModelError, SpecError, UnansweredError
from routeprism.experiments._adding import AddProgress
from routeprism.experiments._case import Plan
from routeprism.experiments._execution import Pacing
from routeprism.models import Allowance, Model, replay_model
from routeprism.models.gateway import client_route
from routeprism.orders import FORWARD, ONE_BY_ONE
from routeprism.policies import (
    Client,
    Memory,
    Metered,
    Policy,
    StandIn,
    builder_model,
    connect_model,
    make_stand_in,
    meter_policy,
    revive_memory,
    stores_states,
    unwrap_policy,
    uses_gateway,
)
from routeprism.policies.own import closing_memory, open_memory, report_own_errors, retained_ids
from routeprism.records import Case, Pool
from routeprism.routes import build_memory, hash_state
from routeprism.runs import Run, States
from routeprism.workers import Conversations, open_conversations

_LONGEST_ORDER = 64
"""Characters; a longer order is named by its digest."""


@dataclass(frozen=True, slots=True)
class Build:
    """One memory to build."""

    policy: Policy
    pool: Pool
    order: tuple[int, ...]
    """Source positions in arrival order; any sequence of the pool's."""
    route: str
    """The schedule's name, for the ledger."""
    build: int = 0
    """Which build of this route it is, from 0."""


def builds_of(plan: Plan, policy: Policy, *, builds: int = 1) -> Iterator[Build]:
    """Yield every route of a policy; schedules that give a pool the same order share its builds."""
    at = plan.policies.index(policy)
    for case in plan.benchmark.cases:
        if not case.questions:
            continue
        routes: dict[tuple[int, ...], str] = {}
        references = (each.reference for each in plan.schedules if each.reference is not None)
        for schedule in (FORWARD, *references, *plan.schedules):
            if schedule.procedure.kind in (ONE_BY_ONE.kind, "twice"):
                routes.setdefault(schedule.on(case.pool), schedule.name)
        for order, route in routes.items():
            for build in range(builds):
                yield Build(plan.policies_for(case.pool.user)[at], case.pool, order, route, build)


def batch_of(build: Build) -> str:
    """Name the realisation that a build's replies belong to, for the ledger's keys."""
    order = "-".join(map(str, build.order))
    if len(order) > _LONGEST_ORDER:
        order = hashlib.sha256(order.encode()).hexdigest()[:16]
    return f"build {build.build} of {build.policy.name}, user {build.pool.user}, order {order}"


def construct(
    run: Run,
    states: Path,
    policies: Sequence[Policy],
    list_builds: Callable[[Policy], Iterable[Build]],
    pacing: Pacing,
    progress: AnswerProgress | None = None,
    ray: str | None = None,
) -> dict[str, Cost]:
    """Build and store what is not stored yet, policy by policy; a dry run returns what it takes.

    Args:
        run: whose ledger is used.
        states: the store that snapshots are in.
        policies: who builds; those whose states are not stored are passed over.
        list_builds: gives a policy's builds.
        pacing: how models are asked.
        progress: progress callback.
        ray: the address of a cluster whose workers build; models are still asked from here.

    """
    costs: dict[str, Cost] = {}
    for policy in policies:
        if not stores_states(policy):
            continue
        model = builder_model(policy)
        if model is not None:
            model = replay_model(model, pacing.replay)
        with ExitStack() as stack:
            store = stack.enter_context(States(states))
            missing = [
                build
                for build in list_builds(policy)
                if store.get(build.policy.name, build.pool.user, build.order, build.build) is None
            ]
            adding = None if pacing.dry_run else _watch_replies(policy, missing, progress)
            consultant = None
            if model is not None:
                consultant = stack.enter_context(
                    Consultant(
                        run,
                        model,
                        dry_run=pacing.dry_run,
                        pace=Pace(pacing.rate_limit),
                        allowance=pacing.allowance,
                        cluster=pacing.cluster,
                        tick=adding,
                    )
                )
            if adding is not None:
                stack.enter_context(adding.watching())
            report = None if progress is None else partial(_report, progress, policy, adding)
            conversations = None
            if ray is not None and not pacing.dry_run:
                conversations = stack.enter_context(open_conversations(ray))
            take = partial(_snapshot, consultant=consultant, conversations=conversations)
            _build_all(missing, store, consultant, take, _threads(model, pacing), report)
            if consultant is not None and pacing.dry_run:
                costs[f"{model.name if model else ''} (building {policy.name})"] = consultant.plan()
    return costs


def _watch_replies(
    policy: Policy, missing: Sequence[Build], progress: AnswerProgress | None
) -> AddProgress | None:
    """Begin to count replies that build memories: one for each record, until one is complete."""
    if progress is None or builder_model(policy) is None:
        return None
    sizes = [len(build.order) for build in missing]
    return AddProgress(progress, sizes, 1, name=f"replies that build {policy.name}")


def _report(
    progress: AnswerProgress, policy: Policy, adding: AddProgress | None, now: Progress
) -> None:
    progress(f"building {policy.name}", now)
    if adding is not None:
        adding.end_pool()


def _threads(model: Model | None, pacing: Pacing) -> int:
    if pacing.concurrency is not None and pacing.concurrency < 1:
        raise SpecError(
            f"Expected a concurrency of 1 or more but got concurrency={pacing.concurrency}"
        )
    if model is None or pacing.dry_run:
        return 1  # there is no reply to wait for
    return pacing.concurrency or model.concurrency


def _build_all(
    missing: Iterable[Build],
    states: States,
    consultant: Consultant | None,
    take: Callable[[Build], Any],
    threads: int,
    report: Callable[[Progress], None] | None,
) -> None:
    """Build in threads, a few ahead, and store in order."""
    begun = time.monotonic()
    waiting: deque[tuple[Build, Future[Any]]] = deque()
    done = 0

    def store() -> None:
        nonlocal done
        build, future = waiting.popleft()
        try:
            snapshot = future.result()
        except LimitError as error:
            raise LimitError(
                f"{error}, while {build.policy.name} was built for user '{build.pool.user}'. "
                f"Replies that came in are kept in the run; run the same command again, or with a "
                f"higher limit, to build the rest"
            ) from error
        except ModelError as error:
            raise UnansweredError(
                f"{build.policy.name} could not be built for user '{build.pool.user}': {error}. "
                f"Replies that came in are kept in the run, and the same command resumes",
                attempts=error.attempts,
            ) from error
        states.put(build.policy.name, build.pool.user, build.order, snapshot, build.build)
        done += 1
        if report is not None:
            rate = done / max(time.monotonic() - begun, 1e-9)
            report(Progress(done, done + len(waiting), 0, rate, None, None))

    pool = ThreadPoolExecutor(threads, thread_name_prefix="build")
    try:
        for build in missing:
            waiting.append((build, pool.submit(take, build)))
            if len(waiting) >= 2 * threads:
                store()
        while waiting:
            store()
    finally:
        for _, future in waiting:
            future.cancel()
        if consultant is not None:
            consultant.stop()  # else threads would wait for replies that nobody needs
        pool.shutdown()


def _snapshot(
    build: Build, consultant: Consultant | None, conversations: Conversations | None
) -> Any:
    """Build here, or on a worker of a cluster; prompts are answered through the ledger here."""

    def open_ask() -> Callable[[str], str]:
        if consultant is None:
            return _refuse_question
        return consultant.consult(batch_of(build), user=build.pool.user, route=build.route)

    if conversations is None:
        return _build_one(build, open_ask())
    return conversations.run(partial(_build_one, build), open_ask)


def _refuse_question(prompt: str) -> str:
    raise ContractError("a memory that names no model asked one while it was built")


def _build_one(build: Build, ask: Callable[[str], str]) -> Any:
    names_model = builder_model(build.policy) is not None
    policy = connect_model(build.policy, ask) if names_model else build.policy
    with (
        report_own_errors(policy, user=build.pool.user, route=build.route),
        open_memory(policy, build.pool, build.order) as memory,
    ):
        take = getattr(memory, "snapshot", None)
        if not callable(take):
            raise ContractError(
                f"a memory of {policy.name} has no snapshot(), which is needed to store it"
            )
        snapshot = take()
        _check_snapshot(policy, build, memory, snapshot)
        return snapshot


def _check_snapshot(policy: Policy, build: Build, memory: Memory, snapshot: Any) -> None:
    """Refuse a snapshot that revives a different memory: only revived ones are exposed.

    No question is known while memories are built, so the first and the last arrival are looked for.
    """
    arrivals = tuple(build.pool.records[position] for position in build.order)
    texts = [record.text for record in dict.fromkeys(arrivals[:1] + arrivals[-1:])]

    def see(copy: Memory) -> tuple[object, ...]:
        retained = retained_ids(copy, policy.name)
        return retained, hash_state(copy.state()), [copy.expose(text).blocks for text in texts]

    built = see(memory)
    with closing_memory(
        revive_memory(policy, arrivals, json.loads(json.dumps(snapshot)))
    ) as revived:
        view = see(revived)
    # What is shown counts only if reading the same memory again shows the same.
    if view != built and (view[:2] != built[:2] or see(memory) == built):
        raise ContractError(
            f"{policy.name} does not restore faithfully: the memory of user '{build.pool.user}' "
            f"that revive() made from its snapshot differs from the one that was built"
        )


def stand_ins(
    policies: Sequence[Policy],
    cases: Sequence[Case],
    *,
    measure: bool = False,
    allowance: Allowance | None = None,
) -> tuple[Policy, ...]:
    """Put a stand-in in the place of each policy that makes requests of its own.

    With `measure`, such a policy is built once, forward, on the first pool that has questions: that
    makes its requests, and shows its calls, its tokens, and how much text a question gets.
    """
    memories = [make_stand_in(policy) for policy in policies]
    case = next((case for case in cases if case.questions), None)
    if not measure or case is None:
        return tuple(memories)
    return tuple(
        _measure_memory(memory, case, allowance) if isinstance(memory, StandIn) else memory
        for memory in memories
    )


def _measure_memory(policy: StandIn, case: Case, limits: Allowance | None) -> StandIn:
    allowance = limits or Allowance()
    calls, input_tokens = allowance.calls, allowance.input_tokens
    order = FORWARD.on(case.pool)
    with closing_memory(build_memory(meter_policy(policy.inner, allowance), case, order)) as memory:
        lengths = [len(memory.expose(question.text).context) for question in case.questions]
    length = round(sum(lengths) / len(lengths))
    calls, input_tokens = allowance.calls - calls, allowance.input_tokens - input_tokens
    client = policy.client
    if isinstance(unwrap_policy(policy.inner), Metered) and calls:
        policy.build(case.pool.records)
        alone = policy.counters["tokens"] / len(order)
        policy.counters.clear()
        more = max(0, round(input_tokens / calls - alone))
        client = replace(client, calls_per_add=calls / len(order), tokens_per_call=more)
    return replace(policy, client=client, characters=length, measured=True)


def asks_more(policy: Policy, costs: Mapping[str, Cost]) -> bool:
    """Whether replies that build a policy are still missing."""
    return any(
        cost.calls != 0
        for name, cost in costs.items()
        if name.endswith(f"(building {policy.name})")
    )


def construction_costs(
    policies: Sequence[Policy], counts: Mapping[tuple[str, str], int], run: Run | None = None
) -> dict[str, Cost]:
    """Describe what each stand-in's policy would take to build, from what the stand-ins counted.

    Replies that the ledger of a run has already are left out.
    """
    costs = {}
    for policy in policies:
        if isinstance(policy, StandIn):
            building = f"building {policy.name}"
            who = policy.client.model
            name = f"{who} ({building})" if who else building
            costs[name] = _without_stored(_construction(policy, counts), policy, run)
    return costs


def _without_stored(cost: Cost, policy: StandIn, run: Run | None) -> Cost:
    """Take off the share of the calls whose replies are stored."""
    if run is None or not cost.calls or not uses_gateway(policy):
        return cost
    with run.ledger() as ledger:
        stored = min(ledger.count_route(client_route(policy.name)), cost.calls)
    left = (cost.calls - stored) / cost.calls
    return replace(
        cost,
        kept=stored,
        calls=cost.calls - stored,
        input_tokens=None if cost.input_tokens is None else round(cost.input_tokens * left),
        cost=None if cost.cost is None else cost.cost * left,
    )


def _construction(policy: StandIn, counts: Mapping[tuple[str, str], int]) -> Cost:
    client = policy.client
    builds, adds, input_tokens = (
        counts.get((policy.name, kind), 0) for kind in ("builds", "adds", "tokens")
    )
    amount = f"{adds:,} record{'s' * (adds != 1)} in {builds:,} build{'s' * (builds != 1)}"
    lasting = ""
    if waiting := client.waiting:
        times = builds if waiting.per_build else adds
        seconds = f" and {times * waiting.seconds:,.0f} seconds" if waiting.seconds else ""
        requests = f"{times * waiting.requests:,} requests"
        lasting = f"; waiting until they are stored takes at least {requests}{seconds}"
    if client.calls_per_add is None:
        note = (
            f"{amount} would be added, and RoutePrism cannot see what this memory calls; "
            f"{_declaration(policy)}{lasting}"
        )
        return Cost(0, 0, None, None, None, None, note, estimated=True)
    calls = math.ceil(adds * client.calls_per_add)
    each = "1 call" if client.calls_per_add == 1 else f"{client.calls_per_add:g} calls"
    note = f"{amount}, {each} per record{lasting}"
    if not client.model:
        return Cost(calls, 0, calls, None, None, None, f"as declared: {note}", estimated=True)
    tokens = round((input_tokens + adds * client.tokens_per_call) * client.calls_per_add)
    cost = None if client.price_in is None else tokens * client.price_in / 1e6
    how = (
        "measured on one pool"
        if policy.measured
        else "with the instructions and the record alone in each prompt"
    )
    return Cost(calls, 0, calls, tokens, cost, None, f"an estimate, {how}: {note}", estimated=True)


def _declaration(policy: StandIn) -> str:
    """Describe how a memory's calls can be made known."""
    if isinstance(getattr(unwrap_policy(policy), "client", None), Client):
        return "write calls_per_add=N into its spec to have them counted"
    return (
        "declare calls_per_add = N on its class if it asks a model, or offline = True if it makes "
        "no request"
    )


def mark_assumptions(cost: Cost, absent: Sequence[StandIn], unread: Sequence[Policy]) -> Cost:
    """Mark what answers take as an estimate where a memory was not built as a run would."""
    notes = [cost.note] if cost.note else []
    if absent:
        assumptions = "; ".join(
            f"{policy.name} is assumed to show {_describe_length(policy)}" for policy in absent
        )
        notes.append(
            "an estimate: a dry run does not build memories that make requests of their own; "
            + assumptions
        )
    if unread:
        names = ", ".join(policy.name for policy in unread)
        notes.append(f"an estimate: what {names} shows depends on replies that are missing")
    return replace(cost, note="; ".join(notes), estimated=bool(absent or unread) or cost.estimated)


def _describe_length(policy: StandIn) -> str:
    if policy.measured:
        return f"{policy.characters:,} characters, as on one pool"
    return f"{policy.client.k} records" if policy.client.k else "the whole pool"
