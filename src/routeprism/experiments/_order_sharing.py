"""Orders of memories that a model builds: the plan of every pool, and how its model is asked."""

from __future__ import annotations

import itertools
import math
import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from routeprism.answers import Consultant, Cost, Pace
from routeprism.errors import SpecError
from routeprism.experiments._adding import AddProgress
from routeprism.landscape import (
    CHECKED_ORDERS,
    ArrivalTrie,
    Method,
    NodeStore,
    TriePlan,
    can_share,
    choose_checks,
    plan_trie,
)
from routeprism.models import ALLOWANCE, Allowance
from routeprism.orders import ArrivalModel, Order
from routeprism.policies import (
    Policy,
    builder_model,
    connect_model,
    describe_client,
    is_deterministic,
    makes_calls,
    uses_gateway,
)
from routeprism.records import Case, Pool
from routeprism.runs import Run
from routeprism.workers import TICKS, call_home

if TYPE_CHECKING:
    from routeprism.experiments._execution import Pacing

NODES = "nodes"
"""The name of the kept memories among the objects that workers call."""

_MOST_CHECKED = 0.25
"""Up to which part of a limit on calls more than one order of a pool is checked."""

Place = tuple[str, str, str]
"""Policy, user and arrival model."""


class KeptNodes:
    """Keeps what memories left, by policy, user and arrivals, while a command runs.

    A memory that makes requests of its own is not built a second time if a worker is lost.
    """

    def __init__(self) -> None:
        self._content: dict[tuple[str, str, Order], Any] = {}

    def get(self, policy: str, user: str, order: Order) -> Any:
        """Return what a memory left; None if it is not kept."""
        return self._content.get((policy, user, order))

    def put(self, policy: str, user: str, order: Order, left: Any) -> None:
        """Keep what a memory left."""
        self._content[policy, user, order] = left

    def of(self, policy: str, user: str) -> NodeStore:
        """Return the memories of one pool under one policy."""
        return _PoolNodes(partial(self.get, policy, user), partial(self.put, policy, user))

    def __reduce__(self) -> tuple[object, ...]:
        """Stay in this process: a worker keeps its memories here."""
        return DistantNodes, ()


@dataclass(frozen=True, slots=True)
class _PoolNodes:
    get: Callable[[Order], Any]
    put: Callable[[Order, Any], None]


class DistantNodes:
    """The memories that the first process keeps, in a worker: they travel as bytes."""

    def of(self, policy: str, user: str) -> NodeStore:
        """Return the memories of one pool under one policy."""

        def get(order: Order) -> Any:
            content = call_home(NODES, "get", policy, user, order)
            return None if content is None else pickle.loads(content)  # noqa: S301 (written below)

        def put(order: Order, left: Any) -> None:
            try:
                content = pickle.dumps(left)
            except Exception:  # connections and locks cannot be sent
                return
            call_home(NODES, "put", policy, user, order, content)

        return _PoolNodes(get, put)


@dataclass(frozen=True, slots=True)
class Sharing:
    """Which orders of which memories are built with shared beginnings."""

    plans: Mapping[Place, TriePlan] = field(default_factory=dict)
    checked: Mapping[tuple[str, str], Sequence[Order]] = field(default_factory=dict)
    """Policy and user → the orders that are also built in one go, to check what is shared."""
    allowance: Allowance | None = None
    consultants: Mapping[str, Consultant] = field(default_factory=dict)
    """Policy → who asks its model."""
    adding: AddProgress | None = None
    """Counts the records that are added."""
    nodes: KeptNodes | None = None
    """Snapshots of memories whose requests the ledger does not have, so that none is repeated."""
    if_copied: Sharing | None = None
    """The plans if objects can be copied, which a dry run does not try."""

    def list_home(self) -> dict[str, object | None]:
        """List the objects that stay in this process while workers build."""
        consultants = {consultant.name: consultant for consultant in self.consultants.values()}
        return {ALLOWANCE: self.allowance, TICKS: self.adding, NODES: self.nodes, **consultants}

    def count_adds(self) -> Counter[str]:
        """Count the records that are added to memories of each user's pool at most."""
        adds: Counter[str] = Counter()
        for (_, user, _), plan in self.plans.items():
            adds[user] += plan.adds
        for (_, user), orders in self.checked.items():
            adds[user] += sum(map(len, orders))
        return adds

    @property
    def policies(self) -> frozenset[str]:
        """The names of the policies whose orders share their beginnings."""
        return frozenset(policy for policy, _, _ in self.plans)

    def open_trie(self, policy: Policy, pool: Pool, queries: Sequence[str] = ()) -> ArrivalTrie:
        """Begin the trie of a pool; its replies are stored by the arrivals that they belong to."""
        consultant = self.consultants.get(policy.name)
        counted = _whole_calls(_calls_per_add(policy))

        def connect(order: Order) -> Policy:
            if consultant is None:
                return policy
            name = "-".join(map(str, order))
            batch = f"shared build of {policy.name}, user {pool.user}, order {name}"
            ask = consultant.consult(batch, user=pool.user, route=f"beginning {name}")
            return connect_model(policy, ask)

        def count() -> None:
            if self.adding is not None:
                self.adding()
            if self.allowance is not None and not (consultant or uses_gateway(policy)):
                self.allowance.count(next(counted))  # those two count what they send

        store = None if self.nodes is None or consultant else self.nodes.of(policy.name, pool.user)
        return ArrivalTrie(policy, pool, connect=connect, count=count, queries=queries, store=store)


def shares_beginnings(policy: Policy, method: Method | None) -> bool:
    """Whether orders share their beginnings: where building asks a model, or if that is chosen."""
    return makes_calls(policy) if method is None else method == "shared"


def _whole_calls(calls: float) -> Iterator[int]:
    """Yield the whole calls that each add completes; calls per add may be a fraction."""
    return (math.floor(add * calls) - math.floor((add - 1) * calls) for add in itertools.count(1))


def _calls_per_add(policy: Policy) -> float:
    """Return the calls of one add: as declared, or one where they are not known."""
    client = describe_client(policy)
    if client is None:
        return 1.0 if builder_model(policy) is not None else 0.0
    return 1.0 if client.calls_per_add is None else client.calls_per_add


@dataclass(frozen=True, slots=True)
class _Wish:
    """A pool whose orders are to be built, and the plan without any limit."""

    policy: Policy
    case: Case
    model: ArrivalModel
    plan: TriePlan

    @property
    def place(self) -> Place:
        return self.policy.name, self.case.pool.user, self.model.name

    @property
    def calls(self) -> float:
        return self.plan.adds * _calls_per_add(self.policy)


def plan_sharing(
    policies: Sequence[Policy],
    cases: Sequence[Case],
    arrivals: Sequence[ArrivalModel],
    *,
    method: Method | None,
    drawn_orders: int,
    allowance: Allowance | None,
    copies: bool | None = None,
) -> Sharing:
    """Plan the orders of every pool of memories whose beginnings are shared.

    A limit on calls is divided between the pools: those that need less than an equal share leave
    the rest to the others. Some orders of each pool are also built in one go, fewer if that would
    take a large part of the limit. `copies` assumes whether objects of a class without snapshots
    can be copied; otherwise one is made to try it.
    """
    shared = [policy for policy in policies if shares_beginnings(policy, method)]
    can = {p.name: can_share(p, copies=copies) for p in shared}
    wishes = [
        _Wish(
            p,
            case,
            model,
            plan_trie(model.on(case.pool), drawn_orders=drawn_orders, shared=can[p.name]),
        )
        for p in shared
        for case in cases
        for model in arrivals
    ]
    verified = [wish for wish in wishes if can[wish.policy.name] and is_deterministic(wish.policy)]
    limit = math.inf
    if allowance is not None and allowance.max_calls is not None:
        limit = allowance.max_calls - allowance.calls
    number = CHECKED_ORDERS
    while number > 1 and _count_checks(verified, number) > limit * _MOST_CHECKED:
        number -= 1
    with _explain_checks(checks := _count_checks(verified, number)):
        plans = _divide(wishes, max(0, limit - checks), drawn_orders, can)
    planned = [replace(wish, plan=plans[wish.place]) for wish in verified]
    return Sharing(plans, _choose_checks(planned, number), allowance)


@contextmanager
def _explain_checks(calls: float) -> Iterator[None]:
    """Let an error about a small limit name the calls of it that checks take."""
    try:
        yield
    except SpecError as error:
        if not calls:
            raise
        raise SpecError(
            f"{error}. Of the limit, {math.ceil(calls):,} calls build orders in one go, to check "
            f"that snapshots restore faithfully"
        ) from error


def _choose_checks(
    wishes: Sequence[_Wish], number: int
) -> dict[tuple[str, str], tuple[Order, ...]]:
    """Choose source order and drawn orders of each arrival model, for each policy and user."""
    choices: dict[tuple[str, str], dict[Order, None]] = {}
    for wish in wishes:
        pool = wish.case.pool
        orders = choices.setdefault(wish.place[:2], {tuple(range(len(pool))): None})
        orders.update(dict.fromkeys(choose_checks(wish.model.on(pool), wish.plan, number)))
    return {place: tuple(orders) for place, orders in choices.items()}


def _count_checks(wishes: Sequence[_Wish], number: int) -> float:
    """Count the calls of checking this many orders of each arrival model."""
    calls = {wish.policy.name: _calls_per_add(wish.policy) for wish in wishes}
    return sum(
        calls[name] * sum(map(len, orders))
        for (name, _), orders in _choose_checks(wishes, number).items()
    )


def _divide(
    wishes: Sequence[_Wish], limit: float, drawn_orders: int, can: Mapping[str, bool]
) -> dict[Place, TriePlan]:
    """Divide a limit on calls, smallest wishes first, and plan each pool within its share.

    If the limit suffices for all wishes, every pool keeps its plan.
    """
    plans = {wish.place: wish.plan for wish in wishes}
    if sum(wish.calls for wish in wishes) <= limit:
        return plans
    waiting = sorted((wish for wish in wishes if wish.calls), key=lambda wish: wish.calls)
    for number, wish in enumerate(waiting):
        share = limit / (len(waiting) - number)
        budget = int(share / _calls_per_add(wish.policy))
        arrivals, name = wish.model.on(wish.case.pool), wish.policy.name
        if wish.plan.adds > budget:
            plan = plan_trie(arrivals, drawn_orders=drawn_orders, budget=budget, shared=can[name])
            plans[wish.place] = plan
        limit -= plans[wish.place].adds * _calls_per_add(wish.policy)
    return plans


def price_sharing(sharing: Sharing, policies: Sequence[Policy]) -> dict[str, Cost]:
    """Count how many calls the plans take at most; memories that turn out equal save some."""
    costs = {}
    for policy in policies:
        if policy.name not in sharing.policies:
            continue
        shares, may_copy = (can_share(policy, copies=copies) for copies in (False, True))
        adds, note = _price_policy(sharing, policy, shares=shares)
        if may_copy and not shares and sharing.if_copied is not None:
            adds_if_copied, more = _price_policy(sharing.if_copied, policy, shares=True)
            adds = max(adds, adds_if_copied)
            note += f"; if its objects can be copied, which a dry run does not try, {more}"
        calls = math.ceil(adds * _calls_per_add(policy))
        model = builder_model(policy)
        name = f"{model.name} (building {policy.name})" if model else f"building {policy.name}"
        costs[name] = Cost(calls, 0, calls, None, None, None, note, estimated=True)
    return costs


def _price_policy(sharing: Sharing, policy: Policy, *, shares: bool) -> tuple[int, str]:
    """Count the adds of a policy at most, and describe them."""
    name = policy.name
    plans = [plan for (planned, _, _), plan in sharing.plans.items() if planned == name]
    checked = [orders for (planned, _), orders in sharing.checked.items() if planned == name]
    checks = sum(len(order) for orders in checked for order in orders)
    adds = sum(plan.adds for plan in plans) + checks
    separate = sum(plan.separate for plan in plans)
    if not shares:
        return adds, f"at most {adds:,} adds, each order built by itself"
    note = f"at most {adds:,} adds ({separate:,} if each order is built by itself)"
    if checks:
        note += (
            f"; {checks:,} of them build {sum(map(len, checked)):,} orders of {len(checked):,} "
            f"pools in one go, to check that snapshots restore faithfully"
        )
    return adds, note


@contextmanager
def open_consultants(
    sharing: Sharing, policies: Sequence[Policy], run: Run | None, pacing: Pacing
) -> Iterator[Sharing]:
    """Let the models of policies be asked through the ledger of a run."""
    with ExitStack() as stack:
        consultants = {}
        paces: dict[str, Pace] = {}
        for policy in policies:
            model = builder_model(policy)
            if model is not None and policy.name in sharing.policies and run is not None:
                pace = paces.setdefault(model.name, Pace(pacing.rate_limit))
                consultants[policy.name] = stack.enter_context(
                    Consultant(
                        run,
                        model,
                        pace=pace,
                        allowance=pacing.allowance,
                        cluster=pacing.cluster,
                        name=f"consultant of {policy.name}",
                    )
                )
        yield replace(sharing, consultants=consultants)
