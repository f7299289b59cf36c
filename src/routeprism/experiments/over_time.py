"""Retention over time: what a memory holds as its history grows, forward and reversed.

The paper leaves growing histories open. Arms are moments: `t=5` after five records, over the pools
that have as many, and `t=all` at the end of each pool.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from routeprism.exhibits import Statement
from routeprism.experiments._experiment import AuditOutcome, Conclusion
from routeprism.experiments._rows import Column, Key
from routeprism.experiments.statements import compose_rows, state_row
from routeprism.measures import Sums, jaccard
from routeprism.policies import Policy
from routeprism.records import Case
from routeprism.routes import Moment, list_moments, trace_moments
from routeprism.runs import EstimateRow, Finding

__all__ = ["conclude_over_time", "enter_over_time", "moment_of"]

_SCHEDULE = "replay"
_END = "t=all"


def enter_over_time(case: Case, policies: Sequence[Policy], labels: str, sums: Sums[Key]) -> None:
    """Enter every moment of a pool, for each of its questions."""
    common = list_moments(len(case.pool))
    for policy in policies:
        for moment in trace_moments(policy, case.pool):
            arms = [f"t={moment.after}"] if moment.after in common else []
            if moment.after == len(case.pool):
                arms.append(_END)
            for arm in arms:
                _enter(case, policy.name, arm, moment, labels, sums)


def _enter(case: Case, policy: str, arm: str, moment: Moment, labels: str, sums: Sums[Key]) -> None:
    column = Column("retention", "", policy, _SCHEDULE, arm)
    number = len(case.questions)
    sides = {"forward": moment.forward, "route": moment.reversed}
    values = {"overlap.retained": jaccard(moment.forward, moment.reversed)}
    for side, records in sides.items():
        values[f"fraction.retained.{side}"] = len(records) / moment.after
    for quantity, value in values.items():  # a pool's own, and so that of each of its questions
        sums[column._replace(quantity=quantity), "all"] = (value * number, number)
    if not labels:
        return
    labelled = [question.labels.get(labels, frozenset()) for question in case.questions]
    # What has not arrived cannot be retained.
    support = [arrived for support_set in labelled if (arrived := support_set & moment.arrived)]
    for side, records in sides.items():
        if support:
            target = column._replace(quantity=f"recall.retained.{side}", labels=labels)
            recalled = sum(len(support_set & records) / len(support_set) for support_set in support)
            sums[target, "all"] = (recalled, len(support))


Curve = dict[str, dict[str, EstimateRow]]
"""Arm → quantity → its row."""


def _curves(rows: Sequence[EstimateRow]) -> dict[tuple[str, str], Curve]:
    curves: dict[tuple[str, str], Curve] = {}
    for row in rows:
        if row.experiment == "retention" and row.arm.startswith("t="):
            curve = curves.setdefault((row.policy, row.interface), {})
            curve.setdefault(row.arm, {})[row.quantity] = row
    return {
        place: dict(sorted(curve.items(), key=lambda item: moment_of(item[0])))
        for place, curve in curves.items()
    }


def moment_of(arm: str) -> float:
    """Return the moment that an arm names; the end comes last."""
    return float("inf") if arm == _END else float(arm.removeprefix("t="))


def retention_curves(rows: Sequence[EstimateRow]) -> list[Finding]:
    """Return each policy's curve, to be drawn."""
    return [
        Finding(
            name="retention_curve",
            value=[
                {
                    "t": None if arm == _END else int(arm[2:]),
                    "units": quantities["overlap.retained"].units,
                    **{
                        name: [row.estimate, row.lower, row.upper]
                        for name, row in quantities.items()
                    },
                }
                for arm, quantities in curve.items()
            ],
            policy=policy,
            interface=interface,
            schedule=_SCHEDULE,
        )
        for (policy, interface), curve in _curves(rows).items()
    ]


def retention_statements(rows: Sequence[EstimateRow]) -> Iterator[Statement]:
    """Describe from when on order decides what is retained, and how much in the end."""
    for curve in _curves(rows).values():
        end = curve[_END]
        moments = (
            f"from {arm} on"
            for arm, quantities in curve.items()
            if arm != _END and (quantities["overlap.retained"].estimate or 0.0) < 1
        )
        parts = compose_rows(
            "the retained records depend on order {when}; in the end overlap {overlap}, "
            "{forward:value} of the records are retained forward and {route:value} reversed",
            when=next(moments, "at no moment"),
            overlap=end["overlap.retained"],
            forward=end["fraction.retained.forward"],
            route=end["fraction.retained.route"],
        )
        if "recall.retained.forward" in end:
            parts += compose_rows(
                ", support recall {forward} and {route}",
                forward=end["recall.retained.forward"],
                route=end["recall.retained.route"],
            )
        yield state_row("retention", end["overlap.retained"], parts, scope="over time")


def conclude_over_time(outcome: AuditOutcome) -> Conclusion:
    """Describe each policy over time, and store its curve."""
    statements = tuple(retention_statements(outcome.rows))
    return Conclusion(statements, {"retention": retention_curves(outcome.rows)})
