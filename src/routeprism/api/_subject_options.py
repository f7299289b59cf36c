"""Options for what is audited: data, memories, labels, arrivals and construction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from routeprism.settings import RESEARCH, arrival_option, limit_options, option, statistic_option


@dataclass(frozen=True)
class BenchmarkOptions:
    """Which records and questions."""

    benchmark: str = option(
        help="sample, personamem, locomo, longmemeval, or a directory with records.jsonl and "
        "questions.jsonl.",
        flag="",
        accepts="str | Path | Benchmark",
    )
    kinds: Sequence[str] = option(
        (), help="Use only questions of this kind; repeat for more.", flag="--kind"
    )
    data: Path | None = option(
        None,
        help="Directory with the benchmark files.",
        environment="ROUTEPRISM_DATA",
        identity=False,
    )


@dataclass(frozen=True)
class Policies:
    """Which memories, and what they show to a question."""

    policies: Sequence[str] = option(
        help="Memory policy, such as focal, recent:k=3, source-order(focal) or my.module:Memory; "
        "repeat for more.",
        flag="--policy",
        short="-p",
        accepts="Sequence[Any]",
    )
    interface: str | None = option(
        None,
        help="How a policy that keeps whole records chooses what to show: all, budget:… or "
        "bm25:k=3. Default: the interface of the benchmark.",
        accepts="str | Interface | None",
    )
    comparators: bool = option(
        False, help="Also run the source-order comparator of each policy.", group=RESEARCH
    )


@dataclass(frozen=True)
class Labels:
    """Which support labels."""

    labels: str | None = option(
        None,
        help="Labels that name the evidence of each question. Default: the first labels of the "
        "benchmark.",
    )


@dataclass(frozen=True)
class ReadingsOptions:
    """Label files beside the benchmark's own."""

    readings: Sequence[Path] = option(
        (),
        help="File with labels, for --labels audited:NAME: a support pass (JSON), or a CSV with "
        "the columns question and record; repeat for more.",
        identity=False,
        resume=True,
        group=RESEARCH,
    )


@dataclass(frozen=True)
class Masks:
    """Sets of questions that numbers are also given for."""

    masks: Sequence[str] = option(
        (),
        help="[NAME=]FILE with question ids: every number is also reported inside and outside "
        "this set; repeat for more.",
        flag="--mask",
        identity=False,
        resume=True,
        accepts="Sequence[str] | Mapping[str, Collection[str]]",
        group=RESEARCH,
    )


@dataclass(frozen=True)
class Schedules:
    """Which orders are compared with forward."""

    schedules: Sequence[str] = arrival_option(
        (),
        help="Order of arrival, procedure (bulk, restart) or both (replay+bulk) to compare with "
        "source order; repeat for more. Default: replay (full reversal).",
        flag="--schedule",
        short="-s",
        accepts="Sequence[str | Schedule | Procedure]",
    )
    against: str = arrival_option(
        "forward",
        help="Order or procedure to compare each --schedule with, such as replay, bulk or restart.",
        accepts="str | Schedule | Procedure",
    )


@dataclass(frozen=True)
class ArrivalsOptions:
    """Which arrival models are estimated."""

    arrivals: Sequence[str] = arrival_option(
        (),
        help="Arrival model to average over, such as jitter:w=2; repeat for more. Default: those "
        "of the benchmark, or none with --schedule.",
        flag="--arrival",
        short="-a",
        accepts="Sequence[str | ArrivalModel]",
    )


@dataclass(frozen=True)
class Repairs:
    """Which repairs are measured."""

    disorder: int = arrival_option(
        2, help="Largest number of records to hold back.", **limit_options("disorder")
    )
    held: str = arrival_option(
        "shown", help="Whether questions see the records that are held back: shown or hidden."
    )
    every: int = arrival_option(
        8, help="Number of records between two snapshots of the repair checkpoint.", minimum=1
    )


@dataclass(frozen=True)
class Checks:
    """How often your own memory is built again to check it."""

    rebuilds: int | None = arrival_option(
        None,
        help="Number of routes to build a second time, to check your memory for randomness and "
        "shared state. Default: 100, or 0 if building may cost money.",
        minimum=0,
        identity=False,
    )


@dataclass(frozen=True)
class Construction:
    """What RoutePrism observes while memories are built."""

    mechanism: bool = arrival_option(
        False,
        help="Also run each policy with each of its order-dependent operations fixed.",
        group=RESEARCH,
    )
    ties: bool = arrival_option(
        False, help="Count the ties that arrival order decides.", group=RESEARCH
    )
    over_time: bool = arrival_option(False, help="Also report what is kept as the history grows.")
    builds: int = arrival_option(
        1,
        help="How often to build each route; 2 or more separate the effect of order from chance.",
        **limit_options("builds"),
    )


@dataclass(frozen=True)
class CurveOptions:
    """Which budgets are compared."""

    policy: str = option("recent", help="Policy without its budget, such as recent.", short="-p")
    budgets: str = option(
        "k=4,8,16,32", help="Name and values of the policy's budget.", flag="--budget"
    )
    contexts: str | None = option(
        None, help="Name and values of the interface's budget, such as k=1,3,10.", flag="--context"
    )
    interface: str | None = option(
        None, help="Interface without its budget. Default: the interface of the benchmark."
    )
    stable: float = statistic_option(
        0.9, help="Smallest overlap at which two orders count as the same.", minimum=0, maximum=1
    )


@dataclass(frozen=True)
class ExplorationOptions:
    """Which orders are looked at, and what is searched for."""

    arrivals: Sequence[str] = arrival_option(
        ("uniform",),
        help="Distribution of orders, such as uniform or jitter:w=2 (`routeprism list arrivals` "
        "lists all); repeat for more.",
        flag="--arrival",
        short="-a",
        accepts="Sequence[str | ArrivalModel]",
    )
    shrink: str | None = arrival_option(
        None,
        help="Find the smallest reordering that changes this outcome: support, retained, exposed, "
        "stale-only or module:name.",
        metavar="OUTCOME",
        accepts="bool | str | Outcome | None",
    )
    worst: str = arrival_option(
        "",
        help="Find the worst order: the one with the least evidence kept (support), the least "
        "overlap with source order (J), or the most questions that end with an outdated value "
        "(stale-only).",
    )
    method: str | None = arrival_option(
        None,
        help="How to explore the orders: enumerated, merged, replayed, shared or sampled. "
        "Default: the "
        "most exact method that is feasible.",
    )
    orders: int = arrival_option(
        1_000,
        help="Number of orders to draw if there are too many to examine all of them.",
        **limit_options("orders"),
    )
    allocate: bool = arrival_option(
        False,
        help="Draw a fifth of the orders in every pool, and the others where orders differ most. "
        "Applies to memories that a model builds, and to --method shared.",
    )
    half_width: float | None = arrival_option(
        None, help="Draw orders until the 95% limits of every share are this close to the estimate."
    )
    most_orders: int = arrival_option(
        20_000,
        help="Maximum number of orders to draw for --half-width.",
        **limit_options("most_drawn"),
    )
    most_states: int = arrival_option(
        200_000,
        help="Maximum number of states to examine; beyond it, orders are drawn.",
        **limit_options("most_states"),
    )
