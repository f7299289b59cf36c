"""Values by question: what the estimates over all questions are the means of."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = [
    "Column",
    "QuestionValues",
    "UnitValues",
    "read_units",
    "read_values",
    "unit_rows",
    "value_rows",
]


class Column(NamedTuple):
    """Which number this is, before it is a row: all of its names but the stratum."""

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
"""User → question → value; a question to which it does not apply is not there."""


@dataclass(frozen=True, slots=True)
class UnitValues:
    """What one unit adds to an estimate."""

    user: str
    total: float
    """The sum of its values."""
    number: int
    """How many they are."""
    questions: Mapping[str, float] = field(default_factory=dict)
    """The values by question; none where the unit counts as a whole."""

    @property
    def mean(self) -> float:
        """The unit's mean."""
        return self.total / self.number


NAMES = tuple(name for name in Column._fields if name != "quantity")
"""What the store keeps beside the user; the quantities share a row."""


def value_rows(user: str, values: Mapping[Column, Sequence[float | None]]) -> list[Sequence[str]]:
    """Write one unit's values, given in the order of the question ids, for the store.

    A quantity has this list, or the one value that all questions have.
    """
    shared: dict[tuple[str, ...], dict[str, Sequence[float | None] | float | None]] = {}
    for column, found in values.items():
        names = (column.experiment, *column[2:])
        first = found[0]
        same = first is not None and found.count(first) == len(found)
        shared.setdefault(names, {})[column.quantity] = first if same else found
    return [(*names, user, json.dumps(quantities)) for names, quantities in shared.items()]


def read_values(
    rows: Iterable[Sequence[str]], questions: Mapping[str, Sequence[str]]
) -> dict[Column, QuestionValues]:
    """Read what `value_rows` wrote, given each user's question ids."""
    found: dict[Column, QuestionValues] = {}
    for *names, user, written in rows:
        ids = sorted(questions[user])
        for quantity, values in json.loads(written).items():
            listed = values if isinstance(values, list) else [values] * len(ids)
            column = Column(quantity=quantity, **dict(zip(NAMES, names, strict=True)))
            found.setdefault(column, {})[user] = {
                question: value
                for question, value in zip(ids, listed, strict=True)
                if value is not None
            }
    return found


def unit_rows(values: Mapping[Column, UnitValues], *, interface: str = "") -> list[Sequence[str]]:
    """Write what one unit adds to estimates that are no means of one value per question."""
    shared: dict[tuple[str, ...], dict[str, list[Any]]] = {}
    for column, one in values.items():
        names = (column.experiment, *column[2:], one.user)
        written = [one.total, one.number, *([dict(one.questions)] if one.questions else [])]
        shared.setdefault(names, {})[column.quantity] = written
    return [(interface, *names, json.dumps(written)) for names, written in shared.items()]


def read_units(rows: Iterable[Sequence[str]]) -> dict[tuple[str, Column], list[UnitValues]]:
    """Read what `unit_rows` wrote, by interface and column."""
    found: dict[tuple[str, Column], list[UnitValues]] = {}
    for interface, *names, user, written in rows:
        for quantity, values in json.loads(written).items():
            column = Column(quantity=quantity, **dict(zip(NAMES, names, strict=True)))
            found.setdefault((interface, column), []).append(UnitValues(user, *values))
    return found
