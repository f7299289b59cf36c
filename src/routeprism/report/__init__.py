"""How a person sees it: one page, tables and charts, made from a run directory alone."""

from routeprism.report._comparison import write_comment, write_comparison
from routeprism.report._exports import (
    ANSWER_COLUMNS,
    write_answers,
    write_charts,
    write_final_report,
    write_inspect_log,
    write_parquet,
    write_report,
    write_tables,
)

__all__ = [
    "ANSWER_COLUMNS",
    "write_answers",
    "write_charts",
    "write_comment",
    "write_comparison",
    "write_final_report",
    "write_inspect_log",
    "write_parquet",
    "write_report",
    "write_tables",
]
