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
from routeprism.routes._interventions import (
    Rebuilds,
    explain_loss,
    find_cause,
    read_likely_cause,
)
from routeprism.routes._leaks import Leak, choose_leak, find_case_leak, knowing_users
from routeprism.routes._lost_cases import (
    MOST_TESTED,
    LossLevel,
    LossPlace,
    LostCase,
    explain_cases,
    find_level,
    list_absences,
    list_cases,
    list_lost,
)
from routeprism.routes._placebos import Placebos, date_after, date_before
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
from routeprism.runs import CauseKind, Loss, Relation

__all__ = [
    "FIRST_POOLS",
    "MOST_TESTED",
    "CauseKind",
    "CrossFit",
    "Disagreement",
    "ExposureTrace",
    "Leak",
    "Loss",
    "LossLevel",
    "LossPlace",
    "LostCase",
    "Moment",
    "Pair",
    "Placebos",
    "Rebuilds",
    "Relation",
    "Route",
    "RouteChecks",
    "RouteCounts",
    "build_memory",
    "check_isolation",
    "choose_checks",
    "choose_leak",
    "compare_replays",
    "cross_fit",
    "date_after",
    "date_before",
    "describe_checks",
    "describe_isolation",
    "explain_cases",
    "explain_loss",
    "find_case_leak",
    "find_cause",
    "find_level",
    "hash_state",
    "is_costly",
    "knowing_users",
    "list_absences",
    "list_cases",
    "list_counterparts",
    "list_lost",
    "list_moments",
    "pair_routes",
    "read_likely_cause",
    "trace_case",
    "trace_moments",
]
