"""The route audit: what order changes at the source, context and state layers, with intervals."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path

from routeprism.answers import Cost
from routeprism.errors import RoutePrismError
from routeprism.exhibits import Results
from routeprism.experiments._advice import try_repairs
from routeprism.experiments._audit import (
    Preparation,
    Traces,
    Tracing,
    prepare_audit,
    prepare_memories,
    trace_cases,
)
from routeprism.experiments._case import CaseResult, Plan, work
from routeprism.experiments._construction import asks_more, construction_costs, mark_assumptions
from routeprism.experiments._execution import Pacing, RunExecution, finish_run, map_cases, open_run
from routeprism.experiments._experiment import (
    AuditOutcome,
    Conclusion,
    list_growing,
    registered_experiments,
)
from routeprism.experiments._observations import Observations, add_counts, list_notes
from routeprism.experiments._result import Audit
from routeprism.experiments._rows import adjust_p_values, estimate_rows, in_order
from routeprism.experiments._stages import Stage, StageResult, inspect_stages
from routeprism.experiments._subject import Statistics, Subject
from routeprism.experiments.builds import find_noisy_policies
from routeprism.experiments.verdicts import observe_memories, state_memory
from routeprism.judge import ADVICE, Verdict, judge
from routeprism.policies import Policy, StandIn, builder_model, stores_states
from routeprism.runs import (
    CONTRASTS,
    EstimateRow,
    Finding,
    Rows,
    Run,
    Shortfall,
    unite_ledgers,
    write_cassette,
)

WORKPLACE = "routeprism.experiments._case"
"""The module that every worker imports, whatever the audit."""


def audit_subject(
    subject: Subject,
    stages: Sequence[Stage] = (),
    *,
    tracing: Tracing | None = None,
    statistics: Statistics | None = None,
    pacing: Pacing | None = None,
    execution: RunExecution | None = None,
    command: str = "audit",
) -> Audit:
    """Trace every pool under every policy and schedule, and estimate what changed.

    Memories that ask a model are built first, through the run's ledger. Stages continue from the
    stored traces. A dry run only counts what building and answers would take. When a spending limit
    is reached, `LimitError` ends the audit, and the same call continues it.
    """
    pacing = pacing or Pacing()
    audit = prepare_audit(
        subject,
        stages,
        tracing or Tracing(),
        statistics or Statistics(),
        pacing,
        execution or RunExecution(),
        command=command,
    )
    directory = audit.execution.directory
    if pacing.dry_run:
        return Audit.of_costs(subject.benchmark, _price_at_most(audit), directory=directory)
    # Answers and stored states need a run, if only for this call.
    taped = pacing.record is not None or pacing.replay is not None
    temporary = taped or bool(stages) or any(map(stores_states, audit.plan.policies))
    with (
        open_run(
            directory,
            audit.configuration,
            subject.benchmark,
            growing=list_growing(),
            temporary=temporary,
            command_line=audit.execution.command_line,
            staged=audit.gateway is not None,
            merged=audit.execution.merged,
        ) as run,
        _tape(run, pacing),
    ):
        audit.execution.begin_step("memories", 0, len(stages) + 2)
        traces = trace_cases(audit, run)
        audit = audit.take(traces.stop).take_shard()
        performed = _perform(audit, run)
        return _finish(audit, run, traces, performed)


@contextmanager
def _tape(run: Run | None, pacing: Pacing) -> Iterator[None]:
    """Put recorded replies into the run first, and write its replies to a cassette in the end."""
    if run is not None and pacing.replay is not None:
        pacing.replay.restore(run)
    if run is None or pacing.record is None:
        yield
        return
    try:
        yield
    except BaseException:
        with suppress(RoutePrismError):  # the first error is the one to report
            write_cassette(run, pacing.record)
        raise
    write_cassette(run, pacing.record)


def _price_at_most(audit: Preparation) -> dict[str, Cost]:
    """Count what all units would take; add a note if the audit may stop earlier."""
    costs = _price(audit)
    if audit.until is None:
        return costs
    note = f"at most; collecting stops as soon as {audit.until.text} holds"
    return {
        name: replace(cost, note="; ".join(filter(None, (cost.note, note))))
        for name, cost in costs.items()
    }


def _price(audit: Preparation) -> dict[str, Cost]:
    """Count what building and answers would take, by who is asked, without a call of any kind."""
    asks = any(stage.models for stage in audit.stages)
    absent = [policy for policy in audit.plan.policies if isinstance(policy, StandIn)]
    consulting = [policy for policy in audit.plan.policies if builder_model(policy) is not None]
    if not (asks or absent or consulting):
        return {}
    if not asks:  # nobody reads what the remaining policies expose
        audit = replace(audit, plan=audit.plan.only([*absent, *consulting]))
    with (
        tempfile.TemporaryDirectory() as folder,
        _open_trial(audit, Path(folder) / "run") as run,
    ):
        plan, costs = prepare_memories(audit, run, Path(folder) / "states.sqlite", consulting)
        unread = [policy for policy in consulting if asks_more(policy, costs)]
        if asks or absent:
            observations = _observe(plan, run, replace(audit.execution, ray=None, crew=None))
            costs |= construction_costs(plan.policies, observations.assumed, run)
        return costs | _price_answers(audit, run, absent, unread)


@contextmanager
def _open_trial(audit: Preparation, scratch: Path) -> Iterator[Run]:
    """Open the run to look answers up, and leave it as it is; without one, open an empty run.

    What merged shards have is looked up in a copy.
    """
    directory, merged = audit.execution.directory, audit.execution.merged
    exists = directory is not None and Run.exists(directory)
    with Run.open(
        directory if directory is not None and exists and merged is None else scratch,
        audit.configuration,
        inputs=audit.plan.benchmark.inputs,
        growing=list_growing(),
        trial=True,
    ) as run:
        if merged is not None:
            unite_ledgers(run.store, [*([directory] if directory else []), *merged.ledgers])
        yield run


def _observe(plan: Plan, run: Run, execution: RunExecution) -> Observations:
    """Trace what can be traced, and count what stand-ins were given."""
    observations = Observations()

    def add(result: CaseResult) -> None:
        add_counts(observations, result.observations)

    map_cases(work, plan, add, len(plan.benchmark.cases), run, execution)
    return observations


def _price_answers(
    audit: Preparation, run: Run, absent: Sequence[StandIn], unread: Sequence[Policy]
) -> dict[str, Cost]:
    """Add up what the stages take, by model; mark what depends on memories that were not built."""
    audit = audit.take_shard()
    assumed = frozenset(policy.name for policy in (*absent, *unread))
    traced = replace(audit.traced(run), assumed=assumed)
    if not absent:
        inspect_stages(audit.stages, traced)
    costs: dict[str, Cost] = {}
    for stage in audit.stages:
        for name, cost in stage.price(traced).items():
            costs[name] = cost.add_to(costs.get(name))
    return {name: mark_assumptions(cost, absent, unread) for name, cost in costs.items()}


def _perform(audit: Preparation, run: Run | None) -> list[StageResult]:
    """Perform the stages in order, after all recorded answers that they read were looked up.

    A shard collects the answers of its pools, and performs what is divided; the rest is left to
    merging.
    """
    if run is None:
        return []
    traced = audit.traced(run)
    every = [StageResult(notes=inspect_stages(audit.stages, traced))]
    for number, stage in enumerate(audit.stages, 1):
        if audit.pools is not None and not (stage.models or getattr(stage, "divided", False)):
            continue
        audit.execution.begin_step("experiments", number, len(audit.stages) + 2)
        every.append(stage.perform(traced, audit.execution.answer_progress))
    return every


def _list_rows(
    audit: Preparation, traces: Traces, answer_rows: Sequence[EstimateRow]
) -> list[EstimateRow]:
    """Estimate what was traced, and put it into order with the rows of the stages."""
    traced = estimate_rows(traces.tally, audit.setting, is_tested=True)
    rows = [*traced, *answer_rows]
    return in_order(
        [*rows, *adjust_p_values(rows)],
        audit.subject.names,
        [*(a.name for a in audit.plan.arrivals), *(s.name for s in audit.plan.schedules)],
    )


def _list_findings(
    conclusions: Sequence[Conclusion], audit: Preparation, stops: Sequence[Finding]
) -> dict[str, Sequence[Finding]]:
    """List what the experiments concluded, the stop, and the contrasts, by experiment."""
    interfaces = audit.setting.interfaces
    concluded = {
        name: findings
        for conclusion in conclusions
        for name, findings in conclusion.findings.items()
    }
    compared = [c.finding(interfaces[c.policy]) for c in audit.plan.contrasts]
    return {**({"until": stops} if stops else {}), **concluded, CONTRASTS: compared}


def _finish(
    audit: Preparation, run: Run | None, traces: Traces, performed: Sequence[StageResult]
) -> Audit:
    """Estimate what was traced, describe everything, and finish the run."""
    audit.execution.begin_step("estimates", len(audit.stages) + 1, len(audit.stages) + 2)
    plan, observations = audit.plan, traces.observations
    rows = _list_rows(audit, traces, [row for result in performed for row in result.rows])
    shortfall = Shortfall.count(routes=observations.failure_reasons)
    if run is not None:
        shortfall = run.shortfall(observations.failure_reasons)
    incomplete = bool(shortfall)
    described = [
        statement
        for result in performed
        for statement in result.list_statements(rows, incomplete=incomplete)
    ]
    noisy = find_noisy_policies(rows, plan.policies)
    outcome = AuditOutcome(
        Rows.of(rows), plan, audit.setting, observations, noisy, is_incomplete=incomplete
    )
    conclusions = [
        Conclusion(findings=observe_memories(outcome)),
        *(each.conclude_audit(outcome) for each in registered_experiments("audit")),
    ]
    findings = [finding for each in conclusions for finding in each.list_findings()]
    findings += chain.from_iterable(result.findings for result in performed)
    advice, verdicts = _judge(audit, outcome, findings)
    findings += advice
    conclusions.append(Conclusion(findings={ADVICE: advice}))
    stops = _list_stops(audit, traces, performed)
    return finish_run(
        run,
        Audit(
            plan.benchmark.name,
            outcome.rows,
            (
                *chain.from_iterable(map(state_memory, verdicts)),
                *chain.from_iterable(each.statements for each in conclusions),
                *described,
            ),
            _list_notes(audit, traces, performed, [note for note, _ in stops]),
            observations.totals,
            audit.execution.directory,
            findings=tuple(findings),
            tables=traces.tables,
            limits=audit.limits,
            shortfall=shortfall,
        ),
        _list_findings(conclusions, audit, [finding for _, finding in stops]),
        plan.masks,
    )


def _judge(
    audit: Preparation, outcome: AuditOutcome, findings: Sequence[Finding]
) -> tuple[list[Finding], list[Verdict]]:
    """Judge every memory, and again once repairs of those that need one were tried."""
    incomplete = outcome.is_incomplete
    verdicts = judge(Results.of(outcome.rows, findings, incomplete=incomplete))
    if audit.execution.shard is not None or not outcome.plan.explains:
        return [], verdicts
    advice = list(try_repairs(outcome, verdicts))
    return advice, judge(Results.of(outcome.rows, [*findings, *advice], incomplete=incomplete))


def _list_notes(
    audit: Preparation, traces: Traces, performed: Sequence[StageResult], stops: Sequence[str]
) -> tuple[str, ...]:
    """List what a reader of the numbers should know, what this run observed first."""
    plan = audit.plan
    return (
        *stops,
        *list_notes(traces.observations, audit.subject.names, plan.checks),
        *(note for result in performed for note in result.notes),
        *audit.notes,
        *plan.benchmark.notes,
    )


def _list_stops(
    audit: Preparation, traces: Traces, performed: Sequence[StageResult]
) -> list[tuple[str, Finding]]:
    """Describe and record where the audit stopped, with the users in the order of the seed."""
    benchmark, seed = audit.plan.benchmark, audit.setting.seed
    stops = [stop for stop in (traces.stop, *(result.stop for result in performed)) if stop]
    # Stages that do not measure what the statement reads are silent, unless none measures it.
    stops = [stop for stop in stops if stop.limits] or stops[:1]
    users = [case.pool.user for case in benchmark.cases] if stops else []
    return [
        (stop.describe(benchmark.unit, seed), stop.finding(users[: stop.units], seed))
        for stop in stops
    ]
