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
from routeprism.reproduction import (
    SOURCES,
    CheckedNumber,
    PublishedNumber,
    PublishedTable,
    SourceRun,
    check_number,
    execute_source,
    list_references,
    price_source,
    read_obtained,
    refresh_values,
)

TRUTH = {"present": True, "absent": False, "restored": True, "replacement": False}
USERS = 6


@pytest.fixture(scope="module")
def choice(data: Path) -> list[Question]:
    """The fact-recall questions of some users."""
    cases = load_benchmark("personamem", data).cases[:USERS]
    return [q for case in cases for q in case.questions if q.kind == "fact-recall"]


def write(path: Path, header: str, rows: list[tuple[str, ...]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as lines:
        csv.writer(lines).writerows([header.split(","), *rows])
    return path


@pytest.fixture
def arguments(data: Path, choice: list[Question], tmp_path: Path) -> dict[str, Path]:
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
            q.gold if right else second(q),
        )
        for q in choice
        for policy in ("focal", "recent:k=3")
        for condition, right in TRUTH.items()
        for design in ("single", "identity-swap")
        for filler in ("A", "B")
        for draw in range(3)
    ]
    columns = "question,policy,route,condition,design,filler,draw,answer"
    cases = load_benchmark("personamem", data).cases
    facts = [q for case in cases for q in case.questions if q.kind == "fact-recall"]
    labels = [(q.id, label) for q in facts for label in q.labels["reference-session"]]
    return {
        "answers": write(tmp_path / "answers.csv", columns, answers),
        "labels": write(tmp_path / "paper.csv", "question,record", labels),
        "mask": write(tmp_path / "primary.csv", "question", [(q.id,) for q in choice]),
    }


def second(question: Question) -> str:
    return "a" if question.gold != "a" else "b"


@pytest.mark.realdata
def test_restoration_is_filled_from_recorded_answers_labels_and_primary_questions(
    cli: Callable[..., Any], data: Path, arguments: dict[str, Path], choice: list[Question],
    tmp_path: Path,
) -> None:  # fmt: skip
    store = tmp_path / "obtained.json"
    call = cli(
        *(
            "reproduce",
            "tab:restoration-main",
            "--run",
            "--model",
            f"recorded:{arguments['answers']}",
        ),
        *(
            "--readings",
            arguments["labels"],
            "--labels",
            "audited:paper",
            "--mask",
            arguments["mask"],
        ),
        *("--data", data, "--obtained", store, "--json"),
    )
    assert call.code == 0, call.err
    document = json.loads(call.out)
    assert document["executed"] == ["restoration", "recent-restoration", "recent-loss"]
    assert document["missing"] == {}
    result = document["sources"]["restoration"]
    assert result["options"]["labels"] == "audited:paper"
    assert result["masks"] == {"primary": f"{len(choice)} questions of primary.csv"}
    (table,) = document["tables"]
    values = {(c["row"], c["column"]): c for c in table["cells"] if c["obtained"] is not None}
    focal = {column: cell["obtained"] for (row, column), cell in values.items() if row == "Focal"}
    # Every draw with the support is right and every one without is not, whoever is eligible.
    assert {v for name, v in focal.items() if name.endswith(("Pres.", "Res."))} == {1.0}
    assert {v for name, v in focal.items() if name.endswith(("Abs.", "Repl."))} == {0.0}
    assert 0 < next(v for name, v in focal.items() if name.endswith("/ Q")) <= len(choice)
    assert not any(cell["embedded"] or cell["stand_in"] for cell in values.values())
    # The file has answers on the primary questions alone: what is about more stays empty.
    assert all(column.startswith("Primary") for _, column in values)
    rest = {c["blank"] for c in table["cells"] if c["column"].startswith("All eligible")}
    assert len(rest) == 2  # one for each policy's run, as the numbers of missing answers differ
    assert all("only the questions of the given sets were answered" in why for why in rest)


@pytest.mark.realdata
def test_a_source_whose_answers_are_not_in_the_file_stays_as_it_was(
    data: Path, arguments: dict[str, Path]
) -> None:
    before = {"display": read_obtained()["display"]}
    done = refresh_values(
        before,
        data=data,
        model=f"recorded:{arguments['answers']}",
        masks={"primary": arguments["mask"]},
        sources={"display": SOURCES["display"]},
    )
    assert done.executed == ()
    assert "answers that this run needs are not in it" in done.missing["display"]
    assert "No row has policy=memochat; it has" in done.missing["display"]
    assert done.obtained == before


@pytest.fixture
def sets(tmp_path: Path) -> dict[str, Any]:
    """Answers to the sample that tell two sets of questions apart, and a source to ask them of."""
    sample = load_benchmark("sample")
    questions = [question for case in sample.cases for question in case.questions]
    primary = {question.id for question in questions[::4]}
    gold = {question.id for question in questions[1::4]}
    rows = [
        (q.id, "raw", route, "0", q.gold if route == "forward" or q.id in primary else second(q))
        for q in questions
        for route in ("forward", "replay")
    ]
    columns = "question,policy,schedule,draw,answer"
    within = [row for row in rows if row[0] in primary | gold]
    return {
        "all": write(tmp_path / "all.csv", columns, rows),
        "within": write(tmp_path / "within.csv", columns, within),
        "primary": write(tmp_path / "primary.csv", "question", [(id,) for id in sorted(primary)]),
        "gold": write(tmp_path / "gold.csv", "question", [(id,) for id in sorted(gold)]),
        "questions": questions,
        "source": SourceRun("some", "some answers", "sample", {"whole": "raw"}, asks=True),
    }


CELLS = PublishedTable(
    "tab:some",
    "some cells",
    {
        "kind": "machinery",
        "source": "some",
        "policy": "whole",
        "schedule": "replay",
        "filler": "A",
        "quantity": "H",
    },
    rows={
        "Primary": {"questions": "primary"},
        "Outside primary": {"questions": "outside-primary"},
        "Gold": {"questions": "gold"},
        "Strict": {"questions": "strict"},
        "Coverage": {},
    },
)


def fill(sets: dict[str, Any], answers: str, *names: str) -> dict[str, CheckedNumber]:
    """Perform the source with some sets of questions, and give the cell of each row."""
    printed = {row: PublishedNumber("tab:some", "1", row, "H", "0.5") for row in CELLS.rows}
    refs = [ref for item in printed.values() for ref in list_references(CELLS, item)]
    values = execute_source(
        sets["source"],
        refs,
        model=f"recorded:{sets[answers]}",
        masks={name: sets[name] for name in names},
        resamples=100,
    )
    return {row: check_number(CELLS, item, {"some": values}) for row, item in printed.items()}


@pytest.mark.slow
def test_each_set_of_questions_has_its_own_number(sets: dict[str, Any]) -> None:
    """Answers change outside of the primary questions only, so every wrong set shows."""
    cells = fill(sets, "all", "primary", "gold")
    total = len(sets["questions"])
    counts = {row: cell.questions for row, cell in cells.items()}
    subset, gold = counts["Primary"], counts["Gold"]
    assert subset is not None and gold is not None
    assert (counts["Outside primary"], counts["Coverage"]) == (total - subset, total)
    assert subset == len(sets["questions"][::4]) and gold == len(sets["questions"][1::4])
    values = {row: cell.value for row, cell in cells.items()}
    assert values["Primary"] == 0 and values["Gold"] == 1 and values["Outside primary"] == 1
    assert 0.7 < (values["Coverage"] or 0) < 0.8
    assert values["Strict"] is None
    assert cells["Strict"].blank == (
        "the questions 'strict' are missing: pass the mask strict=FILE"
    )
    assert {cell.stand_in for cell in cells.values()} == {""}


@pytest.mark.slow
def test_answers_on_the_sets_alone_leave_everything_else_empty(sets: dict[str, Any]) -> None:
    cells = fill(sets, "within", "primary", "gold")
    assert (cells["Primary"].value, cells["Gold"].value) == (0, 1)
    for row in ("Coverage", "Outside primary"):
        assert cells[row].value is None
        assert cells[row].blank.startswith("only the questions of the given sets were answered")


@pytest.mark.slow
def test_a_price_counts_the_questions_that_will_be_asked(sets: dict[str, Any]) -> None:
    """Cells about one set alone take the answers to its questions, two routes each."""

    def calls(*rows: str) -> int:
        printed = [PublishedNumber("tab:some", "1", row, "H", "0.5") for row in rows]
        refs = [ref for item in printed for ref in list_references(CELLS, item)]
        costs = price_source(
            sets["source"], refs, data=None, model="reader", masks={"primary": sets["primary"]}
        )
        (plan,) = costs.values()
        return plan.cells

    assert calls("Primary") == 2 * len(sets["questions"][::4])
    assert calls("Primary", "Coverage") == calls("Outside primary") == 2 * len(sets["questions"])


@pytest.mark.slow
def test_without_any_set_all_questions_stand_in_and_are_named(sets: dict[str, Any]) -> None:
    cells = fill(sets, "all")
    whole = cells["Coverage"].value
    for row in ("Primary", "Gold", "Strict"):
        assert (cells[row].value, cells[row].stand_in) == (whole, "fact-recall")
        assert cells[row].status == "machinery"
    assert cells["Coverage"].stand_in == ""
    assert cells["Outside primary"].value is None
    assert "pass the mask primary=FILE" in cells["Outside primary"].blank


def test_several_models_are_refused_and_labels_need_answers(
    cli: Callable[..., Any], tmp_path: Path
) -> None:
    file = write(
        tmp_path / "answers.csv",
        "model,question,policy,schedule,draw,answer",
        [("one", "q", "raw", "forward", "0", "a"), ("two", "q", "raw", "forward", "0", "a")],
    )
    with pytest.raises(SpecError, match=r"choose one: recorded:.*model=one, recorded:.*model=two"):
        refresh_values({}, model=f"recorded:{file}")
    assert (
        "masks applies when tables are executed; set execute (--run)"
        in cli("reproduce", "--mask", file).err
    )
    assert "Did you mean 'primary'?" in cli("reproduce", "--run", "--mask", f"primry={file}").err
    twice = cli("reproduce", "--run", "--mask", file, "--mask", f"primary={file}")
    assert twice.code == 2 and "twice" in twice.err
    call = cli("reproduce", "--run", "--model", f"recorded:{file},model=one", "--readings", file)
    assert call.code == 2 and "labels='audited:NAME'" in call.err
