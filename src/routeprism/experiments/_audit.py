"""The first half of an audit: check and prepare it, then trace every case."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path

from routeprism import workers as pool
from routeprism.answers import Cost
from routeprism.errors import LimitError, SpecError
from routeprism.experiments._adding import AddProgress, estimate_sizes
from routeprism.experiments._arrival_values import DRAWN_ORDERS
from routeprism.experiments._case import CaseResult, Plan, work
from routeprism.experiments._construction import builds_of, construct, stand_ins
from routeprism.experiments._execution import Pacing, RunExecution, map_cases
from routeprism.experiments._observations import Observations, add_counts
from routeprism.experiments._rows import Key, Setting
from routeprism.experiments._stages import Stage, Traced
from routeprism.experiments._storage import is_external
from routeprism.experiments._subject import Statistics, Subject
from routeprism.experiments._until import Stop, Until, Watch, open_watch, shuffle_cases, take_cases
from routeprism.experiments.mechanism import contrasts
from routeprism.measures import Tally
from routeprism.models import ALLOWANCE, Allowance, Model
from routeprism.models.gateway import GATEWAY, Gateway
from routeprism.policies import (
    Metered,
    Policy,
    SourceOrder,
    StandIn,
    builder_model,
    can_limit_calls,
    interface_of,
    makes_calls,
    meter_policy,
    route_policy,
    stores_states,
    unwrap_policy,
    uses_gateway,
    watch_adds,
)
from routeprism.policies.own import OwnMemory
from routeprism.records import Benchmark, choose_cases
from routeprism.routes import choose_checks, cross_fit
from routeprism.runs import Cassette, Finding, Run
from routeprism.specs import check_sizes

_MANY_CASES = 200
"""The number of pools above which a second process is worth its start."""


@dataclass(frozen=True, slots=True)
class Tracing:
    """What is done with every pool besides building each route once."""

    ties: bool = False
    """Whether to count the ties that construction met (Appendix D.5)."""
    over_time: bool = False
    """Whether to look at every pool as it grows."""
    builds: int = 1
    """How often each route is built; two or more separate order from a memory's own chance."""
    rebuilds: int | None = None
    """How many routes of a memory of one's own are built again, to check it; None for the usual."""
    values: Collection[str] = ()
    """Quantities whose values are given back although no traces are stored."""


@dataclass(frozen=True, slots=True)
class Preparation:
    """An audit that was checked and is ready to be traced."""

    subject: Subject
    """With policies as they are built here: counted under a limit, stand-ins in a dry run."""
    plan: Plan
    stages: Sequence[Stage]
    configuration: Mapping[str, object]
    setting: Setting
    pacing: Pacing
    execution: RunExecution
    notes: tuple[str, ...]
    """What a reader should know about how the audit was carried out."""
    limits: str
    gateway: Gateway | None = None
    """The proxy for memory systems that ask a model themselves, if there are any."""
    until: Until | None = None
    """The statement at which the audit stops."""
    adding: AddProgress | None = None
    """Progress of memories whose `add` is slow."""
    building: str | None = None
    """The address of a Ray cluster that builds memories which ask a model."""
    pools: range | None = None
    """The numbers of the pools of a shard; None if the plan has all."""

    def take(self, stop: Stop | None) -> Preparation:
        """Return the audit of the units that were used before tracing stopped."""
        if stop is None or not stop.settled:
            return self
        return self._replace_benchmark(take_cases(self.plan.benchmark, stop.units))

    def take_shard(self) -> Preparation:
        """Return the audit of a shard's own pools, whose models it asks."""
        benchmark, shard = self.plan.benchmark, self.execution.shard
        if shard is None or self.pools is not None:
            return self
        pools = shard.choose(len(benchmark.cases))
        return replace(self._replace_benchmark(choose_cases(benchmark, pools)), pools=pools)

    def _replace_benchmark(self, benchmark: Benchmark) -> Preparation:
        return replace(
            self,
            plan=replace(self.plan, benchmark=benchmark),
            setting=replace(self.setting, benchmark=benchmark),
        )

    def traced(self, run: Run) -> Traced:
        """Return what stages read: a run with stored traces, and what these were made from."""
        plan = self.plan
        return Traced(
            run,
            plan.benchmark,
            plan.policies,
            plan.schedules,
            plan.contrasts,
            plan.labels,
            self.setting,
            plan.masks,
            until=self.until,
            builds=plan.builds,
            pools=self.pools,
            execution=self.execution,
        )


@dataclass(slots=True)
class Traces:
    """What all cases add up to."""

    tally: Tally[Key]
    observations: Observations = field(default_factory=Observations)
    findings: list[Finding] = field(default_factory=list)
    """What each build showed, where there are several."""
    tables: dict[str, list[Sequence[object]]] = field(default_factory=dict)
    """The values that the caller asked for."""
    stop: Stop | None = None
    """Where tracing stopped because a statement held."""

    def add(self, result: CaseResult) -> None:
        """Add the result of one case."""
        self.tally.append(result.sums)
        add_counts(self.observations, result.observations)
        self.findings.extend(result.findings)
        for table, entries in result.values.items():
            self.tables.setdefault(table, []).extend(entries)


def prepare_audit(
    subject: Subject,
    stages: Sequence[Stage],
    tracing: Tracing,
    statistics: Statistics,
    pacing: Pacing,
    execution: RunExecution,
    *,
    command: str,
) -> Preparation:
    """Check an audit, prepare its policies, and plan what is done with every case."""
    pool.check_workers(execution.workers)
    check_sizes(builds=tracing.builds, concurrency=pacing.concurrency)
    if tracing.rebuilds is not None and tracing.rebuilds < 0:
        raise SpecError(f"Expected 0 rebuilds or more but got rebuilds={tracing.rebuilds}")
    statistics = statistics.check(subject.benchmark)
    subject = subject.check()
    if statistics.until is not None:
        _refuse_stopping(statistics.until, subject, stages, execution, command)
        subject = replace(subject, benchmark=shuffle_cases(subject.benchmark, statistics.seed))
    _refuse_impossible(subject, stages, tracing)
    compared = contrasts(subject.policies)
    gateway = open_gateway(subject.policies, pacing)
    policies = _prepare_policies(subject, pacing, gateway)
    adding = None if pacing.dry_run else _watch_building(subject, tracing, execution)
    policies = tuple(watch_adds(policy, adding) for policy in policies)
    subject = replace(subject, policies=policies)
    plan = Plan(
        subject.benchmark,
        policies,
        tuple(subject.schedules),
        subject.support,
        compared,
        tracing.ties,
        store=execution.directory is not None or bool(stages),
        masks=subject.masks,
        fits=cross_fit(policies, subject.benchmark.cases),
        over_time=tracing.over_time,
        builds=tracing.builds,
        values=tuple(tracing.values),
        arrivals=tuple(subject.arrivals),
        readers=_word_readers(stages),
        updates=subject.updates,
    )
    if tracing.builds == 1:
        # In a dry run only what is not built is counted, those builds included.
        checked = [p for p in policies if isinstance(p, StandIn) or not pacing.dry_run]
        number, seed = len(subject.benchmark.cases), statistics.seed
        checks = choose_checks(
            checked, plan.schedules, number, seed=seed, rebuilds=tracing.rebuilds
        )
        plan = replace(plan, checks=checks)
    building = execution.ray
    execution, notes = _choose_place(plan, execution, pacing.allowance)
    home = {ALLOWANCE: pacing.allowance, GATEWAY: gateway, pool.TICKS: adding}
    execution = execution.keep_home(home)
    return Preparation(
        subject,
        plan,
        stages,
        {
            **_describe(command, subject, plan, stages, statistics),
            **execution.describe_shard(),
        },
        statistics.setting(
            subject,
            policies,
            counts={
                coordinate.name for _, _, coordinate in plan.coordinates if coordinate.is_counted
            },
        ),
        pacing,
        execution,
        (*subject.notes, *_explain_replay(pacing.replay), *notes),
        statistics.explain_limits(subject.benchmark),
        gateway,
        statistics.until,
        adding,
        building,
    )


def _explain_replay(cassette: Cassette | None) -> Iterable[str]:
    if cassette is not None:
        yield (
            f"No model was asked: the replies of models come from the cassette "
            f"{cassette.path.name} (SHA-256 {cassette.sha256[:16]}…)"
        )


def open_gateway(policies: Sequence[Policy], pacing: Pacing) -> Gateway | None:
    """Make the proxy of the memory systems whose clients can be pointed at one."""
    if pacing.dry_run or not any(map(uses_gateway, policies)):
        return None
    return Gateway(pacing.allowance, rate_limit=pacing.rate_limit, replay=pacing.replay)


def _watch_building(
    subject: Subject, tracing: Tracing, execution: RunExecution
) -> AddProgress | None:
    """Begin to count records that are added, if a progress callback is set."""
    cases = subject.benchmark.cases
    own = any(isinstance(unwrap_policy(policy), OwnMemory) for policy in subject.policies)
    if execution.answer_progress is None or not own:
        return None
    orders = (1 + len(subject.schedules)) * tracing.builds + DRAWN_ORDERS * len(subject.arrivals)
    return AddProgress(
        execution.answer_progress, estimate_sizes(cases), orders * len(subject.policies)
    )


def _refuse_stopping(
    until: Until, subject: Subject, stages: Sequence[Stage], execution: RunExecution, command: str
) -> None:
    """Refuse to stop early where that would not be the statement of the whole audit."""
    if command == "restore" and not until.quantity:
        raise SpecError(
            "until=verdict applies to audit: restore measures no quantity that decides a verdict "
            "once a model answers; pass a precision, such as restored-absent±0.1"
        )
    if execution.shard is not None or execution.merged is not None:
        raise SpecError("until does not apply to a shard: a shard cannot know what others found")
    if until.reads_answers and not any(stage.models for stage in stages):
        raise SpecError(f"until={until.text}: '{until.quantity}' needs answers; name a model")
    if any(builder_model(policy) is not None for policy in subject.policies):
        raise SpecError(
            "until does not apply to memories whose model RoutePrism asks: they are built before "
            "anything is compared"
        )


def connect_policies(
    policies: Iterable[Policy], pacing: Pacing, gateway: Gateway | None
) -> tuple[Policy, ...]:
    """Let policies count their requests, and send them through the proxy if there is one."""

    def connect(policy: Policy) -> Policy:
        if gateway is not None and uses_gateway(policy):
            policy = route_policy(policy, gateway)
            if not isinstance(unwrap_policy(policy), Metered):
                return policy  # the proxy counts
        return meter_policy(policy, pacing.allowance)

    return tuple(map(connect, policies))


def _prepare_policies(
    subject: Subject, pacing: Pacing, gateway: Gateway | None
) -> tuple[Policy, ...]:
    """Connect the policies; in a dry run, put stand-ins in the place of some."""
    if not pacing.dry_run:
        return connect_policies(subject.policies, pacing, gateway)
    cases, limits = subject.benchmark.cases, pacing.allowance
    return stand_ins(subject.policies, cases, measure=pacing.measure, allowance=limits)


def _refuse_impossible(subject: Subject, stages: Sequence[Stage], tracing: Tracing) -> None:
    """Refuse an audit that would compare nothing, or read what does not exist."""
    policies = subject.policies
    if not policies or not (subject.schedules or subject.arrivals):
        raise SpecError(
            "an audit needs at least one policy, and an arrival model or a schedule other than "
            "forward"
        )
    if not subject.benchmark.has_text:
        _refuse_reading(subject, stages)
    if tracing.ties and not any(callable(getattr(policy, "ties", None)) for policy in policies):
        raise SpecError(f"{', '.join(subject.names)}: no policy here counts ties; focal does")
    asking = _builders(policies)
    if asking and tracing.over_time:
        raise SpecError(
            f"{next(iter(asking))} asks a model while it is built; looking at it over time would "
            f"build it again for every moment of every pool"
        )


def _refuse_reading(subject: Subject, stages: Sequence[Stage]) -> None:
    """Refuse policies and stages that would read words where a benchmark has none."""
    benchmark = subject.benchmark.name
    if stages:
        raise SpecError(f"benchmark '{benchmark}' has no texts that a model could read")
    for policy in subject.policies:
        inner = policy.inner if isinstance(policy, SourceOrder) else policy
        if interface_of(policy) != "all" or hasattr(inner, "unseen"):
            raise SpecError(
                f"benchmark '{benchmark}' has session ids and no texts, and {policy.name} "
                f"with the interface {interface_of(policy)} reads texts; use recent:k=N with "
                f"--interface all"
            )


def _choose_place(
    plan: Plan, execution: RunExecution, allowance: Allowance | None
) -> tuple[RunExecution, tuple[str, ...]]:
    """Decide where cases are traced; report where that is not the place that was asked for."""
    notes = list(_uncounted(plan.policies, allowance))
    if asking := next(iter(_builders(plan.policies)), ""):
        if execution.workers is not None and execution.workers > 1:
            notes.append(
                f"One process instead of {execution.workers}: {asking} asks a model while it is "
                f"built"
            )
        if execution.ray is not None:
            notes.append(
                f"{asking} is built on {execution.ray} and traced here: it asks a model while it "
                f"is built"
            )
    notes += explain_proxy(plan.policies, execution)
    alone = any(
        stores_states(policy)
        or (uses_gateway(policy) and execution.ray is None)
        or getattr(unwrap_policy(policy), "exclusive", False)
        for policy in plan.policies
    )
    if alone or (allowance is not None and execution.ray is None):
        execution = execution.on_one_process()
    return execution.choose_workers(len(plan.benchmark.cases), many=_MANY_CASES), tuple(notes)


def explain_proxy(policies: Sequence[Policy], execution: RunExecution) -> list[str]:
    """Report that a memory whose client asks the proxy is not built in several processes."""
    served = next((policy.name for policy in policies if uses_gateway(policy)), "")
    if not served or (execution.workers or 1) == 1 or execution.ray is not None:
        return []
    return [
        f"{served} was built in one process, because its model is asked through the proxy of this "
        f"command"
    ]


def _builders(policies: Iterable[Policy]) -> dict[str, Model]:
    """Return the model of each policy that is built by one."""
    models = {policy.name: builder_model(policy) for policy in policies}
    return {name: model for name, model in models.items() if model is not None}


def _uncounted(policies: Sequence[Policy], allowance: Allowance | None) -> Iterable[str]:
    """Name the memories whose requests a limit does not include."""
    if allowance is None or not allowance.limited:
        return ()
    return (
        f"The limits do not include what {policy.name} calls by itself while it is built: "
        f"RoutePrism cannot see its requests. Declare calls_per_add to have them counted"
        for policy in policies
        if not can_limit_calls(policy)
    )


def _word_readers(stages: Sequence[Stage]) -> tuple[Model, ...]:
    """Return the models that look for words in records, each once."""
    models = {model.name: model for stage in stages for model in stage.models}
    return tuple(model for model in models.values() if callable(getattr(model, "unseen", None)))


def _describe(
    command: str, subject: Subject, plan: Plan, stages: Sequence[Stage], statistics: Statistics
) -> dict[str, object]:
    """Return what makes results comparable, for the manifest."""
    builders = {
        name: {model.name: dict(model.settings)}
        for name, model in _builders(subject.policies).items()
    }
    return {
        **{name: value for stage in stages for name, value in stage.described().items()},
        "command": command,
        **subject.describe(),
        **({"builders": builders} if builders else {}),
        "schedules": [schedule.name for schedule in plan.schedules],
        **({"arrivals": [model.name for model in plan.arrivals]} if plan.arrivals else {}),
        "masks": subject.digest_masks(),
        "ties": plan.ties,
        **statistics.describe(),
        **({"over_time": True} if plan.over_time else {}),
        **({"builds": plan.builds} if plan.builds > 1 else {}),
        **({"folds": len(plan.fits.by_fold)} if plan.fits and plan.fits.by_fold else {}),
    }


def trace_cases(audit: Preparation, run: Run | None) -> Traces:
    """Build what has to be built first, then trace every case."""
    plan = audit.plan
    if run is not None:
        stored = [policy for policy in plan.policies if stores_states(policy)]
        plan, _ = prepare_memories(audit, run, run.store, stored)
    traces = Traces(Tally(plan.benchmark.weighting))
    number = len(plan.benchmark.cases)
    watch = open_watch(
        audit.until,
        plan.policies,
        plan.schedules,
        plan.arrivals,
        models=chain.from_iterable(stage.models for stage in audit.stages),
        evidence=bool(plan.labels),
    )

    def is_enough(result: CaseResult) -> bool:
        return watch is not None and watch.add(result.sums)

    def add(result: CaseResult) -> None:
        traces.add(result)
        if audit.adding is not None:
            audit.adding.end_pool()

    with (
        nullcontext() if audit.gateway is None else audit.gateway.serving(run),
        nullcontext() if audit.adding is None else audit.adding.watching(),
    ):
        map_cases(
            work,
            plan,
            add,
            number,
            run,
            _choose_execution(audit, watch),
            allowance=audit.pacing.allowance,
            stop=None if watch is None else is_enough,
            resumable=audit.pacing.allowance is None and audit.gateway is None,
        )
    if watch is not None:
        traces.stop = watch.stop(number)
    allowance = audit.pacing.allowance
    if allowance is not None and allowance.reached:
        if run is not None:
            run.suspend()
        raise LimitError(_explain_limit(audit, allowance, len(traces.observations.failures)))
    if run is not None and traces.findings:
        run.keep("builds", traces.findings)
    return traces


def _choose_execution(audit: Preparation, watch: Watch | None) -> RunExecution:
    """Use one process if calls are made until a stop: several would make calls beyond it."""
    if watch is None or not any(map(makes_calls, audit.plan.policies)):
        return audit.execution
    return audit.execution.on_one_process()


def prepare_memories(
    audit: Preparation, run: Run, states: Path, policies: Sequence[Policy]
) -> tuple[Plan, dict[str, Cost]]:
    """Build the policies whose states are stored, and find the routes that need no new build.

    Gives the plan that reads both, and in a dry run what building would take.
    """
    plan, costs = audit.plan, {}
    if policies:
        plan = replace(plan, states=states)
        builds = partial(builds_of, audit.take_shard().plan, builds=plan.builds)
        progress = None if audit.pacing.dry_run else audit.execution.answer_progress
        costs = construct(run, states, policies, builds, audit.pacing, progress, audit.building)
    if not run.fresh and any(map(is_external, plan.policies)) and run.store.exists():
        plan = replace(plan, earlier_run=run.directory)
    return plan, costs


def _explain_limit(audit: Preparation, allowance: Allowance, missing: int) -> str:
    """Report how far building came, and how to continue."""
    try:
        allowance.check()
    except LimitError as error:
        reason = str(error)
    built = f"{reason} while memories were built; at least {max(missing, 1)} routes are missing. "
    if audit.execution.directory is None:
        return f"{built}Nothing is kept without a run directory"
    return (
        f"{built}Routes that were built are kept in the run; run the same command again, or with "
        f"a higher limit, to build the rest"
    )
