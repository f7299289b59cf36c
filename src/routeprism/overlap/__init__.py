"""Overlapping writes, batches and restarts: ways to build the same memory from the same records."""

from routeprism.overlap._anomalies import (
    KINDS,
    Anomaly,
    Kind,
    SerialOutcomes,
    describe_anomaly,
    find_simplest,
    list_serial_outcomes,
    shrink_anomaly,
)
from routeprism.overlap._building import build_by_procedure, renew_memory
from routeprism.overlap._exploration import Exploration, explore_interleavings
from routeprism.overlap._loop import ControlledLoop, Step
from routeprism.overlap._trials import Execution, Outcome, Trial, find_overlap

__all__ = [
    "KINDS",
    "Anomaly",
    "ControlledLoop",
    "Execution",
    "Exploration",
    "Kind",
    "Outcome",
    "SerialOutcomes",
    "Step",
    "Trial",
    "build_by_procedure",
    "describe_anomaly",
    "explore_interleavings",
    "find_overlap",
    "find_simplest",
    "list_serial_outcomes",
    "renew_memory",
    "shrink_anomaly",
]
