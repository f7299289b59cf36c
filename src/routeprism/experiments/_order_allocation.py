"""Drawn orders where they differ most: a pilot in every pool, then the rest by its variance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from routeprism.experiments._execution import RunExecution, map_cases
from routeprism.experiments._order_case import OrderPlan
from routeprism.experiments._order_sharing import Place
from routeprism.landscape import DrawnOrders, TriePlan, can_share, explore_trie
from routeprism.measures import TwoStages, allocate_draws, pilot_size, shrink_variances
from routeprism.policies import Policy
from routeprism.policies.own import report_own_errors
from routeprism.records import Case
from routeprism.runs import Finding

FEWEST = 4
"""The fewest orders of a pool that are divided into a pilot and later draws."""

Counts = tuple[int, int]
"""In how many of how many orders something holds."""


@dataclass(frozen=True, slots=True)
class _Pilot:
    """What the first drawn orders of a pool showed, for one policy and arrival model."""

    changed: Counts
    support: tuple[Counts, ...]
    """For each set of supporting records: in how many orders some of it is kept."""


@dataclass(slots=True)
class _PoolPilots:
    """The pilots of one pool."""

    pilots: dict[Place, _Pilot] = field(default_factory=dict)
    tables: dict[str, list[Sequence[Any]]] = field(default_factory=dict)


def look_at_pilots(plan: OrderPlan, index: int) -> _PoolPilots:
    """Build the planned orders of one pool, and count what order changes."""
    case = plan.benchmark.cases[index]
    pilots = _PoolPilots()
    supports = dict.fromkeys(q.labels.get(plan.labels, frozenset()) for q in case.questions)
    for policy in plan.fits.for_user(case.pool.user):
        if policy.name not in plan.sharing.policies:
            continue
        with report_own_errors(policy, user=case.pool.user):
            trie = plan.sharing.open_trie(policy, case.pool)
            for model in plan.looking.arrivals:
                place = policy.name, case.pool.user, model.name
                trie_plan = plan.sharing.plans.get(place)
                if trie_plan is None or not trie_plan.orders:
                    continue
                landscape = explore_trie(trie, model.on(case.pool), trie_plan)
                total = landscape.total
                changed = landscape.changed.count if total else 0
                counts = tuple(
                    (landscape.share_keeping(support).count if total else 0, max(total, 1))
                    for support in supports
                    if support
                )
                pilots.pilots[place] = _Pilot((changed, max(total, 1)), counts)
    return pilots


@dataclass(frozen=True, slots=True)
class Allocation:
    """The plans of all pools after the pilot, and a description of each group of pools."""

    plans: Mapping[Place, TriePlan]
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()


def allocate_orders(plan: OrderPlan, execution: RunExecution) -> Allocation:
    """Build the pilots of all pools, and divide the remaining adds by their variance.

    The budget is the number of adds that equally many orders in each pool would take.
    """
    draws = _open_draws(plan)
    first = {
        place: queue.plan(pilot_size(len(plan.sharing.plans[place].orders)))
        for place, queue in draws.items()
    }
    trial = replace(plan, sharing=replace(plan.sharing, plans=first))
    pilots: dict[Place, _Pilot] = {}
    number = len(plan.benchmark.cases)
    map_cases(
        look_at_pilots,
        trial,
        lambda result: pilots.update(result.pilots),
        number,
        None,
        replace(execution, progress=None),
        batch=1,
    )
    weights = _weigh_pools(plan)
    plans, findings, notes = dict(plan.sharing.plans), [], []
    for policy, arrival in dict.fromkeys((p, a) for p, _, a in pilots):
        places = [place for place in pilots if (place[0], place[2]) == (policy, arrival)]
        group = _Group(
            [draws[place] for place in places],
            [plan.sharing.plans[place] for place in places],
            [pilots[place] for place in places],
            [weights[user] for _, user, _ in places],
        )
        numbers = group.allocate(plan.looking.most_drawn)
        for place, queue, stages in zip(places, group.draws, numbers, strict=True):
            plans[place] = queue.plan(stages.pilot + stages.later, stages)
        users = [user for _, user, _ in places]
        value = group.describe(users, numbers)
        findings.append(
            Finding(name="order_allocation", policy=policy, schedule=arrival, value=value)
        )
        notes.append(f"{policy}, {arrival}: {_describe(value)}")
    return Allocation(plans, tuple(findings), tuple(notes))


def _open_draws(plan: OrderPlan) -> dict[Place, DrawnOrders]:
    """Return the drawn orders of every pool that has enough of them to be divided."""
    sharing, models = plan.sharing, {model.name: model for model in plan.looking.arrivals}
    policies: dict[str, Policy] = {policy.name: policy for policy in plan.fits.policies}
    shared = {name: can_share(policies[name]) for name in sharing.policies}
    cases: dict[str, Case] = {case.pool.user: case for case in plan.benchmark.cases}
    return {
        (policy, user, arrival): DrawnOrders(models[arrival].on(cases[user].pool), shared[policy])
        for (policy, user, arrival), trie_plan in sharing.plans.items()
        if len(trie_plan.orders) >= FEWEST
    }


def _weigh_pools(plan: OrderPlan) -> dict[str, float]:
    """Return how much each pool counts in the estimates."""
    by_question = plan.benchmark.weighting == "question"
    return {
        case.pool.user: float(len(case.questions)) if by_question else 1.0
        for case in plan.benchmark.cases
    }


@dataclass(frozen=True, slots=True)
class _Group:
    """The pools of one policy under one arrival model."""

    draws: Sequence[DrawnOrders]
    equal: Sequence[TriePlan]
    """The plans with equally many orders in each pool."""
    pilots: Sequence[_Pilot]
    weights: Sequence[float]

    def _list_variances(self) -> list[float]:
        """Estimate the variance of one order in each pool: of the change, and of what is kept."""
        changed = shrink_variances([pilot.changed for pilot in self.pilots])
        flat = iter(shrink_variances([counts for pilot in self.pilots for counts in pilot.support]))
        supports = [[next(flat) for _ in pilot.support] for pilot in self.pilots]
        return [
            change + (fmean(values) if values else 0.0)
            for change, values in zip(changed, supports, strict=True)
        ]

    def allocate(self, most: int) -> list[TwoStages]:
        """Divide the adds that equally many orders in each pool would take."""
        planned = [len(plan.orders) for plan in self.equal]
        pilots = [pilot_size(number) for number in planned]
        shares = []
        for place, variance in enumerate(self._list_variances()):
            adds = self.equal[place].adds - self.draws[place].count_adds(pilots[place])
            cost = max(adds / (planned[place] - pilots[place]), 0.1)
            shares.append(self.weights[place] * math.sqrt(variance / cost))

        def price(later: Sequence[int]) -> int:
            return sum(
                queue.count_adds(pilot + number)
                for queue, pilot, number in zip(self.draws, pilots, later, strict=True)
            )

        budget = sum(plan.adds for plan in self.equal)
        later = allocate_draws(shares, price, budget, most=most)
        return [TwoStages(*numbers) for numbers in zip(planned, pilots, later, strict=True)]

    def describe(self, users: Sequence[str], numbers: Sequence[TwoStages]) -> dict[str, Any]:
        """Describe how many orders were drawn where, and what that is worth for order_change."""
        variances = shrink_variances([pilot.changed for pilot in self.pilots])
        parts = [
            (weight**2 * variance, stages)
            for weight, variance, stages in zip(self.weights, variances, numbers, strict=True)
        ]
        error = sum(part / stages.effective for part, stages in parts)
        equal = sum(part / stages.planned for part, stages in parts)
        return {
            "pilot": max(stages.pilot for stages in numbers),
            "planned": max(stages.planned for stages in numbers),
            "adds": sum(
                queue.count_adds(stages.pilot + stages.later)
                for queue, stages in zip(self.draws, numbers, strict=True)
            ),
            "orders": {
                user: stages.pilot + stages.later
                for user, stages in zip(users, numbers, strict=True)
            },
            "variance_ratio": equal / error if error else 1.0,
        }


def _describe(value: Mapping[str, Any]) -> str:
    numbers = sorted(value["orders"].values())
    ratio = value["variance_ratio"]
    worth = value["planned"] * ratio
    saved = max(0, round(value["adds"] * (ratio - 1)))
    return (
        f"after a pilot of {value['pilot']} orders in each of {len(numbers)} pools, the other "
        f"orders were drawn where orders differ most: {numbers[0]} to {numbers[-1]} a pool. The "
        f"draws of order_change are as precise as about {worth:.0f} orders in every pool, which "
        f"saves about {saved:,} adds"
    )
