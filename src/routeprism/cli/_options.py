"""The options that commands share, each said once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

__all__ = [
    "Accept",
    "AnswerModel",
    "AnswersFile",
    "ArrivalModels",
    "BaseUrl",
    "Baseline",
    "Batches",
    "BenchmarkName",
    "Builds",
    "BundleTokens",
    "ChartsDirectory",
    "Comparators",
    "ComparisonPage",
    "Compiled",
    "Concurrency",
    "ContextBudgets",
    "ContextPolicies",
    "Control",
    "Data",
    "Designs",
    "Displays",
    "DrawNumbers",
    "Drawn",
    "Draws",
    "DryRun",
    "Effect",
    "Execute",
    "Export",
    "Family",
    "Fetchable",
    "Fillers",
    "Gate",
    "Gates",
    "GitHub",
    "GoalWidth",
    "GoldVisible",
    "HalfWidth",
    "Interface",
    "IntervalName",
    "JUnit",
    "Json",
    "JudgeName",
    "KeepDirectory",
    "Kinds",
    "Labels",
    "Margin",
    "Masks",
    "Mechanism",
    "Megabytes",
    "MethodName",
    "Mirror",
    "Models",
    "MostStates",
    "ObtainedFile",
    "OneArm",
    "OneExperiment",
    "OneModel",
    "OnePolicy",
    "OneQuestion",
    "OneSchedule",
    "Open",
    "Out",
    "OverTime",
    "Passes",
    "Policies",
    "PolicyAfter",
    "PolicyBefore",
    "PolicyBudgets",
    "Power",
    "Prompts",
    "Primary",
    "PrimaryMask",
    "Provenance",
    "Provenances",
    "Quantity",
    "QuestionNumbers",
    "Quiet",
    "RateLimit",
    "Ray",
    "ReadingFiles",
    "Resamples",
    "Reuse",
    "Row",
    "RunArgument",
    "RunDirectory",
    "Schedules",
    "Seed",
    "Shrink",
    "Stable",
    "StoredRun",
    "TableLabels",
    "TablesDirectory",
    "Ties",
    "Workers",
    "Worst",
    "WriteMask",
    "WritePage",
    "Yes",
]

# Optional[…] and not "… | None": typer reads these annotations at run time on Python 3.10 as well.
BenchmarkName = Annotated[
    str,
    typer.Argument(
        help="sample, personamem, locomo, longmemeval, or a directory with records.jsonl and "
        "questions.jsonl."
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
Mechanism = Annotated[
    bool,
    typer.Option("--mechanism", help="Also run policies with each of their operations fixed."),
]
Builds = Annotated[
    int, typer.Option(min=1, help="Builds of each route; 2 or more tell order from chance.")
]
Ties = Annotated[bool, typer.Option("--ties", help="Count the ties that processing order decided.")]
OverTime = Annotated[
    bool,
    typer.Option("--over-time", help="Also say what is retained as the history grows."),
]
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
Provenances = Annotated[
    list[str],
    typer.Option(
        "--provenance", help="preserved, gated, neutral or placebo; again to compare instructions."
    ),
]
Margin = Annotated[
    float,
    typer.Option(help="By how much accuracy may be worse under one of several instructions."),
]
Displays = Annotated[
    list[str],
    typer.Option(
        "--display",
        help="Ask each state in another block order, too: reversed within kinds, or source.",
    ),
]
Reuse = Annotated[
    bool, typer.Option("--reuse", help="Also estimate over all but each user's first question.")
]
Batches = Annotated[
    list[str],
    typer.Option("--batch", help="An independent realisation of the prompts; again to compare."),
]
JudgeName = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--judge", help="For free text: embedded, a model, or recorded verdicts."),
]
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
RunArgument = Annotated[
    Path, typer.Argument(metavar="RUN", help="A run's directory.", show_default=False)
]
Open = Annotated[bool, typer.Option("--open", help="Show it in a browser.")]
Out = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--out", metavar="FILE", help="Write the page here, not into the run."),
]
ComparisonPage = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--html", metavar="FILE", help="Also write it as a page."),
]
Megabytes = Annotated[
    float, typer.Option(min=0, help="How much room the texts of pools may take in the page.")
]
TablesDirectory = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--tables", metavar="DIR", help="Also write tables as Markdown and LaTeX."),
]
ChartsDirectory = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--charts", metavar="DIR", help="Also write charts as SVG and PNG."),
]
AnswersFile = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--answers", metavar="FILE", help="Also write all answers, for recorded:FILE."),
]
Seed = Annotated[int, typer.Option(min=0, help="Of the bootstrap.")]
Resamples = Annotated[int, typer.Option(min=100, help="Of the bootstrap.")]
IntervalName = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--interval",
        help="expanded, percentile, bca or studentised limits; the benchmark's own unless given.",
    ),
]
Workers = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(min=1, help="Processes; chosen by the number of pools unless given."),
]
Ray = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(metavar="ADDRESS", help="Of a Ray cluster to work on: auto, or HOST:PORT."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]

Masks = Annotated[
    list[str],
    typer.Option("--mask", help="[NAME=]FILE of question ids; numbers are given within it, too."),
]
ReadingFiles = Annotated[
    list[Path],
    typer.Option(
        "--readings",
        help="A support pass (JSON), or CSV of question and record, for --labels audited:NAME.",
    ),
]
Passes = Annotated[
    list[str],
    typer.Option("--pass", help="NAME=MODEL or NAME=FILE (a filled-in sheet); again for more."),
]
Export = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(help="Write the cards as a sheet for people to fill in, and stop."),
]
Primary = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(help="Which pass is primary; declared before outcomes are read."),
]
Gate = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(help="intersection, majority, unanimity, or a pass: which questions go through."),
]
WriteMask = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(help="Where the questions that go through the gate are written."),
]
GoldVisible = Annotated[
    bool, typer.Option("--gold-visible", help="The separate rubric that sees the right answer.")
]
Compiled = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(help="A finished run, whose compiled contexts are read instead of records."),
]
ContextPolicies = Annotated[
    list[str], typer.Option("--policy", "-p", help="Only the contexts of this policy of the run.")
]
Fetchable = Annotated[
    str,
    typer.Argument(help="personamem, locomo, or longmemeval[:variant=m], as it is audited."),
]
Mirror = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--base-url", help="Another place that has the files under their names."),
]
Accept = Annotated[bool, typer.Option("--yes", "-y", help="Accept the licence without asking.")]
Family = Annotated[
    str, typer.Option("--policy", "-p", help="The policy without its budget, such as recent.")
]
PolicyBudgets = Annotated[
    str, typer.Option("--budget", help="The policy's budget and its values: k=4,8,16,32.")
]
ContextBudgets = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--context", help="The interface's budget and its values: k=1,3,10."),
]
Stable = Annotated[
    float, typer.Option(min=0, max=1, help="The overlap from which on two orders are the same.")
]
Designs = Annotated[
    list[str],
    typer.Option("--design", help="Only single, bundle or identity-swap; again for more."),
]
BundleTokens = Annotated[int, typer.Option(min=1, help="How long a bundle's prompt may be.")]

StoredRun = Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a finished run.")]
Gates = Annotated[
    list[str],
    typer.Option(
        "--gate",
        "-g",
        help="A limit, again for more: J>=0.9, restored-absent.lower<=0.1, policy=focal:J>=0.9.",
    ),
]
Baseline = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(metavar="RUN", help="No worse than this run; gates may say J>=baseline-0.02."),
]
JUnit = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(metavar="FILE", help="Write the verdicts as JUnit XML, too."),
]
GitHub = Annotated[
    bool,
    typer.Option("--github", help="Annotate the build; GITHUB_ACTIONS=true does, too."),
]
PolicyBefore = Annotated[
    list[str], typer.Option("--policy-a", help="A policy of the first run, with its --policy-b.")
]
PolicyAfter = Annotated[
    list[str], typer.Option("--policy-b", help="… and the policy of the second it is compared to.")
]
ArrivalModels = Annotated[
    list[str],
    typer.Option(
        "--arrival", "-a", help="A distribution of orders, again for more; `list arrivals` says."
    ),
]
MethodName = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        help="enumerated, merged, replayed or sampled; the best that can be unless given."
    ),
]
Drawn = Annotated[
    int, typer.Option("--orders", min=1, help="Orders to draw where not all can be looked at.")
]
HalfWidth = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option(help="Draw until every share's 95% limits are this close to its middle, instead."),
]
MostStates = Annotated[
    int, typer.Option(min=0, help="States to look at before orders are drawn instead.")
]
Worst = Annotated[
    str, typer.Option(help="Find the order with the least: support (questions that keep it) or J.")
]
Shrink = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        metavar="OUTCOME",
        help="Find the smallest reordering that changes support, retained, exposed or module:name.",
    ),
]

Quantity = Annotated[str, typer.Option(help="As in estimates.csv: J, D_res, restored-absent …")]
GoalWidth = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option(help="How far the limits may be from the estimate."),
]
Effect = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option(help="An effect to be shown, instead of a half-width."),
]
Row = Annotated[
    str,
    typer.Option(
        "--row",
        metavar="NAMES|NUMBER",
        help="Which row of estimates.csv: names such as policy=focal,schedule=replay,quantity=J, "
        "as many as it takes, or its number.",
        show_default=False,
    ),
]
OneQuestion = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--question", metavar="ID", help="List only what belongs to this question."),
]
Prompts = Annotated[bool, typer.Option("--prompts", help="Print the prompts' texts, too.")]
Power = Annotated[float, typer.Option(help="With which probability it should be shown.")]
OnePolicy = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--policy", "-p", help="Which policy of the run."),
]
OneSchedule = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--schedule", "-s", help="Which schedule of the run."),
]
OneModel = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--model", "-m", help="Which model of the run."),
]
OneExperiment = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--experiment", help="Which experiment of the run; routes unless given."),
]
OneArm = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--arm", help="Which arm of it, such as construction; the plain one unless given."
    ),
]
QuestionNumbers = Annotated[
    list[float],
    typer.Option("--questions", help="Questions per unit to consider, again for more."),
]
DrawNumbers = Annotated[
    list[int], typer.Option("--draws", help="Draws to consider, again for more.")
]

TableLabels = Annotated[
    list[str], typer.Argument(help="Labels such as tab:mechanism-state; a summary of all for none.")
]
Execute = Annotated[
    bool, typer.Option("--run", help="Execute what can be executed here, and keep the values.")
]
AnswerModel = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        help="Who answers where a table needs answers, such as reader or recorded:FILE; with --run."
    ),
]
PrimaryMask = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--mask", help="FILE of question ids that stand for the primary questions."),
]
WritePage = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--write", help="Write the page of all tables (Markdown)."),
]
ObtainedFile = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--obtained", help="Where obtained values are kept; the package's own file."),
]
KeepDirectory = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--keep", help="A run directory that the result is kept in, for the report."),
]
