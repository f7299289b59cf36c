"""How bad it is: one scale for every memory and every order of arrival, decided in one place."""

from __future__ import annotations

from collections.abc import Sequence

from routeprism.exhibits import (
    Number,
    Part,
    Results,
    Table,
    make_table,
)
from routeprism.experiments._experiment import AuditOutcome, Conclusion, Experiment
from routeprism.experiments._verdict_statements import (
    describe_answers,
    describe_one_order,
    describe_sanity,
    describe_verdict,
    join_names,
    show_percent,
    summarise_verdicts,
)
from routeprism.experiments._verdicts import (
    EVIDENCE,
    LEVELS,
    Level,
    MemoryVerdict,
    decide_level,
    decide_results,
    decide_verdicts,
    describe_arrival,
    list_arrivals,
    locate_base,
    name_base,
    read_verdicts,
)
from routeprism.experiments.statements import (
    is_claim_shown,
)
from routeprism.runs import Finding

__all__ = [
    "LEVELS",
    "Level",
    "MemoryVerdict",
    "decide_level",
    "decide_outcome",
    "decide_results",
    "decide_verdicts",
    "describe_arrival",
    "describe_sanity",
    "describe_verdict",
    "join_names",
    "list_arrivals",
    "list_verdicts",
    "locate_base",
    "name_base",
    "read_verdicts",
    "summarise_verdicts",
    "tabulate_verdicts",
]


def tabulate_verdicts(results: Results) -> list[Table]:
    """Show one line for each memory: what it keeps, what each order of arrival costs, how bad."""
    verdicts = decide_results(results)
    return list_verdicts([(verdict.policy, verdict) for verdict in verdicts])


def list_verdicts(named_verdicts: Sequence[tuple[str, MemoryVerdict]]) -> list[Table]:
    """Show verdicts below each other, each with a name."""
    verdicts = [verdict for _, verdict in named_verdicts]
    schedules = list_arrivals(dict.fromkeys(s for verdict in verdicts for s in verdict.rows))
    labelled = any(verdict.find(EVIDENCE) for verdict in verdicts)
    has_answers = any(verdict.answers for verdict in verdicts)
    quantity = "evidence_lost" if labelled else "V_changed"
    caption = _explain_columns(schedules, labelled=labelled)
    caption += _explain_answers(verdicts) if has_answers else ""
    cells = [
        (
            name,
            show_percent(verdict.find("kept.forward")),
            *([show_percent(verdict.find("recall.exposed.forward"))] if labelled else []),
            *(show_percent(verdict.rows.get(s, {}).get(quantity)) for s in schedules),
            *([_show_answers(verdict)] if has_answers else []),
            _show_level(verdict),
        )
        for name, verdict in named_verdicts
    ]
    columns = (
        *("memory", "kept"),
        *(["evidence"] if labelled else []),
        *map(describe_arrival, schedules),
        *(["right answers"] if has_answers else []),
        "severity",
    )
    return make_table("summary", "Verdict", caption, columns, cells)


def _explain_columns(schedules: Sequence[str], *, labelled: bool) -> str:
    """Explain what the shares of the table are shares of."""
    names = join_names([describe_arrival(schedule) for schedule in schedules] or [""])
    return (
        f"Kept: share of the records that the memory keeps {locate_base(schedules)}. "
        + ("Evidence: share of the evidence that it then shows. " if labelled else "")
        + f"{names[:1].upper()}{names[1:]}: share of questions that "
        + ("lose evidence" if labelled else "are shown different records")
        + f" compared with {name_base(schedules)}."
    )


def _explain_answers(verdicts: Sequence[MemoryVerdict]) -> str:
    """Explain what the column of answers compares, and who answered."""
    groups = [(s, group) for verdict in verdicts for s, group in verdict.answers.items()]
    schedule, group = groups[0]
    models = dict.fromkeys(row.model for row in group.values())
    return (
        f" Right answers of {', '.join(models)}: share {locate_base([schedule])} → under "
        f"{describe_arrival(schedule)}; ≈ if the difference is not shown to be more than noise."
    )


def _show_level(verdict: MemoryVerdict) -> str:
    if verdict.is_silent:
        return "shows nothing"
    if verdict.ordinary_level == verdict.level:
        return verdict.level
    return f"{verdict.ordinary_level}; reversed: {verdict.level}"


def _show_answers(verdict: MemoryVerdict) -> Part:
    for group in verdict.answers.values():
        before, after = group.get("accuracy.forward"), group.get("accuracy.route")
        change = group.get("Delta_rep") or group.get("Delta")
        if before is None or after is None or change is None or change.estimate is None:
            continue
        shares = [f"{100 * (row.estimate or 0.0):.0f}" for row in (before, after)]
        sign = "→" if is_claim_shown(change, group) else "≈"
        return Number(f"{sign.join(dict.fromkeys(shares))}%", change)
    return ""


def _list_repaired(outcome: AuditOutcome) -> list[str]:
    """Name the policies that are repairs or arms of another policy of the run."""
    names = {policy.name for policy in outcome.plan.policies}
    return [
        policy.name
        for policy in outcome.plan.policies
        if (inner := getattr(policy, "inner", None)) is not None
        and getattr(inner, "name", "") in names
    ]


def _list_unsourced(outcome: AuditOutcome) -> list[str]:
    """Name the memories that show text without naming the records that it comes from."""
    return sorted(name for name, number in outcome.observations.unsourced.items() if number)


def decide_outcome(outcome: AuditOutcome, *, without: Sequence[str] = ()) -> list[MemoryVerdict]:
    """Decide about every memory of an audit that has just been estimated."""
    unsourced = _list_unsourced(outcome)
    chance = outcome.noisy
    return decide_verdicts(outcome.rows, without=without, chance=chance, unsourced=unsourced)


def conclude_severity(outcome: AuditOutcome) -> Conclusion:
    """State how bad it is for each memory, what it keeps in source order first."""
    verdicts = decide_outcome(outcome, without=_list_repaired(outcome))
    marked = {"chance": sorted(outcome.noisy), "unsourced": _list_unsourced(outcome)}
    findings = {
        name: [Finding(name=name, value=True, policy=policy) for policy in policies]
        for name, policies in marked.items()
        if policies
    }
    pools = outcome.observations.pools
    has_one_order = 0 < pools == outcome.observations.single_record_pools
    describe = describe_one_order if has_one_order else describe_verdict
    return Conclusion(
        tuple(
            statement
            for verdict in verdicts
            for statement in (
                *describe_sanity(verdict),
                describe(verdict),
                *describe_answers(verdict),
            )
        ),
        findings,
    )


experiment = Experiment(
    name="severity",
    title="Verdict",
    summary="Decide how bad the effect of order is for each memory.",
    commands=("audit", "restore", "remedy", "demo"),
    rank=-10,
    tab="summary",
    columns=(),
    row_filter=lambda row: False,
    conclude=conclude_severity,
    tables=tabulate_verdicts,
    charts=lambda results: (),
)
