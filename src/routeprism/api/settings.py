"""The settings of every command: shared parts, each option declared once, and how they compose."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from routeprism.settings import (
    ANSWERS,
    ARRIVALS,
    EXECUTION,
    MONEY,
    OUTPUT,
    RESEARCH,
    STATISTICS,
    compose,
    option,
)
from routeprism.specs import SIZES

__all__ = ["settings_for"]


def _limits(name: str) -> Mapping[str, Any]:
    """Return the smallest and the largest value of a size."""
    least, most = SIZES[name]
    return {"minimum": least, "maximum": most}


_answer = partial(option, group=ANSWERS)
_reply = partial(option, group=ANSWERS, needs_model=True)
_arrival = partial(option, group=ARRIVALS)
_statistic = partial(option, group=STATISTICS)
_money = partial(option, group=MONEY, identity=False)
_place = partial(option, group=EXECUTION, identity=False)
_output = partial(option, group=OUTPUT, identity=False)


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


@dataclass(frozen=True)
class Comparators:
    """Whether comparators run."""

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

    schedules: Sequence[str] = _arrival(
        (),
        help="Order of arrival, procedure (bulk, restart) or both (replay+bulk) to compare with "
        "source order; repeat for more. Default: replay (full reversal).",
        flag="--schedule",
        short="-s",
        accepts="Sequence[str | Schedule]",
    )
    against: str = _arrival(
        "forward",
        help="Order or procedure to compare each --schedule with, such as replay, bulk or restart.",
        accepts="str | Schedule",
    )


@dataclass(frozen=True)
class ArrivalsOptions:
    """Which arrival models are estimated."""

    arrivals: Sequence[str] = _arrival(
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

    disorder: int = _arrival(
        2, help="Largest number of records to hold back.", **_limits("disorder")
    )
    held: str = _arrival(
        "shown", help="Whether questions see the records that are held back: shown or hidden."
    )
    every: int = _arrival(
        8, help="Number of records between two snapshots of the repair checkpoint.", minimum=1
    )


@dataclass(frozen=True)
class Checks:
    """How much of a memory of one's own is checked."""

    rebuilds: int | None = _arrival(
        None,
        help="Number of routes to build a second time, to check your memory for randomness and "
        "shared state. Default: 100, or 0 if building may cost money.",
        minimum=0,
        identity=False,
    )


@dataclass(frozen=True)
class Construction:
    """What is looked at while memories are built."""

    mechanism: bool = _arrival(
        False,
        help="Also run each policy with each of its order-dependent operations fixed.",
        group=RESEARCH,
    )
    ties: bool = _arrival(False, help="Count the ties that arrival order decides.", group=RESEARCH)
    over_time: bool = _arrival(False, help="Also report what is kept as the history grows.")
    builds: int = _arrival(
        1,
        help="How often to build each route; 2 or more separate the effect of order from chance.",
        **_limits("builds"),
    )


@dataclass(frozen=True)
class Readers:
    """Who answers, and how often."""

    models: Sequence[str] = _answer(
        (),
        help="Model that answers: reader, openai:MODEL, smollm2, hf:PATH or recorded:FILE; repeat "
        "for more.",
        flag="--model",
        short="-m",
        accepts="Sequence[str | Model]",
    )
    draws: int = _reply(
        1,
        help="Answers to collect for each route and prompt; 2 or more separate the effect of "
        "order from the model's own noise.",
        **_limits("draws"),
    )
    control: str = _reply(
        "exact",
        help="How to match the two prompts of a pair: none, exact, balanced or aligned.",
        group=RESEARCH,
    )
    fillers: Sequence[str] = _reply(
        ("A",),
        help="Text that pads prompts to the same length: A or B; repeat for both.",
        flag="--filler",
        group=RESEARCH,
    )
    batches: Sequence[str] = _reply(
        ("",),
        help="Name of an independent set of answers to the same prompts; repeat to compare.",
        flag="--batch",
        group=RESEARCH,
    )


@dataclass(frozen=True)
class Instructions:
    """What prompts say about records that conflict."""

    provenance: Sequence[str] = _reply(
        ("preserved",),
        help="Instruction to the model about conflicting records: preserved, gated, neutral or "
        "placebo; repeat to compare.",
        accepts="str | Sequence[str]",
        group=RESEARCH,
    )


@dataclass(frozen=True)
class Instruction:
    """What prompts say about records that conflict, once."""

    provenance: str = _answer(
        "preserved",
        help="Instruction to the model about conflicting records: preserved, gated, neutral or "
        "placebo.",
        group=RESEARCH,
    )


@dataclass(frozen=True)
class Judging:
    """Who judges free text."""

    judge: str | None = _reply(
        None,
        help="Judge of free-text answers: embedded, recorded or a model. Default: recorded if all "
        "answers have verdicts, otherwise embedded.",
        accepts="str | Judge | None",
    )


@dataclass(frozen=True)
class EndpointOptions:
    """Where models are served, and how fast they are asked."""

    base_url: str | None = _answer(None, help="Address of an OpenAI-compatible endpoint.")
    rate_limit: float | None = _answer(
        None, help="Maximum number of requests per minute to each model.", identity=False
    )
    concurrency: int | None = _answer(
        None,
        help="Maximum number of simultaneous requests. Default: chosen by the model.",
        identity=False,
        **_limits("concurrency"),
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
    stable: float = _statistic(
        0.9, help="Smallest overlap at which two orders count as the same.", minimum=0, maximum=1
    )


@dataclass(frozen=True)
class ExplorationOptions:
    """Which orders are looked at, and what is searched for."""

    arrivals: Sequence[str] = _arrival(
        ("uniform",),
        help="Distribution of orders, such as uniform or jitter:w=2 (`routeprism list arrivals` "
        "lists all); repeat for more.",
        flag="--arrival",
        short="-a",
        accepts="Sequence[str | ArrivalModel]",
    )
    shrink: str | None = _arrival(
        None,
        help="Find the smallest reordering that changes this outcome: support, retained, exposed, "
        "stale-only or module:name.",
        metavar="OUTCOME",
        accepts="bool | str | Outcome | None",
    )
    worst: str = _arrival(
        "",
        help="Find the worst order: the one with the least evidence kept (support), the least "
        "overlap with source order (J), or the most questions that end with an outdated value "
        "(stale-only).",
    )
    method: str | None = _arrival(
        None,
        help="How to explore the orders: enumerated, merged, replayed or sampled. Default: the "
        "most exact method that is feasible.",
    )
    orders: int = _arrival(
        1_000,
        help="Number of orders to draw if there are too many to examine all of them.",
        **_limits("orders"),
    )
    half_width: float | None = _arrival(
        None, help="Draw orders until the 95% limits of every share are this close to the estimate."
    )
    most_orders: int = _arrival(
        20_000, help="Maximum number of orders to draw for --half-width.", **_limits("most_drawn")
    )
    most_states: int = _arrival(
        200_000,
        help="Maximum number of states to examine; beyond it, orders are drawn.",
        **_limits("most_states"),
    )


@dataclass(frozen=True)
class Passes:
    """Who reads the cards."""

    passes: Sequence[str] = _answer(
        (),
        help="Who labels the cards: NAME=MODEL, or NAME=FILE for a completed sheet; repeat for "
        "more.",
        flag="--pass",
        accepts="Sequence[str] | Mapping[str, Model | Path]",
    )
    primary: str | None = _answer(
        None, help="Name of the primary pass; declare it before you read any outcome."
    )
    export: Path | None = option(
        None, help="Write the cards to a sheet for people to complete, and exit.", identity=False
    )


@dataclass(frozen=True)
class Screening:
    """Which questions may be reordered."""

    gold_visible: bool = _answer(False, help="Use the rubric that shows the correct answer.")
    gate: str | None = _answer(
        None,
        help="Which questions pass: intersection, majority, unanimity, or the name of a pass.",
        identity=False,
    )
    write_mask: Path | None = _output(
        None, help="File to write the questions that pass the gate to."
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

    seed: int = _statistic(20260910, help="Seed of the bootstrap.", minimum=0)
    resamples: int = _statistic(
        10_000, help="Number of bootstrap resamples.", **_limits("resamples")
    )
    interval: str | None = _statistic(
        None,
        help="Kind of interval: expanded, percentile, bca or studentised. Default: the one that "
        "the benchmark declares.",
        group=RESEARCH,
    )


@dataclass(frozen=True)
class Stopping:
    """When a study is large enough."""

    until: str | None = _statistic(
        None,
        help="Add users in random order, and stop as soon as a precision ('J±0.05' or J+-0.05) or "
        "a verdict (verdict) is reached.",
        metavar="STATEMENT",
    )


@dataclass(frozen=True)
class Limits:
    """What a call may cost."""

    dry_run: bool = _money(
        False,
        help="Report the number of calls, their tokens and their cost, and exit without making a "
        "call.",
    )
    max_calls: int | None = _money(
        None,
        help="Stop after this many model calls, including those that build memories; you can "
        "resume.",
        **_limits("max_calls"),
    )
    max_cost: float | None = _money(
        None,
        help="Stop before spending more than this; requires the prices of the models.",
        minimum=0,
    )
    yes: bool = _money(
        False, help="Spend without asking for confirmation.", short="-y", python=False
    )


@dataclass(frozen=True)
class Money(Limits):
    """What a call may cost, and whether building is measured."""

    measure: bool = _money(
        False,
        help="With --dry-run: build the first pool once, with its calls, and measure them.",
    )


@dataclass(frozen=True)
class Cassettes:
    """Replies of models, recorded and replayed."""

    record: Path | None = _money(
        None, help="Write every prompt and reply to this file; it contains no keys."
    )
    replay: Path | None = _money(
        None,
        help="Read the replies from a file that --record wrote, instead of asking a model.",
        resume=True,
    )


@dataclass(frozen=True)
class Workers:
    """How many processes."""

    workers: int | None = _place(
        None,
        help="Number of processes. Default: chosen by the number of pools.",
        python_help="Number of processes.",
        minimum=1,
        python_default=1,
    )


@dataclass(frozen=True)
class ExecutionOptions(Workers):
    """Where the work is done."""

    ray: str | None = _place(
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
    shards: Sequence[Path] = _place(
        (), help="Runs of all shards, to read instead of processing the pools.", terminal=False
    )


@dataclass(frozen=True)
class Printing:
    """What the command prints."""

    json: bool = _output(False, help="Print one JSON object and nothing else.", python=False)
    quiet: bool = _output(False, help="Show no progress bar.", short="-q", python=False)


@dataclass(frozen=True)
class Json:
    """Whether the command prints JSON."""

    json: bool = _output(False, help="Print one JSON object and nothing else.", python=False)


@dataclass(frozen=True)
class VerdictOptions(Printing):
    """What a command with a verdict prints."""

    quiet: bool = _output(
        False, help="Print only the verdict, in one line.", short="-q", python=False
    )


@dataclass(frozen=True)
class Output(VerdictOptions):
    """Where the run is kept, and what is printed."""

    run: Path | None = _output(
        None,
        help="Directory of the run. Default: runs/NAME-ID.",
        python_help="Directory of the run. Default: the run is not stored.",
    )
    verbose: bool = _output(
        False, help="Print every table and statement, with the symbols of the paper.", short="-v"
    )


@dataclass(frozen=True)
class StoredRunOptions:
    """A finished run."""

    run: Path = option(help="Directory of a finished run.", flag="", metavar="RUN")


@dataclass(frozen=True)
class MergedRuns:
    """The shards of one command."""

    runs: Sequence[Path] = option(
        help="Directories of all shards of one command.", flag="", metavar="RUN..."
    )


@dataclass(frozen=True)
class Gates:
    """Which limits a run is held to."""

    gates: Sequence[str] = option(
        (),
        help="Limit, such as evidence_lost<=0.05, restored-absent.lower<=0.1 or "
        "policy=focal:J>=0.9; repeat for more.",
        flag="--gate",
        short="-g",
    )
    baseline: Path | None = option(
        None,
        help="Fail if results are worse than in this run; gates can refer to it: J>=baseline-0.02.",
        metavar="RUN",
    )
    allow_missing: int = option(
        0,
        help="Accept up to N missing answers or routes; with more, exit with code 3.",
        metavar="N",
    )
    junit: Path | None = _output(
        None, help="Also write the results as JUnit XML.", metavar="FILE", python=False
    )
    github: bool = _output(
        False,
        help="Write annotations for GitHub Actions; implied by GITHUB_ACTIONS=true.",
        python=False,
    )


@dataclass(frozen=True)
class TwoRuns:
    """Two finished runs, and which of their policies are compared."""

    first: Path = option(help="Directory of the run to compare with.", flag="", metavar="BEFORE")
    second: Path = option(help="Directory of the new run.", flag="", metavar="AFTER")
    policies_a: Sequence[str] = option(
        (),
        help="Policy in BEFORE, to compare with the --policy-b in AFTER; repeat both for more. "
        "Default: policies with the same name.",
        flag="--policy-a",
    )
    policies_b: Sequence[str] = option(
        (),
        help="Policy in AFTER, for each --policy-a.",
        flag="--policy-b",
    )
    html: Path | None = _output(
        None, help="Also write the comparison as an HTML page.", metavar="FILE"
    )
    markdown: Path | None = _output(
        None,
        help="Also write the comparison as Markdown, for a comment on a pull request.",
        metavar="FILE",
    )


@dataclass(frozen=True)
class TracingOptions:
    """Which number is traced."""

    row: str = option(
        help="Row of estimates.csv: its number, or enough values to identify it, such as "
        "policy=focal,schedule=replay,quantity=J.",
        metavar="NAMES|NUMBER",
    )
    question: str | None = option(None, help="Show only this question.", metavar="ID")
    prompts: bool = _output(False, help="Also print the text of each prompt.")


@dataclass(frozen=True)
class Planning:
    """Which number is planned for, and how precisely."""

    quantity: str = option(
        help="Quantity in estimates.csv, such as J, D_res or restored-absent.",
    )
    half_width: float | None = _statistic(None, help="Half-width of the 95% interval to reach.")
    effect: float | None = _statistic(
        None, help="Effect to detect, instead of a half-width to reach."
    )
    power: float = _statistic(0.8, help="Probability of detecting the effect.")
    policy: str | None = option(None, help="Policy in the run.", short="-p")
    schedule: str | None = option(None, help="Schedule in the run.", short="-s")
    model: str | None = option(None, help="Model in the run.", short="-m")
    experiment: str | None = option(None, help="Experiment in the run. Default: routes.")
    arm: str | None = option(None, help="Arm of the experiment, such as construction.")
    questions: Sequence[float] = _statistic(
        (), help="Number of questions per unit to consider; repeat for more."
    )
    draws: Sequence[int] = _statistic((), help="Number of draws to consider; repeat for more.")


@dataclass(frozen=True)
class Reporting:
    """Which files are written of a run."""

    out: Path | None = option(
        None,
        help="Write the page to this file instead of into the run.",
        metavar="FILE",
    )
    tables: Path | None = option(
        None, help="Also write tables as Markdown and LaTeX.", metavar="DIR"
    )
    charts: Path | None = option(None, help="Also write charts as SVG and PNG.", metavar="DIR")
    answers: Path | None = option(
        None,
        help="Also write all answers, in the format that recorded:FILE reads.",
        metavar="FILE",
    )
    parquet: Path | None = option(None, help="Also write the numbers as Parquet.", metavar="FILE")
    inspect: Path | None = option(
        None,
        help="Also write the answers as an Inspect log (.eval or .json).",
        metavar="FILE",
    )
    megabytes: float = option(
        10,
        help="Maximum size of the record texts in the page, in megabytes.",
        minimum=0,
    )
    open: bool = _output(False, help="Open the page in a browser.", python=False)


@dataclass(frozen=True)
class Reproduction:
    """Which of the paper's tables are shown or computed again."""

    tables: Sequence[str] = option(
        (),
        help="Labels of tables, such as tab:mechanism-state. Default: a summary of all tables.",
        flag="",
    )
    execute: bool = option(
        False,
        help="Compute everything that can be computed here, and write the values.",
        flag="--run",
    )
    model: str | None = _answer(
        None,
        help="Model for tables that need answers, such as reader or recorded:FILE; use it with "
        "--run.",
    )
    masks: Sequence[str] = option(
        (),
        help="[NAME=]FILE with the question ids of a set that tables refer to; without NAME, the "
        "set is called primary. Repeat for more.",
        flag="--mask",
    )
    data: Path | None = option(
        None, help="Directory with the benchmark files.", environment="ROUTEPRISM_DATA"
    )
    write: Path | None = _output(None, help="Write all tables to this Markdown page.")
    obtained: Path | None = _output(
        None,
        help="File with the obtained values. Default: reproduction/obtained.json with --run, "
        "otherwise the values in the package.",
    )
    keep: Path | None = _output(None, help="Directory in which to keep the run and its report.")


@dataclass(frozen=True)
class Adapter:
    """Which memory is checked."""

    adapter: str = option(
        help="Policy to check: package.module:Name, mem0, http:url=… or command:run=….",
        flag="",
        accepts="Any",
    )


@dataclass(frozen=True)
class Download:
    """Which files are downloaded."""

    benchmark: str = option(
        help="Benchmark to download: personamem, locomo or longmemeval[:variant=m].", flag=""
    )
    data: Path | None = option(
        None, help="Directory for the benchmark files.", environment="ROUTEPRISM_DATA"
    )
    base_url: str | None = option(None, help="Different address to download the files from.")
    yes: bool = option(False, help="Accept the licence without asking.", short="-y", python=False)


@dataclass(frozen=True)
class Listing:
    """Which names are listed."""

    what: str = option(
        "policies",
        help="Kind of names: policies, benchmarks, models, schedules, procedures, arrivals, "
        "interfaces, judges, coordinates or experiments.",
        flag="",
    )


_SOURCE = (BenchmarkOptions, Policies, Comparators, Labels, ReadingsOptions, Masks)
_RUN = (StatisticsOptions, Money, Cassettes, ExecutionOptions, Shards, Output)


def _experiment_parts(command: str) -> list[type]:
    """Return the options that the registered experiments add to a command."""
    from routeprism.experiments import registered_experiments

    return [
        experiment.settings
        for experiment in registered_experiments(command)
        if experiment.settings is not None
    ]


def _audit() -> type[Any]:
    return compose(
        "AuditSettings",
        *_SOURCE,
        *(ArrivalsOptions, Schedules, Checks, Construction, Readers, Instructions),
        *(*_experiment_parts("audit"), Judging, EndpointOptions, Stopping, *_RUN),
    )


def _restore() -> type[Any]:
    return compose(
        "RestoreSettings",
        *_SOURCE,
        *(Schedules, Checks, Readers, Instruction),
        *(*_experiment_parts("restore"), Judging, EndpointOptions, Stopping, *_RUN),
        defaults={"draws": 3, "control": "aligned"},
        without=["comparators"],
    )


def _remedy() -> type[Any]:
    return compose(
        "RemedySettings",
        *_SOURCE,
        *(
            ArrivalsOptions,
            Schedules,
            Repairs,
            Checks,
            Readers,
            Instruction,
            Judging,
            EndpointOptions,
            *_RUN,
        ),
        without=["comparators"],
    )


def _orders() -> type[Any]:
    parts = (
        *_SOURCE,
        ExplorationOptions,
        StatisticsOptions,
        Limits,
        ExecutionOptions,
        Shards,
        Output,
    )
    return compose("OrderSettings", *parts)


def _curve() -> type[Any]:
    return compose(
        "CurveSettings",
        *(
            BenchmarkOptions,
            CurveOptions,
            Labels,
            Schedules,
            EndpointOptions,
            StatisticsOptions,
            Money,
            Workers,
            Shards,
            Output,
        ),
        defaults={"schedules": ("replay", "jitter:w=2")},
    )


def _study(name: str, part: type) -> type[Any]:
    parts = (
        BenchmarkOptions,
        Passes,
        part,
        Masks,
        EndpointOptions,
        StatisticsOptions,
        Limits,
        Output,
    )
    return compose(name, *parts, subject="What to label")


_COMMANDS: Mapping[str, Callable[[], type[Any]]] = {
    "audit": _audit,
    "restore": _restore,
    "remedy": _remedy,
    "orders": _orders,
    "curve": _curve,
    "screen": partial(_study, "ScreenSettings", Screening),
    "support": partial(_study, "SupportSettings", Compiled),
    "demo": partial(compose, "DemoSettings", Output),
    "check": partial(
        compose, "CheckSettings", StoredRunOptions, Gates, VerdictOptions, subject="What to check"
    ),
    "compare": partial(
        compose, "CompareSettings", TwoRuns, VerdictOptions, subject="What to compare"
    ),
    "merge": partial(compose, "MergeSettings", MergedRuns, Output, subject="What to merge"),
    "trace": partial(
        compose, "TraceSettings", StoredRunOptions, TracingOptions, Json, subject="What to trace"
    ),
    "plan": partial(
        compose, "PlanSettings", StoredRunOptions, Planning, Json, subject="What to plan for"
    ),
    "report": partial(
        compose, "ReportSettings", StoredRunOptions, Reporting, Printing, subject="What to write"
    ),
    "reproduce": partial(
        compose,
        "ReproduceSettings",
        Reproduction,
        Labels,
        ReadingsOptions,
        Limits,
        Workers,
        Printing,
        subject="What to reproduce",
    ),
    "check-adapter": partial(
        compose, "AdapterSettings", Adapter, Limits, VerdictOptions, subject="What to check"
    ),
    "fetch": partial(compose, "FetchSettings", Download, Printing, subject="What to download"),
    "list": partial(compose, "ListSettings", Listing, Json, subject="What to list"),
}


def settings_for(command: str) -> type[Any]:
    """Return the settings of a command, composed of its parts."""
    return _COMMANDS[command]()
