"""Repairs compared: how much evidence each saves under which arrivals, and what it costs."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from routeprism.answers import AnswerProgress
from routeprism.exhibits import Number, Part, Results, Severity, Statement, compose, format_count
from routeprism.experiments._experiment import Experiment
from routeprism.experiments._stages import AsksNobody, StageResult, Traced
from routeprism.experiments.builds import find_noisy_policies
from routeprism.experiments.repairs import (
    COVERED,
    RemedyOutcome,
    Repair,
    chart_remedies,
    compare_repairs,
    find_efficient,
    format_calls,
    group_outcomes,
    read_repairs,
    tabulate_remedies,
    value_of_row,
    write_stale,
)
from routeprism.experiments.severity import (
    LEVELS,
    Level,
    MemoryVerdict,
    decide_verdicts,
    describe_arrival,
)
from routeprism.experiments.statements import join_names, show_flags
from routeprism.policies import Policy
from routeprism.runs import EstimateRow, Finding, Rows


def describe_repairs(rows: Rows, repairs: Sequence[Repair]) -> Iterator[Statement]:
    """State for each memory and schedule which repairs prevent how much, at what cost."""
    for (memory, schedule), outcomes in group_outcomes(rows, repairs).items():
        efficient = find_efficient(outcomes)
        helpful = [o for o in outcomes if o in efficient and (o.prevented or 0.0) > 0]
        helpful.sort(key=lambda o: (o.writes, o.delay, value_of_row(o.length)))
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
        *([f"{format_calls(outcome.calls)} model calls per memory"] if outcome.calls else []),
        *([f"a delay of {number} record{'s' * (number != 1)}"] if number else []),
        *([f"{text}% more text"] if text > 0 else []),
    ]
    yield f"{outcome.repair.action} prevents "
    yield Number(amount, row)
    yield f" of {noun or 'it'}, at {join_names(costs)}"


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The repair that a memory should get, or none."""

    memory: str
    repair: Repair | None
    reason: str
    """What the repair changes, or why there is nothing to repair."""
    flags: tuple[str, ...] = ()
    """Marks of the numbers, such as `synthetic` data."""
    levels: Mapping[str, Level] = field(default_factory=dict, hash=False)
    """Arrival model or schedule → the level of the repaired memory."""
    thorough: Repair | None = None
    """The repair for all orders that were measured, if another one is better there."""
    is_unsolved: bool = False
    """Whether there is a problem that no standard repair solves."""

    @property
    def action(self) -> str:
        """The recommended action."""
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
    rows: Rows,
    repairs: Sequence[Repair],
    *,
    chance: Collection[str] = (),
    incomplete: bool = False,
) -> list[Recommendation]:
    """Recommend a repair for each memory.

    A memory that lacks most evidence in source order gets the repair that shows the most of it.
    Otherwise the first order of arrival that matters decides: the repair with the least severe
    verdict there, then the one that leaves the smallest loss and the largest overlap, then the one
    that costs the fewest writes and model calls, the least text and the shortest delay.
    """
    decided = decide_verdicts(rows, chance=chance, incomplete=incomplete)
    verdicts = {verdict.policy: verdict for verdict in decided}
    outcomes = {(o.repair, o.schedule): o for o in compare_repairs(rows, repairs)}
    advice = []
    for memory in dict.fromkeys(repair.memory for repair in repairs):
        verdict = verdicts.get(memory)
        own = [r for r in repairs if r.memory == memory and r.policy in verdicts]
        if verdict is None or not own:
            continue
        choose = _restore_evidence if verdict.lacks_evidence else _restore_order
        recommendation = choose(verdict, own, verdicts, outcomes)
        start = "Incomplete: " if incomplete else ""
        reason = start + recommendation.reason + _describe_stale(recommendation.repair, outcomes)
        advice.append(replace(recommendation, reason=reason, flags=verdict.flags))
    return advice


def _describe_stale(repair: Repair | None, outcomes: Outcomes) -> str:
    """Describe how many questions end with the old value of a changed fact after the repair."""
    changes = [
        f"{write_stale(outcome)} instead of {format_count(value_of_row(before))} under "
        f"{describe_arrival(outcome.schedule)}"
        for (own, _), outcome in outcomes.items()
        if own == repair and (before := outcome.stale_before) is not None and before.estimate
    ]
    return f". Questions that end with the old value: {', '.join(changes)}" if changes else ""


def recommend_results(results: Results) -> list[Recommendation]:
    """Recommend a repair for each memory of a run that compared repairs."""
    chance = {finding.policy for finding in results.findings.get("chance", ())}
    return recommend_repairs(
        results.rows, read_repairs(results), chance=chance, incomplete=results.incomplete
    )


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
        exposed = value_of_row(verdicts[repair.policy].find(COVERED))
        return (-exposed, *_cost(outcomes[repair, schedule]))

    best = min(larger, key=rank, default=None)
    before = value_of_row(verdict.find(COVERED))
    after = 0.0 if best is None else value_of_row(verdicts[best.policy].find(COVERED))
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
        rest = (outcome.remaining, -value_of_row(outcome.overlap))
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
    return level, value_of_row(rows.get("evidence_lost")), -value_of_row(rows.get("J"))


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
            describe=lambda rows, incomplete: self._describe(rows, traced, incomplete=incomplete),
        )

    def _describe(
        self, rows: Sequence[EstimateRow], traced: Traced, *, incomplete: bool
    ) -> Iterator[Statement]:
        every = Rows.of(rows)
        noisy = find_noisy_policies(rows, traced.policies)
        for advice in recommend_repairs(every, self.repairs, chance=noisy, incomplete=incomplete):
            yield advice.describe(traced.benchmark.argument)
        yield from describe_repairs(every, self.repairs)


experiment = Experiment(
    name="remedies",
    title="Repairs and their costs",
    summary="Measure standard repairs around a memory, with what each of them costs.",
    commands=("remedy",),
    rank=2,
    tab="summary",
    tables=tabulate_remedies,
    charts=chart_remedies,
)
