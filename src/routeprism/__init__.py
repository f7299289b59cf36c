"""RoutePrism tells whether an agent memory loses evidence because of the order of arrival."""

from __future__ import annotations

from typing import TYPE_CHECKING

from routeprism._on_demand import names_on_demand

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

if not TYPE_CHECKING:  # else every name would pass for one that is there
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            ".api": "Audit audit curve explore_orders restore",
            ".experiments": "plan_study",
            ".policies": "Block Exposure Memory Policy",
            ".records": "Benchmark Case Pool Question Record Turn load_benchmark",
        },
    )
