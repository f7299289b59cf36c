"""The values of one case: coordinates and contrasts of its pairs, counts of its routes.

A number that belongs to a pool counts once, however many questions are asked of the pool.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from routeprism.experiments._rows import Column, Key
from routeprism.experiments._strata import Strata, enter, enter_all
from routeprism.experiments._update_values import Resolved, enter_prevented
from routeprism.experiments.mechanism import Contrast
from routeprism.measures import (
    COORDINATES,
    Sums,
    registered_coordinates,
    retention_coordinates,
    update_coordinates,
)
from routeprism.orders import FORWARD, Schedule
from routeprism.policies import Policy
from routeprism.quantities import Quantity
from routeprism.records import Case
from routeprism.routes import Pair, Route, list_counterparts

__all__ = [
    "NOTES_DIFFER",
    "NOTES_MATCHED",
    "STATES_CHANGED",
    "STATES_COMPARED",
    "coordinates_of",
    "enter_counts",
    "enter_duplicate_options",
    "enter_failed_pairs",
    "enter_pairs",
    "enter_ties",
]

NOTES_DIFFER = "count.notes_differ_{part}"
"""The family of notes of the same record one of whose fields differs."""
NOTES_MATCHED = "count.notes_matched"
STATES_COMPARED, STATES_CHANGED = "count.states_compared", "count.canonical_states_changed"


PairValues: TypeAlias = "dict[tuple[str, str], npt.NDArray[np.float64]]"
"""(policy, order of arrival) → questions × coordinates."""
SourcedCoordinate: TypeAlias = tuple[str, str, Quantity[Pair]]
"""(experiment, label source, coordinate)."""


def coordinates_of(labels: str, updates: str = "") -> tuple[SourcedCoordinate, ...]:
    """Return the coordinates for support and for outdated evidence, and those of extensions."""
    return _list_coordinates(labels, updates, registered_coordinates())


@lru_cache(maxsize=8)
def _list_coordinates(
    labels: str, updates: str, own: tuple[Quantity[Pair], ...]
) -> tuple[SourcedCoordinate, ...]:
    retention = retention_coordinates(labels) if labels else ()
    changes = update_coordinates(updates) if updates else ()
    return (
        *(("routes", "", coordinate) for coordinate in (*COORDINATES, *own)),
        *(("retention", labels, coordinate) for coordinate in retention),
        *(("updates", updates, coordinate) for coordinate in changes),
    )


def enter_pairs(
    case: Case,
    routes: Sequence[Route],
    strata: Strata,
    sums: Sums[Key],
    *,
    labels: str,
    updates: str,
    contrasts: tuple[Contrast, ...],
    keep: bool,
    resolved: Resolved,
) -> PairValues:
    """Take every coordinate of every pair, and every contrast between policies."""
    coordinates = coordinates_of(labels, updates)
    wide = {
        (route.policy, route.schedule): _observe_pairs(base, route, coordinates, labels, updates)
        for base, route in list_counterparts(routes)
    }
    missing = np.full((len(case.questions), len(coordinates)), np.nan)
    for route in routes:
        if route.reference:  # a pair with a failed route is not applicable
            wide.setdefault((route.policy, route.schedule), missing)
    enter_prevented(coordinates, wide, resolved, sums)
    traced = sum(experiment == "routes" for experiment, _, _ in coordinates)
    schedules = tuple(dict.fromkeys(route.schedule for route in routes if route.reference))
    parts = [
        *wide.values(),
        *(
            sum(sign * wide[name, schedule][:, :traced] for sign, name in contrast.terms)
            for contrast in contrasts
            for schedule in schedules
        ),
    ]
    columns = _columns(coordinates, tuple(wide), contrasts, schedules)
    if parts:  # an audit of arrival models alone has no pair of schedules
        enter_all(sums, strata, columns, np.hstack(parts), keep=keep)
    return wide


def _observe_pairs(
    base: Route,
    route: Route,
    coordinates: Sequence[SourcedCoordinate],
    labels: str,
    updates: str,
) -> npt.NDArray[np.float64]:
    """Take every coordinate of the pairs of two routes: questions × coordinates.

    Of a question a coordinate reads its labels alone, and many questions see the same.
    """
    rows: dict[tuple[object, ...], tuple[int, list[float | None]]] = {}
    places = []
    for first, second in zip(base.exposures, route.exposures, strict=True):
        question = first.question
        alike = (
            first.sources,
            second.sources,
            first.context_sha256,
            second.context_sha256,
            question.labels.get(labels),
            question.labels.get(updates),
            question.stale.get(updates),
        )
        row = rows.get(alike)
        if row is None:
            pair = Pair(question, base, route, first, second)
            row = rows[alike] = len(rows), [c.value(pair) for _, _, c in coordinates]
        places.append(row[0])
    return np.array([values for _, values in rows.values()], dtype=np.float64)[places]


@lru_cache(maxsize=8)
def _columns(
    coordinates: tuple[SourcedCoordinate, ...],
    routes: tuple[tuple[str, str], ...],
    contrasts: tuple[Contrast, ...],
    schedules: tuple[str, ...],
) -> tuple[Column, ...]:
    """Name the columns of a case's values: coordinates of each route, then of each contrast."""
    plain = [
        Column(experiment, coordinate.name, policy, schedule, labels=source)
        for policy, schedule in routes
        for experiment, source, coordinate in coordinates
    ]
    compared = [
        Column(
            contrast.experiment,
            f"{contrast.prefix}.{coordinate.name}",
            contrast.policy,
            schedule,
            contrast.arm,
        )
        for contrast in contrasts
        for schedule in schedules
        for experiment, _, coordinate in coordinates
        if experiment == "routes"
    ]
    return (*plain, *compared)


def enter_duplicate_options(case: Case, strata: Strata, sums: Sums[Key]) -> None:
    """Count the questions two of whose options have the same text (Appendix C.6)."""
    values = [float(q.duplicate_options) if q.options else None for q in case.questions]
    enter(sums, strata, Column("routes", "count.duplicate_options"), values)


def enter_ties(
    case: Case,
    policies: Sequence[Policy],
    schedules: Sequence[Schedule],
    strata: Strata,
    sums: Sums[Key],
) -> None:
    """Count, for each question, the ties that its pool's construction met (Appendix D.5)."""
    for policy in policies:
        count = getattr(policy, "ties", None)
        if not callable(count):
            continue
        for schedule in (FORWARD, *schedules):
            order = schedule.on(case.pool)
            met = count(tuple(case.pool.records[position] for position in order))
            for name, number in met.items():
                column = Column("routes", f"count.{name}", policy.name, schedule.name)
                enter(sums, strata, column, [float(number)] * len(case.questions))


def enter_failed_pairs(case: Case, routes: Sequence[Route], sums: Sums[Key]) -> None:
    """Count the pairs of the first build that a failed route leaves without an estimate."""
    built = {(route.policy, route.schedule): route for route in routes}
    for route in routes:
        base = built[route.policy, route.reference] if route.reference else route
        if route.reference and (route.failed or base.failed):
            applicable = route.applicable and base.applicable
            quantity = "count.failed_pairs" if applicable else "count.not_applicable"
            column = Column("routes", quantity, route.policy, route.schedule)
            number = len(case.questions)
            sums[column, "all"] = (float(number), number)


def enter_counts(case: Case, routes: Sequence[Route], sums: Sums[Key]) -> None:
    """Add what each route counted, and what differs between its notes and forward's."""
    built = {(route.policy, route.schedule): route for route in routes}
    for route in routes:
        base = built[route.policy, route.reference] if route.reference else route
        entered: dict[str, int] = {f"count.{name}": n for name, n in route.counts.items()}
        if route.reference:
            entered |= _differences(base, route)
        for quantity, number in entered.items():
            column = Column("routes", quantity, route.policy, route.schedule)
            sums[column, "all"] = (float(number), len(case.questions))


def _differences(base: Route, route: Route) -> dict[str, int]:
    """Count pools whose sorted states differ, and source-matched notes field by field."""
    counts: dict[str, int] = {}
    if base.canonical is not None and route.canonical is not None:
        counts[STATES_COMPARED] = 1
        counts[STATES_CHANGED] = int(base.canonical != route.canonical)
    shared_records = [record for record in base.notes if record in route.notes]
    if shared_records:
        counts[NOTES_MATCHED] = len(shared_records)
        for field in base.notes[shared_records[0]]:
            counts[NOTES_DIFFER.format(part=field)] = sum(
                base.notes[record].get(field) != route.notes[record].get(field)
                for record in shared_records
            )
    return counts
