"""Differences of two routes beyond those of repeating one of them (Eq. 2, Appendix E.2).

Answers are repeated by drawing them again, memories with chance in them by building them again. The
difference across routes is taken over all pairs of repetitions, and the difference within each
route is taken off. Each route has its own repetitions, so that what is left is zero on average
where the two routes give the same distribution.

An answer is a symbol (an option letter, or a placeholder for a refused or unparsable answer), a
verdict is whether it was right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias, TypeVar

from routeprism.measures._coordinates import average, jaccard, read_quantities, subtract
from routeprism.quantities import Quantity

Repetition = TypeVar("Repetition")


def _differ(first: object, second: object) -> float:
    return float(first != second)


def cross(
    first: Sequence[Repetition],
    second: Sequence[Repetition],
    compare: Callable[[Repetition, Repetition], float] = _differ,
) -> float | None:
    """Average over all pairs of repetitions across the routes; disagreement of answers is H×."""
    return average([compare(a, b) for a in first for b in second])


def within(
    first: Sequence[Repetition],
    second: Sequence[Repetition],
    compare: Callable[[Repetition, Repetition], float] = _differ,
) -> float | None:
    """Average over two repetitions of the same route, such as H_within; needs two of each."""
    sides = [average([compare(a, b) for a, b in combinations(side, 2)]) for side in (first, second)]
    shares = [side for side in sides if side is not None]
    return sum(shares) / 2 if len(shares) == 2 else None


def residual(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | None:
    """D_res = H× − H_within: unbiased for half the squared distance of the two distributions."""
    return subtract(cross(first, second), within(first, second))


def plug_in(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | None:
    """D̂*: half the squared distance of the observed frequencies; biased upwards."""
    if not first or not second:
        return None
    p, q = Counter(first), Counter(second)
    gaps = (p[symbol] / len(first) - q[symbol] / len(second) for symbol in {*p, *q})
    return 0.5 * sum(gap * gap for gap in gaps)


@dataclass(frozen=True, slots=True)
class Draws:
    """The answers to one question on the two routes, draw by draw; the first is the formal one."""

    forward: tuple[str, ...]
    """Symbols; empty for free text, where only verdicts can be compared."""
    route: tuple[str, ...]
    forward_right: tuple[bool, ...]
    """Verdicts; empty where the right answer is not known."""
    route_right: tuple[bool, ...]

    def fresh(self) -> Draws:
        """Leave the formal answers out (Appendix I.2)."""
        return Draws(self.forward[1:], self.route[1:], self.forward_right[1:], self.route_right[1:])


def _first_differ(draws: Draws) -> float | None:
    if not draws.forward or not draws.route:
        return None
    return float(draws.forward[0] != draws.route[0])


def _same_draw_differ(draws: Draws) -> float | None:
    """Average disagreement of draws with the same number."""
    pairs = zip(draws.forward, draws.route, strict=False)
    return average([float(first != second) for first, second in pairs])


def _score_first(verdicts: Sequence[bool]) -> float | None:
    return float(verdicts[0]) if verdicts else None


def _first_change(draws: Draws) -> float | None:
    return subtract(_score_first(draws.route_right), _score_first(draws.forward_right))


def _differ_equally_right(draws: Draws) -> float | None:
    differ, change = _first_differ(draws), _first_change(draws)
    return None if differ is None or change is None else float(differ == 1 and change == 0)


def transition(draws: Draws) -> str | None:
    """Name the formal answers' correctness, forward then route: CC, CI, IC or II."""
    if not draws.forward_right or not draws.route_right:
        return None
    return "".join(
        "C" if right else "I" for right in (draws.forward_right[0], draws.route_right[0])
    )


ANSWER_COORDINATES: tuple[Quantity[Draws], ...] = read_quantities(
    {
        "H": _first_differ,
        "Delta": _first_change,
        "H_eq": _differ_equally_right,
        "H_same": _same_draw_differ,
        "H_cross": lambda draws: cross(draws.forward, draws.route),
        "H_within": lambda draws: within(draws.forward, draws.route),
        "D_res": lambda draws: residual(draws.forward, draws.route),
        "D_star": lambda draws: plug_in(draws.forward, draws.route),
        "Delta_rep": lambda draws: subtract(
            average(draws.route_right), average(draws.forward_right)
        ),
        "D_correct": lambda draws: residual(draws.forward_right, draws.route_right),
        "accuracy.forward": lambda draws: average(draws.forward_right),
        "accuracy.route": lambda draws: average(draws.route_right),
        "accuracy.forward.single": lambda draws: _score_first(draws.forward_right),
        "accuracy.route.single": lambda draws: _score_first(draws.route_right),
    }
)
"""The coordinates of an answered pair, as far as its draws allow."""


Once: TypeAlias = "tuple[frozenset[str], str]"
"""The sources that one build exposed to a question, and the digest of its context."""
Alike = Callable[[Once, Once], float]


@dataclass(frozen=True, slots=True)
class Builds:
    """The exposures of one question in every build of the two routes."""

    forward: tuple[Once, ...]
    route: tuple[Once, ...]
    same_order: bool = False
    """Whether the two routes are one order, and thus the same builds."""

    def within(self, alike: Alike) -> float | None:
        """Average over two builds of the same route."""
        return within(self.forward, self.route, alike)

    def cross(self, alike: Alike) -> float | None:
        """Average over all pairs of builds across the routes; shared builds say nothing."""
        return self.within(alike) if self.same_order else cross(self.forward, self.route, alike)

    def exceed(self, alike: Alike) -> float | None:
        """Return how much less alike builds are across the routes than within them."""
        return subtract(self.within(alike), self.cross(alike))


def _sources(first: Once, second: Once) -> float:
    return jaccard(first[0], second[0])


def _contexts(first: Once, second: Once) -> float:
    return float(first[1] == second[1])


BUILD_COORDINATES: tuple[Quantity[Builds], ...] = read_quantities(
    {
        "J_cross": lambda builds: builds.cross(_sources),
        "J_within": lambda builds: builds.within(_sources),
        "D_build": lambda builds: builds.exceed(_sources),
        "C_cross": lambda builds: subtract(1, builds.cross(_contexts)),
        "C_within": lambda builds: subtract(1, builds.within(_contexts)),
        "D_build.C": lambda builds: builds.exceed(_contexts),
    }
)
"""The coordinates of a pair of routes that was built several times."""
