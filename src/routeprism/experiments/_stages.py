"""What comes after the traces: stages, each from the cells it needs to estimate rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from routeprism.answers import Plan as Cost
from routeprism.answers import Progress
from routeprism.experiments._plans import Contrast
from routeprism.experiments._rows import Setting
from routeprism.experiments._strata import Masks
from routeprism.models import Model
from routeprism.models._inspection import Inspection
from routeprism.orders import Schedule
from routeprism.policies import Policy
from routeprism.records import Benchmark
from routeprism.runs import EstimateRow, Key, Run

__all__ = ["Asked", "AsksNobody", "Found", "OnlyPolicies", "Stage", "Traced", "add_costs"]

Asked = Callable[[str, Progress], None]
"""Told how the collecting of a model's answers goes on."""


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


@dataclass(frozen=True, slots=True)
class Found:
    """What a stage gives."""

    rows: list[EstimateRow] = field(default_factory=list)
    sentences: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Stage(Protocol):
    """One experiment on stored traces."""

    def described(self) -> Mapping[str, object]:
        """Give what makes its results comparable, for the manifest."""

    @property
    def models(self) -> Sequence[Model]:
        """Who is asked."""

    def inspect(self, traced: Traced, inspections: Mapping[str, Inspection]) -> None:
        """Look up what recorded models will be asked, by their names."""

    def price(self, traced: Traced) -> Mapping[str, Cost]:
        """Say for each model what it would take, without asking."""

    def perform(self, traced: Traced, asked: Asked | None) -> Found:
        """Collect what is missing and estimate."""


class AsksNobody:
    """What a stage without a model is like."""

    __slots__ = ()

    @property
    def models(self) -> Sequence[Model]:
        """Nobody is asked."""
        return ()

    def inspect(self, traced: Traced, inspections: Mapping[str, Inspection]) -> None:
        """There is nothing to look up."""

    def price(self, traced: Traced) -> Mapping[str, Cost]:
        """Say that it is free."""
        return {}


@dataclass(frozen=True, slots=True)
class OnlyPolicies:
    """A stage that looks at some of the run's policies."""

    stage: Stage
    names: tuple[str, ...]

    def described(self) -> Mapping[str, object]:
        """Give what makes its results comparable."""
        return self.stage.described()

    @property
    def models(self) -> Sequence[Model]:
        """Who is asked."""
        return self.stage.models

    def inspect(self, traced: Traced, inspections: Mapping[str, Inspection]) -> None:
        """Look up what recorded models will be asked."""
        self.stage.inspect(self._some(traced), inspections)

    def price(self, traced: Traced) -> Mapping[str, Cost]:
        """Say for each model what it would take."""
        return self.stage.price(self._some(traced))

    def perform(self, traced: Traced, asked: Asked | None) -> Found:
        """Collect what is missing and estimate."""
        return self.stage.perform(self._some(traced), asked)

    def _some(self, traced: Traced) -> Traced:
        return replace(traced, policies=[p for p in traced.policies if p.name in self.names])


def add_costs(one: Cost | None, other: Cost) -> Cost:
    """Add up what two portions take."""
    if one is None:
        return other
    return Cost(
        one.cells + other.cells,
        one.kept + other.kept,
        one.calls + other.calls,
        one.input_tokens + other.input_tokens,
        None if one.cost is None or other.cost is None else one.cost + other.cost,
        None if one.most is None or other.most is None else one.most + other.most,
        one.note or other.note,
    )
