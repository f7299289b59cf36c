"""What differs between two orders: paired construction and its traces."""

from routeprism.routes._trace import ExposureTrace, Pair, Route, pairs, signature, trace_case

__all__ = ["ExposureTrace", "Pair", "Route", "pairs", "signature", "trace_case"]
