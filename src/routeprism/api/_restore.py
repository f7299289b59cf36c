"""What comes back with a displaced record."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from routeprism.answers import Judge, Progress
from routeprism.api._given import given_asking, given_benchmark, given_policies, label_stages
from routeprism.errors import SpecError, nearest
from routeprism.experiments import SEED, Audit, Manner, Restore, run_audit
from routeprism.experiments._conditions import DESIGNS, DesignName
from routeprism.measures import RESAMPLES, Interval
from routeprism.models import Model
from routeprism.orders import parse_schedule
from routeprism.prompts import Control, Filler, Provenance
from routeprism.records import Benchmark

__all__ = ["restore"]


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
    asking = given_asking(
        models,
        Manner(draws, control, tuple(fillers), provenance),
        batches,
        judge,
        base_url=base_url,
        rate_limit=rate_limit,
        concurrency=concurrency,
    )
    if asking is None:
        raise SpecError("restoration needs at least one model to answer")
    loaded = given_benchmark(benchmark, kinds, data)
    return run_audit(
        loaded,
        given_policies(policies, loaded, interface, False, base_url),
        [parse_schedule(schedule) for schedule in schedules],
        kinds=kinds,
        labels=labels,
        masks=masks or {},
        stages=[*label_stages(loaded), Restore(asking, bundle_tokens, tuple(designs) or DESIGNS)],
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
