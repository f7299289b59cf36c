"""Which record won where a fact changed: current and outdated evidence, answers and displacements.

All of it reads labels. A question without outdated evidence, or without outdated answers, has no
value here: nothing about it changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from routeprism.measures._coordinates import Coordinate
from routeprism.policies import Event
from routeprism.records import find_superseded, find_superseding
from routeprism.routes import ExposureTrace, Pair

__all__ = [
    "DISPLACEMENTS",
    "OUTDATED_ANSWERS",
    "UPDATES",
    "Displacements",
    "OutdatedAnswers",
    "is_stale_only",
    "update_coordinates",
]

_REFERENCE = "docs/updates.md"
_SIDES = ("forward", "route")
_SIDE_NAMES = {"forward": "the forward route", "route": "the other route"}

Evidence = tuple[frozenset[str], frozenset[str]]
"""Current and outdated evidence of a question."""


def is_stale_only(sources: frozenset[str], current: frozenset[str], stale: frozenset[str]) -> bool:
    """Whether some of the outdated evidence is among these records and no current evidence is."""
    return bool(sources & stale) and not sources & current


def _evidence(pair: Pair, labels: str) -> Evidence:
    question = pair.question
    return question.labels.get(labels, frozenset()), question.stale.get(labels, frozenset())


def _current_exposed(evidence: Evidence, exposure: ExposureTrace) -> float | None:
    current, stale = evidence
    return float(bool(current & exposure.sources)) if current and stale else None


def _stale_exposed(evidence: Evidence, exposure: ExposureTrace) -> float | None:
    stale = evidence[1]
    return float(bool(stale & exposure.sources)) if stale else None


def _stale_only(evidence: Evidence, exposure: ExposureTrace) -> float | None:
    return float(is_stale_only(exposure.sources, *evidence)) if all(evidence) else None


def _both_exposed(evidence: Evidence, exposure: ExposureTrace) -> float | None:
    current = _current_exposed(evidence, exposure)
    return (
        None if current is None else float(bool(current) and bool(evidence[1] & exposure.sources))
    )


def _stale_last(evidence: Evidence, exposure: ExposureTrace) -> float | None:
    """Compare the last blocks of either kind; a block with both gives no order."""
    if not _both_exposed(evidence, exposure):
        return None
    current, stale = (
        max(at for at, block in enumerate(exposure.blocks) if block.sources & ids)
        for ids in evidence
    )
    return None if current == stale else float(stale > current)


@dataclass(frozen=True, slots=True)
class _Reading:
    """What one coordinate reads on either route, in words."""

    name: str
    symbol: str
    meaning: str
    zero: str
    meaning_of_one: str
    measure: Callable[[Evidence, ExposureTrace], float | None]


_READINGS = (
    _Reading(
        "current_exposed",
        "V∩current",
        "whether at least one record of the current evidence is shown",
        "no current evidence shown",
        "current evidence shown",
        _current_exposed,
    ),
    _Reading(
        "stale_exposed",
        "V∩stale",
        "whether at least one record of the outdated evidence is shown",
        "no outdated evidence shown",
        "outdated evidence shown",
        _stale_exposed,
    ),
    _Reading(
        "stale_only",
        "stale only",
        "whether outdated evidence is shown and no current evidence is: the case that misleads",
        "current evidence shown, or no evidence at all",
        "outdated evidence shown without its successor",
        _stale_only,
    ),
    _Reading(
        "both_exposed",
        "both",
        "whether current and outdated evidence are shown together",
        "not both",
        "both shown",
        _both_exposed,
    ),
    _Reading(
        "stale_last",
        "stale last",
        "where both are shown in different blocks, whether the outdated evidence comes last",
        "the current evidence comes last",
        "the outdated evidence comes last",
        _stale_last,
    ),
)


def update_coordinates(labels: str) -> tuple[Coordinate[Pair], ...]:
    """Return the coordinates that read current and outdated evidence of one label source."""
    coordinates: list[Coordinate[Pair]] = []
    for reading in _READINGS:
        values = [partial(_read_side, reading, labels, at) for at in range(len(_SIDES))]
        coordinates += [
            Coordinate(
                f"{reading.name}.{side}",
                f"{reading.symbol}, {side}",
                f"{reading.meaning}, on {_SIDE_NAMES[side]}",
                reading.zero,
                reading.meaning_of_one,
                _REFERENCE,
                values[at],
                is_count=True,
            )
            for at, side in enumerate(_SIDES)
        ]
        coordinates.append(
            Coordinate(
                f"{reading.name}.route-forward",
                f"Δ {reading.symbol}",
                f"{reading.meaning}: the other route minus the forward route",
                "the same on both routes",
                f"{reading.meaning_of_one} on the other route alone",
                _REFERENCE,
                partial(_subtract, values[1], values[0]),
            )
        )
    coordinates.append(
        Coordinate(
            "stale_only.by_order",
            "stale only, by order",
            "whether the other route shows outdated evidence alone and the forward route does not",
            "not on the other route, or on both",
            "on the other route alone",
            _REFERENCE,
            partial(_by_order, labels),
            is_count=True,
        )
    )
    return tuple(coordinates)


def _read_side(reading: _Reading, labels: str, side: int, pair: Pair) -> float | None:
    exposure = (pair.forward_exposure, pair.route_exposure)[side]
    return reading.measure(_evidence(pair, labels), exposure)


def _subtract(
    first: Callable[[Pair], float | None], second: Callable[[Pair], float | None], pair: Pair
) -> float | None:
    after, before = first(pair), second(pair)
    return None if after is None or before is None else after - before


def _by_order(labels: str, pair: Pair) -> float | None:
    evidence = _evidence(pair, labels)
    before = _stale_only(evidence, pair.forward_exposure)
    after = _stale_only(evidence, pair.route_exposure)
    return None if before is None or after is None else float(bool(after) and not before)


UPDATES = update_coordinates("benchmark")
"""The coordinates for labels that a benchmark publishes; for reference pages."""


@dataclass(frozen=True, slots=True)
class OutdatedAnswers:
    """The answers to one question on the two routes, and the answers that were once right."""

    forward: tuple[str, ...]
    route: tuple[str, ...]
    outdated: Collection[str]


def _outdated_share(answers: Sequence[str], outdated: Collection[str]) -> float | None:
    if not outdated or not answers:
        return None
    return sum(answer in outdated for answer in answers) / len(answers)


def _outdated_change(answers: OutdatedAnswers) -> float | None:
    before = _outdated_share(answers.forward, answers.outdated)
    after = _outdated_share(answers.route, answers.outdated)
    return None if before is None or after is None else after - before


OUTDATED_ANSWERS: tuple[Coordinate[OutdatedAnswers], ...] = (
    Coordinate(
        "outdated_answer.forward",
        "outdated, forward",
        "share of answers on the forward route that were once right and are outdated",
        "no outdated answer",
        "every answer is outdated",
        _REFERENCE,
        lambda answers: _outdated_share(answers.forward, answers.outdated),
    ),
    Coordinate(
        "outdated_answer.route",
        "outdated, route",
        "share of answers on the other route that were once right and are outdated",
        "no outdated answer",
        "every answer is outdated",
        _REFERENCE,
        lambda answers: _outdated_share(answers.route, answers.outdated),
    ),
    Coordinate(
        "outdated_answer.route-forward",
        "Δ outdated",
        "share of outdated answers on the other route minus that on the forward route",
        "equally many",
        "every answer outdated on the other route, none forward",
        _REFERENCE,
        _outdated_change,
    ),
)
"""What answers to questions with outdated options have."""


@dataclass(frozen=True, slots=True)
class Displacements:
    """What a memory reports of one build, and which records replace which."""

    events: Sequence[Event]
    arrivals: Sequence[str]
    """Record ids in their order of arrival."""
    retained: frozenset[str]
    supersedes: Mapping[str, frozenset[str]]


def _count_inverted(build: Displacements) -> float | None:
    """Count newer records that an older one displaced for good."""
    if not build.events or not build.supersedes:
        return None
    displaced = {
        event.record
        for event in build.events
        if event.kind in ("overwrite", "evict")
        and event.record not in build.retained
        and event.by in find_superseded(build.supersedes, (event.record,))
    }
    return float(len(displaced))


def _count_discarded(build: Displacements) -> float | None:
    """Count updates that were not taken in although no successor of theirs had arrived."""
    if not build.events or not build.supersedes:
        return None
    accepted = {(e.by, e.at) for e in build.events if e.kind in ("add", "merge", "overwrite")}
    discarded = set()
    for event in build.events:
        refused = event.kind == "skip" and event.record == event.by
        emptied = event.kind == "evict" and (event.by, event.at) not in accepted
        update = event.by
        if not (refused or emptied) or update in build.retained:
            continue
        later = find_superseding(build.supersedes, update)
        if build.supersedes.get(update) and later.isdisjoint(build.arrivals[: event.at]):
            discarded.add(update)
    return float(len(discarded))


DISPLACEMENTS: tuple[Coordinate[Displacements], ...] = (
    Coordinate(
        "count.inverted_supersessions",
        "inverted",
        "newer records that an older record displaced and that are not kept in the end; not "
        "applicable where a memory reports no events",
        "no older record displaced a newer one",
        "",
        _REFERENCE,
        _count_inverted,
    ),
    Coordinate(
        "count.discarded_updates",
        "discarded",
        "updates that a memory discarded, as a duplicate or after it removed the old record, "
        "although nothing newer had arrived; not applicable where a memory reports no events",
        "every update was taken in",
        "",
        _REFERENCE,
        _count_discarded,
    ),
)
"""What a memory that reports events has for each pool and route."""
