"""Coordinates: what is observed of a pair. Each says what it is; reports and docs read it here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from routeprism.routes import Pair

__all__ = [
    "COORDINATES",
    "RETENTION",
    "Coordinate",
    "jaccard",
    "retention_coordinates",
]


Observed = TypeVar("Observed")


@dataclass(frozen=True, slots=True)
class Coordinate(Generic[Observed]):
    """One number observed of a question: of its pair of routes, or of the answers on both."""

    name: str
    """Its name in `estimates.csv`."""
    symbol: str
    """How the paper writes it."""
    meaning: str
    """What it is, in a sentence."""
    zero: str
    """What 0 means; empty where it has no such reading."""
    one: str
    """What 1 means; empty where it has no such reading."""
    reference: str
    """Where it is defined."""
    value: Callable[[Observed], float | None]
    """Its value; None where it does not apply."""
    counted: bool = False
    """Whether the number of pairs with value 1 is reported too."""


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Overlap of two source sets; two empty ones are the same (unlike token sets)."""
    union = len(one | other)
    return len(one & other) / union if union else 1.0


def _blocks(pair: Pair) -> float:
    one, other = pair.forward_exposure, pair.route_exposure
    if one.context_sha256 == other.context_sha256:
        return 0.0
    return float(Counter(b.text for b in one.blocks) != Counter(b.text for b in other.blocks))


def _internal(pair: Pair) -> float | None:
    if pair.forward.signature is None or pair.route.signature is None:
        return None
    return float(pair.forward.signature != pair.route.signature)


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
        counted=True,
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
        counted=True,
    ),
    Coordinate(
        "B_changed",
        "B",
        "whether the contexts differ in more than the order of their blocks",
        "the same blocks, if in another order",
        "some block is another one",
        "Appendix K",
        _blocks,
        counted=True,
    ),
    Coordinate(
        "I_changed",
        "I",
        "whether the internal-state signatures differ",
        "the same internal state",
        "different internal states",
        "§3.4, Appendix J",
        _internal,
        counted=True,
    ),
    Coordinate(
        "retained_changed",
        "S",
        "whether the retained source sets differ, before any retrieval",
        "the same sources retained",
        "different sources retained",
        "Appendix D.2",
        lambda pair: float(pair.forward.retained != pair.route.retained),
        counted=True,
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
"""What every pair of routes has."""


def _recall(support: frozenset[str], held: frozenset[str]) -> float | None:
    return len(support & held) / len(support) if support else None


def _covered(support: frozenset[str], held: frozenset[str]) -> float | None:
    return float(support <= held) if support else None


_SETS: Mapping[str, Callable[[Pair], tuple[frozenset[str], frozenset[str]]]] = {
    "retained": lambda pair: (pair.forward.retained, pair.route.retained),
    "exposed": lambda pair: (pair.forward_exposure.sources, pair.route_exposure.sources),
}


def retention_coordinates(labels: str) -> tuple[Coordinate[Pair], ...]:
    """Give the coordinates that read support labels of one source (Appendix O.4)."""
    made: list[Coordinate[Pair]] = [_support_overlap(labels)]
    for where, sets in _SETS.items():
        made.append(_overlap(labels, where, sets))
        for side, name in enumerate(("forward", "route")):
            made.append(_evidence("recall", _recall, labels, where, sets, side, name))
            made.append(_evidence("all_covered", _covered, labels, where, sets, side, name))
        for what, measure in (("recall", _recall), ("all_covered", _covered)):
            made.append(_evidence_change(what, measure, labels, where, sets))
    return tuple(made)


def _support_overlap(labels: str) -> Coordinate[Pair]:
    def value(pair: Pair) -> float | None:
        support = pair.question.labels.get(labels, frozenset())
        sides = [shown.sources & support for shown in (pair.forward_exposure, pair.route_exposure)]
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
    what: str,
    measure: Callable[[frozenset[str], frozenset[str]], float | None],
    labels: str,
    where: str,
    sets: Callable[[Pair], tuple[frozenset[str], frozenset[str]]],
    side: int,
    name: str,
) -> Coordinate[Pair]:
    def value(pair: Pair) -> float | None:
        return measure(pair.question.labels.get(labels, frozenset()), sets(pair)[side])

    fraction = "fraction of the support records" if what == "recall" else "whether all support is"
    return Coordinate(
        f"{what}.{where}.{name}",
        "recall" if what == "recall" else "all-covered",
        f"{fraction} {where} on the {'forward' if side == 0 else 'other'} route",
        f"no support {where}" if what == "recall" else f"some support not {where}",
        f"all support {where}",
        "Appendix O.4",
        value,
    )


def _evidence_change(
    what: str,
    measure: Callable[[frozenset[str], frozenset[str]], float | None],
    labels: str,
    where: str,
    sets: Callable[[Pair], tuple[frozenset[str], frozenset[str]]],
) -> Coordinate[Pair]:
    def value(pair: Pair) -> float | None:
        support = pair.question.labels.get(labels, frozenset())
        before, after = (measure(support, held) for held in sets(pair))
        return None if before is None or after is None else after - before

    said = "recall of the support" if what == "recall" else "complete coverage of the support"
    return Coordinate(
        f"{what}.{where}.route-forward",
        "Δ recall" if what == "recall" else "Δ all-covered",
        f"{said} {where} on the other route, minus that on the forward route",
        f"as much {where} on both routes",
        f"all of it {where} on the other route, none forward",
        "Appendix O.4",
        value,
    )


RETENTION = retention_coordinates("benchmark")
"""The retention coordinates for labels that a benchmark publishes; for reference pages."""
