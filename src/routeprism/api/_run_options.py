"""Options for how a run is made: models, statistics, money, processes, shards and output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from routeprism.settings import (
    EXECUTION,
    RESEARCH,
    answer_option,
    limit_options,
    money_option,
    option,
    output_option,
    place_option,
    reply_option,
    statistic_option,
)


@dataclass(frozen=True)
class Readers:
    """Which models answer, and how often."""

    models: Sequence[str] = answer_option(
        (),
        help="Model that answers: reader, openai:MODEL, smollm2, hf:PATH or recorded:FILE; repeat "
        "for more.",
        flag="--model",
        short="-m",
        accepts="Sequence[str | Model]",
    )
    draws: int = reply_option(
        1,
        help="Answers to collect for each route and prompt; 2 or more separate the effect of "
        "order from the model's own noise.",
        **limit_options("draws"),
    )
    allocate: bool = reply_option(
        False,
        help="Collect a fifth of the draws for every prompt, and the others where answers differ "
        "most.",
    )
    control: str = reply_option(
        "exact",
        help="How to match the two prompts of a pair: none, exact, balanced or aligned.",
        group=RESEARCH,
    )
    fillers: Sequence[str] = reply_option(
        ("A",),
        help="Text that pads prompts to the same length: A or B; repeat for both.",
        flag="--filler",
        group=RESEARCH,
    )
    batches: Sequence[str] = reply_option(
        ("",),
        help="Name of an independent set of answers to the same prompts; repeat to compare.",
        flag="--batch",
        group=RESEARCH,
    )


@dataclass(frozen=True)
class Instructions:
    """The instructions of prompts about conflicting records."""

    provenance: Sequence[str] = reply_option(
        ("preserved",),
        help="Instruction to the model about conflicting records: preserved, gated, neutral or "
        "placebo; repeat to compare.",
        accepts="str | Sequence[str]",
        group=RESEARCH,
    )


@dataclass(frozen=True)
class Instruction:
    """The one instruction of prompts about conflicting records."""

    provenance: str = answer_option(
        "preserved",
        help="Instruction to the model about conflicting records: preserved, gated, neutral or "
        "placebo.",
        group=RESEARCH,
    )


@dataclass(frozen=True)
class Judging:
    """The judge of free text."""

    judge: str | None = reply_option(
        None,
        help="Judge of free-text answers: embedded, recorded or a model. Default: recorded if all "
        "answers have verdicts, otherwise embedded.",
        accepts="str | Judge | None",
    )


@dataclass(frozen=True)
class EndpointOptions:
    """Where models are served, and how fast they are asked."""

    base_url: str | None = answer_option(None, help="Address of an OpenAI-compatible endpoint.")
    rate_limit: float | None = answer_option(
        None, help="Maximum number of requests per minute to each model.", identity=False
    )
    concurrency: int | None = answer_option(
        None,
        help="Maximum number of simultaneous requests. Default: chosen by the model.",
        identity=False,
        **limit_options("concurrency"),
    )


@dataclass(frozen=True)
class Passes:
    """Which passes read the cards."""

    passes: Sequence[str] = answer_option(
        (),
        help="Who labels the cards: NAME=MODEL, or NAME=FILE for a completed sheet; repeat for "
        "more.",
        flag="--pass",
        accepts="Sequence[str] | Mapping[str, Model | Path]",
    )
    primary: str | None = answer_option(
        None, help="Name of the primary pass; declare it before you read any outcome."
    )
    export: Path | None = option(
        None, help="Write the cards to a sheet for people to complete, and exit.", identity=False
    )


@dataclass(frozen=True)
class Screening:
    """Which questions may be reordered."""

    gold_visible: bool = answer_option(False, help="Use the rubric that shows the correct answer.")
    gate: str | None = answer_option(
        None,
        help="Which questions pass: intersection, majority, unanimity, or the name of a pass.",
        identity=False,
        resume=True,
    )
    write_mask: Path | None = output_option(
        None, help="File to write the questions that pass the gate to.", resume=True
    )


@dataclass(frozen=True)
class Compiled:
    """Contexts of a run instead of records."""

    compiled: Path | None = option(
        None, help="Finished run whose compiled contexts are labelled instead of records."
    )
    stale: bool = option(
        False, help="Label the records that state an outdated value of the fact in question."
    )
    policies: Sequence[str] = option(
        (),
        help="Use only the contexts of this policy of the run; repeat for more.",
        flag="--policy",
        short="-p",
    )


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
    """Limits on the cost of a call."""

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
    """Limits on the cost of a call, and whether building is measured."""

    measure: bool = money_option(
        False, help="With --dry-run: build the first pool once, with its calls, and measure them."
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
    """The number of processes."""

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
        help="Process part I of N of the pools, or of the runs of `reproduce`; `merge` combines "
        "the parts.",
        metavar="I/N",
        group=EXECUTION,
    )
    shards: Sequence[Path] = place_option(
        (), help="Runs of all shards, to read instead of processing the pools.", terminal=False
    )


@dataclass(frozen=True)
class Json:
    """Whether the command prints JSON."""

    json: bool = output_option(False, help="Print one JSON object and nothing else.", python=False)


@dataclass(frozen=True)
class Printing(Json):
    """The output of a command."""

    quiet: bool = output_option(False, help="Show no progress bar.", short="-q", python=False)


@dataclass(frozen=True)
class VerdictOptions(Printing):
    """The output of a command with a verdict."""

    quiet: bool = output_option(
        False, help="Print only the verdict, in one line.", short="-q", python=False
    )


@dataclass(frozen=True)
class Witnesses:
    """Where findings are saved as tests."""

    save: Path | None = output_option(
        None,
        help="Also write each finding as a pytest test with its witness to this file.",
        flag="--save",
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
        False,
        help="Print every table and statement, with the symbols of the paper.",
        short="-v",
        python=False,
    )
