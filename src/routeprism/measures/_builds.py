"""Differences of routes beyond those of repeated builds of the same route.

A memory with chance in it differs from build to build within one order. As D_res does for answers,
the difference across orders is taken over all pairs of builds, and the difference within each order
is taken off; each route has its own builds, so that what is left is zero on average where the
two orders give the same distribution of memories.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

from routeprism.measures._coordinates import Coordinate, average, jaccard

__all__ = ["BUILD_COORDINATES", "Builds", "Once"]

Once: TypeAlias = "tuple[frozenset[str], str]"
"""The sources that one build exposed to a question, and the digest of its context."""


@dataclass(frozen=True, slots=True)
class Builds:
    """The exposures of one question in every build of the two routes."""

    forward: tuple[Once, ...]
    route: tuple[Once, ...]
    same_order: bool = False
    """Whether the two routes are one order, and thus the same builds."""


Alike = Callable[[Once, Once], float]


def _average_within(builds: Builds, alike: Alike) -> float | None:
    """Average over two builds of the same route; needs two builds of each."""
    sides = [
        average([alike(a, b) for a, b in combinations(side, 2)])
        for side in (builds.forward, builds.route)
    ]
    shares = [side for side in sides if side is not None]
    return sum(shares) / 2 if len(shares) == 2 else None


def _cross(builds: Builds, alike: Alike) -> float | None:
    """Average over all pairs of builds across the routes; builds that are shared say nothing."""
    if builds.same_order:
        return _average_within(builds, alike)
    return average([alike(a, b) for a in builds.forward for b in builds.route])


def _exceed_within(builds: Builds, alike: Alike) -> float | None:
    within, across = _average_within(builds, alike), _cross(builds, alike)
    return None if within is None or across is None else within - across


def _sources(first: Once, second: Once) -> float:
    return jaccard(first[0], second[0])


def _contexts(first: Once, second: Once) -> float:
    return float(first[1] == second[1])


def _distance(value: float | None) -> float | None:
    return None if value is None else 1 - value


BUILD_COORDINATES: tuple[Coordinate[Builds], ...] = (
    Coordinate(
        "J_cross",
        "J×",
        "overlap of the exposed sources, averaged over all pairs of builds across the routes",
        "no exposed source in common",
        "the same sources exposed",
        "Appendix J, as Eq. 2",
        lambda builds: _cross(builds, _sources),
    ),
    Coordinate(
        "J_within",
        "J_within",
        "overlap of the exposed sources between two builds of the same route",
        "no two builds expose a common source",
        "every build exposes the same sources",
        "Appendix J, as Eq. 2",
        lambda builds: _average_within(builds, _sources),
    ),
    Coordinate(
        "D_build",
        "D_build",
        "overlap lost across orders beyond what building again in the same order loses",
        "orders differ no more than builds of one order do",
        "each order always exposes the same, the two nothing in common",
        "Appendix J, as Eq. 2",
        lambda builds: _exceed_within(builds, _sources),
    ),
    Coordinate(
        "C_cross",
        "C×",
        "share of pairs of builds across the routes whose contexts differ",
        "the same text compiled",
        "never the same text",
        "Appendix J, as Eq. 2",
        lambda builds: _distance(_cross(builds, _contexts)),
    ),
    Coordinate(
        "C_within",
        "C_within",
        "share of pairs of builds of the same route whose contexts differ",
        "every build compiles the same text",
        "never the same text",
        "Appendix J, as Eq. 2",
        lambda builds: _distance(_average_within(builds, _contexts)),
    ),
    Coordinate(
        "D_build.C",
        "D_build^C",
        "contexts that differ across orders beyond those that differ between builds of one order",
        "orders differ no more than builds of one order do",
        "each order always compiles the same text, the two never",
        "Appendix J, as Eq. 2",
        lambda builds: _exceed_within(builds, _contexts),
    ),
)
"""The coordinates of a pair of routes that was built several times."""
