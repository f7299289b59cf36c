"""Bundles: restoring all missing support of a question that needs several records.

The paper leaves this open. Here: Absent is the route that exposes less support. Step by step, in
source order, each missing support record takes the place of a record of Absent that does not
support the answer (smallest source position first); when none is left to take out, it is added.
The replacement bundle does the same with as many records that do not support the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from routeprism.support._eligibility import Exposed, Ineligible

__all__ = ["Bundle", "bundle"]


@dataclass(frozen=True, slots=True)
class Bundle:
    """The conditions of one question's bundle, fixed before any answer exists."""

    missing: tuple[str, ...]
    """The support that Absent does not expose, in source order."""
    absent_schedule: str
    absent: tuple[str, ...]
    steps: tuple[tuple[str, ...], ...]
    """Record ids after each restored record; the last has all of them."""
    replacement: tuple[str, ...]
    """As many exchanges as the last step, with records that do not support the answer."""


def bundle(
    pool: Sequence[str], support: frozenset[str], forward: Exposed, route: Exposed
) -> Bundle | Ineligible:
    """Decide about one pair; `pool` has the record ids in source order."""
    if not support:
        return Ineligible("unlabelled")
    here, there = len(forward.sources & support), len(route.sources & support)
    if here == there:
        return Ineligible("same-support")
    absent = forward if here < there else route
    place = {identity: at for at, identity in enumerate(pool)}
    missing = sorted(support - absent.sources, key=place.__getitem__)
    if len(missing) < 2:
        return Ineligible("one-record")
    others = [one for one in pool if one not in absent.sources and one not in support]
    if len(others) < len(missing):
        return Ineligible("no-replacement")
    removable = sorted(absent.sources - support, key=place.__getitem__)

    def exchanged(added: Sequence[str]) -> tuple[str, ...]:
        kept = absent.sources - frozenset(removable[: len(added)])
        return tuple(sorted((*kept, *added), key=place.__getitem__))

    return Bundle(
        tuple(missing),
        absent.schedule,
        tuple(sorted(absent.sources, key=place.__getitem__)),
        tuple(exchanged(missing[: step + 1]) for step in range(len(missing))),
        exchanged(others[: len(missing)]),
    )
