"""The published numbers beside what this package gives, cell by cell."""

from routeprism.reproduction._cells import Cell, Status, Table
from routeprism.reproduction._keep import keep
from routeprism.reproduction._obtained import STORED, Obtained, read_obtained, write_obtained
from routeprism.reproduction._page import STATUSES, blanks, lines_of, page, summary
from routeprism.reproduction._published import PROTOCOL, Printed, published
from routeprism.reproduction._refresh import Refreshed, refresh
from routeprism.reproduction._registry import TABLES, cells_of, chosen
from routeprism.reproduction._sources import SOURCES, Source

__all__ = [
    "PROTOCOL",
    "SOURCES",
    "STATUSES",
    "STORED",
    "TABLES",
    "Cell",
    "Obtained",
    "Printed",
    "Refreshed",
    "Source",
    "Status",
    "Table",
    "blanks",
    "cells_of",
    "chosen",
    "keep",
    "lines_of",
    "page",
    "published",
    "read_obtained",
    "refresh",
    "summary",
    "write_obtained",
]
