"""What the answers under the four conditions are worth: accuracies, contrasts and counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from routeprism.experiments._asking import Answers
from routeprism.experiments._conditions import SWAP, Conditions
from routeprism.experiments._rows import Column, Key
from routeprism.experiments._strata import Strata, Values, enter
from routeprism.measures import Sums, cross

__all__ = ["CONTRASTS", "enter_conditions"]

CONTRASTS = (
    ("restored", "absent"),
    ("restored", "replacement"),
    ("restored", "present"),
    ("present", "absent"),
    ("replacement", "absent"),
)
"""The paired differences of accuracy, first minus second."""


def enter_conditions(
    strata: Strata,
    column: Column,
    asked: Sequence[Sequence[Conditions]],
    fillers: int,
    answers: Answers,
    sums: Sums[Key],
) -> None:
    """Enter one design's accuracies, their contrasts, disagreement and prompt identity."""
    accuracy: dict[str, list[float | None]] = {}
    names = list(dict.fromkeys(name for ones in asked for one in ones for name in one.names))
    for name in names:
        accuracy[name] = [
            _over_fillers(ones, fillers, partial(_accuracy, name, answers)) for ones in asked
        ]
        enter(sums, strata, column._replace(quantity=f"accuracy.{name}"), accuracy[name])
    for first, second in CONTRASTS:
        if first in accuracy and second in accuracy:
            values: Values = [
                None if a is None or b is None else a - b
                for a, b in zip(accuracy[first], accuracy[second], strict=True)
            ]
            enter(sums, strata, column._replace(quantity=f"{first}-{second}"), values)
            if column.arm in ("", SWAP):
                differ = [
                    _over_fillers(ones, fillers, partial(_disagreement, first, second, answers))
                    for ones in asked
                ]
                arm = ":".join(filter(None, (column.arm, f"{first}-{second}")))
                enter(sums, strata, column._replace(quantity="H", arm=arm), differ)
    if not column.arm:
        _enter_counts(strata, column, asked, names, answers, sums)


def _enter_counts(
    strata: Strata,
    column: Column,
    asked: Sequence[Sequence[Conditions]],
    names: Sequence[str],
    answers: Answers,
    sums: Sums[Key],
) -> None:
    """Count equal prompts, and the answers of each condition: right ones, and beside others."""
    both = column._replace(arm="present-restored")
    made = [[one for one in ones if one.prompts] for ones in asked]
    pairs: Values = [float(len(ones)) if ones else None for ones in made]
    enter(sums, strata, both._replace(quantity="count.prompt_pairs"), pairs)
    identical: Values = [float(sum(map(_identical, ones))) if ones else None for ones in made]
    enter(sums, strata, both._replace(quantity="count.identical_prompts"), identical)
    for name in names:
        for count, read in (
            (f"right.{name}", partial(_number_right, name, answers)),
            (f"same_as_present.{name}", partial(_number_same, name, "present", True, answers)),
            (f"changed_from_absent.{name}", partial(_number_same, name, "absent", False, answers)),
        ):
            known = [[n for one in ones if (n := read(one)) is not None] for ones in asked]
            numbers: Values = [float(sum(several)) if several else None for several in known]
            enter(sums, strata, column._replace(quantity=f"count.{count}"), numbers)


def _over_fillers(
    ones: Sequence[Conditions], fillers: int, read: Callable[[Conditions], float | None]
) -> float | None:
    """Average a reading over the fillers; one that is missing makes it not applicable."""
    known = [value for one in ones if (value := read(one)) is not None]
    return sum(known) / len(known) if known and len(known) == fillers else None


def _accuracy(name: str, answers: Answers, one: Conditions) -> float | None:
    right = answers.right.get(one)
    if not right or name not in one.names:
        return None
    verdicts = right[one.names.index(name)]
    return sum(verdicts) / len(verdicts)


def _disagreement(first: str, second: str, answers: Answers, one: Conditions) -> float | None:
    said = answers.said.get(one)
    if said is None or not one.question.options:
        return None
    return cross(said[one.names.index(first)], said[one.names.index(second)])


def _identical(one: Conditions) -> bool:
    prompts = dict(one.sides)
    return prompts["present"].sha256 == prompts["restored"].sha256


def _number_right(name: str, answers: Answers, one: Conditions) -> int | None:
    right = answers.right.get(one)
    return sum(right[one.names.index(name)]) if right else None


def _number_same(
    name: str, other: str, same: bool, answers: Answers, one: Conditions
) -> int | None:
    """Count a condition's answers that are, or are not, those of another, draw by draw."""
    said = answers.said.get(one)
    if said is None or not one.question.options:
        return None
    draws = zip(said[one.names.index(name)], said[one.names.index(other)], strict=True)
    return sum((first == second) is same for first, second in draws)
