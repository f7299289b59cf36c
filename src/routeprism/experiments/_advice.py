"""Repairs that an audit tries by itself, on the users whose evidence is lost and on a few others.

`remedy` measures the same repairs on every user, and shows what each of them costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from routeprism.errors import RoutePrismError
from routeprism.exhibits import Results
from routeprism.experiments._case import Plan, work
from routeprism.experiments._experiment import AuditOutcome
from routeprism.experiments._rows import Key, estimate_rows
from routeprism.experiments.remedies import describe_repair, keep_repairs
from routeprism.frames import OWN_ERRORS
from routeprism.judge import ADVICE, Verdict, choose_repair
from routeprism.measures import Tally
from routeprism.orders import overlaps_writes
from routeprism.policies import (
    Policy,
    interface_of,
    is_deterministic,
    make_policy,
    needs_fit,
    parse_interface,
    unwrap_policy,
)
from routeprism.policies.own import find_own_memory
from routeprism.policies.remedies import Queue, list_remedies
from routeprism.printing import pluralise
from routeprism.records import choose_cases
from routeprism.routes import RouteChecks, is_costly
from routeprism.runs import Finding, Rows

_LOSING_USERS, _OTHER_USERS = 8, 4
"""On how many users repairs are tried: those who lose evidence, and others, evenly spread."""
_RESAMPLES = 100


def try_repairs(outcome: AuditOutcome, verdicts: Sequence[Verdict]) -> Iterator[Finding]:
    """Try repairs of every memory that needs one and that is cheap to build again."""
    policies = {policy.name: policy for policy in outcome.plan.policies}
    for verdict in verdicts:
        policy = policies[verdict.policy]
        if any(promise.promise == "leaked" for promise in verdict.promises):
            continue  # no order and no queue keeps users apart
        if verdict.promises and not verdict.is_harmful:
            if find_own_memory(policy) is not None:
                yield _advise(policy, Queue(policy).name, _QUEUE)
        elif _needs_repair(verdict) and _is_repeatable(policy):
            yield from _measure_repairs(outcome, verdict, policy)


_QUEUE = (
    "adding records one after the other, in a queue, makes every outcome that of a serial order"
)


def _needs_repair(verdict: Verdict) -> bool:
    return verdict.is_red or (verdict.severity == "warning" and not verdict.inconclusive)


def _is_repeatable(policy: Policy) -> bool:
    is_recorded = callable(getattr(policy, "recall", None))
    return not (is_costly(policy) or needs_fit(policy) or is_recorded) and is_deterministic(policy)


def _advise(policy: Policy, repair: str, text: str) -> Finding:
    return Finding(name=ADVICE, policy=policy.name, value={"repair": repair, "text": text})


def _measure_repairs(outcome: AuditOutcome, verdict: Verdict, policy: Policy) -> Iterator[Finding]:
    """Measure repairs on a few users, and state the one with the best total outcome."""
    plan = outcome.plan
    shows_records = getattr(unwrap_policy(policy), "interface", None) is not None
    interface = parse_interface(interface_of(policy) if shows_records else plan.benchmark.interface)
    try:
        repairs = list_remedies(policy, make=partial(make_policy, interface=interface))
    except RoutePrismError:
        return  # a memory whose name is no spec has no name for its repairs
    pools = _choose_pools(outcome, policy)
    small = replace(
        plan.only((policy, *repairs)),
        benchmark=choose_cases(plan.benchmark, pools),
        schedules=tuple(s for s in plan.schedules if not overlaps_writes(s.name)),
        builds=1,
        checks=RouteChecks(),
        masks={},
        over_time=False,
        explains_losses=False,
    )
    try:
        rows = _estimate(small, outcome)
    except (*OWN_ERRORS, RoutePrismError):
        return  # what is wrapped in a repair may fail where the memory does not
    repair_findings = keep_repairs([describe_repair(policy, repair) for repair in repairs])
    advice = choose_repair(verdict, Results.of(rows, repair_findings))
    if advice is not None and advice.repair is not None:
        users = pluralise(len(pools), plan.benchmark.unit)
        text = f"{advice.text} (tried on {users} of {len(plan.benchmark.cases)})"
        yield _advise(policy, advice.repair.policy, text)


def _choose_pools(outcome: AuditOutcome, policy: Policy) -> list[int]:
    """Choose the pools that lose evidence first, and some of the others."""
    losses = outcome.observations.losses.examples
    losing = dict.fromkeys(loss.user for loss in losses if loss.policy == policy.name)
    users = [case.pool.user for case in outcome.plan.benchmark.cases]
    pools = [users.index(user) for user in list(losing)[:_LOSING_USERS]]
    controls = [at for at in range(len(users)) if at not in pools]
    number = _OTHER_USERS if pools else _LOSING_USERS + _OTHER_USERS
    step = max(1, len(controls) // number)
    return sorted([*pools, *controls[::step][:number]])


def _estimate(plan: Plan, outcome: AuditOutcome) -> Rows:
    """Trace a few pools, and estimate what each repaired memory shows of them."""
    tally: Tally[Key] = Tally(plan.benchmark.weighting)
    for index in range(len(plan.benchmark.cases)):
        tally.append(work(plan, index).sums)
    setting = replace(
        outcome.setting,
        benchmark=plan.benchmark,
        interfaces={policy.name: interface_of(policy) for policy in plan.policies},
        resamples=_RESAMPLES,
        is_sequential=False,
    )
    return Rows.of(estimate_rows(tally, setting))
