"""The commands that read runs, and those beside them."""

from __future__ import annotations

from typing import Annotated

import typer

from routeprism.cli import _options as options
from routeprism.cli._app import app


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
    experiment: options.OneExperiment = None,
    arm: options.OneArm = None,
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
        experiment=experiment,
        arm=arm,
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
