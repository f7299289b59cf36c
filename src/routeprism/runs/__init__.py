"""Run directories: what is stored, how it is read again, and how a run is resumed."""

from routeprism.runs._cassettes import Cassette, check_cassette, write_cassette
from routeprism.runs._comparisons import StoredAnswer, StoredSide
from routeprism.runs._entries import (
    Column,
    Finding,
    QuestionValues,
    Shortfall,
    StoredContext,
    StoredExposure,
    StoredQuestion,
    StoredRecord,
    StoredTrace,
    UnitValues,
    question_row,
    unit_rows,
    value_rows,
)
from routeprism.runs._index import CONTRASTS
from routeprism.runs._ledger import Answer, Failure, Key, Ledger, Outcome, Request, States, sha256
from routeprism.runs._rows import COLUMNS, EstimateRow, Rows, format_interval, to_csv
from routeprism.runs._run import Run, Writer
from routeprism.runs._store import FINISHED, INCOMPLETE, RUNNING, settle_store
from routeprism.runs._stored_run import StoredRun, read_configuration, read_manifest

__all__ = [
    "COLUMNS",
    "CONTRASTS",
    "FINISHED",
    "INCOMPLETE",
    "RUNNING",
    "Answer",
    "Cassette",
    "Column",
    "EstimateRow",
    "Failure",
    "Finding",
    "Key",
    "Ledger",
    "Outcome",
    "QuestionValues",
    "Request",
    "Rows",
    "Run",
    "Shortfall",
    "States",
    "StoredAnswer",
    "StoredContext",
    "StoredExposure",
    "StoredQuestion",
    "StoredRecord",
    "StoredRun",
    "StoredSide",
    "StoredTrace",
    "UnitValues",
    "Writer",
    "check_cassette",
    "format_interval",
    "question_row",
    "read_configuration",
    "read_manifest",
    "settle_store",
    "sha256",
    "to_csv",
    "unit_rows",
    "value_rows",
    "write_cassette",
]
