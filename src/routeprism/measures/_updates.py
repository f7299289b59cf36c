"""Which record won where a fact changed: current and outdated evidence, answers and displacements.

All of it reads labels. A question without outdated evidence, or without outdated answers, has no
value here: nothing about it changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

from routeprism.measures._coordinates import read_quantities, subtract
from routeprism.policies import Event
from routeprism.quantities import Quantity
from routeprism.records import find_superseded, find_superseding
from routeprism.routes import ExposureTrace, Pair

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


_READINGS: Mapping[str, Callable[[Evidence, ExposureTrace], float | None]] = {
    "current_exposed": _current_exposed,
    "stale_exposed": _stale_exposed,
    "stale_only": _stale_only,
    "both_exposed": _both_exposed,
    "stale_last": _stale_last,
}


@lru_cache(maxsize=16)
def update_coordinates(labels: str) -> tuple[Quantity[Pair], ...]:
    """Return the coordinates that read current and outdated evidence of one label source."""
    values: dict[str, Callable[[Pair], float | None]] = {}
    for name in _READINGS:
        for at, side in enumerate(("forward", "route")):
            values[f"{name}.{side}"] = partial(_read_side, name, labels, at)
        values[f"{name}.route-forward"] = partial(_change_sides, name, labels)
    values["stale_only.by_order"] = partial(_by_order, labels)
    return read_quantities(values)


def _read_side(name: str, labels: str, side: int, pair: Pair) -> float | None:
    exposure = (pair.forward_exposure, pair.route_exposure)[side]
    return _READINGS[name](_evidence(pair, labels), exposure)


def _change_sides(name: str, labels: str, pair: Pair) -> float | None:
    before, after = (_read_side(name, labels, side, pair) for side in (0, 1))
    return subtract(after, before)


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


def _outdated_share(side: str, answers: OutdatedAnswers) -> float | None:
    draws: Sequence[str] = getattr(answers, side)
    if not answers.outdated or not draws:
        return None
    return sum(draw in answers.outdated for draw in draws) / len(draws)


def _outdated_change(answers: OutdatedAnswers) -> float | None:
    return subtract(_outdated_share("route", answers), _outdated_share("forward", answers))


OUTDATED_ANSWERS: tuple[Quantity[OutdatedAnswers], ...] = read_quantities(
    {
        "outdated_answer.forward": partial(_outdated_share, "forward"),
        "outdated_answer.route": partial(_outdated_share, "route"),
        "outdated_answer.route-forward": _outdated_change,
    }
)
"""Quantities of answers to questions with outdated options."""


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


DISPLACEMENTS: tuple[Quantity[Displacements], ...] = read_quantities(
    {
        "count.inverted_supersessions": _count_inverted,
        "count.discarded_updates": _count_discarded,
    }
)
"""Quantities of each pool and route of a memory that reports events."""
