"""What differs between two orders: paired construction and its traces."""

from routeprism.routes._fitting import CrossFit, cross_fit
from routeprism.routes._prefixes import Moment, moments, over_time
from routeprism.routes._trace import ExposureTrace, Kept, Pair, Route, pairs, signature, trace_case

__all__ = [
    "CrossFit",
    "ExposureTrace",
    "Kept",
    "Moment",
    "Pair",
    "Route",
    "cross_fit",
    "moments",
    "over_time",
    "pairs",
    "signature",
    "trace_case",
]
