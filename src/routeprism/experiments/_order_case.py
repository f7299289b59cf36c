"""What one process does with one pool: look at its orders, and hand over values and findings."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from routeprism.experiments._case_rows import rows_of, tables, unit_rows_of
from routeprism.experiments._order_outcomes import (
    Outcome,
    objective,
    predicate,
    reordering_sentence,
    worst_sentence,
)
from routeprism.experiments._plans import interface_of
from routeprism.experiments._rows import Column, Key
from routeprism.experiments._strata import Masks, enter, strata_of
from routeprism.landscape import (
    DRAWN,
    MOST_DRAWN,
    MOST_STATES,
    Landscape,
    Method,
    StateGraph,
    explore,
    merge_states,
    normalised,
    shrink_all,
    worst_order,
)
from routeprism.landscape._build import build
from routeprism.measures import Sums
from routeprism.orders import ArrivalModel, every_permutation
from routeprism.policies import Policy, innermost
from routeprism.policies.focal import Focal
from routeprism.records import Benchmark, Case
from routeprism.routes import CrossFit
from routeprism.runs import Finding

__all__ = ["Looking", "OrderPlan", "PoolResult", "look_at"]

_MOST_SETS = 50
"""How many retained sets of a distribution are kept; a sample of a long pool has no end of them."""


@dataclass(frozen=True, slots=True)
class Looking:
    """How orders are looked at."""

    arrivals: tuple[ArrivalModel, ...]
    method: Method | None = None
    drawn: int = DRAWN
    half_width: float | None = None
    most_drawn: int = MOST_DRAWN
    most_states: int = MOST_STATES
    worst: str = ""
    """What the worst order makes lowest: `support` or `J`; empty for no search."""
    outcome: Outcome | None = None
    """What the smallest reordering changes; None for no shrinking."""


@dataclass(frozen=True, slots=True)
class OrderPlan:
    """Everything a process needs to look at the orders of any pool of a benchmark."""

    benchmark: Benchmark
    fits: CrossFit
    looking: Looking
    labels: str
    masks: Masks
    store: bool

    def __call__(self) -> OrderPlan:
        """Set a process up: it needs the plan itself."""
        return self


@dataclass(slots=True)
class PoolResult:
    """What comes back for one pool."""

    sums: Sums[Key] = field(default_factory=dict)
    clusters: Sums[Key] = field(default_factory=dict)
    """Clusters and orders, which weight pools by their orders."""
    findings: list[Finding] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    tables: dict[str, list[Sequence[Any]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """What happened to this pool that a reader should know."""
    sampled: set[tuple[str, str]] = field(default_factory=set)
    """(policy, arrival model) for which orders were drawn."""
    positions: list[float] = field(default_factory=list)
    """The normalised position of every support record of every question."""
    one_sided: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    """(policy, side) → mean support position of each question kept on that side alone."""


def look_at(plan: OrderPlan, index: int) -> PoolResult:
    """Look at the orders of one pool."""
    case = plan.benchmark.cases[index]
    result = PoolResult()
    result.counts.update(pools=1, records=len(case.pool), questions=len(case.questions))
    supports = [question.labels.get(plan.labels, frozenset()) for question in case.questions]
    places = {record: position for position, record in enumerate(case.pool.ids)}
    where = [
        [
            spot
            for record in support
            if (spot := normalised(places[record], len(places))) is not None
        ]
        for support in supports
    ]
    result.positions = sorted(itertools.chain.from_iterable(where))
    for policy in plan.fits.for_user(case.pool.user):
        sides = None
        for model in plan.looking.arrivals:
            found = _explored(plan, policy, case, model, supports)
            sides = found
            _enter(plan, case, policy, model, found, supports, result)
            result.findings += _findings(policy, model, found)
            result.notes += _notes(found)
            if not found.exact:
                result.sampled.add((policy.name, model.name))
        if sides is not None:
            _place(policy, sides, supports, where, result)
            if sides.chance is None:
                _search(plan, case, policy, supports, result)
    if plan.store:
        result.tables = {
            **tables((), case, ()),
            "per_question": rows_of(case, result.sums),
            "per_unit": unit_rows_of(case, {**result.sums, **result.clusters}),
        }
    return result


def _explored(
    plan: OrderPlan,
    policy: Policy,
    case: Case,
    model: ArrivalModel,
    supports: Sequence[frozenset[str]],
) -> Landscape:
    looking = plan.looking
    return explore(
        policy,
        case.pool,
        model,
        method=looking.method,
        supports=list(dict.fromkeys(support for support in supports if support)),
        drawn=looking.drawn,
        half_width=looking.half_width,
        most_drawn=looking.most_drawn,
        most_states=looking.most_states,
    )


def _enter(
    plan: OrderPlan,
    case: Case,
    policy: Policy,
    model: ArrivalModel,
    found: Landscape,
    supports: Sequence[frozenset[str]],
    result: PoolResult,
) -> None:
    """Enter what is asked of every order: a pool's values count once for each of its questions."""
    result.counts[f"orders\0{policy.name}\0{model.name}"] += found.orders
    result.counts[f"method\0{policy.name}\0{model.name}\0{found.method}"] += 1
    strata = strata_of(case, plan.masks)
    column = Column("orders", "", policy.name, model.name)
    if case.questions and found.total:
        changed = found.changed.value
        values = [changed] * len(case.questions)
        enter(result.sums, strata, column._replace(quantity="order_change"), values)
    if plan.labels and any(supports) and found.total:
        uniform = every_permutation(model.on(case.pool)) or model.name == "uniform"
        known: dict[frozenset[str], float] = {}
        for support in supports:
            if support and support not in known:
                known[support] = found.kept(support).value
        sides: dict[str, list[float | None]] = {
            "forward": [float(bool(found.forward & s)) if s else None for s in supports],
            "uniform" if uniform else "arrival": [known.get(support) for support in supports],
        }
        if found.reverse is not None:
            held = found.reverse
            sides["reverse"] = [float(bool(held & s)) if s else None for s in supports]
        for side, kept in sides.items():
            named = column._replace(quantity=f"support_kept.{side}", labels=plan.labels)
            enter(result.sums, strata, named, kept)
    if isinstance(innermost(policy), Focal) and found.exact and not model.redelivers:
        total = float(sum(number * weight for number, weight in found.counts().items()))
        named = column._replace(quantity="mean_clusters")
        result.clusters[named, "all"] = (total, found.total)


def _findings(policy: Policy, model: ArrivalModel, found: Landscape) -> list[Finding]:
    place = {
        "policy": policy.name,
        "interface": interface_of(policy),
        "schedule": model.name,
        "user": found.user,
    }
    at = {record: position for position, record in enumerate(found.ids)}
    changed = found.changed if found.total else None
    sets = sorted(found.retained.items(), key=lambda one: -one[1])
    distribution = {
        "method": found.method,
        "exact": found.exact,
        "orders": found.orders,
        "changed": None if changed is None else changed.value,
        "lower": None if changed is None else changed.lower,
        "upper": None if changed is None else changed.upper,
        "forward": sorted(at[record] for record in found.forward),
        "reverse": None
        if found.reverse is None
        else sorted(at[record] for record in found.reverse),
        "sets": len(sets),
        "retained": [
            [sorted(at[record] for record in kept), weight / found.total]
            for kept, weight in sets[:_MOST_SETS]
        ],
        "counts": {str(number): weight for number, weight in found.counts().items()},
        "sizes": {str(size): weight for size, weight in found.sizes.items()},
        "failed": found.failed,
        "failures": [asdict(failure) for failure in found.failures],
        "chance": found.chance,
        "note": found.note,
    }
    survival = (
        [[record, position, share.value] for record, position, share in found.survival()]
        if found.total
        else []
    )
    return [
        Finding(name="survival", value=survival, **place),
        Finding(name="order_distribution", value=distribution, **place),
    ]


def _notes(found: Landscape) -> list[str]:
    said = []
    if found.chance is not None:
        said.append(f"{found.note} (user '{found.user}')")
    for failure in found.failures[:1]:
        order = "-".join(map(str, failure.order))
        drawn = "" if failure.index is None else f", draw {failure.index} of {found.arrival}"
        said.append(
            f"{found.policy} raised an error in {found.failed} of {found.orders} orders of user "
            f"'{found.user}', such as {order}{drawn}: {failure.message}. It comes again with "
            f"--schedule explicit:order={order}"
        )
    return said


def _place(
    policy: Policy,
    found: Landscape,
    supports: Sequence[frozenset[str]],
    where: Sequence[Sequence[float]],
    result: PoolResult,
) -> None:
    """Say where support sits that one end of the source keeps and the other does not."""
    if found.reverse is None:
        return
    for support, spots in zip(supports, where, strict=True):
        forward, reverse = bool(found.forward & support), bool(found.reverse & support)
        if spots and forward != reverse:
            side = "forward" if forward else "reverse"
            mean = sum(spots) / len(spots)
            result.one_sided.setdefault((policy.name, side), []).append(mean)


def _search(
    plan: OrderPlan,
    case: Case,
    policy: Policy,
    supports: Sequence[frozenset[str]],
    result: PoolResult,
) -> None:
    """Find the worst order of each arrival model, and the smallest reordering of each question."""
    looking = plan.looking
    if not looking.worst and looking.outcome is None:
        return
    graphs: dict[str, StateGraph | None] = {}
    uniform = next((m for m in looking.arrivals if every_permutation(m.on(case.pool))), None)
    if uniform is not None:
        bound = uniform.on(case.pool)
        graphs[uniform.name] = merge_states(policy, case.pool, bound, limit=looking.most_states)
    place = {
        "policy": policy.name,
        "interface": interface_of(policy),
        "user": case.pool.user,
    }
    if looking.worst:
        with build(policy, case.pool, tuple(range(len(case.pool)))) as forward:
            lowest = objective(looking.worst, case, plan.labels, forward)
            for model in looking.arrivals if lowest is not None else ():
                worst = worst_order(
                    policy,
                    case.pool,
                    lowest,  # type: ignore[arg-type]
                    model,
                    seed=model.seed,
                    most_states=looking.most_states,
                    graph=graphs.get(model.name),
                )
                value = {
                    **asdict(worst),
                    "objective": looking.worst,
                    "sentence": worst_sentence(worst, looking.worst, case.pool.user),
                }
                finding = Finding(name="worst_order", schedule=model.name, value=value, **place)
                result.findings.append(finding)
    if looking.outcome is None:
        return
    asked = [
        (question, support, wanted)
        for question, support in zip(case.questions, supports, strict=True)
        if (wanted := predicate(looking.outcome, question, support)) is not None
    ]
    graph = graphs.get(uniform.name) if uniform is not None else None
    found = shrink_all(
        policy,
        case.pool,
        [wanted for _, _, wanted in asked],
        most_states=looking.most_states,
        graph=graph,
    )
    for (question, support, _), one in zip(asked, found, strict=True):
        value = {
            "found": one.found,
            "order": one.order,
            "moves": [[move.record, move.after] for move in one.moves],
            "inversions": one.inversions,
            "exact": one.exact,
            "looked": one.looked,
            "outcome": looking.outcome if isinstance(looking.outcome, str) else "own",
            "forward_keeps": bool(one.forward) if looking.outcome == "support" else None,
            "sentence": reordering_sentence(one, looking.outcome, question, support),
        }
        result.findings.append(
            Finding(name="smallest_reordering", question=question.id, value=value, **place)
        )
