"""Repairs compared: how much evidence each saves under which arrivals, and what it costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from routeprism.answers import AnswerProgress
from routeprism.exhibits import (
    Statement,
)
from routeprism.experiments._experiment import Experiment
from routeprism.experiments._repair_exhibits import (
    chart_remedies,
    summarise_remedies,
    tabulate_remedies,
)
from routeprism.experiments._repair_statements import (
    Recommendation,
    describe_repairs,
    recommend_repairs,
    recommend_results,
)
from routeprism.experiments._repair_values import (
    RemedyOutcome,
    Repair,
    compare_repairs,
    read_repairs,
)
from routeprism.experiments._stages import AsksNobody, StageResult, Traced
from routeprism.experiments.builds import find_noisy_policies
from routeprism.policies import Policy
from routeprism.runs import EstimateRow, Finding, Rows

__all__ = [
    "Recommendation",
    "Remedies",
    "RemedyOutcome",
    "Repair",
    "compare_repairs",
    "describe_repairs",
    "experiment",
    "read_repairs",
    "recommend_repairs",
    "recommend_results",
    "summarise_remedies",
]


@dataclass(frozen=True, slots=True)
class Remedies(AsksNobody):
    """A stage that keeps which policies are repairs of which, and compares them."""

    repairs: tuple[Repair, ...]

    @classmethod
    def of(cls, repairs: Mapping[Policy, Iterable[Policy]]) -> Remedies:
        """Make the stage from each memory's repairs."""
        return cls(
            tuple(
                Repair.of(memory, policy)
                for memory, policies in repairs.items()
                for policy in policies
            )
        )

    def described(self) -> Mapping[str, object]:
        """Return the repairs that are compared, for the manifest."""
        return {"repairs": [[repair.memory, repair.policy] for repair in self.repairs]}

    def perform(self, traced: Traced, progress: AnswerProgress | None) -> StageResult:
        """Keep the repairs with the run, and compare them once all numbers are known."""
        findings = tuple(
            Finding(
                name="repair",
                value={
                    "memory": repair.memory,
                    "action": repair.action,
                    "model_calls": repair.calls,
                },
                policy=repair.policy,
            )
            for repair in self.repairs
        )
        traced.run.keep("remedies", findings)
        return StageResult(
            findings=findings,
            describe=lambda rows: self._describe(rows, traced),
        )

    def _describe(self, rows: Sequence[EstimateRow], traced: Traced) -> Iterator[Statement]:
        every = Rows.of(rows)
        noisy = find_noisy_policies(rows, traced.policies)
        for advice in recommend_repairs(every, self.repairs, chance=noisy):
            yield advice.describe(traced.benchmark.argument)
        yield from describe_repairs(every, self.repairs)


experiment = Experiment(
    name="remedies",
    title="Repairs and their costs",
    summary="Measure standard repairs around a memory, with what each of them costs.",
    commands=("remedy",),
    rank=2,
    tab="summary",
    columns=(),
    row_filter=lambda row: False,
    tables=tabulate_remedies,
    charts=chart_remedies,
)
