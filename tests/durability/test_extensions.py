"""A finished run stays as it is until its extension is complete, and says so in between."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.errors import RunError
from routeprism.labels import routes_of
from routeprism.report import write_answers, write_report
from routeprism.review.comparison import compare_runs
from routeprism.review.gates import check_run
from routeprism.review.planning import plan_study
from routeprism.review.tracing import trace_row
from routeprism.runs import Column, EstimateRow, StoredRun

READERS: dict[str, Callable[[Path, Path], Any]] = {
    "check": lambda run, changed: check_run(run, ["J>=0"]),
    "baseline": lambda run, changed: check_run(changed, [], run),
    "compare": lambda run, changed: compare_runs(changed, run),
    "trace": lambda run, changed: trace_row(run, "1"),
    "plan": lambda run, changed: plan_study(run, "J", half_width=0.1, schedule="replay"),
    "answers": lambda run, changed: write_answers(run, run.parent / "answers.csv"),
    "compiled": lambda run, changed: routes_of(run),
}


def audit(data: Path, run: Path, draws: int, **options: Any) -> None:
    routeprism.audit(
        data, "recent:k=2", models=["reader"], draws=draws, run=run, resamples=100, **options
    )


def dispatched(row: EstimateRow | Column) -> bool:
    return (
        row.arm.endswith("-first")
        or row.quantity.startswith("dispatch.")
        or row.quantity.endswith("_first")
    )


def exported(run: Path) -> list[list[str]]:
    file = run.parent / "answers.csv"
    write_answers(run, file)
    with file.open(encoding="utf-8", newline="") as stream:
        return list(csv.reader(stream))


def state(run: Path) -> tuple[object, ...]:
    """What readers see of a run."""
    with StoredRun(run) as stored:
        values = stored.per_question()
        rows = stored.estimates()
    names = ("manifest.json", "estimates.csv")
    return values, rows, exported(run), *((run / name).read_bytes() for name in names)


@pytest.fixture
def finished(small_data: Path, tmp_path: Path) -> Path:
    audit(small_data, tmp_path / "run", draws=1)
    return tmp_path / "run"


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_extension_leaves_the_run_as_it_was(
    small_data: Path, finished: Path, error: type[BaseException]
) -> None:
    before = state(finished)

    def stop(model: str, progress: object) -> None:
        raise error

    with pytest.raises(error):
        audit(small_data, finished, draws=3, answer_progress=stop)
    assert state(finished) == before
    assert sorted(path.name for path in finished.iterdir()) == [
        "estimates.csv",
        "manifest.json",
        "run.sqlite",
    ]
    assert check_run(finished, ["J>=0"]).passed


def test_a_dry_run_leaves_a_finished_run_as_it_was(small_data: Path, finished: Path) -> None:
    before = state(finished)
    audit(small_data, finished, draws=3, dry_run=True)
    assert state(finished) == before


def test_a_dry_run_in_an_empty_directory_leaves_it_empty(small_data: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    audit(small_data, tmp_path / "run", draws=3, dry_run=True)
    assert list((tmp_path / "run").iterdir()) == []


def test_an_extension_has_the_numbers_of_a_run_that_was_made_at_once(
    small_data: Path, finished: Path, tmp_path: Path
) -> None:
    """All but those of one dispatch order, which is another one when draws are added later."""
    audit(small_data, finished, draws=2)
    audit(small_data, tmp_path / "once", draws=2)
    with StoredRun(finished) as extended, StoredRun(tmp_path / "once") as once:
        rows = [
            [row for row in item.estimates() if not dispatched(row)] for item in (extended, once)
        ]
        values = [
            {
                column: by_user
                for column, by_user in item.per_question().items()
                if not dispatched(column)
            }
            for item in (extended, once)
        ]
    assert rows[0] == rows[1] and rows[0]
    assert values[0] == values[1] and values[0]
    assert len(exported(finished)) == 1 + 3 * 2 * 2 * 2  # header; users, questions, routes, draws


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks, which this system cannot")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("name", READERS)
def test_readers_refuse_a_run_whose_extension_was_cut_off_while_it_was_put_in_place(
    small_data: Path,
    finished: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    audit(small_data, tmp_path / "other", draws=1)
    READERS[name](finished, tmp_path / "other")  # as long as it is complete
    place = Path.replace

    def move(draft: Path, target: Path) -> Path:
        if target.name == "estimates.csv":
            os._exit(9)
        return place(draft, target)

    monkeypatch.setattr(Path, "replace", move)
    child = os.fork()
    if child == 0:
        audit(small_data, finished, draws=2)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    monkeypatch.undo()
    with pytest.raises(
        RunError, match=r"run is not finished; run the same command with this directory"
    ):
        READERS[name](finished, tmp_path / "other")
    page = write_report(finished).read_text(encoding="utf-8")
    assert "The run was interrupted, so it has no estimates." in page
    audit(small_data, finished, draws=2)
    READERS[name](finished, tmp_path / "other")
    assert json.loads((finished / "manifest.json").read_text())["configuration"]["draws"] == 2
