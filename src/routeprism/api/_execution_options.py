"""Options for statistics, money, processes, shards and output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from routeprism.api._option_groups import (
    limit_options,
    money_option,
    output_option,
    place_option,
    statistic_option,
)
from routeprism.settings import (
    EXECUTION,
    RESEARCH,
    option,
)

__all__ = [
    "Cassettes",
    "ExecutionOptions",
    "Json",
    "Limits",
    "Money",
    "Output",
    "Printing",
    "Shards",
    "StatisticsOptions",
    "Stopping",
    "VerdictOptions",
    "Workers",
]


@dataclass(frozen=True)
class StatisticsOptions:
    """How intervals are computed."""

    seed: int = statistic_option(20260910, help="Seed of the bootstrap.", minimum=0)
    resamples: int = statistic_option(
        10_000, help="Number of bootstrap resamples.", **limit_options("resamples")
    )
    interval: str | None = statistic_option(
        None,
        help="Kind of interval: expanded, percentile, bca or studentised. Default: the one that "
        "the benchmark declares.",
        group=RESEARCH,
    )


@dataclass(frozen=True)
class Stopping:
    """When a study is large enough."""

    until: str | None = statistic_option(
        None,
        help="Add users in random order, and stop as soon as a precision ('J±0.05' or J+-0.05) or "
        "a verdict (verdict) is reached.",
        metavar="STATEMENT",
    )


@dataclass(frozen=True)
class Limits:
    """What a call may cost."""

    dry_run: bool = money_option(
        False,
        help="Report the number of calls, their tokens and their cost, and exit without making a "
        "call.",
    )
    max_calls: int | None = money_option(
        None,
        help="Stop after this many model calls, including those that build memories; you can "
        "resume.",
        **limit_options("max_calls"),
    )
    max_cost: float | None = money_option(
        None,
        help="Stop before spending more than this; requires the prices of the models.",
        minimum=0,
    )
    yes: bool = money_option(
        False, help="Spend without asking for confirmation.", short="-y", python=False
    )


@dataclass(frozen=True)
class Money(Limits):
    """What a call may cost, and whether building is measured."""

    measure: bool = money_option(
        False,
        help="With --dry-run: build the first pool once, with its calls, and measure them.",
    )


@dataclass(frozen=True)
class Cassettes:
    """Replies of models, recorded and replayed."""

    record: Path | None = money_option(
        None, help="Write every prompt and reply to this file; it contains no keys."
    )
    replay: Path | None = money_option(
        None,
        help="Read the replies from a file that --record wrote, instead of asking a model.",
        resume=True,
    )


@dataclass(frozen=True)
class Workers:
    """How many processes."""

    workers: int | None = place_option(
        None,
        help="Number of processes. Default: chosen by the number of pools.",
        python_help="Number of processes.",
        minimum=1,
        python_default=1,
    )


@dataclass(frozen=True)
class ExecutionOptions(Workers):
    """Where the work is done."""

    ray: str | None = place_option(
        None, help="Ray cluster to work on: auto, or HOST:PORT.", metavar="ADDRESS"
    )


@dataclass(frozen=True)
class Shards:
    """Which pools are worked on here."""

    shard: str | None = option(
        None,
        help="Process part I of N of the pools; `merge` combines the parts.",
        metavar="I/N",
        group=EXECUTION,
    )
    shards: Sequence[Path] = place_option(
        (), help="Runs of all shards, to read instead of processing the pools.", terminal=False
    )


@dataclass(frozen=True)
class Printing:
    """What the command prints."""

    json: bool = output_option(False, help="Print one JSON object and nothing else.", python=False)
    quiet: bool = output_option(False, help="Show no progress bar.", short="-q", python=False)


@dataclass(frozen=True)
class Json:
    """Whether the command prints JSON."""

    json: bool = output_option(False, help="Print one JSON object and nothing else.", python=False)


@dataclass(frozen=True)
class VerdictOptions(Printing):
    """What a command with a verdict prints."""

    quiet: bool = output_option(
        False, help="Print only the verdict, in one line.", short="-q", python=False
    )


@dataclass(frozen=True)
class Output(VerdictOptions):
    """Where the run is kept, and what is printed."""

    run: Path | None = output_option(
        None,
        help="Directory of the run. Default: runs/NAME-ID.",
        python_help="Directory of the run. Default: the run is not stored.",
    )
    verbose: bool = output_option(
        False, help="Print every table and statement, with the symbols of the paper.", short="-v"
    )
