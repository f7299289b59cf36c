"""Answers that were collected elsewhere: out of a run and in again, and what a file may lack."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.errors import InputError, RunError, SpecError
from routeprism.experiments import Audit
from routeprism.records import Benchmark, Case, Pool, Question, Record
from routeprism.report import ANSWER_COLUMNS, write_answers
from routeprism.review.tracing import trace_row

Row = dict[str, str]


@pytest.fixture(scope="module")
def few() -> Benchmark:
    """Some pools of the sample: among them singles, bundles and questions without a design."""
    sample = routeprism.load_benchmark("sample")
    return replace(sample, cases=tuple(sample.cases[1:4]))


def rows_of(result: Audit) -> list[Mapping[str, Any]]:
    """Give all numbers, but who answered and whether they are embedded."""
    rows = []
    for row in result.rows:
        flags = ";".join(flag for flag in row.flags.split(";") if flag != "embedded")
        rows.append({**asdict(row), "model": bool(row.model), "flags": flags})
    return rows


def read(file: Path) -> list[Row]:
    with file.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def write(file: Path, rows: Iterable[Mapping[str, str]], columns: Iterable[str] = ()) -> Path:
    entries = list(rows)
    names = list(columns or entries[0])
    with file.open("w", newline="", encoding="utf-8") as lines:
        writer = csv.DictWriter(lines, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(entries)
    return file


def both_ways(
    call: Callable[..., Audit], tmp_path: Path, model: str = "reader", **settings: Any
) -> tuple[Audit, Audit, Path]:
    """Ask a model, write its answers to a file, and do the same with that file."""
    result = call(models=[model], run=tmp_path / "asked", **settings)
    file = tmp_path / "answers.csv"
    write_answers(tmp_path / "asked", file)
    return result, call(models=[f"recorded:{file}"], **settings), file


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "experiments"),
    [
        (
            {"schedules": ["replay", "half-swap"], "comparators": True, "reuse": True,
             "batches": ["", "second"]},
            {"readouts", "replication", "reuse", "routes", "support"},
        ),
        (
            {"fillers": ["A", "B"], "provenance": ["preserved", "gated"], "control": "aligned"},
            {"readouts", "routes", "support"},
        ),
        (
            {"fillers": ["A", "B"], "display": ["reversed", "source"]},
            {"display", "readouts", "routes", "support"},
        ),
        ({"mechanism": True}, {"mechanism", "readouts", "routes", "support"}),
    ],
)  # fmt: skip
def test_every_answer_of_an_audit_goes_out_and_in_again(
    few: Benchmark, tmp_path: Path, settings: dict[str, Any], experiments: set[str]
) -> None:
    masks = {"some": [case.questions[0].id for case in few.cases]}
    call = partial(routeprism.audit, few, "focal", draws=2, masks=masks, resamples=100, **settings)
    request, repetition, file = both_ways(call, tmp_path)
    assert rows_of(repetition) == rows_of(request)
    assert {row.experiment for row in repetition.rows if row.model} == experiments
    assert not [note for note in repetition.notes if "belong to no comparison" in note]
    assert tuple(read(file)[0]) == ANSWER_COLUMNS


@pytest.mark.slow
def test_every_answer_of_a_restoration_goes_out_and_in_again(
    few: Benchmark, tmp_path: Path
) -> None:
    call = partial(
        routeprism.restore, few, "focal", "recent:k=2", draws=2, fillers=["A", "B"], resamples=100
    )
    request, repetition, file = both_ways(call, tmp_path)
    assert rows_of(repetition) == rows_of(request)
    rows = read(file)
    assert {row["design"] for row in rows} == {"single", "bundle", "identity-swap"}
    # The same question has both designs, whose conditions have the same names.
    names = {(r["question"], r["policy"], r["condition"], r["design"]) for r in rows}
    assert any((*item, "single") in names and (*item, "bundle") in names for *item, _ in names)


@pytest.fixture(scope="module")
def matrix(few: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    """Answers of the reader to one pool's replay, two draws under two fillers."""
    directory = tmp_path_factory.mktemp("matrix")
    routeprism.audit(
        one_pool(few), "focal", models=["reader"], draws=2, fillers=["A", "B"], resamples=100,
        run=directory / "run",
    )  # fmt: skip
    write_answers(directory / "run", directory / "answers.csv")
    return read(directory / "answers.csv")


def one_pool(few: Benchmark) -> Benchmark:
    return replace(few, cases=few.cases[:1])


def lookup(few: Benchmark, file: Path, **settings: Any) -> Audit:
    options = {"draws": 2, "fillers": ["A", "B"], "resamples": 100, **settings}
    return routeprism.audit(one_pool(few), "focal", models=[f"recorded:{file}"], **options)


def test_missing_answers_are_counted_and_named_before_anything_is_computed(
    few: Benchmark, matrix: list[Row], tmp_path: Path
) -> None:
    entries = [row for row in matrix if not (row["draw"] == "1" and row["filler"] == "B")]
    file = write(tmp_path / "answers.csv", entries)
    first = next(row for row in matrix if row not in entries)
    with pytest.raises(InputError) as caught:
        lookup(few, file, run=tmp_path / "run")
    text = str(caught.value)
    assert text.startswith(
        f"{file}: {len(matrix) - len(entries)} answers that this run needs are not"
    )
    assert (
        f"question={first['question']}, policy=focal, schedule=forward, pair=replay, filler=B, "
        f"prompt_control=exact, draw=1"
    ) in text
    assert not (tmp_path / "run" / "estimates.csv").exists()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"policy": "focals"}, "No row has policy=focal; it has focals"),
        ({"filler": "C"}, "No row has filler=A; it has C"),
        ({"prompt_control": "aligned"}, "No row has prompt_control=exact; it has aligned"),
        ({"condition": "gated"}, "question="),
    ],
)
def test_a_name_that_is_nowhere_in_the_file_is_said(
    few: Benchmark, matrix: list[Row], tmp_path: Path, changes: Row, problem: str
) -> None:
    renamed = {tuple({**row, **changes, "filler": changes.get("filler", row["filler"])}.items())
               for row in matrix if row["filler"] == "A"}  # fmt: skip
    file = write(tmp_path / "answers.csv", [dict(row) for row in sorted(renamed)])
    with pytest.raises(InputError, match="that this run needs are not in it") as caught:
        lookup(few, file, fillers=["A"])
    assert problem in str(caught.value)


def test_a_column_that_leaves_no_doubt_may_lack(
    few: Benchmark, matrix: list[Row], tmp_path: Path
) -> None:
    some = [row for row in matrix if row["filler"] == "A"]
    names = ("question", "policy", "schedule", "draw", "answer")
    file = write(tmp_path / "answers.csv", some, names)
    result = lookup(few, file, fillers=["A"], batches=["one"])
    whole = lookup(few, write(tmp_path / "whole.csv", matrix), fillers=["A"], batches=["one"])
    first = {row.identity[:-1]: row.estimate for row in whole.rows if row.quantity == "H_cross"}
    values = {row.identity[:-1]: row.estimate for row in result.rows if row.quantity == "H_cross"}
    assert len(first) == len(values) > 0
    assert list(first.values()) == list(values.values())
    # In which order they were asked for is not known, so nothing is said of it.
    assert [row for row in whole.rows if row.arm == "forward-first"]
    assert not [row for row in result.rows if row.arm == "forward-first"]


@pytest.mark.parametrize(
    ("settings", "doubt"),
    [
        ({}, "field 'filler': the answer would serve for filler=A and for filler=B"),
        (
            {"fillers": ["A"], "batches": ["", "second"]},
            r"field 'batch': the answer would serve for batch=\(none\) and for batch=second",
        ),
    ],
)
def test_an_answer_that_would_serve_twice_is_refused(
    few: Benchmark, matrix: list[Row], tmp_path: Path, settings: dict[str, Any], doubt: str
) -> None:
    some = [row for row in matrix if row["filler"] == "A"]
    names = ("question", "policy", "schedule", "draw", "answer")
    file = write(tmp_path / "answers.csv", some, names)
    with pytest.raises(InputError, match=f"line 2, {doubt}"):
        lookup(few, file, **settings)


def test_rows_that_say_the_same_of_different_width_are_refused(tmp_path: Path) -> None:
    row = {"question": "q", "policy": "focal", "schedule": "replay", "draw": "0", "answer": "a"}
    file = write(tmp_path / "a.csv", [{**row, "filler": "A"}, {**row, "filler": ""}])
    with pytest.raises(InputError, match=r"line 3, field 'question': line 2 already answers"):
        routeprism.audit("sample", "focal", models=[f"recorded:{file}"])


def test_answers_without_a_use_are_noted(few: Benchmark, matrix: list[Row], tmp_path: Path) -> None:
    spare = [{**row, "policy": "another"} for row in matrix[:3]]
    result = lookup(few, write(tmp_path / "answers.csv", [*matrix, *spare]))
    assert (
        f"3 of {len(matrix) + 3} recorded answers belong to no comparison of this run, "
        f"the first in line {len(matrix) + 2}"
    ) in " ".join(result.notes)


@pytest.mark.slow
def test_several_models_in_one_file_are_several_models(
    few: Benchmark, matrix: list[Row], tmp_path: Path
) -> None:
    changed = [{**row, "model": "other", "answer": "a", "correct": ""} for row in matrix]
    file = write(tmp_path / "answers.csv", [*matrix, *changed])
    result = lookup(few, file)
    names = [f"recorded:{file},model={name}" for name in ("reader", "other")]
    assert list(dict.fromkeys(row.model for row in result.rows if row.model)) == names
    where = {"filler": "A+B", "arm": "", "mask": "", "batch": ""}
    assert result.value("H_cross", model=names[1], **where).estimate == 0
    alone = routeprism.audit(
        one_pool(few), "focal", models=[names[0]], draws=2, fillers=["A", "B"], resamples=100
    )
    assert (
        alone.value("H_cross", model=names[0], **where).estimate
        == result.value("H_cross", model=names[0], **where).estimate
    )


def test_a_verdict_that_contradicts_the_right_answer_is_refused(
    few: Benchmark, matrix: list[Row], tmp_path: Path
) -> None:
    wrong = [dict(row) for row in matrix]
    wrong[4]["correct"] = {"true": "no", "false": "yes"}[wrong[4]["correct"]]
    with pytest.raises(InputError, match=r"line 6, field 'correct': says that the answer"):
        lookup(few, write(tmp_path / "answers.csv", wrong))


GOLD = "It was the old oak"


def free_text() -> Benchmark:
    records = tuple(Record(f"r{at}", at, f"The {kind} by the river") for at, kind in
                    enumerate(("oak", "elm", "ash", "fir")))  # fmt: skip
    questions = tuple(Question(f"q{at}", "u", "Which tree is by the river?", gold=GOLD)
                  for at in range(2))  # fmt: skip
    cases = tuple(
        Case(
            Pool(user, records),
            tuple(replace(question, id=user + question.id, user=user) for question in questions),
        )
        for user in ("u", "v")
    )
    return Benchmark("trees", cases, "trees", weighting="question", unit="pool")


def spoken(verdict: str = "") -> list[Row]:
    """Answer in words: the forward route is right in every draw, the other in none."""
    return [
        {"question": f"{user}q{at}", "policy": "recent:k=2", "schedule": schedule, "draw": draw,
         "answer": "an old oak, it was" if schedule == "forward" else "no idea",
         "correct": verdict or str(schedule == "replay")}
        for user in ("u", "v") for at in range(2) for schedule in ("forward", "replay")
        for draw in ("0", "1")
    ]  # fmt: skip


def heard(file: Path, **settings: Any) -> Audit:
    options = {"draws": 2, "resamples": 100, **settings}
    return routeprism.audit(free_text(), "recent:k=2", models=[f"recorded:{file}"], **options)


@pytest.mark.slow
def test_recorded_verdicts_on_free_text_are_taken_or_the_text_is_judged(tmp_path: Path) -> None:
    file = write(tmp_path / "answers.csv", spoken())
    by_file = heard(file, run=tmp_path / "run")
    # The verdicts of the file say the opposite of what a judge of the words says.
    assert by_file.value("Delta_rep", judge="recorded", arm="", mask="").estimate == 1
    assert not [row for row in by_file.rows if "embedded" in row.flags]
    by_words = heard(file, judge="embedded")
    trail = trace_row(tmp_path / "run", "quantity=Delta_rep,arm=,mask=,stratum=all")
    assert {(answer.answer.side, answer.correct) for answer in trail.answers} == {
        ("forward", False), ("replay", True)
    }  # fmt: skip
    judged = by_words.value("Delta_rep", judge="embedded:f1=0.5", arm="", mask="")
    assert judged.estimate == -1
    assert "embedded" in judged.flags
    names = ("question", "policy", "schedule", "draw", "answer")
    unjudged = write(tmp_path / "unjudged.csv", spoken(), names)
    assert heard(unjudged).value("Delta_rep", arm="", mask="").estimate == -1
    with pytest.raises(SpecError, match=r"needs verdicts, and recorded:.* has none"):
        heard(unjudged, judge="recorded")
    # Out and in again, by way of the run's store.
    write_answers(tmp_path / "run", tmp_path / "again.csv")
    assert rows_of(heard(tmp_path / "again.csv")) == rows_of(by_file)


@pytest.mark.slow
def test_free_text_goes_out_and_in_again_with_its_verdicts(tmp_path: Path) -> None:
    call = partial(routeprism.audit, free_text(), "recent:k=2", "raw", draws=2, resamples=100)
    request, repetition, file = both_ways(call, tmp_path)
    assert {row["correct"] for row in read(file)} <= {"true", "false"}
    # The verdicts are taken from the file, and are the same.
    values = {"judge": "recorded"}
    assert rows_of(repetition) == [
        row | values if row["judge"] else row for row in rows_of(request)
    ]
    assert rows_of(call(models=[f"recorded:{file}"], judge="embedded")) == rows_of(request)


def test_a_verdict_that_lacks_among_others_is_refused(tmp_path: Path) -> None:
    rows = spoken()
    rows[5]["correct"] = ""
    file = write(tmp_path / "answers.csv", rows)
    with pytest.raises(InputError, match="line 7, field 'correct': there is no verdict"):
        heard(file)


def test_a_run_that_asked_nobody_has_no_answers_to_write(tmp_path: Path) -> None:
    routeprism.audit(free_text(), "recent:k=2", run=tmp_path / "run", resamples=100)
    with pytest.raises(RunError, match="contains no answers: no model was asked"):
        write_answers(tmp_path / "run", tmp_path / "answers.csv")


@pytest.mark.slow
def test_answers_are_written_by_the_command_and_nothing_is_asked_again(
    cli: Callable[..., Any], tmp_path: Path
) -> None:
    audit = ("audit", "sample", "-p", "recent:k=2", "--kind", "plan", "--resamples", "100")
    assert cli(*audit, "-m", "reader", "--run", "asked").code == 0
    call = cli("report", "asked", "--answers", "answers.csv")
    assert call.code == 0
    assert "in answers.csv; --model recorded:answers.csv reads them" in call.out
    repetition = cli(*audit, "-m", "recorded:answers.csv", "--run", "again", "--json")
    assert repetition.code == 0, repetition.err
    for row in read(Path("again/estimates.csv")):
        assert row["model"] in ("", "recorded:answers.csv")
        assert "embedded" not in row["flags"]
    assert cli("report", "asked", "--answers", tmp_path / "no" / "where.csv").code == 2
    assert cli("report", "again", "--answers", "twice.csv").code == 0
    request, twice = (read(Path(name)) for name in ("answers.csv", "twice.csv"))
    names = [name for name in ANSWER_COLUMNS if name != "model"]
    assert [[row[n] for n in names] for row in request] == [
        [row[n] for n in names] for row in twice
    ]
