"""A growing history: the records retained after each prefix, built forward and reversed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from routeprism.errors import ContractError
from routeprism.policies import Incremental, Memory, Policy
from routeprism.policies.own import closing_memory, report_own_errors, retained_ids
from routeprism.records import Pool

_EVERY = 16
"""The number of records up to which every moment is traced."""
_STEPS = 4
"""The number of moments in each doubling from then on."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The retained records after the first records of a pool have arrived."""

    after: int
    """How many records have arrived."""
    arrived: frozenset[str]
    forward: frozenset[str]
    """Retained if they arrived in source order."""
    reversed: frozenset[str]
    """Retained if they arrived in the opposite order."""


def list_moments(size: int) -> list[int]:
    """List the moments of pools of this size or more.

    1 to 16, then four in each doubling: few enough that all reversed builds together take about
    five passes over a long pool.
    """
    moments = list(range(1, min(size, _EVERY) + 1))
    step, at = _EVERY // _STEPS, _EVERY
    while (at := at + step) <= size:
        moments.append(at)
        if at == step * 2 * _STEPS:
            step *= 2
    return moments


def trace_moments(policy: Policy, pool: Pool) -> Iterator[Moment]:
    """Trace a growing history; the end of a pool is also a moment.

    An incremental policy is stepped forward once, any other is built for every moment.
    """
    state: Any = policy.start() if isinstance(policy, Incremental) else None
    before = 0
    for after in dict.fromkeys((*list_moments(len(pool)), len(pool))):
        records = pool.records[:after]
        arrived = frozenset(record.id for record in records)
        with report_own_errors(policy, user=pool.user):
            if isinstance(policy, Incremental):
                for record in records[before:]:
                    state = policy.step(state, record)
                forward = policy.finish(state)
            else:
                forward = policy.build(records)
            before = after
            retained = [
                _retained_so_far(memory, arrived, policy.name)
                for memory in (forward, policy.build(records[::-1]))
            ]
        yield Moment(after, arrived, *retained)


def _retained_so_far(memory: Memory, arrived: frozenset[str], name: str) -> frozenset[str]:
    with closing_memory(memory) as opened:
        retained = retained_ids(opened, name)
    if unknown := sorted(retained - arrived):
        raise ContractError(f"{name} retains '{unknown[0]}', which had not arrived")
    return retained
