"""What a policy can do beyond building, seen through the wrappers it may be in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from routeprism.errors import ContractError, PeekError
from routeprism.policies._contracts import Learned, Policy
from routeprism.policies.own import Named, accepts
from routeprism.policies.source_order import SourceOrder
from routeprism.records import Pool

__all__ = ["fitted", "learns"]


def learns(policy: Policy) -> bool:
    """Whether the policy has to be fitted before it builds."""
    if isinstance(policy, (SourceOrder, Named)):
        return learns(policy.inner)
    return isinstance(policy, Learned)


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
