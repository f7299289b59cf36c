"""How large an effect is, and how sure we are."""

from routeprism.measures._agreement import (
    MEMBERSHIP,
    Confusion,
    agreement_estimate,
    kappa_estimate,
)
from routeprism.measures._allocation import (
    TwoStages,
    allocate_draws,
    pilot_size,
    shrink_variances,
)
from routeprism.measures._coordinates import (
    COORDINATES,
    RETENTION,
    Coordinate,
    jaccard,
    registered_coordinates,
    retention_coordinates,
)
from routeprism.measures._estimates import RESAMPLES, Drawing, Estimate, Sums, Tally
from routeprism.measures._intervals import (
    INTERVALS,
    Interval,
    check_bootstrap,
    chosen_interval,
    limits_said,
)
from routeprism.measures._planning import (
    Spread,
    spread_alone,
    spread_of,
    units_for_power,
    units_for_width,
)
from routeprism.measures._repetition import (
    ANSWER_COORDINATES,
    BUILD_COORDINATES,
    Builds,
    Draws,
    Once,
    cross,
    residual,
    transition,
)
from routeprism.measures._sequences import ConfidenceSequences, sequence_limits, simulate_stops
from routeprism.measures._significance import Alternative, adjust_holm, flip_signs
from routeprism.measures._updates import (
    DISPLACEMENTS,
    OUTDATED_ANSWERS,
    UPDATES,
    Displacements,
    OutdatedAnswers,
    is_stale_only,
    update_coordinates,
)

__all__ = [
    "TwoStages",
    "allocate_draws",
    "pilot_size",
    "shrink_variances",
    "ANSWER_COORDINATES",
    "BUILD_COORDINATES",
    "COORDINATES",
    "DISPLACEMENTS",
    "INTERVALS",
    "MEMBERSHIP",
    "OUTDATED_ANSWERS",
    "RESAMPLES",
    "RETENTION",
    "UPDATES",
    "Alternative",
    "Builds",
    "ConfidenceSequences",
    "Confusion",
    "Coordinate",
    "Displacements",
    "Drawing",
    "Draws",
    "Estimate",
    "Interval",
    "Once",
    "OutdatedAnswers",
    "Spread",
    "Sums",
    "Tally",
    "adjust_holm",
    "agreement_estimate",
    "check_bootstrap",
    "chosen_interval",
    "cross",
    "flip_signs",
    "is_stale_only",
    "jaccard",
    "kappa_estimate",
    "limits_said",
    "registered_coordinates",
    "residual",
    "retention_coordinates",
    "sequence_limits",
    "simulate_stops",
    "spread_alone",
    "spread_of",
    "transition",
    "units_for_power",
    "units_for_width",
    "update_coordinates",
]
