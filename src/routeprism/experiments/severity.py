"""How bad it is: one scale for every memory and every order of arrival, decided in one place."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from routeprism.exhibits import (
    Number,
    Part,
    Results,
    Severity,
    Statement,
    Table,
    join_parts,
    make_table,
)
from routeprism.experiments._experiment import AuditOutcome, Conclusion, Experiment
from routeprism.experiments._route_exhibits import list_arms
from routeprism.experiments.statements import (
    BUILD_AGAIN,
    MARGIN,
    describe_doubt,
    describe_floor,
    describe_unreadable,
    is_at_floor,
    is_beyond_chance,
    is_claim_shown,
    is_small,
    show_flags,
)
from routeprism.orders import FORWARD, name_reference, names_procedure
from routeprism.runs import EstimateRow, Finding, Rows, StoredRun

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
    "read_verdicts",
    "summarise_verdicts",
    "tabulate_verdicts",
]

Level = Literal[
    "stable",
    "chance, order not shown",
    "internal only",
    "text only",
    "different records, evidence kept",
    "different records, evidence unknown",
    "evidence lost",
    "answers worse",
]
LEVELS: tuple[Level, ...] = get_args(Level)
"""The scale, from the least to the most severe level."""

RowGroup = Mapping[str, EstimateRow]
"""Rows of one memory and one order of arrival, by quantity."""

_MARKS: Mapping[Level, Severity] = {
    "stable": "good",
    "chance, order not shown": "warning",
    "internal only": "good",
    "text only": "info",
    "different records, evidence kept": "info",
    "different records, evidence unknown": "warning",
    "evidence lost": "problem",
    "answers worse": "problem",
}

Group = Mapping[str, EstimateRow]
_EVIDENCE = "all_covered.exposed.forward"
"""Present in every group of rows about evidence, whether or not any is lost."""


@dataclass(frozen=True, slots=True, repr=False)
class MemoryVerdict:
    """What one memory does under one order of arrival, or under all of them together."""

    policy: str
    levels: Mapping[str, Level]
    """Arrival model or schedule → its level."""
    rows: Mapping[str, Group]
    """Arrival model or schedule → quantity → row, of traces and evidence."""
    answers: Mapping[str, Group]
    """Schedule → quantity → row, of the first model."""
    is_random: bool = False
    """Whether its builds differ by chance, and order is not shown to add to that."""
    is_unsourced: bool = False
    """Whether it shows text without naming its records, so that evidence may be there unseen."""

    def __repr__(self) -> str:
        levels = "; ".join(f"{describe_arrival(s)}: {level}" for s, level in self.levels.items())
        return f"<MemoryVerdict of {self.policy}: {self.level} ({levels})>"

    def __str__(self) -> str:
        return str(describe_verdict(self))

    @property
    def flags(self) -> tuple[str, ...]:
        """What to know about its numbers: `synthetic` data."""
        return next((show_flags(row) for group in self.rows.values() for row in group.values()), ())

    @property
    def level(self) -> Level:
        """The most severe level of all orders of arrival."""
        return max(self.levels.values(), key=LEVELS.index, default="stable")

    @property
    def ordinary_level(self) -> Level:
        """The most severe level of orders that really happen: all but full reversal."""
        ordinary = [level for name, level in self.levels.items() if name != "replay"]
        return max(ordinary or self.levels.values(), key=LEVELS.index, default="stable")

    @property
    def lacks_evidence(self) -> bool:
        """Whether most questions are not shown all of their evidence even in source order."""
        row = self.find(_EVIDENCE)
        share = None if row is None or self.is_unsourced else row.estimate
        return share is not None and share < 0.5

    @property
    def is_silent(self) -> bool:
        """Whether no question is shown any text, so that nothing can be concluded."""
        sides = ("context_length.forward", "context_length.route")
        rows = [row for group in self.rows.values() for side in sides if (row := group.get(side))]
        return bool(rows) and all(row.estimate == 0 for row in rows)

    @property
    def reference(self) -> str:
        """Names what its orders of arrival are compared with: `source order`, or a schedule."""
        return name_base(self.rows)

    @property
    def place(self) -> str:
        """Where the numbers of the reference were observed, such as `in source order`."""
        return locate_base(self.rows)

    @property
    def is_unclear(self) -> bool:
        """Whether it states by itself that order allows no conclusion."""
        return self.is_silent or self.is_random or self.level.endswith("unknown")

    @property
    def severity(self) -> Severity:
        """The mark that the level has in every output."""
        return "problem" if self.is_silent else _MARKS[self.level]

    def find(self, quantity: str) -> EstimateRow | None:
        """Find a quantity that does not depend on the order of arrival."""
        return next((group[quantity] for group in self.rows.values() if quantity in group), None)


def decide_level(traces: Group, evidence: Group, answers: Sequence[Group] = ()) -> Level:
    """Decide how bad one order of arrival is for one memory.

    `traces` and `evidence` are its rows by quantity; `answers` those of each model that answered.
    Worse answers are a claim, which has to hold among all claims of the run. Everything else is
    counted on the given records and questions.
    """
    for group in answers:
        change = group.get("Delta_rep")
        if change is not None and (change.estimate or 0) < 0 and is_claim_shown(change, group):
            return "answers worse"
    if _is_positive(evidence.get("evidence_lost")):
        return "evidence lost"
    if _is_positive(traces.get("V_changed")) or _is_positive(traces.get("retained_changed")):
        # Where source order shows no evidence, none can be lost: that keeps nothing.
        lost = evidence.get("evidence_lost")
        if lost is not None and lost.estimate is not None:
            return "different records, evidence kept"
        return "different records, evidence unknown"
    if _is_positive(traces.get("C_changed")):
        return "text only"
    return "internal only" if _is_positive(traces.get("I_changed")) else "stable"


def _is_positive(row: EstimateRow | None) -> bool:
    return row is not None and (row.estimate or 0.0) > 0


def _is_random(rows: Rows, policy: str, *, declared: bool) -> bool:
    """Whether builds may differ by chance, and order is not shown to change more than that.

    Where repeated builds of one order never differ, a difference is one of order.
    """
    own = rows.where(experiment="routes", policy=policy, model="", stratum="all")
    within = list(own.where(quantity="C_within"))
    if not any(row.estimate for row in within) and (within or not declared):
        return False
    return not is_beyond_chance(own.where(arm="", mask=""))


def decide_verdicts(
    rows: Rows,
    *,
    without: Sequence[str] = (),
    chance: Collection[str] = (),
    unsourced: Collection[str] = (),
) -> list[MemoryVerdict]:
    """Decide about every memory of a run, except for policies that only serve a comparison.

    `chance` names the memories that declare that their builds may differ. Repeated builds show it
    of other memories. `unsourced` names those that show text without naming its records: if it
    differs, its records may differ as well.
    """
    routes = rows.where(experiment="routes", arm="")
    traces = routes.where(model="").group("policy", "schedule")
    evidence = rows.where(experiment="retention", arm="").group("policy", "schedule")
    answers = Rows.of(row for row in routes if row.model).group("policy", "schedule", "model")
    groups: dict[str, dict[str, RowGroup]] = {}
    for (policy, schedule), group in traces.items():
        if policy not in without and "J" in group:
            groups.setdefault(policy, {})[schedule] = group
    return [
        _decide_verdict(
            policy,
            own,
            {schedule: evidence.get((policy, schedule), {}) for schedule in own},
            {s: [g for (p, t, _), g in answers.items() if (p, t) == (policy, s)] for s in own},
            is_random=_is_random(rows, policy, declared=policy in chance),
            is_unsourced=policy in unsourced,
        )
        for policy, own in groups.items()
    ]


def _decide_verdict(
    policy: str,
    traces: Mapping[str, RowGroup],
    evidence: Mapping[str, RowGroup],
    answers: Mapping[str, Sequence[RowGroup]],
    *,
    is_random: bool,
    is_unsourced: bool,
) -> MemoryVerdict:
    """Decide about one memory; a difference by chance alone is not an effect of order."""
    levels: dict[str, Level] = {
        schedule: decide_level(group, evidence[schedule], answers[schedule])
        for schedule, group in traces.items()
    }
    if is_unsourced:
        unknown: Level = "different records, evidence unknown"
        levels = {s: unknown if level == "text only" else level for s, level in levels.items()}
    if is_random:
        levels = {
            schedule: level if level == "stable" else "chance, order not shown"
            for schedule, level in levels.items()
        }
    merged = {schedule: {**group, **evidence[schedule]} for schedule, group in traces.items()}
    first = {schedule: groups[0] for schedule, groups in answers.items() if groups}
    return MemoryVerdict(policy, levels, merged, first, is_random, is_unsourced)


# --- exhibits ------------------------------------------------------------------------------------


def _percent(row: EstimateRow | None) -> Part:
    if row is None or row.estimate is None:
        return ""
    return _show_share(row)


def describe_arrival(schedule: str) -> str:
    """Name an arrival model or schedule in plain words."""
    if schedule == "replay":
        return "reversal"
    model, _, text = schedule.partition(":")
    options = dict(pair.partition("=")[::2] for pair in text.split(",") if pair)
    if model == "jitter":
        width = options.pop("w", "2")
        name = "ordinary disorder" if width == "2" else f"{width}-place disorder"
    elif model == "late-batch":
        name = "late batch"
    else:
        return schedule
    return ", ".join((name, *(f"{option} {value}" for option, value in options.items())))


def name_base(schedules: Iterable[str]) -> str:
    """Name what schedules are compared with: `source order`, or their common reference."""
    references = {name_reference(schedule) for schedule in schedules} or {FORWARD.name}
    if references == {FORWARD.name}:
        return "source order"
    return describe_arrival(references.pop()) if len(references) == 1 else "the reference"


def locate_base(schedules: Iterable[str]) -> str:
    """Name where the numbers of the reference were observed: `in source order`, `under restart`."""
    base = name_base(schedules)
    return f"in {base}" if base == "source order" else f"under {base}"


def decide_results(results: Results) -> list[MemoryVerdict]:
    """Decide about every memory of a run that is neither a repair nor an arm of another one."""
    repaired = [finding.policy for finding in results.findings.get("repair", ())]
    policies = {
        name: {finding.policy for finding in results.findings.get(name, ())}
        for name in ("chance", "unsourced")
    }
    return decide_verdicts(results.rows, without=[*repaired, *list_arms(results)], **policies)


def read_verdicts(stored: StoredRun) -> list[MemoryVerdict]:
    """Decide about every memory of a stored run."""
    findings = {
        name: stored.findings(experiment, name)
        for experiment, name in (
            ("remedies", "repair"),
            ("mechanism", "arms"),
            ("chance", "chance"),
            ("unsourced", "unsourced"),
        )
    }
    return decide_results(Results(Rows.of(stored.estimates()), findings))


def tabulate_verdicts(results: Results) -> list[Table]:
    """Show one line for each memory: what it keeps, what each order of arrival costs, how bad."""
    verdicts = decide_results(results)
    return list_verdicts([(verdict.policy, verdict) for verdict in verdicts])


def list_verdicts(named_verdicts: Sequence[tuple[str, MemoryVerdict]]) -> list[Table]:
    """Show verdicts below each other, each with a name."""
    verdicts = [verdict for _, verdict in named_verdicts]
    schedules = list_arrivals(dict.fromkeys(s for verdict in verdicts for s in verdict.rows))
    labelled = any(verdict.find(_EVIDENCE) for verdict in verdicts)
    has_answers = any(verdict.answers for verdict in verdicts)
    quantity = "evidence_lost" if labelled else "V_changed"
    caption = _explain_columns(schedules, labelled=labelled)
    caption += _explain_answers(verdicts) if has_answers else ""
    cells = [
        (
            name,
            _percent(verdict.find("kept.forward")),
            *([_percent(verdict.find("recall.exposed.forward"))] if labelled else []),
            *(_percent(verdict.rows.get(s, {}).get(quantity)) for s in schedules),
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


def list_arrivals(schedules: Iterable[str]) -> list[str]:
    """List orders of arrival without those that are drawn from an arrival model in the list."""
    names = list(schedules)
    models = {f"{name}{',' if ':' in name else ':'}seed=" for name in names}
    return [name for name in names if not name.startswith(tuple(models))]


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


def describe_sanity(verdict: MemoryVerdict) -> Iterator[Statement]:
    """State what the memory keeps and shows in source order, before anything about order."""
    evidence = verdict.find(_EVIDENCE)
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
                _percent(evidence),
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
        ("records kept", _percent(verdict.find("kept.forward"))),
        (
            "questions whose evidence is kept",
            _percent(verdict.find("all_covered.retained.forward")),
        ),
        ("questions that are shown all of their evidence", _percent(verdict.find(_EVIDENCE))),
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
    return Statement(parts, *place, flags=verdict.flags)


def _describe_one_order(verdict: MemoryVerdict) -> Statement:
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
        before, after = (_percent(group.get(f"accuracy.{side}")) for side in ("forward", "route"))
        change = _show_signed(group["Delta_rep"])
        text = f"Answers get worse under {names}: accuracy falls from "
        return (text, before, " to ", after, " (", change, ")")
    if level == "evidence lost":
        shares = [
            (f"{describe_arrival(s)} (", _show_share(verdict.rows[s]["evidence_lost"]), ")")
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
            if verdict.find(_EVIDENCE) is not None
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
    ordinary = _summarise_levels([verdict.ordinary_level for verdict in verdicts])
    if all(set(verdict.levels) == {"replay"} for verdict in verdicts):
        return f"{ordinary} when all records arrive in reverse."
    sentence = f"{ordinary} {_name_change(verdicts)}"
    reversed_levels = [verdict.levels.get("replay", "stable") for verdict in verdicts]
    worst = max(reversed_levels, key=LEVELS.index)
    if LEVELS.index(worst) > max(LEVELS.index(verdict.ordinary_level) for verdict in verdicts):
        rest = _summarise_levels(reversed_levels)
        sentence += f"; {rest[:1].lower()}{rest[1:]} under full reversal"
    return f"{sentence}."


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
            _percent(before),
            f" {locate_base([schedule])}, ",
            _percent(after),
            f" under {describe_arrival(schedule)}: {tail}",
        )
        yield _state_answers(verdict, change, parts)


def _state_answers(
    verdict: MemoryVerdict, change: EstimateRow, parts: tuple[Part, ...]
) -> Statement:
    flags = show_flags(change)
    return Statement(parts, "accuracy", verdict.policy, change.schedule, flags=flags)


def join_names(names: Sequence[str]) -> str:
    """Join names as a sentence lists them."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _show_signed(row: EstimateRow) -> Part:
    return Number(f"{row.estimate or 0:+.3f} [{row.lower:+.3f}, {row.upper:+.3f}]", row)


def _show_share(row: EstimateRow) -> Part:
    share = 100 * (row.estimate or 0)
    return Number("<1%" if 0 < share < 0.5 else f"{share:.0f}%", row)


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
    describe = _describe_one_order if has_one_order else describe_verdict
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
