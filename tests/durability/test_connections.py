"""Every connection to a store is closed by whoever opened it; `tests/conftest.py` counts them."""

from __future__ import annotations

import gc
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.errors import RunError
from routeprism.report import write_report
from routeprism.review.gates import check_run
from routeprism.review.tracing import trace_row, trace_rows
from routeprism.runs import Committer, Ledger, Run, States, StoredRun

NO_DATABASE = b"no database, but long enough to be taken for one" * 9


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A run whose store is no database."""
    directory = tmp_path / "run"
    with Run.open(directory, {"command": "audit"}, inputs={}) as run:
        run.finish([], {})
    (directory / "run.sqlite").write_bytes(NO_DATABASE)
    return directory


def test_the_count_knows_a_connection_that_was_forgotten(open_connections: Any) -> None:
    sqlite3.connect(":memory:").execute("SELECT 1")
    gc.collect()
    assert open_connections.forgotten == 1
    open_connections.forgive()


def test_the_count_knows_one_that_is_still_open(open_connections: Any) -> None:
    connection = sqlite3.connect(":memory:")
    assert open_connections.open == 1
    connection.close()
    assert open_connections.open == 0


@pytest.mark.parametrize(
    "use",
    [
        lambda run: StoredRun(run),
        lambda run: StoredRun(run, stage=run / "run.sqlite"),
        lambda run: Ledger(run / "run.sqlite"),
        lambda run: States(run / "run.sqlite"),
        lambda run: Run.open(run, {"command": "audit"}, inputs={}).__enter__(),
        lambda run: check_run(run, ["J>=0"]),
        lambda run: trace_row(run, "1"),
        lambda run: write_report(run),
    ],
)
def test_a_store_that_cannot_be_opened_leaves_no_connection(
    damaged: Path, open_connections: Any, use: Callable[[Path], Any]
) -> None:
    with pytest.raises(RunError):
        use(damaged)
    assert open_connections.open == 0


def test_a_ledger_that_cannot_be_written_leaves_no_connection(
    tmp_path: Path, open_connections: Any
) -> None:
    (tmp_path / "store").write_bytes(NO_DATABASE)
    committer = Committer(tmp_path / "store")
    with pytest.raises(RunError, match="file is not a database"):
        committer.submit(lambda connection: None).result(30)
    committer.close()
    assert open_connections.open == 0


@pytest.mark.slow
def test_a_whole_audit_leaves_no_connection(
    small_data: Path, tmp_path: Path, open_connections: Any
) -> None:
    run = tmp_path / "run"
    for draws in (1, 2):
        routeprism.audit(
            small_data, "recent:k=2", models=["reader"], draws=draws, run=run, resamples=100
        )
    write_report(run)
    check_run(run, ["J>=0"])
    assert open_connections.open == 0


def test_rows_that_nobody_reads_to_the_end_leave_no_connection(
    small_data: Path, tmp_path: Path, open_connections: Any
) -> None:
    routeprism.audit(small_data, "recent:k=2", run=tmp_path / "run", resamples=100)
    trails = trace_rows(tmp_path / "run", [1, 2])
    next(trails)
    del trails
    gc.collect()
    assert open_connections.open == 0
