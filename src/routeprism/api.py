"""The Python side of the command line: one function for each command, with the same names."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from routeprism.experiments import SEED, Audit, run_audit
from routeprism.measures import RESAMPLES
from routeprism.orders import parse_schedule
from routeprism.policies import Policy, SourceOrder, as_policy, make_policy, parse_interface
from routeprism.records import Benchmark, load_benchmark, only_kinds

__all__ = ["Audit", "audit"]


def audit(
    benchmark: str | Path | Benchmark,
    *policies: Any,
    schedules: Sequence[str] = ("replay",),
    kinds: Sequence[str] = (),
    interface: str | None = None,
    labels: str | None = None,
    comparators: bool = False,
    ties: bool = False,
    data: str | Path | None = None,
    run: str | Path | None = None,
    seed: int = SEED,
    resamples: int = RESAMPLES,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
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
        comparators: whether to run the source-order comparator of every policy too.
        ties: whether to count the ties that processing order decided.
        data: where benchmark files are; the variable ROUTEPRISM_DATA unless given.
        run: a directory to keep the run in; nothing is kept unless given.
        seed: of the bootstrap.
        resamples: of the bootstrap.
        workers: processes to use; chosen by the number of pools unless given.
        progress: called with (pools done, pools in all).

    """
    if not isinstance(benchmark, Benchmark):
        benchmark = load_benchmark(str(benchmark), _data(data))
    if kinds:
        benchmark = only_kinds(benchmark, kinds)
    shown = parse_interface(interface or benchmark.interface)
    made: list[Policy] = [
        make_policy(policy, shown) if isinstance(policy, str) else as_policy(policy)
        for policy in policies
    ]
    if comparators:
        named = {policy.name for policy in made}
        twins = [SourceOrder(p) for p in made if not isinstance(p, SourceOrder)]
        made.extend(twin for twin in twins if twin.name not in named)
    return run_audit(
        benchmark,
        made,
        [parse_schedule(schedule) for schedule in schedules],
        kinds=kinds,
        labels=labels,
        ties=ties,
        seed=seed,
        resamples=resamples,
        workers=workers,
        directory=None if run is None else Path(run),
        progress=progress,
    )


def _data(data: str | Path | None) -> Path | None:
    named = data or os.environ.get("ROUTEPRISM_DATA")
    return Path(named) if named else None
