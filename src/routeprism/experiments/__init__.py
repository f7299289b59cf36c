"""Which comparison is this: the experiments, each from cells to estimate rows."""

from routeprism.experiments.routes import SEED, Audit, run_audit

__all__ = ["SEED", "Audit", "run_audit"]
