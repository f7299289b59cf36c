"""How large an effect is, and how sure we are."""

from routeprism.measures._answers import (
    ANSWER_COORDINATES,
    Draws,
    residual,
    transition,
)
from routeprism.measures._coordinates import (
    COORDINATES,
    RETENTION,
    Coordinate,
    jaccard,
    retention_coordinates,
)
from routeprism.measures._estimates import RESAMPLES, Estimate, Sums, Tally

__all__ = [
    "ANSWER_COORDINATES",
    "COORDINATES",
    "RESAMPLES",
    "RETENTION",
    "Coordinate",
    "Draws",
    "Estimate",
    "Sums",
    "Tally",
    "jaccard",
    "residual",
    "retention_coordinates",
    "transition",
]
