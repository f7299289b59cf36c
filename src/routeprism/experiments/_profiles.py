"""Profiles: every answer coordinate, question by question, for each model, batch and filler."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TypeVar

from routeprism.experiments._asking import Asking
from routeprism.experiments._rows import Column
from routeprism.experiments._strata import Values
from routeprism.measures import ANSWER_COORDINATES, Draws
from routeprism.prompts import Filler
from routeprism.records import Case

__all__ = ["averaged", "judge_of", "profile", "templates"]

Answered = TypeVar("Answered")
Item = TypeVar("Item", bound=Hashable)


def judge_of(asking: Asking, case: Case) -> str:
    """Name the judge where a case has free text to judge."""
    free_text = any(not q.options and q.gold is not None for q in case.questions)
    return asking.judge.name if free_text else ""


def templates(
    experiment: str, asking: Asking, case: Case, found: Mapping[tuple[str, str], Answered]
) -> Iterator[tuple[Column, tuple[Filler, ...], Answered]]:
    """Give a column to fill for every model, batch and filler, and over all fillers."""
    fillers = asking.manner.fillers
    used: list[tuple[Filler, ...]] = [(filler,) for filler in fillers]
    if len(used) > 1:
        used.append(fillers)
    for (model, batch), answers in found.items():
        for several in used:
            column = Column(
                experiment,
                "",
                model=model,
                judge=judge_of(asking, case),
                prompt_control=asking.manner.control,
                filler="+".join(several),
                batch=batch,
            )
            yield column, several, answers


def profile(asked: Sequence[Sequence[Item]], draws: Mapping[Item, Draws]) -> dict[str, Values]:
    """Give every coordinate's value for each question, averaged over its fillers."""
    values: dict[str, Values] = {}
    for coordinate in ANSWER_COORDINATES:
        column: list[float | None] = []
        for items in asked:
            found = (draws.get(item) for item in items)
            column.append(averaged([None if d is None else coordinate.value(d) for d in found]))
        values[coordinate.name] = column
    return values


def averaged(values: Sequence[float | None]) -> float | None:
    """Average; one value that is missing makes the average not applicable."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None
