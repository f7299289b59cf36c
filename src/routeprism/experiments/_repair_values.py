"""What each repair of a memory saves and costs, from the rows of an audit."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from routeprism.exhibits import (
    Results,
)
from routeprism.policies import Policy, builder_model, describe_client
from routeprism.runs import EstimateRow, Rows

__all__ = [
    "COVERED",
    "RemedyOutcome",
    "Repair",
    "compare_repairs",
    "find_efficient",
    "read_repairs",
    "value_of_row",
]


@dataclass(frozen=True, slots=True)
class Repair:
    """One repair of a memory, as a policy of its own."""

    memory: str
    """The memory that is repaired."""
    policy: str
    """The repaired memory."""
    action: str
    """What one does to apply the repair, as the subject of a sentence."""
    calls: float | None = None
    """Model calls of a memory that counts none itself: 0 if it asks no model, None if unknown."""

    @property
    def label(self) -> str:
        """Name the repair without the memory that it repairs."""
        return self.policy.removesuffix(f"({self.memory})")

    @property
    def only_reorders(self) -> bool:
        """Whether it changes when records are written, and not how much the memory keeps."""
        return re.split("[:(]", self.policy, maxsplit=1)[0] in _REORDERING

    @classmethod
    def of(cls, memory: Policy, policy: Policy) -> Repair:
        """Describe the repair of a memory; a larger budget is a policy of the same kind."""
        action = getattr(policy, "action", f"using {policy.name}")
        asks = builder_model(policy) is not None or describe_client(policy) is not None
        return cls(memory.name, policy.name, str(action), None if asks else 0.0)


_REORDERING = ("hold", "rebuild", "checkpoint", "by-time", "queue")


@dataclass(frozen=True, slots=True)
class RemedyOutcome:
    """What a repair does under one arrival model or schedule."""

    repair: Repair
    schedule: str
    loss: EstimateRow | None
    """Questions that lose evidence; None without labels."""
    overlap: EstimateRow
    evidence: EstimateRow | None
    """Evidence shown on this route."""
    accuracy: EstimateRow | None
    length: EstimateRow | None
    """Length of the text shown, in quarters of a character."""
    before: EstimateRow
    """The measure of the memory without the repair: its loss, or its overlap."""
    writes: float
    """Extra writes per record."""
    delay: float
    """Later arrivals that a record waits for."""
    calls: float | None
    """Model calls while one memory is built; None if they are not known."""
    forfeited: float = 0.0
    """Share of questions that source order shows all evidence without the repair, and not with it.
    """
    growth: float = 1.0
    """Length of the text shown, divided by that of the memory without the repair."""
    stale: EstimateRow | None = None
    """Questions that end with the old value of a changed fact; None without such labels."""
    stale_before: EstimateRow | None = None
    """The same for the memory without the repair."""

    @property
    def remaining(self) -> float:
        """Share of questions that still lose evidence, compared with the unrepaired memory."""
        return value_of_row(self.loss) + self.forfeited

    @property
    def prevented(self) -> float | None:
        """The share of the loss that the repair prevents; None if nothing was lost before.

        Evidence that the repair itself takes away in source order counts as lost. Without labels,
        it is the share of the missing overlap that the repair restores.
        """
        before = self.before.estimate
        if before is None or (not self.is_labelled and self.overlap.estimate is None):
            return None
        if self.is_labelled:
            left, lost = self.remaining, before
        else:
            left, lost = 1 - value_of_row(self.overlap), 1 - before
        return None if lost <= 0 else 1 - left / lost

    @property
    def is_labelled(self) -> bool:
        """Whether the questions name their evidence, so that its loss is measured."""
        return self.before.quantity == "evidence_lost"


def compare_repairs(rows: Rows, repairs: Sequence[Repair]) -> list[RemedyOutcome]:
    """Compare every repair under every schedule with the memory that it repairs."""
    routes = rows.where(experiment="routes", arm="")
    traced = routes.where(model="").group("policy", "schedule")
    answer_rows = Rows.of(row for row in routes if row.model).group("policy", "schedule")
    evidence = rows.where(experiment="retention", arm="").group("policy", "schedule")
    updates = rows.plain(experiment="updates", model="").group("policy", "schedule")
    outcomes = []
    for repair in repairs:
        for (policy, schedule), group in traced.items():
            base = traced.get((repair.memory, schedule))
            if policy != repair.policy or base is None or "J" not in group or "J" not in base:
                continue
            evidence_rows = evidence.get((policy, schedule), {})
            unrepaired = evidence.get((repair.memory, schedule), {})
            lost = unrepaired.get("evidence_lost")
            length = value_of_row(base.get("context_length.route"))
            arrivals = group.get("count.arrivals")
            outcomes.append(
                RemedyOutcome(
                    repair,
                    schedule,
                    evidence_rows.get("evidence_lost") if lost is not None else None,
                    group["J"],
                    evidence_rows.get("recall.exposed.route"),
                    answer_rows.get((policy, schedule), {}).get("accuracy.route"),
                    group.get("context_length.route"),
                    lost if lost is not None else base["J"],
                    max(0.0, _share(group.get("count.writes"), arrivals) - 1),
                    _mean(group.get("count.delay")),
                    _count_calls(group, repair),
                    max(
                        0.0,
                        value_of_row(unrepaired.get(COVERED))
                        - value_of_row(evidence_rows.get(COVERED)),
                    ),
                    value_of_row(group.get("context_length.route")) / length if length else 1.0,
                    updates.get((policy, schedule), {}).get(_STALE),
                    updates.get((repair.memory, schedule), {}).get(_STALE),
                )
            )
    return outcomes


COVERED = "all_covered.exposed.forward"
"""Share of questions that source order shows all of their evidence."""


_STALE = "stale_only.route_count"
"""Questions that are shown the old value of a changed fact alone."""


def _share(part: EstimateRow | None, whole: EstimateRow | None) -> float:
    if part is None or whole is None or not whole.estimate:
        return 0.0
    return (part.estimate or 0.0) / whole.estimate


def _mean(row: EstimateRow | None) -> float:
    """Average a count over the pools that it was taken in."""
    return (row.estimate or 0.0) / row.units if row is not None and row.units else 0.0


def _count_calls(group: Mapping[str, EstimateRow], repair: Repair) -> float | None:
    """Average the model calls of building a memory; a larger budget counts as its policy does."""
    row = group.get("count.model_calls", group.get("count.consultations"))
    return _mean(row) if row is not None else repair.calls


def value_of_row(row: EstimateRow | None) -> float:
    return 0.0 if row is None or row.estimate is None else row.estimate


def find_efficient(outcomes: Sequence[RemedyOutcome]) -> set[RemedyOutcome]:
    """Find the repairs that no other beats in benefit, writes, calls, delay and text at once."""
    measured = [outcome for outcome in outcomes if outcome.prevented is not None]
    return {
        outcome
        for outcome in measured
        if not any(_dominates(rival, outcome) for rival in measured if rival is not outcome)
    }


def _dominates(rival: RemedyOutcome, outcome: RemedyOutcome) -> bool:
    values = [
        (-(o.prevented or 0.0), o.writes, o.calls or 0.0, o.delay, value_of_row(o.length))
        for o in (rival, outcome)
    ]
    return values[0] != values[1] and all(a <= b for a, b in zip(*values, strict=True))


def read_repairs(results: Results) -> list[Repair]:
    """Read which policies of a run are repairs of which."""
    return [
        Repair(
            finding.value["memory"],
            finding.policy,
            finding.value["action"],
            finding.value.get("model_calls"),
        )
        for finding in results.findings.get("repair", ())
    ]
