"""A growing history: what is retained of its first records, built forward and reversed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from routeprism.errors import ContractError
from routeprism.policies import Incremental, Memory, Policy
from routeprism.records import Pool

__all__ = ["Moment", "moments", "over_time"]

_EVERY = 16
"""Up to how many records every moment counts."""
_STEPS = 4
"""How many moments there are in each doubling from then on."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What is retained after the first records of a pool have arrived."""

    after: int
    """How many records have arrived."""
    arrived: frozenset[str]
    forward: frozenset[str]
    """Retained when they came in source order."""
    reversed: frozenset[str]
    """Retained when they came in the opposite order."""


def moments(size: int) -> list[int]:
    """Give the moments that pools of this size or more have in common.

    1 to 16, then four in each doubling: few enough that all reversed builds together take about
    five passes over a long pool.
    """
    found = list(range(1, min(size, _EVERY) + 1))
    step, at = _EVERY // _STEPS, _EVERY
    while (at := at + step) <= size:
        found.append(at)
        if at == step * 2 * _STEPS:
            step *= 2
    return found


def over_time(policy: Policy, pool: Pool) -> Iterator[Moment]:
    """Let a history grow; the end of a pool is a moment, too.

    An incremental policy goes forward once, any other is built anew for every moment.
    """
    state: Any = policy.start() if isinstance(policy, Incremental) else None
    before = 0
    for after in dict.fromkeys((*moments(len(pool)), len(pool))):
        records = pool.records[:after]
        if isinstance(policy, Incremental):
            for record in records[before:]:
                state = policy.step(state, record)
            forward = policy.finish(state)
        else:
            forward = policy.build(records)
        before = after
        arrived = frozenset(record.id for record in records)
        other = policy.build(records[::-1])
        held = [_held(memory, arrived, policy.name) for memory in (forward, other)]
        yield Moment(after, arrived, *held)


def _held(memory: Memory, arrived: frozenset[str], name: str) -> frozenset[str]:
    held = frozenset(memory.retained())
    if unknown := sorted(held - arrived):
        raise ContractError(f"{name} retains '{unknown[0]}', which had not arrived")
    return held
