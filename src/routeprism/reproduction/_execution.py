"""Executing a source run: an ordinary call of the package, of which the needed rows are stored."""

from __future__ import annotations

import statistics
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from routeprism import api
from routeprism.answers import Cost
from routeprism.errors import InputError
from routeprism.labels import mask_from_file, with_label_file
from routeprism.measures import Confusion, Tally
from routeprism.policies import make_policy
from routeprism.records import Benchmark, load_benchmark, only_kinds, only_questions
from routeprism.reproduction._numbers import Reference, find_row
from routeprism.reproduction._published import OUTSIDE, read_published
from routeprism.reproduction._sources import MeasuredRow, SourceRun, SourceValues
from routeprism.runs import Column, EstimateRow, StoredRun

_SEEDS = range(1, 21)
"""Seeds over which limits are compared, to measure how far resampling alone moves them."""
_LIMITS = ("lower", "upper")
_PACKAGES = ("routeprism", "numpy", "scikit-learn")


def execute_source(
    source: SourceRun,
    needed: Collection[Reference],
    *,
    masks: Mapping[str, Path] | None = None,
    workers: int | None = 1,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> SourceValues:
    """Execute one source run, and give the rows that are needed.

    `masks` are files that list the questions of a question set, by its name. The remaining
    arguments are those of `price_source`, and further arguments of the call, such as `labels`,
    which replace those of the source run.
    """
    configuration: dict[str, Any] = {
        "benchmark": source.benchmark,
        "policies": dict(source.policies),
        "packages": {name: version(name) for name in _PACKAGES},
    }
    if source.matrix:
        return SourceValues(configuration, _select_rows(_compute_agreement(source.matrix), needed))
    execution = _prepare(source, needed, masks=masks, **options)
    if source.contents:
        rows = _count_contents(source, execution.benchmark)
        configuration["fingerprint"] = execution.benchmark.fingerprint
        return SourceValues(configuration, _select_rows(rows, needed))
    configuration["fingerprint"] = execution.benchmark.fingerprint
    configuration["options"] = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in execution.options.items()
        if name not in ("allowance", "masks", "models")
    }
    if masks:
        configuration["masks"] = {
            name: f"{len(execution.question_sets[name])} questions of {file.name}"
            for name, file in masks.items()
        }
    if source.asks:
        configuration["model"] = options.get("model")
    execution = replace(
        execution, options={**execution.options, "workers": workers, "progress": progress}
    )
    if execution.needs_all_questions:
        try:
            return SourceValues(configuration, execution.measure_rows())
        except InputError as error:
            if not execution.question_sets:
                raise
            # Recorded answers may cover the question sets alone: the remaining numbers stay empty.
            configuration["part"] = f"only the questions of the given sets were answered: {error}"
    return SourceValues(configuration, execution.restrict_to_sets().measure_rows())


def price_source(
    source: SourceRun, needed: Collection[Reference], **options: Any
) -> Mapping[str, Cost]:
    """Estimate what the answers of one source run would cost, without calling a model.

    Arguments: `data`, the directory of benchmark files; `model`; `readings`, files of support
    passes that become labels; `masks`, as in `execute_source`; `run`, a directory that keeps
    answers so that the same call resumes.
    """
    execution = _prepare(source, needed, **options)
    if not execution.needs_all_questions:
        execution = execution.restrict_to_sets()
    return execution.call(execution.run, dry_run=True).costs


@dataclass(frozen=True, slots=True)
class _Execution:
    """A source run with everything that its call requires."""

    source: SourceRun
    needed: Collection[Reference]
    benchmark: Benchmark
    options: Mapping[str, Any]
    question_sets: Mapping[str, frozenset[str]]
    """The question sets that were passed, by name."""
    run: Path | None = None
    """The directory that keeps answers; a temporary directory if None."""
    restricted: bool = False
    """Whether only the questions of the question sets are asked."""

    @property
    def needs_all_questions(self) -> bool:
        """Whether a number is about questions outside the question sets."""
        names = {reference.questions for reference in self.needed if not reference.whole}
        return not self.question_sets or any(not name or name.startswith(OUTSIDE) for name in names)

    def restrict_to_sets(self) -> _Execution:
        """Return the same execution on the questions of the sets alone, as a run of its own."""
        questions = frozenset[str]().union(*self.question_sets.values())
        run = None if self.run is None else self.run.with_name(f"{self.run.name}-part")
        benchmark = only_questions(self.benchmark, questions)
        return replace(self, benchmark=benchmark, run=run, restricted=True)

    def call(self, run: Path | None, **options: Any) -> api.Audit:
        """Call the package."""
        function: Callable[..., api.Audit] = getattr(api, self.source.call)
        policies = self.source.policies.values()
        return function(self.benchmark, *policies, run=run, **self.options, **options)

    def measure_rows(self) -> tuple[MeasuredRow, ...]:
        """Execute, and give the rows that are needed, their policy by role."""
        # The same spec can be written in several ways; rows have the canonical name.
        roles = {make_policy(spec).name: role for role, spec in self.source.policies.items()}
        detailed = [
            (reference, _list_users if reference.by_user else _measure_noise)
            for reference in self.needed
            if reference.by_user or (reference.comparable and reference.number in _LIMITS)
        ]
        with tempfile.TemporaryDirectory() as scratch:
            run = self.run or (Path(scratch) / "run" if detailed else None)
            selected = _select_rows(self._name_rows(self.call(run), roles), self.needed)
            if run is None:
                return selected
            measures = {find_row(selected, reference): measure for reference, measure in detailed}
            names = {role: name for name, role in roles.items()}
            with StoredRun(run) as stored:
                return tuple(
                    measures[row](row, stored, self.benchmark, names) if row in measures else row
                    for row in selected
                )

    def _name_rows(self, result: api.Audit, roles: Mapping[str, str]) -> list[EstimateRow]:
        """Name the policies of a result by role."""
        rows = [replace(row, policy=roles.get(row.policy, row.policy)) for row in result.rows]
        if self.restricted:  # rows over all of these questions are about no set of the paper
            rows = [row for row in rows if row.mask.partition(":")[0] in self.question_sets]
        return rows + _add_up_findings(result, self.source.total, roles)


def _prepare(
    source: SourceRun,
    needed: Collection[Reference],
    *,
    data: Path | None = None,
    model: str | None = None,
    readings: Sequence[Path] = (),
    masks: Mapping[str, Path] | None = None,
    run: Path | None = None,
    **overrides: Any,
) -> _Execution:
    """Read the data, the labels and the question sets of a source run."""
    benchmark = load_benchmark(source.benchmark, data)
    for file in readings:
        benchmark = with_label_file(benchmark, file)
    question_sets = {
        name: mask_from_file(file, benchmark, name=name).question_ids
        for name, file in (masks or {}).items()
    }
    all_masks = {**question_sets, **_select_by_kind(source, benchmark)}
    options = {**source.options, **overrides, "masks": all_masks}
    if source.asks:
        options["models"] = [model]
    return _Execution(source, needed, benchmark, options, question_sets, run)


def _select_by_kind(source: SourceRun, benchmark: Benchmark) -> dict[str, frozenset[str]]:
    """List the questions of the masks that a source run defines by kind."""
    return {
        name: frozenset(
            question.id
            for case in benchmark.cases
            for question in case.questions
            if question.kind in kinds
        )
        for name, kinds in source.masks.items()
    }


def _select_rows(
    rows: Sequence[EstimateRow], needed: Collection[Reference]
) -> tuple[MeasuredRow, ...]:
    measured = [MeasuredRow(row) for row in rows]
    matches = (find_row(measured, reference) for reference in needed)
    return tuple({match.row.identity: match for match in matches if match is not None}.values())


def _measure_noise(
    measured: MeasuredRow, stored: StoredRun, benchmark: Benchmark, names: Mapping[str, str]
) -> MeasuredRow:
    """Measure how far the limits move with the seed, from the values by question."""
    values = _read_questions(measured.row, stored, names)
    if values is None or measured.row.stratum != "all":
        return measured
    tally: Tally[str] = Tally(benchmark.weighting)
    for answers in values.values():
        if answers:
            tally.append({"": (sum(answers.values()), len(answers))})
    ends = [tally.estimates(seed=seed, interval=benchmark.interval)[""] for seed in _SEEDS]
    lower = [end.lower for end in ends if end.lower is not None]
    upper = [end.upper for end in ends if end.upper is not None]
    if len(lower) < len(ends) or len(upper) < len(ends):
        return measured
    noise = round(statistics.stdev(lower), 6), round(statistics.stdev(upper), 6)
    return replace(measured, lower_noise=noise[0], upper_noise=noise[1])


def _list_users(
    measured: MeasuredRow, stored: StoredRun, benchmark: Benchmark, names: Mapping[str, str]
) -> MeasuredRow:
    """List what each user adds: the value of all its questions, or one with its own weight."""
    row = measured.row
    values = _read_questions(row, stored, names)
    if values is not None:
        sets = [{round(n, 12) for n in values[user].values()} for user in sorted(values)]
        if any(len(numbers) != 1 for numbers in sets):
            return measured  # it depends on which of the user's questions are asked
        users = [(min(numbers), 1.0) for numbers in sets]
    else:
        columns = {name: getattr(row, name, "") for name in Column._fields}
        column = Column(**{**columns, "policy": names.get(row.policy, row.policy)})
        units = sorted(stored.per_unit(row.interface, column), key=lambda unit: unit.user)
        users = [(round(unit.total / unit.number, 12), float(unit.number)) for unit in units]
    return replace(measured, users=tuple(users))


def _read_questions(
    row: EstimateRow, stored: StoredRun, names: Mapping[str, str]
) -> Mapping[str, Mapping[str, float]] | None:
    """Read the values that a row is the mean of, by user and question; None if it has none."""
    columns = {
        name: getattr(row, name)
        for name in Column._fields
        if name not in ("policy", "quantity") and hasattr(row, name)
    }
    policy = names.get(row.policy, row.policy)
    values = stored.per_question(policy=policy, quantity=row.quantity, **columns)
    return next(iter(values.values())) if len(values) == 1 else None


def _count_contents(source: SourceRun, benchmark: Benchmark) -> list[EstimateRow]:
    """Count a benchmark's records and questions, and the contexts that show several records."""
    counts: Counter[tuple[str, str]] = Counter()
    kinds = source.options["kinds"]
    for case in only_kinds(benchmark, kinds).cases:
        records = case.pool.records
        counts["", "count.records"] += len(records)
        counts["", f"count.questions.{len(records)}"] += len(case.questions)
        for role, spec in source.policies.items():
            for order in (records, records[::-1]):
                memory = make_policy(spec).build(order)
                exposures = (memory.expose(question.text) for question in case.questions)
                counts[role, "count.several_records"] += sum(
                    len(exposure.blocks) > 1 for exposure in exposures
                )
    return [
        EstimateRow(
            experiment=source.contents["experiment"],
            benchmark=benchmark.name,
            policy=role,
            quantity=quantity,
            estimate=float(number),
        )
        for (role, quantity), number in counts.items()
    ]


def _add_up_findings(
    result: api.Audit, total: Mapping[str, str], roles: Mapping[str, str]
) -> list[EstimateRow]:
    """Add up a field of all findings of one name, for each policy."""
    values: dict[str, list[int]] = {}
    for finding in result.findings:
        if finding.name == total.get("finding"):
            values.setdefault(finding.policy, []).append(finding.value[total["field"]])
    return [
        EstimateRow(
            experiment=total["experiment"],
            benchmark=result.benchmark,
            policy=roles.get(policy, policy),
            schedule=total["schedule"],
            quantity=total["quantity"],
            estimate=float(sum(numbers)),
            units=len(numbers),
        )
        for policy, numbers in values.items()
    ]


def _compute_agreement(source: Mapping[str, str]) -> list[EstimateRow]:
    """Compute agreement, κ and the counts of both readings from a published confusion matrix."""
    cells = [printed for printed in read_published() if printed.label == source["table"]]
    labels = tuple(dict.fromkeys(printed.row for printed in cells))
    counts = tuple(
        tuple(int(printed.text) for printed in cells if printed.row == row) for row in labels
    )
    matrix = Confusion(labels, counts)
    numbers: dict[str, float | None] = {
        "count.agreed": float(matrix.agreed),
        "agreement": matrix.agreement,
        "kappa": matrix.kappa,
    }
    for at, label in enumerate(labels):
        numbers[f"count.A.{label}"] = float(sum(counts[at]))
        numbers[f"count.B.{label}"] = float(sum(row[at] for row in counts))
    return [
        EstimateRow(
            experiment=source["experiment"],
            benchmark="",
            quantity=quantity,
            estimate=value,
            queries=matrix.total,
        )
        for quantity, value in numbers.items()
    ]
