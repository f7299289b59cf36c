"""The stage of every experiment that asks: prompts for some pools at a time, asked and measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any

from routeprism.answers import AnswerProgress, Comparison, Cost, Progress
from routeprism.exhibits import Statement
from routeprism.experiments._collection import (
    Answers,
    AnswersByModel,
    Asking,
    collect_answers,
    count_outcomes,
    describe_outcomes,
    inspect_answers,
    leave_out_silent,
    measure_load,
    price_comparisons,
)
from routeprism.experiments._draw_allocation import (
    AllocationReport,
    StagedAnswers,
    collect_where_answers_differ,
)
from routeprism.experiments._profiles import PoolAnswers, average
from routeprism.experiments._rows import Key, Setting, estimate_rows
from routeprism.experiments._stages import StageResult, Traced
from routeprism.experiments._storage import rows_of, unit_rows_of
from routeprism.experiments._strata import strata_of
from routeprism.experiments._until import Stop, Watch, open_watch
from routeprism.measures import Sums, Tally
from routeprism.models import Model
from routeprism.models.recorded import Inspection
from routeprism.records import Case
from routeprism.runs import EstimateRow, Finding, StoredRun
from routeprism.runs import Key as LedgerKey


@dataclass(frozen=True, slots=True)
class CaseComparisons:
    """The comparisons of one pool's questions."""

    case: Case
    comparisons: Sequence[Comparison]
    detail: Any = None
    """What else the experiment decided about the pool."""
    number: int = 0
    """The number of the pool in the benchmark, which decides the side that is asked first."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """The values of all answers, unit by unit."""

    traced: Traced
    asking: Asking
    tally: Tally[Key]
    reasons: Counter[str] = field(default_factory=Counter)
    """Why comparisons could not be made, with their number."""
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    allocation: AllocationReport = field(default_factory=AllocationReport)
    """The number of draws of each comparison, if a pilot decides."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Describe answers that were refused, unparsable or missing, and how draws were divided."""
        notes = describe_outcomes(self.outcomes)
        report = self.allocation
        return (*notes, report.describe("Draws")) if report.draws else notes

    @property
    def setting(self) -> Setting:
        """What all rows of the stage share."""
        return self.asking.setting(self.traced.setting)

    def list_reasons(self, template: str) -> tuple[str, ...]:
        """Note why comparisons could not be made; the template has `{number}` and `{reason}`."""
        return tuple(
            template.format(number=number, reason=reason) for reason, number in self.reasons.items()
        )

    def conclude(
        self,
        name: str,
        rows: list[EstimateRow],
        describe: Callable[[Sequence[EstimateRow]], Iterable[Statement]],
        notes: Sequence[str],
    ) -> StageResult:
        """Describe the rows of all models whose answers could be read."""
        readable, silent = leave_out_silent(rows, self.outcomes, name)
        statements = (*silent, *describe(readable))
        return StageResult(rows, statements, (*notes, *self.notes))

    @property
    def has_duplicate_options(self) -> bool:
        """Whether any question has two options with the same text."""
        cases = self.traced.benchmark.cases
        return any(question.duplicate_options for case in cases for question in case.questions)


Compare = Callable[[Traced, Asking, Case, StoredRun], CaseComparisons]
"""Makes the comparisons of a pool from the traces of a run."""
Enter = Callable[[PoolAnswers], None]
"""Adds the values of the answers to a pool's comparisons, for every model and batch."""
Finish = Callable[[Gathered], StageResult]
"""Turns the values of all pools into rows, statements and notes."""


@dataclass(frozen=True, slots=True)
class ComparisonStage:
    """Asks the comparisons of an experiment and turns the answers into rows."""

    name: str
    asking: Asking
    compare: Compare
    enter: Enter
    finish: Finish | None = None
    """By default, every value is estimated and nothing is stated."""
    configuration: Mapping[str, object] = field(default_factory=dict)
    """Settings that make its results comparable, besides the models and the form of prompts."""
    list_findings: Callable[[Traced, CaseComparisons], Iterable[Finding]] | None = None
    """Lists results of a pool that are not a single number."""
    check: Callable[[Traced], None] | None = None
    """Refuses a benchmark that the experiment cannot use."""
    adjust_costs: Callable[[Traced, dict[str, Cost]], dict[str, Cost]] | None = None
    """Adjusts what a dry run says that asking takes."""

    def described(self) -> Mapping[str, object]:
        """Describe what makes the results comparable."""
        return {**self.asking.described(), **self.configuration}

    @property
    def models(self) -> Sequence[Model]:
        """The models that are asked."""
        return self.asking.models

    def inspect(self, traced: Traced, inspections: Mapping[str, Inspection]) -> None:
        """Look up in files of recorded answers what will be asked."""
        with traced.run.read() as stored:
            for portion in self._portions(traced, stored):
                inspect_answers(_join(portion), self.asking, inspections)

    def price(self, traced: Traced) -> Mapping[str, Cost]:
        """Price what asking would take, by model."""
        with traced.run.read() as stored:
            costs = self._price_portions(traced, self._portions(traced, stored), traced.planned)
        return costs if self.adjust_costs is None else self.adjust_costs(traced, costs)

    def perform(self, traced: Traced, answer_progress: AnswerProgress | None) -> StageResult:
        """Collect missing answers, some pools at a time, and turn all of them into rows."""
        collection = Gathered(traced, self.asking, Tally(traced.benchmark.weighting))
        pools = len(traced.benchmark.cases)
        progress = None if answer_progress is None else PortionProgress(answer_progress, pools)
        findings: list[Finding] = []
        watch = open_watch(
            traced.until,
            traced.policies,
            traced.schedules,
            models=self.models,
            answers=True,
            builds=traced.builds,
        )
        with traced.run.read() as stored:
            portions = self._portions(traced, stored, small=watch is not None)
            for portion in portions:
                comparisons = _join(portion)
                collection.reasons.update(item.reason for item in comparisons if item.reason)
                if progress is not None:
                    progress.begin_portion(len(portion))
                answers = self._collect(portion, collection, progress)
                self._enter_portion(portion, answers, collection, watch)
                if self.list_findings is not None:
                    for item in portion:
                        findings += self.list_findings(traced, item)
                if watch is not None and watch.holds:
                    break
            left = {} if watch is None else self._price_portions(traced, portions, set())
        if self.list_findings is not None:
            traced.run.keep(self.name, findings)
        result = (self.finish or self._estimate)(collection)
        return (
            result if watch is None else replace(result, stop=_describe_stop(watch, traced, left))
        )

    def _collect(
        self,
        portion: Sequence[CaseComparisons],
        collection: Gathered,
        progress: AnswerProgress | None,
    ) -> AnswersByModel | StagedAnswers:
        """Collect the missing answers of some pools, and count how all of them ended."""
        comparisons, run = _join(portion), collection.traced.run
        pools = {c.question.id: item.number for item in portion for c in item.comparisons}
        if not self.asking.manner.allocate:
            answers = collect_answers(comparisons, self.asking, run, progress, pools)
            count_outcomes(collection.outcomes, answers)
            return answers
        by_question = collection.traced.benchmark.weighting == "question"
        weights = {
            question.id: 1.0 if by_question else 1 / len(item.case.questions)
            for item in portion
            for question in item.case.questions
        }
        staged, collections = collect_where_answers_differ(
            comparisons, self.asking, run, progress, pools, weights, collection.allocation
        )
        for collected in collections:
            count_outcomes(collection.outcomes, collected)
        return staged

    def _price_portions(
        self, traced: Traced, portions: Iterable[list[CaseComparisons]], planned: set[LedgerKey]
    ) -> dict[str, Cost]:
        """Price the answers of portions, by model."""
        costs: dict[str, Cost] = {}
        with traced.run.ledger() as ledger:
            for portion in portions:
                price_comparisons(_join(portion), self.asking, ledger, costs, planned)
        return costs

    def _enter_portion(
        self,
        portion: Sequence[CaseComparisons],
        answers: AnswersByModel | StagedAnswers,
        collection: Gathered,
        watch: Watch | None,
    ) -> None:
        values: list[Sequence[str]] = []
        unit_values: list[Sequence[str]] = []
        for item in portion:
            enter = partial(self._enter_pool, collection.traced, item)
            sums: Sums[Key] = {}
            if isinstance(answers, StagedAnswers):
                sums = answers.enter(enter)
            else:
                enter(answers, sums)
            collection.tally.append(sums)
            if watch is not None:
                watch.add(sums)
            values += rows_of(item.case, sums)
            unit_values += unit_rows_of(item.case, sums)
        collection.traced.run.add("per_question", values)
        collection.traced.run.add("per_unit", unit_values)

    def _enter_pool(
        self, traced: Traced, item: CaseComparisons, answers: AnswersByModel, sums: Sums[Key]
    ) -> None:
        place = (traced, self.asking, item.case, strata_of(item.case, traced.masks))
        self.enter(PoolAnswers(*place, item.comparisons, item.detail, answers, sums))

    def _portions(
        self, traced: Traced, stored: StoredRun, *, small: bool = False
    ) -> Iterator[list[CaseComparisons]]:
        """Prepare the prompts of some pools at a time; one without questions has none.

        Small portions are of about a fiftieth of the pools: whether to stop is decided after each.
        """
        most = max(1, len(traced.benchmark.cases) // 50) if small else len(traced.benchmark.cases)
        if self.check is not None:
            self.check(traced)
        portion: list[CaseComparisons] = []
        load = 0.0
        cases = traced.benchmark.cases
        for number, case in zip(traced.pools or range(len(cases)), cases, strict=True):
            if case.questions:
                item = self.compare(traced, self.asking, case, stored)
                portion.append(replace(item, number=number))
                load += measure_load(item.comparisons, self.asking.manner)
            if load >= 1 or len(portion) >= most:
                yield portion
                portion, load = [], 0.0
        if portion:
            yield portion

    def _estimate(self, collection: Gathered) -> StageResult:
        rows = estimate_rows(collection.tally, collection.setting)
        notes = collection.list_reasons("{number} comparisons are left out: {reason}")
        notes = tuple(f"{self.name}: {note}" for note in notes)
        return collection.conclude(self.name, rows, lambda readable: (), notes)


def _describe_stop(watch: Watch, traced: Traced, left: Mapping[str, Cost]) -> Stop:
    """Describe where collecting stopped.

    `left` is what the answers that were not collected would have taken, by model.
    """
    saved = sum(cost.calls or 0 for cost in left.values())
    units = sum(bool(case.questions) for case in traced.benchmark.cases)
    return watch.stop(units, saved)


def _join(portion: Sequence[CaseComparisons]) -> list[Comparison]:
    return [comparison for item in portion for comparison in item.comparisons]


Measure = Callable[[Comparison, Answers], Mapping[str, float | None]]
"""Gives the values of one comparison's answers, by quantity."""


def enter_measures(measure: Measure) -> Enter:
    """Add what `measure` gives for each comparison, averaged over fillers, by condition."""

    def enter(pool: PoolAnswers) -> None:
        name = pool.comparisons[0].experiment if pool.comparisons else ""
        for sheet, fillers, answers in pool.make_sheets(name):
            for (policy, schedule, condition), comparisons in pool.group().items():
                values = [
                    [measure(c, answers) for c in group if c in answers.symbols]
                    for group in pool.select(comparisons, fillers)
                ]
                route = sheet.at(policy=policy, schedule=schedule, arm=condition)
                for quantity in dict.fromkeys(name for each in chain(*values) for name in each):
                    numbers = [
                        average([each.get(quantity) for each in group])
                        if len(group) == len(fillers)
                        else None
                        for group in values
                    ]
                    route.put(quantity, numbers)

    return enter


class PortionProgress:
    """Adds up the progress of portions, and estimates the total from the pools so far."""

    def __init__(self, report: AnswerProgress, pools: int) -> None:
        self._report = report
        self._pools = pools
        self._prepared = 0
        self._earlier: dict[str, int] = {}
        self._current: dict[str, int] = {}

    def begin_portion(self, pools: int) -> None:
        """Begin a portion of this many pools."""
        for name, total in self._current.items():
            self._earlier[name] = self._earlier.get(name, 0) + total
        self._current = {}
        self._prepared = min(self._pools, self._prepared + pools)

    def __call__(self, name: str, progress: Progress) -> None:
        """Report the progress over all portions."""
        earlier = self._earlier.get(name, 0)
        self._current[name] = progress.total
        total = earlier + progress.total
        if self._prepared:
            total = round(total * self._pools / self._prepared)
        done = earlier + progress.done
        left = (total - done) / progress.rate if progress.rate else None
        self._report(name, replace(progress, done=done, total=total, seconds_left=left))
