"""The readings behind a number on agreement: item by item, what each pass said."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from routeprism.experiments.passes import ARM, LABELS
from routeprism.measures import MEMBERSHIP, Confusion
from routeprism.orders import FORWARD
from routeprism.runs import EstimateRow, Stored, StoredQuestion
from routeprism.support._estimates import items_of, labels_of
from routeprism.support._gates import RULES, combine
from routeprism.support._readings import CompiledReading, Readings, SupportReading
from routeprism.support._rubrics import UNREAD
from routeprism.support._stored import load_readings

__all__ = ["ReadItem", "change_items", "from_items", "study_items"]

_SETS = "direct-sets:"
_COMBINED = re.compile(rf"({'|'.join(RULES)})\((.*)\)")


@dataclass(frozen=True, slots=True)
class ReadItem:
    """One item that was read: a card, a record, a passage or a pair of routes."""

    user: str
    question: str
    item: str
    said: Mapping[str, str]
    """Pass or label source → what it said; a rule's name → what several say together."""


def change_items(
    stored: Stored,
    row: EstimateRow,
    questions: Mapping[str, StoredQuestion],
    inside: Collection[str],
) -> list[ReadItem]:
    """Say of every question whether its exposed support changed, by either label source."""
    routes = [
        stored.sources(row.policy, row.interface, schedule)
        for schedule in (FORWARD.name, row.schedule)
    ]
    found = []
    for question in questions.values():
        labels = {source: question.labels.get(source) for source in row.labels.split("~")}
        if question.id in inside and all(support is not None for support in labels.values()):
            forward, route = (sources[question.id] for sources in routes)
            said = {
                source: LABELS[forward & support == route & support]
                for source, support in labels.items()
                if support is not None
            }
            found.append(ReadItem(question.user, question.id, question.id, said))
    return found


def study_items(
    directory: Path,
    row: EstimateRow,
    passes: Collection[str],
    questions: Mapping[str, StoredQuestion],
    inside: Collection[str],
) -> list[ReadItem]:
    """Read the passes that a row is about, as they are kept with the run."""
    made = {name: load_readings(directory / f"readings-{name}.json") for name in passes}
    first = next(iter(made.values()))
    prefix = "" if first.rubric in ("screen", "support") else f"{first.rubric}:"
    arm = row.arm.removeprefix(prefix)
    together = _COMBINED.fullmatch(arm)
    if together:
        several = [made[name] for name in together[2].split(",")]
        items = _combined(arm, together[1], several)
    elif arm.startswith(_SETS):
        two = [made[name] for name in arm.removeprefix(_SETS).split("~")]
        items = _sets(two, by_record=row.quantity == "kappa")
    elif "~" in arm:
        items = _compared([made[name] for name in arm.split("~")])
    else:
        items = _alone(made[arm], passages=row.quantity == "count.unverified_passages")
    return [
        ReadItem(questions[question].user, question, item, said)
        for question, item, said in items
        if question in inside
    ]


Item = tuple[str, str, dict[str, str]]
"""Question, item, what was said."""


def _alone(one: Readings, *, passages: bool) -> Iterator[Item]:
    for card, reading in one.cards.items():
        if passages:
            assert isinstance(reading, CompiledReading)  # noqa: S101 (only these have passages)
            for passage in reading.passages:
                said = "verified" if passage.verified else "unverified_passages"
                yield reading.question, passage.text, {one.name: said}
            continue
        for item, label in (items_of(one, card) or {card: UNREAD}).items():
            yield reading.question, item, {one.name: label}


def _compared(passes: Sequence[Readings]) -> Iterator[Item]:
    for card, reading in passes[0].cards.items():
        said = [items_of(one, card) for one in passes]
        if all(said):
            for item in said[0]:
                labels = zip(passes, said, strict=True)
                yield reading.question, item, {one.name: found[item] for one, found in labels}


def _sets(two: Sequence[Readings], *, by_record: bool) -> Iterator[Item]:
    for card, reading in two[0].cards.items():
        readings = {one.name: one.cards[card] for one in two}
        direct = {n: one.direct for n, one in readings.items() if isinstance(one, SupportReading)}
        if not all(items_of(one, card) for one in two):
            continue
        if not by_record:
            said = {name: " ".join(sorted(ids)) for name, ids in direct.items()}
            yield reading.question, card, said
            continue
        for record in items_of(two[0], card):
            said = {name: MEMBERSHIP[record not in ids] for name, ids in direct.items()}
            yield reading.question, record, said


def _combined(arm: str, rule: str, passes: Sequence[Readings]) -> Iterator[Item]:
    labels = [one.screened() for one in passes]
    for question, label in combine(rule, passes).items():  # type: ignore[arg-type]
        said = {one.name: found[question] for one, found in zip(passes, labels, strict=True)}
        yield question, question, {**said, arm: label}


def from_items(row: EstimateRow, items: Sequence[ReadItem]) -> float | None:
    """Take the row's number again from its items."""
    pairs = [tuple(item.said.values()) for item in items]
    agreed = sum(len(set(said)) == 1 for said in pairs)
    if row.quantity in ("agreement", "count.agreed", "count.compared"):
        number = {"count.agreed": agreed, "count.compared": len(pairs)}.get(row.quantity)
        if number is not None:
            return float(number)
        return agreed / len(pairs) if pairs else None
    if row.quantity == "kappa":
        return Confusion.of(((one, other) for one, other in pairs), _known(row)).kappa
    wanted = row.quantity.removeprefix("count.")
    if "~" in wanted:
        return float(sum("~".join(said) == wanted for said in pairs))
    return float(sum(said[-1] == wanted for said in pairs))


def _known(row: EstimateRow) -> tuple[str, ...]:
    if row.arm == ARM:
        return LABELS
    if _SETS in row.arm:
        return MEMBERSHIP
    if row.experiment == "screen":
        return labels_of("screen")
    return labels_of("compiled" if row.arm.startswith("compiled:") else "support")
