"""The Python side of the command line: one function for each command, with the same names."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from routeprism.answers import EmbeddedJudge, Judge, ModelJudge, Progress, RecordedJudge
from routeprism.errors import SpecError, nearest
from routeprism.experiments import (
    LAYOUTS,
    MARGIN,
    SEED,
    STABLE,
    WORKPLACE,
    Asking,
    AskRoutes,
    Audit,
    Budgets,
    Display,
    Layout,
    Looking,
    Manner,
    Outcome,
    Provenances,
    Restore,
    Reuse,
    SupportChangeAgreement,
    outcome_named,
    passes_of,
    run_audit,
    run_curve,
    run_orders,
    with_arms,
)
from routeprism.experiments._conditions import DESIGNS, DesignName
from routeprism.experiments._stages import Stage
from routeprism.landscape import DRAWN, MOST_DRAWN, MOST_STATES, Method
from routeprism.measures import RESAMPLES, Interval
from routeprism.models import Model, make_model, make_models
from routeprism.orders import ArrivalModel, parse_arrival, parse_schedule
from routeprism.policies import Policy, SourceOrder, as_policy, make_policy, parse_interface
from routeprism.prompts import Control, Filler, Provenance
from routeprism.records import Benchmark, load_benchmark, only_kinds
from routeprism.workers import crew_of

__all__ = ["Audit", "audit", "curve", "explore_orders", "restore"]


def audit(
    benchmark: str | Path | Benchmark,
    *policies: Any,
    schedules: Sequence[str] = ("replay",),
    kinds: Sequence[str] = (),
    interface: str | None = None,
    labels: str | None = None,
    masks: Mapping[str, Collection[str]] | None = None,
    comparators: bool = False,
    mechanism: bool = False,
    ties: bool = False,
    over_time: bool = False,
    builds: int = 1,
    models: Sequence[str | Model] = (),
    draws: int = 1,
    control: Control = "exact",
    fillers: Sequence[Filler] = ("A",),
    provenance: Provenance | Sequence[Provenance] = "preserved",
    margin: float = MARGIN,
    display: Sequence[Layout] = (),
    reuse: bool = False,
    batches: Sequence[str] = ("",),
    judge: str | Judge | None = None,
    base_url: str | None = None,
    dry_run: bool = False,
    rate_limit: float | None = None,
    concurrency: int | None = None,
    data: str | Path | None = None,
    run: str | Path | None = None,
    seed: int = SEED,
    resamples: int = RESAMPLES,
    interval: Interval | None = None,
    workers: int | None = 1,
    ray: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    asked: Callable[[str, Progress], None] | None = None,
) -> Audit:
    """Build memories forward and in other orders, and say what changed, with intervals.

    Args:
        benchmark: a name (`sample`, `personamem`, `locomo`), a directory of your own data, or a
            `Benchmark`.
        policies: specs such as `focal` or `recent:k=3`, policies, or memory classes of your own
            with `add(record)`, `retained()` and `expose(query)`.
        schedules: the orders to compare with forward.
        kinds: only the questions of these kinds; all unless given.
        interface: what whole-record policies expose through; the benchmark's own unless given.
        labels: which support labels to read; the benchmark's first unless given.
        masks: named sets of question ids; every number is given within and outside of each, too.
        comparators: whether to run the source-order comparator of every policy too.
        mechanism: whether to run every policy that declares its order-dependent operations with
            each set of them fixed to source order, too.
        ties: whether to count the ties that processing order decided.
        over_time: whether to look at what is retained after each of the first records, too.
        builds: how often each route is built; two or more tell order from a memory's own chance.
        models: who answers, such as `reader` or `openai:MODEL`; nobody unless given.
        draws: answers per route and prompt; two or more tell the model's own noise apart.
        control: what is held equal between the two prompts of a pair.
        fillers: the padding words to use, each with its own pair of prompts.
        provenance: what the prompt says of conflicting records; several are compared.
        margin: by how much accuracy may be worse under one of several instructions.
        display: layouts that native block order is compared with: `reversed`, `source`.
        reuse: whether to estimate over all but each user's first question, too.
        batches: names of independent realisations of the same prompts.
        judge: who judges free text: `embedded`, a model, or `recorded` for the verdicts that came
            with recorded answers; those where all answers have them, else `embedded`, unless given.
        base_url: where models are served that policies name and ask while building.
        dry_run: only say what the models would take (`Audit.costs`).
        rate_limit: requests a minute at most, for each model.
        concurrency: requests at once, where it should differ from the model's own number.
        data: where benchmark files are; the variable ROUTEPRISM_DATA unless given.
        run: a directory to keep the run in; nothing is kept unless given.
        seed: of the bootstrap.
        resamples: of the bootstrap.
        interval: how limits are read: `expanded`, `percentile`, `bca` or `studentised`; as the
            benchmark declares unless given (docs/statistics.md).
        workers: processes to use; None chooses by the number of pools. More than one needs policies
            that can be imported, and a script with a `__main__` guard.
        ray: the address of a Ray cluster to work on instead, such as `auto` or `HOST:PORT`.
        progress: called with (pools done, pools in all).
        asked: called with (model, progress of its answers).

    """
    arms = (provenance,) if isinstance(provenance, str) else tuple(dict.fromkeys(provenance))
    if not arms:
        raise SpecError("asking needs at least one provenance")
    asking = _asking(
        models,
        Manner(draws, control, tuple(fillers), arms[0]),
        batches,
        judge,
        rate_limit=rate_limit,
        concurrency=concurrency,
    )
    stages = _audit_stages(asking, arms, margin, display, reuse)
    with crew_of(workers, WORKPLACE, ray=ray) as crew:  # they start while the data is read
        loaded = _benchmark(benchmark, kinds, data)
        made = _policies(policies, loaded, interface, comparators, base_url)
        return run_audit(
            loaded,
            with_arms(made) if mechanism else made,
            [parse_schedule(schedule) for schedule in schedules],
            kinds=kinds,
            labels=labels,
            masks=masks or {},
            ties=ties,
            over_time=over_time,
            stages=[*_label_stages(loaded), *stages],
            builds=builds,
            dry_run=dry_run,
            seed=seed,
            resamples=resamples,
            interval=interval,
            workers=workers,
            ray=ray,
            directory=None if run is None else Path(run),
            progress=progress,
            asked=asked,
            rate_limit=rate_limit,
            concurrency=concurrency,
            crew=crew,
        )


def restore(
    benchmark: str | Path | Benchmark,
    *policies: Any,
    models: Sequence[str | Model],
    schedules: Sequence[str] = ("replay",),
    kinds: Sequence[str] = (),
    interface: str | None = None,
    labels: str | None = None,
    masks: Mapping[str, Collection[str]] | None = None,
    draws: int = 3,
    control: Control = "aligned",
    fillers: Sequence[Filler] = ("A",),
    provenance: Provenance = "preserved",
    batches: Sequence[str] = ("",),
    judge: str | Judge | None = None,
    designs: Sequence[DesignName] = (),
    bundle_tokens: int = 16_000,
    base_url: str | None = None,
    dry_run: bool = False,
    rate_limit: float | None = None,
    concurrency: int | None = None,
    data: str | Path | None = None,
    run: str | Path | None = None,
    seed: int = SEED,
    resamples: int = RESAMPLES,
    interval: Interval | None = None,
    workers: int | None = 1,
    ray: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    asked: Callable[[str, Progress], None] | None = None,
) -> Audit:
    """Put displaced records back, against matched ones that do not carry the answer.

    Eligibility is decided by support labels and exposed sources alone, before any answer exists.
    Arguments are those of `audit`; `designs` are those to ask (`single`, `bundle`, `identity-swap`;
    all unless given), `bundle_tokens` is how long the prompt of a bundle may be.
    """
    for name in designs:
        if name not in DESIGNS:
            raise SpecError(f"There is no design '{name}'. {nearest(name, DESIGNS)}")
    asking = _asking(
        models,
        Manner(draws, control, tuple(fillers), provenance),
        batches,
        judge,
        rate_limit=rate_limit,
        concurrency=concurrency,
    )
    if asking is None:
        raise SpecError("restoration needs at least one model to answer")
    loaded = _benchmark(benchmark, kinds, data)
    return run_audit(
        loaded,
        _policies(policies, loaded, interface, False, base_url),
        [parse_schedule(schedule) for schedule in schedules],
        kinds=kinds,
        labels=labels,
        masks=masks or {},
        stages=[*_label_stages(loaded), Restore(asking, bundle_tokens, tuple(designs) or DESIGNS)],
        command="restore",
        dry_run=dry_run,
        seed=seed,
        resamples=resamples,
        interval=interval,
        workers=workers,
        ray=ray,
        directory=None if run is None else Path(run),
        progress=progress,
        asked=asked,
        rate_limit=rate_limit,
        concurrency=concurrency,
    )


def explore_orders(
    benchmark: str | Path | Benchmark,
    *policies: Any,
    arrivals: Sequence[str | ArrivalModel] = ("uniform",),
    kinds: Sequence[str] = (),
    interface: str | None = None,
    labels: str | None = None,
    masks: Mapping[str, Collection[str]] | None = None,
    comparators: bool = False,
    method: Method | None = None,
    drawn: int = DRAWN,
    half_width: float | None = None,
    most_drawn: int = MOST_DRAWN,
    most_states: int = MOST_STATES,
    worst: str = "",
    shrink: bool | Outcome = False,
    data: str | Path | None = None,
    run: str | Path | None = None,
    seed: int = SEED,
    resamples: int = RESAMPLES,
    interval: Interval | None = None,
    workers: int | None = 1,
    ray: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Audit:
    """Look at every order of every pool, or at drawn ones: what is kept, what is worst, and why.

    The result's `findings` hold what is no single number: survival maps, distributions of retained
    sets, worst orders and smallest reorderings (docs/orders.md).

    Args:
        benchmark: as for `audit`.
        policies: as for `audit`.
        arrivals: arrival models such as `uniform`, `jitter:w=2` or `timestamps`, or schedules.
        kinds: only the questions of these kinds; all unless given.
        interface: what whole-record policies expose through; the benchmark's own unless given.
        labels: which support labels to read; the benchmark's first unless given.
        masks: named sets of question ids; every number is given within and outside of each, too.
        comparators: whether to look at the source-order comparator of every policy too.
        method: `enumerated`, `merged`, `replayed` or `sampled`; the best that can be unless given.
        drawn: how many orders are drawn where not all can be looked at.
        half_width: draw until the limits of all shares are this close, instead.
        most_drawn: how many are drawn for that at most.
        most_states: how many states are looked at before orders are drawn.
        worst: what the worst order is to make lowest: `support` or `J`; no search unless given.
        shrink: whether to find the smallest reordering that changes whether a question's support
            is kept; or another outcome: `retained`, `exposed`, or a function of a memory and a
            question.
        data: where benchmark files are; the variable ROUTEPRISM_DATA unless given.
        run: a directory to keep the run in; nothing is kept unless given.
        seed: of the bootstrap.
        resamples: of the bootstrap.
        interval: as for `audit`.
        workers: processes to use; None uses all cores.
        ray: the address of a Ray cluster to work on instead.
        progress: called with (pools done, pools in all).

    """
    if worst not in ("", "support", "J"):
        raise SpecError(f"Expected 'support' or 'J' but got worst={worst!r}")
    if method is not None and method not in get_args(Method):
        raise SpecError(f"There is no method '{method}'. {nearest(method, get_args(Method))}")
    outcome: Outcome | None = None
    if shrink is not False:
        outcome = "support" if shrink is True else shrink
        outcome = outcome_named(outcome) if isinstance(outcome, str) else outcome
    models = [parse_arrival(one) if isinstance(one, str) else one for one in arrivals]
    loaded = _benchmark(benchmark, kinds, data)
    return run_orders(
        loaded,
        _policies(policies, loaded, interface, comparators, None),
        Looking(
            tuple(dict.fromkeys(models)),
            method,
            drawn,
            half_width,
            most_drawn,
            most_states,
            worst,
            outcome,
        ),
        kinds=kinds,
        labels=labels,
        masks=masks,
        seed=seed,
        resamples=resamples,
        interval=interval,
        workers=workers,
        ray=ray,
        directory=None if run is None else Path(run),
        progress=progress,
    )


def _label_stages(benchmark: Benchmark) -> list[Stage]:
    """Compare label passes, where there are two or more."""
    return [SupportChangeAgreement()] if len(passes_of(benchmark)) > 1 else []


def _audit_stages(
    asking: Asking | None,
    arms: tuple[Provenance, ...],
    margin: float,
    display: Sequence[Layout],
    reuse: bool,
) -> list[Stage]:
    """Give what an audit does once there are traces."""
    for layout in display:
        if layout not in LAYOUTS:
            raise SpecError(f"There is no display '{layout}'. {nearest(layout, LAYOUTS)}")
    if not 0 < margin < 1:
        raise SpecError(f"Expected a margin between 0 and 1 but got margin={margin}")
    if asking is None:
        if display or reuse or len(arms) > 1:
            raise SpecError("display, reuse and several instructions need a model to answer")
        return []
    stages: list[Stage] = [AskRoutes(asking)]
    if len(arms) > 1:
        stages.append(Provenances(asking, arms, margin))
    if display:
        stages.append(Display(asking, tuple(dict.fromkeys(display))))
    if reuse:
        stages.append(Reuse(asking))
    return stages


def curve(
    benchmark: str | Path | Benchmark,
    policy: str = "recent",
    *,
    budgets: str = "k=4,8,16,32",
    contexts: str | None = None,
    schedules: Sequence[str] = ("replay", "jitter:w=2"),
    kinds: Sequence[str] = (),
    interface: str | None = None,
    labels: str | None = None,
    stable: float = STABLE,
    data: str | Path | None = None,
    run: str | Path | None = None,
    seed: int = SEED,
    resamples: int = RESAMPLES,
    interval: Interval | None = None,
    workers: int | None = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Audit:
    """Say which budget buys stability: one policy at several budgets, through several contexts.

    Args:
        benchmark: as for `audit`.
        policy: the policy without its budget, such as `recent`.
        budgets: the parameter of the policy that is the budget, and its values.
        contexts: the same for the interface, such as `k=1,3,10` or `chars=8192,32768`; only the
            interface as it is unless given.
        schedules: the orders to compare with forward.
        kinds: only the questions of these kinds.
        interface: the interface without its budget; the benchmark's own unless given.
        labels: which support labels to read.
        stable: the overlap from which on two orders count as the same.
        data: where benchmark files are.
        run: a directory to keep the numbers in; nothing is kept unless given.
        seed: of the bootstrap.
        resamples: of the bootstrap.
        interval: as for `audit`.
        workers: as for `audit`.
        progress: called with (pools done, pools in all).

    """
    loaded = _benchmark(benchmark, kinds, data)
    sizes = Budgets.parse(budgets)
    shown = interface or loaded.interface
    interfaces = Budgets.parse(contexts).of(shown) if contexts else [shown]
    return run_curve(
        loaded,
        policy,
        sizes,
        lambda one: [make_policy(spec, one) for spec in sizes.of(policy)],
        [parse_interface(one) for one in interfaces],
        [parse_schedule(schedule) for schedule in schedules],
        kinds=kinds,
        labels=labels,
        stable=stable,
        seed=seed,
        resamples=resamples,
        interval=interval,
        workers=workers,
        directory=None if run is None else Path(run),
        progress=progress,
    )


def _benchmark(
    benchmark: str | Path | Benchmark, kinds: Sequence[str], data: str | Path | None
) -> Benchmark:
    if not isinstance(benchmark, Benchmark):
        benchmark = load_benchmark(str(benchmark), _data(data))
    return only_kinds(benchmark, kinds) if kinds else benchmark


def _policies(
    policies: Sequence[Any],
    benchmark: Benchmark,
    interface: str | None,
    comparators: bool,
    base_url: str | None,
) -> list[Policy]:
    shown = parse_interface(interface or benchmark.interface)
    made: list[Policy] = [
        make_policy(policy, shown, base_url=base_url)
        if isinstance(policy, str)
        else as_policy(policy)
        for policy in policies
    ]
    if comparators:
        named = {policy.name for policy in made}
        twins = [SourceOrder(p) for p in made if not isinstance(p, SourceOrder)]
        made.extend(twin for twin in twins if twin.name not in named)
    return made


def _asking(
    models: Sequence[str | Model],
    manner: Manner,
    batches: Sequence[str],
    judge: str | Judge | None,
    *,
    rate_limit: float | None,
    concurrency: int | None,
) -> Asking | None:
    if not models:
        return None
    if manner.draws < 1:
        raise SpecError(f"Expected 1 draw or more but got draws={manner.draws}")
    if not manner.fillers or not batches:
        raise SpecError("asking needs at least one filler and one batch")
    made = [
        one
        for model in models
        for one in (make_models(model) if isinstance(model, str) else [model])
    ]
    if len({model.name for model in made}) < len(made):
        raise SpecError("two models have the same name; ask them in runs of their own")
    return Asking(
        tuple(made),
        manner,
        tuple(dict.fromkeys(batches)),
        _judge(judge, made),
        rate_limit,
        concurrency,
    )


def _judge(judge: str | Judge | None, models: Sequence[Model]) -> Judge:
    unjudged = [one.name for one in models if not getattr(one, "judged", False)]
    if judge is None:
        return EmbeddedJudge() if unjudged else RecordedJudge()
    if not isinstance(judge, str):
        return judge
    if judge == "recorded":
        if unjudged:
            raise SpecError(f"the judge 'recorded' needs verdicts, and {unjudged[0]} has none")
        return RecordedJudge()
    return EmbeddedJudge() if judge == "embedded" else ModelJudge(make_model(judge))


def _data(data: str | Path | None) -> Path | None:
    named = data or os.environ.get("ROUTEPRISM_DATA")
    return Path(named) if named else None
