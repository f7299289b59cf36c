"""The numbers behind the estimates, unit by unit: what charts show as points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from routeprism.runs import Column, Stored

__all__ = ["Points", "unit_values"]

_WANTED = ("J", "H", "Delta", "accuracy.")
_EXPERIMENTS = ("routes", "restoration")


class Points(NamedTuple):
    """One quantity on one pair of routes."""

    quantity: str
    policy: str
    schedule: str
    model: str


def unit_values(stored: Stored) -> dict[Points, Mapping[str, float]]:
    """Give each unit's mean over its questions, for what is shown unit by unit.

    Of several fillers the average over all of them stays, and of several batches the first.
    """
    chosen: dict[Points, Column] = {}
    found: dict[Points, Mapping[str, float]] = {}
    for experiment in _EXPERIMENTS:
        for column, users in stored.per_question(experiment=experiment).items():
            if column.arm or column.mask or not column.quantity.startswith(_WANTED):
                continue
            name = Points(column.quantity, column.policy, column.schedule, column.model)
            before = chosen.get(name)
            if before is not None and (
                column.batch > before.batch or len(column.filler) < len(before.filler)
            ):
                continue
            chosen[name] = column
            found[name] = {
                user: sum(values.values()) / len(values) for user, values in users.items() if values
            }
    return found
