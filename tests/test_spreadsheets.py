"""CSV files that go through a spreadsheet: no cell runs as a formula, and every cell comes back."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import routeprism
from routeprism.errors import InputError
from routeprism.labels import with_label_file
from routeprism.report import write_answers
from routeprism.runs import EstimateRow, to_csv
from routeprism.spreadsheets import guard_cell, long_cells, unguard_cell, write_csv

SIGNS = "=+-@＝＋－＠﹦﹢﹣﹫"
INVISIBLE = (
    " \t\r\n\v\0\x1f\x85\xa0\xad\u200b\u200e\u2028\u2060\u3000\ufeff\ufff9\U000e0020\U000e0100"
)
CELLS = st.text(st.sampled_from(f"{SIGNS}{INVISIBLE}',\"aé"), max_size=6)


@given(CELLS)
def test_a_guarded_cell_is_no_formula_and_comes_back(cell: str) -> None:
    guarded = guard_cell(cell)
    assert not guarded.lstrip(INVISIBLE).startswith(tuple(SIGNS))
    assert not guarded.startswith(("\t", "\r", "\n"))
    assert unguard_cell(guarded) == cell


@pytest.mark.parametrize("number", ["-1", "+0.25", "-0.160 [-0.480, 0.120]", "-3.1%"])
def test_a_number_with_a_sign_stays_a_number(number: str) -> None:
    assert guard_cell(number) == number
    assert unguard_cell(number) == number
    for text in (f"{number}+A1", f" {number}", f"={number}", f"'{number}", f"{number}|cmd"):
        assert guard_cell(text) == f"'{text}"
        assert unguard_cell(guard_cell(text)) == text


@given(st.lists(st.tuples(CELLS, CELLS), max_size=4), st.sampled_from(["\n", "\r\n"]))
def test_what_is_written_is_read_again(rows: list[tuple[str, str]], line_end: str) -> None:
    text = write_csv(("a", "b"), rows, line_end=line_end)
    read = [list(map(unguard_cell, row)) for row in csv.reader(io.StringIO(text, newline=""))]
    expected = [[cell.replace("\0", "\N{REPLACEMENT CHARACTER}") for cell in row] for row in rows]
    assert read == [["a", "b"], *expected]


def test_a_null_character_is_replaced() -> None:
    assert write_csv(("a",), [("=\0x",)]) == "a\n'=\ufffdx\n"


def test_a_bare_carriage_return_is_quoted() -> None:
    assert write_csv(("a",), [("x\ry",)]) == 'a\n"x\ry"\n'


def test_names_in_estimates_are_guarded_and_negative_numbers_are_not() -> None:
    row = EstimateRow(
        experiment="routes", benchmark="=1+1", stratum="@x\ry", quantity="Delta", estimate=-0.25
    )
    with long_cells():
        [content] = csv.DictReader(io.StringIO(to_csv([row]), newline=""))
    assert content["benchmark"] == "'=1+1"
    assert content["stratum"] == "'@x\ry"
    assert content["estimate"] == "-0.25"


def test_long_cells_are_read_and_the_limit_is_put_back() -> None:
    before = csv.field_size_limit()
    text = write_csv(("a",), [("x" * 200_000,)])
    with long_cells():
        assert list(csv.reader(io.StringIO(text)))[1] == ["x" * 200_000]
    assert csv.field_size_limit() == before


@pytest.mark.slow
def test_answers_go_out_and_in_again_whatever_they_contain(tmp_path: Path) -> None:
    audit = {"resamples": 100, "kinds": ["plan"]}
    routeprism.audit("sample", "recent:k=2", models=["reader"], run=tmp_path / "run", **audit)  # type: ignore[arg-type]
    file = tmp_path / "answers.csv"
    write_answers(tmp_path / "run", file)
    rows = list(csv.DictReader(io.StringIO(file.read_text("utf-8"), newline="")))
    hostile = ["=cmd()", "'=quoted", "a\rb", "+1", "b" * 140_000]
    for row, answer in zip(rows, hostile, strict=False):
        row["answer"], row["correct"] = answer, "false"
    cells = ([row[name] for name in rows[0]] for row in rows)
    file.write_text(write_csv(list(rows[0]), cells), encoding="utf-8", newline="")
    text = f"recorded:{file}"
    routeprism.audit("sample", "recent:k=2", models=[text], run=tmp_path / "again", **audit)  # type: ignore[arg-type]
    write_answers(tmp_path / "again", tmp_path / "second.csv")
    with long_cells(), (tmp_path / "second.csv").open(newline="", encoding="utf-8") as stream:
        answers = {unguard_cell(row["answer"]) for row in csv.DictReader(stream)}
    assert answers >= set(hostile)


@pytest.mark.parametrize(
    ("content", "line", "field"),
    [
        ("question,record\n{known},{record}\nnowhere,x\n", 3, "question"),
        ("question,record\n{known},nothing\n", 2, "record"),
    ],
)
def test_unknown_labels_name_file_line_and_field(
    tmp_path: Path, content: str, line: int, field: str
) -> None:
    sample = routeprism.load_benchmark("sample")
    case = next(case for case in sample.cases if case.questions)
    file = tmp_path / "labels.csv"
    file.write_text(content.format(known=case.questions[0].id, record=case.pool.ids[0]))
    with pytest.raises(InputError) as caught:
        with_label_file(sample, file)
    assert (caught.value.file, caught.value.line, caught.value.field) == (str(file), line, field)
