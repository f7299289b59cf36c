"""Budget curves: what a larger memory, or a larger context, buys in recall and in stability.

A curve is an audit of one policy at several budgets: how many records it may hold, and how many (or
how many characters) its interface may show. Numbers are kept with their values per question, and no
traces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from routeprism import specs
from routeprism.errors import SpecError
from routeprism.experiments._plans import interface_of
from routeprism.experiments.routes import SEED, Audit, run_audit
from routeprism.measures import RESAMPLES, Interval, chosen_interval, limits_said
from routeprism.orders import Schedule
from routeprism.policies import Interface, Policy
from routeprism.records import Benchmark
from routeprism.runs import EstimateRow, Finding, Run

__all__ = ["STABLE", "Budgets", "budgeted", "run_curve"]

STABLE = 0.9
"""The overlap of two routes from which on a budget is said to buy stability."""

_READ = (
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
"""What a point of a curve tells."""


@dataclass(frozen=True, slots=True)
class Budgets:
    """One parameter and the values it takes."""

    parameter: str
    values: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Budgets:
        """Read `k=4,8,16`."""
        parameter, equals, listed = text.partition("=")
        values = tuple(dict.fromkeys(part.strip() for part in listed.split(",") if part.strip()))
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


Budgeted = tuple[str, Policy]
"""A budget and the policy that has it."""


def budgeted(budgets: Budgets, policies: Sequence[Policy]) -> tuple[Budgeted, ...]:
    """Put each budget beside its policy."""
    return tuple(zip(budgets.values, policies, strict=True))


def run_curve(
    benchmark: Benchmark,
    family: str,
    budgets: Budgets,
    make: Callable[[Interface], Sequence[Policy]],
    interfaces: Sequence[Interface],
    schedules: Sequence[Schedule],
    *,
    kinds: Sequence[str] = (),
    labels: str | None = None,
    stable: float = STABLE,
    seed: int = SEED,
    resamples: int = RESAMPLES,
    interval: Interval | None = None,
    workers: int | None = None,
    directory: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Audit:
    """Audit a policy at every budget, through every interface."""
    rows: list[EstimateRow] = []
    findings: list[Finding] = []
    notes: dict[str, None] = {}
    counts: Mapping[str, int] = {}
    used = chosen_interval(interval, benchmark.interval)
    said_limits = limits_said(used, benchmark.interval)
    configuration = {
        "command": "curve",
        "benchmark": benchmark.name,
        "fingerprint": benchmark.fingerprint,
        "policy": family,
        "budgets": [budgets.parameter, *budgets.values],
        "interfaces": [interface.name for interface in interfaces],
        "schedules": [schedule.name for schedule in schedules],
        "kinds": sorted(kinds),
        "labels": labels,
        "stable": stable,
        "unit": benchmark.unit,
        "weighting": benchmark.weighting,
        "seed": seed,
        "resamples": resamples,
        "interval": used,
    }
    with ExitStack() as stack:
        run = None
        if directory is not None:
            opened = Run.open(directory, configuration, inputs=benchmark.inputs)
            run = stack.enter_context(opened)
            with run.writing():
                pass  # whatever an earlier call kept
        for number, interface in enumerate(interfaces):
            policies = make(interface)
            found = run_audit(
                benchmark,
                policies,
                schedules,
                kinds=kinds,
                labels=labels,
                seed=seed,
                resamples=resamples,
                interval=used,
                workers=workers,
                progress=_part(progress, number, len(interfaces)),
                values=_READ if run is not None else (),
            )
            if run is not None:
                for table, entries in found.tables.items():
                    run.add(table, entries)
            kept = [row for row in found.rows if row.quantity in _READ]
            rows += kept
            notes |= dict.fromkeys(found.notes)
            counts = found.counts
            points = budgeted(budgets, policies)
            for schedule in schedules:
                findings.append(_curve(family, budgets, points, schedule.name, kept))
        findings += _context_curves(findings)
        if run is not None:
            run.keep("retention", findings)
            run.finish(
                rows,
                {**counts, "estimates": len(rows)},
                sentences=_sentences(findings, stable),
                notes=tuple(notes),
                limits=said_limits,
            )
    return Audit(
        benchmark.name,
        tuple(rows),
        _sentences(findings, stable),
        tuple(notes),
        counts,
        directory,
        limits=said_limits,
    )


def _sentences(findings: Sequence[Finding], stable: float) -> tuple[str, ...]:
    said = (_sentence(one, stable) for one in findings if one.name == "budget_curve")
    return tuple(dict.fromkeys(said))


def _part(
    progress: Callable[[int, int], None] | None, number: int, parts: int
) -> Callable[[int, int], None] | None:
    if progress is None:
        return None
    return lambda done, total: progress(number * total + done, parts * total)


Point = dict[str, object]


def _curve(
    family: str,
    budgets: Budgets,
    points: Sequence[Budgeted],
    schedule: str,
    rows: Sequence[EstimateRow],
) -> Finding:
    told: list[Point] = []
    for budget, policy in points:
        point: Point = {"budget": float(budget), "policy": policy.name}
        for row in rows:
            plain = row.stratum == "all" and not row.mask and not row.arm
            if plain and (row.policy, row.schedule) == (policy.name, schedule):
                point[row.quantity] = [row.estimate, row.lower, row.upper]
        told.append(point)
    return Finding(
        name="budget_curve",
        policy=family,
        interface=interface_of(points[0][1]),
        schedule=schedule,
        value={"parameter": budgets.parameter, "points": told},
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


def _sentence(curve: Finding, stable: float) -> str:
    """Say which budget buys stability, and what recall does."""
    points = curve.value["points"]
    parameter = curve.value["parameter"]
    where = f"{curve.policy} on {curve.schedule}, shown through {curve.interface}"
    parts = [
        _bought(points, parameter, quantity, what, stable)
        for quantity, what in (("overlap.retained", "retained"), ("overlap.exposed", "exposed"))
        if all(quantity in point for point in points)
    ] or [_bought(points, parameter, "J", "exposed", stable)]
    if all("recall.exposed.route" in point for point in points):
        first, last = points[0], points[-1]
        ends = " to ".join(
            f"{point['recall.exposed.forward'][0]:.3f} / {point['recall.exposed.route'][0]:.3f}"
            for point in (first, last)
        )
        parts.append(f"exposed evidence recall, forward / {curve.schedule}, goes from {ends}")
    return f"{where}: {'; '.join(parts)}"


def _bought(
    points: Sequence[Point], parameter: str, quantity: str, what: str, stable: float
) -> str:
    def overlap(point: Point) -> float:
        value = point[quantity]
        assert isinstance(value, list)  # noqa: S101 (made above)
        return float(value[0])

    for point in points:
        if overlap(point) >= stable:
            return (
                f"{parameter}={point['budget']:g} is the smallest budget at which the two orders "
                f"share {stable:g} of what is {what} ({overlap(point):.3f})"
            )
    best = max(points, key=overlap)
    return (
        f"no budget up to {parameter}={points[-1]['budget']:g} makes the two orders share "
        f"{stable:g} of what is {what} (at most {overlap(best):.3f}, at "
        f"{parameter}={best['budget']:g})"
    )
