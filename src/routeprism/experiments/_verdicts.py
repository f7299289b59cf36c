"""Where a memory is on the severity scale, decided from the rows of an audit."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from routeprism.exhibits import Results, Severity
from routeprism.experiments.statements import is_beyond_chance, is_claim_shown, show_flags
from routeprism.orders import FORWARD, name_reference
from routeprism.runs import EstimateRow, Rows, StoredRun

Level = Literal[
    "stable",
    "chance, order not shown",
    "internal only",
    "text only",
    "different records, evidence kept",
    "different records, evidence unknown",
    "evidence lost",
    "answers worse",
]
LEVELS: tuple[Level, ...] = get_args(Level)
"""The scale, from the least to the most severe level."""
_MARKS: Mapping[Level, Severity] = {
    "stable": "good",
    "chance, order not shown": "warning",
    "internal only": "good",
    "text only": "info",
    "different records, evidence kept": "info",
    "different records, evidence unknown": "warning",
    "evidence lost": "problem",
    "answers worse": "problem",
}
"""The mark that each level has in every output."""

Group = Mapping[str, EstimateRow]
"""Rows of one memory and one order of arrival, by quantity."""

EVIDENCE = "all_covered.exposed.forward"
"""Present in every group of rows about evidence, whether or not any is lost."""


def list_arms(results: Results) -> frozenset[str]:
    """Name the policies that are an arm of another one, with some operations in source order."""
    return frozenset(
        arm["policy"]
        for finding in results.findings.get("arms", ())
        for arm in finding.value
        if arm["policy"] != finding.policy
    )


@dataclass(frozen=True, slots=True, repr=False)
class MemoryVerdict:
    """What one memory does under one order of arrival, or under all of them together."""

    policy: str
    levels: Mapping[str, Level]
    """Arrival model or schedule → its level."""
    rows: Mapping[str, Group]
    """Arrival model or schedule → quantity → row, of traces and evidence."""
    answers: Mapping[str, Group]
    """Schedule → quantity → row, of the first model."""
    is_random: bool = False
    """Whether its builds differ by chance, and order is not shown to add to that."""
    is_unsourced: bool = False
    """Whether it shows text without naming its records, so that evidence may be there unseen."""
    is_incomplete: bool = False
    """Whether its run lacks answers or routes, which may change every level."""

    def __repr__(self) -> str:
        levels = "; ".join(f"{describe_arrival(s)}: {level}" for s, level in self.levels.items())
        return f"<MemoryVerdict of {self.policy}: {self.name_level()} ({levels})>"

    def __str__(self) -> str:
        from routeprism.experiments.severity import describe_verdict

        return str(describe_verdict(self))

    @property
    def flags(self) -> tuple[str, ...]:
        """Marks of its numbers, such as `synthetic` data."""
        return next((show_flags(row) for group in self.rows.values() for row in group.values()), ())

    @property
    def level(self) -> Level:
        """The most severe level of all orders of arrival."""
        return max(self.levels.values(), key=LEVELS.index, default="stable")

    @property
    def ordinary_level(self) -> Level:
        """The most severe level of orders that really happen: all but full reversal."""
        ordinary = [level for name, level in self.levels.items() if name != "replay"]
        return max(ordinary or self.levels.values(), key=LEVELS.index, default="stable")

    @property
    def lacks_evidence(self) -> bool:
        """Whether most questions are not shown all of their evidence even in source order."""
        row = self.find(EVIDENCE)
        share = None if row is None or self.is_unsourced else row.estimate
        return share is not None and share < 0.5

    @property
    def is_silent(self) -> bool:
        """Whether no question is shown any text, so that nothing can be concluded."""
        sides = ("context_length.forward", "context_length.route")
        rows = [row for group in self.rows.values() for side in sides if (row := group.get(side))]
        return bool(rows) and all(row.estimate == 0 for row in rows)

    @property
    def reference(self) -> str:
        """Names what its orders of arrival are compared with: `source order`, or a schedule."""
        return name_base(self.rows)

    @property
    def place(self) -> str:
        """Where the numbers of the reference were observed, such as `in source order`."""
        return locate_base(self.rows)

    @property
    def is_unclear(self) -> bool:
        """Whether it states by itself that order allows no conclusion."""
        return self.is_silent or self.is_random or self.level.endswith("unknown")

    @property
    def severity(self) -> Severity:
        """The mark that the level has in every output."""
        mark = "problem" if self.is_silent else _MARKS[self.level]
        return "warning" if self.is_incomplete and mark in ("good", "info") else mark

    def name_level(self, level: str = "") -> str:
        """Name its level, or a given one, as every output does: `(incomplete)` if that is so."""
        return f"{level or self.level}{' (incomplete)' * self.is_incomplete}"

    def find(self, quantity: str) -> EstimateRow | None:
        """Find a quantity that does not depend on the order of arrival."""
        return next((group[quantity] for group in self.rows.values() if quantity in group), None)


def decide_level(traces: Group, evidence: Group, answers: Sequence[Group] = ()) -> Level:
    """Decide how bad one order of arrival is for one memory.

    `traces` and `evidence` are its rows by quantity; `answers` those of each model that answered.
    Worse answers are a claim, which has to hold among all claims of the run. Everything else is
    counted on the given records and questions.
    """
    for group in answers:
        change = group.get("Delta_rep")
        if change is not None and (change.estimate or 0) < 0 and is_claim_shown(change, group):
            return "answers worse"
    if _is_positive(evidence.get("evidence_lost")):
        return "evidence lost"
    if _is_positive(traces.get("V_changed")) or _is_positive(traces.get("retained_changed")):
        # Where source order shows no evidence, none can be lost: that keeps nothing.
        lost = evidence.get("evidence_lost")
        if lost is not None and lost.estimate is not None:
            return "different records, evidence kept"
        return "different records, evidence unknown"
    if _is_positive(traces.get("C_changed")):
        return "text only"
    return "internal only" if _is_positive(traces.get("I_changed")) else "stable"


def _is_positive(row: EstimateRow | None) -> bool:
    return row is not None and (row.estimate or 0.0) > 0


def _is_random(rows: Rows, policy: str, *, declared: bool) -> bool:
    """Whether builds may differ by chance, and order is not shown to change more than that.

    Where repeated builds of one order never differ, a difference is one of order.
    """
    own = rows.where(experiment="routes", policy=policy, model="", stratum="all")
    within = list(own.where(quantity="C_within"))
    if not any(row.estimate for row in within) and (within or not declared):
        return False
    return not is_beyond_chance(own.where(arm="", mask=""))


def decide_verdicts(
    rows: Rows,
    *,
    without: Collection[str] = (),
    chance: Collection[str] = (),
    unsourced: Collection[str] = (),
    incomplete: bool = False,
) -> list[MemoryVerdict]:
    """Decide about every memory of a run, except for policies that only serve a comparison.

    `chance` names the memories that declare that their builds may differ. Repeated builds show it
    of other memories. `unsourced` names those that show text without naming its records: if it
    differs, its records may differ as well. If the run is `incomplete`, so is every verdict.
    """
    routes = rows.where(experiment="routes", arm="")
    traces = routes.where(model="").group("policy", "schedule")
    evidence = rows.where(experiment="retention", arm="").group("policy", "schedule")
    answers = Rows.of(row for row in routes if row.model).group("policy", "schedule", "model")
    groups: dict[str, dict[str, Group]] = {}
    for (policy, schedule), group in traces.items():
        if policy not in without and "J" in group:
            groups.setdefault(policy, {})[schedule] = group
    verdicts = []
    for policy, own in groups.items():
        lost = {schedule: evidence.get((policy, schedule), {}) for schedule in own}
        read = {
            schedule: [g for (p, s, _), g in answers.items() if (p, s) == (policy, schedule)]
            for schedule in own
        }
        is_random = _is_random(rows, policy, declared=policy in chance)
        verdicts.append(
            MemoryVerdict(
                policy,
                {
                    schedule: _soften_level(
                        decide_level(group, lost[schedule], read[schedule]),
                        is_random=is_random,
                        is_unsourced=policy in unsourced,
                    )
                    for schedule, group in own.items()
                },
                {schedule: {**group, **lost[schedule]} for schedule, group in own.items()},
                {schedule: groups[0] for schedule, groups in read.items() if groups},
                is_random,
                policy in unsourced,
                incomplete,
            )
        )
    return verdicts


def _soften_level(level: Level, *, is_random: bool, is_unsourced: bool) -> Level:
    """Replace a level that a memory without sources hides, or that chance alone can explain."""
    if is_random:
        return level if level == "stable" else "chance, order not shown"
    is_hidden = is_unsourced and level == "text only"
    return "different records, evidence unknown" if is_hidden else level


_SCHEDULES = {"replay": "reversal", FORWARD.name: "source order"}


def describe_arrival(schedule: str) -> str:
    """Name an arrival model or schedule in plain words."""
    if schedule in _SCHEDULES:
        return _SCHEDULES[schedule]
    model, _, text = schedule.partition(":")
    options = dict(pair.partition("=")[::2] for pair in text.split(",") if pair)
    if model == "jitter":
        width = options.pop("w", "2")
        name = "ordinary disorder" if width == "2" else f"{width}-place disorder"
    elif model == "late-batch":
        name = "late batch"
    else:
        return schedule
    return ", ".join((name, *(f"{option} {value}" for option, value in options.items())))


def name_base(schedules: Iterable[str]) -> str:
    """Name what schedules are compared with: `source order`, or their common reference."""
    references = {name_reference(schedule) for schedule in schedules} or {FORWARD.name}
    return describe_arrival(references.pop()) if len(references) == 1 else "the reference"


def locate_base(schedules: Iterable[str]) -> str:
    """Name where the numbers of the reference were observed: `in source order`, `under restart`."""
    base = name_base(schedules)
    return f"in {base}" if base == "source order" else f"under {base}"


def decide_results(results: Results) -> list[MemoryVerdict]:
    """Decide about every memory of a run that is neither a repair nor an arm of another one."""
    policies = {
        name: {finding.policy for finding in results.findings.get(name, ())}
        for name in ("chance", "unsourced")
    }
    return decide_verdicts(
        results.rows, without=list_asides(results), incomplete=results.incomplete, **policies
    )


def list_asides(results: Results) -> frozenset[str]:
    """Name the policies of a run that are repairs or arms of another one."""
    repairs = (finding.policy for finding in results.findings.get("repair", ()))
    return list_arms(results).union(repairs)


def read_verdicts(stored: StoredRun) -> list[MemoryVerdict]:
    """Decide about every memory of a stored run."""
    findings = {
        name: stored.findings(experiment, name)
        for experiment, name in (
            ("remedies", "repair"),
            ("mechanism", "arms"),
            ("chance", "chance"),
            ("unsourced", "unsourced"),
        )
    }
    rows, incomplete = Rows.of(stored.estimates()), bool(stored.shortfall())
    return decide_results(Results(rows, findings, incomplete=incomplete))


def list_arrivals(schedules: Iterable[str]) -> list[str]:
    """List orders of arrival without those that are drawn from an arrival model in the list."""
    names = list(schedules)
    models = {f"{name}{',' if ':' in name else ':'}seed=" for name in names}
    return [name for name in names if not name.startswith(tuple(models))]
