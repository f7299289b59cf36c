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
from routeprism.runs._ledger import (
    Answer,
    Committer,
    Failure,
    Key,
    Ledger,
    Outcome,
    Request,
    States,
    sha256,
)
from routeprism.runs._rows import COLUMNS, EstimateRow, Rows, format_interval, to_csv
from routeprism.runs._run import Run, Writer
from routeprism.runs._store import FINISHED, INCOMPLETE, PENDING_RESULTS, RUNNING, settle_store
from routeprism.runs._stored_run import StoredRun, read_configuration, read_manifest
from routeprism.runs._union import explain_shard, unite_ledgers

__all__ = [
    "COLUMNS",
    "CONTRASTS",
    "FINISHED",
    "INCOMPLETE",
    "PENDING_RESULTS",
    "RUNNING",
    "Answer",
    "Cassette",
    "Column",
    "Committer",
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
    "explain_shard",
    "format_interval",
    "question_row",
    "read_configuration",
    "read_manifest",
    "settle_store",
    "sha256",
    "to_csv",
    "unit_rows",
    "unite_ledgers",
    "value_rows",
    "write_cassette",
]
