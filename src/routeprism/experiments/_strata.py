"""How the questions of a case are cut, and their values added up."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from routeprism.experiments._rows import Column, Key
from routeprism.measures import Sums
from routeprism.records import Case

DISTINCT = "distinct-options"
"""The mask of questions no two of whose options read the same (Appendix C.6)."""


Values = Sequence[float | None]
"""A column's value for each question of a case; None is not applicable."""


Masks = Mapping[str, Collection[str]]
"""Named sets of question ids; each is reported, and also the remaining questions."""


@dataclass(frozen=True, slots=True)
class Strata:
    """How the questions of a case are cut."""

    questions: tuple[str, ...]
    """Their ids, in the case's order."""
    places: Mapping[tuple[str, str], Sequence[int]]
    """(stratum, mask) → the places of its questions in the case."""


def strata_of(case: Case, masks: Masks) -> Strata:
    """Return the places of all questions, of each kind, and of each mask."""
    strata: dict[tuple[str, str], list[int]] = {("all", ""): list(range(len(case.questions)))}
    for at, question in enumerate(case.questions):
        if question.kind:
            strata.setdefault((question.kind, ""), []).append(at)
        for name, ids in masks.items():
            stratum = name if question.id in ids else f"outside-{name}"
            strata.setdefault(("all", stratum), []).append(at)
    return Strata(tuple(question.id for question in case.questions), strata)


def anchors_of(questions: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Name, of questions given as (user, id), the one with the smallest id of each user (D.9)."""
    anchors: dict[str, str] = {}
    for user, question in questions:
        anchors[user] = min(question, anchors.get(user, question))
    return frozenset(anchors.values())


def enter(sums: Sums[Key], strata: Strata, column: Column, values: Values) -> None:
    """Add a column's values up, over all questions, over each kind and within each mask.

    A column that is a subset of the questions already keeps its own name behind the mask's:
    `primary:fixed-source` are those of the mask `primary` that are `fixed-source`.
    """
    for (stratum, mask), places in strata.places.items():
        numbers = [value for at in places if (value := values[at]) is not None]
        if numbers:  # not applicable is never zero
            target = column._replace(mask=":".join(filter(None, (mask, column.mask))))
            sums_of_stratum = (float(sum(numbers)), len(numbers))
            whole = stratum == "all" and not mask
            sums[target, stratum] = (
                (*sums_of_stratum, (strata.questions, values)) if whole else sums_of_stratum
            )


@dataclass(frozen=True, slots=True)
class Sheet:
    """A column that values of a pool's questions are entered in, over all strata."""

    sums: Sums[Key]
    strata: Strata
    column: Column

    def at(self, **names: str) -> Sheet:
        """Return the sheet of a column with different names."""
        return Sheet(self.sums, self.strata, self.column._replace(**names))

    def put(self, quantity: str, values: Values, **names: str) -> None:
        """Add the values of a quantity."""
        target = self.column._replace(quantity=quantity, **names)
        enter(self.sums, self.strata, target, values)

    def put_all(self, profile: Mapping[str, Values]) -> None:
        """Add the values of several quantities."""
        for quantity, values in profile.items():
            self.put(quantity, values)

    def put_gaps(self, first: Mapping[str, Values], second: Mapping[str, Values]) -> None:
        """Add the first values minus the second ones, as `Gamma.` and the quantity."""
        for quantity, values in first.items():
            self.put(f"Gamma.{quantity}", signed([(1, values), (-1, second[quantity])]))


def enter_all(
    sums: Sums[Key],
    strata: Strata,
    columns: Sequence[Column],
    values: npt.NDArray[np.float64],
    *,
    keep: bool,
) -> None:
    """Do what `enter` does, for many columns at once; not applicable is not a number.

    The values themselves are handed on only where they are to be kept.
    """
    present = ~np.isnan(values)
    filled = np.where(present, values, 0.0)
    plain: list[list[float | None]] = []
    if keep:
        objects = values.astype(object)
        objects[~present] = None
        plain = objects.T.tolist()
    for (stratum, mask), places in strata.places.items():
        counts = present[places].sum(axis=0).tolist()
        totals = filled[places].sum(axis=0).tolist()
        whole = stratum == "all" and not mask
        by_question = [zip(repeat(strata.questions), plain)] if plain and whole else []
        entries: Iterator[Any] = zip(totals, counts, *by_question, strict=True)
        targets = [column._replace(mask=mask) for column in columns] if mask else columns
        items = zip(zip(targets, repeat(stratum)), entries, strict=True)
        sums.update(compress(items, counts))


def restrict(values: Values, members: Iterable[bool]) -> Values:
    """Leave out the values of questions that are no members."""
    return [value if member else None for value, member in zip(values, members, strict=True)]


def distinct_options(case: Case, values: Values) -> Values:
    """Leave out the questions two of whose options read the same."""
    return restrict(values, (not question.duplicate_options for question in case.questions))


def signed(sides: Sequence[tuple[int, Values]]) -> Values:
    """Take the signed sum per question; not applicable on one side is not applicable at all."""
    combined: list[float | None] = []
    for values in zip(*(column for _, column in sides), strict=True):
        numbers = [sign * v for (sign, _), v in zip(sides, values, strict=True) if v is not None]
        combined.append(sum(numbers) if len(numbers) == len(sides) else None)
    return combined
