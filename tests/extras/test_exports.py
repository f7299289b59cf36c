"""A run in the formats of other tools, read back with those tools."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import routeprism

WHY = "pip install -r requirements-extras.txt"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("exports") / "run"
    settings: dict[str, Any] = {"schedules": ("replay",), "models": ("reader",), "resamples": 100}
    routeprism.audit("sample", "recent:k=3", run=directory, **settings)
    return directory


def test_parquet_has_the_rows_of_the_estimates(run: Path, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason=WHY)
    file = tmp_path / "it's.parquet"
    content = routeprism.write_report(run, out=tmp_path / "r.html", parquet=file)
    with (run / "estimates.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    read = duckdb.connect().read_parquet(str(file))
    assert read.columns == list(rows[0])
    assert content["parquet"] == len(rows)
    estimates = [None if row["estimate"] == "" else float(row["estimate"]) for row in rows]
    assert [row[0] for row in read.project("estimate").fetchall()] == pytest.approx(estimates)


def test_the_inspect_log_has_a_scored_sample_for_each_answer(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai", reason=WHY)
    from inspect_ai.log import read_eval_log

    file = tmp_path / "log.eval"
    content = routeprism.write_report(run, out=tmp_path / "r.html", inspect=file)
    log = read_eval_log(str(file))
    assert log.status == "success" and log.eval.model == "reader"
    assert log.samples is not None and len(log.samples) == content["inspect"] > 0
    assert {sample.scores["correct"].value for sample in log.samples} == {"C", "I"}
    for sample in log.samples:
        right = sample.scores["correct"].value == "C"
        assert right is (sample.scores["correct"].answer == sample.target)
    assert {sample.metadata["policy"] for sample in log.samples} == {"recent:k=3"}


@pytest.mark.parametrize(
    ("option", "package", "extra"),
    [("--parquet", "duckdb", "parquet"), ("--inspect", "inspect_ai", "inspect")],
)
def test_a_missing_extra_is_named(
    option: str,
    package: str,
    extra: str,
    run: Path,
    cli: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    ended = cli("report", run, option, "file")
    assert ended.code == 2
    assert f"pip install 'routeprism[{extra}]'" in ended.err
