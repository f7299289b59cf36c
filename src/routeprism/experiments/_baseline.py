"""What is wrong with a memory before order matters, counted question by question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

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
    """Count, for each policy, the questions that source order fails already.

    `tables` has the values of the `coordinates` for every order, question by question; those of an
    arrival model are means over its orders, so that 1 means every order.
    """
    counts: Counter[tuple[str, str]] = Counter()
    support = [question.labels.get(labels, frozenset()) for question in case.questions]
    for route in routes:
        if route.schedule != FORWARD.name or route.failed:
            continue
        counts[route.policy, "records"] += len(set(route.order))
        counts[route.policy, "kept"] += len(route.retained)
        for evidence, exposure in zip(support, route.exposures, strict=True):
            lacking = evidence - exposure.sources
            counts[route.policy, "questions"] += bool(evidence)
            counts[route.policy, "lacking"] += bool(lacking)
            counts[route.policy, "never_kept"] += bool(lacking - route.retained)
            counts[route.policy, "never_shown"] += bool(lacking & route.retained)
    names = [coordinate.name for _, _, coordinate in coordinates]
    if "stale_only.route" not in names:
        return counts
    sides = [names.index(f"stale_only.{side}") for side in ("forward", "route")]
    every: dict[str, npt.NDArray[np.bool_]] = {}
    dated: dict[str, npt.NDArray[np.bool_]] = {}
    for (policy, schedule), values in tables.items():
        if not overlaps_writes(schedule):
            stale = values[:, sides]
            is_stale = np.all(stale == 1, axis=1)
            every[policy] = every.get(policy, is_stale) & is_stale
            is_dated = np.all(~np.isnan(stale), axis=1)
            dated[policy] = dated.get(policy, is_dated) | is_dated
    for policy, questions in every.items():
        counts[policy, "outdated"] += int(questions.sum())
        counts[policy, "updates"] += int(dated[policy].sum())
    return counts
