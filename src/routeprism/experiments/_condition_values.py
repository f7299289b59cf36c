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
        target = column._replace(quantity=quantity)
        enter(sums, strata, target, values)
        enter(sums, strata, target._replace(mask=DISTINCT), distinct_options(case, values))

    accuracy: dict[str, list[float | None]] = {}
    names = list(
        dict.fromkeys(
            name for group in comparisons for comparison in group for name in comparison.names
        )
    )
    for name in names:
        accuracy[name] = [
            _over_fillers(group, fillers, partial(_accuracy, name, answers))
            for group in comparisons
        ]
        put(f"accuracy.{name}", accuracy[name])
        if column.arm == UPDATE:
            outdated = partial(_outdated, name, answers)
            put(
                f"outdated_answer.{name}",
                [_over_fillers(group, fillers, outdated) for group in comparisons],
            )
    for first, second in CONTRASTS:
        if first not in accuracy or second not in accuracy:
            continue
        put(f"{first}-{second}", _subtract(accuracy[first], accuracy[second]))
        if column.arm in ("", SWAP, PRESENCE, UPDATE):
            differ = [
                _over_fillers(group, fillers, partial(_disagreement, first, second, answers))
                for group in comparisons
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
    prompted = [[comparison for comparison in group if comparison.prompts] for group in comparisons]
    pairs: Values = [float(len(group)) if group else None for group in prompted]
    enter(sums, strata, both._replace(quantity="count.prompt_pairs"), pairs)
    identical: Values = [
        float(sum(map(_identical, group))) if group else None for group in prompted
    ]
    enter(sums, strata, both._replace(quantity="count.identical_prompts"), identical)
    for name in names:
        for count, measure in (
            (f"right.{name}", partial(_number_right, name, answers)),
            (f"same_as_present.{name}", partial(_number_same, name, "present", True, answers)),
            (f"changed_from_absent.{name}", partial(_number_same, name, "absent", False, answers)),
        ):
            counted_numbers = [
                [n for comparison in group if (n := measure(comparison)) is not None]
                for group in comparisons
            ]
            numbers: Values = [
                float(sum(several)) if several else None for several in counted_numbers
            ]
            enter(sums, strata, column._replace(quantity=f"count.{count}"), numbers)


def _over_fillers(
    comparisons: Sequence[Comparison], fillers: int, measure: Callable[[Comparison], float | None]
) -> float | None:
    """Average a reading over the fillers; one that is missing makes it not applicable."""
    values = [value for comparison in comparisons if (value := measure(comparison)) is not None]
    return sum(values) / len(values) if values and len(values) == fillers else None


def _accuracy(name: str, answers: Answers, comparison: Comparison) -> float | None:
    right = answers.right.get(comparison)
    if not right or name not in comparison.names:
        return None
    verdicts = right[comparison.names.index(name)]
    return sum(verdicts) / len(verdicts)


def _outdated(name: str, answers: Answers, comparison: Comparison) -> float | None:
    """Return the share of a condition's answers that were once right."""
    symbols, question = answers.symbols.get(comparison), comparison.question
    if symbols is None or not question.outdated:
        return None
    draws = symbols[comparison.names.index(name)]
    return sum(map(question.is_outdated, draws)) / len(draws)


def _disagreement(
    first: str, second: str, answers: Answers, comparison: Comparison
) -> float | None:
    symbols = answers.symbols.get(comparison)
    if symbols is None or not comparison.question.options:
        return None
    return cross(symbols[comparison.names.index(first)], symbols[comparison.names.index(second)])


def _identical(comparison: Comparison) -> bool:
    prompts = dict(comparison.sides)
    return prompts["present"].sha256 == prompts["restored"].sha256


def _number_right(name: str, answers: Answers, comparison: Comparison) -> int | None:
    right = answers.right.get(comparison)
    return sum(right[comparison.names.index(name)]) if right else None


def _number_same(
    name: str, alternative: str, same: bool, answers: Answers, comparison: Comparison
) -> int | None:
    """Count a condition's answers that are, or are not, those of another, draw by draw."""
    symbols = answers.symbols.get(comparison)
    if symbols is None or not comparison.question.options:
        return None
    draws = zip(
        symbols[comparison.names.index(name)],
        symbols[comparison.names.index(alternative)],
        strict=True,
    )
    return sum((first == second) is same for first, second in draws)
