"""What the tables of a store contain: values by question and by unit, findings, questions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from routeprism.printing import pluralise
from routeprism.records import Question


class Column(NamedTuple):
    """The names of a number before it is a row: all columns but the stratum."""

    experiment: str
    quantity: str
    policy: str = ""
    schedule: str = ""
    arm: str = ""
    labels: str = ""
    model: str = ""
    judge: str = ""
    prompt_control: str = ""
    filler: str = ""
    mask: str = ""
    batch: str = ""


QuestionValues = dict[str, dict[str, float]]
"""User → question → value; a question to which the number does not apply is missing."""


@dataclass(frozen=True, slots=True)
class UnitValues:
    """What one unit adds to an estimate."""

    user: str
    total: float
    """The sum of its values."""
    number: int
    """The number of values."""
    questions: Mapping[str, float] = field(default_factory=dict)
    """The values by question; empty if the unit counts as a whole."""

    @property
    def mean(self) -> float:
        """The unit's mean."""
        return self.total / self.number


NAMES = tuple(name for name in Column._fields if name != "quantity")
"""The columns of the store beside the user; the quantities share a row."""


def value_rows(user: str, values: Mapping[Column, Sequence[float | None]]) -> list[Sequence[str]]:
    """Write one unit's values, given in the order of the question ids, for the store.

    A quantity has this list, or a single value if all questions have the same.
    """
    shared: dict[tuple[str, ...], dict[str, Sequence[float | None] | float | None]] = {}
    for column, numbers in values.items():
        names = (column.experiment, *column[2:])
        first = numbers[0]
        same = first is not None and numbers.count(first) == len(numbers)
        shared.setdefault(names, {})[column.quantity] = first if same else numbers
    return [(*names, user, json.dumps(quantities)) for names, quantities in shared.items()]


def read_values(
    rows: Iterable[Sequence[str]], questions: Mapping[str, Sequence[str]]
) -> dict[Column, QuestionValues]:
    """Read what `value_rows` wrote, given each user's question ids."""
    columns: dict[Column, QuestionValues] = {}
    for *names, user, text in rows:
        ids = sorted(questions[user])
        for quantity, values in json.loads(text).items():
            numbers = values if isinstance(values, list) else [values] * len(ids)
            column = Column(quantity=quantity, **dict(zip(NAMES, names, strict=True)))
            columns.setdefault(column, {})[user] = {
                question: value
                for question, value in zip(ids, numbers, strict=True)
                if value is not None
            }
    return columns


def unit_rows(values: Mapping[Column, UnitValues], *, interface: str = "") -> list[Sequence[str]]:
    """Write what one unit adds to estimates that are not means of one value per question."""
    shared: dict[tuple[str, ...], dict[str, list[Any]]] = {}
    for column, unit in values.items():
        names = (column.experiment, *column[2:], unit.user)
        content = [unit.total, unit.number, *([dict(unit.questions)] if unit.questions else [])]
        shared.setdefault(names, {})[column.quantity] = content
    return [(interface, *names, json.dumps(content)) for names, content in shared.items()]


def read_units(rows: Iterable[Sequence[str]]) -> dict[tuple[str, Column], list[UnitValues]]:
    """Read what `unit_rows` wrote, by interface and column."""
    units: dict[tuple[str, Column], list[UnitValues]] = {}
    for interface, *names, user, text in rows:
        for quantity, values in json.loads(text).items():
            column = Column(quantity=quantity, **dict(zip(NAMES, names, strict=True)))
            units.setdefault((interface, column), []).append(UnitValues(user, *values))
    return units


MASKS = "masks"
"""The name under which the question ids of each mask are stored; it is not an experiment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A result that is not a single number: a curve, an order, a map.

    A field that is empty does not apply.
    """

    name: str
    """What it is, such as `survival` or `smallest_reordering`."""
    value: Any
    """Plain JSON."""
    policy: str = ""
    interface: str = ""
    schedule: str = ""
    """A schedule or an arrival model."""
    user: str = ""
    question: str = ""

    def row(self) -> Sequence[str]:
        """Write it for the store."""
        return (
            self.policy,
            self.interface,
            self.schedule,
            self.user,
            self.question,
            self.name,
            json.dumps(self.value, sort_keys=True, ensure_ascii=False),
        )


@dataclass(frozen=True, slots=True)
class StoredQuestion:
    """A question as the run stores it, so that the run can be read without its benchmark."""

    id: str
    user: str
    text: str
    options: tuple[str, ...]
    gold: str | None
    kind: str
    labels: Mapping[str, frozenset[str]]
    """Label source → the records that carry the answer."""
    detail: str = ""
    """The benchmark's own name for its kind."""


@dataclass(frozen=True, slots=True)
class StoredTrace:
    """The stored results of a route, apart from its exposures."""

    arrivals: tuple[int, ...]
    """Source positions in arrival order."""
    retained: frozenset[str]
    signature: str | None
    events: tuple[tuple[str, str, str, int], ...]
    """(kind, record, arriving record, number of the arrival)."""
    stand_ins: dict[str, str]
    counts: dict[str, int] = field(default_factory=dict)
    """How often something happened while the memory was built."""


@dataclass(frozen=True, slots=True)
class StoredExposure:
    """What one question was shown on one route."""

    sources: frozenset[str]
    """V."""
    context_sha256: str
    blocks: tuple[tuple[str, str, frozenset[str]], ...]
    """(kind, text, source ids)."""


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """One record of a pool."""

    id: str
    timestamp: str | None
    text_sha256: str


@dataclass(frozen=True, slots=True)
class StoredContext:
    """A compiled context, its texts by reference."""

    sources: tuple[str, ...]
    sha256: str
    chars: int
    blocks: tuple[tuple[str, str, tuple[str, ...]], ...]
    """(kind, SHA-256 of its text, source ids)."""


def question_row(question: Question) -> Sequence[Any]:
    """Write a question for the store."""
    labels = {source: sorted(ids) for source, ids in question.labels.items()}
    return (
        question.id,
        question.user,
        question.text,
        json.dumps(question.options),
        question.gold,
        question.kind,
        question.detail,
        json.dumps(labels),
    )


def read_question(row: Sequence[Any]) -> StoredQuestion:
    """Read what `question_row` wrote."""
    id, user, text, options, gold, kind, detail, labels = row
    supported = {source: frozenset(ids) for source, ids in json.loads(labels).items()}
    return StoredQuestion(
        id, user, text, tuple(json.loads(options)), gold, kind or "", supported, detail or ""
    )


_MOST_REASONS = 5


@dataclass(frozen=True, slots=True)
class Shortfall:
    """The answers and routes that a run lacks, and why."""

    answers: int = 0
    routes: int = 0
    reasons: tuple[str, ...] = ()
    """The most frequent reasons, each with its number."""

    @classmethod
    def count(cls, answers: Sequence[str] = (), routes: Sequence[str] = ()) -> Shortfall:
        """Count missing answers and routes, given the reason for each."""
        reasons = (*_count_reasons(answers, "answer"), *_count_reasons(routes, "route"))
        return cls(len(answers), len(routes), reasons)

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> Shortfall | None:
        """Read what is missing from a finished run; None if its manifest does not list it."""
        stored = manifest.get("missing")
        if not isinstance(stored, Mapping):
            return None
        answers, routes = (_number(stored.get(name)) for name in ("answers", "routes"))
        return cls(answers, routes, tuple(map(str, stored.get("reasons") or ())))

    def to_manifest(self) -> Mapping[str, Any]:
        """Write the entry of the manifest."""
        return {"answers": self.answers, "routes": self.routes, "reasons": list(self.reasons)}

    @property
    def total(self) -> int:
        """Count answers and routes together."""
        return self.answers + self.routes

    def __add__(self, addend: Shortfall) -> Shortfall:
        reasons = tuple(dict.fromkeys((*self.reasons, *addend.reasons)))
        return Shortfall(self.answers + addend.answers, self.routes + addend.routes, reasons)

    def __bool__(self) -> bool:
        return self.total > 0

    @property
    def summary(self) -> str:
        """How much is missing, without the reasons."""
        parts = [
            pluralise(number, name)
            for number, name in ((self.answers, "answer"), (self.routes, "route"))
            if number
        ]
        return f"{' and '.join(parts)} {'is' if self.total == 1 else 'are'} missing"

    def __str__(self) -> str:
        return self.summary + (f" ({'; '.join(self.reasons)})" if self.reasons else "")


def _count_reasons(reasons: Iterable[str], noun: str) -> list[str]:
    counts = Counter(reasons).most_common(_MOST_REASONS)
    return [f"{pluralise(number, noun)}: {reason}" for reason, number in counts]


def _number(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def explain_shard(shard: str) -> str:
    """Explain that the numbers of a run are those of one shard."""
    return f"These numbers are those of shard {shard} alone; `merge` gives those of all shards"
