"""Several builds of each route: order told apart from a memory's own chance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from routeprism.experiments._rows import Column
from routeprism.experiments._sentences import interval
from routeprism.measures import BUILD_COORDINATES, Builds, Once
from routeprism.orders import FORWARD
from routeprism.policies import Policy, innermost
from routeprism.records import Case
from routeprism.routes import Route
from routeprism.runs import EstimateRow, Finding

__all__ = ["build_findings", "build_sentences", "build_values", "by_chance", "chancy"]

Values = dict[Column, list[float | None]]


def chancy(policies: Sequence[Policy]) -> frozenset[str]:
    """Name the policies that declare that the same arrivals may give another memory."""
    return frozenset(
        policy.name
        for policy in policies
        if getattr(innermost(policy), "deterministic", True) is False
    )


def build_values(case: Case, repeated: Sequence[Sequence[Route]]) -> Values:
    """Give, for each pair of routes, what its builds say of each question."""
    values: Values = {}
    for route, builds in _pairs(case, repeated):
        for coordinate in BUILD_COORDINATES:
            column = Column("routes", coordinate.name, route.policy, route.schedule)
            values[column] = [coordinate.value(one) for one in builds]
    return values


def build_findings(
    case: Case, repeated: Sequence[Sequence[Route]], interfaces: Mapping[str, str]
) -> Iterator[Finding]:
    """Give, for each question and pair, the sources that every build showed."""
    for route, builds in _pairs(case, repeated):
        for question, one in zip(case.questions, builds, strict=True):
            yield Finding(
                name="exposed sources by build",
                policy=route.policy,
                interface=interfaces[route.policy],
                schedule=route.schedule,
                user=route.user,
                question=question.id,
                value={
                    "forward": [sorted(sources) for sources, _ in one.forward],
                    "route": [sorted(sources) for sources, _ in one.route],
                },
            )


def _pairs(case: Case, repeated: Sequence[Sequence[Route]]) -> Iterator[tuple[Route, list[Builds]]]:
    """Put the builds of both routes of each pair together, question by question."""
    every: dict[tuple[str, str], list[Route]] = {
        (route.policy, route.schedule): [] for route in repeated[0]
    }
    for routes in repeated:
        for route in routes:
            if not route.failed:
                every[route.policy, route.schedule].append(route)
    for route in repeated[0]:
        if route.schedule == FORWARD.name:
            continue
        bases = every[route.policy, FORWARD.name]
        others = every[route.policy, route.schedule]
        same = bool(bases) and bases[0].order == route.order
        yield (
            route,
            [
                Builds(_shown(bases, at), _shown(others, at), same)
                for at in range(len(case.questions))
            ],
        )


def _shown(routes: Sequence[Route], at: int) -> tuple[Once, ...]:
    return tuple(
        (route.exposures[at].sources, route.exposures[at].context_sha256) for route in routes
    )


def by_chance(rows: Sequence[EstimateRow], declared: frozenset[str]) -> frozenset[str]:
    """Name the policies whose builds may differ within an order: declared so, or seen to."""
    seen = (
        row.policy
        for row in rows
        if row.quantity == "C_within" and row.stratum == "all" and row.estimate
    )
    return declared | frozenset(seen)


def build_sentences(
    rows: Sequence[EstimateRow], noisy: frozenset[str], builds: int
) -> dict[str, str]:
    """Say for each policy with chance in it what order does beyond building again."""
    grouped: dict[tuple[str, str], dict[str, EstimateRow]] = {}
    for row in rows:
        plain = row.experiment == "routes" and row.stratum == "all"
        if (
            plain
            and row.policy in noisy
            and row.schedule
            and not (row.mask or row.arm or row.model)
        ):
            grouped.setdefault((row.policy, row.schedule), {})[row.quantity] = row
    sentences: dict[str, list[str]] = {}
    for (policy, schedule), found in grouped.items():
        if "J" not in found:
            continue
        said = sentences.setdefault(policy, [])
        if "D_build" not in found:
            said.append(
                f"{schedule}: built once on each route, so that order and the memory's own chance "
                f"cannot be told apart (J = {interval(found['J'])}); say --builds 3"
            )
            continue
        one = found["D_build"]
        if one.lower is not None and one.lower > 0:
            verdict = "order changes its sources more than building again does"
        else:
            verdict = "order is not shown to change its sources more than building again does"
        within, across = (found[name].estimate for name in ("J_within", "J_cross"))
        tail = " [synthetic]" if "synthetic" in one.flags else ""
        said.append(
            f"{schedule}: {verdict}; D_build = {interval(one)}, overlap {within:.3f} within an "
            f"order and {across:.3f} across ({builds} builds){tail}"
        )
    return {policy: f"{policy}, {'; '.join(said)}" for policy, said in sentences.items()}
