"""Labels of facts that change: what is derived, what is refused, and where."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from routeprism.errors import InputError
from routeprism.orders import parse_schedule
from routeprism.records import (
    Case,
    Pool,
    Question,
    Record,
    derive_stale,
    event_order,
    find_superseded,
    find_superseding,
    is_in_event_order,
    load_benchmark,
    only_kinds,
)

OwnData = Callable[..., Path]
Entry = Mapping[str, Any]


def record(id: str, day: str | None, *supersedes: str, user: str = "ann") -> dict[str, Any]:
    entry: dict[str, Any] = {"user": user, "id": id, "text": f"Words of {id}."}
    if day:
        entry["timestamp"] = day
    if supersedes:
        entry["supersedes"] = list(supersedes)
    return entry


CHAIN = [
    record("r1", "2024-03-01"),
    record("r2", "2024-03-03", "r1"),
    record("x", "2024-03-04"),
    record("r3", "2024-03-05", "r2"),
]
QUESTION: Entry = {
    "user": "ann",
    "id": "q1",
    "text": "Which street now?",
    "options": ["Elm", "Oak", "Ash"],
    "gold": "Ash",
    "support": ["r3"],
    "outdated": ["Elm", "b"],
    "kind": "current",
}


def test_stale_evidence_is_derived_through_the_chain(own_data: OwnData) -> None:
    benchmark = load_benchmark(str(own_data(CHAIN, [QUESTION])))
    (case,) = benchmark.cases
    assert case.supersedes == {"r2": frozenset({"r1"}), "r3": frozenset({"r2"})}
    (question,) = case.questions
    assert question.labels == {"benchmark": frozenset({"r3"})}
    assert question.stale == {"benchmark": frozenset({"r1", "r2"})}
    assert question.outdated == ("a", "b")
    assert benchmark.updates == ("benchmark",)


@pytest.mark.parametrize(
    ("stale", "expected"),
    [(["r1"], frozenset({"r1"})), ([], None), (None, frozenset("r1 r2".split()))],
)
def test_stale_evidence_that_is_named_replaces_what_would_be_derived(
    own_data: OwnData, stale: list[str] | None, expected: frozenset[str] | None
) -> None:
    benchmark = load_benchmark(str(own_data(CHAIN, [{**QUESTION, "stale": stale}])))
    assert benchmark.cases[0].questions[0].stale.get("benchmark") == expected
    assert benchmark.updates == (("benchmark",) if expected else ())


def test_outdated_answers_of_a_free_text_question_are_texts(own_data: OwnData) -> None:
    question = {
        "user": "ann",
        "id": "q",
        "text": "Which street?",
        "gold": "Ash",
        "outdated": ["Elm"],
    }
    assert load_benchmark(str(own_data(CHAIN, [question]))).cases[0].questions[0].outdated == (
        "Elm",
    )


def test_an_outdated_answer_in_words_is_known_however_it_is_written() -> None:
    question = Question("q", "ann", "Which street?", gold="Ash", outdated=("Elm Street",))
    assert question.is_outdated(" the elm street. ")
    assert not question.is_outdated("Elm")
    with_options = Question("q", "ann", "Which?", ("Elm", "Ash"), gold="b", outdated=("a",))
    assert with_options.is_outdated("a")
    assert not with_options.is_outdated("b")


def test_data_without_such_labels_have_none(own_data: OwnData) -> None:
    plain = {**QUESTION, "support": ["r1"], "outdated": None}
    benchmark = load_benchmark(str(own_data([record("r1", None)], [plain])))
    assert (benchmark.updates, benchmark.cases[0].supersedes) == ((), {})
    assert benchmark.cases[0].questions[0].stale == {}


def test_a_cut_of_the_questions_leaves_the_labels(own_data: OwnData) -> None:
    benchmark = only_kinds(load_benchmark(str(own_data(CHAIN, [QUESTION]))), ["current"])
    assert benchmark.cases[0].supersedes["r3"] == frozenset({"r2"})


BAD: Mapping[str, tuple[list[Any], list[Entry], str, int, str, str]] = {
    "a cycle": (
        [record("r1", None, "r2"), record("r2", None, "r1")],
        [QUESTION],
        "records.jsonl",
        1,
        "supersedes",
        "record 'r1' supersedes itself through the chain that begins with 'r2'",
    ),
    "itself": (
        [record("r1", None), record("r2", None, "r2")],
        [QUESTION],
        "records.jsonl",
        2,
        "supersedes",
        "record 'r2' supersedes itself through the chain that begins with 'r2'",
    ),
    "an unknown record": (
        [record("r1", None), record("r2", None, "r9")],
        [QUESTION],
        "records.jsonl",
        2,
        "supersedes",
        "record 'r2' supersedes 'r9', which user 'ann' does not have",
    ),
    "a record of somebody else": (
        [record("b1", None, user="bob"), record("r2", None, "b1")],
        [QUESTION],
        "records.jsonl",
        2,
        "supersedes",
        "record 'r2' supersedes 'b1', which user 'ann' does not have",
    ),
    "an earlier time": (
        [record("r1", "2024-03-05"), record("r2", "2024-03-03", "r1")],
        [QUESTION],
        "records.jsonl",
        2,
        "supersedes",
        "record 'r2' (2024-03-03) supersedes 'r1' (2024-03-05), which is later in event time "
        "(ties by source position)",
    ),
    "the same time and an earlier position": (
        [record("r1", "2024-03-05", "r2"), record("r2", "2024-03-05")],
        [QUESTION],
        "records.jsonl",
        1,
        "supersedes",
        "record 'r1' (2024-03-05) supersedes 'r2' (2024-03-05), which is later in event time "
        "(ties by source position)",
    ),
    "no list": (
        [record("r1", None), {**record("r2", None), "supersedes": "r1"}],
        [QUESTION],
        "records.jsonl",
        2,
        "supersedes",
        "Expected a list of record ids but got supersedes='r1'",
    ),
    "stale evidence that nobody has": (
        CHAIN,
        [{**QUESTION, "stale": ["r9"]}],
        "questions.jsonl",
        1,
        "stale",
        "question 'q1' (benchmark) names the record 'r9', which user 'ann' does not have",
    ),
    "evidence that is current and outdated": (
        CHAIN,
        [{**QUESTION, "stale": ["r3"]}],
        "questions.jsonl",
        1,
        "stale",
        "question 'q1' (benchmark) names the record 'r3' as current and as outdated evidence",
    ),
    "a right answer that is outdated": (
        CHAIN,
        [{**QUESTION, "outdated": ["Ash"]}],
        "questions.jsonl",
        1,
        "outdated",
        "question 'q1': the right answer 'c' cannot be outdated",
    ),
    "an outdated answer that is no option": (
        CHAIN,
        [{**QUESTION, "outdated": ["Birch"]}],
        "questions.jsonl",
        1,
        "outdated",
        "outdated='Birch' is neither one of the option letters a, b, c nor the exact text of an "
        "option",
    ),
    "a right answer in words that is outdated, written differently": (
        CHAIN,
        [{**QUESTION, "options": None, "gold": "the Ash", "outdated": ["ash."]}],
        "questions.jsonl",
        1,
        "outdated",
        "question 'q1': the right answer 'the Ash' cannot be outdated",
    ),
    "a blank outdated answer": (
        CHAIN,
        [{**QUESTION, "options": None, "gold": "Ash", "outdated": [" "]}],
        "questions.jsonl",
        1,
        "outdated",
        "question 'q1': an outdated answer is blank; leave it out",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_wrong_labels_are_refused_when_loading(own_data: OwnData, name: str) -> None:
    records, questions, file, line, field, problem = BAD[name]
    with pytest.raises(InputError) as refused:
        load_benchmark(str(own_data(records, questions)))
    error = refused.value
    assert error.file is not None
    assert (Path(error.file).name, error.line, error.field) == (file, line, field)
    assert error.problem == problem


def pool(*days: str | None) -> tuple[Record, ...]:
    return tuple(Record(f"r{at}", at, "words", day) for at, day in enumerate(days))


@pytest.mark.parametrize(
    ("days", "order"),
    [
        (("2024-03-03", "2024-03-01", "2024-03-02"), (1, 2, 0)),
        (("2024-03-02", "2024-03-01", "2024-03-02"), (1, 0, 2)),  # a tie by source position
        ((None, None, None), (0, 1, 2)),
        (("2024-03-03", None, "2024-03-01"), (2, 0, 1)),  # goes with the record before it
        ((None, "2024-03-03", "2024-03-01"), (0, 2, 1)),  # nothing before it: the beginning
        (("2024-03-01T23:30:00-02:00", "2024-03-02T01:00:00Z"), (1, 0)),  # as moments, not text
    ],
)
def test_event_time(days: tuple[str | None, ...], order: tuple[int, ...]) -> None:
    records = pool(*days)
    assert event_order(records) == order
    assert parse_schedule("event-time").on(Pool("u", records)) == order


def test_event_time_does_not_depend_on_the_order_that_it_is_given() -> None:
    records = pool("2024-03-02", "2024-03-01", None, "2024-03-02")
    expected = [records[at].id for at in event_order(records)]
    backwards = records[::-1]
    assert [backwards[at].id for at in event_order(backwards)] == expected


SUPERSEDES = {"r1": frozenset({"r0"}), "r2": frozenset({"r1"}), "y": frozenset({"x"})}


def test_chains() -> None:
    assert find_superseded(SUPERSEDES, ("r2",)) == {"r0", "r1"}
    assert find_superseding(SUPERSEDES, "r0") == {"r1", "r2"}
    assert derive_stale(SUPERSEDES, frozenset({"r1", "r2"})) == {"r0"}
    records = pool(None, None, None)
    assert is_in_event_order(records, {"r1": frozenset({"r0"})})
    assert not is_in_event_order(records[::-1], {"r1": frozenset({"r0"})})


def test_a_case_refuses_the_same_faults_without_a_file() -> None:
    with pytest.raises(InputError, match="record 'r1' supersedes 'r9'"):
        Case(Pool("u", pool(None, None)), (), {"r1": frozenset({"r9"})})


@pytest.mark.realdata
def test_longmemeval_parts_the_evidence_by_what_the_question_asks(data: Path) -> None:
    benchmark = load_benchmark("longmemeval:variant=index", data)
    questions = {q.id: q for case in benchmark.cases for q in case.questions}
    updates = [q for q in questions.values() if q.kind == "knowledge-update"]
    assert (benchmark.labels, benchmark.updates) == (("benchmark", "updates"), ("updates",))
    assert len(updates) == 18
    assert all(len(q.labels["benchmark"]) == 2 for q in updates)  # published labels stay
    both = {q.id for q in updates if not q.stale}
    earlier = {q.id for q in updates if q.stale and next(iter(q.stale["updates"])).endswith("_2")}
    assert both == {"031748ae", "6071bd76", "f685340e"}
    assert earlier == {"07741c44", "50635ada", "e66b632c", "9bbe84a2", "10e09553"}
    for question in updates:
        current, stale = question.labels["updates"], question.stale.get("updates", frozenset())
        assert current | stale == question.labels["benchmark"]
        assert not current & stale
    assert not any(q.stale for q in questions.values() if q.kind != "knowledge-update")
