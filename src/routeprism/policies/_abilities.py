"""What a policy can do beyond building, seen through the wrappers around it.

A policy may ask a model while it builds. It never calls the model itself: an audit passes a
function that does, with the run's ledger behind it, so that a reply is stored and requested once.
Its prompts contain only records. A memory may also have its own client, which makes requests
outside the ledger. A dry run does not build such a memory; a stand-in counts what it would
receive. A memory class of the user's own counts among them unless it declares `offline = True`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from routeprism import specs
from routeprism.errors import ContractError, PeekError, SpecError
from routeprism.models import Allowance, Model
from routeprism.policies._awaiting import AwaitedPolicy, wrap_asynchronous
from routeprism.policies._contracts import (
    Consult,
    Consulting,
    JsonValue,
    Learned,
    Memory,
    Operational,
    Policy,
    Revivable,
)
from routeprism.policies._wrappers import (
    Client,
    DeclaredCalls,
    NamedPolicy,
    SourceOrder,
    StandIn,
    check_calls,
)
from routeprism.policies.own import OwnMemory, accepts, find_class
from routeprism.policies.remedies import Fallback, Hold, Queue, Rebuild, TimeTied, read_calls
from routeprism.records import Pool, Record

if TYPE_CHECKING:
    from routeprism.models.gateway import Gateway

_ALL_COMBINATIONS = 3
"""Up to how many operations every combination is an arm; of more, singles and pairs are."""


REPAIRS = (Hold, Rebuild, Fallback, TimeTied)
WRAPPERS = (SourceOrder, NamedPolicy, AwaitedPolicy, Queue, *REPAIRS)
"""Policies around another policy (`inner`) that keep its abilities."""


@runtime_checkable
class Metered(Protocol):
    """A policy whose own client can be counted, and stopped, request by request."""

    def metered(self, allowance: Allowance, /) -> Policy:
        """Return the same policy, counting every request of its client."""


@runtime_checkable
class Routed(Protocol):
    """A policy whose own client can be pointed at a proxy; it is also `Metered`."""

    def routed(self, gateway: Gateway, /) -> Policy:
        """Return the same policy, whose client asks through a proxy."""


def unwrap_policy(policy: Policy) -> Any:
    """Return the policy inside all wrappers."""
    while isinstance(policy, (*WRAPPERS, StandIn, DeclaredCalls)):
        policy = policy.inner
    return policy


def interface_of(policy: Policy) -> str:
    """Name the interface that a policy exposes through; `own` if it compiles its own context."""
    interface = getattr(unwrap_policy(policy), "interface", None)
    return str(interface.name) if interface is not None else "own"


def _unwrap_abilities(policy: Policy) -> Any:
    """Return the policy inside the wrappers that keep its abilities."""
    while isinstance(policy, WRAPPERS):
        policy = policy.inner
    return policy


def _replace_inner(policy: Policy, change: Callable[[Policy], Policy]) -> Policy:
    """Change the policy inside the wrappers that keep its abilities."""
    if isinstance(policy, WRAPPERS):
        return replace(policy, inner=_replace_inner(policy.inner, change))
    return change(policy)


# --- Fitting and operations --------------------------------------------------------------------


def needs_fit(policy: Policy) -> bool:
    """Whether the policy has to be fitted before it builds."""
    return isinstance(unwrap_policy(policy), Learned)


def fit_policy(policy: Policy, pools: Sequence[Pool]) -> Policy:
    """Fit a policy that learns on these pools; any other policy is unchanged."""
    return _replace_inner(policy, lambda inner: _fit(inner, pools))


def _fit(policy: Policy, pools: Sequence[Pool]) -> Policy:
    if not isinstance(policy, Learned):
        return policy
    kind = type(policy).__name__
    if not accepts(policy.fit, ()):
        raise PeekError(
            f"{kind}.fit does not take the pools alone: fitting receives the pools of other users "
            f"and nothing else. Expected fit(pools)."
        )
    fitted = policy.fit(tuple(pools))
    if fitted is policy or not hasattr(fitted, "build"):
        result = "itself" if fitted is policy else type(fitted).__name__
        raise ContractError(
            f"{kind}.fit gave {result}. Expected a new, fitted policy: the same one is fitted once "
            f"for every group of users, and one fit must not see into another"
        )
    if getattr(fitted, "name", None) != getattr(policy, "name", None):
        raise ContractError(f"{kind}.fit returned a policy with a different name")
    return fitted


def list_operations(policy: Policy) -> tuple[str, ...]:
    """List the operations that a policy declares to follow arrival order; most have none."""
    inner = policy.inner if isinstance(policy, NamedPolicy) else policy
    return tuple(inner.operations) if isinstance(inner, Operational) else ()


def make_arms(policy: Policy) -> Mapping[tuple[str, ...], Policy]:
    """Map the operations that follow arrival order to the policy with all others fixed.

    All operations give the policy itself, none its canonical arm.
    """
    operations = list_operations(policy)
    if not operations:
        return {}
    every = range(len(operations) + 1)
    sizes = every if len(operations) <= _ALL_COMBINATIONS else (0, 1, 2, len(operations))
    return {
        following: _fix_operations(policy, [name for name in operations if name not in following])
        for size in sizes
        for following in combinations(operations, size)
    }


def _fix_operations(policy: Policy, operations: Sequence[str]) -> Policy:
    """Tie operations to source order, one after the other, and name the arm."""
    if not operations:
        return policy
    inner = policy.inner if isinstance(policy, NamedPolicy) else policy
    before = getattr(inner, "name", None)
    for operation in operations:
        if not isinstance(inner, Operational):
            raise ContractError(
                f"{policy.name} declares the operations {', '.join(list_operations(policy))}, but "
                f"with one of them fixed it has no fixed('{operation}') for the next"
            )
        inner = inner.fixed(operation)
    name = getattr(inner, "name", None)
    if not isinstance(name, str) or name == before:
        return NamedPolicy(inner, f"{policy.name}[{'+'.join(operations)} fixed]")
    return inner


# --- A model behind the ledger, and stored states ----------------------------------------------


def builder_model(policy: Policy) -> Model | None:
    """Return the model that a policy asks while it builds, if any."""
    inner = _unwrap_abilities(policy)
    return inner.model if isinstance(inner, Consulting) else None


def connect_model(policy: Policy, consult: Consult) -> Policy:
    """Let a policy ask its model through a function; any other policy is unchanged."""
    return _replace_inner(
        policy,
        lambda inner: inner.consulting(consult) if isinstance(inner, Consulting) else inner,
    )


def can_revive(policy: Policy) -> bool:
    """Whether memories of this policy can be stored and revived."""
    return isinstance(_unwrap_abilities(policy), Revivable)


def revive_memory(policy: Policy, arrivals: Sequence[Record], snapshot: JsonValue) -> Memory:
    """Revive a memory from its snapshot."""
    if isinstance(policy, SourceOrder):
        return revive_memory(policy.inner, policy.sorted(arrivals), snapshot)
    if isinstance(policy, AwaitedPolicy):
        memory: Memory = wrap_asynchronous(revive_memory(policy.inner, arrivals, snapshot))
        return memory
    if isinstance(policy, (NamedPolicy, Queue)):
        return revive_memory(policy.inner, arrivals, snapshot)
    if isinstance(policy, REPAIRS):
        return policy.repair(
            arrivals, lambda wrapped, released: revive_memory(wrapped, released, snapshot)
        )
    if not isinstance(policy, Revivable):
        raise ContractError(f"{policy.name} has no revive(arrivals, snapshot)")
    return policy.revive(arrivals, snapshot)


def stores_states(policy: Policy) -> bool:
    """Whether built memories are stored, because they cost something or differ each time."""
    if builder_model(policy) is not None:
        if not can_revive(policy):
            raise ContractError(
                f"{policy.name} asks a model while it builds, so it must offer "
                f"revive(arrivals, snapshot), and its memories snapshot()"
            )
        return True
    return can_revive(policy) and not is_deterministic(policy)


def is_deterministic(policy: Policy) -> bool:
    """Whether the same arrivals always give the same memory, as far as the policy declares."""
    return getattr(_unwrap_abilities(policy), "deterministic", True) is not False


def require_consult(consult: Consult | None, policy: str) -> Consult:
    """Refuse to build with a model if there is no function to ask it."""
    if consult is None:
        raise ContractError(
            f"{policy} asks a model while it builds, and only an audit can ask: its ledger keeps "
            f"what was paid for. Audit it, or give it consulting(function) first"
        )
    return consult


def write_spec(name: str, policy: Any, model: Model | None) -> str:
    """Write a policy back as a spec, with the model that it asks."""
    text = specs.write_spec(name, policy)
    if model is None:
        return text
    value = f"({model.name})" if "," in model.name else model.name
    return f"{text}{',' if ':' in text else ':'}model={value}"


def find_json(reply: str) -> Mapping[str, Any] | None:
    """Read the first JSON object in a reply, whatever text surrounds it; None if there is none."""
    start = reply.find("{")
    if start < 0:
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(reply, start)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def uses_scripted_model(policy: Policy) -> bool:
    """Whether the scripted model of this package decides what a memory keeps."""
    return getattr(unwrap_policy(policy), "scripted", False) is True


# --- Clients outside the ledger -------------------------------------------------------------


def describe_client(policy: Policy) -> Client | None:
    """Describe the requests that a policy makes itself while it builds; None if it makes none."""
    if builder_model(policy) is not None:
        return None  # it asks through the ledger
    inner = unwrap_policy(policy)
    if isinstance(client := getattr(inner, "client", None), Client):
        return client
    kind = find_class(inner)
    if kind.__module__.partition(".")[0] == "routeprism" or getattr(kind, "offline", False) is True:
        return None
    calls = getattr(kind, "calls_per_add", None)
    return Client(calls_per_add=check_calls(policy.name, calls))


def makes_calls(policy: Policy) -> bool:
    """Whether building asks a model, as far as is declared: RoutePrism's, or its own client's."""
    client = describe_client(policy)
    declared = client is not None and bool(client.model or client.calls_per_add)
    return declared or builder_model(policy) is not None


def count_calls_per_write(policy: Policy) -> float | None:
    """Return the model calls for each write of a repaired memory; None if only it knows them."""
    if not isinstance(policy, REPAIRS) or builder_model(policy) is not None:
        return None
    client = describe_client(policy)
    return 0.0 if client is None else client.calls_per_add


def complete_counts(counts: Mapping[str, int], calls: float | None) -> Mapping[str, int]:
    """Complete the counts of a repaired memory, if it has none, with its calls for each write."""
    if calls is None or read_calls(counts) is not None or "writes" not in counts:
        return counts
    return {**counts, "model_calls": round(calls * counts["writes"])}


def meter_policy(policy: Policy, allowance: Allowance | None) -> Policy:
    """Let a policy's own client count its requests; any other policy is unchanged."""
    if allowance is None:
        return policy

    def meter(inner: Policy) -> Policy:
        if isinstance(inner, Metered):
            return inner.metered(allowance)
        client = describe_client(inner)
        if client is not None and client.calls_per_add and not can_revive(inner):
            return DeclaredCalls(inner, client.calls_per_add, allowance)
        return inner

    return _replace_inner(policy, meter)


def watch_adds(policy: Policy, tick: Callable[[], None] | None) -> Policy:
    """Let a memory of the user's own report each record that was added; any other is unchanged."""
    if tick is None:
        return policy
    return _replace_inner(
        policy, lambda inner: replace(inner, tick=tick) if isinstance(inner, OwnMemory) else inner
    )


def uses_gateway(policy: Policy) -> bool:
    """Whether a policy's own client asks its model through the run's proxy."""
    return describe_client(policy) is not None and isinstance(unwrap_policy(policy), Routed)


def route_policy(policy: Policy, gateway: Gateway) -> Policy:
    """Let a policy's own client ask through a proxy; any other policy is unchanged."""
    if not uses_gateway(policy):
        return policy
    return _replace_inner(
        policy, lambda inner: inner.routed(gateway) if isinstance(inner, Routed) else inner
    )


def can_limit_calls(policy: Policy) -> bool:
    """Whether a limit on calls covers the requests that a policy makes itself while it builds."""
    client = describe_client(policy)
    if client is None or client.calls_per_add == 0 or isinstance(unwrap_policy(policy), Metered):
        return True
    return client.calls_per_add is not None and not can_revive(policy)


def make_stand_in(policy: Policy) -> Policy:
    """Replace a policy that makes requests itself by a stand-in; any other is unchanged."""
    client = describe_client(policy)
    return policy if client is None else StandIn(policy, client, is_deterministic(policy))


def refuse_for_every_order(policy: Policy) -> None:
    """Refuse to build every order of a memory that a model builds."""
    client = describe_client(policy)
    if builder_model(policy) is not None or (client is not None and client.model):
        raise SpecError(
            f"{policy.name} asks a model while it is built, and would ask it for every order; "
            f"audit it under a few schedules instead"
        )


def refuse_unpriced(policies: Sequence[Policy], max_cost: float | None) -> None:
    """Refuse a limit on money if a memory's own client has no prices."""
    for policy in policies if max_cost is not None else ():
        client = describe_client(policy)
        if client is None or not client.spends or client.price_in is not None:
            continue
        hint = "add price_in=… and price_out=… to it, or " if client.model else ""
        raise SpecError(
            f"max_cost cannot include what {policy.name} spends while it builds: its own client "
            f"is asked, and its prices are not known; {hint}use max_calls"
        )
