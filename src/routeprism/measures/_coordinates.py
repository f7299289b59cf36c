"""Coordinates: the quantities that are computed from a pair, with how the value of each is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import TypeVar

from routeprism.quantities import (
    Quantity,
    built_in_quantities,
    observe_nothing,
    registered_quantities,
)
from routeprism.routes import Pair, Route

Observed = TypeVar("Observed")

Coordinate = Quantity
"""The name of `Quantity` in earlier versions, which packages with a quantity of their own use."""


def read_quantity(name: str, value: Callable[[Observed], float | None]) -> Quantity[Observed]:
    """Return a quantity that is described in `quantities.json`, with how its value is read."""
    return replace(built_in_quantities()[name], value=value)


def read_quantities(
    values: Mapping[str, Callable[[Observed], float | None]],
) -> tuple[Quantity[Observed], ...]:
    """Return several quantities, given how the value of each is read."""
    return tuple(read_quantity(name, value) for name, value in values.items())


def average(values: Sequence[float]) -> float | None:
    """Average values; None if there are none."""
    return sum(values) / len(values) if values else None


def subtract(after: float | None, before: float | None) -> float | None:
    """Subtract values; None if one of them does not apply."""
    return None if before is None or after is None else after - before


def jaccard(first: frozenset[str], second: frozenset[str]) -> float:
    """Overlap of two source sets; two empty ones are the same (unlike token sets)."""
    union = len(first | second)
    return len(first & second) / union if union else 1.0


def _blocks(pair: Pair) -> float:
    first, second = pair.forward_exposure, pair.route_exposure
    if first.context_sha256 == second.context_sha256:
        return 0.0
    return float(Counter(b.text for b in first.blocks) != Counter(b.text for b in second.blocks))


def _internal(pair: Pair) -> float | None:
    if pair.forward.signature is None or pair.route.signature is None:
        return None
    return float(pair.forward.signature != pair.route.signature)


def _share_retained(route: Route) -> float | None:
    arrived = len(set(route.order))
    return len(route.retained) / arrived if arrived else None


COORDINATES: tuple[Quantity[Pair], ...] = read_quantities(
    {
        "J": lambda pair: jaccard(pair.forward_exposure.sources, pair.route_exposure.sources),
        "V_changed": lambda pair: float(
            pair.forward_exposure.sources != pair.route_exposure.sources
        ),
        "C_changed": lambda pair: float(
            pair.forward_exposure.context_sha256 != pair.route_exposure.context_sha256
        ),
        "B_changed": _blocks,
        "I_changed": _internal,
        "retained_changed": lambda pair: float(pair.forward.retained != pair.route.retained),
        "kept.forward": lambda pair: _share_retained(pair.forward),
        "kept.route": lambda pair: _share_retained(pair.route),
        "context_length.forward": lambda pair: pair.forward_exposure.length,
        "context_length.route": lambda pair: pair.route_exposure.length,
    }
)
"""The coordinates of every pair of routes."""


def _recall(support: frozenset[str], records: frozenset[str]) -> float | None:
    return len(support & records) / len(support) if support else None


def _covered(support: frozenset[str], records: frozenset[str]) -> float | None:
    return float(support <= records) if support else None


Sets = Callable[[Pair], tuple[frozenset[str], frozenset[str]]]
_SETS: Mapping[str, Sets] = {
    "retained": lambda pair: (pair.forward.retained, pair.route.retained),
    "exposed": lambda pair: (pair.forward_exposure.sources, pair.route_exposure.sources),
}
_MEASURES = {"recall": _recall, "all_covered": _covered}


@lru_cache(maxsize=16)
def retention_coordinates(labels: str) -> tuple[Quantity[Pair], ...]:
    """Return the coordinates that read support labels of one source (Appendix O.4)."""
    values: dict[str, Callable[[Pair], float | None]] = {
        "J_T": partial(_support_overlap, labels),
        "evidence_lost": partial(_evidence_lost, labels),
        "evidence.lost": partial(_lose_evidence, labels),
        "evidence.gained": partial(_gain_evidence, labels),
        "evidence.net": partial(_net_evidence, labels),
    }
    for where, sets in _SETS.items():
        values[f"overlap.{where}"] = partial(_overlap, labels, sets)
        for at, side in enumerate(("forward", "route")):
            for noun in _MEASURES:
                name = f"{noun}.{where}.{side}"
                values[name] = partial(_read_side, labels, sets, noun, at)
        for noun in _MEASURES:
            name = f"{noun}.{where}.route-forward"
            values[name] = partial(_change_sides, labels, sets, noun)
    return read_quantities(values)


def _find_support(labels: str, pair: Pair) -> frozenset[str]:
    return pair.question.labels.get(labels, frozenset())


def _support_overlap(labels: str, pair: Pair) -> float | None:
    support = _find_support(labels, pair)
    sides = [records & support for records in _SETS["exposed"](pair)]
    return jaccard(*sides) if any(sides) else None


def _evidence_lost(labels: str, pair: Pair) -> float | None:
    evidence = pair.forward_exposure.sources & _find_support(labels, pair)
    return float(not evidence <= pair.route_exposure.sources) if evidence else None


def _lose_evidence(labels: str, pair: Pair) -> float | None:
    support = _find_support(labels, pair)
    before, after = (records & support for records in _SETS["exposed"](pair))
    return float(not before <= after) if support else None


def _gain_evidence(labels: str, pair: Pair) -> float | None:
    support = _find_support(labels, pair)
    before, after = (records & support for records in _SETS["exposed"](pair))
    return float(not after <= before) if support else None


def _net_evidence(labels: str, pair: Pair) -> float | None:
    return subtract(_gain_evidence(labels, pair), _lose_evidence(labels, pair))


def _overlap(labels: str, sets: Sets, pair: Pair) -> float | None:
    return jaccard(*sets(pair)) if pair.question.labels.get(labels) else None


def _read_side(labels: str, sets: Sets, noun: str, side: int, pair: Pair) -> float | None:
    return _MEASURES[noun](_find_support(labels, pair), sets(pair)[side])


def _change_sides(labels: str, sets: Sets, noun: str, pair: Pair) -> float | None:
    before, after = (_read_side(labels, sets, noun, side, pair) for side in (0, 1))
    return subtract(after, before)


RETENTION = retention_coordinates("benchmark")
"""The retention coordinates for labels that a benchmark publishes; for reference pages."""


def registered_coordinates() -> tuple[Quantity[Pair], ...]:
    """Return the quantities of pairs that installed packages add, by name."""
    return tuple(q for q in registered_quantities() if q.value is not observe_nothing)
