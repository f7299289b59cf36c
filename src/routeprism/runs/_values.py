"""Values by question: what the estimates over all questions are the means of."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

__all__ = ["Column", "QuestionValues", "read_values", "value_rows"]


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

NAMES = tuple(name for name in Column._fields if name != "quantity")
"""What the store keeps beside the user; the quantities share a row."""


def value_rows(
    user: str, questions: Sequence[str], values: Mapping[Column, Sequence[float | None]]
) -> list[Sequence[str]]:
    """Write one unit's values for the store, each list in the order of the question ids."""
    order = sorted(range(len(questions)), key=questions.__getitem__)
    shared: dict[tuple[str, ...], dict[str, list[float | None]]] = {}
    for column, found in values.items():
        names = tuple(getattr(column, name) for name in NAMES)
        shared.setdefault(names, {})[column.quantity] = [found[at] for at in order]
    return [(*names, user, json.dumps(quantities)) for names, quantities in shared.items()]


def read_values(
    rows: Iterable[Sequence[str]], questions: Mapping[str, Sequence[str]]
) -> dict[Column, QuestionValues]:
    """Read what `value_rows` wrote, given each user's question ids."""
    found: dict[Column, QuestionValues] = {}
    for *names, user, written in rows:
        for quantity, values in json.loads(written).items():
            column = Column(quantity=quantity, **dict(zip(NAMES, names, strict=True)))
            found.setdefault(column, {})[user] = {
                question: value
                for question, value in zip(sorted(questions[user]), values, strict=True)
                if value is not None
            }
    return found
