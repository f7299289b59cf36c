"""Where support changed and where it did not: what the answers do in each (Appendices F.2, I.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from routeprism.experiments._asked import AskedPair
from routeprism.experiments._rows import Column, Key
from routeprism.experiments._strata import Strata, Values, enter
from routeprism.measures import Draws, Sums

__all__ = ["SUPPORT", "enter_funnel", "enter_support"]


SUPPORT = ("support-changed", "support-preserved", "support-absent")
"""Arms of pairs whose exposed support differs, does not, or is nothing on both routes."""


def enter_support(
    strata: Strata,
    column: Column,
    asked: Sequence[Sequence[AskedPair]],
    values: Mapping[str, Values],
    quantities: Sequence[str],
    sums: Sums[Key],
) -> None:
    """Enter each quantity for pairs whose exposed support changed and for those where it did not.

    `column` names the label source. Pairs that expose no support at all are also given apart.
    """
    support = [_exposed_support(pairs[0], column.labels) for pairs in asked]
    inside = (
        [sides is not None and sides[0] != sides[1] for sides in support],
        [sides is not None and sides[0] == sides[1] for sides in support],
        [sides is not None and not sides[0] | sides[1] for sides in support],
    )
    for arm, wanted in zip(SUPPORT, inside, strict=True):
        for name in quantities:
            kept = zip(wanted, values[name], strict=True)
            part = [value if inside else None for inside, value in kept]
            enter(sums, strata, column._replace(quantity=name, arm=arm), part)


def enter_funnel(
    strata: Strata,
    column: Column,
    asked: Sequence[Sequence[AskedPair]],
    draws: Mapping[AskedPair, Draws],
    sums: Sums[Key],
) -> None:
    """Count the steps from visible change to answer change.

    Also how often both routes are right with nothing of their support in common.
    """
    support = [_exposed_support(pairs[0], column.labels) for pairs in asked]
    steps: dict[str, list[float | None]] = {
        "visible_change": [],
        "support_change": [],
        "support_loss": [],
        "answer_change": [],
        "same_right_answer": [],
        "same_right_disjoint_support": [],
    }
    for pairs, sides in zip(asked, support, strict=True):
        one = draws.get(pairs[0])
        if sides is None or one is None:
            for step in steps.values():
                step.append(None)
            continue
        visible = pairs[0].shown[0].sources != pairs[0].shown[1].sources
        lost = bool(sides[0]) != bool(sides[1])
        answers = bool(one.forward and one.route) and one.forward[0] != one.route[0]
        right = bool(one.forward_right) and one.forward_right[0] and one.route_right[0]
        steps["visible_change"].append(float(visible))
        steps["support_change"].append(float(visible and sides[0] != sides[1]))
        steps["support_loss"].append(float(visible and lost))
        steps["answer_change"].append(float(visible and lost and answers))
        steps["same_right_answer"].append(float(right))
        disjoint = sides[0] != sides[1] and not sides[0] & sides[1]
        steps["same_right_disjoint_support"].append(float(right and disjoint))
    for name, numbers in steps.items():
        named = column._replace(experiment="support", quantity=f"count.{name}")
        enter(sums, strata, named, numbers)


def _exposed_support(pair: AskedPair, labels: str) -> tuple[frozenset[str], frozenset[str]] | None:
    support = pair.question.labels.get(labels)
    if not support:
        return None
    forward, route = pair.shown
    return forward.sources & support, route.sources & support
