"""How a person sees it: one page, tables and charts, made from a run directory alone."""

from routeprism.report._answers import ANSWER_COLUMNS, write_answers
from routeprism.report._compare import write_comparison
from routeprism.report._write import REPORT, write_charts, write_report, write_tables

__all__ = [
    "ANSWER_COLUMNS",
    "REPORT",
    "write_answers",
    "write_charts",
    "write_comparison",
    "write_report",
    "write_tables",
]
