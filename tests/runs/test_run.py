"""A run is whole or not there, is resumed by its own configuration only, and can be read back."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.errors import OwnCodeError, RoutePrismError, RunError
from routeprism.records import Record
from routeprism.runs import COLUMNS, EstimateRow, Finding, Run, StoredRun, to_csv

CONFIGURATION = {"command": "audit", "policies": ["raw"], "seed": 1}
INPUTS = {"records.jsonl": "ab12"}
ROW = EstimateRow(experiment="routes", benchmark="mine", quantity="J", estimate=0.5)
FILES = {"estimates.csv", "manifest.json", "run.sqlite"}


def write(
    directory: Path,
    configuration: Mapping[str, Any] = CONFIGURATION,
    inputs: Mapping[str, str] = INPUTS,
    rows: tuple[EstimateRow, ...] = (ROW,),
    text: str = "tea",
) -> None:
    with Run.open(directory, configuration, inputs=inputs) as run:
        with run.writing() as writer:
            writer.insert("texts", [("sha", text)])
        run.finish(rows, {"pools": 1})


def files(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


def query(directory: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(directory / "run.sqlite")) as connection:
        return connection.execute(sql).fetchall()


# --- a whole run -----------------------------------------------------------------------------


def test_a_run_is_three_files(tmp_path: Path) -> None:
    write(tmp_path / "run")
    assert set(files(tmp_path / "run")) == FILES
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["configuration"] == CONFIGURATION
    assert (manifest["inputs"], manifest["counts"]) == (INPUTS, {"pools": 1})
    assert manifest["status"] == "complete"
    assert manifest["packages"]["routeprism"]
    assert query(tmp_path / "run", "SELECT * FROM texts") == [("sha", "tea")]
    assert query(tmp_path / "run", "SELECT quantity, estimate FROM estimates") == [("J", 0.5)]


def test_until_it_is_complete_the_manifest_says_so(tmp_path: Path) -> None:
    with Run.open(tmp_path / "run", CONFIGURATION, inputs=INPUTS) as run:
        assert run.fresh
        assert json.loads((tmp_path / "run/manifest.json").read_text())["status"] == "running"
        run.finish([ROW], {})
    assert json.loads((tmp_path / "run/manifest.json").read_text())["status"] == "complete"


def test_the_same_configuration_replaces_what_was_stored(tmp_path: Path) -> None:
    write(tmp_path / "run")
    before = files(tmp_path / "run")
    write(tmp_path / "run")
    assert files(tmp_path / "run")["estimates.csv"] == before["estimates.csv"]
    assert files(tmp_path / "run")["manifest.json"] == before["manifest.json"]
    assert query(tmp_path / "run", "SELECT * FROM texts") == [("sha", "tea")]
    assert query(tmp_path / "run", "SELECT count(*) FROM estimates") == [(1,)]


# --- directories that cannot be used ---------------------------------------------------------


def test_another_configuration_is_refused_with_the_difference(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    write(directory)
    before = files(directory)
    values = {"command": "audit", "policies": ["raw", "focal"], "seed": 1, "ties": True}
    with pytest.raises(RunError) as refused:
        write(directory, values, {"records.jsonl": "cd34"})
    assert str(refused.value) == (
        f"{directory} holds another run; choose a different directory. It differs in:\n"
        '  inputs: {"records.jsonl": "ab12"} there, {"records.jsonl": "cd34"} here\n'
        '  policies: ["raw"] there, ["raw", "focal"] here\n'
        "  ties: null there, true here"
    )
    assert files(directory) == before


def test_other_input_under_the_same_configuration_is_another_run(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(RunError, match=r"holds another run(?s:.*)\n  inputs: "):
        write(tmp_path, inputs={"records.jsonl": "cd34"})


def test_foreign_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(RunError) as refused:
        write(tmp_path)
    assert str(refused.value) == (
        f"{tmp_path} contains files that do not belong to a run; choose an empty directory"
    )
    assert files(tmp_path) == {"thesis.txt": b"years of work"}


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("x")
    with pytest.raises(RunError, match="run is a file; a run is a directory"):
        write(tmp_path / "run")
    with pytest.raises(RunError, match="cannot be created: Not a directory"):
        write(tmp_path / "run" / "below")
    assert files(tmp_path) == {"run": b"x"}


@pytest.mark.parametrize("name", ["x" * 300, "new/" + "x" * 300, "a\0b"])
def test_a_name_that_no_directory_can_have(tmp_path: Path, name: str) -> None:
    with pytest.raises(RunError, match="cannot be"):
        write(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "manifest",
    ["{", "[]", "{}", '{"configuration": [1], "inputs": {}}', '{"configuration": {}, "inputs": 3}'],
)
def test_a_manifest_that_cannot_be_read_is_not_overwritten(tmp_path: Path, manifest: str) -> None:
    (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(RunError, match=r"manifest\.json cannot be read \(.*\); choose a different"):
        write(tmp_path)
    assert files(tmp_path) == {"manifest.json": manifest.encode()}


def test_a_store_that_is_no_store_is_not_overwritten(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "run.sqlite").write_bytes(b"no database, but long enough to be taken for one" * 9)
    before = files(tmp_path)
    with pytest.raises(RunError, match=r"run\.sqlite cannot be read: file is not a database"):
        write(tmp_path)
    assert files(tmp_path) == before


# --- failing midway --------------------------------------------------------------------------


class OtherError(Exception):
    """Something that is no error of ours."""


def fail(directory: Path, error: BaseException, text: str = "half") -> None:
    with Run.open(directory, CONFIGURATION, inputs=INPUTS) as run, run.writing() as writer:
        writer.insert("texts", [("sha", text)])
        raise error


@pytest.mark.parametrize("error", [OtherError(), KeyboardInterrupt()])
def test_a_failing_run_takes_back_every_folder_it_made(
    tmp_path: Path, error: BaseException
) -> None:
    (tmp_path / "kept").mkdir()
    with pytest.raises(type(error)):
        fail(tmp_path / "kept" / "a" / "b" / "run", error)
    assert [path.name for path in tmp_path.rglob("*")] == ["kept"]


def test_a_failing_run_leaves_a_folder_of_the_user_empty(tmp_path: Path) -> None:
    with pytest.raises(OtherError):
        fail(tmp_path, OtherError())
    assert list(tmp_path.iterdir()) == []


def test_a_failing_repetition_leaves_the_run_as_it_was(tmp_path: Path) -> None:
    write(tmp_path)
    before = files(tmp_path)
    with pytest.raises(OtherError):
        fail(tmp_path, OtherError())
    assert files(tmp_path)["manifest.json"] == before["manifest.json"]
    assert files(tmp_path)["estimates.csv"] == before["estimates.csv"]
    assert set(files(tmp_path)) == FILES
    assert query(tmp_path, "SELECT * FROM texts") == [("sha", "tea")]


def test_rows_that_say_the_same_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    twice = (ROW, EstimateRow(experiment="routes", benchmark="mine", quantity="J", estimate=0.7))
    with pytest.raises(RoutePrismError, match="two estimates have the same identity"):
        write(tmp_path / "run", rows=twice)
    assert not (tmp_path / "run").exists()


def test_findings_are_replaced_experiment_by_experiment(tmp_path: Path) -> None:
    curve = Finding(name="curve", policy="focal", user="ann", value=[1, 0.5])
    worst = Finding(name="worst_order", policy="focal", user="ann", value={"order": [1, 0]})
    with Run.open(tmp_path / "run", CONFIGURATION, inputs=INPUTS) as run:
        run.keep("retention", [curve])
        run.keep("orders", [worst, curve])
        run.keep("orders", [worst])
        with StoredRun(tmp_path / "run") as stored:
            assert stored.findings("retention") == [curve]
            assert stored.findings("orders", "worst_order") == [worst]
            assert stored.findings("orders") == [worst]
        run.finish((ROW,), {})


def test_an_unknown_table_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(RunError, match="there is no table 'secrets'"),
        Run.open(tmp_path / "run", CONFIGURATION, inputs=INPUTS) as run,
        run.writing() as writer,
    ):
        writer.insert("secrets", [("a",)])
    assert not (tmp_path / "run").exists()


# --- an audit that fails midway --------------------------------------------------------------


class Fragile:
    """Keeps everything, until it is broken; then user 20 is too much."""

    broken = False

    def __init__(self) -> None:
        self.kept: list[Record] = []

    def add(self, record: Record) -> None:
        if Fragile.broken and record.id.startswith("u20"):
            raise OtherError(f"cannot take {record.id}")
        self.kept.append(record)

    def retained(self) -> list[Record]:
        return self.kept

    def expose(self, query: str) -> list[Record]:
        return self.kept


@pytest.mark.slow
def test_a_memory_that_raises_midway_leaves_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Fragile, "broken", True)
    done: list[int] = []
    with pytest.raises(OwnCodeError, match="cannot take u20"):
        routeprism.audit(
            "sample", Fragile, run=tmp_path / "run", progress=lambda at, of: done.append(at)
        )
    assert done[-1] == 19  # it was under way
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_memory_that_raises_midway_leaves_the_run_that_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "run"
    first = routeprism.audit("sample", Fragile, run=directory, resamples=100)
    before = files(directory)
    stored = query(directory, "SELECT policy, schedule, user, retained FROM traces")
    monkeypatch.setattr(Fragile, "broken", True)
    with pytest.raises(OwnCodeError):
        routeprism.audit("sample", Fragile, run=directory, resamples=100)
    assert files(directory)["manifest.json"] == before["manifest.json"]
    assert (
        files(directory)["estimates.csv"] == before["estimates.csv"] == to_csv(first.rows).encode()
    )
    assert query(directory, "SELECT policy, schedule, user, retained FROM traces") == stored
    assert len(stored) == 2 * 30  # forward and replay of 30 users


# --- what an audit stores --------------------------------------------------------------------


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("runs") / "run"
    routeprism.audit("sample", "focal", "lexical", run=directory, resamples=100)
    return directory


@pytest.mark.slow
def test_texts_are_kept_under_their_digest(stored: Path) -> None:
    texts = query(stored, "SELECT sha256, text FROM texts")
    assert len(texts) > 165  # every record of the sample, and what was shown of it
    assert all(hashlib.sha256(text.encode()).hexdigest() == digest for digest, text in texts)


@pytest.mark.slow
def test_every_context_can_be_put_together_again(stored: Path) -> None:
    texts = dict(query(stored, "SELECT sha256, text FROM texts"))
    contexts = query(stored, "SELECT context_sha256, context_chars, sources, blocks FROM contexts")
    for digest, chars, sources, blocks in contexts:
        document = json.loads(blocks)
        context = "\n\n".join(texts[text] for _, text, _ in document)
        assert hashlib.sha256(context.encode()).hexdigest() == digest
        assert len(context) == chars
        assert json.loads(sources) == sorted({name for _, _, ids in document for name in ids})


@pytest.mark.slow
def test_every_question_is_exposed_on_every_route(stored: Path) -> None:
    counted = query(
        stored,
        "SELECT policy, interface, schedule, count(*) FROM exposures JOIN questions"
        " ON question = questions.id JOIN contexts ON context = contexts.id"
        " GROUP BY 1, 2, 3 ORDER BY 1, 3",
    )
    assert counted == [
        ("focal", "budget", "forward", 165),
        ("focal", "budget", "replay", 165),
        ("lexical", "own", "forward", 165),
        ("lexical", "own", "replay", 165),
    ]


@pytest.mark.slow
def test_the_store_and_the_table_hold_the_same_estimates(stored: Path) -> None:
    rows = list(csv.DictReader(io.StringIO((stored / "estimates.csv").read_text(encoding="utf-8"))))
    stored_rows = query(stored, f"SELECT {', '.join(COLUMNS)} FROM estimates")
    assert len(rows) == len(stored_rows) > 0
    for row, values in zip(rows, stored_rows, strict=True):
        estimate = values[COLUMNS.index("estimate")]
        assert float(row["estimate"]) == pytest.approx(estimate, abs=1e-9)
        assert row["quantity"] == values[COLUMNS.index("quantity")]


# --- the table -------------------------------------------------------------------------------


def test_the_columns_are_those_of_the_design() -> None:
    assert ", ".join(COLUMNS) == (
        "experiment, benchmark, policy, interface, schedule, model, judge, prompt_control, filler, "
        "arm, labels, mask, batch, stratum, quantity, estimate, lower, upper, queries, units, "
        "unit, draws, seed, flags"
    )


def test_numbers_are_written_in_full_and_nothing_is_an_empty_cell() -> None:
    row = EstimateRow(
        experiment="routes",
        benchmark='my "own", data\nhere',
        quantity="J",
        estimate=1 / 3,
        lower=0.0,
        upper=None,
        queries=3,
    )
    content = to_csv([row])
    assert content.endswith("\n")
    assert "\r" not in content
    (read,) = csv.DictReader(io.StringIO(content, newline=""))
    assert read["benchmark"] == 'my "own", data\nhere'
    assert [read[name] for name in ("estimate", "lower", "upper", "queries", "units")] == [
        "0.3333333333",
        "0",
        "",
        "3",
        "",
    ]


def test_flags_and_numbers_do_not_make_a_row_another_row() -> None:
    flagged = EstimateRow(
        experiment="routes", benchmark="mine", quantity="J", estimate=0.9, flags="synthetic"
    )
    stratum = EstimateRow(
        experiment="routes", benchmark="mine", quantity="J", estimate=0.5, stratum="temporal"
    )
    assert flagged.identity == ROW.identity != stratum.identity
