"""Answers by what happened to the exposed support of a pair (Appendices F.2, I.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from routeprism.answers import Comparison
from routeprism.experiments._rows import Column, Key
from routeprism.experiments._strata import Strata, Values, enter
from routeprism.measures import Draws, Sums

__all__ = ["SUPPORT", "enter_funnel", "enter_support"]


SUPPORT = ("support-changed", "support-preserved", "support-unlabelled", "support-absent")
"""Arms of pairs whose exposed support differs or does not, and of questions without a label.

These three partition the questions, so a question that was read and has no supporting record is
preserved (F.2: 39 + 24 = 63). Last, the preserved pairs that expose no support on either route.
"""


STEPS = (
    "pairs",
    "visible_change",
    "support_change",
    "support_loss",
    "answer_change",
    "same_right_answer",
    "same_right_disjoint_support",
)
"""What labelled pairs are counted by, after all that were answered."""


def enter_support(
    strata: Strata,
    column: Column,
    pairs: Sequence[Sequence[Comparison]],
    values: Mapping[str, Values],
    quantities: Sequence[str],
    sums: Sums[Key],
) -> None:
    """Enter each quantity for pairs whose exposed support changed and for those where it did not.

    `column` names the label source. Pairs that expose no support are also reported separately.
    """
    support = [_exposed_support(under_fillers[0], column.labels) for under_fillers in pairs]
    membership = (
        [sides is not None and sides[0] != sides[1] for sides in support],
        [sides is not None and sides[0] == sides[1] for sides in support],
        [sides is None for sides in support],
        [sides is not None and not sides[0] | sides[1] for sides in support],
    )
    for arm, members in zip(SUPPORT, membership, strict=True):
        for name in quantities:
            selected = zip(members, values[name], strict=True)
            part = [value if membership else None for membership, value in selected]
            enter(sums, strata, column._replace(quantity=name, arm=arm), part)


def enter_funnel(
    strata: Strata,
    column: Column,
    pairs: Sequence[Sequence[Comparison]],
    draws: Mapping[Comparison, Draws],
    sums: Sums[Key],
) -> None:
    """Count the steps from visible change to answer change, route-and-padding pair by pair (I.4).

    Also how often both routes are right with nothing of their support in common. `count.users.…`
    counts the units that have such a pair.
    """
    target = column._replace(experiment="support")
    steps = [
        [
            _steps(pair, sides, draws[pair])
            for pair in under_fillers
            if sides is not None and pair in draws
        ]
        for under_fillers in pairs
        for sides in [_exposed_support(under_fillers[0], column.labels)]
    ]
    for name in STEPS:
        numbers: list[float | None] = [
            float(sum(step[name] for step in several)) if several else None for several in steps
        ]
        enter(sums, strata, target._replace(quantity=f"count.{name}"), numbers)
        if name != STEPS[0]:
            _enter_users(strata, target._replace(quantity=f"count.users.{name}"), numbers, sums)


def _steps(
    pair: Comparison, sides: tuple[frozenset[str], frozenset[str]], draws: Draws
) -> dict[str, bool]:
    """Describe how far one pair goes, by its exposed support and its formal answers."""
    forward, route = sides
    visible = pair.exposures[0].sources != pair.exposures[1].sources
    lost = visible and bool(forward) != bool(route)
    answers = bool(draws.forward and draws.route) and draws.forward[0] != draws.route[0]
    right = bool(draws.forward_right) and draws.forward_right[0] and draws.route_right[0]
    disjoint = forward != route and not forward & route
    values = (
        True,
        visible,
        visible and forward != route,
        lost,
        lost and answers,
        right,
        right and disjoint,
    )
    return dict(zip(STEPS, values, strict=True))


def _enter_users(strata: Strata, column: Column, numbers: Values, sums: Sums[Key]) -> None:
    """Enter whether the unit has any, over all its questions and within each mask."""
    for (stratum, mask), places in strata.places.items():
        values = [value for at in places if (value := numbers[at]) is not None]
        if values and stratum == "all":
            sums[column._replace(mask=mask), stratum] = (float(any(values)), len(values))


def _exposed_support(pair: Comparison, labels: str) -> tuple[frozenset[str], frozenset[str]] | None:
    support = pair.question.labels.get(labels)
    if support is None:
        return None
    forward, route = pair.exposures
    return forward.sources & support, route.sources & support
