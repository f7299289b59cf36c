"""Designs of the intervention: which record is put back into a context, and in place of which.

They are decided from labels and sources alone, before any answer exists. One route (present)
exposes exactly one direct-support record that the other route (absent) does not. Absent may then
expose no support at all (Appendix I.14), or one support record less (I.15). Restored puts the
record into Absent in place of the record that displaced it. Replacement puts an unrelated record of
the same pool there, at the same display position (§2.3, F.3, I.14, I.15).

A bundle restores all missing support of a question that needs several records, which the paper
leaves open. Absent is then the route that exposes less support. In source order, each missing
record takes the place of the first record of Absent that does not support the answer; when none is
left, it is added. The replacement bundle does the same with records that do not support the answer.

An update starts from a route that shows outdated evidence without its successor. Its four
conditions cross two exchanges at fixed display positions: the outdated record or an unrelated one,
and the current record or an unrelated one. This distinguishes a reader that the old record misleads
from a reader that lacks the new one (docs/updates.md).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

Condition = Literal["present", "absent", "restored", "replacement"]

Eligibility = Literal["none", "one-fewer"]
"""What the absent route may expose: no support (I.14), or one support record fewer (I.15)."""

ELIGIBILITY: Mapping[Eligibility, str] = {
    "none": "one route exposes one support record, the other route exposes none",
    "one-fewer": "one route exposes one support record fewer than the other route",
}

Stratum = Literal[
    "unlabelled",
    "same-support",
    "identity-swap",
    "several-records",
    "support-left",
    "one-record",
    "source-count",
    "not-removable",
    "no-replacement",
    "rewritten",
    "not-stale",
]
"""Why a pair is not eligible; swaps and mismatches are diagnostics of their own."""

STRATA: tuple[Stratum, ...] = get_args(Stratum)

REASONS: Mapping[Stratum, str] = {
    "unlabelled": "the question has no support label",
    "same-support": "both routes expose the same support",
    "identity-swap": "the routes expose different support records: one supports in another's place",
    "several-records": "the routes differ in more than one support record; see bundles",
    "support-left": "the route that lacks the record still exposes other support "
    "(excluded by eligibility=none)",
    "one-record": "fewer than two support records are missing; see single restoration",
    "source-count": "the routes expose different numbers of records",
    "not-removable": "the record to take out is not exposed, or supports the answer itself",
    "no-replacement": "no other record without support takes the same display position",
    "not-stale": "neither route shows outdated evidence without current evidence",
    "rewritten": "the policy does not show whole records, so one cannot be exchanged",
}


@dataclass(frozen=True, slots=True)
class Exposed:
    """The records that a route exposed, and which record stands in for which."""

    schedule: str
    sources: frozenset[str]
    stand_ins: Mapping[str, str]
    """Dropped record → the retained record that took its place, if the policy names it."""


@dataclass(frozen=True, slots=True)
class Design:
    """The four conditions of one eligible pair, fixed before any answer exists."""

    support: str
    """The displaced record."""
    removed: str
    """The record that Restored and Replacement take out of Absent."""
    replacement: str
    """The record that Replacement puts in."""
    present_schedule: str
    absent_schedule: str
    conditions: Mapping[Condition, tuple[str, ...]]
    """Record ids of each condition, in source order."""


@dataclass(frozen=True, slots=True)
class Presence:
    """The two conditions of a pair whose routes differ by one support record (Appendix F.2)."""

    support: str
    """The displaced record."""
    present_schedule: str
    absent_schedule: str
    conditions: Mapping[Condition, tuple[str, ...]]
    """Record ids of Present and Absent, in source order."""


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


@dataclass(frozen=True, slots=True)
class Update:
    """The four conditions of one question about a changed fact, fixed before any answer exists."""

    current: str
    """The record with the current value, which is put back."""
    outdated: str
    """The record with the old value, which is taken out."""
    control: str
    """The unrelated record that stands in the current record's place."""
    replacement: str
    """The unrelated record that stands in the outdated record's place."""
    schedule: str
    """The route that shows the old value alone."""
    conditions: Mapping[str, tuple[str, ...]]
    """Record ids of `stale`, `both`, `neither` and `current`, in source order."""


@dataclass(frozen=True, slots=True)
class Ineligible:
    """A pair that is left out of the estimate."""

    stratum: Stratum

    @property
    def reason(self) -> str:
        """Why, in words."""
        return REASONS[self.stratum]


def design(
    pool: Sequence[str],
    support: frozenset[str],
    forward: Exposed,
    route: Exposed,
    *,
    candidates: Sequence[str] | None = None,
    eligibility: Eligibility = "one-fewer",
) -> Design | Ineligible:
    """Decide about one pair; `pool` has the record ids in source order.

    The replacement is the first suitable record of `candidates`, by default of the pool.
    """
    loss = _find_loss(support, forward, route, eligibility)
    if isinstance(loss, Ineligible):
        return loss
    present, absent, displaced = loss
    removed = absent.stand_ins.get(displaced)
    if removed is None and not absent.stand_ins:
        # The smallest record that does not support the answer itself (Appendices I.14, I.15).
        removed = min(absent.sources - support, key=pool.index, default=None)
    if removed is None or removed not in absent.sources or removed in support:
        return Ineligible("not-removable")
    return _exchange(pool, candidates or pool, support, present, absent, displaced, removed)


def presence_design(
    pool: Sequence[str],
    support: frozenset[str],
    forward: Exposed,
    route: Exposed,
    *,
    eligibility: Eligibility = "one-fewer",
) -> Presence | Ineligible:
    """Decide about a pair that is asked under Present and Absent alone.

    Nothing is exchanged, so a pair without a replacement is eligible as well.
    """
    loss = _find_loss(support, forward, route, eligibility)
    if isinstance(loss, Ineligible):
        return loss
    present, absent, displaced = loss
    conditions: dict[Condition, tuple[str, ...]] = {
        "present": _sort(present.sources, pool),
        "absent": _sort(absent.sources, pool),
    }
    return Presence(displaced, present.schedule, absent.schedule, conditions)


def _find_loss(
    support: frozenset[str], forward: Exposed, route: Exposed, eligibility: Eligibility
) -> tuple[Exposed, Exposed, str] | Ineligible:
    """Find the present route, the absent route and the only support record between them."""
    if not support:
        return Ineligible("unlabelled")
    first, second = forward.sources & support, route.sources & support
    if first == second:
        return Ineligible("same-support")
    if first - second and second - first:
        return Ineligible("identity-swap")
    present, absent = (forward, route) if first > second else (route, forward)
    displaced = first ^ second
    if len(displaced) != 1:
        return Ineligible("several-records")
    if eligibility == "none" and first & second:
        return Ineligible("support-left")
    if len(present.sources) != len(absent.sources):
        return Ineligible("source-count")
    return present, absent, min(displaced)


def swap_design(
    pool: Sequence[str],
    support: frozenset[str],
    forward: Exposed,
    route: Exposed,
    *,
    candidates: Sequence[str] | None = None,
) -> Design | Ineligible | None:
    """Decide about a pair whose routes expose one support record each in the other's place.

    Forward is the reference (present), the other route the alternative (absent), which is not
    without support: Restored exchanges its record for the reference's, Replacement takes it out
    for one that does not support the answer (Appendix I.13). None if support is not swapped.
    """
    displaced = (forward.sources - route.sources) & support
    removed = (route.sources - forward.sources) & support
    if not (displaced and removed):
        return None
    if len(displaced) != 1 or len(removed) != 1:
        return Ineligible("several-records")
    if len(forward.sources) != len(route.sources):
        return Ineligible("source-count")
    records = (min(displaced), min(removed))
    return _exchange(pool, candidates or pool, support, forward, route, *records)


def _exchange(
    pool: Sequence[str],
    candidates: Sequence[str],
    support: frozenset[str],
    present: Exposed,
    absent: Exposed,
    displaced: str,
    removed: str,
) -> Design | Ineligible:
    """Fix the four conditions, if some record can take the displaced one's display position."""
    rest = absent.sources - {removed}
    rank = _rank_among(pool, rest)
    position = rank(displaced)
    for record in candidates:
        if record not in absent.sources and record not in support and rank(record) == position:
            conditions: dict[Condition, tuple[str, ...]] = {
                "present": _sort(present.sources, pool),
                "absent": _sort(absent.sources, pool),
                "restored": _sort((*rest, displaced), pool),
                "replacement": _sort((*rest, record), pool),
            }
            schedules = (present.schedule, absent.schedule)
            return Design(displaced, removed, record, *schedules, conditions)
    return Ineligible("no-replacement")


def bundle(
    pool: Sequence[str], support: frozenset[str], forward: Exposed, route: Exposed
) -> Bundle | Ineligible:
    """Decide about one pair; `pool` has the record ids in source order."""
    if not support:
        return Ineligible("unlabelled")
    first, second = len(forward.sources & support), len(route.sources & support)
    if first == second:
        return Ineligible("same-support")
    absent = forward if first < second else route
    missing = _sort(support - absent.sources, pool)
    if len(missing) < 2:
        return Ineligible("one-record")
    unrelated = [id for id in pool if id not in absent.sources and id not in support]
    if len(unrelated) < len(missing):
        return Ineligible("no-replacement")
    removable = _sort(absent.sources - support, pool)

    def exchange(added: Sequence[str]) -> tuple[str, ...]:
        return _sort((*(absent.sources - frozenset(removable[: len(added)])), *added), pool)

    return Bundle(
        missing,
        absent.schedule,
        _sort(absent.sources, pool),
        tuple(exchange(missing[: step + 1]) for step in range(len(missing))),
        exchange(unrelated[: len(missing)]),
    )


def update_design(
    pool: Sequence[str],
    current: frozenset[str],
    stale: frozenset[str],
    forward: Exposed,
    route: Exposed,
    *,
    candidates: Sequence[str] | None = None,
) -> Update | Ineligible:
    """Decide about a pair of which one route shows outdated evidence alone.

    Both exchanges keep the number of records and the display position of what they exchange. The
    places are those of the outdated record and of one unrelated record that is shown. Where too few
    records are left to fill them, a second unrelated record is left out of all four conditions.
    """
    if not (current and stale):
        return Ineligible("unlabelled")
    side = _find_stale_side((route, forward), current, stale)
    if side is None:
        return Ineligible("not-stale")
    if len(current) != 1 or len(side.sources & stale) != 1:
        return Ineligible("several-records")
    restored, outdated = min(current), min(side.sources & stale)
    unrelated = _sort(side.sources - stale, pool)
    if not unrelated:
        return Ineligible("not-removable")
    unseen = [id for id in candidates or pool if id not in current | stale | side.sources]
    pairs = itertools.combinations(unrelated, 2)
    for removed in (*((record,) for record in unrelated), *pairs):
        rest = side.sources - {outdated, *removed}
        controls = _find_controls(pool, rest, restored, outdated, [*removed, *unseen])
        if controls is not None:
            displaced, replacement = controls
            conditions = {
                "stale": _sort((*rest, outdated, displaced), pool),
                "both": _sort((*rest, outdated, restored), pool),
                "neither": _sort((*rest, replacement, displaced), pool),
                "current": _sort((*rest, replacement, restored), pool),
            }
            return Update(restored, outdated, displaced, replacement, side.schedule, conditions)
    return Ineligible("no-replacement")


def _find_stale_side(
    sides: Sequence[Exposed], current: frozenset[str], stale: frozenset[str]
) -> Exposed | None:
    """Find the first route that shows outdated evidence without current evidence."""
    stale_only = (s for s in sides if s.sources & stale and not s.sources & current)
    return next(stale_only, None)


def _find_controls(
    pool: Sequence[str], rest: frozenset[str], restored: str, outdated: str, free: Sequence[str]
) -> tuple[str, str] | None:
    """Find unrelated records for the places of the current and of the outdated record.

    In all four conditions either place is at the same display position.
    """
    place = {record: at for at, record in enumerate(pool)}
    rank = _rank_among(pool, rest)
    for removed in free:
        for replacement in free:
            if removed == replacement or rank(removed) != rank(restored):
                continue
            sides = {
                place[first] < place[second]
                for first in (outdated, replacement)
                for second in (restored, removed)
            }
            if rank(replacement) == rank(outdated) and len(sides) == 1:
                return removed, replacement
    return None


def _rank_among(pool: Sequence[str], rest: frozenset[str]) -> Callable[[str], int]:
    """Return the function that gives the display position of a record among others."""
    place = {record: at for at, record in enumerate(pool)}
    return lambda record: sum(place[id] < place[record] for id in rest)


def _sort(ids: Iterable[str], pool: Sequence[str]) -> tuple[str, ...]:
    """Put record ids into source order."""
    selected = frozenset(ids)
    return tuple(id for id in pool if id in selected)
