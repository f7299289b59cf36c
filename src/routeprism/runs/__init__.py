"""What is kept, and whether it can be resumed."""

from routeprism.runs._comparisons import StoredAnswer
from routeprism.runs._findings import Finding
from routeprism.runs._index import CONTRASTS, answered_by
from routeprism.runs._ledger import Answer, Failure, Key, Ledger, Outcome, Request, sha256
from routeprism.runs._questions import StoredQuestion, question_row
from routeprism.runs._rows import COLUMNS, EstimateRow, to_csv
from routeprism.runs._run import Run, Writer
from routeprism.runs._states import States
from routeprism.runs._stored import (
    Shown,
    Stored,
    StoredContext,
    StoredRecord,
    StoredTrace,
    read_manifest,
)
from routeprism.runs._values import Column, QuestionValues, UnitValues, unit_rows, value_rows

__all__ = [
    "Answer",
    "COLUMNS",
    "CONTRASTS",
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
    "StoredAnswer",
    "StoredContext",
    "StoredQuestion",
    "StoredRecord",
    "StoredTrace",
    "UnitValues",
    "Writer",
    "answered_by",
    "question_row",
    "read_manifest",
    "sha256",
    "to_csv",
    "unit_rows",
    "value_rows",
]
