"""The verdict on every memory of an audit: what the judgement reads beside rows, and its table."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from routeprism.exhibits import Results, Statement, Table
from routeprism.experiments._experiment import AuditOutcome, Experiment
from routeprism.judge import (
    OBSERVED,
    Verdict,
    describe_answers,
    describe_source,
    judge,
    state_verdict,
    tabulate_verdicts,
)
from routeprism.policies import Policy, registered_policies
from routeprism.policies.own import OwnMemory
from routeprism.runs import Finding


def observe_memories(outcome: AuditOutcome) -> Mapping[str, Sequence[Finding]]:
    """Return what an audit counted about each memory beside its rows, and which users it mixed."""
    observations = outcome.observations
    observed = [
        Finding(
            name=OBSERVED,
            policy=policy.name,
            value={
                "chance": policy.name in outcome.noisy,
                "unsourced": observations.unsourced[policy.name],
                "pools": observations.pools,
                "single_record_pools": observations.single_record_pools,
                **{
                    name: number
                    for (memory, name), number in sorted(observations.baseline.items())
                    if memory == policy.name
                },
                "data": outcome.plan.benchmark.argument,
                "command": suggest_command(policy, outcome.plan.benchmark.argument),
            },
        )
        for policy in outcome.plan.policies
    ]
    leaks = Counter((failure.policy, failure.leak) for failure in observations.failures)
    return {
        OBSERVED: observed,
        "leaks": [
            Finding(
                name="leaks",
                value={**asdict(leak), "routes": number},
                policy=policy,
                user=leak.user,
            )
            for (policy, leak), number in leaks.items()
            if leak is not None
        ],
    }


def suggest_command(policy: Policy, benchmark: str) -> str:
    """Return the command that measures repairs of a memory; empty if no command can name it."""
    is_unnamed = isinstance(policy, OwnMemory) and ":" not in policy.name
    if is_unnamed and policy.name not in registered_policies():
        return ""
    return shlex.join(("routeprism", "remedy", benchmark, "--policy", policy.name))


def state_memory(verdict: Verdict) -> Iterator[Statement]:
    """State the verdict on a memory, then what it keeps in source order and what answers show."""
    yield state_verdict(verdict)
    yield describe_source(verdict)
    yield from describe_answers(verdict)


def _tabulate(results: Results) -> list[Table]:
    return tabulate_verdicts([(verdict.policy, verdict) for verdict in judge(results)])


experiment = Experiment(
    name="verdict",
    title="Verdict",
    summary="Judge each memory: order, promises, and what is wrong in every order.",
    commands=("audit", "restore", "remedy", "demo"),
    rank=-10,
    tab="summary",
    tables=_tabulate,
    charts=lambda results: (),
)
