"""The paper's tables from a file of answers, with labels and primary questions that come along."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from routeprism.records import Question, load_benchmark
from routeprism.reproduction import read_obtained, refresh

pytestmark = pytest.mark.realdata

TRUTH = {"present": True, "absent": False, "restored": True, "replacement": False}
USERS = 6


@pytest.fixture(scope="module")
def chosen(data: Path) -> list[Question]:
    """The fact-recall questions of some users."""
    cases = load_benchmark("personamem", data).cases[:USERS]
    return [q for case in cases for q in case.questions if q.kind == "fact-recall"]


def write(path: Path, header: str, rows: list[tuple[str, ...]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as lines:
        csv.writer(lines).writerows([header.split(","), *rows])
    return path


@pytest.fixture
def given(chosen: list[Question], tmp_path: Path) -> dict[str, Path]:
    """Answers, labels and the list of primary questions, as a researcher has them."""
    answers = [
        (
            q.id,
            policy,
            "replay",
            condition,
            design,
            filler,
            str(draw),
            q.gold if right else other(q),
        )
        for q in chosen
        for policy in ("focal", "recent:k=3")
        for condition, right in TRUTH.items()
        for design in ("single", "identity-swap")
        for filler in ("A", "B")
        for draw in range(3)
    ]
    columns = "question,policy,route,condition,design,filler,draw,answer"
    labels = [(q.id, one) for q in chosen for one in q.labels["reference-session"]]
    return {
        "answers": write(tmp_path / "answers.csv", columns, answers),
        "labels": write(tmp_path / "paper.csv", "question,record", labels),
        "mask": write(tmp_path / "primary.csv", "question", [(q.id,) for q in chosen]),
    }


def other(question: Question) -> str:
    return "a" if question.gold != "a" else "b"


def test_restoration_is_filled_from_recorded_answers_labels_and_primary_questions(
    cli: Callable[..., Any], data: Path, given: dict[str, Path], chosen: list[Question],
    tmp_path: Path,
) -> None:  # fmt: skip
    store = tmp_path / "obtained.json"
    said = cli(
        *("reproduce", "tab:restoration-main", "--run", "--model", f"recorded:{given['answers']}"),
        *("--readings", given["labels"], "--labels", "audited:paper", "--mask", given["mask"]),
        *("--data", data, "--obtained", store, "--json"),
    )
    assert said.code == 0, said.err
    told = json.loads(said.out)
    assert (told["executed"], told["missing"]) == (["restoration"], {})
    made = told["sources"]["restoration"]
    assert made["options"]["labels"] == "audited:paper"
    assert made["mask"] == f"{len(chosen)} questions of primary.csv"
    (table,) = told["tables"]
    found = {(c["row"], c["column"]): c for c in table["cells"] if c["obtained"] is not None}
    focal = {column: cell["obtained"] for (row, column), cell in found.items() if row == "Focal"}
    # Every draw with the support is right and every one without is not, whoever is eligible.
    assert {v for name, v in focal.items() if name.endswith(("Pres.", "Res."))} == {1.0}
    assert {v for name, v in focal.items() if name.endswith(("Abs.", "Repl."))} == {0.0}
    assert 0 < next(v for name, v in focal.items() if name.endswith("/ Q")) <= len(chosen)
    assert not any(cell["embedded"] for cell in found.values())


def test_a_source_whose_answers_are_not_in_the_file_stays_as_it_was(
    data: Path, given: dict[str, Path]
) -> None:
    from routeprism.reproduction import SOURCES

    before = {"display": read_obtained()["display"]}
    done = refresh(
        before,
        data=data,
        model=f"recorded:{given['answers']}",
        mask=given["mask"],
        sources={"display": SOURCES["display"]},
    )
    assert done.executed == ()
    assert "answers that this run needs are not in it" in done.missing["display"]
    assert "No row has policy=memochat; it has" in done.missing["display"]
    assert done.obtained == before
