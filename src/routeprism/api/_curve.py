"""Which budget buys stability."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from routeprism.api._given import given_benchmark
from routeprism.errors import SpecError
from routeprism.experiments import SEED, STABLE, Audit, Budgets, run_curve
from routeprism.measures import RESAMPLES, Interval
from routeprism.orders import parse_schedule
from routeprism.policies import make_policy, parse_interface
from routeprism.records import Benchmark

__all__ = ["curve"]


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
        policy: the name of a policy without its budget, such as `recent` or `my_module:Memory`.
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
    if not isinstance(policy, str):
        raise SpecError(
            f"Expected the name of a policy, such as 'recent' or 'my_module:Memory', "
            f"but got {policy=}"
        )
    loaded = given_benchmark(benchmark, kinds, data)
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
