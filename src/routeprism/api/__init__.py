"""The Python side of the command line: one function for each command, with the same names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from routeprism._on_demand import names_on_demand

if TYPE_CHECKING:
    from routeprism.api._audit import audit
    from routeprism.api._curve import curve
    from routeprism.api._orders import explore_orders
    from routeprism.api._restore import restore
    from routeprism.experiments import Audit

__all__ = ["Audit", "audit", "curve", "explore_orders", "restore"]

if not TYPE_CHECKING:  # else every name would pass for one that is there
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            "._audit": "audit",
            "._curve": "curve",
            "._orders": "explore_orders",
            "._restore": "restore",
            "routeprism.experiments": "Audit",
        },
    )
