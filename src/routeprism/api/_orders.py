"""What every order of a pool, or a drawn one, keeps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from routeprism.api._given import given_benchmark, given_policies
from routeprism.errors import SpecError, nearest
from routeprism.experiments import SEED, Audit, Looking, Outcome, outcome_named, run_orders
from routeprism.landscape import DRAWN, MOST_DRAWN, MOST_STATES, Method
from routeprism.measures import RESAMPLES, Interval
from routeprism.orders import ArrivalModel, parse_arrival
from routeprism.records import Benchmark

__all__ = ["explore_orders"]


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
    loaded = given_benchmark(benchmark, kinds, data)
    return run_orders(
        loaded,
        given_policies(policies, loaded, interface, comparators, None),
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
