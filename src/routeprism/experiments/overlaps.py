"""Overlapping writes: how often their outcome equals that of no serial order, and why."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from routeprism.answers import AnswerProgress
from routeprism.errors import InapplicableError
from routeprism.exhibits import Results, Statement, Table, format_row, make_table
from routeprism.experiments._collection import Asking
from routeprism.experiments._experiment import Experiment
from routeprism.experiments._options import OverlapSettings
from routeprism.experiments._rows import Key, estimate_rows
from routeprism.experiments._stages import AsksNobody, Stage, StageResult, Traced
from routeprism.experiments._storage import unit_rows_of
from routeprism.experiments.statements import join_names, state_row
from routeprism.landscape import fixed_limits
from routeprism.measures import Sums, Tally
from routeprism.orders import Schedule, parse_schedule
from routeprism.overlap import (
    KINDS,
    Anomaly,
    Execution,
    Kind,
    Outcome,
    SerialOutcomes,
    Trial,
    describe_anomaly,
    explore_interleavings,
    find_overlap,
    list_serial_outcomes,
    shrink_anomaly,
)
from routeprism.policies import Policy, report_own_errors
from routeprism.policies.own import find_own_memory
from routeprism.records import Benchmark, Case
from routeprism.runs import Column, EstimateRow, Finding

_TRIALS = 100
_OUTSIDE_TRIALS = 10
"""Trials in each pool by default, for classes and for systems outside this process."""
_MOST_INTERLEAVINGS = 2_000
"""Interleavings up to which every one of the smallest pool is performed."""

_CAUSES: Mapping[Kind, str] = {
    "error": "overlapping adds fail",
    "lost": "concurrent adds overwrite each other",
    "duplicated": "concurrent adds pass the same check, and each of them inserts",
    "torn": "parts of different adds are stored together",
    "stale": "an add acts on a value that has changed since it was read",
}
_REMEDIES: Mapping[Kind, str] = {
    "error": "Queue the writes, or retry those that fail",
    "lost": "Queue the writes, or lock the store",
    "duplicated": "Check and insert in one step, for example under a lock or a unique index",
    "torn": "Write all parts in one step, or under one lock",
    "stale": "Read and write under one lock, or compare version numbers before writing",
}


@dataclass(slots=True)
class _Series:
    """The trials of one policy under one schedule."""

    policy: Policy
    schedule: Schedule
    manner: str
    trials: int = 0
    kinds: Counter[Kind] = field(default_factory=Counter)
    anomalies: dict[Kind, tuple[Anomaly, str]] = field(default_factory=dict)
    """Kind → the first anomaly of it, and its user."""
    retained: set[tuple[int, int]] = field(default_factory=set)
    """(records added at once, of which kept), in any trial."""
    serial: set[tuple[int, int]] = field(default_factory=set)
    """(records added one by one, of which kept), in any serial order."""
    incomplete: int = 0
    """Trials that were judged by drawn serial orders."""
    uncontrolled: int = 0
    """Trials whose interleaving was left to chance."""
    searched: bool = False
    """Whether the interleavings of one pool's first writes were searched."""
    explored: tuple[int, int] = (0, 0)
    """Interleavings that cover all of these writes, and how many writes these were."""

    def judge(
        self,
        trial: Trial,
        serial: SerialOutcomes,
        execution: Execution,
        user: str,
        seed: int | None,
    ) -> Kind | None:
        """Compare the outcome of a trial with the serial outcomes, and note an anomaly."""
        self.incomplete += not serial.complete
        self.retained.add(_count_kept(trial, execution.outcome))
        kind = serial.classify(execution.outcome)
        if kind is not None:
            self.kinds[kind] += 1
            if kind not in self.anomalies:
                anomaly = shrink_anomaly(describe_anomaly(trial, serial, execution, kind, seed))
                self.anomalies[kind] = anomaly, user
        return kind

    def search(self, trial: Trial, serial: SerialOutcomes, user: str) -> Kind | None:
        """Perform every interleaving of a pool's first writes, if there are few enough.

        An anomaly that one of them shows counts as one more trial.
        """
        self.searched = True
        if trial.manner != "async":
            return None
        exploration = explore_interleavings(trial, limit=_MOST_INTERLEAVINGS)
        for execution in exploration.executions:
            if serial.classify(execution.outcome) is not None:
                return self.judge(trial, serial, execution, user, None)
        if exploration.complete:
            self.explored = len(exploration.executions), len(trial.writes)
        return None


@dataclass(frozen=True, slots=True)
class OverlapStage(AsksNobody):
    """Performs overlapping writes and compares their outcomes with those of serial orders."""

    trials: int | None

    def described(self) -> Mapping[str, object]:
        """Return what makes the results comparable."""
        return {"overlap_trials": self.trials}

    def perform(self, traced: Traced, progress: AnswerProgress | None) -> StageResult:
        """Perform the trials of every policy that can take overlapping writes, and estimate."""
        tally: Tally[Key] = Tally(traced.benchmark.weighting)
        every = [
            _Series(policy, schedule, manner)
            for policy in traced.policies
            if (manner := _find_manner(policy))
            for schedule in traced.schedules
            if schedule.procedure.kind == "overlap"
        ]
        for case in traced.benchmark.cases:
            sums: Sums[Key] = {}
            for series in every:
                route = series.schedule.name
                with report_own_errors(series.policy, user=case.pool.user, route=route):
                    self._try_case(case, series, sums, traced.setting.seed)
            tally.append(sums)
            traced.run.add("per_unit", unit_rows_of(case, sums))
        rows = estimate_rows(tally, traced.setting)
        findings = [finding for series in every for finding in _list_findings(series)]
        traced.run.keep("overlap", findings)
        shares = {(row.policy, row.schedule): row for row in rows if row.quantity == "anomaly"}
        return StageResult(
            rows,
            tuple(
                _describe_series(series, row)
                for series in every
                if (row := shares.get((series.policy.name, series.schedule.name))) is not None
            ),
        )

    def _try_case(self, case: Case, series: _Series, sums: Sums[Key], seed: int) -> None:
        schedule = series.schedule
        trials = list_trials(case, series.policy, schedule)
        if not trials:
            return
        serial = [list_serial_outcomes(trial) for trial in trials]
        for trial, outcomes in zip(trials, serial, strict=True):
            series.serial |= {_count_kept(trial, outcome) for outcome in outcomes.outcomes}
        kinds: list[Kind | None] = []
        repeated = self.trials or (_OUTSIDE_TRIALS if trials[0].policy.outside else _TRIALS)
        for number in range(repeated):
            at = number % len(trials)
            trial_seed = _draw_seed(seed, case.pool.user, schedule.name, number)
            execution = trials[at].sample(trial_seed)
            if trials[at].controlled and not execution.controlled:
                trials[at] = replace(trials[at], controlled=False)
            series.uncontrolled += not execution.controlled
            kinds.append(
                series.judge(trials[at], serial[at], execution, case.pool.user, trial_seed)
            )
        if not any(kinds) and not series.searched:
            kind = series.search(trials[0], serial[0], case.pool.user)
            kinds += [] if kind is None else [kind]
        series.trials += len(kinds)
        column = Column("overlap", "anomaly", series.policy.name, schedule.name)
        sums[column, "all"] = (float(len(kinds) - kinds.count(None)), len(kinds))
        for kind in KINDS:
            target = column._replace(quantity=f"anomaly.{kind}")
            sums[target, "all"] = (float(kinds.count(kind)), len(kinds))


def _draw_seed(seed: int, user: str, schedule: str, number: int) -> int:
    """Draw the seed of a trial, so that pools do not repeat the interleavings of each other."""
    digest = hashlib.sha256(f"{seed}\0{user}\0{schedule}\0{number}".encode()).digest()
    return int.from_bytes(digest[:4], "big")


def _find_manner(policy: Policy) -> str:
    """Name how a memory can take overlapping writes; empty if it cannot."""
    try:
        return find_overlap(policy)
    except InapplicableError:
        return ""


def list_trials(case: Case, policy: Policy, schedule: Schedule) -> list[Trial]:
    """List the trials of a pool: writes at its start, in its middle and at its end."""
    arrivals = tuple(case.pool.records[position] for position in schedule.on(case.pool))
    size = min(schedule.procedure.number, len(arrivals))
    if size < 2:
        return []
    last = len(arrivals) - size
    own = find_own_memory(policy)
    assert own is not None  # noqa: S101 (only such memories can overlap)
    # Each build of a system outside this process takes long.
    starts = (0,) if own.outside else dict.fromkeys((0, last // 2, last))
    return [Trial(own, arrivals[:start], arrivals[start : start + size]) for start in starts]


def _count_kept(trial: Trial, outcome: Outcome) -> tuple[int, int]:
    """Count the records that a trial adds at once, and those of them that an outcome retains."""
    added = {record.id for record in trial.writes}
    return len(added), len(added & {*outcome.retained})


def _list_findings(series: _Series) -> Iterator[Finding]:
    """Yield an example of each kind of anomaly, with its interleaving."""
    for kind, (anomaly, user) in series.anomalies.items():
        value: dict[str, Any] = {
            "kind": kind,
            "trials": series.kinds[kind],
            "prior": [record.id for record in anomaly.trial.prior],
            "writes": [record.id for record in anomaly.trial.writes],
            "retained": list(anomaly.execution.outcome.retained),
            "serial": list(anomaly.nearest.retained),
            "errors": list(anomaly.execution.outcome.errors),
            "steps": anomaly.list_steps(),
            "choices": list(anomaly.execution.choices),
            "seed": anomaly.seed,
        }
        yield Finding(
            name=f"anomaly.{kind}",
            value=value,
            policy=series.policy.name,
            schedule=series.schedule.name,
            user=user,
        )


def _describe_series(series: _Series, row: EstimateRow) -> Statement:
    """Describe the trials of one policy under one schedule."""
    trials, manner = str(series.trials), _describe_manner(series)
    if not series.anomalies:
        return state_row(
            "overlap",
            row,
            "{row} of {trials} trials with overlapping writes end in a way that no serial order "
            "does ({manner}){explored}",
            severity="good",
            trials=trials,
            manner=manner,
            explored=_describe_coverage(series),
        )
    kind = series.kinds.most_common(1)[0][0]
    writes = [record.id for record in series.anomalies[kind][0].trial.writes]
    return state_row(
        "overlap",
        row,
        "{cause}. {row} of {trials} trials end in a way that no serial order does ({manner}); "
        "{number} writes are enough ({writes})",
        severity="problem",
        next_step=_REMEDIES[kind],
        cause=_describe_cause(series, kind),
        trials=trials,
        manner=manner,
        number=str(len(writes)),
        writes=join_names(writes),
    )


def _describe_manner(series: _Series) -> str:
    """Describe how writes overlapped, and the interval of the rate over the trials themselves."""
    lower, upper = fixed_limits(sum(series.kinds.values()), series.trials)
    real = series.uncontrolled == series.trials
    how = {
        "async": "RoutePrism chose which task continues at each await",
        "requests": "requests in flight at the same time",
        "threads": "real threads" if real else "RoutePrism chose where threads switch",
    }[series.manner]
    return f"{how}; 95% interval over these trials [{lower:.3f}, {upper:.3f}]"


def _describe_cause(series: _Series, kind: Kind) -> str:
    """Describe what goes wrong, and how many records are kept at once and one by one."""
    cause = _CAUSES[kind]
    added = max(size for size, _ in series.retained)
    numbers = {number for size, number in series.retained if size == added}
    serial = {number for size, number in series.serial if size == added}
    if numbers <= serial:
        return cause[0].upper() + cause[1:]
    verb = "is" if numbers == {1} else "are"
    return (
        f"Of {added} records added at once, {_write_range(numbers)} {verb} kept "
        f"({_write_range(serial)} of {added} when added one by one): {cause}"
    )


def _write_range(numbers: Collection[int]) -> str:
    least, most = min(numbers), max(numbers)
    return str(least) if least == most else f"{least} to {most}"


def _describe_coverage(series: _Series) -> str:
    interleavings, writes = series.explored
    if series.incomplete:
        return "; not every serial order was built, so an anomaly may remain"
    if interleavings:
        return f"; all {interleavings} different interleavings of {writes} writes were performed"
    if 0 < series.uncontrolled < series.trials:
        return (
            f"; {series.uncontrolled} trials could not be controlled, so a rare anomaly may remain"
        )
    return "; not every interleaving was performed, so a rare anomaly may remain"


def _tabulate(results: Results) -> Sequence[Table]:
    """Show the share of anomalies by kind, and one interleaving for each kind."""
    groups = experiment.select(results.rows).group("policy", "schedule")
    quantities = ("anomaly", *(f"anomaly.{kind}" for kind in KINDS))
    return [
        *make_table(
            "overlap",
            "Overlapping writes",
            "Share of trials whose outcome equals that of no serial order of the same writes.",
            ("policy", "schedule", "anomaly", *KINDS),
            [
                (*place, *(format_row(group.get(quantity)) for quantity in quantities))
                for place, group in groups.items()
            ],
            names=2,
        ),
        *make_table(
            "overlap-interleavings",
            "Interleavings",
            "The smallest set of writes that shows each anomaly, and how their steps interleave.",
            ("policy", "schedule", "anomaly", "writes", "steps"),
            [
                (
                    finding.policy,
                    finding.schedule,
                    finding.value["kind"],
                    ", ".join(finding.value["writes"]),
                    "; ".join(finding.value["steps"]),
                )
                for kind in KINDS
                for finding in results.findings.get(f"anomaly.{kind}", ())
            ],
            names=5,
        ),
    ]


def _make_stage(
    settings: OverlapSettings, asking: Asking | None, benchmark: Benchmark
) -> Stage | None:
    schedules = map(parse_schedule, settings.schedules)
    if any(schedule.procedure.kind == "overlap" for schedule in schedules):
        return OverlapStage(settings.overlap_trials)
    return None


experiment = Experiment(
    name="overlap",
    title="Overlapping writes",
    summary="Add records at the same time and compare the outcome with every serial order.",
    rank=12,
    settings=OverlapSettings,
    stage=_make_stage,
    tables=_tabulate,
)
