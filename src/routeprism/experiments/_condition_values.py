"""Values of the answers under the conditions of a restoration: accuracies, contrasts, counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from routeprism.answers import Comparison
from routeprism.experiments._collection import Answers
from routeprism.experiments._designs import PRESENCE, SWAP, UPDATE
from routeprism.experiments._strata import DISTINCT, Sheet, Values, distinct_options, signed
from routeprism.measures import cross
from routeprism.records import Case

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


Groups = Sequence[Sequence[Comparison]]
"""For each question its comparisons, one for each filler."""
Read = Callable[[Comparison], float | None]
"""Gives a number for one comparison; None if it does not apply."""


def enter_conditions(
    case: Case, sheet: Sheet, comparisons: Groups, fillers: int, answers: Answers
) -> None:
    """Enter one design's accuracies, their contrasts, disagreement and prompt identity.

    Accuracies and contrasts are also entered without questions that have duplicate options (C.6).
    """

    def average(read: Read) -> Values:
        """Average over the fillers; one that is missing makes it not applicable."""
        values = [[v for c in group if (v := read(c)) is not None] for group in comparisons]
        return [sum(v) / len(v) if v and len(v) == fillers else None for v in values]

    def put(quantity: str, values: Values) -> None:
        sheet.put(quantity, values)
        sheet.put(quantity, distinct_options(case, values), mask=DISTINCT)

    arm = sheet.column.arm
    accuracy: dict[str, Values] = {}
    names = list(dict.fromkeys(name for group in comparisons for c in group for name in c.names))
    for name in names:
        accuracy[name] = average(partial(_accuracy, answers, name))
        put(f"accuracy.{name}", accuracy[name])
        if arm == UPDATE:
            put(f"outdated_answer.{name}", average(partial(_outdated, answers, name)))
    for first, second in CONTRASTS:
        if first not in accuracy or second not in accuracy:
            continue
        put(f"{first}-{second}", signed([(1, accuracy[first]), (-1, accuracy[second])]))
        if arm in ("", SWAP, PRESENCE, UPDATE):
            differ = average(partial(_disagreement, answers, first, second))
            sheet.put("H", differ, arm=":".join(filter(None, (arm, f"{first}-{second}"))))
    if not arm:
        _enter_counts(sheet, comparisons, names, answers)


def _enter_counts(
    sheet: Sheet, comparisons: Groups, names: Sequence[str], answers: Answers
) -> None:
    """Count equal prompts, and the answers of each condition: right ones, and beside others."""

    def add_up(read: Read) -> Values:
        values = [[v for c in group if (v := read(c)) is not None] for group in comparisons]
        return [float(sum(numbers)) if numbers else None for numbers in values]

    both = sheet.at(arm="present-restored")
    both.put("count.prompt_pairs", add_up(lambda c: 1 if c.prompts else None))
    both.put("count.identical_prompts", add_up(lambda c: _identical(c) if c.prompts else None))
    for name in names:
        same, changed = (
            partial(_number_same, answers, name, beside, is_same)
            for beside, is_same in (("present", True), ("absent", False))
        )
        sheet.put(f"count.right.{name}", add_up(partial(_number_right, answers, name)))
        sheet.put(f"count.same_as_present.{name}", add_up(same))
        sheet.put(f"count.changed_from_absent.{name}", add_up(changed))


def _accuracy(answers: Answers, name: str, comparison: Comparison) -> float | None:
    right = answers.right.get(comparison)
    if not right or name not in comparison.names:
        return None
    verdicts = right[comparison.names.index(name)]
    return sum(verdicts) / len(verdicts)


def _outdated(answers: Answers, name: str, comparison: Comparison) -> float | None:
    """Return the share of a condition's answers that were once right."""
    symbols, question = answers.symbols.get(comparison), comparison.question
    if symbols is None or not question.outdated:
        return None
    draws = symbols[comparison.names.index(name)]
    return sum(map(question.is_outdated, draws)) / len(draws)


def _find_draws(
    answers: Answers, comparison: Comparison, names: Sequence[str]
) -> list[Sequence[str]] | None:
    """Return the answers of some conditions, where options make them comparable."""
    symbols = answers.symbols.get(comparison)
    if symbols is None or not comparison.question.options:
        return None
    return [symbols[comparison.names.index(name)] for name in names]


def _disagreement(
    answers: Answers, first: str, second: str, comparison: Comparison
) -> float | None:
    draws = _find_draws(answers, comparison, (first, second))
    return None if draws is None else cross(draws[0], draws[1])


def _identical(comparison: Comparison) -> bool:
    prompts = dict(comparison.sides)
    return prompts["present"].sha256 == prompts["restored"].sha256


def _number_right(answers: Answers, name: str, comparison: Comparison) -> int | None:
    right = answers.right.get(comparison)
    return sum(right[comparison.names.index(name)]) if right else None


def _number_same(
    answers: Answers, name: str, beside: str, is_same: bool, comparison: Comparison
) -> int | None:
    """Count a condition's answers that are, or are not, those of another, draw by draw."""
    draws = _find_draws(answers, comparison, (name, beside))
    if draws is None:
        return None
    return sum((first == second) is is_same for first, second in zip(*draws, strict=True))
