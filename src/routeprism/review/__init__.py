"""What the numbers of a finished run mean: gates, comparisons, planning and tracing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from routeprism.on_demand import names_on_demand

if TYPE_CHECKING:
    from routeprism.review.comparison import RunComparison, compare_runs
    from routeprism.review.gates import CheckResult, check_run
    from routeprism.review.planning import StudyPlan, plan_study

__all__ = ["CheckResult", "RunComparison", "StudyPlan", "check_run", "compare_runs", "plan_study"]

if not TYPE_CHECKING:  # `check` needs no comparison, and none of them all
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            ".comparison": "RunComparison compare_runs",
            ".gates": "CheckResult check_run",
            ".planning": "StudyPlan plan_study",
        },
    )
