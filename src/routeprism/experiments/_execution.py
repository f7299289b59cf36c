"""The steps that studies share: a study opens a run, works on cases in order, and finishes it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from routeprism import workers as pool
from routeprism.answers import AnswerProgress
from routeprism.errors import LimitError
from routeprism.exhibits import Statement
from routeprism.experiments._checkpoints import Checkpoints, name_job
from routeprism.experiments._experiment import map_own_entries, source_of_answers
from routeprism.experiments._result import Audit
from routeprism.experiments._shards import Shard, ShardResults
from routeprism.models import Allowance
from routeprism.records import Benchmark
from routeprism.runs import Cassette, EstimateRow, Finding, Run, explain_shard, unite_ledgers
from routeprism.workers import Crew, Home, RayCluster

Progress = Callable[[int, int], None]
"""Callback with the number of cases that are done, and of all cases."""
Steps = Callable[[str, int, int], None]
"""Receives the name of the step that begins, its number from 0, and how many steps there are."""


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
    if merged is not None:
        merged.check(configuration, benchmark.inputs)
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
T = TypeVar("T")


def map_cases(
    work: Callable[[PlanType, int], ResultType],
    plan: Callable[[], PlanType],
    add: Callable[[ResultType], None],
    number: int,
    run: Run | None,
    execution: RunExecution,
    *,
    batch: int = 8,
    allowance: Allowance | None = None,
    stop: Callable[[ResultType], bool] | None = None,
    resumable: bool = False,
) -> None:
    """Work on every case in order, store its tables, `add` its result, and report progress.

    With an `allowance`, results from before its limit was reached are kept. If `stop`
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
        for result in results if allowance is None else _until_limit(results, allowance):
            done += 1
            checkpoints.write(result)
            add(result)
            if execution.progress is not None:
                execution.progress(done, number)
            if stop is not None and stop(result):
                break


def map_units(work: Callable[[int], T], number: int, execution: RunExecution | None) -> Iterator[T]:
    """Work on the pools of a stage one after the other, or read what shards have done.

    A shard, whose stages see its own pools alone, stores the results.
    """
    if execution is not None and execution.merged is not None:
        yield from execution.merged.read(number)
        return
    shard = None if execution is None else execution.shard
    file = None if shard is None else shard.file
    if file is not None:
        file.begin_pass()
    for index in range(number):
        result = work(index)
        if file is not None:
            file.append(result)
        yield result


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


def _until_limit(results: Iterator[ResultType], allowance: Allowance) -> Iterator[ResultType]:
    with suppress(LimitError), naming_limit(allowance):
        yield from results


@contextmanager
def naming_limit(allowance: Allowance | None) -> Iterator[None]:
    """Raise `LimitError` for whatever fails because a call was refused."""
    try:
        yield
    except Exception:
        if allowance is not None:
            allowance.check()
        raise


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
