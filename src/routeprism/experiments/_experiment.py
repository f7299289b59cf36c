"""What an experiment is, and the registry of all experiments that are installed.

An experiment is one object in the entry-point group `routeprism.experiments`. The command line, the
Python functions, the report, `trace`, recorded answers and the manifest read the registry and name
no experiment, so a new experiment is one file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from routeprism.errors import SpecError
from routeprism.exhibits import (
    Chart,
    Results,
    Statement,
    Table,
    draw_forest,
    format_row,
    make_table,
)
from routeprism.orders import name_reference
from routeprism.quantities import find_quantity
from routeprism.runs import EstimateRow, Finding, Rows, StoredRun
from routeprism.specs import EXTENSIONS, Extension, registered

if TYPE_CHECKING:
    from routeprism.experiments._case import Plan
    from routeprism.experiments._collection import Asking
    from routeprism.experiments._observations import Observations
    from routeprism.experiments._rows import Group, Setting
    from routeprism.experiments._stages import Stage
    from routeprism.labels import LabelledItems
    from routeprism.records import Benchmark

Place = tuple[tuple[str, str], ...]
"""(column, value) pairs that name an answer in files of recorded answers, in a fixed order."""


@dataclass(frozen=True, slots=True)
class AnswerNames:
    """The names of one side of a comparison, as the table `comparisons` of a run stores them."""

    question: str
    policy: str
    schedule: str
    filler: str
    condition: str
    side: str


@dataclass(frozen=True, slots=True)
class AnswerSelection:
    """The stored answers that a number is computed from."""

    experiment: str
    """The name under which the answers are stored."""
    sides: tuple[str, ...] = ()
    """The sides that it reads; empty for all of them."""
    conditions: tuple[str, ...] | None = None
    """The conditions that it reads; None for all of them."""
    batches: tuple[str, ...] = ()
    """The batches that it reads; empty for the batch of the row."""


@dataclass(frozen=True, slots=True)
class AuditOutcome:
    """All numbers of an audit, and what they were computed from."""

    rows: Rows
    plan: Plan
    setting: Setting
    observations: Observations
    noisy: frozenset[str]
    """The policies whose builds may differ within an order."""
    is_incomplete: bool = False
    """Whether answers or routes are missing."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What an experiment concludes from the numbers of an audit."""

    statements: tuple[Statement, ...] = ()
    findings: Mapping[str, Sequence[Finding]] = field(default_factory=dict)
    """What the run stores, by the name under which it is stored."""

    def list_findings(self) -> Iterator[Finding]:
        """List the findings under all names."""
        for findings in self.findings.values():
            yield from findings


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One experiment: its name, its settings, what it performs, and how its numbers are shown.

    Only `name`, `title` and `stage` are required for an experiment of your own.
    """

    name: str
    """Its name, the value of the column `experiment`, and the name that its answers have."""
    title: str
    """The heading of its section in the report."""
    summary: str = ""
    """One sentence for `list` and for help."""
    commands: tuple[str, ...] = ("audit",)
    """The commands that perform it."""
    rank: int = 100
    """Experiments are performed and shown by rank, then by name."""
    tab: Literal["summary", "experiments", "orders"] = "experiments"
    """The tab of the report that shows its section."""
    settings: type | None = None
    """A frozen dataclass of the options that it adds to its commands.

    Each field has a default and the metadata `help`, and optionally `group` and `identity`. A
    field without `help` receives the option of the same name that the command has anyway.
    """
    stage: Callable[[Any, Asking | None, Benchmark], Stage | None] = lambda *_: None
    """Make what a run performs from settings, who is asked, and a benchmark; None for nothing."""
    columns: tuple[str, ...] = ()
    """The values of the column `experiment` in its rows; by default, its name."""
    row_filter: Callable[[EstimateRow], bool] | None = None
    """Decides which rows are its own where it shares a column with another experiment."""
    answers: str = ""
    """The name under which the answers that it reads are stored; by default, its own name."""
    configuration: tuple[str, ...] = ()
    """The entries of a run's configuration that describe its prompts and no other's."""
    growing: tuple[str, ...] = ()
    """The entries of a run's configuration that may change when the run is extended."""
    masks: tuple[str, ...] = ()
    """The masks that it makes by itself, which a user's mask may not be called."""
    groups: tuple[Group, ...] = ()
    """The groups of questions that its differences compare."""
    statements: Callable[[Rows], Sequence[Statement]] = lambda _: ()
    """Describe its rows, unless its stage or `conclude` does."""
    conclude: Callable[[AuditOutcome], Conclusion] | None = None
    """Describe a whole audit and give findings to store; by default, describes its rows."""
    tables: Callable[[Results], Sequence[Table]] | None = None
    """Make its tables; by default, one table with an estimate in each row."""
    charts: Callable[[Results], Sequence[Chart]] | None = None
    """Make its charts; by default, one chart with an estimate in each line."""
    place: Callable[[AnswerNames], Mapping[str, str]] | None = None
    """Name one of its answers by the columns of files with recorded answers."""
    answers_behind: (
        Callable[[EstimateRow, Mapping[str, Any], Collection[str]], AnswerSelection] | None
    ) = None
    """Select the answers behind a row, given the configuration and the stored conditions."""

    items_behind: (
        Callable[[Path, StoredRun, EstimateRow, Collection[str]], LabelledItems] | None
    ) = None
    """List the labelled items behind a row, given its run and questions; None if it has none."""
    excluded: Callable[[Iterable[tuple[str, str]]], frozenset[str]] | None = None
    """Name the questions of a stratum, given as (user, question), that its rows leave out."""

    @property
    def source(self) -> str:
        """The name under which the answers that it reads are stored."""
        return self.answers or self.name

    def owns(self, row: EstimateRow) -> bool:
        """Return whether a row is a result of this experiment."""
        if row.experiment not in (self.columns or (self.name,)):
            return False
        return self.row_filter is None or self.row_filter(row)

    def conclude_audit(self, outcome: AuditOutcome) -> Conclusion:
        """Describe the numbers of an audit."""
        if self.conclude is not None:
            return self.conclude(outcome)
        return Conclusion(tuple(self.statements(self.select(outcome.rows))))

    def select(self, rows: Rows) -> Rows:
        """Return the rows that are results of this experiment."""
        return Rows.of(row for row in rows if self.owns(row))

    def make_tables(self, results: Results) -> Sequence[Table]:
        """Make the tables of its section."""
        if self.tables is not None:
            return self.tables(results)
        lines = [
            (row.policy, row.schedule, row.arm, row.model, row.quantity, format_row(row))
            for row in self.select(results.rows).where(stratum="all", mask="")
            if row.estimate is not None
        ]
        columns = ("policy", "schedule", "arm", "model", "quantity", "estimate")
        return make_table(self.name, self.title, self.summary, columns, lines, names=5)

    def make_charts(self, results: Results) -> Sequence[Chart]:
        """Make the charts of its section."""
        if self.charts is not None:
            return self.charts(results)
        lines = [
            (" ".join(filter(None, (row.policy, row.schedule, row.arm, row.quantity))), row)
            for row in self.select(results.rows).where(stratum="all", mask="")
            if row.estimate is not None and not row.is_count
        ]
        return [draw_forest(self.name, self.title, lines)] if lines else []

    def find_excluded(self, questions: Iterable[tuple[str, str]]) -> frozenset[str]:
        """Find the questions of a stratum, given as (user, question), that its rows leave out."""
        return frozenset() if self.excluded is None else self.excluded(questions)

    def select_answers(
        self, row: EstimateRow, configuration: Mapping[str, Any], conditions: Collection[str]
    ) -> AnswerSelection:
        """Select the answers behind a row; unless the experiment knows better, all of its arm."""
        if self.answers_behind is not None:
            return self.answers_behind(row, configuration, conditions)
        arms = [arm for arm in (row.arm, "") if arm in conditions]
        return AnswerSelection(self.source, conditions=tuple(arms[:1]) or None)


def registered_experiments(command: str = "", *, tab: str = "") -> tuple[Experiment, ...]:
    """Return all installed experiments by rank, or only those of one command or tab."""
    return tuple(
        experiment
        for experiment in _load_experiments(tuple(sys.path), EXTENSIONS.get())
        if (not command or command in experiment.commands) and (not tab or tab == experiment.tab)
    )


@lru_cache(maxsize=4)
def _load_experiments(
    path: tuple[str, ...], extensions: tuple[Extension, ...]
) -> tuple[Experiment, ...]:
    experiments: dict[str, Experiment] = {}
    for point in registered("experiments").values():
        experiment = point.load()
        if not isinstance(experiment, Experiment):
            raise SpecError(
                f"Expected the entry point '{point.name}' of the group 'routeprism.experiments' to "
                f"be an Experiment but got {experiment!r:.60}"
            )
        if experiment.name in experiments:
            raise SpecError(f"two installed experiments are called '{experiment.name}'")
        experiments[experiment.name] = experiment
    return tuple(
        sorted(experiments.values(), key=lambda experiment: (experiment.rank, experiment.name))
    )


def find_experiment(row: EstimateRow) -> Experiment | None:
    """Return the experiment that a row is a result of; None if it is not installed."""
    return next(
        (experiment for experiment in registered_experiments() if experiment.owns(row)), None
    )


def source_of_answers(column: str) -> str:
    """Name the experiment whose stored answers a value of the column `experiment` reads."""
    for experiment in registered_experiments():
        if column in (experiment.columns or (experiment.name,)) and experiment.answers:
            return experiment.answers
    return column


def list_answer_sources() -> tuple[str, ...]:
    """List the names under which installed experiments store answers."""
    return tuple(dict.fromkeys(experiment.source for experiment in registered_experiments()))


def list_growing() -> tuple[str, ...]:
    """List the entries of a configuration that may change when a run is extended."""
    growing = (name for experiment in registered_experiments() for name in experiment.growing)
    return ("command_line", "masks", *growing)


def list_own_masks() -> frozenset[str]:
    """List the masks that experiments make by themselves."""
    return frozenset(name for experiment in registered_experiments() for name in experiment.masks)


def map_own_entries() -> dict[str, str]:
    """Map entries of a configuration to the one experiment whose prompts they describe."""
    return {
        name: experiment.source
        for experiment in registered_experiments()
        for name in experiment.configuration
    }


def settings_of(experiment: Experiment, options: Mapping[str, Any]) -> Any:
    """Make an experiment's settings from options by name; those that are missing have defaults."""
    if experiment.settings is None:
        return None
    names = {field.name for field in fields(experiment.settings)}
    return experiment.settings(**{n: value for n, value in options.items() if n in names})


def make_stages(
    command: str, options: Mapping[str, Any], asking: Asking | None, benchmark: Benchmark
) -> list[Stage]:
    """Make what a command performs on its traces, experiment by experiment."""
    stages = (
        experiment.stage(settings_of(experiment, options), asking, benchmark)
        for experiment in registered_experiments(command)
    )
    return [stage for stage in stages if stage is not None]


def name_answer(experiment: str, names: AnswerNames, control: str) -> Place:
    """Name one side of a comparison by columns; draws are counted from 0 in each.

    `experiment` is the name under which its answers are stored.
    """
    columns = {"question": names.question, "policy": names.policy, "schedule": names.schedule}
    columns |= _place_maker(experiment)(names)
    return tuple((columns | {"filler": names.filler, "prompt_control": control}).items())


def _place_maker(experiment: str) -> Callable[[AnswerNames], Mapping[str, str]]:
    for item in registered_experiments():
        if item.source == experiment and item.place is not None:
            return item.place

    def place(names: AnswerNames) -> Mapping[str, str]:
        parts = (experiment, names.condition, names.side)
        return {"condition": ":".join(filter(None, parts))}

    return place


def place_route(names: AnswerNames) -> Mapping[str, str]:
    """Name an answer on a route, and the route that it is compared with."""
    return {"schedule": names.side, "condition": names.condition, "pair": names.schedule}


def sides_read(row: EstimateRow) -> tuple[str, ...]:
    """Name the routes whose answers a quantity reads; empty for both."""
    routes = {"forward": name_reference(row.schedule), "route": row.schedule}
    sides = find_quantity(row.quantity).sides
    return tuple(routes[side] for side in sides if side in routes) if len(sides) == 1 else ()


def select_sides(
    source: str, row: EstimateRow, configuration: Mapping[str, Any], conditions: Collection[str]
) -> AnswerSelection:
    """Select the answers on the routes that a row reads, of those that are stored as `source`."""
    return AnswerSelection(source, sides_read(row), ("",))
