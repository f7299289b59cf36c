"""What differs between two orders: paired construction and its traces."""

from routeprism.routes._checks import (
    FIRST_POOLS,
    RouteChecks,
    check_isolation,
    choose_checks,
    describe_checks,
    describe_isolation,
    is_costly,
)
from routeprism.routes._fitting import CrossFit, cross_fit
from routeprism.routes._histories import (
    Disagreement,
    Moment,
    compare_replays,
    list_moments,
    trace_moments,
)
from routeprism.routes._losses import (
    CAUSES,
    Cause,
    Loss,
    describe_displacer,
    explain_absence,
    explain_loss,
    observe_losses,
)
from routeprism.routes._trace import (
    ExposureTrace,
    Pair,
    Route,
    RouteCounts,
    build_memory,
    hash_state,
    list_counterparts,
    pair_routes,
    trace_case,
)

__all__ = [
    "CAUSES",
    "FIRST_POOLS",
    "Cause",
    "CrossFit",
    "Disagreement",
    "ExposureTrace",
    "Loss",
    "Moment",
    "Pair",
    "Route",
    "RouteChecks",
    "RouteCounts",
    "build_memory",
    "check_isolation",
    "choose_checks",
    "compare_replays",
    "cross_fit",
    "describe_checks",
    "describe_displacer",
    "describe_isolation",
    "explain_absence",
    "explain_loss",
    "hash_state",
    "is_costly",
    "list_moments",
    "observe_losses",
    "list_counterparts",
    "pair_routes",
    "trace_case",
    "trace_moments",
]
