"""Repairs compared by their total outcome, over source order and every order that was asked for.

The best repair shows the most evidence and the fewest outdated values, at the least cost. A repair
that shows less evidence, or more outdated values, in any one order than the memory itself is never
recommended: it would make a wrong answer stable.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from routeprism.exhibits import Results, Table, format_count, make_table, name_chart
from routeprism.judge._causes import NEVER_RIGHT
from routeprism.judge._verdict import LOST, Group, Verdict
from routeprism.orders import FORWARD, describe_arrival, overlaps_writes
from routeprism.printing import join_names, pluralise
from routeprism.runs import EstimateRow, Rows

_SAME = 1e-9
"""Below this, a difference of mean shares is a rounding error."""


@dataclass(frozen=True, slots=True)
class Repair:
    """One repair of a memory, as a policy of its own; the memory itself is its own repair."""

    memory: str
    """The memory that is repaired."""
    policy: str
    """The repaired memory."""
    action: str = ""
    """The action that applies the repair, as the subject of a sentence."""
    calls: float | None = None
    """Model calls of a memory that counts none itself: 0 if it asks no model, None if unknown."""
    only_reorders: bool = False
    """Whether it changes when records are added, and nothing else."""

    @property
    def label(self) -> str:
        """Name the repair without the memory that it repairs."""
        if self.policy == self.memory:
            return "(no repair)"
        return self.policy.removesuffix(f"({self.memory})")


@dataclass(frozen=True, slots=True)
class RepairOutcome:
    """What a memory shows after a repair: in source order, and in every other order."""

    repair: Repair
    questions: int
    """Questions that are compared."""
    evidence: Mapping[str, float]
    """Order → share of the evidence that is shown; empty without labels."""
    outdated: Mapping[str, float]
    """Order → share of the questions about updates that are shown the outdated value alone."""
    updates: int
    """Questions about updates."""
    anomalies: float
    """Mean share of trials with overlapping writes that end like no serial order."""
    records: float
    """Mean share of questions that are shown different records than in source order."""
    texts: float
    """Mean share of questions that are shown a different text than in source order."""
    writes: float
    """Extra writes per record."""
    calls: float | None
    """Model calls while one memory is built; None if they are not known."""
    length: float
    """Characters that are shown."""
    delay: float
    """Later arrivals that a record waits for."""

    @property
    def fault(self) -> float:
        """What is wrong in total, in means of shares: evidence, outdated values, anomalies."""
        lacking = 1 - _mean(self.evidence.values()) if self.evidence else 0.0
        return lacking + _mean(self.outdated.values()) + self.anomalies

    @property
    def cost(self) -> tuple[float, ...]:
        """Extra writes, model calls, text, and delay, in the order in which they count."""
        return self.writes, self.calls or 0.0, self.length, self.delay

    @property
    def rank(self) -> tuple[float, ...]:
        """Order outcomes: what is wrong, then what order still changes, then what it costs."""
        return (round(self.fault, 9), round(self.records, 9), round(self.texts, 9), *self.cost)

    def is_never_worse(self, unrepaired: RepairOutcome) -> bool:
        """Whether no order shows less evidence or more outdated values than without the repair.

        A repair that cannot perform one of the orders is not comparable.
        """
        if not unrepaired.evidence.keys() <= self.evidence.keys():
            return False
        pairs = [(unrepaired.evidence, self.evidence), (self.outdated, unrepaired.outdated)]
        return all(
            low[name] <= high[name] + _SAME for low, high in pairs for name in low if name in high
        )


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do about a memory whose repairs were measured."""

    memory: str
    repair: Repair | None
    """The complete repair; None if there is none, or nothing to repair."""
    reason: str
    partial: tuple[str, ...] = ()
    """Cheaper repairs, each with what it leaves."""

    @property
    def action(self) -> str:
        """The action that applies the repair."""
        return self.repair.action if self.repair is not None else ""

    @property
    def spec(self) -> str:
        """The repaired memory as a spec; empty if there is no repair."""
        return self.repair.policy if self.repair is not None else ""

    @property
    def text(self) -> str:
        """What the repair achieves, and which cheaper ones leave what."""
        cheaper = f". Cheaper: {'; '.join(self.partial)}" if self.partial else ""
        return f"{self.reason}{cheaper}"

    def __str__(self) -> str:
        return f"{self.memory}: {self.text}"


def read_repairs(results: Results) -> list[Repair]:
    """Read which policies of a run are repairs of which."""
    return [
        Repair(
            finding.value["memory"],
            finding.policy,
            finding.value["action"],
            finding.value.get("model_calls"),
            bool(finding.value.get("only_reorders")),
        )
        for finding in results.findings.get("repair", ())
    ]


def measure_outcome(repair: Repair, rows: Rows) -> RepairOutcome | None:
    """Read what a repaired memory shows in every order; None if it was not compared."""
    own = rows.where(policy=repair.policy, arm="")
    traces = _group(own.where(experiment="routes", model=""), "J")
    evidence = _group(own.where(experiment="retention"), LOST)
    updates = _group(own.where(experiment="updates", model=""), "stale_only.route")
    trials = _group(own.where(experiment="overlap"), "anomaly", overlapping=True)
    if not traces:
        return None
    arrivals, writes = (
        sum(_list_values(traces, f"count.{name}")) for name in ("arrivals", "writes")
    )
    calls = [_per_unit(row) for row in map(_find_calls, traces.values()) if row is not None]
    return RepairOutcome(
        repair,
        _count_questions(evidence, LOST) or _count_questions(traces, "J"),
        _read_sides(evidence, "recall.exposed"),
        _read_sides(updates, "stale_only"),
        _count_questions(updates, "stale_only.route"),
        _mean(_list_values(trials, "anomaly")),
        _mean(_list_values(traces, "V_changed")),
        _mean(_list_values(traces, "C_changed")),
        max(0.0, writes / arrivals - 1) if arrivals else 0.0,
        sum(calls) / len(traces) if calls else repair.calls,
        4 * _mean(_list_values(traces, "context_length.route")),
        _mean(map(_per_unit, _list_rows(traces, "count.delay"))),
    )


def _find_calls(group: Group) -> EstimateRow | None:
    return group.get("count.model_calls", group.get("count.consultations"))


def _list_rows(groups: Mapping[str, Group], *quantities: str) -> list[EstimateRow]:
    return [group[name] for group in groups.values() for name in quantities if name in group]


def _list_values(groups: Mapping[str, Group], quantity: str) -> list[float]:
    return [row.estimate or 0.0 for row in _list_rows(groups, quantity)]


def _count_questions(groups: Mapping[str, Group], quantity: str) -> int:
    return next((row.queries or 0 for row in _list_rows(groups, quantity)), 0)


def _group(rows: Rows, quantity: str, *, overlapping: bool = False) -> dict[str, Group]:
    """Group rows by order of arrival, those of overlapping writes or all others."""
    return {
        schedule: group
        for (schedule,), group in rows.group("schedule").items()
        if quantity in group and overlaps_writes(schedule) is overlapping
    }


def _read_sides(groups: Mapping[str, Group], quantity: str) -> dict[str, float]:
    """Read a share in source order and in every other order."""
    shares: dict[str, float] = {}
    for schedule, group in groups.items():
        for name, side in ((FORWARD.name, "forward"), (schedule, "route")):
            row = group.get(f"{quantity}.{side}")
            if row is not None and row.estimate is not None:
                shares.setdefault(name, row.estimate)
    return dict(sorted(shares.items(), key=lambda pair: pair[0] != FORWARD.name))


def _per_unit(row: EstimateRow) -> float:
    """Average a count over the pools that it was taken in."""
    return (row.estimate or 0.0) / row.units if row.units else 0.0


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else 0.0


def choose_repair(verdict: Verdict, results: Results) -> Advice | None:
    """Choose the repair with the best total outcome; None if no repair was measured."""
    outcomes = list_outcomes(verdict.policy, results)
    if len(outcomes) < 2:
        return None
    unrepaired, *repaired = outcomes
    start = "Incomplete: " if results.incomplete else ""
    is_harmless = verdict.depth in ("stable", "internal only") and not verdict.is_red
    if is_harmless and not unrepaired.fault:
        reason = "nothing to repair"
        if verdict.inconclusive:
            reason = f"nothing can be concluded: {verdict.inconclusive}"
        return Advice(verdict.policy, None, start + reason)
    better = _list_better(verdict, unrepaired, repaired)
    if not better:
        reason = "no standard repair is better in total: change the memory itself"
        return Advice(verdict.policy, None, start + reason)
    best, *milder = sorted(better, key=lambda outcome: outcome.rank)
    partial = [outcome for outcome in milder if outcome.cost < best.cost][:_MOST_PARTIAL]
    sentence = f"{best.repair.action} {describe_outcome(best, unrepaired)}"
    cheaper = tuple(f"{o.repair.action} leaves {_count_remaining(o)}" for o in partial)
    return Advice(verdict.policy, best.repair, start + sentence, cheaper)


_MOST_PARTIAL = 2


def _list_better(
    verdict: Verdict, unrepaired: RepairOutcome, outcomes: Sequence[RepairOutcome]
) -> list[RepairOutcome]:
    """List the repairs that are better in total, worse in no order, and fit the tested causes."""
    causes = [cause for cause in verdict.causes if cause.explained and cause.record]
    # Another order cannot help what source order loses, or what is not kept or shown even alone.
    is_order_innocent = bool(causes) and all(
        cause.is_baseline or cause.cause in NEVER_RIGHT for cause in causes
    )
    return [
        outcome
        for outcome in outcomes
        if outcome.is_never_worse(unrepaired)
        and outcome.rank[:3] < unrepaired.rank[:3]
        and not (is_order_innocent and outcome.repair.only_reorders)
    ]


def list_outcomes(memory: str, results: Results) -> list[RepairOutcome]:
    """Measure a memory, then its repairs; empty if it was not compared."""
    repairs = [Repair(memory, memory), *(r for r in read_repairs(results) if r.memory == memory)]
    outcomes = [measure_outcome(repair, results.rows) for repair in repairs]
    return [] if outcomes[0] is None else [outcome for outcome in outcomes if outcome is not None]


def write_command(repair: str, data: str) -> str:
    """Write the command that audits a repaired memory."""
    return shlex.join(("routeprism", "audit", data, "--policy", repair))


def describe_outcome(outcome: RepairOutcome, unrepaired: RepairOutcome) -> str:
    """Describe with counts what a repair shows, and what it costs."""
    orders = pluralise(len(outcome.evidence), "order") if outcome.evidence else "all orders"
    effects = join_names(list(list_effects(outcome, unrepaired)))
    costs = join_names(list(_list_costs(outcome, unrepaired)))
    return f"{effects}, a mean over {orders}, at {costs}"


def _count_remaining(outcome: RepairOutcome) -> str:
    """Count what is still wrong after a repair."""
    if outcome.evidence:
        lacking = 1 - _mean(outcome.evidence.values())
        return f"{_count(lacking, outcome.questions)} of {outcome.questions} without evidence"
    return f"{_count(outcome.records, outcome.questions)} of {outcome.questions} with other records"


def list_effects(outcome: RepairOutcome, unrepaired: RepairOutcome) -> Iterator[str]:
    """List with counts what is more or less wrong than before; else what order still changes."""
    number = outcome.questions
    after, before = (_mean(each.evidence.values()) for each in (outcome, unrepaired))
    if abs(after - before) > _SAME:
        yield (
            f"shows the evidence of {_count(after, number)} instead of {_count(before, number)} "
            f"of {number} questions"
        )
    after, before = (_mean(each.outdated.values()) for each in (outcome, unrepaired))
    if abs(after - before) > _SAME:
        yield (
            f"leaves {_count(after, outcome.updates)} instead of "
            f"{_count(before, outcome.updates)} of {outcome.updates} questions with the outdated "
            f"value"
        )
    if outcome.anomalies != unrepaired.anomalies:
        number_of_writes = "fewer" if outcome.anomalies < unrepaired.anomalies else "more"
        yield f"ends {number_of_writes} overlapping writes in a way that no serial order does"
    if round(outcome.fault, 9) == round(unrepaired.fault, 9):
        layer, after, before = "other records", outcome.records, unrepaired.records
        if after == before:
            layer, after, before = "another text", outcome.texts, unrepaired.texts
        yield (
            f"shows {layer} to {_count(after, number)} instead of {_count(before, number)} of "
            f"{number} questions"
        )


def _list_costs(outcome: RepairOutcome, unrepaired: RepairOutcome) -> Iterator[str]:
    writes = f"{outcome.writes:.2f}" if outcome.writes else "no"
    yield f"{writes} extra writes{' per record' * bool(outcome.writes)}"
    if outcome.calls:
        yield f"{format_calls(outcome.calls)} model calls per memory"
    growth = outcome.length / unrepaired.length if unrepaired.length else 1.0
    if growth >= _MORE_TEXT:
        yield f"{growth:.1f} times as much text"
    if delay := round(outcome.delay):
        yield f"a delay of {pluralise(delay, 'record')}"


_MORE_TEXT = 1.05
"""From which factor on a longer text is a cost worth mentioning."""


def _count(share: float, number: int) -> str:
    """Write a mean count; what is rare is not written as none."""
    mean = share * number
    return "under 0.1" if _SAME < mean < _RARE else format_count(mean)


_RARE = 0.05


def format_calls(calls: float | None) -> str:
    """Write a number of calls; an average of few calls has a decimal."""
    if calls is None:
        return ""
    return f"{calls:,.0f}" if calls >= 100 or calls == round(calls) else f"{calls:.1f}"


def tabulate_repairs(results: Results) -> list[Table]:
    """Show for each memory what every repair shows in every order, and what it costs."""
    tables = []
    for memory in dict.fromkeys(repair.memory for repair in read_repairs(results)):
        outcomes = list_outcomes(memory, results)
        orders = list(dict.fromkeys(name for outcome in outcomes for name in outcome.evidence))
        has_updates = any(outcome.updates for outcome in outcomes)
        has_calls = any(outcome.calls for outcome in outcomes)
        columns = (
            *("repair", *map(describe_arrival, orders)),
            *(["outdated"] if has_updates else []),
            *("other records", "extra writes"),
            *(["model calls"] if has_calls else []),
            *("delay", "characters"),
        )
        cells = [
            (
                outcome.repair.label,
                *(_show_evidence(outcome, order) for order in orders),
                *([_show_outdated(outcome)] if has_updates else []),
                f"{_count(outcome.records, outcome.questions)} of {outcome.questions}",
                f"{outcome.writes:.2f}",
                *([format_calls(outcome.calls)] if has_calls else []),
                *(f"{outcome.delay:.0f}", f"{outcome.length:,.0f}"),
            )
            for outcome in outcomes
        ]
        outdated = "Outdated: questions that are shown the outdated value alone. " * has_updates
        calls = "Model calls: while one memory is built. " * has_calls
        caption = (
            f"Orders: questions times the share of their evidence that is shown. {outdated}Other "
            "records: questions that order shows other records. All columns after the orders are "
            f"means over them. Extra writes: per record. {calls}Delay: later arrivals that a "
            "record waits for. Characters: shown to a question."
        )
        title = f"{memory}: what each repair shows, and what it costs"
        tables += make_table(f"remedies-{name_chart(memory)}", title, caption, columns, cells)
    return tables


def _show_evidence(outcome: RepairOutcome, order: str) -> str:
    if order not in outcome.evidence:
        return ""
    return f"{_count(outcome.evidence[order], outcome.questions)} of {outcome.questions}"


def _show_outdated(outcome: RepairOutcome) -> str:
    return f"{_count(_mean(outcome.outdated.values()), outcome.updates)} of {outcome.updates}"
