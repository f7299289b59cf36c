"""RoutePrism tells whether an agent memory loses evidence because of the order of arrival."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from routeprism.api import Audit, audit, curve, explore_orders, restore
    from routeprism.experiments import plan_study
    from routeprism.policies import Block, Exposure, Memory, Policy
    from routeprism.records import Benchmark, Case, Pool, Question, Record, Turn, load_benchmark

__all__ = [
    "Audit",
    "Benchmark",
    "Block",
    "Case",
    "Exposure",
    "Memory",
    "Policy",
    "Pool",
    "Question",
    "Record",
    "Turn",
    "audit",
    "curve",
    "explore_orders",
    "load_benchmark",
    "plan_study",
    "restore",
]

_HOMES = {
    "Audit": "routeprism.api",
    "audit": "routeprism.api",
    "curve": "routeprism.api",
    "explore_orders": "routeprism.api",
    "plan_study": "routeprism.experiments",
    "restore": "routeprism.api",
    **dict.fromkeys(("Block", "Exposure", "Memory", "Policy"), "routeprism.policies"),
    **dict.fromkeys(
        ("Benchmark", "Case", "Pool", "Question", "Record", "Turn", "load_benchmark"),
        "routeprism.records",
    ),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that the package starts light."""
    if name not in _HOMES:
        raise AttributeError(f"module 'routeprism' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
