"""Overlapping writes: how often their outcome equals that of no serial order, and why."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from routeprism.answers import AnswerProgress
from routeprism.errors import InapplicableError
from routeprism.exhibits import Results, Statement, Table, format_row, make_table
from routeprism.experiments._collection import Asking
from routeprism.experiments._execution import map_units
from routeprism.experiments._experiment import Experiment
from routeprism.experiments._options import OverlapSettings
from routeprism.experiments._rows import Key, estimate_rows
from routeprism.experiments._stages import AsksNobody, Stage, StageResult, Traced
from routeprism.experiments._storage import unit_rows_of
from routeprism.experiments.statements import state_row
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
    find_simplest,
    list_serial_outcomes,
    shrink_anomaly,
)
from routeprism.policies import Policy, report_own_errors
from routeprism.policies.own import find_own_memory
from routeprism.printing import join_names
from routeprism.records import Benchmark, Case
from routeprism.runs import Column, EstimateRow, Finding

_TRIALS = 100
_OUTSIDE_TRIALS = 10
"""Trials in each pool by default, for classes and for systems outside this process."""
_MOST_PAIR_INTERLEAVINGS = 5_000
"""Interleavings up to which every one of two writes is performed."""
_MOST_INTERLEAVINGS = 2_000
"""The same for more writes."""
_QUESTIONS, _OUTSIDE_QUESTIONS = 20, 5
"""Questions of each pool whose records are compared, for classes and for systems outside."""

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
class _Search:
    """Every interleaving of the first two writes of a pool, and some or all of all its writes."""

    kind: Kind | None = None
    """The anomaly that one of them shows."""
    pair: int = 0
    """How many interleavings two writes have; 0 if there are too many to perform."""
    names: tuple[str, ...] = ()
    """The ids of the writes of which every interleaving was performed."""
    larger: int = 0
    """How many interleavings of more writes were performed; 0 if there are no more writes."""
    size: int = 0
    """How many writes these are."""
    bounds: tuple[str, ...] = ()
    """What limits the interleavings, in words."""


@dataclass(slots=True)
class _PoolTrials:
    """The trials of one pool."""

    kinds: list[Kind | None] = field(default_factory=list)
    """For each trial the anomaly that it shows."""
    findings: dict[Kind, Finding] = field(default_factory=dict)
    """An example of each kind of anomaly that no pool before has shown."""
    retained: set[tuple[int, int]] = field(default_factory=set)
    """(records added at once, of which kept), in any trial."""
    serial: set[tuple[int, int]] = field(default_factory=set)
    """(records added one by one, of which kept), in any serial order."""
    incomplete: int = 0
    """Trials that were judged by drawn serial orders."""
    uncontrolled: int = 0
    """Trials whose interleaving was left to chance."""
    search: _Search | None = None
    """The search for interleavings, which only the first pool without an anomaly has."""
    hangs: bool = False
    """Whether the last trial took longer than its limit."""


@dataclass(frozen=True, slots=True)
class _CaseTrials:
    """The trials of one pool, for each policy and schedule."""

    series: tuple[_PoolTrials, ...]


@dataclass(slots=True)
class _Series:
    """The trials of one policy under one schedule."""

    policy: Policy
    schedule: Schedule
    manner: str
    trials: int = 0
    kinds: Counter[Kind] = field(default_factory=Counter)
    findings: dict[Kind, Finding] = field(default_factory=dict)
    """Kind → the first anomaly of it."""
    retained: set[tuple[int, int]] = field(default_factory=set)
    serial: set[tuple[int, int]] = field(default_factory=set)
    incomplete: int = 0
    uncontrolled: int = 0
    search: _Search | None = None
    hangs: bool = False
    """Whether a trial took longer than its limit; each further one may."""

    def try_pool(self, case: Case, repeated: int | None, seed: int) -> _PoolTrials:
        """Perform the trials of a pool."""
        result = _PoolTrials()
        trials = [] if self.hangs else list_trials(case, self.policy, self.schedule)
        if not trials:
            return result
        user = case.pool.user
        serial = [list_serial_outcomes(trial) for trial in trials]
        for trial, outcomes in zip(trials, serial, strict=True):
            result.serial |= {_count_kept(trial, outcome) for outcome in outcomes.outcomes}
        repeated = repeated or (_OUTSIDE_TRIALS if trials[0].policy.outside else _TRIALS)
        for number in range(repeated):
            at = number % len(trials)
            trial_seed = _draw_seed(seed, user, self.schedule.name, number)
            execution = trials[at].sample(trial_seed)
            if trials[at].controlled and not execution.controlled:
                trials[at] = replace(trials[at], controlled=False)
            self._judge(trials[at], serial[at], execution, user, trial_seed, result)
            if execution.outcome.over_limit:
                result.hangs = True
                return result
        if not any(result.kinds) and self.search is None and trials[0].manner == "async":
            result.search = self._search(trials[0], serial[0], user, result)
        return result

    def _judge(
        self,
        trial: Trial,
        serial: SerialOutcomes,
        execution: Execution,
        user: str,
        seed: int,
        result: _PoolTrials,
    ) -> None:
        """Compare the outcome of a trial with the serial outcomes, and note an anomaly."""
        result.uncontrolled += not execution.controlled
        result.incomplete += not serial.complete
        result.retained.add(_count_kept(trial, execution.outcome))
        kind = serial.classify(execution.outcome)
        result.kinds.append(kind)
        if kind is not None and not {*self.findings, *result.findings} & {kind}:
            anomaly = describe_anomaly(trial, serial, execution, kind, seed)
            result.findings[kind] = self._describe(shrink_anomaly(anomaly), user)

    def _search(
        self, trial: Trial, serial: SerialOutcomes, user: str, result: _PoolTrials
    ) -> _Search:
        """Perform every interleaving of a pool's first two writes, and some of all its writes."""
        search = _Search()
        sizes = sorted({2, len(trial.writes)})
        for size in sizes:
            part = replace(trial, writes=trial.writes[:size])
            part_serial = serial if size == len(trial.writes) else list_serial_outcomes(part)
            limit = _MOST_PAIR_INTERLEAVINGS if size == 2 else _MOST_INTERLEAVINGS
            exploration = explore_interleavings(part, limit=limit)
            anomaly = find_simplest(part, part_serial, exploration.executions)
            if anomaly is not None:
                search.kind = anomaly.kind
                result.retained.add(_count_kept(part, anomaly.execution.outcome))
                result.findings[anomaly.kind] = self._describe(anomaly, user)
                return search
            search.bounds = tuple(sorted({*search.bounds, *exploration.bounds}))
            if exploration.complete and part_serial.complete:
                search.pair = len(exploration.executions)
                search.names = tuple(record.id for record in part.writes)
            elif size > 2:
                search.larger, search.size = len(exploration.executions), size
        return search

    def _describe(self, anomaly: Anomaly, user: str) -> Finding:
        """Describe an anomaly with its interleaving."""
        outcome = anomaly.execution.outcome
        value: dict[str, Any] = {
            "kind": anomaly.kind,
            "prior": [record.id for record in anomaly.trial.prior],
            "writes": [record.id for record in anomaly.trial.writes],
            "retained": list(outcome.retained),
            "serial": list(anomaly.nearest.retained),
            "errors": list(outcome.errors),
            "conditions": anomaly.list_conditions(),
            "steps": anomaly.list_steps(),
            "choices": list(anomaly.execution.choices),
            "seed": anomaly.seed,
        }
        name = f"anomaly.{anomaly.kind}"
        policy, schedule = self.policy.name, self.schedule.name
        return Finding(name=name, value=value, policy=policy, schedule=schedule, user=user)

    def take(self, result: _PoolTrials) -> list[Kind | None]:
        """Add the trials of the next pool, and return the anomaly of each."""
        if self.hangs:  # another shard has found that later than this pool
            return []
        self.hangs = result.hangs
        kinds = list(result.kinds)
        if self.search is None and result.search is not None:
            self.search = result.search
            # An anomaly that the search has found counts as one more trial.
            kinds += [] if self.search.kind is None else [self.search.kind]
        self.trials += len(kinds)
        self.kinds.update(kind for kind in kinds if kind is not None)
        for kind, finding in result.findings.items():
            if kind in kinds:
                self.findings.setdefault(kind, finding)
        self.retained |= result.retained
        self.serial |= result.serial
        self.incomplete += result.incomplete
        self.uncontrolled += result.uncontrolled
        return kinds


@dataclass(frozen=True, slots=True)
class OverlapStage(AsksNobody):
    """Performs overlapping writes and compares their outcomes with those of serial orders."""

    trials: int | None
    divided: ClassVar[bool] = True

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
        cases = traced.benchmark.cases

        def try_case(index: int) -> _CaseTrials:
            return _CaseTrials(
                tuple(self._try_pool(cases[index], each, traced.setting.seed) for each in every)
            )

        results = map_units(try_case, len(cases), traced.execution)
        for case, result in zip(cases, results, strict=True):
            sums: Sums[Key] = {}
            for series, trials in zip(every, result.series, strict=True):
                _add_sums(sums, series, series.take(trials))
            tally.append(sums)
            traced.run.add("per_unit", unit_rows_of(case, sums))
        rows = estimate_rows(tally, traced.setting)
        findings = [
            replace(finding, value={**finding.value, "trials": series.kinds[kind]})
            for series in every
            for kind, finding in series.findings.items()
        ]
        traced.run.keep("overlap", findings)
        shares = {(row.policy, row.schedule): row for row in rows if row.quantity == "anomaly"}
        return StageResult(
            rows,
            tuple(
                _describe_series(series, row)
                for series in every
                if (row := shares.get((series.policy.name, series.schedule.name))) is not None
            ),
            findings=tuple(findings),
        )

    def _try_pool(self, case: Case, series: _Series, seed: int) -> _PoolTrials:
        route = series.schedule.name
        with report_own_errors(series.policy, user=case.pool.user, route=route):
            try:
                return series.try_pool(case, self.trials, seed)
            except InapplicableError:  # a note about the route says why
                return _PoolTrials()


def _add_sums(sums: Sums[Key], series: _Series, kinds: Sequence[Kind | None]) -> None:
    """Add the shares of the trials of one pool, if there were any."""
    if not kinds:
        return
    column = Column("overlap", "anomaly", series.policy.name, series.schedule.name)
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
    texts = list(dict.fromkeys(question.text for question in case.questions))
    most = min(len(texts), _OUTSIDE_QUESTIONS if own.outside else _QUESTIONS)
    questions = tuple(texts[len(texts) * at // most] for at in range(most))
    trials = [
        Trial(own, arrivals[:start], arrivals[start : start + size], questions=questions)
        for start in starts
    ]
    forward = range(size)
    # What a memory shows differently each time is not compared.
    if own.deterministic and (
        trials[0].run_in_order(forward).shown == trials[0].run_in_order(forward).shown
    ):
        return trials
    return [replace(trial, questions=()) for trial in trials]


def _count_kept(trial: Trial, outcome: Outcome) -> tuple[int, int]:
    """Count the records that a trial adds at once, and those of them that an outcome retains."""
    added = {record.id for record in trial.writes}
    return len(added), len(added & {*outcome.retained})


def _describe_series(series: _Series, row: EstimateRow) -> Statement:
    """Describe the trials of one policy under one schedule."""
    trials, manner = str(series.trials), _describe_manner(series)
    if not series.findings:
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
    example = series.findings[kind].value
    writes, conditions = example["writes"], example["conditions"]
    return state_row(
        "overlap",
        row,
        "{cause}. {row} of {trials} trials end in a way that no serial order does ({manner}); "
        "{number} writes are enough ({writes}){conditions}",
        severity="problem",
        next_step=_REMEDIES[kind],
        cause=_describe_cause(series, kind),
        trials=trials,
        manner=manner,
        number=str(len(writes)),
        writes=join_names(writes),
        conditions=f", if {join_names(conditions)}" if conditions else "",
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
    """Describe which interleavings were performed, and what remains possible."""
    search = series.search or _Search()
    every = ""
    if search.pair:
        every = (
            f"; all {search.pair} different interleavings of {len(search.names)} writes were "
            f"performed ({join_names(search.names)})"
        )
        if search.bounds:
            every += f", in which {join_names(search.bounds)}"
    if series.incomplete:
        return f"{every}; not every serial order was built, so an anomaly may remain"
    if every and search.larger:
        return (
            f"{every}, and {search.larger} of {search.size} writes, which are not all, so a rare "
            f"anomaly may remain"
        )
    if every:
        return every
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
            "The smallest set of writes that shows each anomaly, how long their requests have to "
            "take, and how their steps interleave.",
            ("policy", "schedule", "anomaly", "writes", "durations", "steps"),
            [
                (
                    finding.policy,
                    finding.schedule,
                    finding.value["kind"],
                    ", ".join(finding.value["writes"]),
                    "; ".join(finding.value.get("conditions", ())),
                    "; ".join(finding.value["steps"]),
                )
                for kind in KINDS
                for finding in results.findings.get(f"anomaly.{kind}", ())
            ],
            names=6,
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
