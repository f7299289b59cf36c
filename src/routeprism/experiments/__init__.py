"""Which comparison is this: the experiments, each from cells to estimate rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from routeprism._on_demand import names_on_demand

if TYPE_CHECKING:
    from routeprism.experiments._asked import Manner
    from routeprism.experiments._asking import Asking
    from routeprism.experiments._contrasts import with_arms
    from routeprism.experiments._diagnosis import layers
    from routeprism.experiments._layouts import LAYOUTS, Layout
    from routeprism.experiments._order_case import Looking
    from routeprism.experiments._order_outcomes import OUTCOMES, Outcome, outcome_named
    from routeprism.experiments._over_time import moment_of
    from routeprism.experiments._stages import OnlyPolicies
    from routeprism.experiments.answers import AskRoutes
    from routeprism.experiments.comparison import Comparison, compare_runs
    from routeprism.experiments.curves import STABLE, Budgets, run_curve
    from routeprism.experiments.display import Display
    from routeprism.experiments.gates import Checked, check_run
    from routeprism.experiments.orders import EveryOrder, run_orders
    from routeprism.experiments.passes import SupportChangeAgreement, passes_of
    from routeprism.experiments.planning import Plan, plan_study
    from routeprism.experiments.provenance import MARGIN, Provenances
    from routeprism.experiments.restoration import Restore
    from routeprism.experiments.reuse import Reuse
    from routeprism.experiments.routes import SEED, WORKPLACE, Audit, run_audit

__all__ = [
    "LAYOUTS",
    "MARGIN",
    "OUTCOMES",
    "SEED",
    "STABLE",
    "WORKPLACE",
    "AskRoutes",
    "Asking",
    "Audit",
    "Budgets",
    "Checked",
    "Comparison",
    "Display",
    "EveryOrder",
    "Layout",
    "Looking",
    "Manner",
    "OnlyPolicies",
    "Outcome",
    "Plan",
    "Provenances",
    "Restore",
    "Reuse",
    "SupportChangeAgreement",
    "check_run",
    "compare_runs",
    "layers",
    "outcome_named",
    "moment_of",
    "passes_of",
    "plan_study",
    "run_audit",
    "run_orders",
    "with_arms",
    "run_curve",
]

if not TYPE_CHECKING:  # else every name would pass for one that is there
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            "._asked": "Manner",
            "._asking": "Asking",
            "._contrasts": "with_arms",
            "._diagnosis": "layers",
            "._layouts": "LAYOUTS Layout",
            "._order_case": "Looking",
            "._order_outcomes": "OUTCOMES Outcome outcome_named",
            "._over_time": "moment_of",
            "._stages": "OnlyPolicies",
            ".answers": "AskRoutes",
            ".comparison": "Comparison compare_runs",
            ".curves": "STABLE Budgets run_curve",
            ".display": "Display",
            ".gates": "Checked check_run",
            ".orders": "EveryOrder run_orders",
            ".passes": "SupportChangeAgreement passes_of",
            ".planning": "Plan plan_study",
            ".provenance": "MARGIN Provenances",
            ".restoration": "Restore",
            ".reuse": "Reuse",
            ".routes": "SEED WORKPLACE Audit run_audit",
        },
    )
