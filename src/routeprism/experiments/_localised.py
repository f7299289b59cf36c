"""Where support changed and where it did not: what the answers do in each (Appendices F.2, I.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from routeprism.experiments._asked import AskedPair
from routeprism.experiments._case import Strata, Values, enter
from routeprism.experiments._rows import Column, Key
from routeprism.measures import Draws, Sums

__all__ = ["enter_support"]


def enter_support(
    strata: Strata,
    column: Column,
    asked: Sequence[Sequence[AskedPair]],
    draws: Mapping[AskedPair, Draws],
    values: Mapping[str, Values],
    quantities: Sequence[str],
    sums: Sums[Key],
) -> None:
    """Enter each quantity for pairs whose exposed support changed and for those where it did not.

    `column` names the label source. Then the funnel from visible change to answer change, and how
    often both routes are right with nothing of their support in common.
    """
    support = [_exposed_support(pairs[0], column.labels) for pairs in asked]
    changed = [None if sides is None else sides[0] != sides[1] for sides in support]
    for arm, wanted in (("support-changed", True), ("support-preserved", False)):
        for name in quantities:
            kept = zip(changed, values[name], strict=True)
            part = [value if state is wanted else None for state, value in kept]
            enter(sums, strata, column._replace(quantity=name, arm=arm), part)
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
