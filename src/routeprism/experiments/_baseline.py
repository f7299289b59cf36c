"""What is wrong with a memory before order matters, counted question by question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import compress

import numpy as np
import numpy.typing as npt

from routeprism.experiments._case_values import SourcedCoordinate
from routeprism.orders import FORWARD, overlaps_writes
from routeprism.records import Case
from routeprism.routes import Route

__all__ = ["count_baseline"]


def count_baseline(
    case: Case,
    routes: Sequence[Route],
    coordinates: Sequence[SourcedCoordinate],
    tables: Mapping[tuple[str, str], npt.NDArray[np.float64]],
    labels: str,
) -> Counter[tuple[str, str]]:
    """Count, for each policy, the questions that the reference order fails already.

    That is source order, unless all orders are compared with another one. Questions whose text
    names no record are left out.

    `tables` has the values of the `coordinates` for every order, question by question; those of an
    arrival model are means over its orders, so that 1 means every order.
    """
    counts: Counter[tuple[str, str]] = Counter()
    support = [question.labels.get(labels, frozenset()) for question in case.questions]
    visible: dict[str, npt.NDArray[np.bool_]] = {}
    for route in _list_bases(routes):
        counts[route.policy, "records"] += len(set(route.order))
        counts[route.policy, "kept"] += len(route.retained)
        pairs = list(zip(support, route.exposures, strict=True))
        # A text that names no record may contain any.
        sourced = [bool(exposure.sources or not exposure.context_chars) for _, exposure in pairs]
        missing = [not evidence <= exposure.sources for evidence, exposure in pairs]
        visible[route.policy] = np.array(sourced, dtype=np.bool_)
        counts[route.policy, "questions"] += sum(map(bool, compress(support, sourced)))
        counts[route.policy, "lacking"] += sum(compress(missing, sourced))
    names = [coordinate.name for _, _, coordinate in coordinates]
    wrong = {
        "never_kept": ("all_covered.retained", 0),
        "never_shown": ("all_covered.exposed", 0),
        "outdated": ("stale_only", 1),
        "updates": ("stale_only", None),
    }
    for name, (quantity, value) in wrong.items():
        if f"{quantity}.route" in names:
            sides = [names.index(f"{quantity}.{side}") for side in ("forward", "route")]
            for policy, every in _find_always(tables, sides, value).items():
                counts[policy, name] = int(np.sum(every & visible.get(policy, True)))
    for policy in {policy for policy, _ in counts}:  # what is never kept is never shown either
        counts[policy, "never_shown"] -= counts[policy, "never_kept"]
    return counts


def _list_bases(routes: Sequence[Route]) -> list[Route]:
    """List the routes in the order that all others are compared with."""
    references = {route.reference for route in routes if route.reference}
    reference = references.pop() if len(references) == 1 else FORWARD.name
    return [route for route in routes if route.schedule == reference and not route.failed]


def _find_always(
    tables: Mapping[tuple[str, str], npt.NDArray[np.float64]],
    sides: Sequence[int],
    value: float | None,
) -> dict[str, npt.NDArray[np.bool_]]:
    """Find for each policy the questions that have a value in every order; None for any value."""
    every: dict[str, npt.NDArray[np.bool_]] = {}
    for (policy, schedule), values in tables.items():
        if not overlaps_writes(schedule):
            numbers = values[:, sides]
            equal = ~np.isnan(numbers) if value is None else numbers == value
            always = np.all(equal, axis=1)
            every[policy] = every.get(policy, always) & always
    return every
