"""Every order, or a sample with intervals: one question, four ways to answer it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from routeprism.errors import ContractError, RoutePrismError, SpecError
from routeprism.landscape._build import canonical, check_retained, look, twice_the_same
from routeprism.landscape._intervals import anytime_limits
from routeprism.landscape._nouns import Failure, Landscape, Method
from routeprism.landscape._states import MOST_STATES, merge_states
from routeprism.orders import ArrivalModel, Arrivals, Order, parse_arrival
from routeprism.orders import every_permutation as is_uniform
from routeprism.policies import Incremental, Memory, Policy, is_deterministic
from routeprism.policies.focal import Focal
from routeprism.policies.recent import Recent
from routeprism.records import Pool

__all__ = ["DRAWN", "MOST_DRAWN", "MOST_ORDERS", "explore", "forward_and_reverse", "is_chancy"]

DRAWN = 1_000
"""How many orders are drawn, unless the caller says otherwise."""
MOST_DRAWN = 20_000
"""How many are drawn at most to reach a requested half-width."""
MOST_ORDERS = 5_040
"""Up to how many orders (7!) a policy that shows no states is built in each of them."""

_LOOK = 50
"""After how many orders the interval is looked at."""
_AGAIN = 20
"""In how many orders a policy that is not deterministic is built a second time."""
_FEW = 5
"""How many failing orders are named."""


def explore(
    policy: Policy,
    pool: Pool,
    arrivals: str | ArrivalModel = "uniform",
    *,
    method: Method | None = None,
    supports: Sequence[frozenset[str]] = (),
    drawn: int = DRAWN,
    half_width: float | None = None,
    most_drawn: int = MOST_DRAWN,
    most_states: int = MOST_STATES,
    most_orders: int = MOST_ORDERS,
) -> Landscape:
    """Find the distribution of what a policy retains over the orders of an arrival model.

    Exactly where that can be: vectorised for focal and recent, by merged states for incremental
    policies, order by order where there are few. Otherwise on drawn orders: `drawn` of them, or as
    many as it takes for the limits of the changed share, and of the share that keeps each of
    `supports`, to be within `half_width`.
    """
    model = parse_arrival(arrivals) if isinstance(arrivals, str) else arrivals
    bound = model.on(pool)
    if drawn < 1 or (half_width is not None and not 0 < half_width < 1):
        raise SpecError(
            f"Expected 1 order or more and a half-width between 0 and 1 but got {drawn=}, "
            f"{half_width=}"
        )
    forward, reverse = forward_and_reverse(policy, pool)
    chancy = is_chancy(policy, pool)
    empty = Landscape(
        policy.name, model.name, pool.user, pool.ids, "sampled", 0, {}, forward, reverse
    )
    if chancy and method in ("enumerated", "merged"):
        raise SpecError(f"{policy.name} is not deterministic: its states cannot be merged")
    found = None
    if not chancy:
        found = _exactly(empty, policy, pool, bound, method, most_states, most_orders)
    if found is None and method not in (None, "sampled"):
        raise SpecError(
            f"{policy.name} on {len(pool)} records under {model.name} cannot be {method}; "
            f"leave the method open"
        )
    if found is None:
        wanted = (frozenset[str](), *supports)
        found = _sampled(empty, policy, pool, bound, drawn, half_width, most_drawn, wanted)
        reason = "it was asked for" if method else _why(policy, bound, chancy, most_orders)
        found = replace(found, note=f"{found.orders} orders were drawn: {reason}")
    if chancy:
        found = _with_chance(found, policy, pool, bound)
    return replace(found, retained=canonical(dict(found.retained), pool.ids))


def forward_and_reverse(policy: Policy, pool: Pool) -> tuple[frozenset[str], frozenset[str] | None]:
    """Give what is retained in source order, which has to work, and in reverse."""

    def seen(memory: Memory) -> frozenset[str]:
        return check_retained(policy, pool, memory)

    order = tuple(range(len(pool)))
    try:
        forward = look(policy, pool, order, seen)
    except RoutePrismError:
        raise
    except Exception as error:
        raise ContractError(
            f"{policy.name} raised {type(error).__name__} in source order (user '{pool.user}'): "
            f"{error}"
        ) from error
    try:
        return forward, look(policy, pool, order[::-1], seen)
    except RoutePrismError:
        raise
    except Exception:
        return forward, None  # found again, and reported, where orders are gone through


def is_chancy(policy: Policy, pool: Pool) -> bool:
    """Whether the same arrivals give different memories: declared, or seen by building twice."""
    if not is_deterministic(policy):
        return True
    order = tuple(range(len(pool)))
    return not all(twice_the_same(policy, pool, [order, order[::-1]]))


def _exactly(
    empty: Landscape,
    policy: Policy,
    pool: Pool,
    arrivals: Arrivals,
    method: Method | None,
    most_states: int,
    most_orders: int,
) -> Landscape | None:
    found: Landscape | None = None
    if method in (None, "enumerated"):
        found = _enumerated(empty, policy, pool, arrivals)
    if found is None and method in (None, "merged"):
        found = _merged(empty, policy, pool, arrivals, most_states)
    if found is None and method in (None, "replayed"):
        found = _replayed(empty, policy, pool, arrivals, most_orders)
    return found


def _enumerated(
    empty: Landscape, policy: Policy, pool: Pool, arrivals: Arrivals
) -> Landscape | None:
    from routeprism.landscape._enumerate import LARGEST, enumerate_focal, enumerate_recent

    if not is_uniform(arrivals) or len(pool) > LARGEST:
        return None
    if isinstance(policy, Focal):
        every = enumerate_focal(
            pool.records, [policy.threshold], [policy.survivor], cluster=policy.cluster
        )
        found = every[policy.threshold, policy.survivor]
    elif isinstance(policy, Recent):
        found = enumerate_recent(len(pool), policy.k)
    else:
        return None
    retained = {
        frozenset(record for at, record in enumerate(pool.ids) if mask >> at & 1): weight
        for mask, weight in found.masks.items()
    }
    return replace(
        empty, method="enumerated", orders=found.orders, retained=retained, sizes=found.sizes
    )


def _merged(
    empty: Landscape, policy: Policy, pool: Pool, arrivals: Arrivals, most: int
) -> Landscape | None:
    graph = merge_states(policy, pool, arrivals, limit=most)
    if graph is None:
        return None
    retained: dict[frozenset[str], int] = {}
    for ending in graph.endings:
        kept = check_retained(policy, pool, ending.memory)
        retained[kept] = retained.get(kept, 0) + ending.weight
    total = sum(retained.values()) + graph.failed
    return replace(
        empty,
        method="merged",
        orders=total,
        retained=retained,
        failed=graph.failed,
        failures=graph.failures,
    )


class _Tally:
    """Counts what is retained, order by order, and keeps the errors."""

    def __init__(self, policy: Policy, pool: Pool) -> None:
        self.policy, self.pool = policy, pool
        self.retained: dict[frozenset[str], int] = {}
        self.failures: list[Failure] = []
        self.failed = 0

    def add(self, order: Order, index: int | None) -> None:
        def seen(memory: Memory) -> frozenset[str]:
            return check_retained(self.policy, self.pool, memory)

        try:
            kept = look(self.policy, self.pool, order, seen)
        except RoutePrismError:
            raise
        except Exception as error:
            self.failed += 1
            if len(self.failures) < _FEW:
                message = f"{type(error).__name__}: {error}"
                self.failures.append(Failure(order, index, message))
            return
        self.retained[kept] = self.retained.get(kept, 0) + 1

    def onto(self, empty: Landscape, method: Method, orders: int) -> Landscape:
        return replace(
            empty,
            method=method,
            orders=orders,
            retained=self.retained,
            failed=self.failed,
            failures=tuple(self.failures),
        )


def _replayed(
    empty: Landscape, policy: Policy, pool: Pool, arrivals: Arrivals, most: int
) -> Landscape | None:
    orders = arrivals.orders(most)
    if orders is None:
        return None
    tally = _Tally(policy, pool)
    number = 0
    for order, _ in orders:
        tally.add(order, None)
        number += 1
    return tally.onto(empty, "replayed", number)


def _sampled(
    empty: Landscape,
    policy: Policy,
    pool: Pool,
    arrivals: Arrivals,
    drawn: int,
    half_width: float | None,
    most: int,
    supports: Sequence[frozenset[str]],
) -> Landscape:
    tally = _Tally(policy, pool)
    if half_width is None:
        for index in range(drawn):
            tally.add(arrivals.sample(index), index)
        return tally.onto(empty, "sampled", drawn)
    number = 0
    while number < most:
        for index in range(number, min(number + _LOOK, most)):
            tally.add(arrivals.sample(index), index)
        number = min(number + _LOOK, most)
        if _narrow(tally, empty.forward, supports, half_width):
            break
    return replace(tally.onto(empty, "sampled", number), stopped=True)


def _narrow(
    tally: _Tally,
    forward: frozenset[str],
    supports: Sequence[frozenset[str]],
    half_width: float,
) -> bool:
    """Whether the limits of all watched shares are close enough; no support: the changed share."""
    total = sum(tally.retained.values())
    holds: list[Callable[[frozenset[str]], bool]] = [
        (lambda kept, support=support: bool(kept & support))  # type: ignore[misc]
        if support
        else (lambda kept: kept != forward)
        for support in supports
    ]
    for one in holds:
        count = sum(weight for kept, weight in tally.retained.items() if one(kept))
        lower, upper = anytime_limits(count, total)
        if upper - lower > 2 * half_width:
            return False
    return True


def _why(policy: Policy, arrivals: Arrivals, chancy: bool, most_orders: int) -> str:
    if chancy:
        return f"{policy.name} is not deterministic, so states cannot be merged"
    count = arrivals.count()
    many = f"{count:.3g}" if count is not None and count > 10**9 else f"{count or 'too many':,}"
    orders = f"a pool of {arrivals.size} has {many} orders under {arrivals.name}"
    if isinstance(policy, Incremental):
        return f"{orders}, with too many states to follow them all"
    return (
        f"{orders}, {policy.name} shows no states to merge, and at most {most_orders:,} are built"
    )


def _with_chance(found: Landscape, policy: Policy, pool: Pool, arrivals: Arrivals) -> Landscape:
    orders = [arrivals.sample(index) for index in range(min(_AGAIN, found.orders))]
    same = twice_the_same(policy, pool, orders)
    differing = len(same) - sum(same)
    note = (
        f"{policy.name} is not deterministic: in {differing} of {len(same)} orders a second build "
        f"gave another memory, so what differs between orders is not the order's doing alone"
    )
    return replace(found, chance=(differing, len(same)), note=f"{note}. {found.note}")
