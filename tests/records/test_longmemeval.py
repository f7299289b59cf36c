"""LongMemEval: the real slice and index, streaming, and faults in small copies."""

from __future__ import annotations

import gzip
import json
import pickle
from collections import Counter
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from routeprism.errors import InputError
from routeprism.records import Benchmark, Case, Turn, load_benchmark

# --- the real files --------------------------------------------------------------------------


@pytest.mark.realdata
def test_the_real_question_is_read_whole(data: Path) -> None:
    benchmark = load_benchmark("longmemeval:path=one_question.json.gz", data)
    assert (benchmark.name, benchmark.unit, benchmark.weighting) == (
        "longmemeval",
        "question",
        "question",
    )
    assert (benchmark.interface, benchmark.labels, benchmark.notes) == ("bm25", ("benchmark",), ())
    (case,) = benchmark.cases
    (question,) = case.questions
    # Read off the file: 53 sessions with 550 turns, one evidence session.
    assert (len(case.pool), sum(len(record.turns) for record in case.pool.records)) == (53, 550)
    assert question.labels == {"benchmark": {"answer_280352e9"}}
    assert (question.id, question.kind) == ("e47becba", "single-session-user")
    assert (question.text, question.gold) == (
        "What degree did I graduate with?",
        "Business Administration",
    )
    assert question.date == "2023/05/30 (Tue) 23:40"
    assert case.pool.records[0].timestamp == "2023/05/20 (Sat) 02:21"
    assert {turn.role for record in case.pool.records for turn in record.turns} == {
        "user",
        "assistant",
    }


@pytest.mark.realdata
def test_the_real_index_names_sessions_without_text(data: Path) -> None:
    benchmark = load_benchmark("longmemeval:variant=index", data)
    assert (benchmark.name, benchmark.interface, benchmark.has_text) == (
        "longmemeval-index",
        "all",
        False,
    )
    assert len(benchmark.cases) == 233  # 237 without the 4 abstentions (PROTOCOL §4)
    assert Counter(case.questions[0].kind for case in benchmark.cases) == {
        "temporal-reasoning": 83 - 2,
        "multi-session": 81 - 2,
        "single-session-assistant": 26,
        "single-session-preference": 21,
        "knowledge-update": 18,
        "single-session-user": 8,
    }
    assert benchmark.notes[1:] == (
        "4 abstention questions are set apart; longmemeval:abstention=only gives them",
        "5 sessions repeat the id of an earlier one; they count as '…~2' and so on "
        "(5 questions, the first 'caf03d32')",
    )


@pytest.mark.realdata
def test_abstentions_can_be_had(data: Path) -> None:
    only = load_benchmark("longmemeval:variant=index,abstention=only", data)
    assert [case.questions[0].kind for case in only.cases] == ["abstention"] * 4
    assert not any(case.questions[0].labels for case in only.cases)
    both = load_benchmark("longmemeval:variant=index,abstention=with", data)
    assert len(both.cases) == 237
    assert len({only.fingerprint, both.fingerprint}) == 2


@pytest.mark.realdata
def test_the_real_file_cut_short_is_refused(
    data: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    packed = (data / "longmemeval/one_question.json.gz").read_bytes()
    file = tmp_path / "longmemeval_s_cleaned.json"
    file.write_bytes(gzip.decompress(packed)[:300_000])
    ended = cli("audit", "longmemeval", "-p", "recent:k=8", "--data", tmp_path)
    assert (ended.code, ended.out, ended.left) == (2, "", ())
    assert ended.err.startswith(f"routeprism: {file}, line ")
    assert "it may be truncated: get it again" in ended.err

    file.unlink()
    file = tmp_path / "longmemeval_s_cleaned.json.gz"
    file.write_bytes(packed[: len(packed) // 2])
    ended = cli("audit", "longmemeval", "-p", "recent:k=8", "--data", tmp_path)
    assert (ended.code, ended.out, ended.left) == (2, "", ())
    assert f"{file}: is not a complete gzip file (" in ended.err


# --- small copies ----------------------------------------------------------------------------


def find_question(number: int = 0, sessions: int = 4, **changes: Any) -> dict[str, Any]:
    return {
        "question_id": f"q{number}",
        "question_type": "multi-session",
        "question": "How many, é?",
        "question_date": "2023/05/30 (Tue) 23:40",
        "answer": 2,
        "answer_session_ids": ["answer_1"],
        "haystack_dates": [f"2023/05/{day + 1:02d}" for day in range(sessions)],
        "haystack_session_ids": [
            "answer_1" if session == 1 else f"s{session}" for session in range(sessions)
        ],
        "haystack_sessions": [
            [
                {"role": "user", "content": f"I say {session} ☃."},
                {"role": "assistant", "content": '{"question_id": [1, 2'},
            ]
            for session in range(sessions)
        ],
    } | changes


Load = Callable[..., Benchmark]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def write_and_load(
        content: Any,
        spec: str = "longmemeval",
        name: str = "longmemeval_s.json",
        **file_content: Any,
    ) -> Benchmark:
        if not isinstance(content, bytes):
            content = json.dumps(content, **file_content).encode()
        content = gzip.compress(content) if name.endswith(".gz") else content
        (tmp_path / name).write_bytes(content)
        return load_benchmark(spec, tmp_path)

    return write_and_load


@pytest.mark.parametrize("name", ["longmemeval_s_cleaned.json", "longmemeval_s.json.gz"])
@pytest.mark.parametrize(
    "content",
    [{}, {"indent": 4}, {"ensure_ascii": False}, {"sort_keys": True, "separators": (",", ":")}],
)
def test_questions_are_found_however_they_are_written(
    load: Load, name: str, content: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Blocks much shorter than a question: every boundary falls somewhere.
    monkeypatch.setattr("routeprism.records._files._BLOCK", 7)
    benchmark = load([find_question(number) for number in range(5)], name=name, **content)
    travelled = pickle.loads(pickle.dumps(benchmark))  # noqa: S301 (as it goes to a worker)
    for cases in (benchmark.cases, travelled.cases):
        assert [cases[at].questions[0].id for at in (4, 0, 2)] == ["q4", "q0", "q2"]
    case = benchmark.cases[3]
    assert case.pool.ids == ("s0", "answer_1", "s2", "s3")
    record = case.pool.records[2]
    assert record.turns[0] == Turn("user", "I say 2 ☃.")
    assert (record.timestamp, record.user_text) == ("2023/05/03", "I say 2 ☃.")
    (question,) = case.questions
    assert (question.gold, question.labels) == ("2", {"benchmark": {"answer_1"}})


def test_a_fingerprint_is_that_of_the_unpacked_file(load: Load, tmp_path: Path) -> None:
    plain = load([find_question()])
    (tmp_path / "longmemeval_s.json").unlink()
    assert load([find_question()], name="longmemeval_s.json.gz").inputs == plain.inputs


def only_case(benchmark: Benchmark) -> Case:
    (case,) = benchmark.cases
    return case


def test_evidence_outside_the_history_is_counted(load: Load) -> None:
    benchmark = load(
        [
            find_question(0, answer_session_ids=["answer_1", "answer_2", "answer_3"]),
            find_question(1, answer_session_ids=["answer_4"]),
            find_question(2),
        ]
    )
    assert benchmark.notes == (
        "3 evidence ids are not in the history of their question; left out "
        "(2 questions, the first 'q0')",
        "1 question has no evidence in its history; kept, without a label "
        "(1 question, the first 'q1')",
    )
    labels = [case.questions[0].labels for case in benchmark.cases]
    assert labels == [{"benchmark": {"answer_1"}}, {}, {"benchmark": {"answer_1"}}]


def test_a_session_delivered_twice_is_two_records(load: Load) -> None:
    ids = ["s0", "answer_1", "answer_1", "answer_1~2"]
    benchmark = load([find_question(haystack_session_ids=ids)])
    case = only_case(benchmark)
    assert case.pool.ids == ("s0", "answer_1", "answer_1~2~", "answer_1~2")
    assert case.questions[0].labels == {"benchmark": {"answer_1", "answer_1~2~"}}
    assert benchmark.notes == (
        "1 session repeats the id of an earlier one; it counts as '…~2' "
        "(1 question, the first 'q0')",
    )


def test_a_session_without_words_keeps_its_place(load: Load) -> None:
    sessions = [[], *find_question()["haystack_sessions"][1:]]
    benchmark = load([find_question(haystack_sessions=sessions)])
    assert only_case(benchmark).pool.records[0].text == "…"
    assert benchmark.notes == (
        "1 session has no words; it is kept unchanged (1 question, the first 'q0')",
    )


def test_abstentions_are_apart_by_default(load: Load) -> None:
    benchmark = load([find_question(0), find_question(1, question_id="q1_abs")])
    assert [case.questions[0].id for case in benchmark.cases] == ["q0"]


def oracle(number: int) -> dict[str, Any]:
    return find_question(number, sessions=2, haystack_session_ids=["answer_1", "answer_1"])


WITHOUT_TEXT = {k: v for k, v in find_question().items() if k not in ("haystack_sessions",)}


@pytest.mark.parametrize(
    ("content", "asked_for", "result"),
    [
        ([oracle(0), oracle(1)], "s", "oracle"),
        ([find_question(0), find_question(1)], "oracle", "s"),
        ([find_question(0, sessions=400)], "s", "m"),
        ([WITHOUT_TEXT], "s", "index"),
        ([find_question(0)], "index", "s"),
    ],
)
def test_another_variant_is_refused_by_name(
    load: Load, tmp_path: Path, content: Any, asked_for: str, result: str
) -> None:
    with pytest.raises(InputError, match=f"use longmemeval:variant={result} to load it"):
        load(content, f"longmemeval:variant={asked_for},path={tmp_path}/longmemeval_s.json")
    # Without a variant the file says which it is, and so does every output.
    benchmark = load(content, f"longmemeval:path={tmp_path}/longmemeval_s.json")
    assert benchmark.name == ("longmemeval" if result == "s" else f"longmemeval-{result}")


def test_a_file_under_the_name_of_another_variant_is_refused(load: Load) -> None:
    with pytest.raises(InputError, match=r"Expected variant=s .* but the file has .* alone"):
        load([oracle(0), oracle(1)], "longmemeval")


FAULTS: dict[str, tuple[Any, int | None, str | None, str]] = {
    "no list": ({}, 1, None, "Expected a list of questions, as released"),
    "an empty list": ([], None, None, "there is no question in it"),
    "no object": ([7], 1, None, "question 0: Expected an object"),
    "truncated between questions": (
        json.dumps([find_question()]).encode()[:-1],
        1,
        None,
        "the file ends before its list does; it may be truncated: get it again",
    ),
    "truncated after a comma": (
        json.dumps([find_question()]).encode()[:-1] + b",\n",
        2,
        None,
        "the file ends before its list does; it may be truncated: get it again",
    ),
    "truncated within a question": (
        json.dumps([find_question()], indent=1).encode()[:200],
        10,
        None,
        "the file ends before its list does; it may be truncated: get it again",
    ),
    "more than a list": (
        json.dumps([find_question()]).encode() + b"\n[]",
        2,
        None,
        "there is something after the list",
    ),
    "no UTF-8": (b'[{"question_id": "\xff"}]', 1, None, "is not UTF-8 text (invalid start byte)"),
    "no UTF-8 further on": (
        b"[\n" + json.dumps(find_question()).encode() + b',\n{"question_id":\n"\xff"}]',
        4,
        None,
        "is not UTF-8 text (invalid start byte)",
    ),
    "a comma too many": (
        json.dumps([find_question()]).encode()[:-1] + b",\n]",
        2,
        None,
        "is not valid JSON: nothing follows the last ','",
    ),
    "an error within": (
        b"[\n" + json.dumps(find_question()).encode() + b",\n{'a'}, " + b" " * 100 + b"]",
        3,
        None,
        "is not valid JSON: Expecting property name enclosed in double quotes",
    ),
    "a question twice": (
        [find_question(), find_question()],
        1,
        "question_id",
        "question 1: there are two questions 'q0'",
    ),
    "an unknown type": (
        [find_question(question_type="multi-sesion")],
        1,
        "question_type",
        "question 0: unknown type 'multi-sesion'. Did you mean 'multi-session'?",
    ),
    "no answer": (
        [find_question(answer=None)],
        1,
        "answer",
        "question 0: Expected an answer but got answer=None",
    ),
    "sessions without ids": (
        [find_question(haystack_session_ids=["s0", "answer_1"])],
        1,
        "haystack_sessions",
        "question 0: Expected as many haystack_sessions as session ids but got 4 and 2: every "
        "session needs its id",
    ),
    "a session without an id": (
        [find_question(haystack_session_ids=["s0", "answer_1", None, "s3"])],
        1,
        "haystack_session_ids",
        "question 0: session 2 has no id: Expected text but got None",
    ),
    "no session ids": (
        [{k: v for k, v in find_question().items() if k != "haystack_session_ids"}],
        1,
        "haystack_session_ids",
        "question 0: Expected a list of ids but got haystack_session_ids=None",
    ),
    "only some have sessions": (
        [find_question(0), WITHOUT_TEXT | {"question_id": "q1"}],
        None,
        "haystack_sessions",
        "1 of 2 questions have no sessions",
    ),
}


@pytest.mark.parametrize(
    ("content", "line", "field", "problem"), FAULTS.values(), ids=FAULTS.keys()
)
def test_a_fault_is_named_by_its_place(
    load: Load, tmp_path: Path, content: Any, line: int | None, field: str | None, problem: str
) -> None:
    with pytest.raises(InputError) as refused:
        load(content)
    value = refused.value
    assert (value.line, value.field, value.problem) == (line, field, problem)
    assert value.file == str(tmp_path / "longmemeval_s.json")


@pytest.mark.parametrize(
    ("sessions", "problem"),
    [
        ([7] * 4, "question 'q0': session 's0' is not a list of turns"),
        (
            [[{"role": "user"}]] * 4,
            "question 'q0': session 's0' has a turn without role or content",
        ),
        (
            [[], [], [{"role": "user", "content": "\ud83d"}], []],
            r"question 'q0': cannot be used: '\ud83d' is half a character, which is not valid text "
            "(in haystack_sessions[2][0].content)",
        ),
    ],
)
def test_a_session_that_is_none_is_named_when_it_is_read(
    load: Load, sessions: Any, problem: str
) -> None:
    benchmark = load([find_question(haystack_sessions=sessions)])
    with pytest.raises(InputError) as refused:
        benchmark.cases[0]
    assert (refused.value.problem, refused.value.line) == (problem, 1)


def test_a_number_that_python_does_not_read_is_named(load: Load) -> None:
    content = json.dumps([find_question(0), find_question(1, answer=0)], indent=1)
    with pytest.raises(InputError, match="cannot be used: Exceeds the limit") as refused:
        load(content.replace('"answer": 0', '"answer": ' + "1" * 5000).encode())
    assert refused.value.line is not None


def test_whole_characters_may_be_escaped(load: Load) -> None:
    (case,) = load([find_question(question="Where is \U0001f600?")]).cases
    assert case.questions[0].text == "Where is \U0001f600?"


def test_a_file_that_changes_is_noticed(load: Load, tmp_path: Path) -> None:
    benchmark = load([find_question(0), find_question(1)])
    (tmp_path / "longmemeval_s.json").write_text(json.dumps([find_question(2), find_question(3)]))
    with pytest.raises(InputError, match="question 'q0': changed while it was read"):
        benchmark.cases[0]


def test_each_question_is_read_again_from_its_own_place(load: Load, tmp_path: Path) -> None:
    """The file is read once for its digest and its places; a case is read when it is needed."""
    benchmark = load([find_question(number, question=f"é {number}?") for number in range(50)])
    whole = (tmp_path / "longmemeval_s.json").read_bytes()
    assert sha256(whole).hexdigest() in benchmark.inputs.values()
    for number in (*range(0, 50, 2), *range(49, 0, -2)):
        (question,) = benchmark.cases[number].questions
        assert (question.id, question.text) == (f"q{number}", f"é {number}?")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        load_benchmark("longmemeval", tmp_path)
    assert str(refused.value) == (
        f"{tmp_path}: there is neither longmemeval_s_cleaned.json nor longmemeval_s.json "
        f"(nor .gz) in it; routeprism fetch longmemeval --data DIR gets it"
    )
    with pytest.raises(InputError, match=r"fetch longmemeval:variant=m --data DIR gets it$"):
        load_benchmark("longmemeval:variant=m", tmp_path)
    with pytest.raises(InputError, match=r"there is no session_index_237.json \(nor .gz\) in it$"):
        load_benchmark("longmemeval:variant=index", tmp_path)
    with pytest.raises(InputError, match="there is no such file"):
        load_benchmark("longmemeval:path=nowhere.json", tmp_path)
