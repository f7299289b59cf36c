"""Whether a new version of a memory is better or worse, in total and against its own source order.

The total is what the memory shows in source order and in every other order that both runs have:
evidence, outdated values, anomalies. A repair that shows more in total may depend more on order,
and is no regression.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Literal

from routeprism.exhibits import Severity
from routeprism.judge import (
    INCONCLUSIVE,
    LEVELS,
    Repair,
    RepairOutcome,
    Verdict,
    list_effects,
    measure_outcome,
)
from routeprism.orders import describe_arrival
from routeprism.printing import join_names, pluralise
from routeprism.runs import Rows

__all__ = ["Change", "Outcome", "judge_change", "summarise_changes"]

Outcome = Literal["worse", "mixed", "inconclusive", "better", "same"]


@dataclass(frozen=True, slots=True)
class Change:
    """What a new version of a memory amounts to."""

    before: Verdict
    after: Verdict
    outcome: Outcome
    reason: str
    """Why, with counts; empty if nothing changed."""

    @property
    def title(self) -> str:
        """The outcome of one memory as a sentence."""
        return _TITLES[self.outcome][0]

    @property
    def severity(self) -> Severity:
        """The mark of the outcome; nothing inconclusive is good."""
        return _TITLES[self.outcome][1]

    def __str__(self) -> str:
        return f"{self.title}{f': {self.reason}' if self.reason else ''}"


_TITLES: Mapping[Outcome, tuple[str, Severity]] = {
    "worse": ("this change makes the memory worse", "problem"),
    "mixed": ("this change makes the memory better and worse", "problem"),
    "inconclusive": ("nothing can be concluded", "warning"),
    "better": ("this change makes the memory better", "good"),
    "same": ("no change was shown", "info"),
}
"""For each outcome the sentence on one memory, and its mark; the most severe first."""


def summarise_changes(changes: Sequence[Change], *, incomplete: bool = False) -> str:
    """Summarise a comparison in one sentence, which every output begins with."""
    state = " (incomplete)" if incomplete else ""
    if not changes:
        return f"nothing can be compared{state}"
    worst = min(changes, key=lambda change: list(_TITLES).index(change.outcome))
    reason = f": {worst.reason}" if worst.reason else ""
    if len(changes) == 1:
        return f"{worst.title}{state}{reason}"
    total = f"of {len(changes)} memories"
    numbers = Counter(change.outcome for change in changes)
    words: Mapping[Outcome, str] = {
        "worse": "worse",
        "mixed": "better and worse",
        "better": "better",
    }
    clauses = [
        f"this change makes {numbers[outcome]} {total} {word}"
        for outcome, word in words.items()
        if numbers[outcome]
    ]
    if numbers["inconclusive"]:
        clauses.append(f"nothing can be concluded about {numbers['inconclusive']} {total}")
    text = "; ".join(clauses) or worst.title
    return f"{text}{state}{f'. {worst.after.policy}{reason}' if reason else ''}"


def judge_change(
    before: Verdict,
    after: Verdict,
    rows: tuple[Rows, Rows],
    *,
    moved: tuple[int, int],
    answers: int,
    proven: Set[int],
) -> Change:
    """Judge a new version by its total outcome, then by its verdict, then by what order changes.

    `rows` are those of both runs. `moved` counts the questions that are no longer shown some
    evidence, and those that gain some. `answers` is -1 if right answers in source order are shown
    to fall, 1 if they are shown to rise. `proven` has the signs that a difference may have: in a
    deterministic memory both, where builds differ by chance those that an interval shows.
    """
    shared = list(filter(after.rows.__contains__, before.rows))
    old, new = (
        measure_outcome(Repair(verdict.policy, verdict.policy), own.where(schedule=shared))
        for verdict, own in zip((before, after), rows, strict=True)
    )
    total, order = _compare_outcomes(old, new, proven) or _compare_trials(before, after)
    steps = []
    if total or order:
        steps.append(_describe_totals(old, new, moved) or _describe_trials(before, after))
    first, second = (_restrict(verdict, shared) for verdict in (before, after))
    direction = total or LEVELS.index(first.level) - LEVELS.index(second.level) or order
    doubts = _list_doubts(before, after, shared)
    if doubts and (direction >= 0 or INCONCLUSIVE in (before.level, after.level)):
        return Change(before, after, "inconclusive", "; ".join([*doubts, *steps]))
    outcome = _choose_outcome(direction, answers, before, after)
    if first.level != second.level:
        steps.append(f"from “{first.label}” to “{second.label}”")
    if answers:
        steps.append(f"right answers in source order {_VERBS[answers]}")
    return Change(before, after, outcome, "; ".join(steps))


_VERBS = {-1: "fall", 1: "rise"}


def _count_failed(verdict: Verdict) -> tuple[int, int]:
    """Count the trials with overlapping writes that fail a promise, and all trials."""
    trials = [(promise.failed, promise.of) for promise in verdict.promises if promise.of]
    return sum(failed for failed, _ in trials), max((total for _, total in trials), default=0)


def _compare_trials(before: Verdict, after: Verdict) -> tuple[int, int]:
    """Compare versions of which only overlapping writes were tried."""
    old, new = _count_failed(before)[0], _count_failed(after)[0]
    return (old > new) - (old < new), 0


def _describe_trials(before: Verdict, after: Verdict) -> str:
    (old, first), (new, second) = map(_count_failed, (before, after))
    total = max(first, second)
    return f"{new} instead of {old} of {total} trials with overlapping writes fail a promise"


def _list_doubts(before: Verdict, after: Verdict, shared: Sequence[str]) -> list[str]:
    """List why nothing can be concluded about one of the versions or about both together."""
    doubts = [
        f"{version} version: {verdict.inconclusive}"
        for version, verdict in (("old", before), ("new", after))
        if verdict.inconclusive
    ]
    is_explained = doubts and not (before.rows and after.rows)
    if not (shared or is_explained):
        doubts.append("the two runs have no order of arrival in common")
    return doubts


def _choose_outcome(direction: int, answers: int, before: Verdict, after: Verdict) -> Outcome:
    """Combine the direction of the memory with that of its answers.

    Evidence does not outweigh a promise that fails in the new version alone.
    """
    if not (direction or answers):
        return "same"
    signs = {sign > 0 for sign in (direction, answers) if sign}
    if after.promises and not before.promises:
        signs.add(False)
    if len(signs) > 1:
        return "mixed"
    return "better" if True in signs else "worse"


def _compare_outcomes(
    old: RepairOutcome | None, new: RepairOutcome | None, proven: Set[int]
) -> tuple[int, int] | None:
    """Compare what is wrong in total, then what order still changes: 1 is better, -1 is worse."""
    if old is None or new is None:
        return None

    def compare(before: tuple[float, ...], after: tuple[float, ...]) -> int:
        sign = (before > after) - (before < after)
        return sign if sign in proven else 0

    return compare(old.rank[:1], new.rank[:1]), compare(old.rank[1:3], new.rank[1:3])


def _restrict(verdict: Verdict, schedules: Sequence[str]) -> Verdict:
    """Leave out the orders of a verdict that the other version was not tried under."""
    return replace(
        verdict,
        depths={name: depth for name, depth in verdict.depths.items() if name in schedules},
        rows={name: verdict.rows[name] for name in schedules},
        promises=tuple(p for p in verdict.promises if p.schedule in ("", *schedules)),
    )


def _describe_totals(
    before: RepairOutcome | None, after: RepairOutcome | None, moved: tuple[int, int]
) -> str:
    """Describe with counts what the new version shows instead, in total and by question."""
    if before is None or after is None:
        return ""
    orders = join_names([describe_arrival(name) for name in after.evidence]) or "all orders"
    text = f"it {join_names(list(list_effects(after, before)))}, on average over {orders}"
    lost, gained = moved
    losing = f"{pluralise(lost, 'question')} {'is' if lost == 1 else 'are'} no longer shown some"
    gaining = f"{pluralise(gained, 'question')} {'gains' if gained == 1 else 'gain'} evidence"
    if lost and gained:
        return f"{text} ({gaining}, and {losing})"
    if lost:
        return f"{text} ({losing} evidence, and none gains any)"
    return f"{text} ({gaining}, and none loses any)" if gained else text
