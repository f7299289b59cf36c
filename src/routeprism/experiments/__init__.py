"""Which comparison is this: the experiments, each from cells to estimate rows."""

from routeprism.experiments._asked import Manner
from routeprism.experiments._asking import Asking
from routeprism.experiments.answers import AskRoutes
from routeprism.experiments.restoration import Restore
from routeprism.experiments.routes import SEED, Audit, run_audit

__all__ = ["SEED", "AskRoutes", "Asking", "Audit", "Manner", "Restore", "run_audit"]
