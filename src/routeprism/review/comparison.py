"""What changed between two versions of a memory on the same benchmark, question by question."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from routeprism.errors import RunError, SpecError, nearest
from routeprism.exhibits import Severity, Statement, Table, make_card, shorten_lines
from routeprism.experiments.statements import mark_incomplete
from routeprism.judge import OBSERVED, Verdict, read_verdicts, tabulate_verdicts
from routeprism.measures import (
    RESAMPLES,
    Estimate,
    Interval,
    Sums,
    Tally,
    chosen_interval,
    limits_said,
)
from routeprism.orders import FORWARD, describe_arrival, locate_base
from routeprism.printing import pluralise
from routeprism.quantities import Quantity, find_quantity, list_quantities
from routeprism.review.changes import Change, judge_change, summarise_changes
from routeprism.runs import (
    Column,
    QuestionValues,
    Rows,
    StoredRun,
    format_interval,
    read_configuration,
)

__all__ = [
    "Difference",
    "RunComparison",
    "SupportChange",
    "compare_runs",
    "name_pair",
    "name_quantity",
    "select_differences",
]

Pairs = Sequence[tuple[str, str]]
"""(policy of the first run, policy of the second)."""

_SAME = ("benchmark", "fingerprint", "kinds", "labels", "unit", "weighting")
"""What two runs must share for their questions to be the same questions."""
_PLAIN = ("routes", "retention", "restoration")
"""Experiments whose quantities need no further name."""


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

    @property
    def quantity(self) -> Quantity[Any]:
        """Everything known about what differs."""
        return find_quantity(self.column.quantity)

    @property
    def pair(self) -> tuple[str, str]:
        """The policies of both runs."""
        return self.policy_before, self.column.policy

    @property
    def policies(self) -> str:
        """The policy, or both where they differ."""
        return _name_policies(self.policy_before, self.column.policy)

    @property
    def experiment(self) -> str:
        """The experiment if its quantities are not unique to it."""
        return "" if self.column.experiment in _PLAIN else self.column.experiment

    @property
    def change(self) -> str:
        """The difference with its interval, as text."""
        gap = self.difference
        return format_interval(gap.value, gap.lower, gap.upper, signed=True)

    @property
    def is_plain(self) -> bool:
        """Whether it is about the whole run, and not about an arm or a mask."""
        return not (self.column.arm or self.column.mask)

    @property
    def is_of_base(self) -> bool:
        """Whether it is about the route that every order is compared with."""
        return self.quantity.sides == ("forward",)

    @property
    def is_reversal(self) -> bool:
        """Whether it is one under full reversal, which outputs show last."""
        return self.column.schedule == "replay"

    @property
    def is_shown(self) -> bool:
        """Whether its interval excludes zero."""
        lower, upper = self.difference.lower, self.difference.upper
        return lower is not None and upper is not None and not lower <= 0 <= upper

    @property
    def direction(self) -> int:
        """Return 1 if the second run is better, -1 if it is worse, 0 if neither is."""
        value = self.difference.value or 0
        sign = {"higher": 1, "lower": -1, "": 0}[self.quantity.better]
        return sign * ((value > 0) - (value < 0))


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

    @property
    def pair(self) -> tuple[str, str]:
        """The policies of both runs."""
        return self.policy_before, self.policy_after


@dataclass(frozen=True, slots=True, repr=False)
class RunComparison:
    """The changes from a first run to a second one."""

    benchmark: str
    first: str
    second: str
    pairs: tuple[tuple[str, str], ...]
    labels: str
    """The label source that support is read from; empty for none."""
    differences: tuple[Difference, ...]
    support: tuple[SupportChange, ...]
    statements: tuple[Statement, ...]
    notes: tuple[str, ...] = ()
    limits: str = ""
    """How the 95% limits of the differences were read, in words."""
    changes: tuple[Change, ...] = ()
    """For each pair of policies the verdicts on both, and whether the new version is better."""
    incomplete: bool = False
    """Whether one of the runs lacks answers or routes."""

    @property
    def headline(self) -> str:
        """The comparison in one sentence, which every output begins with."""
        return summarise_changes(self.changes, incomplete=self.incomplete)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The statements as texts."""
        return tuple(map(str, self.statements))

    @property
    def versions(self) -> list[tuple[str, Verdict]]:
        """The verdict on both versions of each memory, each with a name."""
        return [
            (f"{version}: {verdict.policy}", verdict)
            for change in self.changes
            for version, verdict in (("before", change.before), ("after", change.after))
        ]

    def tabulate_verdicts(self) -> list[Table]:
        """Show the verdict on both versions of each memory, one below the other."""
        return tabulate_verdicts(self.versions)

    def __str__(self) -> str:
        notes = [f"Note: {note}" for note in self.notes]
        lines = [self.headline, *self.sentences, self.limits, *notes]
        return shorten_lines([f"{self.benchmark}: from {self.first} to {self.second}", *lines])

    def __repr__(self) -> str:
        numbers = f"{len(self.differences)} differences"
        return f"<RunComparison of {self.first} and {self.second}: {numbers}>"

    def _repr_html_(self) -> str:
        """Show the comparison as a short card in a notebook."""
        title = f"{self.benchmark}: from {self.first} to {self.second}"
        return make_card(title, [self.headline, *self.sentences])


def compare_runs(first: Path, second: Path, pairs: Pairs = ()) -> RunComparison:
    """Compare two runs of the same benchmark; policies are matched by name unless paired here."""
    with StoredRun(first) as before, StoredRun(second) as after:
        earlier, later = read_configuration(before, first), read_configuration(after, second)
        _refuse_different(first, second, earlier, later)
        policy_pairs, notes = _match_policies(earlier["policies"], later["policies"], pairs)
        intervals = _read_interval(earlier), _read_interval(later)
        if len(set(intervals)) > 1:
            notes.append(
                "the first run has {} limits, the second {} ones; differences have the "
                "second's".format(*intervals)
            )
        shortfalls = {"first": before.shortfall(), "second": after.shortfall()}
        incomplete = any(shortfalls.values())
        notes += [
            f"the {name} run is incomplete: {shortfall}"
            for name, shortfall in shortfalls.items()
            if shortfall
        ]
        values = before.per_question(), after.per_question()
        for run, shortfall, numbers in zip(
            (first, second), shortfalls.values(), values, strict=True
        ):
            if not (numbers or shortfall):  # if every route failed, there is no number
                raise RunError(
                    f"{run} keeps no values per question; run its command again with this version"
                )
        embedded = {
            name
            for row in (*before.estimates(), *after.estimates())
            if "embedded" in row.flags.split(";")
            for name in (row.model, row.judge)
        }
        _refuse_mixture((first, values[0]), (second, values[1]))
        differences = _compare_values(*values, policy_pairs, later, embedded - {""})
        support = _compare_support(before, after, policy_pairs, earlier, later)
        changes = _judge_changes(before, after, policy_pairs, differences, support)
    losses = _support_statements(support, labelled=bool(later["labels"]))
    return RunComparison(
        later["benchmark"],
        str(first),
        str(second),
        tuple(policy_pairs),
        later["labels"],
        tuple(differences),
        tuple(support),
        (
            *map(_state_change, changes),
            *_difference_statements(differences, changes),
            *(map(mark_incomplete, losses) if incomplete and later["labels"] else losses),
        ),
        tuple(notes),
        limits_said(_read_interval(later), ""),
        changes,
        incomplete,
    )


def _pair_values(
    before: QuestionValues, after: QuestionValues, tally_as: str = "unit"
) -> tuple[float, float, list[tuple[str, list[float]]]] | None:
    """Return both means over the questions that both have, and the differences by user."""
    shared: list[tuple[str, list[float]]] = []
    sides: list[Tally[str]] = [_make_tally(tally_as), _make_tally(tally_as)]
    for user in sorted(before.keys() & after.keys()):
        ids = sorted(before[user].keys() & after[user].keys())
        if not ids:
            continue
        for tally, values in zip(sides, (before, after), strict=True):
            tally.append({"": (sum(values[user][id] for id in ids), len(ids))})
        shared.append((user, [after[user][id] - before[user][id] for id in ids]))
    if not shared:
        return None
    earlier, later = (tally.mean_of("") for tally in sides)
    return earlier, later, shared


def _read_interval(configuration: Mapping[str, Any]) -> Interval:
    """Return how a run's limits were read; before it was written down there was one way."""
    return chosen_interval(configuration.get("interval"), "percentile")


def _make_tally(weighting: str) -> Tally[Any]:
    return Tally("question" if weighting == "question" else "unit")


def _refuse_different(
    first: Path, second: Path, earlier: Mapping[str, Any], later: Mapping[str, Any]
) -> None:
    unlike = [name for name in _SAME if earlier.get(name) != later.get(name)]
    if unlike:
        lines = "\n".join(
            f"  {name}: {json.dumps(earlier.get(name))} and {json.dumps(later.get(name))}"
            for name in unlike
        )
        raise SpecError(
            f"{first} and {second} cannot be compared, their questions are not the same:\n{lines}"
        )


def _refuse_mixture(*runs: tuple[Path, Mapping[Column, QuestionValues]]) -> None:
    """Refuse a run of an earlier version, whose lost evidence is out of fewer questions."""
    quantities = {run: {column.quantity for column in values} for run, values in runs}
    if not any("evidence.lost" in names for names in quantities.values()):
        return
    for run, names in quantities.items():
        if "evidence_lost" in names and "evidence.lost" not in names:
            raise RunError(
                f"{run} is of an earlier version: it counts lost evidence only out of the "
                f"questions that show some in source order (evidence_lost), and not out of all "
                f"labelled questions (evidence.lost). Run its command again with this version"
            )


def _match_policies(
    first: Sequence[str], second: Sequence[str], pairs: Pairs
) -> tuple[list[tuple[str, str]], list[str]]:
    for policy, names, which in (
        *((earlier, first, "first") for earlier, _ in pairs),
        *((later, second, "second") for _, later in pairs),
    ):
        if policy not in names:
            raise SpecError(f"the {which} run has no policy '{policy}'. {nearest(policy, names)}")
    if pairs:
        return list(pairs), []
    same = [(name, name) for name in first if name in second]
    if not same and len(first) == len(second) == 1:
        return [(first[0], second[0])], []
    if not same:
        raise SpecError(
            f"no policy is in both runs (first: {', '.join(first)}; second: {', '.join(second)}); "
            f"name the pairs of policies to compare"
        )
    left = [name for name in (*first, *second) if (name, name) not in same]
    notes = [f"only one of the runs has {', '.join(left)}"] if left else []
    return same, notes


def _compare_values(
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
    for earlier_policy, later in pairs:
        for column, values in after.items():
            earlier = before.get(column._replace(policy=earlier_policy))
            if column.policy != later or earlier is None or find_quantity(column.quantity).is_count:
                continue
            shared = _pair_values(earlier, values, weighting)
            if shared is None:
                continue
            sides[column, earlier_policy] = shared[:2]
            for user, changes in shared[2]:
                units.setdefault(user, {})[column, earlier_policy] = (sum(changes), len(changes))
    tally: Tally[tuple[Column, str]] = _make_tally(weighting)
    for user in sorted(units):
        tally.append(units[user])
    seed, resamples = configuration.get("seed", 0), configuration.get("resamples", RESAMPLES)
    estimates = tally.estimates(
        seed=seed, resamples=resamples, interval=_read_interval(configuration)
    )
    marks = ["synthetic"] if configuration.get("synthetic") else []
    return [
        Difference(
            column,
            earlier_policy,
            *sides[column, earlier_policy],
            estimates[column, earlier_policy],
            configuration["unit"],
            ";".join([*marks, *(["embedded"] if {column.model, column.judge} & embedded else [])]),
        )
        for column, earlier_policy in sides
    ]


def _compare_support(
    before: StoredRun,
    after: StoredRun,
    pairs: Pairs,
    earlier_run: Mapping[str, Any],
    later_run: Mapping[str, Any],
) -> list[SupportChange]:
    labels = later_run["labels"]
    if not labels:
        return []
    questions = after.questions()
    interfaces = [
        dict(zip(run["policies"], run["interfaces"], strict=True))
        for run in (earlier_run, later_run)
    ]
    shared = [name for name in later_run["schedules"] if name in earlier_run["schedules"]]
    changes: list[SupportChange] = []
    for first, second in pairs:
        for schedule in (FORWARD.name, *shared):
            earlier = before.sources(first, interfaces[0][first], schedule)
            later = after.sources(second, interfaces[1][second], schedule)
            for id, question in questions.items():
                if id not in earlier or id not in later:
                    continue  # a route that failed, and not one that showed nothing
                support = question.labels.get(labels, frozenset())
                old, new = earlier[id] & support, later[id] & support
                if old != new:
                    place = (question.id, question.user, question.text, first, second, schedule)
                    records = tuple(sorted(old - new)), tuple(sorted(new - old))
                    changes.append(SupportChange(*place, *records))
    return changes


def _judge_changes(
    before: StoredRun,
    after: StoredRun,
    pairs: Pairs,
    differences: Sequence[Difference],
    support: Sequence[SupportChange],
) -> tuple[Change, ...]:
    """Judge each pair of policies that both runs have a verdict on."""
    first, second = ({v.policy: v for v in read_verdicts(stored)} for stored in (before, after))
    rows = Rows.of(before.estimates()), Rows.of(after.estimates())
    random = _list_random(before) | _list_random(after)
    certain = [item for item in differences if item.is_plain and item.is_shown]
    changes = []
    for pair in pairs:
        if pair[0] not in first or pair[1] not in second:
            continue
        own = [difference for difference in certain if difference.pair == pair]
        changes.append(
            judge_change(
                first[pair[0]],
                second[pair[1]],
                rows,
                moved=_count_moves([change for change in support if change.pair == pair]),
                answers=min(_list_directions(own, "accuracy.forward"), default=0),
                proven=_list_directions(own) if random.intersection(pair) else {-1, 1},
            )
        )
    return tuple(changes)


def _list_random(stored: StoredRun) -> set[str]:
    """List the memories whose builds differ by chance."""
    findings = stored.findings(OBSERVED)
    return {finding.policy for finding in findings if finding.value.get("chance")}


def _list_directions(differences: Sequence[Difference], quantity: str = "") -> set[int]:
    """List the directions of a quantity; by default, of those that need no model."""
    return {
        difference.direction
        for difference in differences
        if (difference.column.quantity == quantity if quantity else not difference.column.model)
    }


def _count_moves(changes: Sequence[SupportChange]) -> tuple[int, int]:
    """Count the questions that are no longer shown some evidence, and those that gain some."""
    lost = {change.question for change in changes if change.lost}
    gained = {change.question for change in changes if change.kept}
    return len(lost), len(gained)


def _state_change(change: Change) -> Statement:
    """State whether a memory is better or worse, and the verdicts on both versions."""
    before, after = change.before.label, change.after.label
    levels = (
        f"in both versions: {after}" if before == after else f"before: {before}; after: {after}"
    )
    name = _name_policies(change.before.policy, change.after.policy)
    return Statement((f"{change}; {levels}",), "comparison", name, severity=change.severity)


def _name_policies(before: str, after: str) -> str:
    return after if before == after else f"{before} → {after}"


def _difference_statements(
    differences: Sequence[Difference], changes: Sequence[Change]
) -> Iterator[Statement]:
    """Describe for each policy and schedule what changed, full reversal last.

    What is worse in a version that is better in total is no problem by itself.
    """
    better = {change.after.policy for change in changes if change.outcome == "better"}
    for difference in sorted(differences, key=lambda difference: difference.is_reversal):
        column = difference.column
        is_headline = difference.quantity.emphasis == "headline" and difference.is_plain
        if not is_headline or difference.is_of_base:
            continue
        text, severity = _describe_difference(difference, is_better=column.policy in better)
        reader = f"read by {column.model}" if column.model else ""
        arrival = describe_arrival(column.schedule)
        scope = filter(None, (arrival, difference.experiment, reader))
        yield Statement(
            (text,),
            "comparison",
            difference.policies,
            column.schedule,
            severity,
            scope=", ".join(scope),
            flags=tuple(filter(None, difference.flags.split(";"))),
        )


def _support_statements(support: Sequence[SupportChange], *, labelled: bool) -> Iterator[Statement]:
    """Count the questions whose support one of the versions does not show."""
    if not labelled:
        text = "The benchmark has no support labels, so evidence is not compared."
        yield Statement((text,), "comparison")
        return
    counts: dict[tuple[str, str], list[int]] = {}
    for change in support:
        policies = _name_policies(change.policy_before, change.policy_after)
        numbers = counts.setdefault((policies, change.schedule), [0, 0])
        numbers[0] += bool(change.lost)
        numbers[1] += bool(change.kept)
    for (policies, schedule), (lost, gained) in counts.items():
        severity: Severity = "problem" if lost > gained else "info" if lost else "good"
        text = _count_support(lost, gained)
        scope = "source order" if schedule == FORWARD.name else describe_arrival(schedule)
        yield Statement((text,), "comparison", policies, schedule, severity, scope=scope)
    if not counts:
        yield Statement(("No question lost or gained evidence.",), "comparison")


def _count_support(lost: int, gained: int) -> str:
    """Count the questions that lose and gain evidence, the larger number first."""
    if gained >= lost:
        losses = f"loses it for {lost}" if lost else "loses none"
        return f"the new version gains evidence for {pluralise(gained, 'question')} and {losses}"
    gains = f"gains it for {gained}" if gained else "gains none"
    return f"the new version loses evidence for {pluralise(lost, 'question')} and {gains}"


def name_quantity(column: Column) -> str:
    """Name a quantity in plain words, and the route that it reads if it is not the order's own."""
    quantity = find_quantity(column.quantity)
    is_of_base = quantity.sides == ("forward",)
    return f"{quantity.plain} {locate_base([column.schedule])}" if is_of_base else quantity.plain


def select_differences(differences: Iterable[Difference], *emphases: str) -> list[Difference]:
    """Select the differences with such an emphasis, the most important quantity first."""
    ranks = {quantity.name: rank for rank, quantity in enumerate(list_quantities())}
    selected = (d for d in differences if d.is_plain and d.quantity.emphasis in emphases)
    return sorted(selected, key=lambda difference: ranks[difference.column.quantity])


def _describe_difference(difference: Difference, *, is_better: bool) -> tuple[str, Severity]:
    """Describe a difference as far as its interval supports it.

    `is_better` is whether the new version is better in total.
    """
    gap, quantity = difference.difference, difference.column.quantity
    plain = name_quantity(difference.column)
    name = quantity if plain == quantity else f"{plain} ({quantity})"
    ends = f"{difference.before:.3f} before, {difference.after:.3f} after"
    size = f"{pluralise(gap.queries, 'question')}, {pluralise(gap.units, difference.unit)}"
    if gap.value == 0 and (gap.lower, gap.upper) in ((0, 0), (None, None)):
        return f"{name}: the same, {difference.after:.3f} ({size})", "info"
    if not difference.is_shown:
        return f"{name}: no change is shown, {difference.change}, {ends} ({size})", "info"
    verdict, severity = _DIRECTIONS[difference.direction]
    if is_better and severity == "problem":
        verdict, severity = "worse in part", "info"
    return f"{name}: {verdict}, {ends}, a change of {difference.change} ({size})", severity


_DIRECTIONS: Mapping[int, tuple[str, Severity]] = {
    1: ("better", "good"),
    -1: ("worse", "problem"),
    0: ("changed", "info"),
}


def name_pair(difference: Difference) -> str:
    """Name the policies and the arrivals, and the experiment if the quantity does not."""
    schedule = difference.column.schedule
    plain = describe_arrival(schedule)
    arrivals = plain if plain == schedule else f"{plain} ({schedule})"
    return ", ".join(filter(None, (difference.policies, arrivals, difference.experiment)))
