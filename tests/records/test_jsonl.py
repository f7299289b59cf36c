"""Own data: what is read, and that whatever cannot be used is named by file, line and field."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.errors import InputError
from routeprism.orders import parse_arrival
from routeprism.records import Turn, load_benchmark

OwnData = Callable[..., Path]
Entry = Mapping[str, Any]

R1: Entry = {"user": "ann", "id": "r1", "text": "I love green tea."}
R2: Entry = {"user": "ann", "id": "r2", "text": "Coffee is my favorite now."}
B1: Entry = {"user": "bob", "id": "r1", "text": "I walk to work."}
B2: Entry = {"user": "bob", "id": "r2", "text": "I cycle to work."}
Q1: Entry = {"user": "ann", "id": "q1", "text": "Which drink?", "support": ["r2"]}
Q2: Entry = {"user": "bob", "id": "q2", "text": "Which way?"}
RECORDS = [R1, B1, R2, B2]
QUESTIONS = [Q1, Q2]


def lines(*entries: Entry | bytes) -> bytes:
    return b"\n".join(e if isinstance(e, bytes) else json.dumps(e).encode() for e in entries)


# --- what is read ----------------------------------------------------------------------------


def test_pools_keep_file_order_where_users_take_turns(own_data: OwnData) -> None:
    directory = own_data([B1, R1, B2, R2], QUESTIONS)
    benchmark = load_benchmark(str(directory))
    assert [case.pool.user for case in benchmark.cases] == ["bob", "ann"]
    ann = benchmark.cases[1].pool
    assert [(r.id, r.position, r.text) for r in ann.records] == [
        ("r1", 0, "I love green tea."),
        ("r2", 1, "Coffee is my favorite now."),
    ]
    assert [q.id for case in benchmark.cases[0:2] for q in case.questions] == ["q2", "q1"]
    assert (benchmark.name, benchmark.unit, benchmark.weighting) == ("mydata", "user", "unit")
    assert (benchmark.interface, benchmark.synthetic, benchmark.notes) == ("budget", False, ())


def test_every_field_is_kept(own_data: OwnData) -> None:
    turns = [{"role": "User", "text": "Tea, please."}, {"role": "assistant", "text": "Here."}]
    records = [{"user": "ann", "id": "r1", "turns": turns, "timestamp": "2024-05-01"}, R2]
    question = {**Q1, "options": ["tea", "coffee"], "gold": "b", "kind": "drink"}
    case = load_benchmark(str(own_data(records, [question]))).cases[0]
    first = case.pool.records[0]
    assert first.text == "[USER] Tea, please.\n\n[ASSISTANT] Here."
    assert first.turns == (Turn("user", "Tea, please."), Turn("assistant", "Here."))
    assert (first.user_text, first.timestamp) == ("Tea, please.", "2024-05-01")
    first_question = case.questions[0]
    assert (first_question.text, first_question.options, first_question.gold) == (
        "Which drink?",
        ("tea", "coffee"),
        "b",
    )
    assert (first_question.kind, first_question.labels) == (
        "drink",
        {"benchmark": frozenset({"r2"})},
    )


@pytest.mark.parametrize(
    ("gold", "expected"), [("b", "b"), ("green tea", "a"), ("coffee", "b"), (None, None)]
)
def test_gold_is_a_letter_or_the_text_of_an_option(
    own_data: OwnData, gold: str | None, expected: str | None
) -> None:
    question = {**Q1, "options": ["green tea", "coffee"], "gold": gold}
    assert (
        load_benchmark(str(own_data([R1, R2], [question]))).cases[0].questions[0].gold == expected
    )


def test_gold_without_options_is_the_answer(own_data: OwnData) -> None:
    directory = own_data([R1, R2], [{**Q1, "gold": "coffee"}])
    assert load_benchmark(str(directory)).cases[0].questions[0].gold == "coffee"


def test_labels_are_offered_only_where_a_question_has_support(own_data: OwnData) -> None:
    assert load_benchmark(str(own_data(RECORDS, QUESTIONS))).labels == ("benchmark",)
    assert load_benchmark(str(own_data([B1], [Q2], "none"))).labels == ()


def test_the_fingerprint_is_of_the_bytes(own_data: OwnData) -> None:
    first = load_benchmark(str(own_data(RECORDS, QUESTIONS, "one")))
    same = load_benchmark(str(own_data(RECORDS, QUESTIONS, "same")))
    second = load_benchmark(str(own_data([*RECORDS[:3], {**B2, "text": "Bus."}], QUESTIONS, "no")))
    content = lines(*RECORDS) + b"\n"
    assert first.inputs["records.jsonl"] == hashlib.sha256(content).hexdigest()
    assert sorted(first.inputs) == ["questions.jsonl", "records.jsonl"]
    assert first.fingerprint == same.fingerprint != second.fingerprint


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + lines(*RECORDS),
        b"\xef\xbb\xbf\n" + lines(*RECORDS),
        lines(*RECORDS).replace(b"\n", b"\r\n") + b"\r\n",
        b"\n\n" + lines(*RECORDS).replace(b"\n", b"\n   \n\t\n") + b"\n\n",
        lines(*RECORDS),
    ],
    ids=["BOM", "BOM and a blank line", "CRLF", "blank lines", "no last line break"],
)
def test_what_editors_do_to_a_file_does_not_matter(own_data: OwnData, content: bytes) -> None:
    plain = load_benchmark(str(own_data(RECORDS, QUESTIONS, "plain")))
    edited = load_benchmark(str(own_data(content, QUESTIONS, "edited")))
    assert list(edited.cases) == list(plain.cases)


def test_lines_are_counted_with_the_blank_ones(own_data: OwnData) -> None:
    with pytest.raises(InputError) as refused:
        load_benchmark(str(own_data(lines(R1, b"", b"\r", b"nonsense"), [Q1])))
    assert refused.value.line == 4


# --- what cannot be used ---------------------------------------------------------------------


@dataclass(frozen=True)
class Bad:
    """Data that must be refused, and where its fault is."""

    records: Sequence[Entry] | bytes | None
    questions: Sequence[Entry] | bytes | None
    file: str
    line: int | None
    field: str | None
    problem: str


def bad_record(entry: Entry | bytes, field: str | None, problem: str) -> Bad:
    return Bad(lines(R1, R2, entry), [Q1], "records.jsonl", 3, field, problem)


def bad_question(entry: Entry | bytes, field: str | None, problem: str) -> Bad:
    return Bad(RECORDS, lines(Q1, entry), "questions.jsonl", 2, field, problem)


BAD = {
    "no records file": Bad(
        None, [Q1], "records.jsonl", None, None, "cannot be read: No such file or directory"
    ),
    "no questions file": Bad(
        [R1], None, "questions.jsonl", None, None, "cannot be read: No such file or directory"
    ),
    "empty records file": Bad(b"", [Q1], "records.jsonl", None, None, "there is no record in it"),
    "blank records file": Bad(
        b"\xef\xbb\xbf \r\n\n", [Q1], "records.jsonl", None, None, "there is no record in it"
    ),
    "empty questions file": Bad(
        [R1], b"", "questions.jsonl", None, None, "there is no question in it"
    ),
    "truncated records": bad_record(
        json.dumps(B1).encode()[:-9],
        None,
        "is not valid JSON: Unterminated string starting at (column 37)",
    ),
    "truncated questions": bad_question(
        b'{"user": "ann", "id":', None, "is not valid JSON: Expecting value (column 22)"
    ),
    "invalid JSON": bad_record(
        b"{'user': 'ann'}",
        None,
        "is not valid JSON: Expecting property name enclosed in double quotes (column 2)",
    ),
    "no object": bad_record(b'["ann", "r3"]', None, "Expected one JSON object on each line"),
    "no UTF-8": bad_record(b'{"user": "\xff"}', None, "is not UTF-8 text (invalid start byte)"),
    "UTF-16": Bad(
        '{"user": "ann"}'.encode("utf-16"),
        [Q1],
        "records.jsonl",
        1,
        None,
        "is not UTF-8 text (invalid start byte)",
    ),
    "half a character": bad_record(
        {**R1, "id": "r3", "text": "\ud83d"},
        None,
        r"cannot be used: '\ud83d' is half a character, which is not valid text (in text)",
    ),
    "half a character in a turn": bad_record(
        {"user": "ann", "id": "r3", "turns": [{"role": "user", "text": "\udc00"}]},
        None,
        r"cannot be used: '\udc00' is half a character, which is not valid text (in turns[0].text)",
    ),
    "half a character as a field": bad_record(
        {**R1, "id": "r3", "\ud83d": "x"},
        None,
        r"cannot be used: '\ud83d' is half a character, which is not valid text",
    ),
    "nested too deeply": bad_record(
        b"[" * 100_000, None, "cannot be used: it is nested too deeply"
    ),
    "no user": bad_record(
        {"id": "r3", "text": "x"}, "user", "Expected a non-blank string but got user=None"
    ),
    "number as id": bad_record({**R1, "id": 3}, "id", "Expected a non-blank string but got id=3"),
    "empty text": bad_record(
        {**R1, "id": "r3", "text": " \n"},
        "text",
        "record 'r3' has no text; give it some or leave it out",
    ),
    "no text": bad_record({"user": "ann", "id": "r3"}, "text", "Expected either 'text' or 'turns'"),
    "text and turns": bad_record(
        {**R1, "id": "r3", "turns": []}, "text", "Expected either 'text' or 'turns'"
    ),
    "turns without words": bad_record(
        {"user": "ann", "id": "r3", "turns": [{"role": "user", "text": " "}]},
        "turns",
        'Expected a list of {"role": …, "text": …} with some text in it',
    ),
    "turns without roles": bad_record(
        {"user": "ann", "id": "r3", "turns": [{"text": "x"}]},
        "turns",
        'Expected a list of {"role": …, "text": …} with some text in it',
    ),
    "unknown field": bad_record(
        {**R1, "id": "r3", "txet": "x"},
        "txet",
        "unknown field; a line may have id, supersedes, text, timestamp, turns, user",
    ),
    "duplicate record ids": bad_record(
        {**R1, "text": "Another."}, "id", "user 'ann' has the id 'r1' on line 1 already"
    ),
    "a user without records": bad_question(
        {"user": "eve", "id": "q9", "text": "Who?"},
        "user",
        "user 'eve' has no records in records.jsonl",
    ),
    "duplicate question ids": bad_question(
        {**Q2, "id": "q1"}, "id", "the id 'q1' is on line 1 already"
    ),
    "question without text": bad_question(
        {"user": "ann", "id": "q2", "text": " "}, "text", "the question has no text"
    ),
    "unknown support": bad_question(
        {**Q1, "id": "q2", "support": ["r1", "r7"]},
        "support",
        "question 'q2' (benchmark) names the record 'r7', which user 'ann' does not have",
    ),
    "another user's support": Bad(
        [R1, R2, B1],
        [{**Q2, "support": ["r2"]}],
        "questions.jsonl",
        1,
        "support",
        "question 'q2' (benchmark) names the record 'r2', which user 'bob' does not have",
    ),
    "support as text": bad_question(
        {**Q1, "id": "q2", "support": "r1"},
        "support",
        "Expected a list of record ids but got support='r1'",
    ),
    "support as empty text": bad_question(
        {**Q1, "id": "q2", "support": ""},
        "support",
        "Expected a list of record ids but got support=''",
    ),
    "support that is false": bad_question(
        {**Q1, "id": "q2", "support": False},
        "support",
        "Expected a list of record ids but got support=False",
    ),
    "options as a number": bad_question(
        {**Q1, "id": "q2", "options": 0}, "options", "Expected a list of strings but got options=0"
    ),
    "options as an object": bad_question(
        {**Q1, "id": "q2", "options": {}},
        "options",
        "Expected a list of strings but got options={}",
    ),
    "an empty list as kind": bad_question(
        {**Q1, "id": "q2", "kind": []},
        "kind",
        "Expected one line of text other than 'all', which names all kinds, but got kind=[]",
    ),
    "zero as kind": bad_question(
        {**Q1, "id": "q2", "kind": 0},
        "kind",
        "Expected one line of text other than 'all', which names all kinds, but got kind=0",
    ),
    "blank record id": bad_record(
        {**R1, "id": " \t"}, "id", "Expected a non-blank string but got id=' \\t'"
    ),
    "blank question id": bad_question(
        {**Q2, "id": "\u00a0"}, "id", "Expected a non-blank string but got id='\\xa0'"
    ),
    "blank user": bad_record(
        {**R1, "user": " "}, "user", "Expected a non-blank string but got user=' '"
    ),
    "a field given twice": bad_question(
        b'{"user": "ann", "id": "q2", "text": "Which?", "id": "q3"}',
        None,
        "cannot be used: the field 'id' is given twice",
    ),
    "a number that is none": bad_record(
        b'{"user": "ann", "id": "r3", "text": "x", "timestamp": NaN}',
        None,
        "cannot be used: NaN is not a JSON number",
    ),
    "gold is no option": bad_question(
        {**Q1, "id": "q2", "options": ["tea", "milk"], "gold": "coffee"},
        "gold",
        "gold='coffee' is neither one of the option letters a, b nor the exact text of an option",
    ),
    "gold letter past the options": bad_question(
        {**Q1, "id": "q2", "options": ["tea", "milk"], "gold": "c"},
        "gold",
        "gold='c' is neither one of the option letters a, b nor the exact text of an option",
    ),
    "gold as a number": bad_question(
        {**Q1, "id": "q2", "options": ["tea", "milk"], "gold": 1},
        "gold",
        "Expected a string but got gold=1",
    ),
    "options as text": bad_question(
        {**Q1, "id": "q2", "options": "tea or milk"},
        "options",
        "Expected a list of strings but got options='tea or milk'",
    ),
    "the kind of all kinds": bad_question(
        {**Q1, "id": "q2", "kind": "all"},
        "kind",
        "Expected one line of text other than 'all', which names all kinds, but got kind='all'",
    ),
    # A kind is a name in estimates.csv, unlike ids and texts.
    "a kind with a control character": bad_question(
        {**Q1, "id": "q2", "kind": "a\0b"},
        "kind",
        "Expected one line of text other than 'all', which names all kinds, but got kind='a\\x00b'",
    ),
    "a kind that is a list": bad_question(
        {**Q1, "id": "q2", "kind": ["fact"]},
        "kind",
        "Expected one line of text other than 'all', which names all kinds, but got kind=['fact']",
    ),
}

every_fault = pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())


@every_fault
def test_the_library_names_the_place_and_leaves_nothing(
    bad: Bad, own_data: OwnData, tmp_path: Path
) -> None:
    directory = own_data(bad.records, bad.questions)
    with pytest.raises(InputError) as refused:
        routeprism.audit(directory, "raw", run=tmp_path / "new" / "run", workers=1)
    value = refused.value
    assert (value.line, value.field, value.problem) == (bad.line, bad.field, bad.problem)
    assert value.file == str(directory / bad.file)
    assert not (tmp_path / "new").exists()


@every_fault
def test_the_command_line_says_the_same_and_leaves_nothing(
    bad: Bad, own_data: OwnData, cli: Callable[..., Any]
) -> None:
    directory = own_data(bad.records, bad.questions)
    ended = cli("audit", directory, "--policy", "raw")
    place = f"{directory / bad.file}"
    place += "" if bad.line is None else f", line {bad.line}"
    place += "" if bad.field is None else f", field '{bad.field}'"
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"routeprism: {place}: {bad.problem}\n"
    assert ended.left == ()


@pytest.mark.slow
def test_a_fault_met_in_a_worker_process_is_told_alike(own_data: OwnData, tmp_path: Path) -> None:
    directory = own_data([R1, R1, B1], QUESTIONS)
    with pytest.raises(InputError) as refused:
        routeprism.audit(directory, "raw", run=tmp_path / "run", workers=2)
    assert (refused.value.line, refused.value.field) == (2, "id")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["records.jsonl", "questions.jsonl"])
def test_a_folder_is_no_file(own_data: OwnData, name: str) -> None:
    directory = own_data([R1] if name != "records.jsonl" else None, None)
    (directory / name).mkdir()
    with pytest.raises(InputError) as refused:
        load_benchmark(str(directory))
    assert str(refused.value) == f"{directory / name}: is a directory; expected a regular file"


@pytest.mark.parametrize("name", ["no/such/place", "no/" + "x" * 300])
def test_a_directory_that_is_not_there(name: str) -> None:
    with pytest.raises(InputError) as refused:
        load_benchmark(name)
    assert str(refused.value) == f"{name}: there is no such directory"


def test_a_file_in_place_of_its_directory(own_data: OwnData) -> None:
    file = own_data(RECORDS, [Q1]) / "records.jsonl"
    with pytest.raises(InputError) as refused:
        load_benchmark(str(file))
    assert str(refused.value) == (
        f"{file}: is a file: name the directory that contains records.jsonl and questions.jsonl"
    )


# --- letters, times and roles ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "gold", "letter"),
    [
        (["Ada", "Bob"], "b", "b"),
        (["Ada", "Bob"], "B", "b"),
        (["Ada", "Bob"], " A ", "a"),
        (["Ada", "Bob"], "Bob", "b"),
        (["a", "b"], "b", "b"),
        (["yes", "B"], "B", "b"),
        (["c", "d"], "c", "a"),  # no third option: only the text can be meant
    ],
)
def test_gold_is_a_letter_in_either_case_or_the_text(
    own_data: OwnData, options: list[str], gold: str, letter: str
) -> None:
    directory = own_data(RECORDS, [{**Q1, "options": options, "gold": gold}])
    (question,) = load_benchmark(str(directory)).cases[0].questions
    assert question.gold == letter


@pytest.mark.parametrize(
    ("options", "gold", "message"),
    [
        (["b", "a"], "a", "it is the letter of option a and the text of option b"),
        (["B", "x"], "B", "it is the letter of option b and the text of option a"),
    ],
)
def test_a_gold_that_names_two_options_is_ambiguous(
    own_data: OwnData, options: list[str], gold: str, message: str
) -> None:
    directory = own_data(RECORDS, [{**Q1, "options": options, "gold": gold}])
    with pytest.raises(InputError) as refused:
        list(load_benchmark(str(directory)).cases)
    assert str(refused.value) == (
        f"{directory / 'questions.jsonl'}, line 1, field 'gold': gold={gold!r} is ambiguous: "
        f"{message}; write these options out, such as 'answer {gold}'"
    )


@pytest.mark.parametrize(
    "stamp",
    [
        *("2024-05-08", "2024-05-08T13:56", "2024-05-08 13:56:07.5Z", "2024-05-08T13:56+02:00"),
        *("2024/05/08", "2024/05/08 13:56", "2023/05/20 (Sat) 02:21", "1:56 pm on 8 May, 2023"),
        *(1715176560, 1715176560.25, "1715176560", 3, None, ""),
    ],
)
def test_times_that_are_read(own_data: OwnData, stamp: object) -> None:
    directory = own_data([{**R1, "timestamp": stamp}, R2], [Q1])
    pool = load_benchmark(str(directory)).cases[0].pool
    assert parse_arrival("timestamps").on(pool).count() == 2  # the other record has no time


@pytest.mark.parametrize(
    "stamp",
    [
        *("soon", "2024-13-01", "2024-05", "20240508", "May 2024", "1715176560000000", "-5"),
        *(20240508, True, {}, ["2024-05-08"], 1e30, -1),
    ],
)
def test_times_that_nobody_could_read_are_refused(own_data: OwnData, stamp: object) -> None:
    directory = own_data([R1, {**R2, "timestamp": stamp}], [Q1])
    with pytest.raises(InputError) as refused:
        load_benchmark(str(directory))
    assert str(refused.value) == (
        f"{directory / 'records.jsonl'}, line 2, field 'timestamp': Expected a time such as "
        f"2024-05-08, 2024-05-08T13:56:00+02:00 or seconds since 1970 but got timestamp={stamp!r}"
    )


@pytest.mark.parametrize(
    "text", ["[USER] a [ASSISTANT] b", "Hello.\n[User] a [user] b", "[USER] a\n [ASSISTANT] b"]
)
def test_a_role_marker_inside_a_line_is_refused(own_data: OwnData, text: str) -> None:
    directory = own_data([R1, {**R2, "text": text}], [Q1])
    with pytest.raises(InputError) as refused:
        load_benchmark(str(directory))
    assert f"{directory / 'records.jsonl'}, line 2, field 'text': the role marker [" in str(
        refused.value
    )
    assert "begins no turn; begin a new line with it, or give 'turns' instead of 'text'" in str(
        refused.value
    )


@pytest.mark.parametrize(
    "text", ["[USER] config[user] = 1", "[USER] a\n[ASSISTANT] b", "a [users]"]
)
def test_brackets_that_mark_no_role_are_text(own_data: OwnData, text: str) -> None:
    assert load_benchmark(str(own_data([R1, {**R2, "text": text}], [Q1]))).cases


def test_turns_may_speak_of_markers(own_data: OwnData) -> None:
    turns = [{"role": "user", "text": "What does [ASSISTANT] mean?"}]
    second = {"user": "ann", "id": "r2", "turns": turns}
    case = load_benchmark(str(own_data([R1, second], [{**Q1, "support": []}]))).cases[0]
    assert case.pool.records[1].user_text == "What does [ASSISTANT] mean?"


# --- what can be used, with a note -----------------------------------------------------------


def notes_of(directory: Path, *policies: str) -> tuple[str, ...]:
    return routeprism.audit(directory, *policies, resamples=100).notes


def test_a_pool_of_one_counts_as_unchanged_and_is_noted(own_data: OwnData) -> None:
    result = routeprism.audit(own_data([R1, R2, B1], QUESTIONS), "recent:k=1", resamples=100)
    assert result.notes == (
        "1 of 2 pools have one record: they have only one order, so order cannot change them",
    )
    assert (
        result.value("J", policy="recent:k=1", schedule="replay").estimate == 0.5
    )  # ann changed, bob did not
    assert result.value("V_changed_count", policy="recent:k=1", schedule="replay").estimate == 1


def test_users_without_a_question_are_noted(own_data: OwnData) -> None:
    assert notes_of(own_data(RECORDS, [Q1]), "raw") == (
        "1 users have records but no question; they add nothing",
    )


def test_text_that_focal_cannot_see_is_counted_and_said_once(own_data: OwnData) -> None:
    texts = ["お茶が好きです。", "Чай люблю.", "أحب القهوة", "我现在喝咖啡", "I love tea."]
    records = [{"user": "ann", "id": f"r{at}", "text": text} for at, text in enumerate(texts)]
    result = routeprism.audit(
        own_data(records, [{**Q1, "support": []}]), "focal", "recent", "lexical", resamples=100
    )
    assert result.notes == (
        "4 of 5 records have no Latin-letter words: the lexical tokeniser of focal, budget, "
        "lexical finds nothing in them to compare or to rank",
    )
    merged = result.rows.where(quantity="J", policy="focal")
    assert {row.estimate for row in merged} == {1.0}  # nothing merged, so nothing lost


def test_text_that_retrieval_cannot_see_is_said_of_it(own_data: OwnData) -> None:
    records = [{"user": "ann", "id": f"r{at}", "text": "Чай люблю."} for at in range(4)]
    directory = own_data([*records, {"user": "ann", "id": "r4", "text": "I love tea."}], [Q1])
    text = "records have no Latin-letter words: the lexical tokeniser of {} finds nothing"
    for policies, interface, names in (
        (["raw", "recent"], "bm25:k=2", "bm25:k=2"),
        (["focal", "raw"], "bm25", "focal, bm25"),
    ):
        result = routeprism.audit(directory, *policies, interface=interface, resamples=100)
        (note,) = result.notes
        assert note.startswith("4 of 5 " + text.format(names))
    assert routeprism.audit(directory, "raw", interface="all", resamples=100).notes == ()


NO_LATIN = "4 of 5 records have no Latin-letter words: "
IN_RUSSIAN = [{"user": "ann", "id": f"r{at}", "text": "[USER] Чай люблю."} for at in range(4)]


@pytest.mark.parametrize("policy", ["focal", "lexical", "utility:k=2", "memochat"])
def test_every_policy_that_looks_for_words_says_where_there_are_none(
    own_data: OwnData, policy: str
) -> None:
    """The role marker is no word of the record."""
    directory = own_data([*IN_RUSSIAN, {"user": "ann", "id": "r4", "text": "I love tea."}], [Q1])
    text = (
        f"{NO_LATIN}the lexical tokeniser of {policy} finds nothing in them to compare or to rank"
    )
    assert text in routeprism.audit(directory, policy, interface="all", resamples=100).notes
    exploration = routeprism.explore_orders(
        directory, policy, interface="all", resamples=100, orders=5
    )
    assert text in exploration.notes


def test_the_interface_and_the_reader_say_it_too(own_data: OwnData) -> None:
    directory = own_data([*IN_RUSSIAN, {"user": "ann", "id": "r4", "text": "I love tea."}], [Q1])
    (note,) = notes_of(directory, "raw")
    assert note.startswith(f"{NO_LATIN}the lexical tokeniser of budget finds nothing")
    result = routeprism.audit(directory, "raw", interface="all", models=["reader"], resamples=100)
    assert (
        f"{NO_LATIN}reader splits text at spaces and knows English word forms alone, so that its "
        "answers about them show little"
    ) in result.notes


@pytest.mark.slow
def test_a_record_of_five_megabytes_works_and_is_noted(own_data: OwnData, tmp_path: Path) -> None:
    long = "I love green tea in the morning. " * 160_000
    assert len(long) > 5_000_000
    directory = own_data([{**R1, "text": long}, R2], [Q1])
    result = routeprism.audit(
        directory, "raw", "focal", "lexical", run=tmp_path / "run", resamples=100
    )
    assert result.notes == (
        "raw shows nothing to any question: J is 1 because nothing is equal to nothing",
        "focal shows nothing to any question: J is 1 because nothing is equal to nothing",
        "1 of 2 records are longer than the limit of the interface budget; they can be kept but "
        "never shown",
    )
    lengths = result.rows.where(quantity="context_length.forward", policy="raw")
    assert {row.estimate for row in lengths} == {0}  # it ranks first
    assert notes_of(directory, "lexical") == ()  # shows windows, not whole records
    assert routeprism.audit(directory, "raw", interface="all", resamples=100).notes == ()


# --- hostile strings -------------------------------------------------------------------------

HOSTILE = ["<script>alert(1)</script>", "../../x", "/etc/passwd", "a\0b", "x" * 10_000, "%s{0}\n"]


def test_hostile_strings_stay_data(
    own_data: OwnData, cli: Callable[..., Any], tmp_path: Path
) -> None:
    records = [
        {"user": user, "id": name, "text": f"tea {name}"} for user in HOSTILE for name in HOSTILE
    ]
    questions = [
        {"user": name, "id": name, "text": name, "kind": HOSTILE[0], "support": [name]}
        for name in HOSTILE
    ]
    directory = own_data(records, questions)
    ended = cli("audit", directory, "-p", "recent:k=1", "-p", "lexical", "--resamples", "100")
    assert (ended.code, ended.err) == (0, "")
    (run,) = {name for name in ended.left if name.count("/") == 1}
    assert run.startswith("runs/mydata-")
    assert len(run) == len("runs/mydata-") + 8
    assert set(ended.left) == {
        "runs",
        run,
        *(
            f"{run}/{name}"
            for name in ("estimates.csv", "manifest.json", "report.html", "run.sqlite")
        ),
    }
    assert {path.name for path in tmp_path.iterdir()} == {"here", "mydata"}


def test_hostile_strings_come_back_as_they_were(own_data: OwnData) -> None:
    records = [{"user": "u", "id": name, "text": f"tea {name}"} for name in HOSTILE]
    questions = [{"user": "u", "id": name, "text": name} for name in HOSTILE]
    case = load_benchmark(str(own_data(records, questions))).cases[0]
    assert [record.id for record in case.pool.records] == HOSTILE
    assert [question.text for question in case.questions] == HOSTILE
