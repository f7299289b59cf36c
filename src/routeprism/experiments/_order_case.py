"""The work of one process on one pool: explore its orders, and return values and findings."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from operator import itemgetter
from typing import Any

from routeprism.experiments._observations import Observations, observe_case
from routeprism.experiments._order_search import OrderSearch, Outcome
from routeprism.experiments._order_sharing import Sharing
from routeprism.experiments._order_stale import StaleOutcomes, StaleValue
from routeprism.experiments._rows import Column, Key
from routeprism.experiments._storage import make_tables, rows_of, unit_rows_of
from routeprism.experiments._strata import Masks, Strata, Values, enter, strata_of
from routeprism.landscape import (
    MOST_DRAWN,
    MOST_STATES,
    USUAL_ORDERS,
    ArrivalTrie,
    Landscape,
    Method,
    OrderBuilds,
    TriePolicy,
    check_restoration,
    explore,
    explore_trie,
    normalised,
)
from routeprism.measures import Sums
from routeprism.orders import ArrivalModel, Order, every_permutation
from routeprism.policies import Policy, interface_of, unwrap_policy
from routeprism.policies.focal import Focal
from routeprism.policies.own import report_own_errors
from routeprism.records import Benchmark, Case
from routeprism.routes import FIRST_POOLS, CrossFit, RouteChecks, check_isolation
from routeprism.runs import Finding

_MOST_SETS = 50
"""Maximum number of retained sets of a distribution; a long pool has too many to store all."""


_CHANGE = {"changed": "value", "lower": "lower", "upper": "upper"}
"""The share of orders that change the retained set, with its limits, as findings name them."""


_MOST_WEIGHED = 10**300
"""Up to how many orders pools are weighted by their number; a float has no room for more."""


@dataclass(frozen=True, slots=True)
class Looking:
    """How orders are looked at."""

    arrivals: tuple[ArrivalModel, ...]
    method: Method | None = None
    drawn_orders: int = USUAL_ORDERS
    half_width: float | None = None
    most_drawn: int = MOST_DRAWN
    most_states: int = MOST_STATES
    worst: str = ""
    """What the worst order makes lowest: `support`, `J` or `stale-only`; empty for no search."""
    outcome: Outcome | None = None
    """What the smallest reordering changes; None for no shrinking."""
    allocate: bool = False
    """Whether a pilot of drawn orders decides in which pools the others are drawn."""


@dataclass(frozen=True, slots=True)
class OrderPlan:
    """Everything a process needs to look at the orders of any pool of a benchmark."""

    benchmark: Benchmark
    fits: CrossFit
    looking: Looking
    labels: str
    masks: Masks
    store: bool
    checks: RouteChecks = field(default_factory=RouteChecks)
    """On which pools builds of the user's own memory are checked for shared state."""
    updates: str = ""
    """The label source of outdated evidence; empty for none."""
    sharing: Sharing = field(default_factory=Sharing)
    """The plans of memories whose orders share their beginnings."""

    def __call__(self) -> OrderPlan:
        """Set a process up: it needs the plan itself."""
        return self


@dataclass(slots=True)
class OrderCounts:
    """How many orders were looked at, by policy and arrival model."""

    orders: Counter[tuple[str, str]] = field(default_factory=Counter)
    failed: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Orders in which the memory raised an error."""
    unavailable: Counter[str] = field(default_factory=Counter)
    """Policy and reason → orders that a memory system outside failed to build."""
    methods: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """(policy, arrival model, method) → pools."""
    checked_orders: Counter[str] = field(default_factory=Counter)
    """Policy → orders that were also built in one go, to check what orders share."""
    checked_pools: Counter[str] = field(default_factory=Counter)
    """Policy → pools with shared orders."""


@dataclass(slots=True)
class PoolResult:
    """The results of one pool."""

    sums: Sums[Key] = field(default_factory=dict)
    clusters: Sums[Key] = field(default_factory=dict)
    """Clusters and orders, which weight pools by their orders."""
    findings: list[Finding] = field(default_factory=list)
    observations: Observations = field(default_factory=Observations)
    looks: OrderCounts = field(default_factory=OrderCounts)
    tables: dict[str, list[Sequence[Any]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """Notes on this pool for people who read the numbers."""
    sampled: set[tuple[str, str]] = field(default_factory=set)
    """(policy, arrival model) for which orders were drawn."""
    positions: list[float] = field(default_factory=list)
    """The normalised position of every support record of every question."""
    one_sided: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    """(policy, side) → mean support position of each question kept on that side alone."""


def explore_pool(plan: OrderPlan, index: int) -> PoolResult:
    """Look at the orders of one pool."""
    case = plan.benchmark.cases[index]
    result = PoolResult()
    if not case.questions:
        return result
    policies = plan.fits.for_user(case.pool.user)
    observe_case(case, policies, (), result.observations)
    supports = tuple(q.labels.get(plan.labels, frozenset()) for q in case.questions)
    positions = _find_positions(case, supports)
    result.positions = sorted(itertools.chain.from_iterable(positions))
    strata = strata_of(case, plan.masks)
    for policy in policies:
        with report_own_errors(policy, user=case.pool.user):
            if index in plan.checks.isolated.get(policy.name, ()):
                outcome = check_isolation(case, policy, (), full=index < FIRST_POOLS)
                result.observations.routes.isolation[policy.name, outcome] += 1
            stale = StaleOutcomes.find(policy, case, plan.updates)
            _Exploration(plan, case, policy, supports, positions, strata, result, stale).explore()
    if plan.store:
        result.tables = {
            **make_tables((), case, ()),
            "per_question": rows_of(case, result.sums),
            "per_unit": unit_rows_of(case, {**result.sums, **result.clusters}),
        }
    return result


def _find_positions(case: Case, supports: Sequence[frozenset[str]]) -> list[list[float]]:
    """Return for each question the positions of its support records in the source, from 0 to 1."""
    places = {record: position for position, record in enumerate(case.pool.ids)}
    return [
        [
            position
            for record in support
            if (position := normalised(places[record], len(places))) is not None
        ]
        for support in supports
    ]


@dataclass(frozen=True, slots=True)
class _Exploration:
    """The orders of one pool under one policy."""

    plan: OrderPlan
    case: Case
    policy: Policy
    supports: tuple[frozenset[str], ...]
    """The supporting records of each question."""
    positions: Sequence[Sequence[float]]
    """Where in the source they are."""
    strata: Strata
    result: PoolResult
    stale: StaleOutcomes | None
    """Reads which questions are shown the old value alone; None without outdated evidence."""

    def explore(self) -> None:
        """Look at the orders of every arrival model, then search for the worst and the smallest."""
        landscape = None
        trie = self._open_trie()
        looking = self.plan.looking
        searches = bool(looking.worst) or looking.outcome is not None
        builds = OrderBuilds(self.policy, self.case.pool, keeps_graphs=searches)
        stale = None if self.stale is None else self.stale.value()
        orders: dict[Order, None] = {tuple(reversed(range(len(self.case.pool)))): None}
        for model in looking.arrivals:
            if trie is None:
                landscape = self._landscape(model, builds, stale)
            else:
                landscape = self._grow(trie, model, stale)
            orders.update(dict.fromkeys(_list_reorderings(landscape)))
            self._count(model, landscape)
            self._enter_change(model, landscape)
            self._enter_support(model, landscape)
            if stale is not None:
                self._enter_stale(model, landscape, partial(_read_order, builds, trie, stale))
            self._enter_clusters(model, landscape)
            self.result.findings += _list_findings(self.policy, model, landscape)
            self.result.notes += _list_notes(landscape)
        if trie is not None and trie.growth is not None:
            self._check(trie)
        if landscape is not None:
            self._compare_ends(landscape)
            if landscape.chance is None:
                self._search(list(orders), trie, builds)

    def _open_trie(self) -> ArrivalTrie | None:
        """Begin the trie of a memory whose orders share their beginnings."""
        sharing, policy, pool = self.plan.sharing, self.policy, self.case.pool
        if policy.name not in sharing.policies:
            return None
        return sharing.open_trie(policy, pool, self._list_queries())

    def _check(self, trie: ArrivalTrie) -> None:
        """Compare what orders share with some orders that are built in one go."""
        name, user = self.policy.name, self.case.pool.user
        orders = self.plan.sharing.checked.get((name, user), ())
        queries = dict.fromkeys(question.text for question in self.case.questions)
        check_restoration(trie, orders, tuple(queries))
        self.result.looks.checked_orders[name] += len(orders)
        self.result.looks.checked_pools[name] += 1

    def _list_queries(self) -> tuple[str, ...]:
        """List the questions whose exposure is read of every memory, once."""
        looking = self.plan.looking
        if (looking.worst == "J" or looking.outcome == "exposed") and self._is_complete():
            return tuple(question.text for question in self.case.questions)
        return () if self.stale is None else self.stale.queries

    def _grow(
        self, trie: ArrivalTrie, model: ArrivalModel, outcome: StaleValue | None
    ) -> Landscape:
        """Build the planned orders of an arrival model."""
        pool = self.case.pool
        plan = self.plan.sharing.plans[self.policy.name, pool.user, model.name]
        landscape = explore_trie(trie, model.on(pool), plan, outcome)
        if landscape.building is not None and landscape.building.covered is not None:
            covered = [landscape.building.covered] * len(self.case.questions)
            self._enter(model, "orders_covered", covered)
        return landscape

    def _landscape(
        self, model: ArrivalModel, builds: OrderBuilds, outcome: StaleValue | None
    ) -> Landscape:
        looking = self.plan.looking
        return explore(
            self.policy,
            self.case.pool,
            model,
            method=looking.method,
            supports=list(dict.fromkeys(support for support in self.supports if support)),
            drawn_orders=looking.drawn_orders,
            half_width=looking.half_width,
            most_drawn=looking.most_drawn,
            most_states=looking.most_states,
            builds=builds,
            outcome=outcome,
        )

    def _count(self, model: ArrivalModel, landscape: Landscape) -> None:
        place = (self.policy.name, model.name)
        self.result.looks.orders[place] += landscape.orders
        self.result.looks.failed[place] += landscape.failed
        if landscape.unavailable:
            reason = f"{self.policy.name}: {landscape.failures[0].message}"
            self.result.looks.unavailable[reason] += landscape.unavailable
        self.result.looks.methods[self.policy.name, model.name, landscape.method] += 1
        if not landscape.exact:
            self.result.sampled.add(place)

    def _enter(self, model: ArrivalModel, quantity: str, values: Values, labels: str = "") -> None:
        column = Column("orders", quantity, self.policy.name, model.name, labels=labels)
        enter(self.result.sums, self.strata, column, values)

    def _enter_change(self, model: ArrivalModel, landscape: Landscape) -> None:
        """Add how often order changes the retained set; a pool counts once for each question."""
        number = len(self.case.questions)
        if number and landscape.orders:
            self._enter(model, "order_failed", [landscape.failed / landscape.orders] * number)
        if number and landscape.total:
            self._enter(model, "order_change", [landscape.changed.value] * number)

    def _enter_support(self, model: ArrivalModel, landscape: Landscape) -> None:
        """Add how often support is kept in source order, in reverse, and over all orders."""
        if not (self.plan.labels and any(self.supports) and landscape.total):
            return
        shares = {s: landscape.share_keeping(s).value for s in dict.fromkeys(self.supports) if s}
        sides: dict[str, Values] = {
            "forward": self._keeps(landscape.forward),
            _name_orders(model): [shares.get(s) for s in self.supports],
        }
        if landscape.reverse is not None:
            sides["reverse"] = self._keeps(landscape.reverse)
        for side, values in sides.items():
            self._enter(model, f"support_kept.{side}", values, self.plan.labels)

    def _keeps(self, retained: frozenset[str]) -> Values:
        """Return for each question with support whether a retained set has some of it."""
        return [float(bool(retained & s)) if s else None for s in self.supports]

    def _enter_stale(
        self, model: ArrivalModel, landscape: Landscape, read: Callable[[Order], tuple[bool, ...]]
    ) -> None:
        """Add how often outdated evidence is shown without current evidence."""
        if self.stale is None or not landscape.total:
            return
        source = tuple(range(len(self.case.pool)))
        shares = [
            landscape.share_outcomes(itemgetter(at)).value for at in range(len(self.stale.places))
        ]
        sides: dict[str, Sequence[float]] = {
            "forward": read(source),
            _name_orders(model): shares,
        }
        if landscape.reverse is not None:
            sides["reverse"] = read(source[::-1])
        for side, numbers in sides.items():
            values: list[float | None] = [None] * len(self.case.questions)
            for place, value in zip(self.stale.places, numbers, strict=True):
                values[place] = float(value)
            self._enter(model, f"stale_only.{side}", values, self.plan.updates)

    def _enter_clusters(self, model: ArrivalModel, landscape: Landscape) -> None:
        """Add the mean number of clusters; every order counts equally (Appendix D.11)."""
        is_weighed = landscape.exact and not model.redelivers and landscape.total < _MOST_WEIGHED
        if isinstance(unwrap_policy(self.policy), Focal) and is_weighed:
            column = Column("orders", "mean_clusters", self.policy.name, model.name)
            total = sum(number * weight for number, weight in landscape.counts().items())
            self.result.clusters[column, "all"] = (float(total), landscape.total)

    def _compare_ends(self, landscape: Landscape) -> None:
        """Note where support is in the source that one end of it keeps and the opposite drops."""
        if landscape.reverse is None:
            return
        for support, positions in zip(self.supports, self.positions, strict=True):
            forward, reverse = bool(landscape.forward & support), bool(landscape.reverse & support)
            if positions and forward != reverse:
                side = "forward" if forward else "reverse"
                mean = sum(positions) / len(positions)
                self.result.one_sided.setdefault((self.policy.name, side), []).append(mean)

    def _search(self, seeds: list[Order], trie: ArrivalTrie | None, builds: OrderBuilds) -> None:
        """Find the worst order of each arrival model, and the smallest reordering of each question.

        `known` are orders that the exploration has met.
        """
        looking = self.plan.looking
        if not looking.worst and looking.outcome is None:
            return
        if trie is not None and not self._is_complete():
            self.result.notes.append(
                f"{self.policy.name}: worst orders and smallest reorderings were searched only in "
                f"pools all of whose orders were built; a search in the others would build more"
            )
            return
        if trie is not None and trie.growth is None and callable(looking.outcome):
            self.result.notes.append(
                f"{self.policy.name}: smallest reorderings were not searched, because a function "
                f"of your own reads memories, and these can only be built again"
            )
            looking = replace(looking, outcome=None)
        policy = self.policy
        if trie is not None:
            interface = getattr(unwrap_policy(self.policy), "interface", None)
            policy = TriePolicy(trie, interface)
            builds = OrderBuilds(policy, self.case.pool, chancy=False)  # each is built once
        search = OrderSearch(
            policy,
            self.case,
            looking.arrivals,
            looking.most_states,
            self.plan.labels,
            self.stale,
            builds,
        )
        if looking.worst == "J" or looking.outcome == "exposed":
            search.observe_exposures(self.result.observations)
        if looking.worst:
            findings, orders = search.find_worst(looking.worst)
            self.result.findings += findings
            seeds += orders
        if looking.outcome is not None:
            self.result.findings += search.find_smallest(looking.outcome, self.supports, seeds)

    def _is_complete(self) -> bool:
        """Whether every order of the pool is among those that were built."""
        plans = self.plan.sharing.plans
        user = self.case.pool.user
        return any(
            plans[self.policy.name, user, model.name].complete
            and every_permutation(model.on(self.case.pool))
            for model in self.plan.looking.arrivals
        )


def _list_findings(policy: Policy, model: ArrivalModel, landscape: Landscape) -> list[Finding]:
    """Return how often each record survives, and the distribution of retained sets."""
    place = {
        "policy": policy.name,
        "interface": interface_of(policy),
        "schedule": model.name,
        "user": landscape.user,
    }
    survival: list[list[object]] = []
    if landscape.total:
        survival = [[record, at, share.value] for record, at, share in landscape.survival()]
    return [
        Finding(name="survival", value=survival, **place),
        Finding(name="order_distribution", value=_distribution(landscape), **place),
    ]


def _distribution(landscape: Landscape) -> dict[str, object]:
    """Write a distribution of retained sets as plain JSON; records are source positions."""
    places = {record: position for position, record in enumerate(landscape.ids)}

    def positions(retained: frozenset[str] | None) -> list[int] | None:
        return None if retained is None else sorted(places[record] for record in retained)

    changed = landscape.changed if landscape.total else None
    sets = sorted(landscape.retained.items(), key=lambda item: -item[1])
    return {
        "method": landscape.method,
        "exact": landscape.exact,
        "orders": landscape.orders,
        **{name: getattr(changed, key, None) for name, key in _CHANGE.items()},
        "forward": positions(landscape.forward),
        "reverse": positions(landscape.reverse),
        "sets": len(sets),
        "retained": [
            [positions(retained), weight / landscape.total]
            for retained, weight in sets[:_MOST_SETS]
        ],
        "counts": {str(number): weight for number, weight in landscape.counts().items()},
        "sizes": {str(size): weight for size, weight in landscape.sizes.items()},
        "failed": landscape.failed,
        "failures": [asdict(failure) for failure in landscape.failures],
        "chance": landscape.chance,
        "note": landscape.note,
        **({} if landscape.building is None else {"building": asdict(landscape.building)}),
    }


def _list_notes(landscape: Landscape) -> list[str]:
    notes = []
    if landscape.chance is not None:
        notes.append(f"{landscape.note} (user '{landscape.user}')")
    for failure in landscape.failures[:1]:
        order = "-".join(map(str, failure.order))
        draw = "" if failure.index is None else f" (draw {failure.index} of {landscape.arrival})"
        notes.append(
            f"{landscape.policy} raised an error in {landscape.failed} of {landscape.orders} "
            f"orders of user '{landscape.user}': {failure.message}. Repeat it with schedule "
            f"explicit:order={order}{draw}"
        )
    return notes


def _list_reorderings(landscape: Landscape) -> Iterator[Order]:
    """Yield one order for each retained set that differs from forward's."""
    every = list(range(len(landscape.ids)))
    for retained, order in landscape.examples.items():
        if retained != landscape.forward and sorted(order) == every:  # no record came twice
            yield order


def _read_order(
    builds: OrderBuilds, trie: ArrivalTrie | None, stale: StaleValue, order: Order
) -> tuple[bool, ...]:
    """Read which questions are shown the old value alone in one order."""
    if trie is None:
        return builds.read(order, stale)
    return stale(TriePolicy(trie).finish(trie.follow(order)))


def _name_orders(model: ArrivalModel) -> str:
    """Name the orders of a model in quantities; the same for every pool, however few it has."""
    return "uniform" if model.name.partition(":")[0] == "uniform" else "arrival"
