"""Values of one case about facts that change (docs/updates.md).

They count what memories did to updates, and what adding the records in event-time order prevents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from routeprism.experiments._rows import Column, Key
from routeprism.measures import DISPLACEMENTS, Displacements, Sums
from routeprism.orders import FORWARD
from routeprism.quantities import Quantity
from routeprism.records import Case, event_order, is_in_event_order
from routeprism.routes import Pair, Route

PREVENTED = "count.stale_only_prevented"
"""Questions that end with the old value in some order, and are shown the current one by time."""

_BY_TIME = (FORWARD.name, "event-time")
"""The schedules that can deliver records by event time, one by one."""


Resolved: TypeAlias = "Mapping[str, npt.NDArray[np.float64]]"
"""Policy → for each question whether it is shown current evidence in event-time order."""


def resolve_by_time(case: Case, routes: Sequence[Route], updates: str) -> Resolved:
    """Read the routes on which the records arrived in event-time order.

    A policy without such a route is left out. Source order is one where the dates agree with it.
    """
    order = event_order(case.pool.records) if updates else ()
    current = [question.labels.get(updates) for question in case.questions]
    resolved: dict[str, npt.NDArray[np.float64]] = {}
    for route in routes:
        if updates and route.order == order and not route.failed and route.schedule in _BY_TIME:
            resolved[route.policy] = np.array(
                [
                    bool(exposure.sources & ids) if ids else np.nan
                    for exposure, ids in zip(route.exposures, current, strict=True)
                ],
                dtype=np.float64,
            )
    return resolved


def enter_prevented(
    coordinates: Sequence[tuple[str, str, Quantity[Pair]]],
    values: Mapping[tuple[str, str], npt.NDArray[np.float64]],
    resolved: Resolved,
    sums: Sums[Key],
) -> None:
    """Count the questions that end with the old value on a route, and with the current by time."""
    names = [coordinate.name for _, _, coordinate in coordinates]
    if "stale_only.route" not in names:
        return
    at = names.index("stale_only.route")
    for (policy, schedule), table in values.items():
        if policy not in resolved:
            continue
        prevented = table[:, at] * resolved[policy]
        number = int((~np.isnan(prevented)).sum())
        if number:
            column = Column("updates", PREVENTED, policy, schedule, labels=coordinates[at][1])
            sums[column, "all"] = (float(np.nansum(prevented)), number)


def enter_displacements(
    case: Case, routes: Sequence[Route], sums: Sums[Key], schedule: str = ""
) -> None:
    """Count updates, those that arrive before what they replace, and what memories did to them.

    With `schedule`, the name of an arrival model, the routes are its orders, and the counts are
    means over them.
    """
    if not case.supersedes:
        return
    number = len(case.questions)
    sums[Column("updates", "count.updates"), "all"] = (float(len(case.supersedes)), number)
    counts: dict[Column, list[float]] = {}
    for route in routes:
        if schedule and not route.reference:
            continue
        name = schedule or route.schedule
        arrivals = tuple(case.pool.records[position] for position in route.order)
        late = sum(
            not is_in_event_order(arrivals, {later: earlier})
            for later, earlier in case.supersedes.items()
        )
        column = Column("updates", "count.updates_out_of_order", schedule=name)
        counts.setdefault(column, []).append(float(late))
        build = Displacements(
            route.events,
            tuple(record.id for record in arrivals),
            route.retained,
            case.supersedes,
        )
        for coordinate in DISPLACEMENTS:
            value = None if route.failed else coordinate.value(build)
            if value is not None:
                column = Column("updates", coordinate.name, route.policy, name)
                counts.setdefault(column, []).append(value)
    for column, values in counts.items():
        sums[column, "all"] = (sum(values) / len(values), number)
