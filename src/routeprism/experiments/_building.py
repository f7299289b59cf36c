"""Building with a model: every reply through the ledger, every state stored, before any tracing.

What these policies build is stored as a snapshot and revived wherever it is exposed, in this call
and in later ones: nothing is built, or paid for, again.
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from routeprism.answers import Consultant, Progress
from routeprism.answers import Plan as Cost
from routeprism.errors import ContractError, ModelError, SpecError
from routeprism.experiments._plans import Plan
from routeprism.experiments._stages import Asked
from routeprism.models import Model
from routeprism.orders import FORWARD
from routeprism.policies import Policy, builder_model, consulting, stored_states
from routeprism.records import Pool
from routeprism.runs import Run, States

__all__ = ["Build", "Pacing", "batch_of", "builds_of", "construct"]

_LONGEST_ORDER = 64
"""Characters; a longer order is named by its digest."""


@dataclass(frozen=True, slots=True)
class Build:
    """One memory that is wanted."""

    policy: Policy
    pool: Pool
    order: tuple[int, ...]
    """Source positions in arrival order; any sequence of the pool's."""
    route: str
    """The schedule's name, for the ledger."""
    build: int = 0
    """Which build of this route it is, from 0."""


@dataclass(frozen=True, slots=True)
class Pacing:
    """How models are asked while building."""

    rate_limit: float | None = None
    """Requests a minute at most, for each model."""
    concurrency: int | None = None
    """Builds at once, where it should differ from the model's own number."""
    dry_run: bool = False
    """Whether to count instead of asking."""


def builds_of(plan: Plan, policy: Policy, *, builds: int = 1) -> Iterator[Build]:
    """Give every route of a policy; schedules that give a pool the same order share its builds."""
    at = plan.policies.index(policy)
    for case in plan.benchmark.cases:
        if not case.questions:
            continue
        routes: dict[tuple[int, ...], str] = {}
        for schedule in (FORWARD, *plan.schedules):
            routes.setdefault(schedule.order(len(case.pool), case.pool.user), schedule.name)
        for order, route in routes.items():
            for build in range(builds):
                yield Build(plan.policies_for(case.pool.user)[at], case.pool, order, route, build)


def batch_of(wanted: Build) -> str:
    """Name the realisation that a build's replies belong to, for the ledger's keys."""
    order = "-".join(map(str, wanted.order))
    if len(order) > _LONGEST_ORDER:
        order = hashlib.sha256(order.encode()).hexdigest()[:16]
    return f"build {wanted.build} of {wanted.policy.name}, user {wanted.pool.user}, order {order}"


def construct(
    run: Run,
    states: Path,
    policies: Sequence[Policy],
    wanted: Callable[[Policy], Iterable[Build]],
    pacing: Pacing,
    asked: Asked | None = None,
) -> dict[str, Cost]:
    """Build and store what is not stored yet, policy by policy; say what it takes in a dry run.

    Args:
        run: whose ledger is used.
        states: the store that snapshots are in.
        policies: who builds; those whose states are not stored are passed over.
        wanted: gives a policy's builds.
        pacing: how models are asked.
        asked: told how it goes on.

    """
    costs: dict[str, Cost] = {}
    for policy in policies:
        if not stored_states(policy):
            continue
        model = builder_model(policy)
        with ExitStack() as stack:
            kept = stack.enter_context(States(states))
            consultant = None
            if model is not None:
                consultant = stack.enter_context(
                    Consultant(run, model, dry_run=pacing.dry_run, rate_limit=pacing.rate_limit)
                )
            missing = (one for one in wanted(policy) if not _there(kept, one))
            report = None if asked is None else partial(asked, f"building {policy.name}")
            _build_all(missing, kept, consultant, _threads(model, pacing), report)
            if consultant is not None and pacing.dry_run:
                costs[f"{model.name if model else ''} (building {policy.name})"] = consultant.plan()
    return costs


def _there(states: States, wanted: Build) -> bool:
    name, user = wanted.policy.name, wanted.pool.user
    return states.get(name, user, wanted.order, wanted.build) is not None


def _threads(model: Model | None, pacing: Pacing) -> int:
    if pacing.concurrency is not None and pacing.concurrency < 1:
        raise SpecError(
            f"Expected a concurrency of 1 or more but got concurrency={pacing.concurrency}"
        )
    if model is None or pacing.dry_run:
        return 1  # nobody to wait for
    return pacing.concurrency or model.concurrency


def _build_all(
    missing: Iterable[Build],
    states: States,
    consultant: Consultant | None,
    threads: int,
    report: Callable[[Progress], None] | None,
) -> None:
    """Build in threads, a few ahead, and store in order."""
    begun = time.monotonic()
    waiting: deque[tuple[Build, Future[Any]]] = deque()
    done = 0

    def store() -> None:
        nonlocal done
        one, future = waiting.popleft()
        try:
            snapshot = future.result()
        except ModelError as error:
            raise ModelError(
                f"{one.policy.name} could not be built for user '{one.pool.user}': {error}. "
                f"Replies that came in are kept in the run, and the same command goes on",
                attempts=error.attempts,
            ) from error
        states.put(one.policy.name, one.pool.user, one.order, snapshot, one.build)
        done += 1
        if report is not None:
            rate = done / max(time.monotonic() - begun, 1e-9)
            report(Progress(done, done + len(waiting), 0, rate, None, None))

    pool = ThreadPoolExecutor(threads, thread_name_prefix="build")
    try:
        for one in missing:
            waiting.append((one, pool.submit(_snapshot, one, consultant)))
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


def _snapshot(wanted: Build, consultant: Consultant | None) -> Any:
    policy = wanted.policy
    if consultant is not None:
        batch, user = batch_of(wanted), wanted.pool.user
        policy = consulting(policy, consultant.consult(batch, user=user, route=wanted.route))
    memory = policy.build(tuple(wanted.pool.records[position] for position in wanted.order))
    try:
        take = getattr(memory, "snapshot", None)
        if not callable(take):
            raise ContractError(
                f"a memory of {policy.name} has no snapshot(), which is needed to store it"
            )
        return take()
    finally:
        close = getattr(memory, "close", None)
        if callable(close):
            close()
