"""Where support sits in the source: what explains an endpoint's advantage (Appendix D.11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["BINS", "SupportPositions", "normalised", "support_positions"]

BINS = ((0.0, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, 1.0))
"""The quarters of the source; the last one includes its end."""


@dataclass(frozen=True, slots=True)
class SupportPositions:
    """The normalised positions of all question–support-record instances."""

    instances: int
    quartiles: tuple[float, float, float] | None
    """Lower quartile, median, upper quartile; None without instances."""
    bins: tuple[int, int, int, int]
    """How many instances are in each quarter."""


def normalised(position: int, size: int) -> float | None:
    """Give the zero-based position divided by size − 1; a pool of one has no such place."""
    return position / (size - 1) if size > 1 else None


def support_positions(positions: Sequence[float]) -> SupportPositions:
    """Summarise normalised positions."""
    if not positions:
        return SupportPositions(0, None, (0, 0, 0, 0))
    ordered = sorted(positions)
    counts = [0, 0, 0, 0]
    for position in ordered:
        counts[min(3, int(position * 4))] += 1
    low, middle, high = (_quantile(ordered, share) for share in (0.25, 0.5, 0.75))
    return SupportPositions(
        len(ordered), (low, middle, high), (counts[0], counts[1], counts[2], counts[3])
    )


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Interpolate linearly between the two nearest values."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])
