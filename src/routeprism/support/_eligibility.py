"""Which pairs of routes allow the four-condition intervention, decided by labels and sources alone.

One route (present) exposes exactly one direct-support record that the other (absent) does not.
Restored puts it into Absent in place of the record that displaced it; Replacement puts an unrelated
record of the same pool there, at the same display position (§2.3, Appendices F.3, I.14, I.15).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

__all__ = [
    "CONDITIONS",
    "REASONS",
    "STRATA",
    "Condition",
    "Design",
    "Exposed",
    "Ineligible",
    "Stratum",
    "design",
    "swap_design",
]

Condition = Literal["present", "absent", "restored", "replacement"]
CONDITIONS: tuple[Condition, ...] = ("present", "absent", "restored", "replacement")

Stratum = Literal[
    "unlabelled",
    "same-support",
    "identity-swap",
    "several-records",
    "one-record",
    "source-count",
    "not-removable",
    "no-replacement",
    "rewritten",
]
"""Why a pair is not eligible; swaps and mismatches are diagnostics of their own."""

STRATA: tuple[Stratum, ...] = get_args(Stratum)

REASONS: Mapping[Stratum, str] = {
    "unlabelled": "the question has no support label",
    "same-support": "both routes expose the same support",
    "identity-swap": "the routes expose different support records: one supports in another's place",
    "several-records": "the routes differ in more than one support record; see bundles",
    "one-record": "less than two support records are missing; see single restoration",
    "source-count": "the routes expose different numbers of records",
    "not-removable": "the record to take out is not exposed, or supports the answer itself",
    "no-replacement": "no other record without support takes the same display position",
    "rewritten": "the policy does not show whole records, so one cannot be exchanged",
}


@dataclass(frozen=True, slots=True)
class Exposed:
    """What one route exposed, and who stands in for whom."""

    schedule: str
    sources: frozenset[str]
    stand_ins: Mapping[str, str]
    """Dropped record → the retained record that took its place, where the policy says so."""


@dataclass(frozen=True, slots=True)
class Design:
    """The four conditions of one eligible pair, fixed before any answer exists."""

    support: str
    """The displaced record."""
    removed: str
    """What Restored and Replacement take out of Absent."""
    replacement: str
    """What Replacement puts in."""
    present_schedule: str
    absent_schedule: str
    conditions: Mapping[Condition, tuple[str, ...]]
    """Record ids of each condition, in source order."""


@dataclass(frozen=True, slots=True)
class Ineligible:
    """A pair that is left out of the estimate."""

    stratum: Stratum

    @property
    def reason(self) -> str:
        """Why, in words."""
        return REASONS[self.stratum]


Outcome: TypeAlias = "Design | Ineligible"


def design(
    pool: Sequence[str],
    support: frozenset[str],
    forward: Exposed,
    route: Exposed,
    *,
    candidates: Sequence[str] | None = None,
) -> Outcome:
    """Decide about one pair; `pool` has the record ids in source order.

    The replacement is the first of the `candidates` that can be, of the pool unless they are given.
    """
    if not support:
        return Ineligible("unlabelled")
    here, there = forward.sources & support, route.sources & support
    if here == there:
        return Ineligible("same-support")
    if here - there and there - here:
        return Ineligible("identity-swap")
    present, absent = (forward, route) if here > there else (route, forward)
    gained = (here | there) - (here & there)
    if len(gained) != 1:
        return Ineligible("several-records")
    if len(present.sources) != len(absent.sources):
        return Ineligible("source-count")
    (displaced,) = gained
    removed = absent.stand_ins.get(displaced)
    if removed is None and not absent.stand_ins:
        removed = min(absent.sources, key=pool.index, default=None)
    if removed is None or removed not in absent.sources or removed in support:
        return Ineligible("not-removable")
    return _exchanged(pool, candidates or pool, support, present, absent, displaced, removed)


def swap_design(
    pool: Sequence[str],
    support: frozenset[str],
    forward: Exposed,
    route: Exposed,
    *,
    candidates: Sequence[str] | None = None,
) -> Outcome | None:
    """Decide about a pair whose routes expose one support record each in the other's place.

    Forward is the reference (present), the other route the alternative (absent), which is not
    without support: Restored exchanges its record for the reference's, Replacement takes it out
    for one that does not support the answer (Appendix I.13). None where support is not swapped.
    """
    ours, theirs = forward.sources & support, route.sources & support
    if not (ours - theirs and theirs - ours):
        return None
    if len(ours - theirs) != 1 or len(theirs - ours) != 1:
        return Ineligible("several-records")
    if len(forward.sources) != len(route.sources):
        return Ineligible("source-count")
    (displaced,), (removed,) = ours - theirs, theirs - ours
    return _exchanged(pool, candidates or pool, support, forward, route, displaced, removed)


def _exchanged(
    pool: Sequence[str],
    candidates: Sequence[str],
    support: frozenset[str],
    present: Exposed,
    absent: Exposed,
    displaced: str,
    removed: str,
) -> Outcome:
    """Fix the four conditions, if some record can take the displaced one's display position."""
    place = {identity: at for at, identity in enumerate(pool)}
    rest = absent.sources - {removed}

    def shown(extra: str) -> tuple[str, ...]:
        return tuple(sorted((*rest, extra), key=place.__getitem__))

    restored = shown(displaced)
    for other in candidates:
        if other in absent.sources or other in support:
            continue
        replaced = shown(other)
        if replaced.index(other) == restored.index(displaced):
            return Design(
                displaced,
                removed,
                other,
                present.schedule,
                absent.schedule,
                {
                    "present": tuple(sorted(present.sources, key=place.__getitem__)),
                    "absent": tuple(sorted(absent.sources, key=place.__getitem__)),
                    "restored": restored,
                    "replacement": replaced,
                },
            )
    return Ineligible("no-replacement")
