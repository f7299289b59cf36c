"""The published numbers beside what this package gives, number by number.

`published.csv` contains the published numbers. The layouts in `tables/` map each of them to a row
that a source run of `sources.json` gives, and `obtained.json` contains those rows.
"""

from routeprism.reproduction._execution import execute_source, price_source
from routeprism.reproduction._numbers import (
    CheckedNumber,
    Reference,
    check_number,
    check_table,
    list_all_rows,
    list_references,
)
from routeprism.reproduction._page import (
    COUNTED,
    REPRODUCED,
    count_numbers,
    count_tables,
    explain_blanks,
    format_heading,
    group_lines,
    list_commands,
    list_reasons,
    render_page,
)
from routeprism.reproduction._published import (
    ALIASES,
    PROTOCOL,
    QUESTION_SETS,
    TABLES,
    PublishedNumber,
    PublishedTable,
    read_published,
    select_tables,
)
from routeprism.reproduction._refresh import RefreshResult, refresh_values
from routeprism.reproduction._reproduce import (
    ReproductionRequest,
    ReproductionResult,
    perform_reproduction,
    prepare_reproduction,
    reproduce,
)
from routeprism.reproduction._sources import (
    SOURCES,
    STORED,
    MeasuredRow,
    ObtainedValues,
    SourceRun,
    SourceValues,
    Vocabulary,
    read_obtained,
    write_obtained,
)
from routeprism.reproduction._user_sets import UserNumber, UserSets, count_user_sets

__all__ = [
    "ALIASES",
    "COUNTED",
    "PROTOCOL",
    "QUESTION_SETS",
    "REPRODUCED",
    "SOURCES",
    "STORED",
    "TABLES",
    "CheckedNumber",
    "MeasuredRow",
    "ObtainedValues",
    "PublishedNumber",
    "PublishedTable",
    "Reference",
    "RefreshResult",
    "ReproductionRequest",
    "ReproductionResult",
    "SourceRun",
    "SourceValues",
    "UserNumber",
    "UserSets",
    "Vocabulary",
    "check_number",
    "check_table",
    "count_numbers",
    "count_tables",
    "count_user_sets",
    "execute_source",
    "explain_blanks",
    "format_heading",
    "group_lines",
    "list_all_rows",
    "list_commands",
    "list_reasons",
    "list_references",
    "perform_reproduction",
    "prepare_reproduction",
    "price_source",
    "read_obtained",
    "read_published",
    "refresh_values",
    "render_page",
    "reproduce",
    "select_tables",
    "write_obtained",
]
