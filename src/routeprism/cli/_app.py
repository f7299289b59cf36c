"""The commands and their options."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Annotated, Optional

import typer

from routeprism.errors import RoutePrismError

__all__ = ["app", "main"]

app = typer.Typer(
    name="routeprism",
    help="Does your agent memory lose evidence because of the order in which records arrived?",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_INTERRUPTED = 130
"""What typer makes of Ctrl-C."""

# Optional[…] and not "… | None": typer reads these annotations at run time on Python 3.10 as well.
BenchmarkName = Annotated[
    str,
    typer.Argument(
        help="sample, personamem, locomo, or a directory with records.jsonl and questions.jsonl."
    ),
]
Policies = Annotated[
    list[str],
    typer.Option(
        "--policy",
        "-p",
        help="A policy, again for more: focal, recent:k=3, source-order(focal), my.module:Memory …",
    ),
]
Schedules = Annotated[
    list[str],
    typer.Option("--schedule", "-s", help="An order to compare with forward, again for more."),
]
Kinds = Annotated[
    list[str],
    typer.Option("--kind", help="Only questions of this kind, again for more; all unless given."),
]
Interface = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(help="What whole-record policies expose through: all, budget:…, bm25:k=3."),
]
Labels = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(help="Which support labels to read; the benchmark's first unless given."),
]
Comparators = Annotated[
    bool, typer.Option("--comparators", help="Also run each policy's source-order comparator.")
]
Ties = Annotated[bool, typer.Option("--ties", help="Count the ties that processing order decided.")]
Models = Annotated[
    list[str],
    typer.Option(
        "--model",
        "-m",
        help="Who answers, again for more: reader, openai:MODEL, smollm2, hf:PATH, recorded:FILE.",
    ),
]
Draws = Annotated[
    int, typer.Option(min=1, help="Answers per route and prompt; 2 or more give the residual.")
]
Control = Annotated[
    str, typer.Option(help="What is equal in a pair's prompts: none, exact, balanced, aligned.")
]
Fillers = Annotated[list[str], typer.Option("--filler", help="Padding: A or B, or both.")]
Provenance = Annotated[
    str, typer.Option(help="preserved, gated, neutral or placebo: what is said of conflicts.")
]
Batches = Annotated[
    list[str],
    typer.Option("--batch", help="An independent realisation of the prompts; again to compare."),
]
JudgeName = Annotated[str, typer.Option("--judge", help="For free text: embedded, or a model.")]
BaseUrl = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(help="Of an OpenAI-compatible endpoint."),
]
RateLimit = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option(help="Requests a minute at most, for each model."),
]
Concurrency = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(min=1, help="Requests at once; the model's own number unless given."),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say how many calls, tokens and how much money; ask none.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before spending.")]
Data = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(envvar="ROUTEPRISM_DATA", show_envvar=True, help="Where benchmark files are."),
]
RunDirectory = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--run", help="Where to keep the run; runs/… unless given."),
]
Seed = Annotated[int, typer.Option(min=0, help="Of the bootstrap.")]
Resamples = Annotated[int, typer.Option(min=100, help="Of the bootstrap.")]
Workers = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(min=1, help="Processes; chosen by the number of pools unless given."),
]
Json = Annotated[bool, typer.Option("--json", help="Print every estimate as JSON, nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]


@app.command()
def audit(
    benchmark: BenchmarkName,
    policy: Policies,
    schedule: Schedules = ["replay"],  # noqa: B006 (typer copies it)
    kind: Kinds = [],  # noqa: B006
    interface: Interface = None,
    labels: Labels = None,
    comparators: Comparators = False,
    ties: Ties = False,
    model: Models = [],  # noqa: B006
    draws: Draws = 1,
    control: Control = "exact",
    filler: Fillers = ["A"],  # noqa: B006
    provenance: Provenance = "preserved",
    batch: Batches = [""],  # noqa: B006
    judge: JudgeName = "embedded",
    base_url: BaseUrl = None,
    rate_limit: RateLimit = None,
    concurrency: Concurrency = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    data: Data = None,
    run: RunDirectory = None,
    seed: Seed = 20260910,
    resamples: Resamples = 10_000,
    workers: Workers = None,
    json: Json = False,
    quiet: Quiet = False,
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
        comparators=comparators,
        ties=ties,
        models=model,
        draws=draws,
        control=control,
        fillers=filler,
        provenance=provenance,
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
        workers=workers,
        as_json=json,
        quiet=quiet,
    )


@app.command()
def restore(
    benchmark: BenchmarkName,
    policy: Policies,
    model: Models,
    schedule: Schedules = ["replay"],  # noqa: B006
    kind: Kinds = [],  # noqa: B006
    interface: Interface = None,
    labels: Labels = None,
    draws: Draws = 3,
    control: Control = "aligned",
    filler: Fillers = ["A"],  # noqa: B006
    provenance: Provenance = "preserved",
    batch: Batches = [""],  # noqa: B006
    judge: JudgeName = "embedded",
    bundle_tokens: Annotated[
        int, typer.Option(min=1, help="How long the prompt of a bundle may be.")
    ] = 16_000,
    base_url: BaseUrl = None,
    rate_limit: RateLimit = None,
    concurrency: Concurrency = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    data: Data = None,
    run: RunDirectory = None,
    seed: Seed = 20260910,
    resamples: Resamples = 10_000,
    workers: Workers = None,
    json: Json = False,
    quiet: Quiet = False,
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
        models=model,
        draws=draws,
        control=control,
        fillers=filler,
        provenance=provenance,
        batches=batch,
        judge=judge,
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
        workers=workers,
        as_json=json,
        quiet=quiet,
    )


@app.command()
def demo(
    run: RunDirectory = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Audit five policies on the synthetic sample, read by the embedded reader."""
    from routeprism.cli._audit import show_demo

    show_demo(run=run, as_json=json, quiet=quiet)


@app.command(name="list")
def list_(
    what: Annotated[
        str,
        typer.Argument(help="policies, benchmarks, schedules, interfaces or coordinates."),
    ] = "policies",
    json: Json = False,
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
            print("routeprism: stopped; nothing half-written was left", file=sys.stderr)
        raise
    except Exception:
        # A memory class of the user's own may raise anything; 1 would say that a gate failed.
        traceback.print_exc()
        print("routeprism: stopped by this error; nothing half-written was left", file=sys.stderr)
        sys.exit(2)
