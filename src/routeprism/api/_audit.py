"""What changed when memories were built in other orders."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from routeprism.answers import Judge, Progress
from routeprism.api._given import given_asking, given_benchmark, given_policies, label_stages
from routeprism.errors import SpecError, nearest
from routeprism.experiments import (
    LAYOUTS,
    MARGIN,
    SEED,
    WORKPLACE,
    Asking,
    AskRoutes,
    Audit,
    Display,
    Layout,
    Manner,
    Provenances,
    Reuse,
    run_audit,
    with_arms,
)
from routeprism.experiments._stages import Stage
from routeprism.measures import RESAMPLES, Interval
from routeprism.models import Model
from routeprism.orders import parse_schedule
from routeprism.prompts import Control, Filler, Provenance
from routeprism.records import Benchmark
from routeprism.workers import crew_of

__all__ = ["audit"]


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
        base_url: where the models are served that are named here without an address of their own.
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
    asking = given_asking(
        models,
        Manner(draws, control, tuple(fillers), arms[0]),
        batches,
        judge,
        base_url=base_url,
        rate_limit=rate_limit,
        concurrency=concurrency,
    )
    stages = _audit_stages(asking, arms, margin, display, reuse)
    with crew_of(workers, WORKPLACE, ray=ray) as crew:  # they start while the data is read
        loaded = given_benchmark(benchmark, kinds, data)
        made = given_policies(policies, loaded, interface, comparators, base_url)
        return run_audit(
            loaded,
            with_arms(made) if mechanism else made,
            [parse_schedule(schedule) for schedule in schedules],
            kinds=kinds,
            labels=labels,
            masks=masks or {},
            ties=ties,
            over_time=over_time,
            stages=[*label_stages(loaded), *stages],
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
