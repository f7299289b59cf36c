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
    """Give the smallest and the largest value of a size."""
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
        help="A memory policy; repeat for more: focal, recent:k=3, source-order(focal), "
        "my.module:Memory.",
        flag="--policy",
        short="-p",
        accepts="Sequence[Any]",
    )
    interface: str | None = option(
        None,
        help="What a policy that keeps whole records shows: all, budget:…, bm25:k=3. Default: "
        "the interface of the benchmark.",
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
        None, help="Support labels to use. Default: the first that the benchmark has."
    )


@dataclass(frozen=True)
class ReadingsOptions:
    """Label files beside the benchmark's own."""

    readings: Sequence[Path] = option(
        (),
        help="A support pass (JSON), or a CSV of question and record, for --labels audited:NAME; "
        "repeat for more.",
        identity=False,
        resume=True,
        group=RESEARCH,
    )


@dataclass(frozen=True)
class Masks:
    """Sets of questions that numbers are also given for."""

    masks: Sequence[str] = option(
        (),
        help="[NAME=]FILE of question ids; every number is also given within and outside of the "
        "set. Repeat for more.",
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
        help="An order of arrival, a procedure such as bulk or restart, or both (replay+bulk), to "
        "compare with forward; repeat for more. Default: replay (full reversal).",
        flag="--schedule",
        short="-s",
        accepts="Sequence[str | Schedule]",
    )
    against: str = _arrival(
        "forward",
        help="The order or procedure that each --schedule is compared with, such as replay, bulk "
        "or restart.",
        accepts="str | Schedule",
    )


@dataclass(frozen=True)
class ArrivalsOptions:
    """Which arrival models are estimated."""

    arrivals: Sequence[str] = _arrival(
        (),
        help="An arrival model whose expectation is estimated, such as jitter:w=2; repeat for "
        "more. Default, unless --schedule is given: those of the benchmark.",
        flag="--arrival",
        short="-a",
        accepts="Sequence[str | ArrivalModel]",
    )


@dataclass(frozen=True)
class Repairs:
    """Which repairs are measured."""

    disorder: int = _arrival(2, help="Measure holding back up to this many records.", minimum=1)
    every: int = _arrival(
        8, help="Records between the snapshots of the repair checkpoint.", minimum=1
    )


@dataclass(frozen=True)
class Checks:
    """How much of a memory of one's own is checked."""

    rebuilds: int | None = _arrival(
        None,
        help="Routes of your own memory to build a second time, to check it for chance and shared "
        "state. Default: 100, or none if building may cost money; 0 checks nothing.",
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
    ties: bool = _arrival(
        False, help="Count the ties that processing order decides.", group=RESEARCH
    )
    over_time: bool = _arrival(False, help="Also report what is kept as the history grows.")
    builds: int = _arrival(
        1, help="Builds of each route; 2 or more separate order from chance.", **_limits("builds")
    )


@dataclass(frozen=True)
class Readers:
    """Who answers, and how often."""

    models: Sequence[str] = _answer(
        (),
        help="A model that answers; repeat for more: reader, openai:MODEL, smollm2, hf:PATH, "
        "recorded:FILE.",
        flag="--model",
        short="-m",
        accepts="Sequence[str | Model]",
    )
    draws: int = _reply(
        1,
        help="Answers per route and prompt; 2 or more separate the model's own noise.",
        **_limits("draws"),
    )
    control: str = _reply(
        "exact",
        help="What the two prompts of a pair have in common: none, exact, balanced, aligned.",
        group=RESEARCH,
    )
    fillers: Sequence[str] = _reply(
        ("A",),
        help="Padding: A or B; repeat for both.",
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
        help="Instruction about conflicting records: preserved, gated, neutral or placebo; repeat "
        "to compare instructions.",
        accepts="str | Sequence[str]",
        group=RESEARCH,
    )


@dataclass(frozen=True)
class Instruction:
    """What prompts say about records that conflict, once."""

    provenance: str = _answer(
        "preserved",
        help="Instruction about conflicting records: preserved, gated, neutral or placebo.",
        group=RESEARCH,
    )


@dataclass(frozen=True)
class Judging:
    """Who judges free text."""

    judge: str | None = _reply(
        None,
        help="Judge of free text: embedded, a model, or recorded. Default: recorded if all answers "
        "have verdicts, else embedded.",
        accepts="str | Judge | None",
    )


@dataclass(frozen=True)
class EndpointOptions:
    """Where models are served, and how fast they are asked."""

    base_url: str | None = _answer(None, help="Address of an OpenAI-compatible endpoint.")
    rate_limit: float | None = _answer(
        None, help="Most requests per minute, for each model.", identity=False
    )
    concurrency: int | None = _answer(
        None,
        help="Requests at the same time. Default: the model's own number.",
        identity=False,
        **_limits("concurrency"),
    )


@dataclass(frozen=True)
class CurveOptions:
    """Which budgets are compared."""

    policy: str = option(
        "recent", help="The policy without its budget, such as recent.", short="-p"
    )
    budgets: str = option(
        "k=4,8,16,32", help="The budget of the policy and its values.", flag="--budget"
    )
    contexts: str | None = option(
        None, help="The budget of the interface and its values, such as k=1,3,10.", flag="--context"
    )
    interface: str | None = option(
        None, help="The interface without its budget. Default: the interface of the benchmark."
    )
    stable: float = _statistic(
        0.9, help="Overlap from which two orders count as the same.", minimum=0, maximum=1
    )


@dataclass(frozen=True)
class ExplorationOptions:
    """Which orders are looked at, and what is searched for."""

    arrivals: Sequence[str] = _arrival(
        ("uniform",),
        help="A distribution of orders; repeat for more. `routeprism list arrivals` shows them.",
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
        help="Find the order with the least support (questions that keep it) or J, or with the "
        "most questions that end with the old value (stale-only).",
    )
    method: str | None = _arrival(
        None,
        help="enumerated, merged, replayed or sampled. Default: the most exact that is possible.",
    )
    orders: int = _arrival(
        1_000, help="Orders to draw if not all can be looked at.", **_limits("orders")
    )
    half_width: float | None = _arrival(
        None, help="Draw until the 95% limits of every share are this close to the estimate."
    )
    most_orders: int = _arrival(
        20_000, help="Most orders to draw for a half-width.", **_limits("most_drawn")
    )
    most_states: int = _arrival(
        200_000, help="States to look at before orders are drawn.", **_limits("most_states")
    )


@dataclass(frozen=True)
class Passes:
    """Who reads the cards."""

    passes: Sequence[str] = _answer(
        (),
        help="NAME=MODEL or NAME=FILE (a completed sheet); repeat for more.",
        flag="--pass",
        accepts="Sequence[str] | Mapping[str, Model | Path]",
    )
    primary: str | None = _answer(
        None, help="The primary pass, declared before any outcome is read."
    )
    export: Path | None = option(
        None, help="Write the cards as a sheet for people to complete, and stop.", identity=False
    )


@dataclass(frozen=True)
class Screening:
    """Which questions may be reordered."""

    gold_visible: bool = _answer(False, help="Use the rubric that shows the right answer.")
    gate: str | None = _answer(
        None,
        help="Questions to let through: intersection, majority, unanimity, or the name of a pass.",
        identity=False,
    )
    write_mask: Path | None = _output(
        None, help="File for the questions that the gate lets through."
    )


@dataclass(frozen=True)
class Compiled:
    """Contexts of a run instead of records."""

    compiled: Path | None = option(
        None, help="A finished run; label the contexts that it compiled instead of records."
    )
    stale: bool = option(
        False, help="Label the records that state an outdated value of the fact asked for."
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
    resamples: int = _statistic(10_000, help="Resamples of the bootstrap.", **_limits("resamples"))
    interval: str | None = _statistic(
        None,
        help="expanded, percentile, bca or studentised. Default: what the benchmark declares.",
        group=RESEARCH,
    )


@dataclass(frozen=True)
class Stopping:
    """When a study is large enough."""

    until: str | None = _statistic(
        None,
        help="Stop as soon as this holds, with users in a random order: 'J±0.05' (or J+-0.05), "
        "or verdict.",
        metavar="STATEMENT",
    )


@dataclass(frozen=True)
class Limits:
    """What a call may cost."""

    dry_run: bool = _money(
        False,
        help="Report how many calls, tokens and how much money it takes, and stop; make no call.",
    )
    max_calls: int | None = _money(
        None,
        help="Stop after this many calls, building and answering together; you can resume.",
        **_limits("max_calls"),
    )
    max_cost: float | None = _money(
        None, help="Stop before spending more than this; needs the models' prices.", minimum=0
    )
    yes: bool = _money(False, help="Spend without asking first.", short="-y", python=False)


@dataclass(frozen=True)
class Money(Limits):
    """What a call may cost, and whether building is measured."""

    measure: bool = _money(
        False,
        help="With --dry-run: build the first pool once, which makes its calls, to measure them.",
    )


@dataclass(frozen=True)
class Cassettes:
    """Replies of models, recorded and replayed."""

    record: Path | None = _money(
        None, help="Write every prompt and reply of models to this file; it contains no key."
    )
    replay: Path | None = _money(
        None,
        help="Take the replies of models from a file of --record, and ask no model.",
        resume=True,
    )


@dataclass(frozen=True)
class Workers:
    """How many processes."""

    workers: int | None = _place(
        None,
        help="Processes to use. Default: chosen by the number of pools (1 in Python).",
        minimum=1,
        python_default=1,
    )


@dataclass(frozen=True)
class ExecutionOptions(Workers):
    """Where the work is done."""

    ray: str | None = _place(
        None, help="Address of a Ray cluster to work on: auto, or HOST:PORT.", metavar="ADDRESS"
    )


@dataclass(frozen=True)
class Shards:
    """Which pools are worked on here."""

    shard: str | None = option(
        None,
        help="Work on part I of N of the pools; `merge` puts the parts together.",
        metavar="I/N",
        group=EXECUTION,
    )
    shards: Sequence[Path] = _place(
        (), help="Runs of all shards, read instead of working on the pools.", terminal=False
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
        None, help="Directory of the run. Default: runs/…, or none in Python."
    )
    verbose: bool = _output(
        False, help="Print every table and statement, with the symbols of the paper.", short="-v"
    )


_GATES = "What to check"
_ROWS = "Which run and numbers"
_FILES = "What to write"


@dataclass(frozen=True)
class StoredRunOptions:
    """A finished run."""

    run: Path = option(help="Directory of a finished run.", flag="", metavar="RUN")


@dataclass(frozen=True)
class MergedRuns:
    """The shards of one command."""

    runs: Sequence[Path] = option(
        help="Directories of all shards of one command.", flag="", metavar="RUN...", group=_ROWS
    )


@dataclass(frozen=True)
class Gates:
    """Which limits a run is held to."""

    gates: Sequence[str] = option(
        (),
        help="A limit; repeat for more: J>=0.9, restored-absent.lower<=0.1, policy=focal:J>=0.9.",
        group=_GATES,
        flag="--gate",
        short="-g",
    )
    baseline: Path | None = option(
        None,
        help="Require results no worse than this run; gates may refer to it: J>=baseline-0.02.",
        group=_GATES,
        metavar="RUN",
    )
    allow_missing: int = option(
        0,
        help="Accept up to N missing answers or routes; more end with exit code 3.",
        group=_GATES,
        metavar="N",
    )
    junit: Path | None = _output(
        None, help="Also write the results as JUnit XML.", metavar="FILE", python=False
    )
    github: bool = _output(
        False, help="Annotate the build; GITHUB_ACTIONS=true also does so.", python=False
    )


@dataclass(frozen=True)
class TwoRuns:
    """Two finished runs, and which of their policies are compared."""

    first: Path = option(help="Directory of the first run.", flag="", metavar="RUN", group=_ROWS)
    second: Path = option(help="Directory of the second run.", flag="", metavar="RUN", group=_ROWS)
    policies_a: Sequence[str] = option(
        (), help="A policy of the first run, with its --policy-b.", flag="--policy-a", group=_ROWS
    )
    policies_b: Sequence[str] = option(
        (),
        help="The policy of the second run for it.",
        flag="--policy-b",
        group=_ROWS,
    )
    html: Path | None = _output(None, help="Also write the comparison as a page.", metavar="FILE")
    markdown: Path | None = _output(
        None, help="Also write a comment for a pull request.", metavar="FILE"
    )


@dataclass(frozen=True)
class TracingOptions:
    """Which number is traced."""

    row: str = option(
        help="Row of estimates.csv: names such as policy=focal,schedule=replay,quantity=J, as many "
        "as it takes, or its number.",
        group=_ROWS,
        metavar="NAMES|NUMBER",
    )
    question: str | None = option(
        None, help="List only what belongs to this question.", group=_ROWS, metavar="ID"
    )
    prompts: bool = _output(False, help="Also print the texts of the prompts.")


@dataclass(frozen=True)
class Planning:
    """Which number is planned for, and how precisely."""

    quantity: str = option(help="Name in estimates.csv: J, D_res, restored-absent, …", group=_ROWS)
    half_width: float | None = _statistic(
        None, help="Distance of the limits from the estimate to reach."
    )
    effect: float | None = _statistic(None, help="An effect to show, instead of a half-width.")
    power: float = _statistic(0.8, help="Probability of showing the effect.")
    policy: str | None = option(None, help="A policy of the run.", group=_ROWS, short="-p")
    schedule: str | None = option(None, help="A schedule of the run.", group=_ROWS, short="-s")
    model: str | None = option(None, help="A model of the run.", group=_ROWS, short="-m")
    experiment: str | None = option(
        None, help="An experiment of the run. Default: routes.", group=_ROWS
    )
    arm: str | None = option(
        None, help="An arm of the experiment, such as construction.", group=_ROWS
    )
    questions: Sequence[float] = _statistic(
        (), help="Questions per unit to consider; repeat for more."
    )
    draws: Sequence[int] = _statistic((), help="Draws to consider; repeat for more.")


@dataclass(frozen=True)
class Reporting:
    """Which files are written of a run."""

    out: Path | None = option(
        None, help="Write the page here instead of into the run.", group=_FILES, metavar="FILE"
    )
    tables: Path | None = option(
        None, help="Also write tables as Markdown and LaTeX.", group=_FILES, metavar="DIR"
    )
    charts: Path | None = option(
        None, help="Also write charts as SVG and PNG.", group=_FILES, metavar="DIR"
    )
    answers: Path | None = option(
        None, help="Also write all answers, for recorded:FILE.", group=_FILES, metavar="FILE"
    )
    parquet: Path | None = option(
        None, help="Also write the numbers as Parquet.", group=_FILES, metavar="FILE"
    )
    inspect: Path | None = option(
        None,
        help="Also write the answers as an Inspect log (.eval or .json).",
        group=_FILES,
        metavar="FILE",
    )
    megabytes: float = option(
        10, help="Most room that the texts of pools may take in the page.", group=_FILES, minimum=0
    )
    open: bool = _output(False, help="Open the page in a browser.", python=False)


@dataclass(frozen=True)
class Reproduction:
    """Which of the paper's tables are shown or computed again."""

    tables: Sequence[str] = option(
        (), help="Labels such as tab:mechanism-state. Default: a summary of all.", flag=""
    )
    execute: bool = option(
        False, help="Compute again what can be computed here, and write the values.", flag="--run"
    )
    model: str | None = _answer(
        None,
        help="Model that answers where a table needs answers, such as reader or recorded:FILE; "
        "with --run.",
    )
    masks: Sequence[str] = option(
        (),
        help="[NAME=]FILE of the question ids of a set that tables are about. Default name: "
        "primary. Repeat for more.",
        flag="--mask",
    )
    data: Path | None = option(
        None, help="Directory with the benchmark files.", environment="ROUTEPRISM_DATA"
    )
    write: Path | None = _output(None, help="Write the page of all tables (Markdown).")
    obtained: Path | None = _output(
        None,
        help="File of obtained values. Default: reproduction/obtained.json with --run, else the "
        "values that come with the package.",
    )
    keep: Path | None = _output(None, help="Run directory for the result and its report.")


@dataclass(frozen=True)
class Adapter:
    """Which memory is checked."""

    adapter: str = option(
        help="A policy: package.module:Name, mem0, http:url=…, command:run=….",
        flag="",
        accepts="Any",
    )


@dataclass(frozen=True)
class Download:
    """Which files are downloaded."""

    benchmark: str = option(help="personamem, locomo, or longmemeval[:variant=m].", flag="")
    data: Path | None = option(
        None, help="Directory for the benchmark files.", environment="ROUTEPRISM_DATA"
    )
    base_url: str | None = option(
        None, help="Different address that has the files under their names."
    )
    yes: bool = option(False, help="Accept the licence without asking.", short="-y", python=False)


@dataclass(frozen=True)
class Listing:
    """Which names are listed."""

    what: str = option(
        "policies",
        help="policies, benchmarks, models, schedules, procedures, arrivals, interfaces, judges, "
        "coordinates or experiments.",
        flag="",
    )


_SOURCE = (BenchmarkOptions, Policies, Comparators, Labels, ReadingsOptions, Masks)
_RUN = (StatisticsOptions, Money, Cassettes, ExecutionOptions, Shards, Output)


def _experiment_parts(command: str) -> list[type]:
    """Give the options that the registered experiments add to a command."""
    from routeprism.experiments import registered_experiments

    return [one.settings for one in registered_experiments(command) if one.settings is not None]


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
    return compose(name, *parts)


_COMMANDS: Mapping[str, Callable[[], type[Any]]] = {
    "audit": _audit,
    "restore": _restore,
    "remedy": _remedy,
    "orders": _orders,
    "curve": _curve,
    "screen": partial(_study, "ScreenSettings", Screening),
    "support": partial(_study, "SupportSettings", Compiled),
    "demo": partial(compose, "DemoSettings", Output),
    "check": partial(compose, "CheckSettings", StoredRunOptions, Gates, VerdictOptions),
    "compare": partial(compose, "CompareSettings", TwoRuns, VerdictOptions),
    "merge": partial(compose, "MergeSettings", MergedRuns, Output),
    "trace": partial(compose, "TraceSettings", StoredRunOptions, TracingOptions, Json),
    "plan": partial(compose, "PlanSettings", StoredRunOptions, Planning, Json),
    "report": partial(compose, "ReportSettings", StoredRunOptions, Reporting, Printing),
    "reproduce": partial(
        compose,
        "ReproduceSettings",
        Reproduction,
        Labels,
        ReadingsOptions,
        Limits,
        Workers,
        Printing,
    ),
    "check-adapter": partial(compose, "AdapterSettings", Adapter, Limits, Json),
    "fetch": partial(compose, "FetchSettings", Download, Printing),
    "list": partial(compose, "ListSettings", Listing, Json),
}


def settings_for(command: str) -> type[Any]:
    """Give the settings of a command, composed of its parts."""
    return _COMMANDS[command]()
