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
from routeprism.measures._estimates import RESAMPLES, Drawing, Estimate, Sums, Tally
from routeprism.measures._intervals import INTERVALS, Interval, chosen_interval, limits_said
from routeprism.measures._planning import (
    Spread,
    spread_alone,
    spread_of,
    units_for_power,
    units_for_width,
)

__all__ = [
    "ANSWER_COORDINATES",
    "BUILD_COORDINATES",
    "Builds",
    "COORDINATES",
    "RESAMPLES",
    "RETENTION",
    "Confusion",
    "Coordinate",
    "Drawing",
    "Draws",
    "Estimate",
    "INTERVALS",
    "Interval",
    "MEMBERSHIP",
    "Once",
    "Spread",
    "Sums",
    "Tally",
    "agreement_estimate",
    "chosen_interval",
    "cross",
    "jaccard",
    "kappa_estimate",
    "limits_said",
    "residual",
    "retention_coordinates",
    "spread_alone",
    "spread_of",
    "transition",
    "units_for_power",
    "units_for_width",
]
