"""What is kept, and whether it can be resumed."""

from routeprism.runs._rows import COLUMNS, EstimateRow, to_csv
from routeprism.runs._run import Run, Writer

__all__ = ["COLUMNS", "EstimateRow", "Run", "Writer", "to_csv"]
