"""The items behind a number about agreement: what each pass says about a record, card or pair."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from routeprism.labels._agreement import list_items, list_labels, prefix_arm
from routeprism.labels._cards import UNREAD
from routeprism.labels._masks import RULES, combine
from routeprism.labels._readings import CompiledReading, Readings, SupportReading, load_readings
from routeprism.measures import MEMBERSHIP, Confusion
from routeprism.runs import EstimateRow, StoredQuestion

__all__ = ["LabelledItem", "LabelledItems", "trace_items"]

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
        label = quantity.removeprefix("count.")
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
    for card, reading in passes[0].cards.items():
        labels = {readings.name: list_items(readings, card) for readings in passes}
        if all(labels.values()):
            for item in labels[passes[0].name]:
                yield reading.question, item, {name: own[item] for name, own in labels.items()}


def _compare_sets(passes: Sequence[Readings], *, by_record: bool) -> Iterator[Item]:
    for card, reading in passes[0].cards.items():
        cards = {readings.name: readings.cards[card] for readings in passes}
        direct = {
            n: card_reading.direct
            for n, card_reading in cards.items()
            if isinstance(card_reading, SupportReading)
        }
        if not all(list_items(readings, card) for readings in passes):
            continue
        if not by_record:
            labels = {name: " ".join(sorted(ids)) for name, ids in direct.items()}
            yield reading.question, card, labels
            continue
        for record in list_items(passes[0], card):
            labels = {name: MEMBERSHIP[record not in ids] for name, ids in direct.items()}
            yield reading.question, record, labels


def _combine(arm: str, rule: str, passes: Sequence[Readings]) -> Iterator[Item]:
    screened = {readings.name: readings.screened() for readings in passes}
    for question, label in combine(rule, passes).items():  # type: ignore[arg-type]
        labels = {name: own[question] for name, own in screened.items()}
        yield question, question, {**labels, arm: label}
