"""Coordinates: what is observed of a pair. Each says what it is; reports and docs read it here."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

from routeprism.errors import SpecError
from routeprism.routes import Pair, Route
from routeprism.specs import EXTENSIONS, Extension, registered

__all__ = [
    "COORDINATES",
    "RETENTION",
    "Coordinate",
    "average",
    "jaccard",
    "registered_coordinates",
    "retention_coordinates",
]


Observed = TypeVar("Observed")


@dataclass(frozen=True, slots=True)
class Coordinate(Generic[Observed]):
    """One number observed of a question: of its pair of routes, or of the answers on both."""

    name: str
    """Its name in `estimates.csv`."""
    symbol: str
    """Its symbol in the paper."""
    meaning: str
    """Its meaning, in a sentence."""
    zero: str
    """The meaning of 0; empty if it has none."""
    meaning_of_one: str
    """The meaning of 1; empty if it has none."""
    reference: str
    """The definition in the paper."""
    value: Callable[[Observed], float | None]
    """Its value; None where it does not apply."""
    is_count: bool = False
    """Whether the number of pairs with value 1 is reported too."""


def average(values: Sequence[float]) -> float | None:
    """Average values; None if there are none."""
    return sum(values) / len(values) if values else None


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


COORDINATES: tuple[Coordinate[Pair], ...] = (
    Coordinate(
        "J",
        "J",
        "overlap of the exposed source sets of the two routes",
        "no exposed source in common",
        "the same sources exposed",
        "Eq. 1",
        lambda pair: jaccard(pair.forward_exposure.sources, pair.route_exposure.sources),
    ),
    Coordinate(
        "V_changed",
        "V",
        "whether the exposed source sets differ",
        "the same sources exposed",
        "different sources exposed",
        "§3.4",
        lambda pair: float(pair.forward_exposure.sources != pair.route_exposure.sources),
        is_count=True,
    ),
    Coordinate(
        "C_changed",
        "C_chg",
        "whether the compiled contexts differ",
        "the same text compiled",
        "different text compiled",
        "Appendix F.4",
        lambda pair: float(
            pair.forward_exposure.context_sha256 != pair.route_exposure.context_sha256
        ),
        is_count=True,
    ),
    Coordinate(
        "B_changed",
        "B",
        "whether the contexts differ in more than the order of their blocks",
        "the same blocks, perhaps in a different order",
        "some block is another one",
        "Appendix K",
        _blocks,
        is_count=True,
    ),
    Coordinate(
        "I_changed",
        "I",
        "whether the internal-state signatures differ",
        "the same internal state",
        "different internal states",
        "§3.4, Appendix J",
        _internal,
        is_count=True,
    ),
    Coordinate(
        "retained_changed",
        "S",
        "whether the retained source sets differ, before any retrieval",
        "the same sources retained",
        "different sources retained",
        "Appendix D.2",
        lambda pair: float(pair.forward.retained != pair.route.retained),
        is_count=True,
    ),
    Coordinate(
        "kept.forward",
        "|S|/n forward",
        "share of the records that the forward route keeps",
        "no record kept",
        "every record kept",
        "severity",
        lambda pair: _share_retained(pair.forward),
    ),
    Coordinate(
        "kept.route",
        "|S|/n route",
        "share of the records that the other route keeps",
        "no record kept",
        "every record kept",
        "severity",
        lambda pair: _share_retained(pair.route),
    ),
    Coordinate(
        "context_length.forward",
        "⌈n/4⌉ forward",
        "length proxy of the forward context: a quarter of its characters, rounded up",
        "",
        "",
        "Appendix A.3",
        lambda pair: pair.forward_exposure.length,
    ),
    Coordinate(
        "context_length.route",
        "⌈n/4⌉ route",
        "length proxy of the other route's context",
        "",
        "",
        "Appendix A.3",
        lambda pair: pair.route_exposure.length,
    ),
)
"""The coordinates of every pair of routes."""


def _recall(support: frozenset[str], records: frozenset[str]) -> float | None:
    return len(support & records) / len(support) if support else None


def _covered(support: frozenset[str], records: frozenset[str]) -> float | None:
    return float(support <= records) if support else None


_SETS: Mapping[str, Callable[[Pair], tuple[frozenset[str], frozenset[str]]]] = {
    "retained": lambda pair: (pair.forward.retained, pair.route.retained),
    "exposed": lambda pair: (pair.forward_exposure.sources, pair.route_exposure.sources),
}


def retention_coordinates(labels: str) -> tuple[Coordinate[Pair], ...]:
    """Return the coordinates that read support labels of one source (Appendix O.4)."""
    coordinates: list[Coordinate[Pair]] = [_support_overlap(labels), _evidence_lost(labels)]
    for where, sets in _SETS.items():
        coordinates.append(_overlap(labels, where, sets))
        for side, name in enumerate(("forward", "route")):
            coordinates.append(_evidence("recall", _recall, labels, where, sets, side, name))
            coordinates.append(_evidence("all_covered", _covered, labels, where, sets, side, name))
        for noun, measure in (("recall", _recall), ("all_covered", _covered)):
            coordinates.append(_evidence_change(noun, measure, labels, where, sets))
    return tuple(coordinates)


def _support_overlap(labels: str) -> Coordinate[Pair]:
    def value(pair: Pair) -> float | None:
        support = pair.question.labels.get(labels, frozenset())
        sides = [
            exposure.sources & support for exposure in (pair.forward_exposure, pair.route_exposure)
        ]
        return jaccard(*sides) if any(sides) else None

    return Coordinate(
        "J_T",
        "J^T",
        "overlap of the exposed support records; not applicable where neither route exposes any",
        "no exposed support in common",
        "the same support exposed",
        "Appendix M",
        value,
    )


def _evidence_lost(labels: str) -> Coordinate[Pair]:
    def value(pair: Pair) -> float | None:
        support = pair.question.labels.get(labels, frozenset())
        evidence = pair.forward_exposure.sources & support
        return float(not evidence <= pair.route_exposure.sources) if evidence else None

    return Coordinate(
        "evidence_lost",
        "T lost",
        "whether the other route does not show some evidence that the forward route shows; not "
        "applicable where the forward route shows none",
        "all evidence that the forward route shows is shown",
        "some evidence that the forward route shows is missing",
        "severity",
        value,
        is_count=True,
    )


def _overlap(
    labels: str, where: str, sets: Callable[[Pair], tuple[frozenset[str], frozenset[str]]]
) -> Coordinate[Pair]:
    def value(pair: Pair) -> float | None:
        return jaccard(*sets(pair)) if pair.question.labels.get(labels) else None

    return Coordinate(
        f"overlap.{where}",
        "J",
        f"overlap of the {where} source sets, over questions with support labels",
        f"no {where} source in common",
        f"the same sources {where}",
        "Appendix O.4",
        value,
    )


def _evidence(
    noun: str,
    measure: Callable[[frozenset[str], frozenset[str]], float | None],
    labels: str,
    where: str,
    sets: Callable[[Pair], tuple[frozenset[str], frozenset[str]]],
    side: int,
    name: str,
) -> Coordinate[Pair]:
    def value(pair: Pair) -> float | None:
        return measure(pair.question.labels.get(labels, frozenset()), sets(pair)[side])

    fraction = "fraction of the support records" if noun == "recall" else "whether all support is"
    return Coordinate(
        f"{noun}.{where}.{name}",
        "recall" if noun == "recall" else "all-covered",
        f"{fraction} {where} on the {'forward' if side == 0 else 'other'} route",
        f"no support {where}" if noun == "recall" else f"some support not {where}",
        f"all support {where}",
        "Appendix O.4",
        value,
    )


def _evidence_change(
    noun: str,
    measure: Callable[[frozenset[str], frozenset[str]], float | None],
    labels: str,
    where: str,
    sets: Callable[[Pair], tuple[frozenset[str], frozenset[str]]],
) -> Coordinate[Pair]:
    def value(pair: Pair) -> float | None:
        support = pair.question.labels.get(labels, frozenset())
        before, after = (measure(support, records) for records in sets(pair))
        return None if before is None or after is None else after - before

    phrase = "recall of the support" if noun == "recall" else "complete coverage of the support"
    return Coordinate(
        f"{noun}.{where}.route-forward",
        "Δ recall" if noun == "recall" else "Δ all-covered",
        f"{phrase} {where} on the other route, minus that on the forward route",
        f"as much {where} on both routes",
        f"all of it {where} on the other route, none forward",
        "Appendix O.4",
        value,
    )


RETENTION = retention_coordinates("benchmark")
"""The retention coordinates for labels that a benchmark publishes; for reference pages."""


def registered_coordinates() -> tuple[Coordinate[Pair], ...]:
    """Return the coordinates of pairs that installed packages add, by name.

    They are entry points of the group `routeprism.coordinates`. A coordinate reads what the two
    routes retain and expose and the labels of the question, nothing else about the question.
    """
    return _load_coordinates(tuple(sys.path), EXTENSIONS.get())


@lru_cache(maxsize=4)
def _load_coordinates(
    path: tuple[str, ...], extensions: tuple[Extension, ...]
) -> tuple[Coordinate[Pair], ...]:
    coordinates: list[Coordinate[Pair]] = []
    for point in registered("coordinates").values():
        coordinate = point.load()
        if not isinstance(coordinate, Coordinate):
            raise SpecError(
                f"Expected the entry point '{point.name}' of the group 'routeprism.coordinates' to "
                f"be a Coordinate but got {coordinate!r:.60}"
            )
        if coordinate.name in {
            existing.name for existing in (*COORDINATES, *RETENTION, *coordinates)
        }:
            raise SpecError(f"two coordinates are called '{coordinate.name}'")
        coordinates.append(coordinate)
    return tuple(coordinates)
