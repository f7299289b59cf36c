"""PersonaMem-32K: the counts of PROTOCOL §3 on the real files, and faults in small copies."""

from __future__ import annotations

import csv
import gzip
import io
import json
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.errors import InputError
from routeprism.records import Benchmark, Question, load_benchmark
from routeprism.records.personamem import GROUPS

# --- the real files --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def personamem(data: Path) -> Benchmark:
    return load_benchmark("personamem", data)


def find_question(benchmark: Benchmark) -> list[Question]:
    return [question for case in benchmark.cases for question in case.questions]


@pytest.mark.realdata
def test_counts_are_those_of_the_protocol(personamem: Benchmark) -> None:
    assert len(personamem.cases) == 37
    assert sum(len(case.pool) for case in personamem.cases) == 195
    assert (
        len(find_question(personamem))
        == len({question.id for question in find_question(personamem)})
        == 589
    )
    assert Counter(len(case.pool) for case in personamem.cases) == {4: 5, 5: 19, 6: 11, 7: 2}
    kinds = Counter(question.kind for question in find_question(personamem))
    assert kinds == {"fact-recall": 146, "temporal": 238, "rest": 205}


@pytest.mark.realdata
def test_fact_recall_is_two_types_spread_over_the_pool_sizes(personamem: Benchmark) -> None:
    facts = [question for question in find_question(personamem) if question.kind == "fact-recall"]
    assert sorted(Counter(question.detail for question in facts).values()) == [17, 129]
    cards: Counter[int] = Counter()
    for case in personamem.cases:
        cards[len(case.pool)] += sum(q.kind == "fact-recall" for q in case.questions)
    assert cards == {4: 18, 5: 68, 6: 54, 7: 6}


@pytest.mark.realdata
def test_duplicate_options_are_counted_by_the_product(personamem: Benchmark) -> None:
    facts = [question for question in find_question(personamem) if question.kind == "fact-recall"]
    assert sum(question.duplicate_options for question in facts) == 16
    result = routeprism.audit(personamem, "raw", resamples=100)
    row = result.value("count.duplicate_options", stratum="fact-recall")
    assert (row.estimate, row.queries) == (16, 146)


@pytest.mark.realdata
def test_options_and_gold_are_those_of_the_original_file(data: Path, personamem: Benchmark) -> None:
    queries = json.loads(gzip.decompress((data / "personamem-32k/queries.json.gz").read_bytes()))
    gold_of = {query["id"]: query["gold_answers"] for query in queries}  # option line, letter
    for question in find_question(personamem):
        assert len(question.options) == 4
        letter = str(question.gold)
        right = question.options["abcd".index(letter)]
        assert gold_of[question.id] == [f"({letter}) {right}", letter]


@pytest.mark.realdata
def test_records_stand_in_the_order_of_their_suffix(personamem: Benchmark) -> None:
    for case in personamem.cases:
        assert case.pool.ids == tuple(f"{case.pool.user}_{at}" for at in range(len(case.pool)))
        assert all(record.timestamp is None for record in case.pool.records)
        assert all("[USER]" in record.text for record in case.pool.records)
        assert all("[ASSISTANT]" not in record.user_text for record in case.pool.records)


@pytest.mark.realdata
def test_every_query_has_one_reference_session_of_its_pool(personamem: Benchmark) -> None:
    assert personamem.labels == ("reference-session",)
    places: Counter[int] = Counter()
    for case in personamem.cases:
        for question in case.questions:
            (session,) = question.labels["reference-session"]
            places[case.pool.ids.index(session)] += 1
            assert session != case.pool.ids[-1]  # a question is asked after what it is about
    # Taken from the three files apart from the loader, by the formula of PROTOCOL §3.
    assert places == {0: 210, 1: 137, 2: 153, 3: 68, 4: 19, 5: 2}


@pytest.mark.realdata
def test_the_published_files_are_known_by_their_digests(personamem: Benchmark) -> None:
    assert personamem.notes == ()
    assert personamem.inputs["questions_32k.csv"] == (
        "23f306a8d28b7ffcf133fe7dad09ade06fcb862fc7c3f19691362a5cd69409bd"  # data/README.md
    )
    assert (personamem.unit, personamem.weighting) == ("user", "unit")
    assert (personamem.interface, personamem.synthetic) == ("budget", False)


REAL = ("documents.json.gz", "queries.json.gz", "questions_32k.csv.gz")


@pytest.mark.realdata
@pytest.mark.parametrize("name", REAL)
def test_a_real_file_cut_short_is_refused(
    data: Path, tmp_path: Path, cli: Callable[..., Any], name: str
) -> None:
    copy = tmp_path / "copy" / "personamem-32k"
    shutil.copytree(data / "personamem-32k", copy)
    whole = (copy / name).read_bytes()
    (copy / name).write_bytes(whole[: len(whole) // 2])
    ended = cli("audit", "personamem", "-p", "raw", "--data", tmp_path / "copy")
    assert (ended.code, ended.out, ended.left) == (2, "", ())
    assert ended.err.startswith(f"routeprism: {copy / name}: is not a complete gzip file (")
    assert ended.err.endswith("); get it again\n")


# --- small copies ----------------------------------------------------------------------------

DOCUMENTS = [
    # Two digits come after one: order is that of the number, not of the text.
    {"id": f"u_{at}", "user_id": "u", "content": f"[USER] User: Day {at}.\n\n[ASSISTANT] Good."}
    for at in (10, 9, 8)
]
QUERY = {
    "id": "q1",
    "user_id": "u",
    "query": "Which day? (a) Mon (b) Tue",
    "meta": {"retrieval_query": "Which day?"},
}
ROW = {
    "question_id": "q1",
    "question_type": "recall_user_shared_facts",
    "correct_answer": "(b)",
    "all_options": '["(a) Mon", "(b) Tue"]',
    "end_index_in_shared_context": "5",
    "distance_to_ref_in_blocks": "1",
}


def as_csv(*rows: Mapping[str, str]) -> bytes:
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, ROW)
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue().encode()


Small = Callable[..., Path]


@pytest.fixture
def small(tmp_path: Path) -> Small:
    """Write a PersonaMem of one user; what is given replaces a file."""

    def write(
        documents: Any = DOCUMENTS, queries: Any = (QUERY,), rows: bytes = as_csv(ROW)
    ) -> Path:
        directory = tmp_path / "small"
        directory.mkdir()
        for name, content in (("documents.json", documents), ("queries.json", queries)):
            raw = content if isinstance(content, bytes) else json.dumps(content).encode()
            (directory / name).write_bytes(raw)
        (directory / "questions_32k.csv").write_bytes(rows)
        return directory

    return write


def test_a_small_copy_is_read_and_called_another_file(small: Small) -> None:
    benchmark = load_benchmark("personamem", small())
    (case,) = benchmark.cases
    assert case.pool.ids == ("u_8", "u_9", "u_10")
    assert case.pool.records[0].user_text == "User: Day 8."
    (question,) = case.questions
    assert (question.text, question.options, question.gold) == ("Which day?", ("Mon", "Tue"), "b")
    assert (question.kind, question.detail) == ("fact-recall", "recall_user_shared_facts")
    assert benchmark.notes == (
        "documents.json, queries.json, questions_32k.csv: not the files that the published numbers "
        "come from",
    )


def test_every_type_is_in_one_of_the_three_groups() -> None:
    assert Counter(GROUPS.values()) == {"fact-recall": 2, "temporal": 2, "rest": 3}


@pytest.mark.parametrize(
    ("end", "distance", "session"),
    # Six turns in all: asked at the very end, the last session is one block back; asked before
    # it, the last session itself is where it was asked (PROTOCOL §3).
    [("5", "1", "u_10"), ("5", "3", "u_8"), ("4", "0", "u_10"), ("4", "1", "u_9")],
)
def test_the_reference_session_is_counted_back(
    small: Small, end: str, distance: str, session: str
) -> None:
    row = {**ROW, "end_index_in_shared_context": end, "distance_to_ref_in_blocks": distance}
    (case,) = load_benchmark("personamem", small(rows=as_csv(row))).cases
    assert case.questions[0].labels == {"reference-session": frozenset({session})}


@pytest.mark.parametrize("raw", ["['(a) Mon', '(b) Tue\\'s']", '["(a) Mon", "(b) Tue\'s"]'])
def test_options_are_json_or_a_python_list(small: Small, raw: str) -> None:
    rows = as_csv({**ROW, "all_options": raw})
    (case,) = load_benchmark("personamem", small(rows=rows)).cases
    assert case.questions[0].options == ("Mon", "Tue's")


def without(entry: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key != name}


CSV = "questions_32k.csv"
OPTIONS = "Expected a list of options '(a) …', '(b) …'"
FAULTS: dict[str, tuple[dict[str, Any], str, int | None, str | None, str]] = {
    "truncated documents": (
        {"documents": json.dumps(DOCUMENTS, indent=1).encode()[:-40]},
        "documents.json",
        15,
        None,
        "is not valid JSON: Unterminated string starting at; the file may be truncated",
    ),
    "documents that are no list": (
        {"documents": {"u": 1}},
        "documents.json",
        None,
        None,
        "Expected a list of objects",
    ),
    "no documents": ({"documents": []}, "documents.json", None, None, "there is no entry in it"),
    "no queries": ({"queries": []}, "queries.json", None, None, "there is no entry in it"),
    "document without content": (
        {"documents": [DOCUMENTS[0], without(DOCUMENTS[1], "content")]},
        "documents.json",
        None,
        "content",
        "entry 1: Expected a non-empty string but got content=None",
    ),
    "document of white space": (
        {"documents": [{**DOCUMENTS[0], "content": " \n"}]},
        "documents.json",
        None,
        "content",
        "record 'u_10' has no text; give it some or leave it out",
    ),
    "document twice": (
        {"documents": [*DOCUMENTS, DOCUMENTS[0]]},
        "documents.json",
        None,
        "id",
        "user 'u' has two records with the id 'u_10'",
    ),
    "document without a number": (
        {"documents": [{**DOCUMENTS[0], "id": "u_x"}]},
        "documents.json",
        None,
        "id",
        "entry 0: Expected an id that ends in _NUMBER but got id='u_x'",
    ),
    "query of a stranger": (
        {"queries": [{**QUERY, "user_id": "v"}]},
        "queries.json",
        None,
        "user_id",
        "query 'q1' belongs to user 'v', who has no documents",
    ),
    "query twice": (
        {"queries": [QUERY, QUERY]},
        "queries.json",
        None,
        "id",
        "entry 1: there are two queries with the id 'q1'",
    ),
    "query that the CSV does not have": (
        {"queries": [{**QUERY, "id": "q2"}]},
        "queries.json",
        None,
        "id",
        "query 'q2' is not in questions_32k.csv",
    ),
    # The field `query` holds the options: nothing falls back to it.
    "query without its retrieval text": (
        {"queries": [{**QUERY, "meta": {}}]},
        "queries.json",
        None,
        "retrieval_query",
        "entry 0: Expected a non-empty string but got retrieval_query=None",
    ),
    "meta that is no object": (
        {"queries": [{**QUERY, "meta": ["x"]}]},
        "queries.json",
        None,
        "retrieval_query",
        "entry 0: Expected a non-empty string but got retrieval_query=None",
    ),
    "CSV without a column": (
        {"rows": as_csv(ROW).replace(b"all_options", b"options")},
        CSV,
        1,
        None,
        "the header has no column 'all_options'",
    ),
    "CSV cut short": (
        {"rows": as_csv(ROW, ROW)[:-12]},
        CSV,
        3,
        None,
        "the row ends early; the file may be truncated",
    ),
    "CSV that is no text": (
        {"rows": as_csv(ROW) + b"\xff"},
        CSV,
        3,
        None,
        "is not UTF-8 text (invalid start byte)",
    ),
    "gold past the options": (
        {"rows": as_csv({**ROW, "correct_answer": "(c)"})},
        CSV,
        2,
        "correct_answer",
        "question 'q1': gold='c' is none of its option letters a, b",
    ),
    "gold without its letter": (
        {"rows": as_csv({**ROW, "correct_answer": "Tue"})},
        CSV,
        2,
        "correct_answer",
        "Expected '(a)' … but got 'Tue'",
    ),
    "options without letters": (
        {"rows": as_csv({**ROW, "all_options": '["Mon", "Tue"]'})},
        CSV,
        2,
        "all_options",
        OPTIONS,
    ),
    "options that skip a letter": (
        {"rows": as_csv({**ROW, "all_options": '["(a) Mon", "(c) Tue"]'})},
        CSV,
        2,
        "all_options",
        OPTIONS,
    ),
    "options that are one number": (
        {"rows": as_csv({**ROW, "all_options": "12"})},
        CSV,
        2,
        "all_options",
        OPTIONS,
    ),
    **{
        f"options that Python cannot read ({name})": (
            {"rows": as_csv({**ROW, "all_options": raw})},
            CSV,
            2,
            "all_options",
            OPTIONS,
        )
        for name, raw in {
            "a list as a key": "{[]: 1}",
            "many signs": "-" * 100_000 + "1",
            "many sums": "[1]+" * 20_000 + "[1]",
        }.items()
    },
    "options that are numbers": (
        {"rows": as_csv({**ROW, "all_options": "[1, 2]"})},
        CSV,
        2,
        "all_options",
        OPTIONS,
    ),
    "unknown type": (
        {"rows": as_csv({**ROW, "question_type": "riddle"})},
        CSV,
        2,
        "question_type",
        "unknown type 'riddle'",
    ),
    "session before the first": (
        {"rows": as_csv({**ROW, "distance_to_ref_in_blocks": "4"})},
        CSV,
        2,
        "distance_to_ref_in_blocks",
        "the reference session would be number -1 of 3",
    ),
    "distance that is no number": (
        {"rows": as_csv({**ROW, "distance_to_ref_in_blocks": "far"})},
        CSV,
        2,
        "distance_to_ref_in_blocks",
        "Expected whole numbers: invalid literal for int() with base 10: 'far'",
    ),
}


@pytest.mark.parametrize(
    ("changes", "file", "line", "field", "problem"), FAULTS.values(), ids=FAULTS.keys()
)
def test_a_fault_is_named_by_its_place(
    small: Small,
    changes: dict[str, Any],
    file: str,
    line: int | None,
    field: str | None,
    problem: str,
) -> None:
    directory = small(**changes)
    with pytest.raises(InputError) as refused:
        load_benchmark("personamem", directory)
    value = refused.value
    assert (value.line, value.field, value.problem) == (line, field, problem)
    assert value.file == str(directory / file)


def test_a_missing_file_is_named(small: Small, cli: Callable[..., Any]) -> None:
    directory = small()
    (directory / "queries.json").unlink()
    ended = cli("audit", "personamem", "-p", "raw", "--data", directory)
    assert (ended.code, ended.left) == (2, ())
    assert ended.err == (
        f"routeprism: {directory}: there is no queries.json (nor .gz) in it; routeprism fetch "
        f"personamem --data DIR gets it\n"
    )


def test_without_a_directory_it_says_how_to_name_one(cli: Callable[..., Any]) -> None:
    ended = cli("audit", "personamem", "-p", "raw")
    assert (ended.code, ended.left) == (2, ())
    assert ended.err == (
        "routeprism: where are the files of 'personamem'? Pass data=DIR or set ROUTEPRISM_DATA; "
        "routeprism fetch personamem --data DIR gets them\n"
    )
    ended = cli("audit", "personamem", "-p", "raw", "--data", "nowhere")
    assert (ended.code, ended.err) == (2, "routeprism: nowhere: there is no such directory\n")


def test_python_reads_the_directory_from_the_environment(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message of a missing directory recommends it."""
    monkeypatch.setenv("ROUTEPRISM_DATA", str(small()))
    assert load_benchmark("personamem").name == "personamem"
