"""The Python side of the command line: one function for each command, with the same names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from routeprism.on_demand import names_on_demand

if TYPE_CHECKING:
    from routeprism.api.audits import audit, curve, demo, explore_orders, remedy, restore
    from routeprism.api.extensions import use_extensions
    from routeprism.api.reviews import check, check_adapter, compare, plan, trace, write_report
    from routeprism.api.studies import screen, support
    from routeprism.experiments import Audit

__all__ = [
    "Audit",
    "audit",
    "check",
    "check_adapter",
    "compare",
    "curve",
    "demo",
    "explore_orders",
    "plan",
    "remedy",
    "restore",
    "screen",
    "support",
    "trace",
    "use_extensions",
    "write_report",
]

if not TYPE_CHECKING:  # else every name would pass for one that is there
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            ".audits": "audit curve demo explore_orders remedy restore",
            ".extensions": "use_extensions",
            ".reviews": "check check_adapter compare plan trace write_report",
            ".studies": "screen support",
            "routeprism.experiments": "Audit",
        },
    )
