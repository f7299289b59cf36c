"""Coordinates: what is observed of a pair. Each says what it is; reports and docs read it here."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.resources import files
from typing import Any, Generic, TypeVar

from routeprism.errors import SpecError
from routeprism.routes import Pair, Route
from routeprism.specs import EXTENSIONS, Extension, registered

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


@lru_cache(maxsize=1)
def _read_texts() -> dict[str, dict[str, Any]]:
    """Read the symbol, the meaning and the reference of every coordinate, by its name."""
    texts: dict[str, dict[str, Any]] = json.loads(
        files("routeprism.measures").joinpath("coordinates.json").read_text("utf-8")
    )
    return texts


def describe_coordinate(
    name: str, value: Callable[[Observed], float | None], **words: str
) -> Coordinate[Observed]:
    """Make a coordinate, with its texts from `coordinates.json`.

    `words` fill the `{places}` of its name and texts; `side` also decides about `{other}`.
    """
    words["other"] = "forward" if words.get("side") == "forward" else "other"
    texts: dict[str, Any] = {
        key: text.format(**words) if isinstance(text, str) else text
        for key, text in _read_texts()[name].items()
    }
    return Coordinate(name.format(**words), value=value, **texts)


def describe_coordinates(
    values: Mapping[str, Callable[[Observed], float | None]],
) -> tuple[Coordinate[Observed], ...]:
    """Make several coordinates, given how the value of each is read."""
    return tuple(describe_coordinate(name, value) for name, value in values.items())


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


COORDINATES: tuple[Coordinate[Pair], ...] = describe_coordinates(
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
def retention_coordinates(labels: str) -> tuple[Coordinate[Pair], ...]:
    """Return the coordinates that read support labels of one source (Appendix O.4)."""
    coordinates = [
        describe_coordinate("J_T", partial(_support_overlap, labels)),
        describe_coordinate("evidence_lost", partial(_evidence_lost, labels)),
        describe_coordinate("evidence.lost", partial(_lose_evidence, labels)),
        describe_coordinate("evidence.gained", partial(_gain_evidence, labels)),
        describe_coordinate("evidence.net", partial(_net_evidence, labels)),
    ]
    for where, sets in _SETS.items():
        overlap = partial(_overlap, labels, sets)
        coordinates.append(describe_coordinate("overlap.{where}", overlap, where=where))
        coordinates += [
            describe_coordinate(
                f"{noun}.{{where}}.{{side}}",
                partial(_read_side, labels, sets, noun, at),
                where=where,
                side=side,
            )
            for at, side in enumerate(("forward", "route"))
            for noun in _MEASURES
        ]
        coordinates += [
            describe_coordinate(
                f"{noun}.{{where}}.route-forward",
                partial(_change_sides, labels, sets, noun),
                where=where,
            )
            for noun in _MEASURES
        ]
    return tuple(coordinates)


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
