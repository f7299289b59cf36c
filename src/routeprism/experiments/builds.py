"""Several builds of each route: order separated from a memory's own chance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from routeprism.exhibits import Statement
from routeprism.experiments._rows import Column
from routeprism.experiments.statements import BUILD_AGAIN, state_row
from routeprism.judge import is_claim_shown
from routeprism.measures import BUILD_COORDINATES, Builds, Once
from routeprism.policies import Policy, unwrap_policy
from routeprism.records import Case
from routeprism.routes import Route
from routeprism.runs import EstimateRow, Finding, Rows

Values = dict[Column, list[float | None]]


def build_values(case: Case, repeated: Sequence[Sequence[Route]]) -> Values:
    """Return for each pair of routes what its builds show for each question."""
    values: Values = {}
    for route, builds in _pairs(case, repeated):
        for coordinate in BUILD_COORDINATES:
            column = Column("routes", coordinate.name, route.policy, route.schedule)
            values[column] = [coordinate.value(build) for build in builds]
    return values


def build_findings(
    case: Case, repeated: Sequence[Sequence[Route]], interfaces: Mapping[str, str]
) -> Iterator[Finding]:
    """Return for each question and pair the sources that every build showed."""
    for route, builds in _pairs(case, repeated):
        for question, build in zip(case.questions, builds, strict=True):
            yield Finding(
                name="exposed sources by build",
                policy=route.policy,
                interface=interfaces[route.policy],
                schedule=route.schedule,
                user=route.user,
                question=question.id,
                value={
                    "forward": [sorted(sources) for sources, _ in build.forward],
                    "route": [sorted(sources) for sources, _ in build.route],
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
        if not route.reference:
            continue
        bases = every[route.policy, route.reference]
        alternatives = every[route.policy, route.schedule]
        same = bool(bases) and bases[0].order == route.order
        same = same and bases[0].procedure == route.procedure
        yield (
            route,
            [
                Builds(_list_exposures(bases, at), _list_exposures(alternatives, at), same)
                for at in range(len(case.questions))
            ],
        )


def _list_exposures(routes: Sequence[Route], at: int) -> tuple[Once, ...]:
    return tuple(
        (route.exposures[at].sources, route.exposures[at].context_sha256) for route in routes
    )


def find_noisy_policies(rows: Sequence[EstimateRow], policies: Sequence[Policy]) -> frozenset[str]:
    """Name the policies whose builds may differ within an order: declared so, or observed."""
    declared = (
        policy.name
        for policy in policies
        if getattr(unwrap_policy(policy), "deterministic", True) is False
    )
    observed = Rows.of(rows).where(quantity="C_within", stratum="all")
    return frozenset(declared) | {row.policy for row in observed if row.estimate}


def build_statements(
    rows: Sequence[EstimateRow], noisy: frozenset[str], builds: int
) -> dict[str, tuple[Statement, ...]]:
    """Describe for each policy with chance in it what order does beyond building again."""
    statements: dict[str, tuple[Statement, ...]] = {}
    for policy in sorted(noisy):
        own = Rows.of(rows).plain(experiment="routes", policy=policy, model="")
        groups = [group for group in own.group("schedule").values() if "J" in group]
        if groups:
            statements[policy] = tuple(_describe_builds(group, builds) for group in groups)
    return statements


def _describe_builds(quantities: Mapping[str, EstimateRow], builds: int) -> Statement:
    residual = quantities.get("D_build")
    if residual is None:
        return state_row(
            "builds",
            quantities["J"],
            "built once on each route, so order cannot be distinguished from the memory's own "
            "chance (J = {row})",
            severity="warning",
            next_step=BUILD_AGAIN,
        )
    more = is_claim_shown(residual, quantities)
    return state_row(
        "builds",
        residual,
        "{verdict} its sources more than building again does; D_build = {row}, overlap "
        "{within:value} within an order and {across:value} across ({builds} builds)",
        severity="problem" if more else "info",
        verdict="order changes" if more else "order is not shown to change",
        within=quantities["J_within"],
        across=quantities["J_cross"],
        builds=str(builds),
    )
