"""Budget curves: what a larger memory, or a larger context, buys in recall and in stability.

A curve is an audit of one policy at several budgets: how many records it may hold, and how many (or
how many characters) its interface may show. Numbers are kept with their values per question, and no
traces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from routeprism import specs
from routeprism.answers import Cost
from routeprism.errors import SpecError
from routeprism.exhibits import Results, Statement, Table, format_row, make_table, name_chart
from routeprism.experiments._audit import Tracing
from routeprism.experiments._execution import Pacing, RunExecution, finish_run, open_run
from routeprism.experiments._result import Audit
from routeprism.experiments._subject import Statistics, Subject, describe_benchmark
from routeprism.experiments.routes import audit_subject
from routeprism.experiments.statements import Phrase, compose_rows, join_phrases
from routeprism.orders import Schedule, describe_arrival, locate_base
from routeprism.policies import Interface, Policy, builder_model, describe_client, interface_of
from routeprism.runs import EstimateRow, Finding, Rows, Shortfall

__all__ = ["STABLE", "Budgets", "Curve", "audit_budgets", "tabulate_budgets"]

STABLE = 0.9
"""The overlap of two routes at which a budget counts as stable."""

PARTS = "parts"
"""Where the audits are kept that a curve is made of, where building asks a model."""

_QUANTITIES = (
    "J",
    "context_length.forward",
    "context_length.route",
    *(
        f"{quantity}.{where}{side}"
        for where in ("retained", "exposed")
        for quantity, sides in (
            ("overlap", ("",)),
            ("recall", (".forward", ".route", ".route-forward")),
            ("all_covered", (".forward", ".route", ".route-forward")),
        )
        for side in sides
    ),
)
"""The quantities of a point of a curve."""


@dataclass(frozen=True, slots=True)
class Budgets:
    """One parameter and the values it takes."""

    parameter: str
    values: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Budgets:
        """Read `k=4,8,16`."""
        parameter, equals, numbers_text = text.partition("=")
        values = tuple(
            dict.fromkeys(part.strip() for part in numbers_text.split(",") if part.strip())
        )
        if not equals or not parameter.strip() or not values:
            raise SpecError(f"Expected budgets such as 'k=4,8,16' but got {text!r}")
        for value in values:
            try:
                float(value)
            except ValueError:
                raise SpecError(
                    f"Expected numbers as budgets but got {value!r} in {text!r}"
                ) from None
        return cls(parameter.strip(), tuple(sorted(values, key=float)))

    def of(self, spec: str) -> list[str]:
        """Write a spec with each value of the parameter."""
        joint = "," if specs.parse(spec).values else ":"
        return [f"{spec}{joint}{self.parameter}={value}" for value in self.values]


@dataclass(frozen=True, slots=True)
class Curve:
    """A family of policies, its budgets, and the interfaces that it is read through."""

    family: str
    """The spec without its budget."""
    budgets: Budgets
    make: Callable[[Interface], Sequence[Policy]]
    """Makes one policy for each budget."""
    interfaces: Sequence[Interface]
    stable: float = STABLE
    """The overlap of two routes at which a budget counts as stable."""


def audit_budgets(
    subject: Subject,
    curve: Curve,
    *,
    statistics: Statistics | None = None,
    pacing: Pacing | None = None,
    execution: RunExecution | None = None,
) -> Audit:
    """Audit a policy at every budget, through every interface; the subject needs no policies.

    Where building asks a model, the audit of each interface is a run of its own inside the
    directory, so that no call is repeated when the curve is continued.
    """
    benchmark, pacing, execution = (
        subject.benchmark,
        pacing or Pacing(),
        execution or RunExecution(),
    )
    statistics = (statistics or Statistics()).check(benchmark)
    points = _Points()
    directory = None if pacing.dry_run else execution.directory
    configuration = {**_describe(subject, curve, statistics), **execution.describe_shard()}
    words, merged = execution.command_line, execution.merged
    with open_run(directory, configuration, benchmark, command_line=words, merged=merged) as run:
        if run is not None:
            with run.writing():
                pass  # empties the tables of an earlier call
        for number, interface in enumerate(curve.interfaces):
            policies = curve.make(interface)
            part = _audit_part(
                replace(subject, policies=policies),
                Tracing(values=_QUANTITIES if run is not None else ()),
                statistics,
                pacing,
                execution,
                (number, len(curve.interfaces)),
            )
            if run is not None:
                for table, entries in part.tables.items():
                    run.add(table, entries)
            points.add(part, curve, policies, subject.schedules)
        if pacing.dry_run:
            return Audit.of_costs(benchmark, points.costs)
        findings = [*points.findings, *_context_curves(points.findings)]
        return finish_run(
            run,
            Audit(
                benchmark.name,
                Rows.of(points.rows),
                tuple(_statements(points.rows, findings, curve.stable)),
                tuple(points.notes),
                points.counts,
                execution.directory,
                limits=statistics.explain_limits(benchmark),
                shortfall=points.shortfall,
            ),
            {"retention": findings},
        )


def _describe(subject: Subject, curve: Curve, statistics: Statistics) -> dict[str, object]:
    """Return what makes results comparable, for the manifest."""
    return {
        "command": "curve",
        **describe_benchmark(subject.benchmark),
        "policy": curve.family,
        "budgets": [curve.budgets.parameter, *curve.budgets.values],
        "interfaces": [interface.name for interface in curve.interfaces],
        "schedules": [schedule.name for schedule in subject.schedules],
        "kinds": sorted(subject.kinds),
        "labels": subject.labels,
        "stable": curve.stable,
        **statistics.describe(),
    }


def _audit_part(
    subject: Subject,
    tracing: Tracing,
    statistics: Statistics,
    pacing: Pacing,
    execution: RunExecution,
    place: tuple[int, int],
) -> Audit:
    """Audit one of several parts; `place` is its number and how many there are."""
    number, parts = place
    directory, progress = None, execution.progress
    asks = any(
        builder_model(policy) is not None or describe_client(policy) is not None
        for policy in subject.policies
    )
    if execution.directory is not None and asks:  # what was built should not be built again
        directory = execution.directory / PARTS / str(number)

    def report(done: int, total: int) -> None:
        if progress is not None:
            progress(number * total + done, parts * total)

    merged = execution.merged and replace(execution.merged, part=Path(PARTS) / str(number))
    execution = replace(execution, directory=directory, progress=report, merged=merged)
    return audit_subject(
        subject, tracing=tracing, statistics=statistics, pacing=pacing, execution=execution
    )


@dataclass(slots=True)
class _Points:
    """The combined results of the audits of all interfaces."""

    rows: list[EstimateRow] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    shortfall: Shortfall = field(default_factory=Shortfall)
    costs: dict[str, Cost] = field(default_factory=dict)

    def add(
        self,
        part: Audit,
        curve: Curve,
        policies: Sequence[Policy],
        schedules: Sequence[Schedule],
    ) -> None:
        """Add the audit of one interface, or its costs."""
        for name, cost in part.costs.items():
            self.costs[name] = cost.add_to(self.costs.get(name))
        rows = [row for row in part.rows if row.quantity in _QUANTITIES]
        self.rows += rows
        self.notes |= dict.fromkeys(part.notes)
        self.counts = part.counts
        self.shortfall += part.shortfall
        plain = Rows.of(rows).plain()
        self.findings += (
            _draw_curve(curve, policies, schedule.name, plain) for schedule in schedules
        )


Point = dict[str, object]


def _draw_curve(curve: Curve, policies: Sequence[Policy], schedule: str, rows: Rows) -> Finding:
    """Return the points of one curve, one for each budget."""
    points: list[Point] = [
        {
            "budget": float(budget),
            "policy": policy.name,
            **{
                row.quantity: [row.estimate, row.lower, row.upper]
                for row in rows.where(policy=policy.name, schedule=schedule)
            },
        }
        for budget, policy in zip(curve.budgets.values, policies, strict=True)
    ]
    return Finding(
        name="budget_curve",
        policy=curve.family,
        interface=interface_of(policies[0]),
        schedule=schedule,
        value={"parameter": curve.budgets.parameter, "points": points},
    )


def _context_curves(curves: Sequence[Finding]) -> list[Finding]:
    """Read the same points across interfaces: one curve for each policy."""
    if len({curve.interface for curve in curves}) < 2:
        return []
    grouped: dict[tuple[str, str], list[Point]] = {}
    for curve in curves:
        for point in curve.value["points"]:
            place = grouped.setdefault((point["policy"], curve.schedule), [])
            place.append({**point, "interface": curve.interface})
    return [
        Finding(name="context_curve", policy=policy, schedule=schedule, value={"points": points})
        for (policy, schedule), points in grouped.items()
    ]


def _statements(
    rows: Sequence[EstimateRow], findings: Sequence[Finding], stable: float
) -> Iterator[Statement]:
    """Describe for each curve which budget buys stability, and what recall does."""
    plain = Rows.of(rows).plain()
    for curve in findings:
        if curve.name != "budget_curve":
            continue
        own = plain.where(schedule=curve.schedule, interface=curve.interface)
        parameter = curve.value["parameter"]
        points = {
            f"{parameter}={point['budget']:g}": {
                row.quantity: row for row in own.where(policy=point["policy"])
            }
            for point in curve.value["points"]
        }
        groups = list(points.values())
        phrases = [
            _describe_budget(points, quantity, noun, stable)
            for quantity, noun in (("overlap.retained", "retained"), ("overlap.exposed", "exposed"))
            if all(quantity in group for group in groups)
        ] or [_describe_budget(points, "J", "exposed", stable)]
        if all("recall.exposed.route" in group for group in groups):
            ends = (
                compose_rows(
                    "{forward:value} / {route:value}",
                    forward=group["recall.exposed.forward"],
                    route=group["recall.exposed.route"],
                )
                for group in (groups[0], groups[-1])
            )
            phrases.append(
                compose_rows(
                    "the share of the evidence shown {orders} goes from {ends}",
                    orders=f"{locate_base([curve.schedule])} / under "
                    f"{describe_arrival(curve.schedule)}",
                    ends=join_phrases(ends, " to "),
                )
            )
        parts = compose_rows("{phrases}", phrases=join_phrases(phrases))
        scope = f"{curve.schedule}, shown through {curve.interface}"
        yield Statement(parts, "curve", curve.policy, curve.schedule, scope=scope)


def _describe_budget(
    points: Mapping[str, Mapping[str, EstimateRow]], quantity: str, noun: str, stable: float
) -> Phrase:
    overlaps = {budget: group[quantity] for budget, group in points.items()}
    values = {"stable": f"{stable:g}", "what": noun}
    for budget, row in overlaps.items():
        if (row.estimate or 0) >= stable:
            return compose_rows(
                "{budget} is the smallest budget at which the two orders share {stable} of what is "
                "{what} ({row:value})",
                budget=budget,
                row=row,
                **values,
            )
    budget = max(overlaps, key=lambda name: overlaps[name].estimate or 0)
    return compose_rows(
        "no budget up to {last} makes the two orders share {stable} of what is {what} (at most "
        "{row:value}, at {budget})",
        last=list(points)[-1],
        row=overlaps[budget],
        budget=budget,
        **values,
    )


_COLUMNS = {
    "overlap.retained": "retained overlap",
    "recall.retained.forward": "recall forward",
    "recall.retained.route": "recall route",
    "overlap.exposed": "exposed overlap",
    "recall.exposed.forward": "recall forward",
    "recall.exposed.route": "recall route",
}
_UNLABELLED = {"J": "exposed overlap J"}


def tabulate_budgets(results: Results) -> list[Table]:
    """Show each budget in a table for each order and interface."""
    rows = Rows.of(row for row in results.rows.where(stratum="all", mask="") if row.policy)
    columns = _COLUMNS if rows.where(quantity="overlap.retained") else _UNLABELLED
    tables: list[Table] = []
    places = dict.fromkeys((row.schedule, row.interface) for row in rows)
    orders = list(dict.fromkeys(schedule for schedule, _ in places))
    for schedule, interface in sorted(places, key=lambda place: orders.index(place[0])):
        budgets = rows.where(schedule=schedule, interface=interface).group("policy")
        tables += make_table(
            name_chart("budgets", schedule, interface),
            f"{schedule}, shown through {interface}",
            "How much two orders share, and the share of the evidence that each keeps or shows.",
            ("policy", *columns.values()),
            [
                (policy, *(format_row(budget.get(name)) or "n/a" for name in columns))
                for (policy,), budget in budgets.items()
            ],
        )
    return tables
