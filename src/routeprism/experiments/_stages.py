"""What comes after the traces: stages, each from the cells it needs to estimate rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Protocol

from routeprism.answers import AnswerProgress, Cost
from routeprism.exhibits import Statement
from routeprism.experiments._rows import Setting
from routeprism.experiments._strata import Masks
from routeprism.experiments._until import Stop, Until
from routeprism.experiments.mechanism import Contrast
from routeprism.models import Model
from routeprism.models.recorded import Inspection, Recorded
from routeprism.orders import Schedule
from routeprism.policies import Policy
from routeprism.records import Benchmark
from routeprism.runs import EstimateRow, Finding, Key, Run

if TYPE_CHECKING:
    from routeprism.experiments._execution import RunExecution


@dataclass(frozen=True, slots=True)
class Traced:
    """A run whose traces are stored, and what they were made from."""

    run: Run
    benchmark: Benchmark
    policies: Sequence[Policy]
    schedules: Sequence[Schedule]
    contrasts: Sequence[Contrast]
    labels: str
    """The label source that support is read from; empty for none."""
    setting: Setting
    masks: Masks = field(default_factory=dict)
    planned: set[Key] = field(default_factory=set)
    """The answers that a dry run has counted: stages share some, and pay for none twice."""
    assumed: frozenset[str] = frozenset()
    """The policies that a dry run did not build as a run would, by name."""
    until: Until | None = None
    """The statement at which collecting stops."""
    builds: int = 1
    """How often each route was built."""
    pools: Sequence[int] | None = None
    """The numbers of its pools in the whole benchmark; None if it has all."""
    execution: RunExecution | None = None
    """Where a stage that is divided stores and finds the results of its pools."""


@dataclass(frozen=True, slots=True)
class StageResult:
    """The results of a stage."""

    rows: list[EstimateRow] = field(default_factory=list)
    statements: tuple[Statement, ...] = ()
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    """Findings that the result shows; a stage stores its findings by itself."""
    describe: Callable[[Sequence[EstimateRow], bool], Iterable[Statement]] | None = None
    """Makes statements from all rows of the run, once their p-values are adjusted.

    It is also given whether answers or routes are missing.
    """
    stop: Stop | None = None
    """Where collecting stopped because a statement held."""

    def list_statements(
        self, rows: Sequence[EstimateRow], *, incomplete: bool
    ) -> tuple[Statement, ...]:
        """List its statements, given all rows of the run."""
        return (*self.statements, *(self.describe(rows, incomplete) if self.describe else ()))


class Stage(Protocol):
    """One experiment on stored traces."""

    def described(self) -> Mapping[str, object]:
        """Return what makes its results comparable, for the manifest."""

    @property
    def models(self) -> Sequence[Model]:
        """The models that are asked, and how."""

    def inspect(self, traced: Traced, inspections: Mapping[str, Inspection]) -> None:
        """Look up what recorded models will be asked, by their names."""

    def price(self, traced: Traced) -> Mapping[str, Cost]:
        """Return for each model what it would take, without asking."""

    def perform(self, traced: Traced, progress: AnswerProgress | None) -> StageResult:
        """Collect what is missing and estimate."""


class AsksNobody:
    """Mixin for stages that do not call a model."""

    __slots__ = ()

    divided: ClassVar[bool] = False
    """Whether shards perform it; otherwise, it is left to merging."""

    @property
    def models(self) -> Sequence[Model]:
        """Return no model."""
        return ()

    def inspect(self, traced: Traced, inspections: Mapping[str, Inspection]) -> None:
        """Do nothing: there is no answer to look up."""

    def price(self, traced: Traced) -> Mapping[str, Cost]:
        """Return no cost."""
        return {}


@dataclass(frozen=True, slots=True)
class OnlyPolicies:
    """A stage that looks at some of the run's policies."""

    stage: Stage
    names: tuple[str, ...]

    def described(self) -> Mapping[str, object]:
        """Return what makes its results comparable."""
        return self.stage.described()

    @property
    def models(self) -> Sequence[Model]:
        """The models that are asked, and how."""
        return self.stage.models

    def inspect(self, traced: Traced, inspections: Mapping[str, Inspection]) -> None:
        """Look up what recorded models will be asked."""
        self.stage.inspect(self._select_policies(traced), inspections)

    def price(self, traced: Traced) -> Mapping[str, Cost]:
        """Return for each model what it would take."""
        return self.stage.price(self._select_policies(traced))

    def perform(self, traced: Traced, progress: AnswerProgress | None) -> StageResult:
        """Collect what is missing and estimate."""
        return self.stage.perform(self._select_policies(traced), progress)

    def _select_policies(self, traced: Traced) -> Traced:
        return replace(traced, policies=[p for p in traced.policies if p.name in self.names])


def inspect_stages(stages: Sequence[Stage], traced: Traced) -> tuple[str, ...]:
    """Refuse recorded answers that lack something; note those that the run does not use."""
    inspections = {
        model.name: Inspection(model)
        for stage in stages
        for model in stage.models
        if isinstance(model, Recorded)
    }
    if inspections:
        for stage in stages:
            stage.inspect(traced, inspections)
    return tuple(note for each in inspections.values() if (note := each.finish()))
