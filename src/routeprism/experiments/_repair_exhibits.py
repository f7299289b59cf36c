"""Tables and charts of repairs: the loss that each one prevents, and its cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from routeprism.exhibits import (
    Chart,
    Results,
    Table,
    format_count,
    format_row,
    make_table,
    name_chart,
    shorten,
)
from routeprism.experiments._repair_values import (
    RemedyOutcome,
    Repair,
    compare_repairs,
    find_efficient,
    read_repairs,
    value_of_row,
)
from routeprism.experiments.severity import (
    describe_arrival,
)
from routeprism.runs import EstimateRow

__all__ = [
    "chart_remedies",
    "format_calls",
    "tabulate_remedies",
    "write_stale",
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
            lambda line: write_stale(line.get(schedules[0])),
            f"Old value alone: questions about updates that end with it under {first}.",
        )
    answer_schedule = next((o.schedule for o in outcomes if o.accuracy is not None), None)
    if answer_schedule is not None:
        yield (
            *_column(answer_schedule, lambda o: _estimate(o.accuracy), "right answers"),
            f"Right answers: share under {describe_arrival(answer_schedule)}.",
        )


def write_stale(outcome: RemedyOutcome | None) -> str:
    row = None if outcome is None else outcome.stale
    return "" if row is None else f"{format_count(value_of_row(row))} of {row.queries}"


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


def _estimate(row: EstimateRow | None) -> float | None:
    return None if row is None else row.estimate


def format_calls(calls: float | None) -> str:
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
