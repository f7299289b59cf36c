"""Policies that ask a model while they build: what they, and those who build them, share.

Such a policy holds the model, for everybody to see who is asked, and never calls it itself: an
audit hands it a function that does, with the run's ledger behind it. So a reply that was paid for
is kept, and asked for once. All that a prompt can contain is what `build` sees: records.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from routeprism import specs
from routeprism.errors import ContractError
from routeprism.models import Model
from routeprism.policies._contracts import (
    Consult,
    Consulting,
    JsonValue,
    Memory,
    Policy,
    Revivable,
)
from routeprism.policies.own import Named
from routeprism.policies.source_order import SourceOrder
from routeprism.records import Record

__all__ = [
    "builder_model",
    "consulted",
    "consulting",
    "is_deterministic",
    "json_object",
    "revivable",
    "revived",
    "stored_states",
    "written_with_model",
]


def builder_model(policy: Policy) -> Model | None:
    """Give the model that a policy asks while it builds, if it does."""
    if isinstance(policy, (SourceOrder, Named)):
        return builder_model(policy.inner)
    return policy.model if isinstance(policy, Consulting) else None


def consulting(policy: Policy, consult: Consult) -> Policy:
    """Let a policy ask by this function; one that asks nobody stays what it is."""
    if isinstance(policy, (SourceOrder, Named)):
        return replace(policy, inner=consulting(policy.inner, consult))
    return policy.consulting(consult) if isinstance(policy, Consulting) else policy


def revivable(policy: Policy) -> bool:
    """Whether memories of this policy can be stored and revived."""
    if isinstance(policy, (SourceOrder, Named)):
        return revivable(policy.inner)
    return isinstance(policy, Revivable)


def revived(policy: Policy, arrivals: Sequence[Record], snapshot: JsonValue) -> Memory:
    """Give the memory that a snapshot was taken of."""
    if isinstance(policy, SourceOrder):
        return revived(policy.inner, policy.sorted(arrivals), snapshot)
    if isinstance(policy, Named):
        return revived(policy.inner, arrivals, snapshot)
    if not isinstance(policy, Revivable):
        raise ContractError(f"{policy.name} has no revive(arrivals, snapshot)")
    return policy.revive(arrivals, snapshot)


def stored_states(policy: Policy) -> bool:
    """Whether what was built is kept: because it cost something, or comes out otherwise."""
    if builder_model(policy) is not None:
        if not revivable(policy):
            raise ContractError(
                f"{policy.name} asks a model while it builds, so it must offer "
                f"revive(arrivals, snapshot), and its memories snapshot()"
            )
        return True
    return revivable(policy) and not is_deterministic(policy)


def is_deterministic(policy: Policy) -> bool:
    """Whether the same arrivals always give the same memory, as far as the policy says."""
    if isinstance(policy, (SourceOrder, Named)):
        return is_deterministic(policy.inner)
    return getattr(policy, "deterministic", True) is not False


def consulted(consult: Consult | None, policy: str) -> Consult:
    """Refuse to build with a model that nobody calls."""
    if consult is None:
        raise ContractError(
            f"{policy} asks a model while it builds, and only an audit can ask: its ledger keeps "
            f"what was paid for. Audit it, or give it consulting(function) first"
        )
    return consult


def written_with_model(name: str, item: Any, model: Model | None) -> str:
    """Write a policy back as a spec, with the model it asks."""
    text = specs.written(name, item)
    if model is None:
        return text
    who = f"({model.name})" if "," in model.name else model.name
    return f"{text}{',' if ':' in text else ':'}model={who}"


def json_object(reply: str) -> Mapping[str, Any] | None:
    """Read the first JSON object in a reply, whatever stands around it; None if there is none."""
    start = reply.find("{")
    if start < 0:
        return None
    try:
        found, _ = json.JSONDecoder().raw_decode(reply, start)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
