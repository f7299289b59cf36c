"""The Python functions of the commands that build memories: one for each command."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

from routeprism.answers import AnswerProgress
from routeprism.api.demonstration import list_demo_stages, prepare_demo
from routeprism.api.requests import RunRequest, prepare, takes_settings
from routeprism.api.settings import settings_for
from routeprism.errors import SpecError, nearest
from routeprism.experiments import (
    DRAWN_ORDERS,
    WORKPLACE,
    Audit,
    Budgets,
    Curve,
    Looking,
    Outcome,
    Pacing,
    Remedies,
    RunExecution,
    Shard,
    ShardResults,
    Statistics,
    Subject,
    Tracing,
    ask_routes,
    audit_budgets,
    audit_subject,
    check_shards,
    explore_subject,
    make_stages,
    outcome_named,
    parse_shard,
    parse_until,
    with_arms,
)
from routeprism.landscape import Method
from routeprism.models import Allowance
from routeprism.orders import FORWARD, ArrivalModel, Schedule, parse_arrival, parse_schedule
from routeprism.policies import Policy, make_policy, parse_interface, unwrap_policy
from routeprism.policies.remedies import list_remedies
from routeprism.review.witnesses import save_witnesses
from routeprism.routes import is_costly
from routeprism.settings import make_settings, options_of
from routeprism.workers import crew_of, open_cluster

__all__ = [
    "audit",
    "curve",
    "demo",
    "explore_orders",
    "perform",
    "remedy",
    "restore",
]

PoolProgress = Callable[[int, int], None]
StepProgress = Callable[[str, int, int], None]
_AuditPlan = tuple[Subject, list[Any]]
"""What an audit is about, and the stages that it performs."""

_EXTRAS: Mapping[str, tuple[str, str]] = {
    "progress": ("PoolProgress | None", "called with (pools done, pools in all)."),
    "answer_progress": (
        "AnswerProgress | None",
        "called with (model, progress of its answers).",
    ),
    "allowance": (
        "Allowance | None",
        "a `routeprism.models.Allowance` that several calls share, instead of max_calls and "
        "max_cost.",
    ),
}
"""Arguments of the functions that are no settings: their types, and what they are."""


def _performs(
    command: str, *positional: str, extras: Sequence[str] = ("progress", "answer_progress")
) -> Callable[[Callable[..., Audit]], Callable[..., Audit]]:
    """Make a function take the settings of a command, and some of `_EXTRAS`, as arguments."""

    def decorate(function: Callable[..., Audit]) -> Callable[..., Audit]:
        settings = inspect.Parameter("settings", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        own = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_EXTRAS[name][0]
            )
            for name in extras
        ]
        signature = inspect.Signature([settings, *own], return_annotation="Audit")
        function.__signature__ = signature  # type: ignore[attr-defined]
        meanings = {name: _EXTRAS[name][1] for name in extras}
        return takes_settings(command, *positional, **meanings)(function)

    return decorate


@_performs("audit", "benchmark", "*policies", extras=tuple(_EXTRAS))
def audit(settings: Any, **extras: Any) -> Audit:
    """Build memories forward and in different orders, and report what changed, with intervals.

    Policies are specs such as `focal` or `recent:k=3`, policies, or memory classes of your own with
    `add(record)`, `retained()` and `expose(query)`.
    """
    return _perform_named("audit", settings, **extras)


@_performs("restore", "benchmark", "*policies", extras=tuple(_EXTRAS))
def restore(settings: Any, **extras: Any) -> Audit:
    """Put displaced records back, against matched records that do not carry the answer.

    Eligibility is decided by support labels and exposed sources alone, before any answer exists.
    """
    return _perform_named("restore", settings, **extras)


@_performs("remedy", "benchmark", "*policies", extras=tuple(_EXTRAS))
def remedy(settings: Any, **extras: Any) -> Audit:
    """Measure standard repairs around a memory: how much evidence each saves, and what it costs.

    The repairs are holding records back, rebuilding from a log, tying operations to event time,
    larger budgets, and searching a log of dropped records (`routeprism.policies.remedies`).
    """
    return _perform_named("remedy", settings, **extras)


def _perform_named(
    command: str, settings: Any, *, allowance: Allowance | None = None, **progress: Any
) -> Audit:
    """Perform a command; a result that is not stored can repeat its study for its questions."""
    request = prepare(command, settings, allowance=allowance)
    result = perform(request, **progress)
    if command == "audit":
        result = replace(result, measure_repairs=partial(_measure_repairs, request))
    if request.directory is not None or request.settings.dry_run:
        return result
    return replace(result, repeat=partial(_repeat, request))


def _repeat(request: RunRequest, directory: Path) -> None:
    """Repeat a study and store it; refuse what would cost money or come out differently."""
    inner = map(unwrap_policy, request.policies)
    uncertain = any(getattr(policy, "deterministic", True) is False for policy in inner)
    if uncertain or request.may_spend() or any(map(is_costly, request.policies)):
        reason = "its memories differ by chance" if uncertain else "repeating it may cost money"
        raise SpecError(
            f"The run is not stored, and {reason}: pass run='DIRECTORY' to the function"
        )
    perform(replace(request, settings=replace(request.settings, run=directory)))


def _measure_repairs(request: RunRequest) -> Audit:
    """Measure the standard repairs of audited memories, without a model and without a run."""
    if any(map(is_costly, request.policies)):
        raise SpecError(
            "Building these memories may cost money or take long: call routeprism.remedy() with "
            "the arrivals that you need"
        )
    left_out = ("run", "models", "base_url", "dry_run", "shard", "shards", "merge")
    values = {
        item.name: getattr(request.settings, item.name)
        for item in options_of(settings_for("remedy"))
        if hasattr(request.settings, item.name)
        and item.name not in left_out
        and not item.needs_model
    }
    values |= {"benchmark": request.benchmark, "policies": request.policies}
    return perform(prepare("remedy", make_settings(settings_for("remedy"), values)))


@_performs("orders", "benchmark", "*policies", extras=["progress"])
def explore_orders(settings: Any, **extras: Any) -> Audit:
    """Look at every order of every pool, or at drawn ones: what is kept, the worst order, and why.

    The result's `findings` contain survival maps, distributions of retained sets, worst orders and
    smallest reorderings (docs/orders.md). `shrink=True` means `support`.
    """
    return perform(prepare("orders", settings), **extras)


@_performs("curve", "benchmark", "policy")
def curve(settings: Any, **extras: Any) -> Audit:
    """Find the budget that buys stability: one policy at several budgets and contexts."""
    return perform(prepare("curve", settings), **extras)


@_performs("demo")
def demo(settings: Any, **extras: Any) -> Audit:
    """Run the whole protocol on the synthetic sample, read by the embedded reader."""
    return perform(prepare_demo(settings), **extras)


def perform(
    request: RunRequest,
    progress: PoolProgress | None = None,
    answer_progress: AnswerProgress | None = None,
    steps: StepProgress | None = None,
) -> Audit:
    """Do what a request asks for; a shard stores the results of its pools in its run."""
    save = getattr(request.settings, "save", None)
    if save is not None and not Path(save).parent.is_dir():  # before the work, not after it
        raise SpecError(f"{save} cannot be written: its directory does not exist")
    shard = _choose_shard(request)
    with (
        closing(shard.file) if shard is not None and shard.file is not None else nullcontext(),
        open_cluster(getattr(request.settings, "ray", None)) as cluster,
    ):
        asking = None if request.asking is None else replace(request.asking, cluster=cluster)
        request = replace(request, cluster=cluster, asking=asking)
        execution = _make_execution(request, progress, answer_progress, steps, shard)
        audit = _PERFORMERS[request.command](request, execution)
        if shard is not None:
            shard.finish()
    if save is not None and not request.settings.dry_run:
        save_witnesses(audit, request.benchmark, Path(save))
    return audit


def _choose_shard(request: RunRequest) -> Shard | None:
    """Return the part of the pools to work on; refuse one that could not be merged."""
    text = getattr(request.settings, "shard", None)
    if text is None:
        return None
    if request.directory is None:
        raise SpecError("a shard stores its results: set run as well")
    shard = parse_shard(text)
    shard.choose(len(request.benchmark.cases))
    return shard if request.settings.dry_run else shard.write_to(request.directory)


def _perform_audit(
    request: RunRequest, execution: RunExecution, plan: Callable[[RunRequest], _AuditPlan]
) -> Audit:
    settings = request.settings
    subject, stages = plan(request)
    with crew_of(settings.workers, WORKPLACE, ray=settings.ray) as crew:
        return audit_subject(
            subject,
            stages,
            tracing=Tracing(
                getattr(settings, "ties", False),
                getattr(settings, "over_time", False),
                getattr(settings, "builds", 1),
                settings.rebuilds,
            ),
            statistics=_statistics(settings),
            pacing=_pacing(request),
            execution=replace(execution, crew=crew),
            command=request.command,
        )


def _plan_audit(request: RunRequest) -> _AuditPlan:
    """Plan what the registered experiments perform on the policies of a request."""
    settings, subject = request.settings, _subject(request)
    options = {item.name: getattr(settings, item.name) for item in options_of(type(settings))}
    if options.get("mechanism"):
        subject = replace(subject, policies=with_arms(request.policies))
    return subject, make_stages(request.command, options, request.asking, request.benchmark)


def _plan_remedy(request: RunRequest) -> _AuditPlan:
    """Plan an audit of the policies and of their standard repairs."""
    subject, stages = _plan_audit(request)
    repairs = list_repairs(request)
    repaired = [policy for policies in repairs.values() for policy in policies]
    answers = [] if request.asking is None else [ask_routes(request.asking)]
    return (
        replace(subject, policies=(*request.policies, *repaired)),
        [*stages, Remedies.of(repairs), *answers],
    )


def _plan_demo(request: RunRequest) -> _AuditPlan:
    """Plan the demonstration, which also audits the arms of its first policy."""
    arms = with_arms(request.policies[:1])
    subject = replace(_subject(request), policies=(*arms, *request.policies[1:]))
    return subject, list_demo_stages(request.asking)


def _perform_orders(request: RunRequest, execution: RunExecution) -> Audit:
    settings = request.settings
    if settings.worst not in ("", "support", "J", "stale-only"):
        raise SpecError(f"Expected 'support', 'J' or 'stale-only' but got worst={settings.worst!r}")
    method = settings.method
    if method is not None and method not in get_args(Method):
        raise SpecError(f"There is no method '{method}'. {nearest(method, get_args(Method))}")
    models = [parse_arrival(model) for model in settings.arrivals]
    return explore_subject(
        _subject(request),
        Looking(
            tuple(dict.fromkeys(models)),
            method,
            settings.orders,
            settings.half_width,
            settings.most_orders,
            settings.most_states,
            settings.worst,
            _outcome(settings.shrink),
            settings.allocate,
        ),
        statistics=_statistics(settings),
        pacing=_pacing(request),
        execution=execution,
    )


def _outcome(shrink: bool | Outcome | None) -> Outcome | None:
    if shrink is None or shrink is False:
        return None
    outcome = "support" if shrink is True else shrink
    return outcome_named(outcome) if isinstance(outcome, str) else outcome


def _perform_curve(request: RunRequest, execution: RunExecution) -> Audit:
    settings = request.settings
    sizes = Budgets.parse(settings.budgets)
    interface = settings.interface or request.benchmark.interface
    interfaces = (
        Budgets.parse(settings.contexts).of(interface) if settings.contexts else [interface]
    )
    specs, base_url = sizes.of(settings.policy), settings.base_url
    return audit_budgets(
        replace(_subject(request), policies=()),
        Curve(
            settings.policy,
            sizes,
            lambda interface: [make_policy(spec, interface, base_url=base_url) for spec in specs],
            [parse_interface(spec) for spec in interfaces],
            settings.stable,
        ),
        statistics=_statistics(settings),
        pacing=_pacing(request),
        execution=execution,
    )


def list_repairs(request: RunRequest) -> dict[Policy, list[Policy]]:
    """List the standard repairs of each policy that a request names."""
    settings = request.settings
    interface = parse_interface(settings.interface or request.benchmark.interface)
    make = partial(make_policy, interface=interface, base_url=settings.base_url)
    options = {"disorder": settings.disorder, "every": settings.every}
    return {
        policy: list_remedies(policy, **options, visibility=settings.held, make=make)
        for policy in request.policies
    }


def choose_arrivals(request: RunRequest) -> tuple[list[ArrivalModel], list[Schedule], str]:
    """Choose the arrival models and schedules of an audit, and explain what was left out.

    By default these are the benchmark's arrival models and full reversal. If you name arrival
    models, models answer on one seeded order of each. Memories that may cost money to build, or run
    outside this process, keep one alternative order.
    """
    settings = request.settings
    schedules = list(getattr(settings, "schedules", ()) or ())
    models = list(getattr(settings, "arrivals", ()) or ())
    note = ""
    if not models and not schedules:
        schedules = ["replay"]
        if hasattr(settings, "arrivals"):
            models, note = _choose_default_arrivals(request)
    elif not schedules and request.asking is not None:
        schedules = [f"{model}{',' if ':' in str(model) else ':'}seed=0" for model in models]
        note = (
            f"Answers were collected for one drawn order of each user: {', '.join(schedules)}. "
            f"Every other number is the expectation over the arrival model"
        )
    return list(map(parse_arrival, models)), list(map(parse_schedule, schedules)), note


def _choose_default_arrivals(request: RunRequest) -> tuple[list[str], str]:
    """Choose the benchmark's arrival models, or none if building them may be expensive."""
    models = list(request.benchmark.arrivals)
    if models and any(map(is_costly, request.policies)):
        note = (
            f"Only full reversal was built, because building may cost money or take long; "
            f"{' and '.join(map(str, models))} would take up to "
            f"{2 * DRAWN_ORDERS} further builds of each pool: pass arrivals=MODEL for each"
        )
        return [], note
    if models and request.asking is not None:
        more = ": pass arrivals=MODEL to collect them for one drawn order of an arrival model"
        note = "Answers were collected for full reversal only"
        return models, note if request.command == "demo" else f"{note}{more}"
    return models, ""


def _subject(request: RunRequest) -> Subject:
    settings = request.settings
    arrivals: Sequence[ArrivalModel] = ()
    schedules: Sequence[Schedule] = ()
    note = ""
    if hasattr(settings, "schedules") and request.command != "orders":
        arrivals, schedules, note = choose_arrivals(request)
    against = getattr(settings, "against", FORWARD)
    reference = parse_schedule(against)
    schedules = [schedule.compare_with(reference) for schedule in schedules]
    return Subject(
        request.benchmark,
        request.policies,
        schedules,
        settings.kinds,
        settings.labels,
        request.masks,
        tuple(arrivals),
        tuple(filter(None, (note, _describe_event_order(request)))),
    )


def _describe_event_order(request: RunRequest) -> str:
    """Explain which order repairs restore where records have no timestamp; else empty."""
    if request.command != "remedy":
        return ""
    records = [record for case in request.benchmark.cases for record in case.pool.records]
    undated = sum(not record.timestamp for record in records)
    if undated == len(records):
        return "Records have no timestamps, so source position is the event order of the repairs"
    if not undated:
        return ""
    return (
        f"{undated} of {len(records)} records have no timestamp: repairs place them before all "
        f"others, by source position"
    )


def _statistics(settings: Any) -> Statistics:
    until = getattr(settings, "until", None)
    return Statistics(
        settings.seed,
        settings.resamples,
        settings.interval,
        None if until is None else parse_until(until),
    )


def _pacing(request: RunRequest) -> Pacing:
    settings = request.settings
    return Pacing(
        getattr(settings, "rate_limit", None),
        getattr(settings, "concurrency", None),
        settings.dry_run,
        request.allowance,
        getattr(settings, "measure", False),
        request.cassette,
        _read_path(getattr(settings, "record", None)),
        request.cluster,
    )


def _read_path(path: str | Path | None) -> Path | None:
    return None if path is None else Path(path)


def _make_execution(
    request: RunRequest,
    progress: PoolProgress | None,
    answer_progress: AnswerProgress | None,
    steps: StepProgress | None,
    shard: Shard | None,
) -> RunExecution:
    shards = getattr(request.settings, "shards", ())
    return RunExecution(
        request.directory,
        request.settings.workers,
        getattr(request.settings, "ray", None),
        progress=progress,
        answer_progress=answer_progress,
        steps=steps,
        command_line=tuple(request.words),
        shard=shard,
        merged=ShardResults(check_shards([Path(run) for run in shards])[0]) if shards else None,
    )


_PERFORMERS: Mapping[str, Callable[[RunRequest, RunExecution], Audit]] = {
    "audit": partial(_perform_audit, plan=_plan_audit),
    "restore": partial(_perform_audit, plan=_plan_audit),
    "remedy": partial(_perform_audit, plan=_plan_remedy),
    "demo": partial(_perform_audit, plan=_plan_demo),
    "orders": _perform_orders,
    "curve": _perform_curve,
}
"""How each command that makes a run performs a request."""
