"""LoCoMo: its counts on the real file, evidence as sessions, and faults in small copies."""

from __future__ import annotations

import gzip
import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from routeprism.answers import rubric_of
from routeprism.errors import InputError
from routeprism.records import Benchmark, Question, Turn, load_benchmark

# --- the real file ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def locomo(data: Path) -> Benchmark:
    return load_benchmark("locomo", data)


def find_question(benchmark: Benchmark) -> list[Question]:
    return [question for case in benchmark.cases for question in case.questions]


@pytest.mark.realdata
def test_counts_are_those_of_the_release(locomo: Benchmark) -> None:
    assert len(locomo.cases) == 10
    assert sum(len(case.pool) for case in locomo.cases) == 272
    assert len({question.id for question in find_question(locomo)}) == 1986
    # PROTOCOL §4: 1,982 questions have evidence.
    assert sum("benchmark" in question.labels for question in find_question(locomo)) == 1982
    assert Counter(question.kind for question in find_question(locomo)) == {
        "multi-hop": 282,
        "temporal": 321,
        "open-domain": 96,
        "single-hop": 841,
        "adversarial": 446,
    }


@pytest.mark.realdata
def test_it_declares_its_statistics(locomo: Benchmark) -> None:
    # PROTOCOL §6: equal questions, conversations resampled.
    assert (locomo.unit, locomo.weighting) == ("conversation", "question")
    assert (locomo.interface, locomo.labels) == ("bm25", ("benchmark",))
    assert locomo.inputs == {
        "locomo10.json": "79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4"
    }  # data/README.md


@pytest.mark.realdata
def test_what_names_no_session_is_reported_not_dropped(locomo: Benchmark) -> None:
    assert locomo.notes == (
        "conv-26-q30: has no evidence; kept, without a support label",
        "conv-26-q46: has no evidence; kept, without a support label",
        "conv-42-q88: the evidence id 'D' names no session; left out",
        "conv-43-q18: the evidence id 'D:11:26' names no session; left out",
        "conv-50-q39: has no evidence; kept, without a support label",
        "conv-50-q42: has no evidence; kept, without a support label",
    )
    unlabelled = [question.id for question in find_question(locomo) if not question.labels]
    assert unlabelled == ["conv-26-q30", "conv-26-q46", "conv-50-q39", "conv-50-q42"]


# All strings of the release that hold more than one dialogue id, read off the file:
# 'D8:6; D9:17', 'D9:1 D4:4 D4:6', 'D22:1 D22:2 D9:10 D9:11', 'D21:18 D21:22 D11:15 D11:19'.
SEVERAL = {
    "conv-26-q37": {"D8", "D9"},
    "conv-49-q31": {"D9", "D4"},
    "conv-49-q38": {"D22", "D9"},
    "conv-49-q46": {"D21", "D11"},
}


@pytest.mark.realdata
def test_several_ids_in_one_string_are_several(locomo: Benchmark) -> None:
    labels = {question.id: question.labels for question in find_question(locomo)}
    assert {name: labels[name]["benchmark"] for name in SEVERAL} == SEVERAL


@pytest.mark.realdata
def test_sessions_stand_in_the_order_of_their_number(locomo: Benchmark) -> None:
    for case in locomo.cases:
        numbers = [int(record.id.removeprefix("D")) for record in case.pool.records]
        assert numbers == sorted(numbers)
        assert all(record.timestamp for record in case.pool.records)


@pytest.mark.realdata
def test_the_real_file_cut_short_is_refused(
    data: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    copy = tmp_path / "copy" / "locomo"
    shutil.copytree(data / "locomo", copy)
    file = copy / "locomo10.json.gz"
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    ended = cli("audit", "locomo", "-p", "raw", "--data", tmp_path / "copy")
    assert (ended.code, ended.out, ended.left) == (2, "", ())
    assert ended.err.startswith(f"routeprism: {file}: is not a complete gzip file (")

    plain = file.with_suffix("")
    plain.write_bytes(gzip.decompress(whole)[:100_000])
    ended = cli("audit", "locomo", "-p", "raw", "--data", tmp_path / "copy")
    assert (ended.code, ended.out, ended.left) == (2, "", ())
    assert ended.err.startswith(f"routeprism: {plain}, line ")
    assert ended.err.endswith("; the file may be truncated\n")


# --- small copies ----------------------------------------------------------------------------


def conversation(**changes: Any) -> dict[str, Any]:
    return {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ann",
            "session_10": [{"speaker": "Ann", "text": "Ten."}],
            "session_10_date_time": "8 May",
            "session_2": [
                {"speaker": "Ann", "text": "Look!", "blip_caption": "a cat"},
                {"speaker": "Bob", "text": "Nice."},
            ],
            "session_3": [],
        },
        "qa": [{"question": "What?", "answer": 7, "evidence": ["D2:1"], "category": 4}],
    } | changes


def asking(**changes: Any) -> dict[str, Any]:
    return conversation(qa=[{**conversation()["qa"][0], **changes}])


@pytest.fixture
def load(tmp_path: Path) -> Callable[[Any], Benchmark]:
    def write_and_load(content: Any) -> Benchmark:
        file_content = content if isinstance(content, bytes) else json.dumps(content).encode()
        (tmp_path / "locomo10.json").write_bytes(file_content)
        return load_benchmark("locomo", tmp_path)

    return write_and_load


def test_sessions_become_records(load: Callable[[Any], Benchmark]) -> None:
    (case,) = load([conversation()]).cases
    assert case.pool.ids == ("D2", "D10")  # by number; the empty session is none
    first, last = case.pool.records
    assert first.turns == (Turn("ann", "Look! [shares a picture: a cat]"), Turn("bob", "Nice."))
    assert first.text == "[ANN] Look! [shares a picture: a cat]\n\n[BOB] Nice."
    assert (first.timestamp, last.timestamp) == (None, "8 May")
    (question,) = case.questions
    assert (question.id, question.gold, question.kind) == ("conv-1-q0", "7", "single-hop")


@pytest.mark.parametrize(
    ("evidence", "sessions", "notes"),
    [
        (["D2:1"], {"D2"}, ()),
        (["D2:1; D10:4"], {"D2", "D10"}, ()),
        (["D2:1,D10:4", "D2:2"], {"D2", "D10"}, ()),
        ("D10:1 D2:7", {"D2", "D10"}, ()),
        (["D02:1"], {"D2"}, ()),
        (["D2:1", "D99:1"], {"D2"}, ("D99:1",)),
        (["D", "D:2:1"], None, ("D", "D:2:1")),
    ],
)
def test_evidence_names_sessions(
    load: Callable[[Any], Benchmark],
    evidence: Any,
    sessions: set[str] | None,
    notes: tuple[str, ...],
) -> None:
    benchmark = load([asking(evidence=evidence)])
    (question,) = benchmark.cases[0].questions
    assert question.labels == ({} if sessions is None else {"benchmark": sessions})
    assert benchmark.notes == tuple(
        f"conv-1-q0: the evidence id '{name}' names no session; left out" for name in notes
    )


FAULTS: dict[str, tuple[Any, int | None, str | None, str]] = {
    "truncated": (
        b'[\n{"sample_id": "conv-1",\n"conver',
        3,
        None,
        "is not valid JSON: Unterminated string starting at; the file may be truncated",
    ),
    "no list": ({}, None, None, "Expected a list of conversations"),
    "an empty list": ([], None, None, "Expected a list of conversations"),
    "no conversation": (
        [conversation(), {"sample_id": "x"}],
        None,
        "conversation",
        "conversation 1 is not as released: there is no 'conversation'",
    ),
    "no session": (
        [conversation(conversation={})],
        None,
        None,
        "conversation 0: the pool of user 'conv-1' is empty: it has no records",
    ),
    "a session without words": (
        [conversation(conversation={"session_1": [{"speaker": "Ann", "text": " "}]})],
        None,
        "text",
        "conversation 0: record 'D1' has no text; give it some or leave it out",
    ),
    "a turn without a speaker": (
        [conversation(conversation={"session_1": [{"text": "x"}]})],
        None,
        "speaker",
        "conversation 0 is not as released: there is no 'speaker'",
    ),
    "a turn without words": (
        [conversation(conversation={"session_1": [{"speaker": "Ann", "text": None}]})],
        None,
        "text",
        "conversation 0: Expected text but got text=None",
    ),
    "no question": ([conversation(qa=[])], None, "qa", "there is no question in it"),
    "an empty question": (
        [asking(question="")],
        None,
        "text",
        "conversation 0: question 'conv-1-q0' has no text",
    ),
    "one conversation twice": (
        [conversation(), conversation()],
        None,
        "sample_id",
        "there are two conversations 'conv-1'",
    ),
}


@pytest.mark.parametrize(
    ("content", "line", "field", "problem"), FAULTS.values(), ids=FAULTS.keys()
)
def test_a_fault_is_named_by_its_place(
    load: Callable[[Any], Benchmark],
    tmp_path: Path,
    content: Any,
    line: int | None,
    field: str | None,
    problem: str,
) -> None:
    with pytest.raises(InputError) as refused:
        load(content)
    value = refused.value
    assert (value.line, value.field, value.problem) == (line, field, problem)
    assert value.file == str(tmp_path / "locomo10.json")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        load_benchmark("locomo", tmp_path)
    assert str(refused.value) == (
        f"{tmp_path}: there is no locomo10.json (nor .gz) in it; "
        f"routeprism fetch locomo --data DIR gets it"
    )


def test_the_trap_of_an_adversarial_question_is_not_its_answer(
    load: Callable[[Any], Benchmark],
) -> None:
    qa = {"question": "What?", "adversarial_answer": "a trap", "evidence": ["D2:1"], "category": 5}
    (question,) = load([conversation(qa=[qa])]).cases[0].questions
    assert (question.kind, question.detail) == ("adversarial", "abstention")
    assert question.gold is not None and "trap" not in question.gold
    assert rubric_of(question.detail, question.id) == "abstention"
