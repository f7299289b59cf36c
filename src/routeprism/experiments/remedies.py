"""Repairs around a memory, measured beside it: how much each saves, and what it costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from routeprism.answers import AnswerProgress
from routeprism.experiments._experiment import Experiment
from routeprism.experiments._stages import AsksNobody, StageResult, Traced
from routeprism.judge import Repair, tabulate_repairs
from routeprism.policies import Policy, builder_model, describe_client
from routeprism.policies.remedies import Hold, Rebuild, TimeTied
from routeprism.runs import Finding


def describe_repair(memory: Policy, policy: Policy) -> Repair:
    """Describe the repair of a memory; a larger budget is a policy of the same kind."""
    action = getattr(policy, "action", f"using {policy.name}")
    asks = builder_model(policy) is not None or describe_client(policy) is not None
    only_reorders = isinstance(policy, (Hold, Rebuild, TimeTied))
    return Repair(memory.name, policy.name, str(action), None if asks else 0.0, only_reorders)


def keep_repairs(repairs: Iterable[Repair]) -> tuple[Finding, ...]:
    """Write repairs as findings, which the judgement reads."""
    return tuple(
        Finding(
            name="repair",
            value={
                "memory": repair.memory,
                "action": repair.action,
                "model_calls": repair.calls,
                "only_reorders": repair.only_reorders,
            },
            policy=repair.policy,
        )
        for repair in repairs
    )


@dataclass(frozen=True, slots=True)
class Remedies(AsksNobody):
    """A stage that keeps which policies are repairs of which."""

    repairs: tuple[Repair, ...]

    @classmethod
    def of(cls, repairs: Mapping[Policy, Iterable[Policy]]) -> Remedies:
        """Make the stage from each memory's repairs."""
        return cls(
            tuple(
                describe_repair(memory, policy)
                for memory, policies in repairs.items()
                for policy in policies
            )
        )

    def described(self) -> Mapping[str, object]:
        """Return the repairs that are compared, for the manifest."""
        return {"repairs": [[repair.memory, repair.policy] for repair in self.repairs]}

    def perform(self, traced: Traced, progress: AnswerProgress | None) -> StageResult:
        """Keep the repairs with the run; the judgement compares them."""
        findings = keep_repairs(self.repairs)
        traced.run.keep("remedies", findings)
        return StageResult(findings=findings)


experiment = Experiment(
    name="remedies",
    title="Repairs and their costs",
    summary="Measure standard repairs around a memory, with what each of them costs.",
    commands=("remedy",),
    rank=2,
    tab="summary",
    tables=tabulate_repairs,
    charts=lambda results: (),
)
