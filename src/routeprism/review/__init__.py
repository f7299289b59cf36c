"""What the numbers of a finished run mean: gates, comparisons, planning and tracing."""

from routeprism.review.comparison import RunComparison, compare_runs
from routeprism.review.gates import CheckResult, check_run
from routeprism.review.planning import StudyPlan, plan_study

__all__ = ["CheckResult", "RunComparison", "StudyPlan", "check_run", "compare_runs", "plan_study"]
