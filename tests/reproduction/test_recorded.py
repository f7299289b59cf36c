"""The paper's tables from a file of answers, with labels and primary questions that come along."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from routeprism.errors import SpecError
from routeprism.records import Question, load_benchmark
from routeprism.reproduction import SOURCES, read_obtained, refresh
from routeprism.reproduction._cells import Reference, find
from routeprism.reproduction._perform import perform
from routeprism.reproduction._sources import Source

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


@pytest.mark.realdata
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
    assert (told["executed"], told["missing"]) == (["restoration", "recent-restoration"], {})
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


@pytest.mark.realdata
def test_a_source_whose_answers_are_not_in_the_file_stays_as_it_was(
    data: Path, given: dict[str, Path]
) -> None:
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


def test_numbers_of_primary_questions_stand_for_those_of_fact_recall(tmp_path: Path) -> None:
    """A source with all questions gives numbers within the mask where tables mean primary ones."""
    sample = load_benchmark("sample")
    questions = [question for case in sample.cases for question in case.questions]
    primary = {question.id for question in questions[::4]}
    rows = [
        (
            q.id,
            "raw",
            schedule,
            "0",
            q.gold if schedule == "forward" or q.id in primary else other(q),
        )
        for q in questions
        for schedule in ("forward", "replay")
    ]
    columns = "question,policy,schedule,draw,answer"
    answers = write(tmp_path / "answers.csv", columns, rows)
    mask = write(tmp_path / "primary.csv", "question", [(id,) for id in sorted(primary)])
    labels = write(tmp_path / "mine.csv", "question,record", [(questions[0].id, "")])
    where = {"experiment": "routes", "quantity": "H", "policy": "whole", "arm": "", "mask": ""}
    strata = ("all", "fact-recall")
    wanted = [Reference("some", {**where, "stratum": one}, "estimate") for one in strata]
    kept = perform(
        Source("some", "some answers", "sample", {"whole": "raw"}, asks=True),
        wanted,
        model=f"recorded:{answers}",
        mask=mask,
        readings=[labels],
        labels="audited:mine",
        resamples=100,
    )
    every, inside = (find(kept.rows, one) for one in wanted)
    assert every is not None and inside is not None
    assert inside.row.queries == len(primary) and inside.row.estimate == 0
    assert every.row.queries == len(questions) and (every.row.estimate or 0) > 0.7
    assert kept.made["options"]["labels"] == "audited:mine"


def test_several_models_are_refused_and_labels_need_answers(
    cli: Callable[..., Any], tmp_path: Path
) -> None:
    file = write(
        tmp_path / "answers.csv",
        "model,question,policy,schedule,draw,answer",
        [("one", "q", "raw", "forward", "0", "a"), ("two", "q", "raw", "forward", "0", "a")],
    )
    with pytest.raises(SpecError, match=r"choose one: recorded:.*model=one, recorded:.*model=two"):
        refresh({}, model=f"recorded:{file}")
    assert "nobody is asked" in cli("reproduce", "--run", "--mask", file).err
    said = cli("reproduce", "--run", "--model", f"recorded:{file},model=one", "--readings", file)
    assert said.code == 2 and "--labels audited:NAME" in said.err
