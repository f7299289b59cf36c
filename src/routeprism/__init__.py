"""RoutePrism reports whether an agent memory loses evidence because of the order of arrival."""

import os
import sys

if (
    sys.argv[:1] == ["-m"]
    and sys.orig_argv[-len(sys.argv) :][0].endswith("routeprism")
    and sys.path[:1] == [os.getcwd()]  # noqa: PTH109 (this imports nothing more)
):
    # `python -m routeprism` starts, and Python would import from the current directory first.
    del sys.path[0]

from typing import TYPE_CHECKING

from routeprism.on_demand import names_on_demand

if TYPE_CHECKING:
    from routeprism.api import (
        Audit,
        audit,
        check,
        check_adapter,
        compare,
        curve,
        demo,
        explore_orders,
        plan,
        remedy,
        restore,
        screen,
        support,
        trace,
        use_extensions,
        write_report,
    )
    from routeprism.errors import (
        ContractError,
        DownloadError,
        InapplicableError,
        InputError,
        LimitError,
        MissingExtraError,
        ModelError,
        OwnCodeError,
        PeekError,
        RouteError,
        RoutePrismError,
        RunError,
        SpecError,
        UnansweredError,
    )
    from routeprism.merging import merge
    from routeprism.models import Model
    from routeprism.orders import Schedule
    from routeprism.policies import Block, Exposure, Interface, Memory, Policy
    from routeprism.records import Benchmark, Case, Pool, Question, Record, Turn, load_benchmark
    from routeprism.reproduction import reproduce
    from routeprism.review.planning import plan_study

__all__ = [
    "Audit",
    "Benchmark",
    "Block",
    "Case",
    "ContractError",
    "DownloadError",
    "Exposure",
    "InapplicableError",
    "InputError",
    "Interface",
    "LimitError",
    "Memory",
    "MissingExtraError",
    "Model",
    "ModelError",
    "OwnCodeError",
    "PeekError",
    "Policy",
    "Pool",
    "Question",
    "Record",
    "RouteError",
    "RoutePrismError",
    "RunError",
    "Schedule",
    "SpecError",
    "Turn",
    "UnansweredError",
    "audit",
    "check",
    "check_adapter",
    "compare",
    "curve",
    "demo",
    "explore_orders",
    "load_benchmark",
    "merge",
    "plan",
    "plan_study",
    "remedy",
    "reproduce",
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
            ".api": "Audit audit check check_adapter compare curve demo explore_orders plan remedy "
            "restore screen support trace use_extensions write_report",
            ".errors": "ContractError DownloadError InapplicableError InputError LimitError "
            "MissingExtraError ModelError OwnCodeError PeekError RouteError RoutePrismError "
            "RunError SpecError UnansweredError",
            ".merging": "merge",
            ".reproduction": "reproduce",
            ".review.planning": "plan_study",
            ".models": "Model",
            ".orders": "Schedule",
            ".policies": "Block Exposure Interface Memory Policy",
            ".records": "Benchmark Case Pool Question Record Turn load_benchmark",
        },
    )
