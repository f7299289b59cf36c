"""What each repair of a memory saves and costs, from the rows of an audit, and how it is shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from routeprism.exhibits import (
    Chart,
    Results,
    Table,
    format_count,
    format_row,
    format_share,
    make_table,
    name_chart,
    shorten,
)
from routeprism.experiments.severity import describe_arrival
from routeprism.policies import Policy, builder_model, describe_client
from routeprism.runs import EstimateRow, Rows


@dataclass(frozen=True, slots=True)
class Repair:
    """One repair of a memory, as a policy of its own."""

    memory: str
    """The memory that is repaired."""
    policy: str
    """The repaired memory."""
    action: str
    """The action that applies the repair, as the subject of a sentence."""
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
    lost: EstimateRow | None = None
    """How many questions lose evidence without the repair; None without labels."""

    @property
    def remaining(self) -> float:
        """Share of questions that still lose evidence, compared with the unrepaired memory."""
        return value_of_row(self.loss) + self.forfeited

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
            left, lost = 1 - value_of_row(self.overlap), 1 - before
        return None if lost <= 0 else 1 - left / lost

    @property
    def is_labelled(self) -> bool:
        """Whether the questions name their evidence, so that its loss is measured."""
        return self.before.quantity == "evidence_lost"


COVERED = "all_covered.exposed.forward"
"""Share of questions that source order shows all of their evidence."""
_STALE = "stale_only.route_count"
"""Questions that are shown the old value of a changed fact alone."""


def compare_repairs(rows: Rows, repairs: Sequence[Repair]) -> list[RemedyOutcome]:
    """Compare every repair under every schedule with the memory that it repairs."""
    routes = rows.where(experiment="routes", arm="")
    traced = routes.where(model="").group("policy", "schedule")
    answers = Rows.of(row for row in routes if row.model).group("policy", "schedule")
    evidence = rows.where(experiment="retention", arm="").group("policy", "schedule")
    updates = rows.plain(experiment="updates", model="").group("policy", "schedule")
    outcomes = []
    for repair in repairs:
        for (policy, schedule), group in traced.items():
            base = traced.get((repair.memory, schedule))
            if policy != repair.policy or base is None or "J" not in group or "J" not in base:
                continue
            place, unrepaired = (policy, schedule), (repair.memory, schedule)
            after, before = evidence.get(place, {}), evidence.get(unrepaired, {})
            lost = before.get("evidence_lost")
            length = value_of_row(base.get("context_length.route"))
            writes, arrivals = (
                value_of_row(group.get(name)) for name in ("count.writes", "count.arrivals")
            )
            outcomes.append(
                RemedyOutcome(
                    repair,
                    schedule,
                    after.get("evidence_lost") if lost is not None else None,
                    group["J"],
                    after.get("recall.exposed.route"),
                    answers.get(place, {}).get("accuracy.route"),
                    group.get("context_length.route"),
                    lost if lost is not None else base["J"],
                    max(0.0, writes / arrivals - 1) if arrivals else 0.0,
                    _mean(group.get("count.delay")),
                    _count_calls(group, repair),
                    max(0.0, value_of_row(before.get(COVERED)) - value_of_row(after.get(COVERED))),
                    value_of_row(group.get("context_length.route")) / length if length else 1.0,
                    updates.get(place, {}).get(_STALE),
                    updates.get(unrepaired, {}).get(_STALE),
                    before.get("evidence_lost_count"),
                )
            )
    return outcomes


def group_outcomes(
    rows: Rows, repairs: Sequence[Repair]
) -> dict[tuple[str, str], list[RemedyOutcome]]:
    """Compare the repairs of each memory under each schedule."""
    groups: dict[tuple[str, str], list[RemedyOutcome]] = {}
    for outcome in compare_repairs(rows, repairs):
        groups.setdefault((outcome.repair.memory, outcome.schedule), []).append(outcome)
    return groups


def _mean(row: EstimateRow | None) -> float:
    """Average a count over the pools that it was taken in."""
    return value_of_row(row) / row.units if row is not None and row.units else 0.0


def _count_calls(group: Mapping[str, EstimateRow], repair: Repair) -> float | None:
    """Average the model calls of building a memory; a larger budget counts as its policy does."""
    row = group.get("count.model_calls", group.get("count.consultations"))
    return _mean(row) if row is not None else repair.calls


def value_of_row(row: EstimateRow | None) -> float:
    """Return an estimate, or 0 if there is none."""
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
        (-(o.prevented or 0.0), o.writes, o.calls or 0.0, o.delay, value_of_row(o.length))
        for o in (rival, outcome)
    ]
    return values[0] != values[1] and all(a <= b for a, b in zip(*values, strict=True))


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
    groups = group_outcomes(results.rows, read_repairs(results)).values()
    efficient = {outcome for group in groups for outcome in find_efficient(group)}
    return make_table(
        "remedies",
        "Repairs and their costs",
        "Each repair around the memory, under each order of arrival. Loss prevented: for how "
        "many of the questions that lose evidence the repair prevents it (without labels, the "
        "share of the missing overlap that it restores). "
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
                _write_prevented(o),
                *map(format_row, (o.loss, o.evidence)),
                write_stale(o),
                *map(format_row, (o.overlap, o.accuracy)),
                f"{o.writes:.2f}",
                format_calls(o.calls),
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


Benefit = tuple[str, str, Callable[[RemedyOutcome], str], str]
"""A column: its heading, its schedule, how an outcome is written, and how to read it."""


def _tabulate_benefit(memory: str, lines: Lines) -> list[Table]:
    """Show the loss prevented under each arrival, and what questions see under the first one."""
    outcomes = [outcome for line in lines.values() for outcome in line.values()]
    if not outcomes:
        return []
    columns = list(_list_benefits(outcomes))
    return make_table(
        f"remedy-benefit-{name_chart(memory)}",
        f"{memory}: what each repair prevents and keeps",
        " ".join(filter(None, (explanation for *_, explanation in columns))),
        ("repair", *(heading for heading, *_ in columns)),
        [
            (
                "(no repair)" if repair.policy == repair.memory else repair.label,
                *(write(line[s]) if s in line else "" for _, s, write, _ in columns),
            )
            for repair, line in lines.items()
        ],
        names=1,
    )


def _list_benefits(outcomes: Sequence[RemedyOutcome]) -> Iterator[Benefit]:
    """List the columns: the loss under each order, then what questions see under the first."""
    schedules = list(dict.fromkeys(outcome.schedule for outcome in outcomes))
    first, arrival = schedules[0], describe_arrival(schedules[0])
    has_labels = any(outcome.is_labelled for outcome in outcomes)
    prevented = "share of the missing overlap that the repair restores"
    if has_labels:
        prevented = "for how many of the questions that lose evidence the repair prevents it"
    text = f"Columns named after an order of arrival: {prevented}."
    for schedule in schedules:
        yield describe_arrival(schedule), schedule, _write_prevented, text
        text = ""
    if has_labels:
        text = f"Evidence kept: share of the evidence that questions are shown under {arrival}."
        yield "evidence kept", first, lambda o: _write_estimate(o.evidence), text
    text = f"Same records: overlap of the records shown under {arrival} and in source order."
    yield "same records", first, lambda o: _write_estimate(o.overlap), text
    if any(outcome.stale is not None for outcome in outcomes):
        text = f"Old value alone: questions about updates that end with it under {arrival}."
        yield "old value alone", first, write_stale, text
    schedule = next((o.schedule for o in outcomes if o.accuracy is not None), "")
    if schedule:
        text = f"Right answers: share under {describe_arrival(schedule)}."
        yield "right answers", schedule, lambda o: _write_estimate(o.accuracy), text


def write_stale(outcome: RemedyOutcome) -> str:
    """Write how many questions about updates end with the old value alone."""
    return str(format_share(outcome.stale))


def _write_prevented(outcome: RemedyOutcome) -> str:
    """Write for how many of the questions that lose evidence a repair prevents it."""
    share = outcome.prevented
    if share is None:
        return ""
    if outcome.lost is None:
        return f"{share:.2f}"
    lost = value_of_row(outcome.lost)
    return f"{format_count(round(share * lost, 1))} of {format_count(lost)}"


def _write_estimate(row: EstimateRow | None) -> str:
    return "" if row is None or row.estimate is None else f"{row.estimate:.2f}"


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
                *(o.repair.label, f"{o.writes:.2f}", format_calls(o.calls), f"{o.delay:.0f}"),
                "" if o.length is None else f"{4 * value_of_row(o.length):,.0f}",
            )
            for o in firsts
        ],
        names=1,
    )


CALLS = (
    "Model calls: on average while one memory is built; for rebuilding, counted writes times the "
    "calls per write of the last build."
)


def format_calls(calls: float | None) -> str:
    """Write a number of calls; an average of few calls has a decimal."""
    if calls is None:
        return ""
    return f"{calls:,.0f}" if calls >= 100 or calls == round(calls) else f"{calls:.1f}"


def chart_remedies(results: Results) -> list[Chart]:
    """Draw benefit against cost for each memory and schedule."""
    return [
        _draw_benefit(*place, measured)
        for place, group in group_outcomes(results.rows, read_repairs(results)).items()
        if (measured := [outcome for outcome in group if outcome.prevented is not None])
    ]


def _draw_benefit(memory: str, schedule: str, outcomes: Sequence[RemedyOutcome]) -> Chart:
    efficient = find_efficient(outcomes)
    texts = _label_points(outcomes)
    words = "; ".join(
        f"{o.repair.label} prevents {_write_prevented(o)} at {o.writes:.2f} extra writes"
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
