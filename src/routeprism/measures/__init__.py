"""How large an effect is, and how sure we are."""

from routeprism.measures._coordinates import (
    COORDINATES,
    RETENTION,
    Coordinate,
    jaccard,
    retention_coordinates,
)
from routeprism.measures._estimates import RESAMPLES, Estimate, Sums, Tally

__all__ = [
    "COORDINATES",
    "RESAMPLES",
    "RETENTION",
    "Coordinate",
    "Estimate",
    "Sums",
    "Tally",
    "jaccard",
    "retention_coordinates",
]
