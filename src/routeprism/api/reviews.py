"""The Python functions of the commands that read finished runs, or check a memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routeprism.answers import AnswerProgress, Cost
from routeprism.api.requests import takes_settings
from routeprism.errors import SpecError
from routeprism.models import Allowance, make_allowance
from routeprism.policies import (
    Client,
    Policy,
    StandIn,
    as_policy,
    make_policy,
    meter_policy,
    refuse_unpriced,
    unwrap_policy,
    watch_adds,
)
from routeprism.policies.own import OwnMemory
from routeprism.review.comparison import compare_runs
from routeprism.review.gates import check_run
from routeprism.review.planning import StudyPlan, plan_study
from routeprism.review.tracing import trace_row
from routeprism.routes.conformance import Check, iterate_checks
from routeprism.routes.conformance import check_adapter as try_adapter

if TYPE_CHECKING:
    from routeprism.experiments import AddProgress

__all__ = [
    "check",
    "check_adapter",
    "compare",
    "plan",
    "plan_settings",
    "prepare_adapter",
    "price_adapter",
    "run_adapter_checks",
    "trace",
    "write_files",
    "write_report",
]


@takes_settings("check", "run", "*gates")
def check(settings: Any) -> Any:
    """Compare a run's numbers with limits; `passed` of the result is true if all of them pass."""
    baseline = None if settings.baseline is None else Path(settings.baseline)
    missing = settings.allow_missing
    return check_run(Path(settings.run), settings.gates, baseline, allow_missing=missing)


@takes_settings("compare", "first", "second")
def compare(settings: Any) -> Any:
    """Report what changed between two versions of a memory, from the first run to the second."""
    from routeprism.report import write_comment, write_comparison

    before, after = settings.policies_a, settings.policies_b
    if len(before) != len(after):
        raise SpecError(
            f"Expected as many policies_a as policies_b but got {len(before)} and {len(after)}"
        )
    pairs = list(zip(before, after, strict=True))
    comparison = compare_runs(Path(settings.first), Path(settings.second), pairs)
    if settings.html is not None:
        write_comparison(comparison, Path(settings.html))
    if settings.markdown is not None:
        write_comment(comparison, Path(settings.markdown))
    return comparison


@takes_settings("trace", "run", "row")
def trace(settings: Any) -> Any:
    """Go from a number to the rows behind it: units, questions, answers, readings."""
    return trace_row(
        Path(settings.run), settings.row, question=settings.question, prompts=settings.prompts
    )


@takes_settings("plan", "run", "quantity")
def plan(settings: Any) -> Any:
    """Compute how many units, questions and draws a precision or power takes, from a pilot run."""
    return plan_settings(settings)


def plan_settings(settings: Any) -> StudyPlan:
    """Plan by settings."""
    return plan_study(
        Path(settings.run),
        settings.quantity,
        half_width=settings.half_width,
        effect=settings.effect,
        power=settings.power,
        policy=settings.policy,
        schedule=settings.schedule,
        model=settings.model,
        experiment=settings.experiment,
        arm=settings.arm,
        questions=settings.questions,
        draws=settings.draws,
    )


@takes_settings("report", "run")
def write_report(settings: Any) -> dict[str, Any]:
    """Write a run's report, one page that needs no network; give the files that were written."""
    return write_files(settings)


def write_files(settings: Any) -> dict[str, Any]:
    """Write the files of a run that settings name."""
    from routeprism import report

    run = Path(settings.run)
    page = report.write_report(
        run, None if settings.out is None else Path(settings.out), megabytes=settings.megabytes
    )
    number = report.write_answers(run, Path(settings.answers)) if settings.answers else 0
    return {
        "report": page,
        "tables": report.write_tables(run, Path(settings.tables)) if settings.tables else [],
        "charts": report.write_charts(run, Path(settings.charts)) if settings.charts else [],
        "answers": number,
        "parquet": report.write_parquet(run, Path(settings.parquet)) if settings.parquet else 0,
        "inspect": report.write_inspect_log(run, Path(settings.inspect)) if settings.inspect else 0,
    }


@takes_settings("check-adapter", "adapter")
def check_adapter(settings: Any) -> Sequence[Check]:
    """Check that a memory can be audited: isolation, provenance, determinism, clean-up."""
    return tuple(run_adapter_checks(*prepare_adapter(settings)))


def run_adapter_checks(
    policy: Policy, allowance: Allowance | None, progress: AnswerProgress | None = None
) -> Iterator[Check]:
    """Run the checks of a policy within an allowance; give each result as soon as it is there.

    `progress` is called with the records that were added to a memory of the user's own.
    """
    adding = _watch_checks(policy, progress)
    with nullcontext() if adding is None else adding.watching():
        yield from _run_checks(watch_adds(policy, adding), allowance)


def _watch_checks(policy: Policy, progress: AnswerProgress | None) -> AddProgress | None:
    """Begin to count added records; a stand-in shows how many the checks will add."""
    if progress is None or not isinstance(unwrap_policy(policy), OwnMemory):
        return None
    from routeprism.experiments import AddProgress

    absent = StandIn(policy, Client())
    try_adapter(absent)
    return AddProgress(progress, [absent.drain().get((policy.name, "adds"), 0)], 1)


def _run_checks(policy: Policy, allowance: Allowance | None) -> Iterator[Check]:
    for check in iterate_checks(meter_policy(policy, allowance)):
        if allowance is not None:
            allowance.check()  # checks beyond the limit tell nothing about the adapter
        yield check


def prepare_adapter(settings: Any) -> tuple[Policy, Allowance | None]:
    """Make the policy to check, and what it may spend."""
    adapter = settings.adapter
    policy = make_policy(adapter) if isinstance(adapter, str) else as_policy(adapter)
    refuse_unpriced([policy], settings.max_cost)
    return policy, make_allowance((), settings.max_calls, settings.max_cost)


def price_adapter(policy: Policy) -> Mapping[str, Cost]:
    """Count what the checks would give a memory that makes requests of its own."""
    from routeprism.experiments import construction_costs, stand_ins

    (absent,) = stand_ins([policy], ())
    if not isinstance(absent, StandIn):
        return {}
    try_adapter(absent)
    return construction_costs([absent], absent.drain())
