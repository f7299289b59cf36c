"""How large an effect is, and how sure we are."""

from routeprism.measures._agreement import (
    MEMBERSHIP,
    Confusion,
    agreement_estimate,
    kappa_estimate,
)
from routeprism.measures._answers import (
    ANSWER_COORDINATES,
    Draws,
    cross,
    residual,
    transition,
)
from routeprism.measures._builds import BUILD_COORDINATES, Builds, Once
from routeprism.measures._coordinates import (
    COORDINATES,
    RETENTION,
    Coordinate,
    jaccard,
    retention_coordinates,
)
from routeprism.measures._estimates import RESAMPLES, Estimate, Sums, Tally
from routeprism.measures._intervals import INTERVALS, Interval

__all__ = [
    "ANSWER_COORDINATES",
    "BUILD_COORDINATES",
    "Builds",
    "COORDINATES",
    "RESAMPLES",
    "RETENTION",
    "Confusion",
    "Coordinate",
    "Draws",
    "Estimate",
    "INTERVALS",
    "Interval",
    "MEMBERSHIP",
    "Once",
    "Sums",
    "Tally",
    "agreement_estimate",
    "cross",
    "jaccard",
    "kappa_estimate",
    "residual",
    "retention_coordinates",
    "transition",
]
