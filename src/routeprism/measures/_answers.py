"""Differences of the answers of two routes beyond the model's sampling (Eq. 2, Appendix E.2).

All functions read plain draws: an answer is a symbol (an option letter, or a placeholder for a
refused or unparsable answer), a verdict is whether it was right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations

from routeprism.measures._coordinates import Coordinate, average

__all__ = ["ANSWER_COORDINATES", "Draws", "residual", "transition"]


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


def cross(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | None:
    """Average disagreement over all pairs of draws across the routes: H×."""
    return average([float(a != b) for a in first for b in second])


def within(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | None:
    """Average disagreement between two draws of the same route: H_within; needs two draws each."""
    sides = [
        average([float(a != b) for a, b in combinations(draws, 2)]) for draws in (first, second)
    ]
    shares = [side for side in sides if side is not None]
    return sum(shares) / 2 if len(shares) == 2 else None


def residual(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | None:
    """D_res = H× − H_within: unbiased for half the squared distance of the two distributions."""
    across, inner = cross(first, second), within(first, second)
    return None if across is None or inner is None else across - inner


def plug_in(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | None:
    """D̂*: half the squared distance of the observed frequencies; biased upwards."""
    if not first or not second:
        return None
    p, q = Counter(first), Counter(second)
    gaps = (p[symbol] / len(first) - q[symbol] / len(second) for symbol in {*p, *q})
    return 0.5 * sum(gap * gap for gap in gaps)


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
    if not draws.forward_right or not draws.route_right:
        return None
    return float(draws.route_right[0]) - float(draws.forward_right[0])


def _differ_equally_right(draws: Draws) -> float | None:
    differ, change = _first_differ(draws), _first_change(draws)
    return None if differ is None or change is None else float(differ == 1 and change == 0)


def _repeated_change(draws: Draws) -> float | None:
    before, after = average(draws.forward_right), average(draws.route_right)
    return None if before is None or after is None else after - before


def transition(draws: Draws) -> str | None:
    """Name the formal answers' correctness, forward then route: CC, CI, IC or II."""
    if not draws.forward_right or not draws.route_right:
        return None
    return "".join(
        "C" if right else "I" for right in (draws.forward_right[0], draws.route_right[0])
    )


ANSWER_COORDINATES: tuple[Coordinate[Draws], ...] = (
    Coordinate(
        "H",
        "H",
        "whether the formal answers of the two routes differ",
        "the same answer",
        "different answers",
        "Eq. 1",
        _first_differ,
    ),
    Coordinate(
        "Delta",
        "Δ",
        "correctness of the route's formal answer minus the forward one's",
        "no change of correctness",
        "the other order corrected an error",
        "Eq. 1",
        _first_change,
    ),
    Coordinate(
        "H_eq",
        "H_eq",
        "whether the formal answers differ while their correctness does not",
        "the same answer, or another correctness",
        "different answers, equally right or wrong",
        "Table 16",
        _differ_equally_right,
    ),
    Coordinate(
        "H_same",
        "H_same",
        "disagreement between draws with the same number on the two routes, averaged over draws",
        "every draw agrees with its counterpart",
        "no draw agrees with its counterpart",
        "Appendix K.4, panel C",
        _same_draw_differ,
    ),
    Coordinate(
        "H_cross",
        "H×",
        "disagreement over all pairs of draws across the routes",
        "all draws agree",
        "no draw of one route agrees with one of the other",
        "Appendix E.2",
        lambda draws: cross(draws.forward, draws.route),
    ),
    Coordinate(
        "H_within",
        "H_within",
        "disagreement between draws of the same prompt, averaged over the two routes",
        "the model always answers a prompt alike",
        "no two draws of a prompt agree",
        "Appendix E.2",
        lambda draws: within(draws.forward, draws.route),
    ),
    Coordinate(
        "D_res",
        "D_res",
        "disagreement across routes beyond what sampling the same prompt explains",
        "the routes answer alike",
        "the routes never answer alike, each always the same",
        "Eq. 2",
        lambda draws: residual(draws.forward, draws.route),
    ),
    Coordinate(
        "D_star",
        "D̂*",
        "plug-in distance of the two answer distributions",
        "the same frequencies",
        "disjoint answers, each certain",
        "Appendix M",
        lambda draws: plug_in(draws.forward, draws.route),
    ),
    Coordinate(
        "Delta_rep",
        "Δ_rep",
        "mean correctness of the route's draws minus the forward ones'",
        "no change of accuracy",
        "always wrong forward, always right on the route",
        "Appendix A.5",
        _repeated_change,
    ),
    Coordinate(
        "D_correct",
        "D_correct",
        "the residual of right and wrong instead of answers",
        "the routes are right equally often",
        "one route is always right, the other never",
        "Appendix K.7",
        lambda draws: residual(draws.forward_right, draws.route_right),
    ),
    Coordinate(
        "accuracy.forward",
        "acc_f",
        "share of right answers on the forward route",
        "never right",
        "always right",
        "Appendix K.3",
        lambda draws: average(draws.forward_right),
    ),
    Coordinate(
        "accuracy.route",
        "acc_r",
        "share of right answers on the other route",
        "never right",
        "always right",
        "Appendix K.3",
        lambda draws: average(draws.route_right),
    ),
    Coordinate(
        "accuracy.forward.single",
        "acc_f,1",
        "whether the formal answer on the forward route is right",
        "wrong",
        "right",
        "Appendix K.3, panel C",
        lambda draws: _score_first(draws.forward_right),
    ),
    Coordinate(
        "accuracy.route.single",
        "acc_r,1",
        "whether the formal answer on the other route is right",
        "wrong",
        "right",
        "Appendix K.3, panel C",
        lambda draws: _score_first(draws.route_right),
    ),
)
"""The coordinates of an answered pair, as far as its draws allow."""
