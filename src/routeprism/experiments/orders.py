"""Every order, the worst order, and the smallest change of order that loses the evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

from routeprism.answers import AnswerProgress, Cost
from routeprism.errors import LimitError, SpecError
from routeprism.exhibits import Statement
from routeprism.experiments._adding import MANY, AddProgress, estimate_sizes
from routeprism.experiments._audit import connect_policies, explain_proxy, open_gateway
from routeprism.experiments._construction import construction_costs, stand_ins
from routeprism.experiments._execution import (
    Pacing,
    RunExecution,
    finish_run,
    map_cases,
    naming_limit,
    open_run,
)
from routeprism.experiments._experiment import Experiment
from routeprism.experiments._observations import (
    Observations,
    add_counts,
    exposure_notes,
    wordless_notes,
)
from routeprism.experiments._order_allocation import FEWEST, allocate_orders
from routeprism.experiments._order_case import (
    Looking,
    OrderCounts,
    OrderPlan,
    PoolResult,
    explore_pool,
)
from routeprism.experiments._order_exhibits import (
    chart_orders,
    order_statements,
    position_statements,
    tabulate_orders,
    tabulate_shares,
)
from routeprism.experiments._order_search import STALE_ONLY
from routeprism.experiments._order_sharing import (
    KeptNodes,
    Sharing,
    open_consultants,
    plan_sharing,
    price_sharing,
)
from routeprism.experiments._result import Audit
from routeprism.experiments._rows import Key, Setting, estimate_rows, in_order
from routeprism.experiments._stages import AsksNobody, StageResult, Traced
from routeprism.experiments._subject import Statistics, Subject
from routeprism.landscape import BINS, MOST_ORDERS, support_positions
from routeprism.measures import Tally
from routeprism.models.gateway import GATEWAY, Gateway
from routeprism.orders import ArrivalModel
from routeprism.policies import (
    Policy,
    StandIn,
    builder_model,
    describe_client,
    unwrap_policy,
    uses_gateway,
    watch_adds,
)
from routeprism.policies.own import OwnMemory
from routeprism.records import Benchmark, Pool, choose_cases
from routeprism.routes import CrossFit, choose_checks, cross_fit, describe_isolation
from routeprism.runs import EstimateRow, Finding, Rows, Run, Shortfall

__all__ = ["EveryOrder", "explore_subject", "tabulate_shares"]


@dataclass(frozen=True, slots=True)
class EveryOrder(AsksNobody):
    """Looks at every order of the pools whose routes a run has traced."""

    looking: Looking

    def described(self) -> Mapping[str, object]:
        """Return what makes the results comparable."""
        return _describe_looking(self.looking)

    def perform(self, traced: Traced, progress: AnswerProgress | None) -> StageResult:
        """Look at the orders pool by pool, and estimate what order changes."""
        benchmark = traced.benchmark
        fits = cross_fit(traced.policies, benchmark.cases)
        plan = OrderPlan(
            benchmark,
            fits,
            self.looking,
            traced.labels,
            traced.masks,
            store=True,
            updates=next(iter(benchmark.updates), ""),
        )
        totals = _Totals(benchmark)
        for index in range(len(benchmark.cases)):
            result = explore_pool(plan, index)
            totals.add(result)
            for table in ("per_question", "per_unit"):
                traced.run.add(table, result.tables[table])
        names = [policy.name for policy in traced.policies]
        rows = totals.rows(replace(traced.setting, counts=()), names, self.looking)
        traced.run.keep("orders", totals.all_findings)
        return StageResult(rows, totals.statements(rows, traced.labels), totals.list_notes())


def explore_subject(
    subject: Subject,
    looking: Looking,
    *,
    statistics: Statistics | None = None,
    pacing: Pacing | None = None,
    execution: RunExecution | None = None,
) -> Audit:
    """Look at every order of every pool, or at drawn ones, and estimate what order changes.

    A dry run only counts what building would take; a spending limit ends the exploration.
    """
    benchmark, pacing = subject.benchmark, pacing or Pacing()
    statistics = (statistics or Statistics()).check(benchmark)
    subject = subject.check()
    looking = _check_looking(subject, looking)
    gateway = open_gateway(subject.policies, pacing)
    execution = execution or RunExecution()
    totals = _Totals(benchmark)
    totals.notes += explain_proxy(subject.policies, execution)
    plan, execution = _prepare(subject, looking, statistics, pacing, execution, gateway)
    if pacing.dry_run:
        if execution.merged is not None:  # shards have built everything
            return Audit.of_costs(benchmark, {})
        planned = price_sharing(plan.sharing, subject.policies)
        return Audit.of_costs(benchmark, {**_price(plan, execution), **planned})
    configuration = {
        "command": "orders",
        **subject.describe(),
        **_describe_looking(looking),
        "masks": sorted(subject.masks),
        **statistics.describe(),
        **execution.describe_shard(),
    }
    asks = any(builder_model(policy) is not None for policy in subject.policies)
    with (
        open_run(
            execution.directory,
            configuration,
            benchmark,
            command_line=execution.command_line,
            temporary=asks,
            staged=gateway is not None,
            merged=execution.merged,
        ) as run,
        nullcontext() if gateway is None else gateway.serving(run),
        open_consultants(plan.sharing, subject.policies, run, pacing) as sharing,
    ):
        plan = replace(plan, sharing=sharing)
        try:
            home = {**sharing.list_home(), GATEWAY: gateway}
            with naming_limit(pacing.allowance):
                _explore_pools(plan, totals, run, execution.keep_home(home))
        except LimitError as error:
            keeps = (asks or gateway is not None) and execution.directory is not None
            completed = _KEEPS_REPLIES if keeps else _KEEPS_NOTHING
            raise LimitError(
                f"{error}. {completed}; pass a higher limit or fewer orders"
            ) from error
        setting = statistics.setting(subject, subject.policies)
        rows = totals.rows(setting, subject.names, looking)
        findings = totals.all_findings
        shortfall = Shortfall.count(routes=[*totals.looks.unavailable.elements()])
        return finish_run(
            run,
            Audit(
                benchmark.name,
                Rows.of(rows),
                totals.statements(rows, subject.support),
                (*benchmark.notes, *subject.notes, *totals.list_study_notes(subject.names)),
                totals.observations.totals,
                execution.directory,
                findings=findings,
                limits=statistics.explain_limits(benchmark),
                shortfall=shortfall,
            ),
            {"orders": findings},
            subject.masks,
        )


_KEEPS_REPLIES = "Replies that came in are kept in the run"
_KEEPS_NOTHING = "`orders` stores no builds, so a further call starts again"


def _explore_pools(
    plan: OrderPlan, totals: _Totals, run: Run | None, execution: RunExecution
) -> None:
    """Look at the orders of every pool, and store what comes back."""
    adding = plan.sharing.adding
    with nullcontext() if adding is None else adding.watching():
        if plan.looking.allocate:
            allocation = allocate_orders(plan, execution)
            plan = replace(plan, sharing=replace(plan.sharing, plans=allocation.plans))
            totals.findings += allocation.findings
            totals.notes += allocation.notes
        _explore_watched(plan, totals, run, execution)


def _explore_watched(
    plan: OrderPlan, totals: _Totals, run: Run | None, execution: RunExecution
) -> None:
    number = len(plan.benchmark.cases)
    adding = plan.sharing.adding

    def add(result: PoolResult) -> None:
        totals.add(result)
        if adding is not None:
            adding.end_pool()

    if not plan.sharing.consultants:
        free = plan.sharing.allowance is None and not any(map(uses_gateway, plan.fits.policies))
        map_cases(explore_pool, plan, add, number, run, execution, batch=1, resumable=free)
        return
    # Replies go to the ledger while memories are built, so that nothing else is written meanwhile.
    results: list[PoolResult] = []

    def keep(result: PoolResult) -> None:
        results.append(result)
        if adding is not None:
            adding.end_pool()

    map_cases(explore_pool, plan, keep, number, None, execution, batch=1)
    sequential = RunExecution(workers=1)
    map_cases(_read_result, _Results(results), totals.add, len(results), run, sequential, batch=1)


@dataclass(frozen=True, slots=True)
class _Results:
    """The results of all pools."""

    results: Sequence[PoolResult]

    def __call__(self) -> _Results:
        return self


def _read_result(results: _Results, index: int) -> PoolResult:
    return results.results[index]


def _check_looking(subject: Subject, looking: Looking) -> Looking:
    """Refuse what cannot be looked at; without labels the worst order lowers J."""
    if not subject.policies or not looking.arrivals:
        raise SpecError("looking at orders needs at least one policy and one arrival model")
    if looking.outcome == "support" and not subject.support:
        raise SpecError(
            f"benchmark '{subject.benchmark.name}' has no support labels; shrink another outcome: "
            f"retained, exposed, or a function of your own"
        )
    if STALE_ONLY in (looking.worst, looking.outcome) and not subject.updates:
        raise SpecError(
            f"benchmark '{subject.benchmark.name}' has no labels of outdated evidence, which "
            f"'{STALE_ONLY}' reads; see docs/updates.md"
        )
    if looking.worst == "support" and not subject.support:
        return replace(looking, worst="J")
    return looking


def _prepare(
    subject: Subject,
    looking: Looking,
    statistics: Statistics,
    pacing: Pacing,
    execution: RunExecution,
    gateway: Gateway | None,
) -> tuple[OrderPlan, RunExecution]:
    """Prepare the policies, and plan what is done with every pool and where."""
    cases, shard = subject.benchmark.cases, execution.shard
    pools = range(len(cases)) if shard is None else shard.choose(len(cases))
    plan_orders = partial(
        plan_sharing,
        subject.policies,
        choose_cases(subject.benchmark, pools).cases,
        looking.arrivals,
        method=looking.method,
        drawn_orders=looking.drawn_orders,
        allowance=pacing.allowance,
    )
    sharing = plan_orders(copies=False if pacing.dry_run else None)
    if pacing.dry_run:
        sharing = replace(sharing, if_copied=plan_orders(copies=True))
        separate = [p for p in subject.policies if p.name not in sharing.policies]
        policies = stand_ins([p for p in separate if describe_client(p) is not None], ())
        fits = CrossFit(policies)
    else:
        adding = _watch_adds(subject, looking, sharing, execution)
        sharing = replace(sharing, adding=adding, nodes=_keep_nodes(looking, execution))
        policies = connect_policies(subject.policies, pacing, gateway)
        policies = tuple(watch_adds(policy, adding) for policy in policies)
        fits = cross_fit(policies, cases)
    _refuse_allocation(looking, sharing, execution)
    if execution.ray is None and _stays_here(looking, policies, pacing):
        execution = execution.on_one_process()
    plan = OrderPlan(
        subject.benchmark,
        fits,
        looking,
        subject.support,
        subject.masks,
        execution.directory is not None and not pacing.dry_run,
        choose_checks(
            [policy for policy in policies if policy.name not in sharing.policies],
            (),
            len(cases),
            seed=statistics.seed,
        ),
        subject.updates,
        sharing,
    )
    return plan, execution.choose_workers(len(cases), many=2)


def _refuse_allocation(looking: Looking, sharing: Sharing, execution: RunExecution) -> None:
    """Refuse to divide draws between pools that are not all here, or that cost nothing."""
    if not looking.allocate:
        return
    if execution.shard is not None or execution.merged is not None:
        raise SpecError("allocate does not apply to a shard: a shard cannot know what others found")
    if looking.half_width is not None:
        raise SpecError("allocate and half_width both decide how many orders are drawn: set one")
    if looking.drawn_orders < FEWEST:
        raise SpecError(
            f"Expected {FEWEST} orders or more to allocate but got orders={looking.drawn_orders}"
        )
    if not sharing.plans:
        raise SpecError(
            "allocate applies to memories that a model builds, and none of these is: pass "
            "method=shared to share the beginnings of orders of any memory"
        )


def _keep_nodes(looking: Looking, execution: RunExecution) -> KeptNodes | None:
    """Keep what memories left if they may be needed again: by a second look, or a second worker."""
    return KeptNodes() if execution.ray is not None or looking.allocate else None


def _stays_here(looking: Looking, policies: Sequence[Policy], pacing: Pacing) -> bool:
    """Whether requests or memories are counted or kept, which is done in the first process."""
    asks = any(builder_model(policy) or uses_gateway(policy) for policy in policies)
    return asks or looking.allocate or pacing.allowance is not None


def _watch_adds(
    subject: Subject, looking: Looking, sharing: Sharing, execution: RunExecution
) -> AddProgress | None:
    """Begin to count records that are added, if a progress callback is set."""
    report, cases = execution.answer_progress, subject.benchmark.cases
    own = [
        policy
        for policy in subject.policies
        if isinstance(unwrap_policy(policy), OwnMemory) and policy.name not in sharing.policies
    ]
    if report is None or not (own or sharing.plans):
        return None

    shared = sharing.count_adds()

    def count_adds(size: int, place: int) -> int:
        pool = cases[min(place, MANY - 1)].pool
        orders = sum(_count_orders(model, pool, looking) for model in looking.arrivals)
        return shared[pool.user] + len(own) * orders * size

    sizes = [count_adds(size, place) for place, size in enumerate(estimate_sizes(cases))]
    return AddProgress(report, sizes, 1)


def _count_orders(model: ArrivalModel, pool: Pool, looking: Looking) -> int:
    """Count the orders of a memory that shows no states: all if they are few, else drawn ones."""
    orders = model.on(pool).count()
    return orders if orders is not None and orders <= MOST_ORDERS else looking.drawn_orders


def _price(plan: OrderPlan, execution: RunExecution) -> dict[str, Cost]:
    """Count what memories that make requests of their own would be given."""
    policies = plan.fits.policies
    observations = Observations()

    def add(result: PoolResult) -> None:
        for policy in policies:
            if isinstance(policy, StandIn):
                observations.assumed.update(policy.drain())

    number = len(plan.benchmark.cases)
    sequential = RunExecution(workers=1, progress=execution.progress, shard=execution.shard)
    if policies:
        map_cases(explore_pool, plan, add, number, None, sequential, batch=1)
    return {
        name: replace(cost, note=f"{cost.note}; searches may build more or fewer orders")
        for name, cost in construction_costs(policies, observations.assumed).items()
    }


_MISSED = 0.05
"""The risk of missing that many wrong orders of a pool on average, if those checked all agree."""


class _Totals:
    """The sums over all pools."""

    def __init__(self, benchmark: Benchmark) -> None:
        self.benchmark = benchmark
        self.tally: Tally[Key] = Tally(benchmark.weighting)
        # Permutations count equally here, whatever the benchmark's weighting (Appendix D.11).
        self.clusters: Tally[Key] = Tally("question")
        self.observations = Observations()
        self.looks = OrderCounts()
        self.findings: list[Finding] = []
        self.notes: list[str] = []
        self.sampled: set[tuple[str, str]] = set()
        self.positions: list[float] = []
        self.one_sided: dict[tuple[str, str], list[float]] = {}

    def add(self, result: PoolResult) -> None:
        self.tally.append(result.sums)
        self.clusters.append(result.clusters)
        add_counts(self.observations, result.observations)
        add_counts(self.looks, result.looks)
        self.findings += result.findings
        self.notes += result.notes
        self.sampled |= result.sampled
        self.positions += result.positions
        for side, means in result.one_sided.items():
            self.one_sided.setdefault(side, []).extend(means)

    def rows(
        self, setting: Setting, policies: Sequence[str], looking: Looking
    ) -> list[EstimateRow]:
        """Estimate everything; mark what was read from drawn orders."""
        rows = [
            row
            for row in estimate_rows(self.tally, setting)
            if row.estimate or row.quantity != "order_failed"  # most memories fail in no order
        ]
        rows += [
            replace(row, queries=None)  # what is counted are orders, not questions
            for row in estimate_rows(self.clusters, setting)
            if (row.policy, row.schedule) not in self.sampled
        ]
        rows = [
            replace(row, flags=";".join(filter(None, (row.flags, "sampled"))))
            if (row.policy, row.schedule) in self.sampled
            else row
            for row in rows
        ]
        return in_order(rows, policies, [model.name for model in looking.arrivals])

    @property
    def all_findings(self) -> tuple[Finding, ...]:
        """The results beyond single numbers."""
        return (*self.findings, *self.find_positions())

    def statements(self, rows: Sequence[EstimateRow], labels: str) -> tuple[Statement, ...]:
        """Describe it in words."""
        findings, synthetic = self.all_findings, self.benchmark.synthetic
        return (
            *order_statements(rows, self.looks, findings, synthetic=synthetic),
            *position_statements(findings, labels),
        )

    def find_positions(self) -> list[Finding]:
        """Summarise where support sits: in all, and where one end alone keeps it."""
        if not self.positions:
            return []
        supports = support_positions(self.positions)
        value = {
            "instances": supports.instances,
            "quartiles": supports.quartiles,
            "bins": [[*bounds, count] for bounds, count in zip(BINS, supports.bins, strict=True)],
        }
        by_policy: dict[str, dict[str, object]] = {}
        for (policy, side), means in sorted(self.one_sided.items()):
            by_policy.setdefault(policy, {})[f"only_{side}"] = {
                "questions": len(means),
                "mean_position": sum(means) / len(means),
            }
        return [
            Finding(name="support_position", value=value),
            *(
                Finding(name="support_position", policy=policy, value=sides)
                for policy, sides in by_policy.items()
            ),
        ]

    def list_study_notes(self, policies: Sequence[str]) -> tuple[str, ...]:
        """List the notes of a study of its own: also what was checked and what cannot be seen."""
        observed = self.observations
        isolated = chain.from_iterable(
            describe_isolation(policy, observed.routes, observed.pools) for policy in policies
        )
        blind = (*wordless_notes(observed), *exposure_notes(observed, policies))
        return (*blind, *self.list_notes(), *isolated)

    def _describe_checks(self) -> Iterator[str]:
        """Describe how many orders were built in one go as well, and what that can miss."""
        for policy, pools in self.looks.checked_pools.items():
            orders = self.looks.checked_orders[policy]
            if not orders:
                yield (
                    f"{policy}: what orders share could not be checked by building orders in one "
                    f"go, because it declares that it is not deterministic"
                )
                continue
            agreement = (
                f"{policy}: {orders:,} orders of {pools:,} pools were also built in one go, and "
                f"gave the same memories"
            )
            number = orders - pools  # without source order, which is not drawn
            yield agreement + (
                f". This can miss a memory that is wrong in few orders: in up to "
                f"{100 - 100 * _MISSED ** (1 / number):.2g}% of them (95% limit)"
                if number
                else ""
            )

    def list_notes(self) -> tuple[str, ...]:
        """List what happened to pools, each kind of it once."""
        # A pool counts once, however many policies it is for.
        users_by_note: dict[str, set[str]] = {}
        for finding in self.findings:
            value = finding.value
            if finding.name != "order_distribution" or "building" in value:
                continue
            if value["note"] and value["chance"] is None:
                users_by_note.setdefault(value["note"], set()).add(finding.user)
        notes = [
            note if len(users) == 1 else f"{note} ({len(users)} pools)"
            for note, users in users_by_note.items()
        ]
        built = (*_describe_building(self.findings), *self._describe_checks())
        return (*dict.fromkeys(self.notes), *notes, *built)


def _describe_building(findings: Sequence[Finding]) -> Iterator[str]:
    """Describe the cost of building orders that share beginnings, and the share built."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for finding in findings:
        if finding.name == "order_distribution" and "building" in finding.value:
            building = finding.value["building"]
            groups.setdefault((finding.policy, finding.schedule), []).append(building)
    for (policy, arrival), buildings in groups.items():
        adds, separate = (sum(b[name] for b in buildings) for name in ("adds", "separate"))
        shares = [b["covered"] for b in buildings]
        covered = "every order of a pool"
        if None in shares:
            covered = "orders too many to count"
        elif (share := sum(shares) / len(shares)) < 1:
            covered = f"a fraction of {share:.3f} of the orders of a pool on average"
        how = (
            f"by sharing {buildings[0]['shared']}"
            if buildings[0]["shared"]
            else "each from the start: the memory offers no snapshot() with revive() and cannot be "
            "copied, so nothing could be shared"
        )
        yield (
            f"{policy}, {arrival}: {adds:,} adds built {covered} ({separate:,} adds if each order "
            f"is built by itself), {how}; each beginning was built once, so differences between "
            f"orders include any chance in the memory's replies"
        )


def _describe_looking(looking: Looking) -> Mapping[str, object]:
    outcome = looking.outcome
    return {
        "arrivals": [model.name for model in looking.arrivals],
        "method": looking.method or "auto",
        "drawn": looking.drawn_orders,
        "half_width": looking.half_width,
        "most_drawn": looking.most_drawn,
        "most_states": looking.most_states,
        **({"allocate": True} if looking.allocate else {}),
        "worst": looking.worst,
        "outcome": outcome if outcome is None or isinstance(outcome, str) else _name(outcome),
    }


def _name(function: Callable[..., object]) -> str:
    return f"{function.__module__}:{getattr(function, '__qualname__', type(function).__name__)}"


experiment = Experiment(
    name="orders",
    title="Every order",
    summary="Look at every order of arrival, or at orders drawn from a model of arrivals.",
    commands=("orders",),
    rank=70,
    tab="orders",
    tables=tabulate_orders,
    charts=chart_orders,
)
