"""What changed between two versions of a memory on the same benchmark, question by question."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from routeprism.errors import RunError, SpecError, nearest
from routeprism.experiments._sentences import said_number
from routeprism.measures import (
    RESAMPLES,
    Estimate,
    Interval,
    Sums,
    Tally,
    chosen_interval,
    limits_said,
)
from routeprism.orders import FORWARD
from routeprism.runs import Column, QuestionValues, Stored, StoredQuestion

__all__ = [
    "Comparison",
    "Difference",
    "SupportChange",
    "better",
    "compare_runs",
    "finished",
    "paired",
    "said_experiment",
    "said_pair",
]

Pairs = Sequence[tuple[str, str]]
"""(policy of the first run, policy of the second)."""

_SAME = ("benchmark", "fingerprint", "kinds", "labels", "unit", "weighting")
"""What two runs must share for their questions to be the same questions."""
_HIGHER = ("J", "J_T", "accuracy.", "recall.", "all_covered.", "overlap.", "support_kept.")
_LOWER = ("_changed", "H", "H_eq", "H_cross", "D_res", "D_star", "D_correct")
_PLAIN = ("routes", "retention", "restoration")
"""Experiments whose quantities are told apart by their names alone."""
_COUNTS = ("count.", "miss.", "extra.")


@dataclass(frozen=True, slots=True)
class Difference:
    """One quantity in both runs, and its difference, second minus first."""

    column: Column
    """Its names; the policy is the second run's."""
    policy_before: str
    before: float
    """The mean in the first run, over the questions that both have."""
    after: float
    difference: Estimate
    unit: str
    flags: str
    """`synthetic` and `embedded`, as in the estimates table."""


@dataclass(frozen=True, slots=True)
class SupportChange:
    """Support that one version shows a question on a route and the other does not."""

    question: str
    user: str
    text: str
    policy_before: str
    policy_after: str
    schedule: str
    lost: tuple[str, ...]
    """Records that carry the answer, shown by the first version and no longer by the second."""
    kept: tuple[str, ...]
    """… shown by the second and not by the first."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What changed from the first run to the second."""

    benchmark: str
    first: str
    second: str
    pairs: tuple[tuple[str, str], ...]
    labels: str
    """The label source that support is read from; empty for none."""
    differences: tuple[Difference, ...]
    support: tuple[SupportChange, ...]
    sentences: tuple[str, ...]
    notes: tuple[str, ...] = ()
    limits: str = ""
    """How the 95% limits of the differences were read, in words."""


def better(quantity: str) -> int:
    """Say which way is good: 1 for more, -1 for less, 0 where neither is."""
    if quantity in _HIGHER or quantity.startswith(tuple(n for n in _HIGHER if n.endswith("."))):
        return 1
    return -1 if quantity in _LOWER or quantity.endswith("_changed") else 0


def compare_runs(first: Path, second: Path, pairs: Pairs = ()) -> Comparison:
    """Compare two runs of the same benchmark; policies are matched by name unless paired here."""
    with Stored(first) as before, Stored(second) as after:
        one, other = finished(before, first), finished(after, second)
        _refuse_unlike(first, second, one, other)
        matched, notes = _matched(one["policies"], other["policies"], pairs)
        if _interval(one) != _interval(other):
            notes.append(
                f"the first run has {_interval(one)} limits, the second {_interval(other)} ones; "
                f"differences have the second's"
            )
        values = before.per_question(), after.per_question()
        if not values[0] or not values[1]:
            without = first if not values[0] else second
            raise RunError(
                f"{without} keeps no values per question; run its command again with this version"
            )
        embedded = {
            name
            for row in (*before.estimates(), *after.estimates())
            if "embedded" in row.flags.split(";")
            for name in (row.model, row.judge)
        }
        differences = _differences(*values, matched, other, embedded - {""})
        support = _support(before, after, matched, one, other)
    return Comparison(
        other["benchmark"],
        str(first),
        str(second),
        tuple(matched),
        other["labels"],
        tuple(differences),
        tuple(support),
        _sentences(differences, support, matched, bool(other["labels"])),
        tuple(notes),
        limits_said(_interval(other), ""),
    )


def finished(stored: Stored, directory: Path) -> dict[str, Any]:
    """Give a run's configuration, or say that it has not come to its end."""
    manifest = stored.manifest()
    if manifest.get("status") != "complete":
        raise RunError(
            f"{directory} is not finished; the same command with --run {directory} goes on with it"
        )
    configuration: dict[str, Any] = manifest["configuration"]
    return configuration


def paired(
    before: QuestionValues, after: QuestionValues, tally_as: str = "unit"
) -> tuple[float, float, list[tuple[str, list[float]]]] | None:
    """Give both means over the questions that both have, and the differences by user."""
    shared: list[tuple[str, list[float]]] = []
    sides: list[Tally[str]] = [_tally(tally_as), _tally(tally_as)]
    for user in sorted(before.keys() & after.keys()):
        ids = sorted(before[user].keys() & after[user].keys())
        if not ids:
            continue
        for tally, values in zip(sides, (before, after), strict=True):
            tally.append({"": (sum(values[user][id] for id in ids), len(ids))})
        shared.append((user, [after[user][id] - before[user][id] for id in ids]))
    if not shared:
        return None
    one, other = (tally.mean_of("") for tally in sides)
    return one, other, shared


def _interval(configuration: Mapping[str, Any]) -> Interval:
    """Give how a run's limits were read; before it was written down there was one way."""
    return chosen_interval(configuration.get("interval"), "percentile")


def _tally(weighting: str) -> Tally[Any]:
    return Tally("question" if weighting == "question" else "unit")


def _refuse_unlike(
    first: Path, second: Path, one: Mapping[str, Any], other: Mapping[str, Any]
) -> None:
    unlike = [name for name in _SAME if one.get(name) != other.get(name)]
    if unlike:
        told = "\n".join(
            f"  {name}: {json.dumps(one.get(name))} and {json.dumps(other.get(name))}"
            for name in unlike
        )
        raise SpecError(
            f"{first} and {second} cannot be compared, their questions are not the same:\n{told}"
        )


def _matched(
    first: Sequence[str], second: Sequence[str], pairs: Pairs
) -> tuple[list[tuple[str, str]], list[str]]:
    for policy, known, which in (
        *((one, first, "first") for one, _ in pairs),
        *((other, second, "second") for _, other in pairs),
    ):
        if policy not in known:
            raise SpecError(f"the {which} run has no policy '{policy}'. {nearest(policy, known)}")
    if pairs:
        return list(pairs), []
    same = [(name, name) for name in first if name in second]
    if not same and len(first) == len(second) == 1:
        return [(first[0], second[0])], []
    if not same:
        raise SpecError(
            f"no policy is in both runs (first: {', '.join(first)}; second: {', '.join(second)}); "
            f"say --policy-a NAME --policy-b NAME"
        )
    left = [name for name in (*first, *second) if (name, name) not in same]
    notes = [f"only one of the runs has {', '.join(left)}"] if left else []
    return same, notes


def _differences(
    before: Mapping[Column, QuestionValues],
    after: Mapping[Column, QuestionValues],
    pairs: Pairs,
    configuration: Mapping[str, Any],
    embedded: Set[str],
) -> list[Difference]:
    """Take every quantity's difference per question; all are resampled together."""
    units: dict[str, Sums[tuple[Column, str]]] = {}
    sides: dict[tuple[Column, str], tuple[float, float]] = {}
    weighting = str(configuration["weighting"])
    for one, other in pairs:
        for column, values in after.items():
            earlier = before.get(column._replace(policy=one))
            counted = column.quantity.startswith(_COUNTS)
            if column.policy != other or earlier is None or counted:
                continue
            found = paired(earlier, values, weighting)
            if found is None:
                continue
            sides[column, one] = found[:2]
            for user, changes in found[2]:
                units.setdefault(user, {})[column, one] = (sum(changes), len(changes))
    tally: Tally[tuple[Column, str]] = _tally(weighting)
    for user in sorted(units):
        tally.append(units[user])
    seed, resamples = configuration.get("seed", 0), configuration.get("resamples", RESAMPLES)
    estimates = tally.estimates(seed=seed, resamples=resamples, interval=_interval(configuration))
    marks = ["synthetic"] if configuration.get("synthetic") else []
    return [
        Difference(
            column,
            one,
            *sides[column, one],
            estimates[column, one],
            configuration["unit"],
            ";".join([*marks, *(["embedded"] if {column.model, column.judge} & embedded else [])]),
        )
        for column, one in sides
    ]


def _support(
    before: Stored,
    after: Stored,
    pairs: Pairs,
    one: Mapping[str, Any],
    other: Mapping[str, Any],
) -> list[SupportChange]:
    labels = other["labels"]
    if not labels:
        return []
    questions = after.questions()
    interfaces = [
        dict(zip(run["policies"], run["interfaces"], strict=True)) for run in (one, other)
    ]
    shared = [name for name in other["schedules"] if name in one["schedules"]]
    changes: list[SupportChange] = []
    for first, second in pairs:
        for schedule in (FORWARD.name, *shared):
            earlier = before.sources(first, interfaces[0][first], schedule)
            later = after.sources(second, interfaces[1][second], schedule)
            for question in questions.values():
                support = question.labels.get(labels, frozenset())
                shown = [side.get(question.id, frozenset()) & support for side in (earlier, later)]
                if shown[0] != shown[1]:
                    changes.append(_change(question, first, second, schedule, *shown))
    return changes


def _change(
    question: StoredQuestion,
    first: str,
    second: str,
    schedule: str,
    before: frozenset[str],
    after: frozenset[str],
) -> SupportChange:
    return SupportChange(
        question.id,
        question.user,
        question.text,
        first,
        second,
        schedule,
        tuple(sorted(before - after)),
        tuple(sorted(after - before)),
    )


_TOLD = ("J", "recall.exposed.route", "accuracy.route", "restored-absent")


def _sentences(
    differences: Sequence[Difference],
    support: Sequence[SupportChange],
    pairs: Pairs,
    labelled: bool,
) -> tuple[str, ...]:
    """Say for each policy and schedule what changed, then what became of the support."""
    said = []
    for one in differences:
        if one.column.quantity in _TOLD and not one.column.arm and not one.column.mask:
            said.append(f"{_who(one)}: {tell(one)}")
    if not labelled:
        return (*said, "The benchmark has no support labels: nothing is said about support.")
    counted: dict[tuple[str, str, str], list[int]] = {}
    for change in support:
        counts = counted.setdefault(
            (change.policy_before, change.policy_after, change.schedule), [0, 0]
        )
        counts[0] += bool(change.lost)
        counts[1] += bool(change.kept)
    for (first, second, schedule), (lost, kept) in counted.items():
        name = second if first == second else f"{first} → {second}"
        said.append(
            f"{name}, {schedule}: support is newly lost for {said_number(lost, 'question')}, "
            f"newly kept for {said_number(kept, 'question')}"
        )
    if not counted:
        said.append("No question lost or gained support.")
    return tuple(said)


def tell(one: Difference) -> str:
    """Say a difference with its interval, as far as that supports it."""
    found, name = one.difference, one.column.quantity
    number = f"{found.value:+.3f}"
    if found.lower is not None and found.upper is not None:
        number += f" [{found.lower:+.3f}, {found.upper:+.3f}]"
    ends = f"{one.before:.3f} before, {one.after:.3f} after"
    size = f"{said_number(found.queries, 'question')}, {said_number(found.units, one.unit)}"
    if found.value == 0 and (found.lower, found.upper) in ((0, 0), (None, None)):
        return f"{name} is the same, {one.after:.3f} ({size})"
    if found.lower is None or found.upper is None or found.lower <= 0 <= found.upper:
        return f"no change of {name} is shown: {number}, {ends} ({size})"
    verdict = {1: "better", -1: "worse", 0: "changed"}[
        better(name) * (1 if found.value > 0 else -1)
    ]
    return f"{name} is {verdict} by {number}, {ends} ({size})"


def said_experiment(one: Difference) -> str:
    """Name the experiment if others have quantities of the same names."""
    return "" if one.column.experiment in _PLAIN else one.column.experiment


def said_pair(one: Difference) -> str:
    """Name the policies and the schedule, and the experiment where it has to be told."""
    column = one.column
    name = column.policy
    if one.policy_before != name:
        name = f"{one.policy_before} → {name}"
    parts = [name, column.schedule, said_experiment(one)]
    return ", ".join(part for part in parts if part)


def _who(one: Difference) -> str:
    model = one.column.model
    told = said_pair(one) + (f", read by {model}" if model else "")
    return told + "".join(f" [{flag}]" for flag in one.flags.split(";") if flag)
