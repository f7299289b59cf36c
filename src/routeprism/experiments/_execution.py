"""What every study shares: its subject, its statistics, its run, its cases, and its result.

A study opens a run, works on the cases of a benchmark in order, estimates, and finishes the run.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from routeprism import workers as pool
from routeprism.answers import AnswerProgress, Cost
from routeprism.errors import LimitError, SpecError, nearest
from routeprism.exhibits import Results, Statement, make_card, shorten_lines
from routeprism.experiments._checkpoints import Checkpoints, name_job
from routeprism.experiments._experiment import (
    list_own_masks,
    map_own_entries,
    source_of_answers,
)
from routeprism.experiments._question_rows import list_questions
from routeprism.experiments._rows import Setting
from routeprism.experiments._shards import Shard, ShardResults
from routeprism.experiments._strata import Masks
from routeprism.experiments._until import Until, find_range
from routeprism.experiments.reach import Reach
from routeprism.experiments.statements import choose_statements, comes_first
from routeprism.measures import RESAMPLES, Interval, check_bootstrap, chosen_interval, limits_said
from routeprism.models import Allowance
from routeprism.orders import FORWARD, ArrivalModel, Schedule
from routeprism.policies import (
    Policy,
    builder_model,
    interface_of,
    own_source,
    uses_scripted_model,
)
from routeprism.records import Benchmark
from routeprism.runs import (
    Cassette,
    EstimateRow,
    Finding,
    Rows,
    Run,
    Shortfall,
    explain_shard,
    unite_ledgers,
)
from routeprism.workers import Crew, Home, RayCluster

if TYPE_CHECKING:
    from routeprism.experiments.remedies import Recommendation
    from routeprism.experiments.severity import MemoryVerdict


def _explain_script(policy: str) -> str:
    return (
        f"The scripted model built the memories of {policy}. It follows fixed rules and is not a "
        f"language model: its numbers show how the system adds, updates and deletes in each order, "
        f"not what a language model would decide"
    )


SEED = 20260910
"""The default bootstrap seed."""

Progress = Callable[[int, int], None]
Steps = Callable[[str, int, int], None]
"""Receives the name of the step that begins, its number from 0, and how many steps there are."""
"""Callback with the number of cases that are done, and of all cases."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is studied: memories, on the records and questions of a benchmark."""

    benchmark: Benchmark
    policies: Sequence[Policy]
    schedules: Sequence[Schedule] = ()
    kinds: Sequence[str] = ()
    """The kinds of question that the benchmark was narrowed to."""
    labels: str | None = None
    """The label source that support is read from; None for the benchmark's first."""
    masks: Masks = field(default_factory=dict)
    arrivals: Sequence[ArrivalModel] = ()
    """Arrival models whose expectations are estimated beside the schedules."""
    notes: Sequence[str] = ()
    """What a reader should know about the choice of orders."""

    def check(self) -> Subject:
        """Refuse what cannot be studied; give each policy and schedule once, and the labels."""
        return replace(
            self,
            policies=_take_distinct(self.policies),
            schedules=tuple(dict.fromkeys(s for s in self.schedules if s.name != FORWARD.name)),
            labels=_label_source(self.benchmark, self.labels),
            masks=_check_masks(self.masks),
            notes=(*self.notes, *map(_explain_script, self.scripted)),
        )

    @property
    def support(self) -> str:
        """The label source by name; empty for none."""
        return self.labels or ""

    @property
    def updates(self) -> str:
        """The label source of outdated evidence: that of support where it has some."""
        sources = self.benchmark.updates
        return self.support if self.support in sources else next(iter(sources), "")

    @property
    def names(self) -> list[str]:
        """The names of the policies."""
        return [policy.name for policy in self.policies]

    @property
    def scripted(self) -> list[str]:
        """The names of the policies whose memories the scripted model builds."""
        return [policy.name for policy in self.policies if uses_scripted_model(policy)]

    def describe(self) -> dict[str, object]:
        """Return what makes results comparable, for the manifest."""
        return {
            **describe_benchmark(self.benchmark),
            "synthetic": self.benchmark.synthetic,
            "policies": self.names,
            "sources": {p.name: source for p in self.policies if (source := own_source(p))},
            "interfaces": [interface_of(policy) for policy in self.policies],
            "kinds": sorted(self.kinds),
            "labels": self.support,
            **({"scripted": self.scripted} if self.scripted else {}),
        }

    def digest_masks(self) -> dict[str, str]:
        """Return the digest of each mask's question ids."""
        return {
            name: hashlib.sha256("\n".join(sorted(ids)).encode()).hexdigest()
            for name, ids in self.masks.items()
        }


def describe_benchmark(benchmark: Benchmark) -> dict[str, object]:
    """Return what makes results on a benchmark comparable, for the manifest."""
    names = ("fingerprint", "unit", "weighting")
    return {"benchmark": benchmark.name, **{name: getattr(benchmark, name) for name in names}}


def _take_distinct(policies: Sequence[Policy]) -> tuple[Policy, ...]:
    """Take each policy once; refuse two of the same name."""
    by_name: dict[str, Policy] = {}
    for policy in policies:
        if by_name.setdefault(policy.name, policy) != policy:
            raise SpecError(f"two different policies are called '{policy.name}'")
    return tuple(by_name.values())


def _label_source(benchmark: Benchmark, labels: str | None) -> str:
    """Return the label source to read; the benchmark's first unless named."""
    if labels is None:
        return benchmark.labels[0] if benchmark.labels else ""
    if labels not in benchmark.labels:
        raise SpecError(
            f"benchmark '{benchmark.name}' has no labels '{labels}'. "
            + (nearest(labels, benchmark.labels) or "It has none.")
        )
    return labels


def _check_masks(masks: Masks) -> Masks:
    """Refuse masks whose names or ids cannot be used."""
    for name in masks:
        if not name or name in list_own_masks() or name.startswith("outside-"):
            raise SpecError(f"a mask cannot be called {name!r}")
        if ":" in name:
            raise SpecError(f"Expected a mask's name without ':' but got {name!r}")
    for name, ids in masks.items():
        if isinstance(ids, str):
            raise SpecError(f"Expected question ids for mask '{name}' but got the text {ids!r:.60}")
    return {name: frozenset(ids) for name, ids in masks.items()}


@dataclass(frozen=True, slots=True)
class Statistics:
    """How estimates are computed."""

    seed: int = SEED
    resamples: int = RESAMPLES
    interval: Interval | None = None
    """How limits are read from the resamples; None for the benchmark's own kind."""
    until: Until | None = None
    """The statement at which the study stops; None to use all units."""

    def setting(self, subject: Subject, policies: Sequence[Policy], **details: Any) -> Setting:
        """Return what all rows of a study share; `details` are further fields of `Setting`."""
        built_in = {
            policy.name
            for policy in policies
            if (model := builder_model(policy)) is not None and model.embedded
        }
        return Setting(
            subject.benchmark,
            {policy.name: interface_of(policy) for policy in policies},
            self.seed,
            self._interval(subject.benchmark),
            self.resamples,
            embedded=built_in,
            scripted={policy.name for policy in policies if uses_scripted_model(policy)},
            sequential=None if self.until is None else find_range,
            **details,
        )

    def check(self, benchmark: Benchmark) -> Statistics:
        """Refuse numbers that give no interval; choose how limits are read."""
        check_bootstrap(self.seed, self.resamples)
        unequal = benchmark.weighting == "question" and benchmark.unit != "question"
        if self.until is not None and unequal:
            raise SpecError(
                f"until does not apply to '{benchmark.name}': it weighs questions equally and "
                f"resamples {benchmark.unit}s, and stopping requires units with equal weights"
            )
        return replace(self, interval=self._interval(benchmark))

    def _interval(self, benchmark: Benchmark) -> Interval:
        return chosen_interval(self.interval, benchmark.interval)

    def describe(self) -> dict[str, object]:
        """Return what makes results comparable, for the manifest."""
        fixed = {name: getattr(self, name) for name in ("seed", "resamples", "interval")}
        return fixed if self.until is None else {**fixed, "until": self.until.text}

    def explain_limits(self, benchmark: Benchmark) -> str:
        """Describe in words how the limits of the rows were read."""
        return limits_said(self._interval(benchmark), benchmark.interval)


@dataclass(frozen=True, slots=True)
class Pacing:
    """How models are asked while memories are built, and what that may cost."""

    rate_limit: float | None = None
    """Requests a minute at most, for each model."""
    concurrency: int | None = None
    """Builds at once, where it should differ from the model's own number."""
    dry_run: bool = False
    """Whether to count instead of asking."""
    allowance: Allowance | None = None
    """What the command may still spend."""
    measure: bool = False
    """Whether a dry run builds memories that make requests of their own once, to measure them."""
    replay: Cassette | None = None
    """Recorded replies that stand for every model."""
    record: Path | None = None
    """The cassette that replies are written to."""
    cluster: RayCluster | None = None
    """Where models that compute in this process answer instead."""


@dataclass(frozen=True, slots=True)
class RunExecution:
    """Where the work is done, where its run is stored, and who is informed of its progress."""

    directory: Path | None = None
    """Where the run is stored; None to store nothing."""
    workers: int | None = None
    """Processes; None for a number that suits the benchmark."""
    ray: str | None = None
    """The address of a Ray cluster that does the work instead."""
    crew: Crew | None = None
    """Processes that were started before, which saves their start."""
    progress: Progress | None = None
    answer_progress: AnswerProgress | None = None
    """Progress callback for answer collection."""
    command_line: tuple[str, ...] = ()
    """The words of the command that resumes the run; empty if there is no such command."""
    shard: Shard | None = None
    """The part of the pools to work on; None for all."""
    merged: ShardResults | None = None
    """Results of shards, which are read instead of working on the pools and asking models."""
    home: Home = field(default_factory=dict)
    """Objects that stay in this process while a cluster works: limits, ledgers, progress."""
    steps: Steps | None = None
    """Progress callback for the steps of a study, such as building memories and asking models."""

    def begin_step(self, name: str, number: int, total: int) -> None:
        """Report that a step begins."""
        if self.steps is not None:
            self.steps(name, number, total)

    def count_pools(self, number: int) -> int:
        """Count the pools to work on, of a number of pools."""
        return number if self.shard is None else len(self.shard.choose(number))

    def describe_shard(self) -> dict[str, object]:
        """Return the shard for the manifest, if there is one."""
        return {} if self.shard is None else {"shard": str(self.shard)}

    def keep_home(self, items: Mapping[str, object | None]) -> RunExecution:
        """Return the same execution, whose workers call these objects here."""
        return replace(self, home={name: item for name, item in items.items() if item})

    def on_one_process(self) -> RunExecution:
        """Return the same execution for work whose state or whose costs exist in this process."""
        return replace(self, workers=1, ray=None)

    def choose_workers(self, cases: int, *, many: int) -> RunExecution:
        """Use all cores from `many` cases on, unless the number of processes is given."""
        if self.workers is not None:
            return self
        return replace(self, workers=pool.available() if cases >= many else 1)


@dataclass(frozen=True, slots=True, repr=False)
class Audit:
    """The result of a study."""

    benchmark: str
    rows: Rows
    """Every number, as in `estimates.csv`."""
    statements: tuple[Statement, ...]
    """What the numbers show, policy by policy."""
    notes: tuple[str, ...]
    """What a reader of the numbers should know."""
    counts: Mapping[str, int]
    """Pools, records, questions."""
    directory: Path | None = None
    """Where the run is stored, if it is."""
    costs: Mapping[str, Cost] = field(default_factory=dict)
    """After a dry run: what each model would take."""
    findings: tuple[Finding, ...] = ()
    """Results of an experiment on orders about pools and questions, beyond single numbers."""
    tables: Mapping[str, Sequence[Sequence[object]]] = field(default_factory=dict, repr=False)
    """Rows of the store that the caller asked for, by table."""
    limits: str = ""
    """How the 95% limits of the rows were read, in words."""
    shortfall: Shortfall = field(default_factory=Shortfall)
    """Answers and routes that are missing, and why."""
    reaches: tuple[Reach, ...] = ()
    """The verdict on each policy: how far order reaches into it."""
    measure_repairs: Callable[[], Audit] | None = field(default=None, repr=False, compare=False)
    """Measures the standard repairs of the audited memories; None if they were not audited."""
    repeat: Callable[[Path], object] | None = field(default=None, repr=False, compare=False)
    """Repeats the study and stores it in a directory; None if it is stored already."""

    @classmethod
    def of_costs(cls, benchmark: Benchmark, costs: Mapping[str, Cost], **more: Any) -> Audit:
        """Return the result of a dry run."""
        return cls(benchmark.name, Rows(), (), benchmark.notes, {}, costs=costs, **more)

    @property
    def results(self) -> Results:
        """The rows and findings that tables and charts are made from."""
        findings: dict[str, list[Finding]] = {}
        for finding in self.findings:
            findings.setdefault(finding.name, []).append(finding)
        return Results(self.rows, findings)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The statements as texts."""
        return tuple(map(str, self.statements))

    def value(self, quantity: str, **where: str) -> EstimateRow:
        """Return the one row with this quantity and these columns; by default, stratum `all`."""
        return self.rows.one(quantity, **where)

    def to_pandas(self) -> Any:
        """Return every number as a pandas data frame with the columns of `estimates.csv`."""
        return self.rows.to_pandas()

    @property
    def verdicts(self) -> list[MemoryVerdict]:
        """How bad the effect of order is for each memory."""
        from routeprism.experiments.severity import decide_results

        return decide_results(self.results)

    @property
    def verdict(self) -> str:
        """The most severe level of all memories; empty if no memory was audited."""
        from routeprism.experiments.severity import LEVELS

        levels = [verdict.level for verdict in self.verdicts]
        return max(levels, key=LEVELS.index, default="")

    def remedies(self) -> list[Recommendation]:
        """Return the repair that each memory should get.

        After `routeprism.audit` this measures the standard repairs first, as `routeprism.remedy`
        does, on the same records and orders of arrival. No model is asked.
        """
        from routeprism.experiments.remedies import recommend_results

        if self.results.findings.get("repair") or self.measure_repairs is None:
            return recommend_results(self.results)
        return self.measure_repairs().remedies()

    def questions(self) -> list[dict[str, Any]]:
        """Return one row for each question with the records and the accuracy of each order.

        `pandas.DataFrame(result.questions())` makes a data frame. An audit that is not stored is
        repeated for it, unless that would cost money or the memory differs by chance.
        """
        with self._stored_run() as directory:
            return list_questions(directory)

    def report(self, path: Path | str) -> Path:
        """Write the report of the run to a file; an audit that is not stored is repeated for it."""
        # The report package is above this one, so it is not imported with it.
        pages: Any = import_module("routeprism.report")
        with self._stored_run() as directory:
            page: Path = pages.write_report(directory, Path(path))
            return page

    @contextmanager
    def _stored_run(self) -> Iterator[Path]:
        """Provide the directory of the run, for a moment if it is not stored."""
        if self.directory is not None:
            yield self.directory
            return
        if self.repeat is None:
            raise SpecError("The run is not stored: pass run='DIRECTORY' to the function")
        with tempfile.TemporaryDirectory() as directory:
            self.repeat(Path(directory) / "run")
            yield Path(directory) / "run"

    def _list_lines(self) -> list[str]:
        """Return the verdict and the first statements of each memory, in a few lines."""
        counts = ", ".join(f"{number} {name}" for name, number in self.counts.items())
        lines = [f"{self.benchmark}: {counts}"]
        verdicts = self.verdicts
        lines += [f"{verdict.policy}: {verdict.level}" for verdict in verdicts[:_MOST_MEMORIES]]
        first = [statement for statement in self.statements if comes_first(statement)]
        statements = [*first, *choose_statements(self.statements, [v.policy for v in verdicts])]
        lines += map(str, statements or self.statements)
        lines += [*filter(None, (self.limits,)), *(f"Note: {note}" for note in self.notes)]
        return lines

    def __str__(self) -> str:
        return shorten_lines(self._list_lines(), "sentences and notes")

    def __repr__(self) -> str:
        parts = filter(None, (self.verdict, f"{len(self.rows)} numbers"))
        return f"<Audit of {self.benchmark}: {', '.join(parts)}>"

    def _repr_html_(self) -> str:
        """Show the verdict of each memory as a short card in a notebook."""
        from routeprism.experiments.severity import tabulate_verdicts

        tables = tabulate_verdicts(self.results)
        cells = [[str(cell) for cell in row] for table in tables for row in table.rows]
        header = [list(table.columns) for table in tables]
        kinds = ("sanity", "severity", "causes", "recommendation")
        texts = [str(s) for s in self.statements if s.kind in kinds]
        sentences = texts or list(self.sentences)
        return make_card(self.benchmark, sentences, [*header, *cells[:_MOST_MEMORIES]])


_MOST_MEMORIES = 10
"""How many memories a result lists before its statements."""


@contextmanager
def open_run(
    directory: Path | None,
    configuration: Mapping[str, object],
    benchmark: Benchmark,
    *,
    growing: Sequence[str] = (),
    temporary: bool = False,
    command_line: Sequence[str] = (),
    staged: bool = False,
    merged: ShardResults | None = None,
) -> Iterator[Run | None]:
    """Open the run of a study; None if it is stored nowhere.

    Without a directory, a `temporary` run exists for the time of this call alone. The command line
    that resumes the run is recorded, but does not make it a different run. What the models of
    `merged` shards replied is put into the run.
    """
    if command_line:
        configuration = {**configuration, "command_line": list(command_line)}
    growing = (*growing, "command_line")
    with ExitStack() as stack:
        if directory is None and temporary:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "run"
        if directory is None:
            yield None
            return
        opened = Run.open(
            directory, configuration, inputs=benchmark.inputs, growing=growing, staged=staged
        )
        run = stack.enter_context(opened)
        if merged is not None:
            unite_ledgers(run.store, merged.ledgers)
        yield run


class StoredResult(Protocol):
    """The result of working on one case."""

    @property
    def tables(self) -> Mapping[str, Iterable[Sequence[Any]]]:
        """Rows for the store, by table."""


PlanType = TypeVar("PlanType")
ResultType = TypeVar("ResultType", bound=StoredResult)


def map_cases(
    work: Callable[[PlanType, int], ResultType],
    plan: Callable[[], PlanType],
    add: Callable[[ResultType], None],
    number: int,
    run: Run | None,
    execution: RunExecution,
    *,
    batch: int = 8,
    until_limit: bool = False,
    stop: Callable[[ResultType], bool] | None = None,
    resumable: bool = False,
) -> None:
    """Work on every case in order, store its tables, `add` its result, and report progress.

    With `until_limit`, results from before the spending limit was reached are kept. If `stop`
    returns true for a result, the cases after it are left out. If the work is `resumable`, an
    interrupted call is continued after its last checkpoint.
    """
    file = None if execution.shard is None else execution.shard.file
    whole = execution.merged is None and stop is None
    # Later passes of a shard follow the results of the first, which are written again.
    first = file is None or not file.counts
    job = name_job(run, number) if run is not None and resumable and whole and first else ""
    with nullcontext() if run is None else run.writing(job) as writer:
        checkpoints = Checkpoints(writer, execution.count_pools(number), file)
        done = 0
        for result in checkpoints.read():
            done += 1
            add(result)
        results, number = _open_results(work, plan, number, execution, batch, first=done)
        for result in _until_limit(results) if until_limit else results:
            done += 1
            checkpoints.write(result)
            add(result)
            if execution.progress is not None:
                execution.progress(done, number)
            if stop is not None and stop(result):
                break


def _open_results(
    work: Callable[[PlanType, int], ResultType],
    plan: Callable[[], PlanType],
    number: int,
    execution: RunExecution,
    batch: int,
    *,
    first: int = 0,
) -> tuple[Iterator[ResultType], int]:
    """Begin the work on the pools, of a shard if there is one; or read what shards have done.

    The pools before the `first` are done already.
    """
    if execution.merged is not None:
        return execution.merged.read(number), number
    shard = execution.shard
    places = (range(number) if shard is None else shard.choose(number))[first:]
    results = pool.ordered_map(
        work if places == range(number) else partial(_work_at, work, places),
        plan,
        len(places),
        workers=execution.workers or 1,
        ray=execution.ray,
        batch=batch,
        crew=execution.crew,
        home=execution.home,
    )
    return results, first + len(places)


def _work_at(
    work: Callable[[PlanType, int], ResultType], places: range, plan: PlanType, place: int
) -> ResultType:
    return work(plan, places[place])


def _until_limit(results: Iterator[ResultType]) -> Iterator[ResultType]:
    with suppress(LimitError):
        yield from results


def _mark_scripted(
    statements: Iterable[Statement], rows: Iterable[EstimateRow]
) -> tuple[Statement, ...]:
    """Flag every statement about a memory that the scripted model built."""
    built = {row.policy for row in rows if "scripted" in row.flags.split(";")}
    return tuple(
        replace(statement, flags=(*statement.flags, "scripted"))
        if statement.policy in built and "scripted" not in statement.flags
        else statement
        for statement in statements
    )


def finish_run(
    run: Run | None,
    result: Audit,
    findings: Mapping[str, Iterable[Finding]],
    masks: Mapping[str, Collection[str]] | None = None,
) -> Audit:
    """Write the result, with the findings of each experiment, into its run, if it has one."""
    result = replace(result, statements=_mark_scripted(result.statements, result.rows))
    part = None if run is None else run.manifest["configuration"].get("shard")
    if part is not None:
        result = replace(result, notes=(explain_shard(part), *result.notes))
    if run is not None:
        experiments = {row.experiment for row in result.rows}
        run.finish(
            result.rows,
            {**result.counts, "estimates": len(result.rows)},
            statements=result.statements,
            notes=result.notes,
            limits=result.limits,
            shortfall=result.shortfall,
            answer_sources={name: source_of_answers(name) for name in experiments},
            own_entries=map_own_entries(),
            findings=findings,
            masks=masks,
        )
    return result
