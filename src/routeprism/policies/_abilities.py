"""What a policy can do beyond building, seen through the wrappers it may be in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from routeprism.errors import ContractError, PeekError
from routeprism.policies._contracts import Learned, Operational, Policy
from routeprism.policies.own import Named, accepts
from routeprism.policies.source_order import SourceOrder
from routeprism.records import Pool

__all__ = ["arms", "fitted", "innermost", "learns", "operations_of"]

_WHOLE = 3
"""Up to how many operations every combination is an arm; of more, singles and pairs are."""


def innermost(policy: Policy) -> Any:
    """Give what is inside of a policy's wrappers."""
    while isinstance(policy, (SourceOrder, Named)):
        policy = policy.inner
    return policy


def learns(policy: Policy) -> bool:
    """Whether the policy has to be fitted before it builds."""
    return isinstance(innermost(policy), Learned)


def fitted(policy: Policy, pools: Sequence[Pool]) -> Policy:
    """Fit a policy that learns; any other stays what it is."""
    if isinstance(policy, (SourceOrder, Named)):
        return replace(policy, inner=fitted(policy.inner, pools))
    if not isinstance(policy, Learned):
        return policy
    kind = type(policy).__name__
    if not accepts(policy.fit, ()):
        raise PeekError(
            f"{kind}.fit does not take the pools alone: fitting receives the pools of other users "
            f"and nothing else. Expected fit(pools)."
        )
    made = policy.fit(tuple(pools))
    if made is policy or not hasattr(made, "build"):
        given = "itself" if made is policy else type(made).__name__
        raise ContractError(
            f"{kind}.fit gave {given}. Expected a new, fitted policy: the same one is fitted once "
            f"for every group of users, and one fit must not see into another"
        )
    if getattr(made, "name", None) != getattr(policy, "name", None):
        raise ContractError(f"{kind}.fit gave a policy of another name; a fit is no new policy")
    return made


def operations_of(policy: Policy) -> tuple[str, ...]:
    """Give the operations that a policy declares to follow arrival order; none for most."""
    inner = policy.inner if isinstance(policy, Named) else policy
    return tuple(inner.operations) if isinstance(inner, Operational) else ()


def arms(policy: Policy) -> Mapping[tuple[str, ...], Policy]:
    """Give, by the operations that follow arrival order, the policy with all others fixed.

    All of them is the policy itself, none of them its canonical arm.
    """
    operations = operations_of(policy)
    if not operations:
        return {}
    every = range(len(operations) + 1)
    sizes = every if len(operations) <= _WHOLE else (0, 1, 2, len(operations))
    return {
        following: _fixed(policy, [one for one in operations if one not in following])
        for size in sizes
        for following in combinations(operations, size)
    }


def _fixed(policy: Policy, operations: Sequence[str]) -> Policy:
    """Tie operations to source order, one after the other, under a name of the arm's own."""
    if not operations:
        return policy
    inner = policy.inner if isinstance(policy, Named) else policy
    before = getattr(inner, "name", None)
    for operation in operations:
        if not isinstance(inner, Operational):
            raise ContractError(
                f"{policy.name} declares the operations {', '.join(operations_of(policy))}, but "
                f"with one of them fixed it has no fixed('{operation}') for the next"
            )
        inner = inner.fixed(operation)
    name = getattr(inner, "name", None)
    if not isinstance(name, str) or name == before:
        return Named(inner, f"{policy.name}[{'+'.join(operations)} fixed]")
    return inner
