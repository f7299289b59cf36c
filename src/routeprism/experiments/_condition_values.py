"""Values of the answers under the conditions of a restoration: accuracies, contrasts, counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from routeprism.answers import Comparison
from routeprism.experiments._collection import Answers
from routeprism.experiments._designs import PRESENCE, SWAP, UPDATE
from routeprism.experiments._rows import Column, Key
from routeprism.experiments._strata import DISTINCT, Strata, Values, distinct_options, enter
from routeprism.measures import Sums, cross
from routeprism.records import Case

__all__ = ["CONTRASTS", "enter_conditions"]

CONTRASTS = (
    ("restored", "absent"),
    ("restored", "replacement"),
    ("restored", "present"),
    ("present", "absent"),
    ("replacement", "absent"),
    ("both", "stale"),
    ("neither", "stale"),
    ("current", "stale"),
    ("current", "both"),
    ("current", "neither"),
)
"""The paired differences of accuracy, first minus second."""


def enter_conditions(
    case: Case,
    strata: Strata,
    column: Column,
    comparisons: Sequence[Sequence[Comparison]],
    fillers: int,
    answers: Answers,
    sums: Sums[Key],
) -> None:
    """Enter one design's accuracies, their contrasts, disagreement and prompt identity.

    Accuracies and contrasts are also entered without questions that have duplicate options (C.6).
    """

    def put(quantity: str, values: Values) -> None:
        named = column._replace(quantity=quantity)
        enter(sums, strata, named, values)
        enter(sums, strata, named._replace(mask=DISTINCT), distinct_options(case, values))

    accuracy: dict[str, list[float | None]] = {}
    names = list(dict.fromkeys(name for ones in comparisons for one in ones for name in one.names))
    for name in names:
        accuracy[name] = [
            _over_fillers(ones, fillers, partial(_accuracy, name, answers)) for ones in comparisons
        ]
        put(f"accuracy.{name}", accuracy[name])
        if column.arm == UPDATE:
            outdated = partial(_outdated, name, answers)
            put(
                f"outdated_answer.{name}",
                [_over_fillers(ones, fillers, outdated) for ones in comparisons],
            )
    for first, second in CONTRASTS:
        if first not in accuracy or second not in accuracy:
            continue
        put(f"{first}-{second}", _subtract(accuracy[first], accuracy[second]))
        if column.arm in ("", SWAP, PRESENCE, UPDATE):
            differ = [
                _over_fillers(ones, fillers, partial(_disagreement, first, second, answers))
                for ones in comparisons
            ]
            arm = ":".join(filter(None, (column.arm, f"{first}-{second}")))
            enter(sums, strata, column._replace(quantity="H", arm=arm), differ)
    if not column.arm:
        _enter_counts(strata, column, comparisons, names, answers, sums)


def _subtract(first: Values, second: Values) -> Values:
    return [None if a is None or b is None else a - b for a, b in zip(first, second, strict=True)]


def _enter_counts(
    strata: Strata,
    column: Column,
    comparisons: Sequence[Sequence[Comparison]],
    names: Sequence[str],
    answers: Answers,
    sums: Sums[Key],
) -> None:
    """Count equal prompts, and the answers of each condition: right ones, and beside others."""
    both = column._replace(arm="present-restored")
    made = [[one for one in ones if one.prompts] for ones in comparisons]
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
            known = [[n for one in ones if (n := read(one)) is not None] for ones in comparisons]
            numbers: Values = [float(sum(several)) if several else None for several in known]
            enter(sums, strata, column._replace(quantity=f"count.{count}"), numbers)


def _over_fillers(
    comparisons: Sequence[Comparison], fillers: int, read: Callable[[Comparison], float | None]
) -> float | None:
    """Average a reading over the fillers; one that is missing makes it not applicable."""
    known = [value for one in comparisons if (value := read(one)) is not None]
    return sum(known) / len(known) if known and len(known) == fillers else None


def _accuracy(name: str, answers: Answers, one: Comparison) -> float | None:
    right = answers.right.get(one)
    if not right or name not in one.names:
        return None
    verdicts = right[one.names.index(name)]
    return sum(verdicts) / len(verdicts)


def _outdated(name: str, answers: Answers, one: Comparison) -> float | None:
    """Give the share of a condition's answers that were once right."""
    symbols, outdated = answers.symbols.get(one), one.question.outdated
    if symbols is None or not outdated or not one.question.options:
        return None
    draws = symbols[one.names.index(name)]
    return sum(symbol in outdated for symbol in draws) / len(draws)


def _disagreement(first: str, second: str, answers: Answers, one: Comparison) -> float | None:
    symbols = answers.symbols.get(one)
    if symbols is None or not one.question.options:
        return None
    return cross(symbols[one.names.index(first)], symbols[one.names.index(second)])


def _identical(one: Comparison) -> bool:
    prompts = dict(one.sides)
    return prompts["present"].sha256 == prompts["restored"].sha256


def _number_right(name: str, answers: Answers, one: Comparison) -> int | None:
    right = answers.right.get(one)
    return sum(right[one.names.index(name)]) if right else None


def _number_same(
    name: str, other: str, same: bool, answers: Answers, one: Comparison
) -> int | None:
    """Count a condition's answers that are, or are not, those of another, draw by draw."""
    symbols = answers.symbols.get(one)
    if symbols is None or not one.question.options:
        return None
    draws = zip(symbols[one.names.index(name)], symbols[one.names.index(other)], strict=True)
    return sum((first == second) is same for first, second in draws)
