"""Every order, or a sample with intervals: one question, four ways to answer it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from routeprism.errors import ContractError, RouteError, RoutePrismError, SpecError
from routeprism.frames import OWN_ERRORS, describe_error
from routeprism.landscape._landscape import Landscape, Method, OrderFailure, anytime_limits
from routeprism.landscape._moves import format_count
from routeprism.landscape._states import (
    CHECKED,
    MOST_STATES,
    OrderBuilds,
    RetainedValue,
    StateGraph,
    compare_builds,
    raise_refusal,
    sort_counts,
)
from routeprism.measures import TwoStages
from routeprism.orders import ArrivalModel, Arrivals, Order, parse_arrival
from routeprism.orders import every_permutation as is_uniform
from routeprism.policies import Incremental, Memory, Policy
from routeprism.policies.focal import Focal
from routeprism.policies.own import check_retained
from routeprism.policies.recent import Recent
from routeprism.records import Pool
from routeprism.routes import Disagreement

MemoryOutcome = Callable[[Memory], Hashable]
"""What is read from the memory of every order, beside the records that it retains."""


USUAL_ORDERS = 1_000
"""The default number of drawn orders."""
MOST_DRAWN = 20_000
"""The largest number of orders drawn to reach a requested half-width."""
MOST_ORDERS = 5_040
"""Up to how many orders (7!) a policy that shows no states is built in each of them."""

_LOOK = 50
"""After how many orders the interval is looked at."""
_REPEATS = 20
"""In how many orders a policy that is not deterministic is built a second time."""
_FEW = 5
"""The number of failing orders that are named."""
_RULES = (
    "step(state, record) must not change the state that it receives, and key(state) must "
    "differ wherever something retained or shown, now or later, differs"
)
_WRONG = (
    f"breaks a rule of incremental policies, so its merged states were not used: they gave "
    f"different memories from building the same orders. {_RULES} (check-adapter names an order)"
)


def explore(
    policy: Policy,
    pool: Pool,
    arrivals: str | ArrivalModel = "uniform",
    *,
    method: Method | None = None,
    supports: Sequence[frozenset[str]] = (),
    drawn_orders: int = USUAL_ORDERS,
    half_width: float | None = None,
    most_drawn: int = MOST_DRAWN,
    most_states: int = MOST_STATES,
    most_orders: int = MOST_ORDERS,
    builds: OrderBuilds | None = None,
    outcome: MemoryOutcome | None = None,
) -> Landscape:
    """Find the distribution of what a policy retains over the orders of an arrival model.

    Exactly where that can be: vectorised for focal and recent, by merged states for incremental
    policies, order by order where there are few. Otherwise on drawn orders: `drawn` of them, or as
    many as it takes for the limits of the changed share, and of the share that keeps each of
    `supports`, to be within `half_width`. Searches that follow may use the same `builds`. With
    `outcome`, the distribution of that value is found as well.
    """
    model = parse_arrival(arrivals) if isinstance(arrivals, str) else arrivals
    bound = model.on(pool)
    _check_numbers(drawn_orders, half_width)
    builds = builds or OrderBuilds(policy, pool, keeps_graphs=False)
    survey = Survey(builds, bound, outcome)
    chancy = builds.chancy
    landscape = wrong = None
    if not chancy:
        landscape, wrong = survey.find_exactly(method, most_states, most_orders)
    elif method in ("enumerated", "merged"):
        raise SpecError(f"{policy.name} is not deterministic: its states cannot be merged")
    if landscape is None:
        _refuse_method(method, policy, pool, model, wrong)
        if half_width is None:
            landscape = survey.draw(bound.sample(index) for index in range(drawn_orders))
        else:
            landscape = survey.sample_until(half_width, most_drawn, supports)
        usable = policy if wrong is None else None
        reason = "it was asked for" if method else _why(policy, usable, bound, chancy, most_orders)
        landscape = replace(landscape, note=f"{landscape.orders} orders were drawn: {reason}")
    if wrong is not None:
        orders = "; every order was built instead" if landscape.exact else f". {landscape.note}"
        landscape = replace(landscape, note=f"{policy.name} {_WRONG}{orders}")
    if chancy:
        landscape = _with_chance(landscape, policy, pool, bound)
    elif is_uniform(bound):
        builds.learn(
            landscape.retained, landscape.orders, complete=landscape.exact and not landscape.failed
        )
    return replace(landscape, retained=sort_counts(dict(landscape.retained), pool.ids))


def _check_numbers(drawn_orders: int, half_width: float | None) -> None:
    if drawn_orders < 1 or (half_width is not None and not 0 < half_width < 1):
        raise SpecError(
            f"Expected 1 order or more and a half-width between 0 and 1 but got {drawn_orders=}, "
            f"{half_width=}"
        )


def _refuse_method(
    method: Method | None,
    policy: Policy,
    pool: Pool,
    model: ArrivalModel,
    wrong: Disagreement | None,
) -> None:
    """Refuse a method that was requested and gives no result, unless it is sampling."""
    if wrong is not None and method == "merged":
        raise ContractError(f"{policy.name}: {wrong.text}. {_RULES}")
    if method not in (None, "sampled"):
        raise SpecError(
            f"{policy.name} on {len(pool)} records under {model.name} cannot be {method}; "
            f"leave the method open"
        )


def _ends(builds: OrderBuilds) -> tuple[frozenset[str], frozenset[str] | None]:
    """Find what is retained in source order, which must not fail, and in reverse."""
    order = tuple(range(len(builds.pool)))
    try:
        forward = builds.retained(order)
    except RouteError as error:
        name, user = builds.policy.name, builds.pool.user
        raise RouteError(f"{name}, user '{user}', source order: {error}") from error
    except RoutePrismError:
        raise
    except OWN_ERRORS as error:
        name, user = builds.policy.name, builds.pool.user
        raise describe_error(error, name, user=user, route="source") from None
    try:
        return forward, builds.retained(order[::-1])
    except OWN_ERRORS as error:
        raise_refusal(error)
        return forward, None  # found again, and reported, where orders are gone through


class Survey:
    """Counts what is retained, and keeps the errors, over the orders of an arrival model."""

    def __init__(
        self, builds: OrderBuilds, arrivals: Arrivals, outcome: MemoryOutcome | None
    ) -> None:
        self.builds, self.arrivals, self.outcome = builds, arrivals, outcome
        self.policy, self.pool = builds.policy, builds.pool
        name, pool = self.policy.name, self.pool
        ends = _ends(builds)
        self.empty = Landscape(name, arrivals.name, pool.user, pool.ids, "sampled", 0, {}, *ends)
        self.retained: Counter[frozenset[str]] = Counter()
        self.outcomes: Counter[Hashable] = Counter()
        self.examples: dict[frozenset[str], Order] = {}
        self.failures: tuple[OrderFailure, ...] = ()
        self.failed = self.unavailable = 0

    def conclude(self, method: Method, orders: int, **more: Any) -> Landscape:
        return replace(
            self.empty,
            method=method,
            orders=orders,
            retained=self.retained,
            failed=self.failed,
            unavailable=self.unavailable,
            failures=self.failures,
            examples=self.examples,
            outcomes=self.outcomes,
            **more,
        )

    def find_exactly(
        self, method: Method | None, most_states: int, most_orders: int
    ) -> tuple[Landscape | None, Disagreement | None]:
        """Find what every order retains, and any disagreement of the policy's states."""
        landscape: Landscape | None = None
        wrong = None
        if method in (None, "enumerated"):
            landscape = self.enumerate()
        if landscape is None and method in (None, "merged"):
            merged = self.merge(most_states)
            if isinstance(merged, Disagreement):
                wrong = merged
            else:
                landscape = merged
        if landscape is None and method in (None, "replayed"):
            landscape = self.replay(most_orders)
        return landscape, wrong

    def enumerate(self) -> Landscape | None:
        from routeprism.landscape._enumeration import LARGEST, enumerate_focal, enumerate_recent

        policy, pool, outcome = self.policy, self.pool, self.outcome
        if not is_uniform(self.arrivals) or len(pool) > LARGEST:
            return None
        if outcome is not None and not isinstance(outcome, RetainedValue):
            return None
        if isinstance(policy, Focal):
            every = enumerate_focal(
                pool.records, [policy.threshold], [policy.survivor], cluster=policy.cluster
            )
            enumeration = every[policy.threshold, policy.survivor]
        elif isinstance(policy, Recent):
            enumeration = enumerate_recent(len(pool), policy.k)
        else:
            return None
        for mask, weight in enumeration.masks.items():
            ids = frozenset(record for at, record in enumerate(pool.ids) if mask >> at & 1)
            self.retained[ids] = weight
            if outcome is not None:
                self.outcomes[outcome.function(ids)] += weight
        return self.conclude("enumerated", enumeration.orders, sizes=enumeration.sizes)

    def merge(
        self, most: int = MOST_STATES, method: Method = "merged"
    ) -> Landscape | Disagreement | None:
        """Follow all orders at once; None if there are more states than `most`."""
        graph = self.builds.merge(self.arrivals, most)
        if not isinstance(graph, StateGraph):
            return graph
        self.failed, self.failures = graph.failed, graph.failures
        for ending in graph.endings:
            self.add(ending.order, None, ending.memory, ending.weight)
        note = (
            f"merged states of {self.policy.name} were compared with building up to {CHECKED} "
            f"orders of each pool, and agreed"
        )
        orders = self.retained.total() + self.failed
        if method == "merged":
            self.examples.clear()  # a search follows the merged states
        return self.conclude(method, orders, note=note if graph.followed else "")

    def replay(self, most: int) -> Landscape | None:
        orders = self.arrivals.orders(most)
        if orders is None:
            return None
        number = 0
        for order, _ in orders:
            self.add(order, None)
            number += 1
        return self.conclude("replayed", number)

    def draw(self, orders: Iterable[Order], stages: TwoStages | None = None) -> Landscape:
        """Build drawn orders; a pilot and later draws may have different weights."""
        number = 0
        first, second = (1, 1) if stages is None else stages.weights
        for index, order in enumerate(orders):
            is_pilot = stages is not None and index < stages.pilot
            self.add(order, index, weight=first if is_pilot else second)
            number += 1
        if stages is None:
            return self.conclude("sampled", number)
        total = self.retained.total()
        return self.conclude("sampled", number, weights=total, effective=stages.effective)

    def sample_until(
        self, half_width: float, most: int, supports: Sequence[frozenset[str]]
    ) -> Landscape:
        number = 0
        while number < most:
            for index in range(number, min(number + _LOOK, most)):
                self.add(self.arrivals.sample(index), index)
            number = min(number + _LOOK, most)
            if self.is_narrow(half_width, supports):
                break
        return self.conclude("sampled", number, stopped=True)

    def is_narrow(self, half_width: float, supports: Sequence[frozenset[str]]) -> bool:
        """Whether the limits of the changed share and of each support are close enough."""
        total = self.retained.total()
        changed = total - self.retained[self.empty.forward]
        support_counts = (
            sum(weight for ids, weight in self.retained.items() if ids & support)
            for support in supports
            if support
        )
        limits = (anytime_limits(count, total) for count in (changed, *support_counts))
        return all(upper - lower <= 2 * half_width for lower, upper in limits)

    def add(
        self, order: Order, index: int | None, memory: Memory | None = None, weight: int = 1
    ) -> None:
        """Count what an order retains, which may stand for several; build it without a memory."""
        outcome: Hashable = None
        try:
            if memory is not None:
                retained = check_retained(memory, self.policy.name, self.pool)
                outcome = None if self.outcome is None else self.outcome(memory)
            else:
                if self.outcome is not None:
                    outcome = self.builds.read(order, self.outcome)
                retained = self.builds.retained(order)
        except OWN_ERRORS as error:
            raise_refusal(error)
            is_outside = isinstance(error, RouteError)
            failed = weight if memory is not None else 1
            self.failed += failed
            self.unavailable += failed * is_outside
            if len(self.failures) < _FEW:
                message = str(error) if is_outside else f"{type(error).__name__}: {error}"
                self.failures += (OrderFailure(order, index, message),)
            return
        self.retained[retained] += weight
        self.examples.setdefault(retained, order)
        if self.outcome is not None:
            self.outcomes[outcome] += weight


def _why(
    policy: Policy, stepping: Policy | None, arrivals: Arrivals, chancy: bool, most_orders: int
) -> str:
    if chancy:
        return f"{policy.name} is not deterministic, so states cannot be merged"
    count = arrivals.count()
    many = "too many" if count is None else format_count(count)
    orders = f"a pool of {arrivals.size} has {many} orders under {arrivals.name}"
    if isinstance(stepping, Incremental):
        return f"{orders}, with too many states to follow them all"
    return (
        f"{orders}, {policy.name} shows no states to merge, and at most {most_orders:,} are built"
    )


def _with_chance(landscape: Landscape, policy: Policy, pool: Pool, arrivals: Arrivals) -> Landscape:
    orders = [arrivals.sample(index) for index in range(min(_REPEATS, landscape.orders))]
    same = compare_builds(policy, pool, orders)
    differing = len(same) - sum(same)
    note = (
        f"{policy.name} is not deterministic: in {differing} of {len(same)} orders a second build "
        f"gave a different memory, so differences between orders are not caused by order alone"
    )
    return replace(landscape, chance=(differing, len(same)), note=f"{note}. {landscape.note}")
