"""Repairs compared: how much evidence each saves under which arrivals, and what it costs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from routeprism.answers import AnswerProgress
from routeprism.exhibits import (
    Chart,
    Number,
    Part,
    Results,
    Severity,
    Statement,
    Table,
    compose,
    format_count,
    format_row,
    make_table,
    name_chart,
    shorten,
)
from routeprism.experiments._experiment import Experiment
from routeprism.experiments._stages import AsksNobody, StageResult, Traced
from routeprism.experiments.builds import find_noisy_policies
from routeprism.experiments.severity import (
    LEVELS,
    Level,
    MemoryVerdict,
    decide_verdicts,
    describe_arrival,
    join_names,
)
from routeprism.experiments.statements import show_flags
from routeprism.policies import Policy, builder_model, describe_client
from routeprism.runs import EstimateRow, Finding, Rows

__all__ = [
    "RemedyOutcome",
    "Recommendation",
    "Remedies",
    "Repair",
    "compare_repairs",
    "describe_repairs",
    "experiment",
    "read_repairs",
    "recommend_repairs",
    "recommend_results",
]


@dataclass(frozen=True, slots=True)
class Repair:
    """One repair of a memory, as a policy of its own."""

    memory: str
    """The memory that is repaired."""
    policy: str
    """The repaired memory."""
    action: str
    """What one does to apply the repair, as the subject of a sentence."""
    calls: float | None = None
    """Model calls of a memory that counts none itself: 0 if it asks no model, None if unknown."""

    @property
    def label(self) -> str:
        """Name the repair without the memory that it repairs."""
        return self.policy.removesuffix(f"({self.memory})")

    @property
    def only_reorders(self) -> bool:
        """Whether it changes when records are written, and not how much the memory keeps."""
        return re.split("[:(]", self.policy, maxsplit=1)[0] in _REORDERING

    @classmethod
    def of(cls, memory: Policy, policy: Policy) -> Repair:
        """Describe the repair of a memory; a larger budget is a policy of the same kind."""
        action = getattr(policy, "action", f"using {policy.name}")
        asks = builder_model(policy) is not None or describe_client(policy) is not None
        return cls(memory.name, policy.name, str(action), None if asks else 0.0)


_REORDERING = ("hold", "rebuild", "checkpoint", "by-time", "queue")


@dataclass(frozen=True, slots=True)
class Remedies(AsksNobody):
    """A stage that keeps which policies are repairs of which, and compares them."""

    repairs: tuple[Repair, ...]

    @classmethod
    def of(cls, repairs: Mapping[Policy, Iterable[Policy]]) -> Remedies:
        """Make the stage from each memory's repairs."""
        return cls(
            tuple(
                Repair.of(memory, policy)
                for memory, policies in repairs.items()
                for policy in policies
            )
        )

    def described(self) -> Mapping[str, object]:
        """Return the repairs that are compared, for the manifest."""
        return {"repairs": [[repair.memory, repair.policy] for repair in self.repairs]}

    def perform(self, traced: Traced, progress: AnswerProgress | None) -> StageResult:
        """Keep the repairs with the run, and compare them once all numbers are known."""
        findings = tuple(
            Finding(
                name="repair",
                value={
                    "memory": repair.memory,
                    "action": repair.action,
                    "model_calls": repair.calls,
                },
                policy=repair.policy,
            )
            for repair in self.repairs
        )
        traced.run.keep("remedies", findings)
        return StageResult(
            findings=findings,
            describe=lambda rows: self._describe(rows, traced),
        )

    def _describe(self, rows: Sequence[EstimateRow], traced: Traced) -> Iterator[Statement]:
        every = Rows.of(rows)
        noisy = find_noisy_policies(rows, traced.policies)
        for advice in recommend_repairs(every, self.repairs, chance=noisy):
            yield advice.describe(traced.benchmark.argument)
        yield from describe_repairs(every, self.repairs)


@dataclass(frozen=True, slots=True)
class RemedyOutcome:
    """What a repair does under one arrival model or schedule."""

    repair: Repair
    schedule: str
    loss: EstimateRow | None
    """Questions that lose evidence; None without labels."""
    overlap: EstimateRow
    evidence: EstimateRow | None
    """Evidence shown on this route."""
    accuracy: EstimateRow | None
    length: EstimateRow | None
    """Length of the text shown, in quarters of a character."""
    before: EstimateRow
    """The measure of the memory without the repair: its loss, or its overlap."""
    writes: float
    """Extra writes per record."""
    delay: float
    """Later arrivals that a record waits for."""
    calls: float | None
    """Model calls while one memory is built; None if they are not known."""
    forfeited: float = 0.0
    """Share of questions that source order shows all evidence without the repair, and not with it.
    """
    growth: float = 1.0
    """Length of the text shown, divided by that of the memory without the repair."""
    stale: EstimateRow | None = None
    """Questions that end with the old value of a changed fact; None without such labels."""
    stale_before: EstimateRow | None = None
    """The same for the memory without the repair."""

    @property
    def remaining(self) -> float:
        """Share of questions that still lose evidence, compared with the unrepaired memory."""
        return _value_of(self.loss) + self.forfeited

    @property
    def prevented(self) -> float | None:
        """The share of the loss that the repair prevents; None if nothing was lost before.

        Evidence that the repair itself takes away in source order counts as lost. Without labels,
        it is the share of the missing overlap that the repair restores.
        """
        before = self.before.estimate
        if before is None or (not self.is_labelled and self.overlap.estimate is None):
            return None
        if self.is_labelled:
            left, lost = self.remaining, before
        else:
            left, lost = 1 - _value_of(self.overlap), 1 - before
        return None if lost <= 0 else 1 - left / lost

    @property
    def is_labelled(self) -> bool:
        """Whether the questions name their evidence, so that its loss is measured."""
        return self.before.quantity == "evidence_lost"


def compare_repairs(rows: Rows, repairs: Sequence[Repair]) -> list[RemedyOutcome]:
    """Compare every repair under every schedule with the memory that it repairs."""
    routes = rows.where(experiment="routes", arm="")
    traced = routes.where(model="").group("policy", "schedule")
    answer_rows = Rows.of(row for row in routes if row.model).group("policy", "schedule")
    evidence = rows.where(experiment="retention", arm="").group("policy", "schedule")
    updates = rows.plain(experiment="updates", model="").group("policy", "schedule")
    outcomes = []
    for repair in repairs:
        for (policy, schedule), group in traced.items():
            base = traced.get((repair.memory, schedule))
            if policy != repair.policy or base is None or "J" not in group or "J" not in base:
                continue
            evidence_rows = evidence.get((policy, schedule), {})
            unrepaired = evidence.get((repair.memory, schedule), {})
            lost = unrepaired.get("evidence_lost")
            length = _value_of(base.get("context_length.route"))
            arrivals = group.get("count.arrivals")
            outcomes.append(
                RemedyOutcome(
                    repair,
                    schedule,
                    evidence_rows.get("evidence_lost") if lost is not None else None,
                    group["J"],
                    evidence_rows.get("recall.exposed.route"),
                    answer_rows.get((policy, schedule), {}).get("accuracy.route"),
                    group.get("context_length.route"),
                    lost if lost is not None else base["J"],
                    max(0.0, _share(group.get("count.writes"), arrivals) - 1),
                    _mean(group.get("count.delay")),
                    _count_calls(group, repair),
                    max(
                        0.0,
                        _value_of(unrepaired.get(_COVERED))
                        - _value_of(evidence_rows.get(_COVERED)),
                    ),
                    _value_of(group.get("context_length.route")) / length if length else 1.0,
                    updates.get((policy, schedule), {}).get(_STALE),
                    updates.get((repair.memory, schedule), {}).get(_STALE),
                )
            )
    return outcomes


_COVERED = "all_covered.exposed.forward"
"""Share of questions that source order shows all of their evidence."""
_STALE = "stale_only.route_count"
"""Questions that are shown the old value of a changed fact alone."""


def _share(part: EstimateRow | None, whole: EstimateRow | None) -> float:
    if part is None or whole is None or not whole.estimate:
        return 0.0
    return (part.estimate or 0.0) / whole.estimate


def _mean(row: EstimateRow | None) -> float:
    """Average a count over the pools that it was taken in."""
    return (row.estimate or 0.0) / row.units if row is not None and row.units else 0.0


def _count_calls(group: Mapping[str, EstimateRow], repair: Repair) -> float | None:
    """Average the model calls of building a memory; a larger budget counts as its policy does."""
    row = group.get("count.model_calls", group.get("count.consultations"))
    return _mean(row) if row is not None else repair.calls


def _value_of(row: EstimateRow | None) -> float:
    return 0.0 if row is None or row.estimate is None else row.estimate


def find_efficient(outcomes: Sequence[RemedyOutcome]) -> set[RemedyOutcome]:
    """Find the repairs that no other beats in benefit, writes, calls, delay and text at once."""
    measured = [outcome for outcome in outcomes if outcome.prevented is not None]
    return {
        outcome
        for outcome in measured
        if not any(_dominates(rival, outcome) for rival in measured if rival is not outcome)
    }


def _dominates(rival: RemedyOutcome, outcome: RemedyOutcome) -> bool:
    values = [
        (-(o.prevented or 0.0), o.writes, o.calls or 0.0, o.delay, _value_of(o.length))
        for o in (rival, outcome)
    ]
    return values[0] != values[1] and all(a <= b for a, b in zip(*values, strict=True))


def describe_repairs(rows: Rows, repairs: Sequence[Repair]) -> Iterator[Statement]:
    """State for each memory and schedule which repairs prevent how much, at what cost."""
    groups: dict[tuple[str, str], list[RemedyOutcome]] = {}
    for outcome in compare_repairs(rows, repairs):
        groups.setdefault((outcome.repair.memory, outcome.schedule), []).append(outcome)
    for (memory, schedule), outcomes in groups.items():
        efficient = find_efficient(outcomes)
        helpful = [o for o in outcomes if o in efficient and (o.prevented or 0.0) > 0]
        helpful.sort(key=lambda o: (o.writes, o.delay, _value_of(o.length)))
        noun = "the evidence loss" if outcomes[0].is_labelled else "the missing overlap"
        if not helpful:
            if all(outcome.prevented is None for outcome in outcomes):
                text = compose(
                    "{what} is zero under {schedule}: nothing to repair",
                    what=noun.capitalize(),
                    schedule=describe_arrival(schedule),
                )
                flags = show_flags(outcomes[0].overlap)
                yield Statement(text, "remedies", memory, schedule, "good", flags=flags)
            continue
        phrases: list[Part] = []
        for at, outcome in enumerate(helpful[:_MOST_NAMED]):
            phrases += ["; " if at else "", *_describe_outcome(outcome, noun if not at else "")]
        text = (f"Under {describe_arrival(schedule)}: ", *phrases)
        flags = show_flags(outcomes[0].overlap)
        yield Statement(text, "remedies", memory, schedule, flags=flags)


_MOST_NAMED = 3


def _describe_outcome(outcome: RemedyOutcome, noun: str) -> Iterator[Part]:
    share = outcome.prevented or 0.0
    row = outcome.loss if outcome.loss is not None else outcome.overlap
    amount = "all" if share >= 0.9995 else f"{100 * share:.0f}%"
    extra = outcome.writes > 0
    writes = f"{outcome.writes:.2f} extra writes per record" if extra else "no extra writes"
    number, text = round(outcome.delay), round(100 * (outcome.growth - 1))
    costs = [
        writes,
        *([f"{_format_calls(outcome.calls)} model calls per memory"] if outcome.calls else []),
        *([f"a delay of {number} record{'s' * (number != 1)}"] if number else []),
        *([f"{text}% more text"] if text > 0 else []),
    ]
    yield f"{outcome.repair.action} prevents "
    yield Number(amount, row)
    yield f" of {noun or 'it'}, at {join_names(costs)}"


# --- recommendation ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The repair that a memory should get, or none."""

    memory: str
    repair: Repair | None
    reason: str
    """What the repair changes, or why there is nothing to repair."""
    flags: tuple[str, ...] = ()
    """What to know about the numbers: `synthetic` data."""
    levels: Mapping[str, Level] = field(default_factory=dict, hash=False)
    """Arrival model or schedule → the level of the repaired memory."""
    thorough: Repair | None = None
    """The repair for all orders that were measured, if another one is better there."""
    is_unsolved: bool = False
    """Whether there is a problem that no standard repair solves."""

    @property
    def action(self) -> str:
        """What to do."""
        if self.repair is not None:
            return self.repair.action
        return "change the memory itself" if self.is_unsolved else "nothing to repair"

    def __str__(self) -> str:
        return f"{self.memory}: {self.action}. {self.reason}"

    def describe(self, benchmark: str) -> Statement:
        """State the repair, and give the command that audits the repaired memory."""
        parts = (f"Recommended: {self.action}. {self.reason}",)
        place = ("recommendation", self.memory)
        if self.repair is None:
            severity: Severity = "problem" if self.is_unsolved else "good"
            return Statement(parts, *place, severity=severity, flags=self.flags)
        command = f"routeprism audit {benchmark} --policy {shlex.quote(self.repair.policy)}"
        return Statement(parts, *place, next_step=command, flags=self.flags)


def recommend_repairs(
    rows: Rows, repairs: Sequence[Repair], *, chance: Collection[str] = ()
) -> list[Recommendation]:
    """Recommend a repair for each memory.

    A memory that lacks most evidence in source order gets the repair that shows the most of it.
    Otherwise the first order of arrival that matters decides: the repair with the least severe
    verdict there, then the one that leaves the smallest loss and the largest overlap, then the one
    that costs the fewest writes and model calls, the least text and the shortest delay.
    """
    verdicts = {verdict.policy: verdict for verdict in decide_verdicts(rows, chance=chance)}
    outcomes = {(o.repair, o.schedule): o for o in compare_repairs(rows, repairs)}
    advice = []
    for memory in dict.fromkeys(repair.memory for repair in repairs):
        verdict = verdicts.get(memory)
        own = [r for r in repairs if r.memory == memory and r.policy in verdicts]
        if verdict is None or not own:
            continue
        choose = _restore_evidence if verdict.lacks_evidence else _restore_order
        recommendation = choose(verdict, own, verdicts, outcomes)
        reason = recommendation.reason + _describe_stale(recommendation.repair, outcomes)
        advice.append(replace(recommendation, reason=reason, flags=verdict.flags))
    return advice


def _describe_stale(repair: Repair | None, outcomes: Outcomes) -> str:
    """Describe how many questions end with the old value of a changed fact after the repair."""
    changes = [
        f"{_write_stale(outcome)} instead of {format_count(_value_of(before))} under "
        f"{describe_arrival(outcome.schedule)}"
        for (own, _), outcome in outcomes.items()
        if own == repair and (before := outcome.stale_before) is not None and before.estimate
    ]
    return f". Questions that end with the old value: {', '.join(changes)}" if changes else ""


def recommend_results(results: Results) -> list[Recommendation]:
    """Recommend a repair for each memory of a run that compared repairs."""
    chance = {finding.policy for finding in results.findings.get("chance", ())}
    return recommend_repairs(results.rows, read_repairs(results), chance=chance)


Verdicts = Mapping[str, MemoryVerdict]
Outcomes = Mapping[tuple[Repair, str], RemedyOutcome]


def _cost(outcome: RemedyOutcome) -> tuple[float, ...]:
    """Return extra writes, model calls, growth of the text in steps of a tenth, and delay."""
    growth = max(1.0, round(outcome.growth, 1))
    return outcome.writes, outcome.calls or 0.0, growth, outcome.delay


def _restore_evidence(
    verdict: MemoryVerdict, repairs: Sequence[Repair], verdicts: Verdicts, outcomes: Outcomes
) -> Recommendation:
    """Recommend what shows the most evidence in source order; a repair of order does not count."""
    schedule = next(iter(verdict.rows))
    larger = [repair for repair in repairs if not repair.only_reorders]

    def rank(repair: Repair) -> tuple[float, ...]:
        exposed = _value_of(verdicts[repair.policy].find(_COVERED))
        return (-exposed, *_cost(outcomes[repair, schedule]))

    best = min(larger, key=rank, default=None)
    before = _value_of(verdict.find(_COVERED))
    after = 0.0 if best is None else _value_of(verdicts[best.policy].find(_COVERED))
    if best is None or after <= before:
        reason = "No standard repair shows more evidence in source order"
        return Recommendation(verdict.policy, None, reason, is_unsolved=True)
    reason = (
        f"In source order, {100 * after:.0f}% of the questions are then shown all of their "
        f"evidence instead of {100 * before:.0f}%"
    )
    return Recommendation(verdict.policy, best, reason)


def _restore_order(
    verdict: MemoryVerdict, repairs: Sequence[Repair], verdicts: Verdicts, outcomes: Outcomes
) -> Recommendation:
    harmless = ("stable", "internal only", "chance, order not shown")
    schedule = next((s for s, level in verdict.levels.items() if level not in harmless), None)
    if schedule is None:
        chance = "The memory differs by chance: fix its seed, or build it several times"
        reason = chance if verdict.is_random else "Questions see the same in every order"
        return Recommendation(verdict.policy, None, reason)

    def rank(repair: Repair) -> tuple[float, ...]:
        outcome = outcomes[repair, schedule]
        level = LEVELS.index(verdicts[repair.policy].levels[schedule])
        if outcome.forfeited:
            level = max(level, LEVELS.index("evidence lost"))
        rest = (outcome.remaining, -_value_of(outcome.overlap))
        return (level, *rest, *_cost(outcome))

    best = min(repairs, key=rank)
    after = verdicts[best.policy].levels
    if rank(best)[:3] >= _rank_unrepaired(verdict, schedule):
        return Recommendation(verdict.policy, None, "No standard repair helps", is_unsolved=True)
    levels: dict[str, list[str]] = {}
    for name in verdict.levels:
        if name in after:
            levels.setdefault(after[name], []).append(describe_arrival(name))
    phrases = [f"“{level}” under {join_names(names)}" for level, names in levels.items()]
    reason = f"Verdict afterwards: {', '.join(phrases)}"
    whole = None
    thorough = min(repairs, key=lambda r: (LEVELS.index(verdicts[r.policy].level), rank(r)))
    level = verdicts[thorough.policy].level
    if LEVELS.index(level) < LEVELS.index(verdicts[best.policy].level):
        reason += f". For all of these orders: {thorough.action} (then “{level}”)"
        whole = thorough
    return Recommendation(verdict.policy, best, reason, levels=after, thorough=whole)


def _rank_unrepaired(verdict: MemoryVerdict, schedule: str) -> tuple[float, float, float]:
    rows = verdict.rows[schedule]
    level = LEVELS.index(verdict.levels[schedule])
    return level, _value_of(rows.get("evidence_lost")), -_value_of(rows.get("J"))


# --- exhibits ------------------------------------------------------------------------------------


def read_repairs(results: Results) -> list[Repair]:
    """Read which policies of a run are repairs of which."""
    return [
        Repair(
            finding.value["memory"],
            finding.policy,
            finding.value["action"],
            finding.value.get("model_calls"),
        )
        for finding in results.findings.get("repair", ())
    ]


def tabulate_remedies(results: Results) -> list[Table]:
    """Show every repair under every schedule with its benefit and its cost."""
    outcomes = compare_repairs(results.rows, read_repairs(results))
    efficient = {
        outcome
        for key in {(o.repair.memory, o.schedule) for o in outcomes}
        for outcome in find_efficient([o for o in outcomes if (o.repair.memory, o.schedule) == key])
    }
    return make_table(
        "remedies",
        "Repairs and their costs",
        "Each repair around the memory, under each order of arrival. Loss prevented: the share of "
        "the evidence loss that the repair prevents (without labels, of the missing overlap). "
        "Old value alone: questions about updates that end with it. "
        f"Writes: extra writes per record. {CALLS} Delay: later arrivals that a record waits for. "
        "No other repair is at least as good as an efficient one in these and in the length of "
        "the text.",
        (
            *("memory", "arrival", "repair", "efficient", "loss prevented", "evidence lost"),
            *("evidence shown", "old value alone", "J", "accuracy", "writes", "model calls"),
            *("delay", "length"),
        ),
        [
            (
                *(o.repair.memory, o.schedule, o.repair.label, "yes" if o in efficient else ""),
                "" if o.prevented is None else f"{100 * o.prevented:.0f}%",
                *map(format_row, (o.loss, o.evidence)),
                _write_stale(o),
                *map(format_row, (o.overlap, o.accuracy)),
                f"{o.writes:.2f}",
                _format_calls(o.calls),
                f"{o.delay:.0f}",
                format_row(o.length),
            )
            for o in outcomes
        ],
        names=4,
    )


def summarise_remedies(results: Results) -> list[Table]:
    """Show for each memory what its repairs achieve, and then what they cost."""
    repairs = read_repairs(results)
    memories = dict.fromkeys(repair.memory for repair in repairs)
    unrepaired = [Repair(memory, memory, "") for memory in memories]
    lines: dict[Repair, dict[str, RemedyOutcome]] = {}
    for outcome in compare_repairs(results.rows, [*unrepaired, *repairs]):
        lines.setdefault(outcome.repair, {})[outcome.schedule] = outcome
    tables = []
    for memory in memories:
        own = {repair: line for repair, line in lines.items() if repair.memory == memory}
        repaired = {repair: line for repair, line in own.items() if repair.policy != memory}
        tables += [*_tabulate_benefit(memory, own), *_tabulate_cost(memory, repaired)]
    return tables


Lines = Mapping[Repair, Mapping[str, RemedyOutcome]]
Benefit = tuple[str, Callable[[Mapping[str, RemedyOutcome]], str], str]
"""A column: its heading, how a repair's outcomes are written in it, and how to read it."""


def _tabulate_benefit(memory: str, lines: Lines) -> list[Table]:
    """Show the loss prevented under each arrival, and what questions see under the first one."""
    outcomes = [outcome for line in lines.values() for outcome in line.values()]
    if not outcomes:
        return []
    columns = list(_list_benefits(outcomes))
    return make_table(
        f"remedy-benefit-{name_chart(memory)}",
        f"{memory}: what each repair prevents and keeps",
        " ".join(filter(None, (explanation for _, _, explanation in columns))),
        ("repair", *(heading for heading, _, _ in columns)),
        [
            (_name_repair(repair), *(write(line) for _, write, _ in columns))
            for repair, line in lines.items()
        ],
        names=1,
    )


def _list_benefits(outcomes: Sequence[RemedyOutcome]) -> Iterator[Benefit]:
    """List the columns: the loss under each order, then what questions see under the first."""
    schedules = list(dict.fromkeys(outcome.schedule for outcome in outcomes))
    first = describe_arrival(schedules[0])
    has_labels = any(outcome.is_labelled for outcome in outcomes)
    loss = "the evidence loss" if has_labels else "the missing overlap"
    explanation = f"Columns named after an order of arrival: share of {loss} that the repair "
    for at, schedule in enumerate(schedules):
        yield (
            *_column(schedule, lambda outcome: outcome.prevented),
            "" if at else f"{explanation}prevents.",
        )
    if has_labels:
        yield (
            *_column(schedules[0], lambda o: _estimate(o.evidence), "evidence kept"),
            f"Evidence kept: share of the evidence that questions are shown under {first}.",
        )
    yield (
        *_column(schedules[0], lambda o: o.overlap.estimate, "same records"),
        f"Same records: overlap of the records shown under {first} and in source order.",
    )
    if any(outcome.stale is not None for outcome in outcomes):
        yield (
            "old value alone",
            lambda line: _write_stale(line.get(schedules[0])),
            f"Old value alone: questions about updates that end with it under {first}.",
        )
    answer_schedule = next((o.schedule for o in outcomes if o.accuracy is not None), None)
    if answer_schedule is not None:
        yield (
            *_column(answer_schedule, lambda o: _estimate(o.accuracy), "right answers"),
            f"Right answers: share under {describe_arrival(answer_schedule)}.",
        )


def _write_stale(outcome: RemedyOutcome | None) -> str:
    row = None if outcome is None else outcome.stale
    return "" if row is None else f"{format_count(_value_of(row))} of {row.queries}"


def _name_repair(repair: Repair) -> str:
    return "(no repair)" if repair.policy == repair.memory else repair.label


def _column(
    schedule: str, measure: Callable[[RemedyOutcome], float | None], heading: str = ""
) -> tuple[str, Callable[[Mapping[str, RemedyOutcome]], str]]:
    """Make a column of shares: its heading, and how a repair's outcomes are written in it."""

    def write(line: Mapping[str, RemedyOutcome]) -> str:
        share = measure(line[schedule]) if schedule in line else None
        return "" if share is None else f"{100 * share:.0f}%"

    return heading or describe_arrival(schedule), write


def _tabulate_cost(memory: str, lines: Lines) -> list[Table]:
    """Show what each repair costs under the first order of arrival."""
    firsts = [next(iter(line.values())) for line in lines.values()]
    arrival = describe_arrival(firsts[0].schedule) if firsts else ""
    return make_table(
        f"remedy-cost-{name_chart(memory)}",
        f"{memory}: what each repair costs under {arrival}",
        f"Extra writes: per record. Delay: later arrivals that a record waits for. {CALLS} "
        f"Characters: shown to a question.",
        ("repair", "extra writes", "model calls", "delay", "characters shown"),
        [
            (
                *(o.repair.label, f"{o.writes:.2f}", _format_calls(o.calls), f"{o.delay:.0f}"),
                "" if o.length is None else f"{4 * _value_of(o.length):,.0f}",
            )
            for o in firsts
        ],
        names=1,
    )


CALLS = (
    "Model calls: on average while one memory is built; for rebuilding, counted writes times the "
    "calls per write of the last build."
)


def _estimate(row: EstimateRow | None) -> float | None:
    return None if row is None else row.estimate


def _format_calls(calls: float | None) -> str:
    """Write a number of calls; an average of few calls has a decimal."""
    if calls is None:
        return ""
    return f"{calls:,.0f}" if calls >= 100 or calls == round(calls) else f"{calls:.1f}"


def chart_remedies(results: Results) -> list[Chart]:
    """Draw benefit against cost for each memory and schedule."""
    groups: dict[tuple[str, str], list[RemedyOutcome]] = {}
    for outcome in compare_repairs(results.rows, read_repairs(results)):
        if outcome.prevented is not None:
            groups.setdefault((outcome.repair.memory, outcome.schedule), []).append(outcome)
    return [_draw_benefit(*place, outcomes) for place, outcomes in groups.items()]


def _draw_benefit(memory: str, schedule: str, outcomes: Sequence[RemedyOutcome]) -> Chart:
    efficient = find_efficient(outcomes)
    texts = _label_points(outcomes)
    words = "; ".join(
        f"{o.repair.label} prevents {100 * (o.prevented or 0):.0f}% at {o.writes:.2f} extra writes"
        for o in outcomes
    )
    return Chart(
        f"remedies-{name_chart(memory, schedule)}",
        f"{shorten(memory)}, {shorten(schedule)}: loss prevented against extra writes",
        f"{words}.",
        "benefit",
        tuple(
            {
                "label": o.repair.label,
                "text": texts[o],
                "benefit": o.prevented,
                "writes": o.writes,
                "delay": o.delay,
                "efficient": "efficient" if o in efficient else "beaten by another repair",
            }
            for o in outcomes
        ),
    )


def _label_points(outcomes: Sequence[RemedyOutcome]) -> dict[RemedyOutcome, str]:
    """Label the points of a chart; points that lie close together share one label."""
    widest = max(outcome.writes for outcome in outcomes) or 1.0
    labels: dict[RemedyOutcome, list[str]] = {}
    for outcome in outcomes:
        neighbour = next(
            (
                first
                for first in labels
                if abs(first.writes - outcome.writes) < 0.15 * widest
                and abs((first.prevented or 0.0) - (outcome.prevented or 0.0)) < 0.05
            ),
            outcome,
        )
        labels.setdefault(neighbour, []).append(outcome.repair.label)
    return {outcome: ", ".join(labels.get(outcome, ())) for outcome in outcomes}


experiment = Experiment(
    name="remedies",
    title="Repairs and their costs",
    summary="Measure standard repairs around a memory, with what each of them costs.",
    commands=("remedy",),
    rank=2,
    tab="summary",
    columns=(),
    row_filter=lambda row: False,
    tables=tabulate_remedies,
    charts=chart_remedies,
)
