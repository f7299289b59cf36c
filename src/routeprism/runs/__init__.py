"""What is kept, and whether it can be resumed."""

from routeprism.runs._findings import Finding
from routeprism.runs._ledger import Answer, Failure, Key, Ledger, Outcome, Request, sha256
from routeprism.runs._rows import COLUMNS, EstimateRow, to_csv
from routeprism.runs._run import Run, Writer
from routeprism.runs._states import States
from routeprism.runs._stored import (
    Shown,
    Stored,
    StoredContext,
    StoredQuestion,
    StoredRecord,
    StoredTrace,
    read_manifest,
)
from routeprism.runs._values import Column, QuestionValues, value_rows

__all__ = [
    "Answer",
    "COLUMNS",
    "Column",
    "EstimateRow",
    "Failure",
    "Finding",
    "Key",
    "Ledger",
    "Outcome",
    "QuestionValues",
    "Request",
    "Run",
    "Shown",
    "States",
    "Stored",
    "StoredContext",
    "StoredQuestion",
    "StoredRecord",
    "StoredTrace",
    "Writer",
    "read_manifest",
    "sha256",
    "to_csv",
    "value_rows",
]
