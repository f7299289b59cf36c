"""Options of commands that read finished runs, and of those that set things up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from routeprism.settings import answer_option, option, output_option, statistic_option


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
        help="Limit, such as evidence.lost<=0.02, anomaly<=0, restored-absent.lower<=0.1 or "
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
    junit: Path | None = output_option(
        None, help="Also write the results as JUnit XML.", metavar="FILE", python=False
    )
    github: bool = output_option(
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
        (), help="Policy in AFTER, for each --policy-a.", flag="--policy-b"
    )
    html: Path | None = output_option(
        None, help="Also write the comparison as an HTML page.", metavar="FILE"
    )
    markdown: Path | None = output_option(
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
    prompts: bool = output_option(False, help="Also print the text of each prompt.")


@dataclass(frozen=True)
class Planning:
    """Which number is planned for, and how precisely."""

    quantity: str = option(help="Quantity in estimates.csv, such as J, D_res or restored-absent.")
    half_width: float | None = statistic_option(
        None, help="Half-width of the 95% interval to reach."
    )
    effect: float | None = statistic_option(
        None, help="Effect to detect, instead of a half-width to reach."
    )
    power: float = statistic_option(0.8, help="Probability of detecting the effect.")
    policy: str | None = option(None, help="Policy in the run.", short="-p")
    schedule: str | None = option(None, help="Schedule in the run.", short="-s")
    model: str | None = option(None, help="Model in the run.", short="-m")
    experiment: str | None = option(None, help="Experiment in the run. Default: routes.")
    arm: str | None = option(None, help="Arm of the experiment, such as construction.")
    questions: Sequence[float] = statistic_option(
        (), help="Number of questions per unit to consider; repeat for more."
    )
    draws: Sequence[int] = statistic_option(
        (), help="Number of draws to consider; repeat for more."
    )


@dataclass(frozen=True)
class Reporting:
    """Which files are written of a run."""

    out: Path | None = option(
        None, help="Write the page to this file instead of into the run.", metavar="FILE"
    )
    tables: Path | None = option(
        None, help="Also write tables as Markdown and LaTeX.", metavar="DIR"
    )
    charts: Path | None = option(None, help="Also write charts as SVG and PNG.", metavar="DIR")
    answers: Path | None = option(
        None, help="Also write all answers, in the format that recorded:FILE reads.", metavar="FILE"
    )
    parquet: Path | None = option(None, help="Also write the numbers as Parquet.", metavar="FILE")
    inspect: Path | None = option(
        None, help="Also write the answers as an Inspect log (.eval or .json).", metavar="FILE"
    )
    megabytes: float = option(
        10, help="Maximum size of the record texts in the page, in megabytes.", minimum=0
    )
    open: bool = output_option(False, help="Open the page in a browser.", python=False)


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
    model: str | None = answer_option(
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
    write: Path | None = output_option(
        None, help="Write all tables to this Markdown page.", resume=True
    )
    obtained: Path | None = output_option(
        None,
        help="File with the obtained values. Default: reproduction/obtained.json with --run, "
        "otherwise the values in the package.",
        resume=True,
    )
    keep: Path | None = output_option(
        None, help="Directory in which to keep the run and its report."
    )


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
