"""How bad it is: one scale for every memory and every order of arrival, decided in one place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from routeprism.exhibits import (
    Number,
    Part,
    Results,
    Statement,
    Table,
    format_row,
    join_parts,
    make_table,
)
from routeprism.experiments._experiment import AuditOutcome, Conclusion, Experiment
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
    list_asides,
    locate_base,
    name_base,
    read_verdicts,
)
from routeprism.experiments.statements import (
    BUILD_AGAIN,
    MARGIN,
    describe_doubt,
    describe_floor,
    describe_unreadable,
    is_at_floor,
    is_claim_shown,
    is_small,
    join_names,
    mark_incomplete,
    show_flags,
)
from routeprism.orders import names_procedure
from routeprism.printing import pluralise
from routeprism.runs import EstimateRow, Finding

if TYPE_CHECKING:
    from routeprism.routes import Leak

__all__ = [
    "LEVELS",
    "Level",
    "MemoryVerdict",
    "decide_level",
    "decide_outcome",
    "decide_results",
    "decide_verdicts",
    "describe_answers",
    "describe_arrival",
    "describe_sanity",
    "describe_verdict",
    "list_arrivals",
    "list_asides",
    "list_verdicts",
    "locate_base",
    "name_base",
    "read_verdicts",
    "summarise_verdicts",
    "tabulate_verdicts",
]


def _show_percent(row: EstimateRow | None) -> Part:
    if row is None or row.estimate is None:
        return ""
    share = 100 * row.estimate
    return Number("<1%" if 0 < share < 0.5 else f"{share:.0f}%", row)


def describe_sanity(verdict: MemoryVerdict) -> Iterator[Statement]:
    """State what the memory keeps and shows in source order, before anything about order."""
    evidence = verdict.find(EVIDENCE)
    if verdict.is_silent:
        text = "The memory shows nothing to any question, so nothing can be concluded about order"
        yield Statement((text,), "sanity", verdict.policy, severity="problem", flags=verdict.flags)
    elif evidence is not None and verdict.lacks_evidence:
        routes = [group.get("all_covered.exposed.route") for group in verdict.rows.values()]
        always = all(row is not None and (row.estimate or 0.0) < 0.5 for row in routes)
        start = "In any order, most questions lack evidence: even" if always else "Even"
        yield Statement(
            (
                f"{start} {verdict.place}, only ",
                _show_percent(evidence),
                " of the questions are shown all of their evidence. Solve this before you look at "
                "order",
            ),
            "sanity",
            verdict.policy,
            severity="problem",
            flags=verdict.flags,
        )
    yield Statement(_list_sanity(verdict), "source order", verdict.policy, flags=verdict.flags)


def _list_sanity(verdict: MemoryVerdict) -> tuple[Part, ...]:
    """Return what a memory keeps and shows in source order."""
    length = verdict.find("context_length.forward")
    characters = None if length is None else f"{4 * (length.estimate or 0):,.0f}"
    values: tuple[tuple[str, Part | None], ...] = (
        ("records kept", _show_percent(verdict.find("kept.forward"))),
        (
            "questions with all evidence kept",
            _show_percent(verdict.find("all_covered.retained.forward")),
        ),
        ("questions with all evidence shown", _show_percent(verdict.find(EVIDENCE))),
        ("characters shown", characters),
    )
    phrases = [(f"{name} ", value) for name, value in values if value]
    place = verdict.place
    return (f"{place[:1].upper()}{place[1:]}: ", *join_parts(", ", phrases))


def describe_verdict(verdict: MemoryVerdict) -> Statement:
    """State how bad it is: first under arrivals that really happen, then under full reversal."""
    step = ""
    if verdict.is_silent:
        parts: tuple[Part, ...] = ("Nothing is shown, so order has nothing to change",)
    elif verdict.level == "chance, order not shown":
        built = verdict.find("D_build") is not None
        tail = (
            "builds of the same order differ, and different orders are not shown to differ more"
            if built
            else "each order was built once, so order cannot be distinguished from chance"
        )
        step = "" if built else BUILD_AGAIN
        parts = (f"The memory differs by chance, and order is not shown to matter: {tail}",)
    else:
        levels = dict.fromkeys((verdict.ordinary_level, verdict.level))
        harm = [level for level in levels if LEVELS.index(level) >= LEVELS.index("evidence lost")]
        phrases = [_describe_level(verdict, level) for level in (harm or [verdict.level])]
        parts = tuple(join_parts(". ", phrases))
    place = ("severity", verdict.policy, "", verdict.severity, step)
    statement = Statement(parts, *place, flags=verdict.flags)
    return mark_incomplete(statement) if verdict.is_incomplete else statement


def describe_one_order(verdict: MemoryVerdict) -> Statement:
    """State that no memory can be compared, because no pool has two orders."""
    text = "Every pool has one record and so one order: nothing can be concluded about order"
    return Statement((text,), "severity", verdict.policy, severity="warning", flags=verdict.flags)


def _describe_level(verdict: MemoryVerdict, level: Level) -> tuple[Part, ...]:
    """State what happens under the orders of arrival that have this level."""
    schedules = list_arrivals(
        schedule for schedule, item in verdict.levels.items() if item == level
    )
    names = join_names([describe_arrival(schedule) for schedule in schedules])
    if level == "answers worse":
        group = verdict.answers[schedules[0]]
        before, after = (
            _show_percent(group.get(f"accuracy.{side}")) for side in ("forward", "route")
        )
        change = format_row(group["Delta_rep"], signed=True)
        text = f"Answers get worse under {names}: accuracy falls from "
        return (text, before, " to ", after, " (", change, ")")
    if level == "evidence lost":
        shares = [
            (f"{describe_arrival(s)} (", _show_percent(verdict.rows[s]["evidence_lost"]), ")")
            for s in schedules
        ]
        head = f"Questions lose evidence that {verdict.reference} shows: under "
        return (head, *join_parts(", ", shares))
    if level.startswith("different records"):
        if level.endswith("unknown") and verdict.is_unsourced:
            text = f"Different text is shown under {names}, and it does not name its records"
            return (f"{text}, so it is not known whether evidence is lost: name them as sources",)
        unknown = (
            f"and {verdict.reference} shows no evidence that could be lost"
            if verdict.find(EVIDENCE) is not None
            else "and without labels it is not known whether evidence is lost: label the evidence "
            "of your questions, or audit with a model"
        )
        tail = "but no evidence is lost" if level.endswith("kept") else unknown
        return (f"Different records are shown under {names}, {tail}",)
    if level == "text only":
        return (f"The same records are shown under {names}, but in a different text or order",)
    if level == "internal only":
        return (f"Only internal state differs under {names}; questions see the same",)
    return ("Order changes nothing that was observed",)


_HEADLINES: Mapping[Level, tuple[str, str]] = {
    "answers worse": ("{} answers worse", "{} answer worse"),
    "evidence lost": ("{} loses evidence", "{} lose evidence"),
    "different records, evidence unknown": (
        "{} shows different records",
        "{} show different records",
    ),
    "different records, evidence kept": (
        "{} shows different records but keeps the evidence",
        "{} show different records but keep the evidence",
    ),
    "text only": ("{} shows the same records in a different text", "{} show different text"),
    "internal only": ("{} shows the same to every question", "{} show the same to every question"),
    "chance, order not shown": ("{} differs by chance", "{} differ by chance"),
    "stable": ("{} does not change", "{} do not change"),
}
"""How a headline puts each level, of one memory and of several."""


def summarise_verdicts(verdicts: Sequence[MemoryVerdict]) -> str:
    """Summarise a run in one sentence: first arrivals that really happen, then full reversal."""
    if not verdicts:
        return ""
    start = "Incomplete: " if any(verdict.is_incomplete for verdict in verdicts) else ""
    ordinary = _summarise_levels([verdict.ordinary_level for verdict in verdicts])
    if all(set(verdict.levels) == {"replay"} for verdict in verdicts):
        return f"{start}{ordinary} when all records arrive in reverse."
    sentence = f"{ordinary} {_name_change(verdicts)}"
    reversed_levels = [verdict.levels.get("replay", "stable") for verdict in verdicts]
    worst = max(reversed_levels, key=LEVELS.index)
    if LEVELS.index(worst) > max(LEVELS.index(verdict.ordinary_level) for verdict in verdicts):
        rest = _summarise_levels(reversed_levels)
        sentence += f"; {rest[:1].lower()}{rest[1:]} under full reversal"
    return f"{start}{sentence}."


def _name_change(verdicts: Sequence[MemoryVerdict]) -> str:
    """Name what differs from the reference: the order alone, or also how records are added."""
    if not any(names_procedure(schedule) for verdict in verdicts for schedule in verdict.levels):
        return "when records arrive out of order"
    return f"when {'it is' if len(verdicts) == 1 else 'they are'} built in a different way"


def _summarise_levels(levels: Sequence[Level]) -> str:
    """Count the memories that have the most severe level."""
    worst = max(levels, key=LEVELS.index)
    number, total = levels.count(worst), len(levels)
    singular, plural = _HEADLINES[worst]
    if total == 1:
        return singular.format("This memory")
    everyone = "Both memories" if total == 2 else f"All {total} memories"
    subject = everyone if number == total else f"{number} of {total} memories"
    return (singular if number == 1 and number != total else plural).format(subject)


def describe_answers(verdict: MemoryVerdict) -> Iterator[Statement]:
    """State in plain words what order does to accuracy."""
    for schedule, group in verdict.answers.items():
        before, after = group.get("accuracy.forward"), group.get("accuracy.route")
        change = group.get("Delta_rep")
        if before is None or after is None or change is None:
            continue
        unreadable = describe_unreadable(group.get, f"under {describe_arrival(schedule)}")
        if unreadable:
            yield _state_answers(verdict, change, (f"{change.model}: {unreadable}",))
            continue
        if is_at_floor(change):
            tail = describe_floor(change)
        elif is_claim_shown(change, group):
            tail = (
                f"accuracy {'falls' if (change.estimate or 0.0) < 0 else 'rises'} with this order"
            )
        elif is_small(change):
            tail = f"any change is shown to be small (within {100 * MARGIN:g} points)"
        else:
            tail = "no change of accuracy is shown, which does not mean that there is none"
            tail = describe_doubt(change) or tail
        parts = (
            f"Accuracy of the answers by {change.model}: ",
            _show_percent(before),
            f" {locate_base([schedule])}, ",
            _show_percent(after),
            f" under {describe_arrival(schedule)}: {tail}",
        )
        yield _state_answers(verdict, change, parts)


def _state_answers(
    verdict: MemoryVerdict, change: EstimateRow, parts: tuple[Part, ...]
) -> Statement:
    flags = show_flags(change)
    return Statement(parts, "accuracy", verdict.policy, change.schedule, flags=flags)


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
            _show_percent(verdict.find("kept.forward")),
            *([_show_percent(verdict.find("recall.exposed.forward"))] if labelled else []),
            *(_show_percent(verdict.rows.get(s, {}).get(quantity)) for s in schedules),
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
        return verdict.name_level()
    return verdict.name_level(f"{verdict.ordinary_level}; reversed: {verdict.level}")


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
    policies = outcome.plan.policies
    names = {policy.name for policy in policies}
    return [p.name for p in policies if getattr(getattr(p, "inner", None), "name", "") in names]


def _list_unsourced(outcome: AuditOutcome) -> list[str]:
    """Name the memories that show text without naming the records that it comes from."""
    return sorted(name for name, number in outcome.observations.unsourced.items() if number)


def decide_outcome(outcome: AuditOutcome, *, without: Sequence[str] = ()) -> list[MemoryVerdict]:
    """Decide about every memory of an audit that has just been estimated."""
    marked = {"chance": outcome.noisy, "unsourced": _list_unsourced(outcome)}
    return decide_verdicts(
        outcome.rows, without=without, incomplete=outcome.is_incomplete, **marked
    )


def _describe_leaks(outcome: AuditOutcome) -> Iterator[Statement]:
    """Name for each memory a record of one user that another user sees."""
    from routeprism.routes import choose_leak

    by_policy: dict[str, list[Leak]] = {}
    for failure in outcome.observations.failures:
        if failure.leak:
            by_policy.setdefault(failure.policy, []).append(failure.leak)
    for policy, leaks in by_policy.items():
        routes = pluralise(len(leaks), "route")
        text = f"{choose_leak(leaks)}. No number includes the {routes} that leaked"
        yield Statement((text,), "sanity", policy, severity="problem")


def conclude_severity(outcome: AuditOutcome) -> Conclusion:
    """State how bad it is for each memory, what it keeps in source order first."""
    verdicts = decide_outcome(outcome, without=_list_repaired(outcome))
    marked = {"chance": sorted(outcome.noisy), "unsourced": _list_unsourced(outcome)}
    findings = {
        name: [Finding(name=name, value=True, policy=policy) for policy in policies]
        for name, policies in marked.items()
        if policies
    }
    leaks = [(failure.policy, failure.leak) for failure in outcome.observations.failures]
    if leak_findings := [
        Finding(name="leaks", value=asdict(leak), policy=policy, user=leak.user)
        for policy, leak in dict.fromkeys(leaks)
        if leak is not None
    ]:
        findings["leaks"] = leak_findings
    pools = outcome.observations.pools
    has_one_order = 0 < pools == outcome.observations.single_record_pools
    describe = describe_one_order if has_one_order else describe_verdict
    return Conclusion(
        (
            *_describe_leaks(outcome),
            *(
                statement
                for verdict in verdicts
                for statement in (
                    *describe_sanity(verdict),
                    describe(verdict),
                    *describe_answers(verdict),
                )
            ),
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
    conclude=conclude_severity,
    tables=tabulate_verdicts,
    charts=lambda results: (),
)
