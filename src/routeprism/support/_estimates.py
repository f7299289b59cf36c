"""How far passes agree, as rows of the estimates table.

Arms: a pass's name for its counts; `A~B` for two passes; `A~B~C` for agreement of all; for support
labels these speak of records, and `direct-sets:A~B` of whole direct-support sets; a rule with its
passes, such as `majority(A,B,C)`, for labels combined. Under another rubric than the plain two,
arms begin with its name: `screen-gold:A~B`, `compiled:A`. Unread cards are counted for their pass
and left out of comparisons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from routeprism.errors import SpecError
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
from routeprism.support._gates import Mask, Rule, combine
from routeprism.support._readings import (
    CompiledReading,
    Readings,
    ScreenReading,
    SupportReading,
    same_cards,
)
from routeprism.support._rubrics import LABELS, UNREAD

__all__ = ["Comparison", "compare", "items_of", "labels_of", "reading_rows"]

Labelled = Mapping[str, str]
"""Item → label; unread items are not in it."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two passes, item by item and unit by unit."""

    units: tuple[Confusion, ...]
    """One for each unit of the benchmark that has items."""
    whole: Confusion
    """All of them."""
    questions: int
    """How many questions were compared."""
    sets: tuple[tuple[int, int], ...] = ()
    """Support only: each unit's (equal direct-support sets, sets compared)."""
    members: tuple[Confusion, ...] = ()
    """Support only: each unit's membership in the direct-support sets, record by record."""


def compare(
    one: Readings, other: Readings, benchmark: Benchmark, *, mask: Mask | None = None
) -> Comparison:
    """Compare two passes over the same cards under the same rubric."""
    same_cards([one, other])
    labels = labels_of(one.kind)
    units, sets, members = [], [], []
    questions = 0
    for cards in _units(one, benchmark, mask):
        pairs: list[tuple[str, str]] = []
        chosen: list[tuple[frozenset[str], frozenset[str], Sequence[str]]] = []
        for id in cards:
            first, second = items_of(one, id), items_of(other, id)
            if not first or not second:
                continue
            questions += 1
            pairs += [(first[item], second[item]) for item in first]
            a, b = one.cards[id], other.cards[id]
            if isinstance(a, SupportReading) and isinstance(b, SupportReading):
                chosen.append((a.direct, b.direct, tuple(first)))
        units.append(Confusion.of(pairs, labels))
        if one.kind == "support":
            sets.append((sum(a == b for a, b, _ in chosen), len(chosen)))
            members.append(Confusion.of_sets(chosen))
    whole = Confusion.of((), labels)
    for unit in units:
        whole += unit
    return Comparison(tuple(units), whole, questions, tuple(sets), tuple(members))


def reading_rows(
    benchmark: Benchmark,
    passes: Sequence[Readings],
    *,
    seed: int,
    resamples: int = RESAMPLES,
    interval: Interval | None = None,
    masks: Sequence[Mask] = (),
) -> list[EstimateRow]:
    """Turn one or more passes into rows: counts, and for two or more their agreement."""
    if not passes:
        raise SpecError("Expected at least one pass but got none")
    same_cards(passes)
    known = {question.id for case in benchmark.cases for question in case.questions}
    for one in passes:
        for reading in one.cards.values():
            if reading.question not in known:
                raise SpecError(
                    f"pass '{one.name}' reads question '{reading.question}', which benchmark "
                    f"'{benchmark.name}' does not have"
                )
    used = chosen_interval(interval, benchmark.interval)
    drawing = Drawing(seed=seed, resamples=resamples, interval=used)
    rows: list[EstimateRow] = []
    for mask in (None, *masks):
        make = _maker(benchmark, passes[0], mask)
        for one in passes:
            rows += _count_rows(one, benchmark, mask, make)
        for two in combinations(passes, 2):
            found = compare(*two, benchmark, mask=mask)
            rows += _pair_rows(two, found, make, drawing)
        if len(passes) > 2:
            rows += _all_rows(passes, benchmark, mask, make, drawing)
        if passes[0].kind == "screen" and len(passes) > 1:
            rows += _combined_rows(passes, mask, make)
    return rows


Maker = Callable[..., EstimateRow]


def _maker(benchmark: Benchmark, one: Readings, mask: Mask | None) -> Maker:
    prefix = "" if one.rubric in ("screen", "support") else f"{one.rubric}:"

    def make(
        arm: str,
        quantity: str,
        value: float | None,
        *,
        model: str = "",
        labels: str = "",
        questions: int | None = None,
        estimate: Estimate | None = None,
        seed: int | None = None,
    ) -> EstimateRow:
        flags = ["synthetic"] if benchmark.synthetic else []
        flags.extend(estimate.warnings if estimate else ())
        return EstimateRow(
            experiment="screen" if one.kind == "screen" else "support",
            benchmark=benchmark.name,
            model=model,
            arm=f"{prefix}{arm}",
            labels=labels,
            mask=mask.name if mask else "",
            quantity=quantity,
            estimate=value,
            lower=estimate.lower if estimate else None,
            upper=estimate.upper if estimate else None,
            queries=questions,
            units=estimate.units if estimate else None,
            unit=benchmark.unit,
            seed=seed if estimate else None,
            flags=";".join(flags),
        )

    return make


def _count_rows(
    one: Readings, benchmark: Benchmark, mask: Mask | None, make: Maker
) -> Iterator[EstimateRow]:
    kept = {
        id: reading
        for id, reading in one.cards.items()
        if mask is None or reading.question in mask.question_ids
    }
    part = replace(one, cards=kept)
    told = {
        "model": one.model,
        "labels": f"audited:{one.name}" if one.kind == "support" else "",
        "questions": len({reading.question for reading in kept.values()}),
    }
    for label, number in part.counts.items():
        yield make(one.name, f"count.{label}", float(number), **told)
    if one.kind == "compiled":
        quoted = [
            passage
            for reading in kept.values()
            if isinstance(reading, CompiledReading)
            for passage in reading.passages
        ]
        wrong = float(sum(not passage.verified for passage in quoted))
        yield make(one.name, "count.unverified_passages", wrong, **told)


def _pair_rows(
    two: tuple[Readings, Readings], found: Comparison, make: Maker, drawing: Drawing
) -> Iterator[EstimateRow]:
    arm = "~".join(one.name for one in two)
    parts = [(arm, found.units, [(unit.agreed, unit.total) for unit in found.units])]
    if found.sets:
        parts.append((f"direct-sets:{arm}", found.members, list(found.sets)))
    for named, units, agreed in parts:
        share = agreement_estimate(agreed, **drawing)
        kappa = kappa_estimate(units, **drawing)
        for quantity, estimate in (("agreement", share), ("kappa", kappa)):
            value = estimate.value if estimate else None
            yield make(
                named,
                quantity,
                value,
                questions=found.questions,
                estimate=estimate,
                seed=drawing["seed"],
            )
        yield make(named, "count.agreed", _sum(agreed, 0), questions=found.questions)
        yield make(named, "count.compared", _sum(agreed, 1), questions=found.questions)
    for row, first in enumerate(found.whole.labels):
        for column, second in enumerate(found.whole.labels):
            number = float(found.whole.counts[row][column])
            yield make(arm, f"count.{first}~{second}", number, questions=found.questions)


def _all_rows(
    passes: Sequence[Readings],
    benchmark: Benchmark,
    mask: Mask | None,
    make: Maker,
    drawing: Drawing,
) -> Iterator[EstimateRow]:
    """Give the share of items on which all passes agree."""
    units, questions = [], 0
    for cards in _units(passes[0], benchmark, mask):
        agreed = compared = 0
        for id in cards:
            said = [items_of(one, id) for one in passes]
            if all(said):
                questions += 1
                compared += len(said[0])
                agreed += sum(len({found[item] for found in said}) == 1 for item in said[0])
        units.append((agreed, compared))
    arm = "~".join(one.name for one in passes)
    share = agreement_estimate(units, **drawing)
    value = share.value if share else None
    seed = drawing["seed"]
    yield make(arm, "agreement", value, questions=questions, estimate=share, seed=seed)
    yield make(arm, "count.agreed", _sum(units, 0), questions=questions)
    yield make(arm, "count.compared", _sum(units, 1), questions=questions)


def _combined_rows(
    passes: Sequence[Readings], mask: Mask | None, make: Maker
) -> Iterator[EstimateRow]:
    rules: tuple[Rule, ...] = ("intersection",) if len(passes) == 2 else ("majority", "unanimity")
    names = ",".join(one.name for one in passes)
    for rule in rules:
        labels = combine(rule, passes)
        kept = [label for id, label in labels.items() if mask is None or id in mask.question_ids]
        for label in LABELS["screen"]:
            number = float(kept.count(label))
            yield make(f"{rule}({names})", f"count.{label}", number, questions=len(kept))


def _sum(pairs: Sequence[tuple[int, int]], at: int) -> float:
    return float(sum(pair[at] for pair in pairs))


def labels_of(kind: str) -> tuple[str, ...]:
    """Give the labels of a kind of reading, in the order of a confusion matrix."""
    if kind == "compiled":
        return (*LABELS["compiled"], "unverified")
    return LABELS["screen"] if kind == "screen" else LABELS["support"]


def items_of(readings: Readings, card: str) -> Labelled:
    """Give what is compared of a card: its label, or each of its records' labels."""
    one = readings.cards[card]
    if isinstance(one, SupportReading):
        return {id: record.label for id, record in one.records.items()}
    label = one.label if isinstance(one, ScreenReading) else one.standing
    return {} if label == UNREAD else {card: label}


def _units(readings: Readings, benchmark: Benchmark, mask: Mask | None) -> Iterator[list[str]]:
    """Give the cards of each pool: the unit that is resampled."""
    by_question: dict[str, list[str]] = {}
    for id, one in readings.cards.items():
        if mask is None or one.question in mask.question_ids:
            by_question.setdefault(one.question, []).append(id)
    for case in benchmark.cases:
        cards = [id for question in case.questions for id in by_question.get(question.id, ())]
        if cards:
            yield cards
