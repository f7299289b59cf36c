"""Agreement of passes, as rows of the estimates table.

The arm of a row is a pass's name for its counts, `A~B` for two passes and `A~B~C` for all of them.
For support labels these count records, and `direct-sets:A~B` counts whole direct-support sets.
Labels that a rule combines have the rule as their arm, such as `majority(A,B,C)`. Under a rubric
other than `screen` and `support`, arms begin with its name: `screen-gold:A~B`, `compiled:A`. Unread
cards are counted for their pass and left out of comparisons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from routeprism.errors import SpecError
from routeprism.labels._cards import LABELS, UNREAD, Kind
from routeprism.labels._masks import Mask, Rule, combine
from routeprism.labels._readings import (
    CompiledReading,
    Readings,
    ScreenReading,
    SupportReading,
    same_cards,
)
from routeprism.measures import (
    RESAMPLES,
    Confusion,
    Drawing,
    Estimate,
    Interval,
    agreement_estimate,
    chosen_interval,
    kappa_estimate,
)
from routeprism.records import Benchmark
from routeprism.runs import EstimateRow

__all__ = [
    "PassComparison",
    "compare",
    "list_items",
    "list_labels",
    "prefix_arm",
    "reading_rows",
]


@dataclass(frozen=True, slots=True)
class PassComparison:
    """Two passes, compared by item and by unit."""

    units: tuple[Confusion, ...]
    """The confusion matrix of each unit of the benchmark that has items."""
    whole: Confusion
    """The confusion matrix of all units together."""
    questions: int
    """The number of questions compared."""
    sets: tuple[tuple[int, int], ...] = ()
    """For support, each unit's (equal direct-support sets, sets compared)."""
    members: tuple[Confusion, ...] = ()
    """For support, each unit's membership in the direct-support sets, by record."""


def compare(
    first: Readings, second: Readings, benchmark: Benchmark, *, mask: Mask | None = None
) -> PassComparison:
    """Compare two passes over the same cards under the same rubric."""
    same_cards([first, second])
    labels = list_labels(first.kind)
    units, sets, members = [], [], []
    questions = 0
    for cards in _list_units(first, benchmark, mask):
        pairs: list[tuple[str, str]] = []
        triples: list[tuple[frozenset[str], frozenset[str], Sequence[str]]] = []
        for id in cards:
            items, other_items = list_items(first, id), list_items(second, id)
            if not items or not other_items:
                continue
            questions += 1
            pairs += [(label, other_items[item]) for item, label in items.items()]
            a, b = first.cards[id], second.cards[id]
            if isinstance(a, SupportReading) and isinstance(b, SupportReading):
                triples.append((a.direct, b.direct, tuple(items)))
        units.append(Confusion.of(pairs, labels))
        if first.kind == "support":
            sets.append((sum(a == b for a, b, _ in triples), len(triples)))
            members.append(Confusion.of_sets(triples))
    whole = sum(units, Confusion.of((), labels))
    return PassComparison(tuple(units), whole, questions, tuple(sets), tuple(members))


def reading_rows(
    benchmark: Benchmark,
    passes: Sequence[Readings],
    *,
    seed: int,
    resamples: int = RESAMPLES,
    interval: Interval | None = None,
    masks: Sequence[Mask] = (),
) -> list[EstimateRow]:
    """Make the rows of one or more passes: counts, and the agreement of two or more."""
    if not passes:
        raise SpecError("Expected at least one pass but got none")
    same_cards(passes)
    _check_questions(benchmark, passes)
    used = chosen_interval(interval, benchmark.interval)
    drawing = Drawing(seed=seed, resamples=resamples, interval=used)
    rows: list[EstimateRow] = []
    for mask in (None, *masks):
        make = _start_rows(benchmark, passes[0], mask, seed)
        for readings in passes:
            rows += _count_labels(readings, mask, make)
        for pair in combinations(passes, 2):
            rows += _describe_pair(pair, compare(*pair, benchmark, mask=mask), make, drawing)
        if len(passes) > 2:
            rows += _describe_all(passes, benchmark, mask, make, drawing)
        if passes[0].kind == "screen" and len(passes) > 1:
            rows += _count_combined(passes, mask, make)
    return rows


def _check_questions(benchmark: Benchmark, passes: Sequence[Readings]) -> None:
    ids = {question.id for case in benchmark.cases for question in case.questions}
    for readings in passes:
        for reading in readings.cards.values():
            if reading.question not in ids:
                raise SpecError(
                    f"pass '{readings.name}' reads question '{reading.question}', which benchmark "
                    f"'{benchmark.name}' does not have"
                )


RowMaker = Callable[..., EstimateRow]


def prefix_arm(readings: Readings) -> str:
    """Name the rubric at the start of an arm, unless it is one of the two plain rubrics."""
    return "" if readings.rubric in ("screen", "support") else f"{readings.rubric}:"


def _start_rows(benchmark: Benchmark, readings: Readings, mask: Mask | None, seed: int) -> RowMaker:
    def make(
        arm: str,
        quantity: str,
        value: float | Estimate | None,
        *,
        questions: int,
        model: str = "",
        labels: str = "",
    ) -> EstimateRow:
        estimate = value if isinstance(value, Estimate) else None
        flags = ["synthetic"] if benchmark.synthetic else []
        flags.extend(estimate.warnings if estimate else ())
        return EstimateRow(
            experiment="screen" if readings.kind == "screen" else "support",
            benchmark=benchmark.name,
            model=model,
            arm=f"{prefix_arm(readings)}{arm}",
            labels=labels,
            mask=mask.name if mask else "",
            quantity=quantity,
            estimate=value.value if isinstance(value, Estimate) else value,
            lower=estimate.lower if estimate else None,
            upper=estimate.upper if estimate else None,
            queries=questions,
            units=estimate.units if estimate else None,
            unit=benchmark.unit,
            seed=seed if estimate else None,
            flags=";".join(flags),
        )

    return make


def _count_labels(readings: Readings, mask: Mask | None, make: RowMaker) -> Iterator[EstimateRow]:
    cards = {
        id: reading
        for id, reading in readings.cards.items()
        if mask is None or reading.question in mask
    }
    columns = {
        "model": readings.model,
        "labels": f"audited:{readings.name}" if readings.kind == "support" else "",
        "questions": len({reading.question for reading in cards.values()}),
    }
    for label, number in replace(readings, cards=cards).counts.items():
        yield make(readings.name, f"count.{label}", float(number), **columns)
    if readings.kind == "compiled":
        unverified = sum(
            not passage.verified
            for reading in cards.values()
            if isinstance(reading, CompiledReading)
            for passage in reading.passages
        )
        yield make(readings.name, "count.unverified_passages", float(unverified), **columns)


def _describe_pair(
    pair: tuple[Readings, Readings], comparison: PassComparison, make: RowMaker, drawing: Drawing
) -> Iterator[EstimateRow]:
    arm = "~".join(readings.name for readings in pair)
    agreed = [(unit.agreed, unit.total) for unit in comparison.units]
    parts = [(arm, comparison.units, agreed)]
    if comparison.sets:
        parts.append((f"direct-sets:{arm}", comparison.members, list(comparison.sets)))
    questions = comparison.questions
    for name, units, counts in parts:
        share, *rest = _describe_share(name, counts, questions, make, drawing)
        yield share
        yield make(name, "kappa", kappa_estimate(units, **drawing), questions=questions)
        yield from rest
    labels = comparison.whole.labels
    for row, first in enumerate(labels):
        for column, second in enumerate(labels):
            number = float(comparison.whole.counts[row][column])
            yield make(arm, f"count.{first}~{second}", number, questions=questions)


def _describe_share(
    arm: str,
    counts: Sequence[tuple[int, int]],
    questions: int,
    make: RowMaker,
    drawing: Drawing,
) -> Iterator[EstimateRow]:
    """Yield the share of items on which passes agree, and both of its counts."""
    yield make(arm, "agreement", agreement_estimate(counts, **drawing), questions=questions)
    for at, quantity in enumerate(("count.agreed", "count.compared")):
        yield make(arm, quantity, float(sum(unit[at] for unit in counts)), questions=questions)


def _describe_all(
    passes: Sequence[Readings],
    benchmark: Benchmark,
    mask: Mask | None,
    make: RowMaker,
    drawing: Drawing,
) -> Iterator[EstimateRow]:
    """Yield the share of items on which all passes agree."""
    units, questions = [], 0
    for cards in _list_units(passes[0], benchmark, mask):
        agreed = compared = 0
        for id in cards:
            items = [list_items(readings, id) for readings in passes]
            if all(items):
                questions += 1
                compared += len(items[0])
                agreed += sum(len({labels[item] for labels in items}) == 1 for item in items[0])
        units.append((agreed, compared))
    arm = "~".join(readings.name for readings in passes)
    yield from _describe_share(arm, units, questions, make, drawing)


def _count_combined(
    passes: Sequence[Readings], mask: Mask | None, make: RowMaker
) -> Iterator[EstimateRow]:
    rules: tuple[Rule, ...] = ("intersection",) if len(passes) == 2 else ("majority", "unanimity")
    names = ",".join(readings.name for readings in passes)
    for rule in rules:
        combined = combine(rule, passes).items()
        labels = [label for id, label in combined if mask is None or id in mask]
        for label in LABELS["screen"]:
            number = float(labels.count(label))
            yield make(f"{rule}({names})", f"count.{label}", number, questions=len(labels))


def list_labels(kind: Kind) -> tuple[str, ...]:
    """List the labels of a kind of reading, in the order of a confusion matrix."""
    return (*LABELS[kind], "unverified") if kind == "compiled" else LABELS[kind]


def list_items(readings: Readings, card: str) -> Mapping[str, str]:
    """Map the items of a card to labels: the card itself, or its records; empty if unread."""
    reading = readings.cards[card]
    if isinstance(reading, SupportReading):
        return {id: record.label for id, record in reading.records.items()}
    label = reading.label if isinstance(reading, ScreenReading) else reading.standing
    return {} if label == UNREAD else {card: label}


def _list_units(readings: Readings, benchmark: Benchmark, mask: Mask | None) -> Iterator[list[str]]:
    """List the cards of each pool, the unit that is resampled."""
    by_question: dict[str, list[str]] = {}
    for id, reading in readings.cards.items():
        if mask is None or reading.question in mask:
            by_question.setdefault(reading.question, []).append(id)
    for case in benchmark.cases:
        cards = [id for question in case.questions for id in by_question.get(question.id, ())]
        if cards:
            yield cards
