"""The commands and their options."""

from __future__ import annotations

import shlex
import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer

from routeprism.cli import _options as options
from routeprism.errors import RoutePrismError

__all__ = ["app", "main"]

app = typer.Typer(
    name="routeprism",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_NEXT = """\
RoutePrism says whether an agent memory loses evidence because of the order of arrival.

  routeprism demo                               the protocol on the bundled sample, in a minute
  routeprism audit sample -p focal              one policy in two orders; list policies names more
  routeprism audit sample -p my_module:Memory   your own class with add, retained and expose
  routeprism audit my_data -p focal             your own records.jsonl and questions.jsonl
  routeprism check runs/… --gate 'J>=0.9'       hold a run to a limit, in your build

routeprism --help lists the commands, --install-completion completes them with the tab key, and
README.md and docs/ of the source say what the numbers mean.
"""
_STOPPED = (
    "routeprism: stopped. Answers that came in are kept in the run and are not asked for again; a "
    "new run without answers leaves nothing behind. To go on:"
)
_INTERRUPTED = 130
"""What typer makes of Ctrl-C."""


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"routeprism {version('routeprism')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Say which one this is."),
    ] = False,
) -> None:
    """Find out whether arrival order makes an agent memory lose evidence."""
    if context.invoked_subcommand is None:
        print(_NEXT, end="")


@app.command()
def audit(
    benchmark: options.BenchmarkName,
    policy: options.Policies,
    schedule: options.Schedules = ["replay"],  # noqa: B006 (typer copies it)
    kind: options.Kinds = [],  # noqa: B006
    interface: options.Interface = None,
    labels: options.Labels = None,
    readings: options.ReadingFiles = [],  # noqa: B006
    mask: options.Masks = [],  # noqa: B006
    comparators: options.Comparators = False,
    mechanism: options.Mechanism = False,
    ties: options.Ties = False,
    over_time: options.OverTime = False,
    builds: options.Builds = 1,
    model: options.Models = [],  # noqa: B006
    draws: options.Draws = 1,
    control: options.Control = "exact",
    filler: options.Fillers = ["A"],  # noqa: B006
    provenance: options.Provenances = ["preserved"],  # noqa: B006
    margin: options.Margin = 0.02,
    display: options.Displays = [],  # noqa: B006
    reuse: options.Reuse = False,
    batch: options.Batches = [""],  # noqa: B006
    judge: options.JudgeName = None,
    base_url: options.BaseUrl = None,
    rate_limit: options.RateLimit = None,
    concurrency: options.Concurrency = None,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    data: options.Data = None,
    run: options.RunDirectory = None,
    seed: options.Seed = 20260910,
    resamples: options.Resamples = 10_000,
    interval: options.IntervalName = None,
    workers: options.Workers = None,
    ray: options.Ray = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Build memories in several orders; say what changed, at which layer, and what answers do."""
    from routeprism.cli._audit import run_and_show

    run_and_show(
        benchmark,
        policy,
        schedules=schedule,
        kinds=kind,
        interface=interface,
        labels=labels,
        readings=readings,
        masks=mask,
        comparators=comparators,
        mechanism=mechanism,
        ties=ties,
        over_time=over_time,
        builds=builds,
        models=model,
        draws=draws,
        control=control,
        fillers=filler,
        provenance=provenance,
        margin=margin,
        display=display,
        reuse=reuse,
        batches=batch,
        judge=judge,
        base_url=base_url,
        rate_limit=rate_limit,
        concurrency=concurrency,
        dry_run=dry_run,
        yes=yes,
        data=data,
        run=run,
        seed=seed,
        resamples=resamples,
        interval=interval,
        workers=workers,
        ray=ray,
        as_json=json,
        quiet=quiet,
    )


@app.command()
def restore(
    benchmark: options.BenchmarkName,
    policy: options.Policies,
    model: options.Models,
    schedule: options.Schedules = ["replay"],  # noqa: B006
    kind: options.Kinds = [],  # noqa: B006
    interface: options.Interface = None,
    labels: options.Labels = None,
    readings: options.ReadingFiles = [],  # noqa: B006
    mask: options.Masks = [],  # noqa: B006
    draws: options.Draws = 3,
    control: options.Control = "aligned",
    filler: options.Fillers = ["A"],  # noqa: B006
    provenance: options.Provenance = "preserved",
    batch: options.Batches = [""],  # noqa: B006
    judge: options.JudgeName = None,
    design: options.Designs = [],  # noqa: B006
    bundle_tokens: options.BundleTokens = 16_000,
    base_url: options.BaseUrl = None,
    rate_limit: options.RateLimit = None,
    concurrency: options.Concurrency = None,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    data: options.Data = None,
    run: options.RunDirectory = None,
    seed: options.Seed = 20260910,
    resamples: options.Resamples = 10_000,
    interval: options.IntervalName = None,
    workers: options.Workers = None,
    ray: options.Ray = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Put displaced records back, against matched ones that do not carry the answer."""
    from routeprism.api import restore as call
    from routeprism.cli._audit import run_and_show

    run_and_show(
        benchmark,
        policy,
        call=call,
        schedules=schedule,
        kinds=kind,
        interface=interface,
        labels=labels,
        readings=readings,
        masks=mask,
        models=model,
        draws=draws,
        control=control,
        fillers=filler,
        provenance=provenance,
        batches=batch,
        judge=judge,
        designs=design,
        bundle_tokens=bundle_tokens,
        base_url=base_url,
        rate_limit=rate_limit,
        concurrency=concurrency,
        dry_run=dry_run,
        yes=yes,
        data=data,
        run=run,
        seed=seed,
        resamples=resamples,
        interval=interval,
        workers=workers,
        ray=ray,
        as_json=json,
        quiet=quiet,
    )


@app.command()
def curve(
    benchmark: options.BenchmarkName,
    policy: options.Family = "recent",
    budget: options.PolicyBudgets = "k=4,8,16,32",
    context: options.ContextBudgets = None,
    schedule: options.Schedules = ["replay", "jitter:w=2"],  # noqa: B006
    kind: options.Kinds = [],  # noqa: B006
    interface: options.Interface = None,
    labels: options.Labels = None,
    stable: options.Stable = 0.9,
    data: options.Data = None,
    run: options.RunDirectory = None,
    seed: options.Seed = 20260910,
    resamples: options.Resamples = 10_000,
    interval: options.IntervalName = None,
    workers: options.Workers = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Say which budget buys stability: retention and recall at several budgets and contexts."""
    from routeprism.cli._curve import run_and_show_curve

    run_and_show_curve(
        benchmark,
        policy,
        budgets=budget,
        contexts=context,
        schedules=schedule,
        kinds=kind,
        interface=interface,
        labels=labels,
        stable=stable,
        data=data,
        run=run,
        seed=seed,
        resamples=resamples,
        interval=interval,
        workers=workers,
        as_json=json,
        quiet=quiet,
    )


@app.command()
def orders(
    benchmark: options.BenchmarkName,
    policy: options.Policies,
    arrival: options.ArrivalModels = ["uniform"],  # noqa: B006
    shrink: options.Shrink = None,
    worst: options.Worst = "",
    method: options.MethodName = None,
    number: options.Drawn = 1_000,
    half_width: options.HalfWidth = None,
    most_states: options.MostStates = 200_000,
    kind: options.Kinds = [],  # noqa: B006
    interface: options.Interface = None,
    labels: options.Labels = None,
    readings: options.ReadingFiles = [],  # noqa: B006
    mask: options.Masks = [],  # noqa: B006
    comparators: options.Comparators = False,
    data: options.Data = None,
    run: options.RunDirectory = None,
    seed: options.Seed = 20260910,
    resamples: options.Resamples = 10_000,
    interval: options.IntervalName = None,
    workers: options.Workers = None,
    ray: options.Ray = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Look at every order, or a sample: what is kept, the worst order, the smallest reordering."""
    from routeprism.cli._orders import run_orders_and_show

    run_orders_and_show(
        benchmark,
        policy,
        arrivals=arrival,
        shrink=shrink,
        worst=worst,
        method=method,
        drawn=number,
        half_width=half_width,
        most_states=most_states,
        kinds=kind,
        interface=interface,
        labels=labels,
        readings=readings,
        masks=mask,
        comparators=comparators,
        data=data,
        run=run,
        seed=seed,
        resamples=resamples,
        interval=interval,
        workers=workers,
        ray=ray,
        as_json=json,
        quiet=quiet,
    )


@app.command()
def screen(
    benchmark: options.BenchmarkName,
    pass_: options.Passes = [],  # noqa: B006
    export: options.Export = None,
    gold_visible: options.GoldVisible = False,
    kind: options.Kinds = [],  # noqa: B006
    gate: options.Gate = None,
    write_mask: options.WriteMask = None,
    mask: options.Masks = [],  # noqa: B006
    primary: options.Primary = None,
    base_url: options.BaseUrl = None,
    rate_limit: options.RateLimit = None,
    concurrency: options.Concurrency = None,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    data: options.Data = None,
    run: options.RunDirectory = None,
    seed: options.Seed = 20260910,
    resamples: options.Resamples = 10_000,
    interval: options.IntervalName = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Say which pools may be reordered at all: readings by models or people, and gates."""
    from routeprism.cli._screen import run_screen

    run_screen(
        benchmark,
        passes=pass_,
        export=export,
        gold_visible=gold_visible,
        kinds=kind,
        gate_rule=gate,
        mask_file=write_mask,
        masks=mask,
        primary=primary,
        base_url=base_url,
        rate_limit=rate_limit,
        concurrency=concurrency,
        dry_run=dry_run,
        yes=yes,
        data=data,
        run=run,
        seed=seed,
        resamples=resamples,
        interval=interval,
        as_json=json,
        quiet=quiet,
    )


@app.command()
def support(
    benchmark: options.BenchmarkName,
    pass_: options.Passes = [],  # noqa: B006
    export: options.Export = None,
    compiled: options.Compiled = None,
    policy: options.ContextPolicies = [],  # noqa: B006
    kind: options.Kinds = [],  # noqa: B006
    mask: options.Masks = [],  # noqa: B006
    primary: options.Primary = None,
    base_url: options.BaseUrl = None,
    rate_limit: options.RateLimit = None,
    concurrency: options.Concurrency = None,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    data: options.Data = None,
    run: options.RunDirectory = None,
    seed: options.Seed = 20260910,
    resamples: options.Resamples = 10_000,
    interval: options.IntervalName = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Say which records carry the answer: labels by models or people, and their agreement."""
    from routeprism.cli._support import run_support

    run_support(
        benchmark,
        passes=pass_,
        export=export,
        compiled=compiled,
        policies=policy,
        kinds=kind,
        masks=mask,
        primary=primary,
        base_url=base_url,
        rate_limit=rate_limit,
        concurrency=concurrency,
        dry_run=dry_run,
        yes=yes,
        data=data,
        run=run,
        seed=seed,
        resamples=resamples,
        interval=interval,
        as_json=json,
        quiet=quiet,
    )


@app.command()
def check(
    run: options.StoredRun,
    gate: options.Gates = [],  # noqa: B006
    baseline: options.Baseline = None,
    junit: options.JUnit = None,
    github: options.GitHub = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Hold a run's numbers to limits: exit code 1 and the questions where one is not kept."""
    from routeprism.cli._check import run_check

    run_check(run, gate, baseline=baseline, junit=junit, github=github, as_json=json, quiet=quiet)


@app.command()
def compare(
    first: options.StoredRun,
    second: options.StoredRun,
    policy_a: options.PolicyBefore = [],  # noqa: B006
    policy_b: options.PolicyAfter = [],  # noqa: B006
    html: options.ComparisonPage = None,
    json: options.Json = False,
) -> None:
    """Say what changed between two versions of a memory, from the first run to the second."""
    from routeprism.cli._compare import show_comparison

    show_comparison(first, second, policy_a, policy_b, html=html, as_json=json)


@app.command()
def trace(
    run: options.StoredRun,
    row: options.Row,
    question: options.OneQuestion = None,
    prompts: options.Prompts = False,
    json: options.Json = False,
) -> None:
    """Go from a number to the rows behind it: units, questions, answers, readings."""
    from routeprism.cli._trace import run_trace

    run_trace(run, row, question=question, prompts=prompts, as_json=json)


@app.command()
def plan(
    run: options.StoredRun,
    quantity: options.Quantity,
    half_width: options.GoalWidth = None,
    effect: options.Effect = None,
    power: options.Power = 0.8,
    policy: options.OnePolicy = None,
    schedule: options.OneSchedule = None,
    model: options.OneModel = None,
    questions: options.QuestionNumbers = [],  # noqa: B006
    draws: options.DrawNumbers = [],  # noqa: B006
    json: options.Json = False,
) -> None:
    """Say how many units, questions and draws a precision or power takes, from a pilot run."""
    from routeprism.cli._plan import run_plan

    run_plan(
        run,
        quantity,
        half_width=half_width,
        effect=effect,
        power=power,
        policy=policy,
        schedule=schedule,
        model=model,
        questions=questions,
        draws=draws,
        as_json=json,
    )


@app.command()
def reproduce(
    table: options.TableLabels = [],  # noqa: B006
    run: options.Execute = False,
    model: options.AnswerModel = None,
    labels: options.Labels = None,
    readings: options.ReadingFiles = [],  # noqa: B006
    mask: options.PrimaryMask = None,
    data: options.Data = None,
    write: options.WritePage = None,
    obtained: options.ObtainedFile = None,
    keep: options.KeepDirectory = None,
    workers: options.Workers = None,
    yes: options.Yes = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Show the paper's numbers beside what this package gives, cell by cell."""
    from routeprism.cli._reproduce import run_reproduce

    run_reproduce(
        table,
        run=run,
        model=model,
        support=labels,
        readings=readings,
        mask=mask,
        data=data,
        write=write,
        obtained=obtained,
        kept=keep,
        workers=workers,
        yes=yes,
        as_json=json,
        quiet=quiet,
    )


@app.command()
def demo(
    run: options.RunDirectory = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Run the whole protocol on the synthetic sample, read by the embedded reader."""
    from routeprism.cli._demo import show_demo

    show_demo(run=run, as_json=json, quiet=quiet)


@app.command(name="check-adapter")
def check_adapter(
    adapter: Annotated[
        str, typer.Argument(help="A policy: package.module:Name, mem0, http:url=…, command:run=… …")
    ],
    json: options.Json = False,
) -> None:
    """Check that a memory can be audited: isolation, provenance, determinism, clean-up."""
    from routeprism.cli._check_adapter import run_checks

    run_checks(adapter, as_json=json)


@app.command()
def fetch(
    benchmark: options.Fetchable,
    data: options.Data = None,
    base_url: options.Mirror = None,
    yes: options.Accept = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Download a benchmark's files into the data directory, after showing their licence."""
    from routeprism.cli._fetch import run_fetch

    run_fetch(benchmark, data=data, base_url=base_url, yes=yes, as_json=json, quiet=quiet)


@app.command()
def report(
    run: options.RunArgument,
    open_: options.Open = False,
    out: options.Out = None,
    tables: options.TablesDirectory = None,
    charts: options.ChartsDirectory = None,
    answers: options.AnswersFile = None,
    megabytes: options.Megabytes = 10,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Write a run's report: one page that needs no network."""
    from routeprism.cli._report import run_report

    run_report(
        run,
        out=out,
        tables=tables,
        charts=charts,
        answers=answers,
        megabytes=megabytes,
        show=open_,
        as_json=json,
        quiet=quiet,
    )


@app.command(name="list")
def list_(
    what: Annotated[
        str,
        typer.Argument(
            help="policies, benchmarks, models, schedules, arrivals, interfaces, coordinates."
        ),
    ] = "policies",
    json: options.Json = False,
) -> None:
    """List what can be named on the command line."""
    from routeprism.cli._list import show_list

    show_list(what, as_json=json)


def main() -> None:
    """Run the command line: 0 fine, 1 a gate or finding failed, 2 the call or input was wrong."""
    # A memory class of the user's own is named as module:Name and lies where they are.
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        app(prog_name="routeprism")
    except RoutePrismError as error:
        print(f"routeprism: {error}", file=sys.stderr)
        sys.exit(2)
    except SystemExit as end:
        if end.code == _INTERRUPTED:
            _say_how_to_go_on()
        raise
    except Exception:
        # A memory class of the user's own may raise anything; 1 would say that a gate failed.
        traceback.print_exc()
        _say_how_to_go_on()
        sys.exit(2)


def _say_how_to_go_on() -> None:
    print(f"{_STOPPED}\n  {shlex.join(['routeprism', *sys.argv[1:]])}", file=sys.stderr)
