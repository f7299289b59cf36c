"""Agreement of passes: rows of the estimates table, and the items behind each row.

The arm of a row is a pass's name for its counts, `A~B` for two passes and `A~B~C` for all of them.
For support labels these count records, and `direct-sets:A~B` counts whole direct-support sets.
Labels that a rule combines have the rule as their arm, such as `majority(A,B,C)`. Under a rubric
other than `screen` and `support`, arms begin with its name: `screen-gold:A~B`, `compiled:A`. Unread
cards are counted for their pass and left out of comparisons.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import cast

from routeprism.errors import SpecError
from routeprism.labels._cards import LABELS, UNREAD, Kind
from routeprism.labels._masks import RULES, Mask, Rule, combine
from routeprism.labels._readings import (
    CompiledReading,
    Readings,
    ScreenReading,
    SupportReading,
    load_readings,
    same_cards,
)
from routeprism.measures import (
    MEMBERSHIP,
    RESAMPLES,
    Confusion,
    Drawing,
    Estimate,
    Interval,
    agreement_estimate,
    chosen_interval,
    kappa_estimate,
)
from routeprism.quantities import find_quantity
from routeprism.records import Benchmark
from routeprism.runs import EstimateRow, StoredQuestion


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
        maker = _RowMaker(benchmark, passes, mask, seed, drawing)
        for readings in passes:
            rows += maker.count_labels(readings)
        for pair in combinations(passes, 2):
            rows += maker.describe_pair(pair)
        if len(passes) > 2:
            rows += maker.describe_all()
        if passes[0].kind == "screen" and len(passes) > 1:
            rows += maker.count_combined()
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


def prefix_arm(readings: Readings) -> str:
    """Name the rubric at the start of an arm, unless it is one of the two plain rubrics."""
    return "" if readings.rubric in ("screen", "support") else f"{readings.rubric}:"


@dataclass(frozen=True, slots=True)
class _RowMaker:
    """Makes the rows of some passes, over all questions or those of a mask."""

    benchmark: Benchmark
    passes: Sequence[Readings]
    mask: Mask | None
    seed: int
    drawing: Drawing

    def make(
        self,
        arm: str,
        quantity: str,
        value: float | Estimate | None,
        *,
        questions: int,
        model: str = "",
        labels: str = "",
    ) -> EstimateRow:
        estimate = value if isinstance(value, Estimate) else None
        flags = ["synthetic"] if self.benchmark.synthetic else []
        flags.extend(estimate.warnings if estimate else ())
        return EstimateRow(
            experiment="screen" if self.passes[0].kind == "screen" else "support",
            benchmark=self.benchmark.name,
            model=model,
            arm=f"{prefix_arm(self.passes[0])}{arm}",
            labels=labels,
            mask=self.mask.name if self.mask else "",
            quantity=quantity,
            estimate=value.value if isinstance(value, Estimate) else value,
            lower=estimate.lower if estimate else None,
            upper=estimate.upper if estimate else None,
            queries=questions,
            units=estimate.units if estimate else None,
            unit=self.benchmark.unit,
            seed=self.seed if estimate else None,
            flags=";".join(flags),
        )

    def count_labels(self, readings: Readings) -> Iterator[EstimateRow]:
        cards = {
            id: reading
            for id, reading in readings.cards.items()
            if self.mask is None or reading.question in self.mask
        }
        counts = dict(replace(readings, cards=cards).counts)
        if readings.kind == "compiled":
            counts["unverified_passages"] = sum(
                not passage.verified
                for reading in cards.values()
                if isinstance(reading, CompiledReading)
                for passage in reading.passages
            )
        source = f"audited:{readings.name}" if readings.kind == "support" else ""
        questions = len({reading.question for reading in cards.values()})
        for label, number in counts.items():
            yield self.make(
                readings.name,
                f"count.{label}",
                float(number),
                questions=questions,
                model=readings.model,
                labels=source,
            )

    def describe_pair(self, pair: tuple[Readings, Readings]) -> Iterator[EstimateRow]:
        """Yield how far two passes agree, by item and for support by set, and how labels meet."""
        kind, arm = pair[0].kind, "~".join(readings.name for readings in pair)
        labels = list_labels(kind)
        units, sets, members = [], [], []
        questions = 0
        for cards in _list_units(pair[0], self.benchmark, self.mask):
            readable = list(_list_readable(pair, cards))
            questions += len(readable)
            met = [(first[item], second[item]) for _, (first, second) in readable for item in first]
            units.append(Confusion.of(met, labels))
            direct = [
                (_find_direct(pair[0], card), _find_direct(pair[1], card), tuple(items))
                for card, (items, _) in (readable if kind == "support" else ())
            ]
            sets.append((sum(first == second for first, second, _ in direct), len(direct)))
            members.append(Confusion.of_sets(direct))
        parts = [(arm, units, [(unit.agreed, unit.total) for unit in units])]
        if kind == "support":
            parts.append((f"{_SETS}{arm}", members, sets))
        for name, confusions, counts in parts:
            share, *rest = self.describe_share(name, counts, questions)
            kappa = kappa_estimate(confusions, **self.drawing)
            yield from (share, self.make(name, "kappa", kappa, questions=questions), *rest)
        whole = sum(units, Confusion.of((), labels))
        for first, row in zip(labels, whole.counts, strict=True):
            for second, number in zip(labels, row, strict=True):
                quantity = f"count.{first}~{second}"
                yield self.make(arm, quantity, float(number), questions=questions)

    def describe_share(
        self, arm: str, counts: Sequence[tuple[int, int]], questions: int
    ) -> Iterator[EstimateRow]:
        """Yield the share of items on which passes agree, and both of its counts."""
        share = agreement_estimate(counts, **self.drawing)
        yield self.make(arm, "agreement", share, questions=questions)
        for at, quantity in enumerate(("count.agreed", "count.compared")):
            number = float(sum(unit[at] for unit in counts))
            yield self.make(arm, quantity, number, questions=questions)

    def describe_all(self) -> Iterator[EstimateRow]:
        """Yield the share of items on which all passes agree."""
        units, questions = [], 0
        for cards in _list_units(self.passes[0], self.benchmark, self.mask):
            readable = list(_list_readable(self.passes, cards))
            questions += len(readable)
            labels = [{own[item] for own in items} for _, items in readable for item in items[0]]
            units.append((sum(len(distinct) == 1 for distinct in labels), len(labels)))
        arm = "~".join(readings.name for readings in self.passes)
        yield from self.describe_share(arm, units, questions)

    def count_combined(self) -> Iterator[EstimateRow]:
        several: tuple[Rule, ...] = ("majority", "unanimity")
        names = ",".join(readings.name for readings in self.passes)
        for rule in ("intersection",) if len(self.passes) == 2 else several:
            combined = combine(rule, self.passes).items()
            labels = [label for id, label in combined if self.mask is None or id in self.mask]
            for label in LABELS["screen"]:
                arm, number = f"{rule}({names})", float(labels.count(label))
                yield self.make(arm, f"count.{label}", number, questions=len(labels))


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


def _find_direct(readings: Readings, card: str) -> frozenset[str]:
    return cast(SupportReading, readings.cards[card]).direct


def _list_readable(
    passes: Sequence[Readings], cards: Iterable[str]
) -> Iterator[tuple[str, list[Mapping[str, str]]]]:
    """List the cards that every pass could read, with the labelled items of each pass."""
    for card in cards:
        items = [list_items(readings, card) for readings in passes]
        if all(items):
            yield card, items


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


_SETS = "direct-sets:"
_COMBINED = re.compile(rf"({'|'.join(RULES)})\((.*)\)")


@dataclass(frozen=True, slots=True)
class LabelledItem:
    """One item that passes labelled: a card, a record, a passage or a pair of routes."""

    user: str
    question: str
    item: str
    labels: Mapping[str, str]
    """Pass or label source → its label; a rule's name → the label of several passes together."""


@dataclass(frozen=True, slots=True)
class LabelledItems:
    """The items behind a row, and the labels that κ is taken over."""

    items: tuple[LabelledItem, ...]
    names: tuple[str, ...]

    def recompute(self, quantity: str) -> float | None:
        """Compute a quantity again from the items."""
        labels = [tuple(item.labels.values()) for item in self.items]
        agreed = sum(len(set(item_labels)) == 1 for item_labels in labels)
        if quantity == "count.agreed":
            return float(agreed)
        if quantity == "count.compared":
            return float(len(labels))
        if quantity == "agreement":
            return agreed / len(labels) if labels else None
        if quantity == "kappa":
            return Confusion.of(((first, second) for first, second in labels), self.names).kappa
        label = find_quantity(quantity).part
        if "~" in label:
            return float(sum("~".join(item_labels) == label for item_labels in labels))
        return float(sum(item_labels[-1] == label for item_labels in labels))


def trace_items(
    directory: Path,
    row: EstimateRow,
    questions: Mapping[str, StoredQuestion],
    question_ids: Collection[str],
) -> LabelledItems:
    """List the items behind a row, from the passes that are stored with the run."""
    files = sorted(directory.glob("readings-*.json"))
    passes = {readings.name: readings for readings in map(load_readings, files)}
    first = next(iter(passes.values()))
    arm = row.arm.removeprefix(prefix_arm(first))
    combined = _COMBINED.fullmatch(arm)
    names = list_labels(first.kind)
    if combined:
        items = _combine(arm, combined[1], [passes[name] for name in combined[2].split(",")])
    elif arm.startswith(_SETS):
        two = [passes[name] for name in arm.removeprefix(_SETS).split("~")]
        items = _compare_sets(two, by_record=row.quantity == "kappa")
        names = MEMBERSHIP
    elif "~" in arm:
        items = _compare([passes[name] for name in arm.split("~")])
    else:
        items = _list_readings(passes[arm], passages=row.quantity == "count.unverified_passages")
    return LabelledItems(
        tuple(
            LabelledItem(questions[question].user, question, item, labels)
            for question, item, labels in items
            if question in question_ids
        ),
        names,
    )


Item = tuple[str, str, dict[str, str]]
"""Question, item, labels."""


def _list_readings(readings: Readings, *, passages: bool) -> Iterator[Item]:
    for card, reading in readings.cards.items():
        if passages:
            assert isinstance(reading, CompiledReading)  # noqa: S101 (only these have passages)
            for passage in reading.passages:
                label = "verified" if passage.verified else "unverified_passages"
                yield reading.question, passage.text, {readings.name: label}
            continue
        for item, label in (list_items(readings, card) or {card: UNREAD}).items():
            yield reading.question, item, {readings.name: label}


def _compare(passes: Sequence[Readings]) -> Iterator[Item]:
    for card, items in _list_readable(passes, passes[0].cards):
        for item in items[0]:
            labels = {readings.name: own[item] for readings, own in zip(passes, items, strict=True)}
            yield passes[0].cards[card].question, item, labels


def _compare_sets(passes: Sequence[Readings], *, by_record: bool) -> Iterator[Item]:
    for card, items in _list_readable(passes, passes[0].cards):
        question = passes[0].cards[card].question
        direct = {readings.name: _find_direct(readings, card) for readings in passes}
        if not by_record:
            yield question, card, {name: " ".join(sorted(ids)) for name, ids in direct.items()}
            continue
        for record in items[0]:
            labels = {name: MEMBERSHIP[record not in ids] for name, ids in direct.items()}
            yield question, record, labels


def _combine(arm: str, rule: str, passes: Sequence[Readings]) -> Iterator[Item]:
    screened = {readings.name: readings.screened() for readings in passes}
    for question, label in combine(rule, passes).items():  # type: ignore[arg-type]
        labels = {name: own[question] for name, own in screened.items()}
        yield question, question, {**labels, arm: label}
