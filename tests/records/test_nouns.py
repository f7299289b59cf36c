"""The nouns refuse what no audit could use, and read turns as the benchmarks write them."""

from __future__ import annotations

import dataclasses
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routeprism.errors import InputError
from routeprism.records import Benchmark, Case, Pool, Question, Record, Turn, letters


def record(id: str = "r1", position: int = 0, text: str = "I like tea.") -> Record:
    return Record(id, position, text)


def pool(size: int = 2, user: str = "u") -> Pool:
    return Pool(user, tuple(record(f"r{index + 1}", index) for index in range(size)))


# --- records ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("id", "position", "text", "field", "problem"),
    [
        ("", 0, "x", "id", "Expected a non-blank string but got id=''"),
        (7, 0, "x", "id", "Expected a non-blank string but got id=7"),
        ("r", -1, "x", "position", "Expected a position of 0 or more but got position=-1"),
        ("r", 0, "", "text", "record 'r' has no text; give it some or leave it out"),
        ("r", 0, " \n\t", "text", "record 'r' has no text; give it some or leave it out"),
        ("r", 0, None, "text", "record 'r' has no text; give it some or leave it out"),
    ],
)
def test_a_record_needs_an_id_a_position_and_words(
    id: str, position: int, text: str, field: str, problem: str
) -> None:
    with pytest.raises(InputError) as refused:
        Record(id, position, text)
    assert (refused.value.field, refused.value.problem) == (field, problem)
    assert str(refused.value) == f"field '{field}': {problem}"


def test_turns_without_words_are_no_record() -> None:
    with pytest.raises(InputError, match="record 'r' has no text"):
        Record.from_turns("r", 0, [Turn("user", " "), Turn("assistant", "")])


def test_turns_are_read_from_markers_at_the_start_of_a_line() -> None:
    # The shape of a PersonaMem document (PROTOCOL §3), "User:" left in.
    text = "[SYSTEM] Be kind.\n\n[USER] User: A [USER] tag.\n\n[Assistant] Yes.\n\n[user] Bye."
    assert record(text=text).turns == (
        Turn("system", "Be kind."),
        Turn("user", "User: A [USER] tag."),
        Turn("assistant", "Yes."),
        Turn("user", "Bye."),
    )
    assert record(text=text).user_text == "User: A [USER] tag.\n\nBye."


def test_words_before_the_first_marker_are_a_turn_without_a_role() -> None:
    assert record(text="Monday\n[USER] Hello.").turns == (
        Turn("", "Monday"),
        Turn("user", "Hello."),
    )


@pytest.mark.parametrize("text", ["  Plain words. ", "[ASSISTANT] Only the other one speaks."])
def test_without_a_user_turn_the_whole_text_counts(text: str) -> None:
    assert record(text=text).user_text == text.strip()


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="["), min_size=1).map(str.strip)
TURNS = st.lists(
    st.builds(Turn, st.sampled_from(["user", "assistant", "system"]), WORDS.filter(bool)),
    min_size=1,
)


@given(TURNS)
def test_turns_written_into_a_text_are_read_from_it_again(turns: list[Turn]) -> None:
    result = Record.from_turns("r", 0, turns)
    assert result.turns == tuple(turns)
    assert record(text=result.text).turns == tuple(turns)


def test_what_is_derived_is_computed_once_and_does_not_travel() -> None:
    calls: list[str] = []

    def shout(record: Record) -> str:
        calls.append(record.id)
        return record.text.upper()

    item = record()
    assert [item.derive(shout), item.derive(shout)] == ["I LIKE TEA."] * 2
    copy = pickle.loads(pickle.dumps(item))  # noqa: S301 (its own bytes)
    assert copy == item
    assert copy.derive(shout) == "I LIKE TEA."
    assert calls == ["r1", "r1"]  # once for each of the two


def test_a_record_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        record().text = "other"  # type: ignore[misc]


# --- pools, questions, cases -----------------------------------------------------------------


def test_a_pool_has_records_in_their_positions() -> None:
    assert pool(3).ids == ("r1", "r2", "r3")
    assert len(pool(1)) == 1  # one record is a pool: it has one order


@pytest.mark.parametrize(
    ("records", "field", "problem"),
    [
        ((), None, "the pool of user 'u' is empty: it has no records"),
        (
            (record("a", 0), record("a", 1)),
            "id",
            "user 'u' has two records with the id 'a'",
        ),
        (
            (record("a", 1), record("b", 0)),
            "position",
            "Expected position=0 but got position=1 for record 'a' of user 'u'",
        ),
    ],
)
def test_a_pool_refuses(records: tuple[Record, ...], field: str | None, problem: str) -> None:
    with pytest.raises(InputError) as refused:
        Pool("u", records)
    assert (refused.value.field, refused.value.problem) == (field, problem)


@pytest.mark.parametrize(
    ("changes", "field", "problem"),
    [
        ({"id": ""}, "id", "Expected a non-blank string but got id=''"),
        ({"text": " "}, "text", "question 'q' has no text"),
        (
            {"options": ("x",) * 27, "gold": None},
            "options",
            "question 'q' has 27 options; at most 26 have letters",
        ),
        ({"gold": "c"}, "gold", "question 'q': gold='c' is none of its option letters a, b"),
        ({"gold": "A"}, "gold", "question 'q': gold='A' is none of its option letters a, b"),
    ],
)
def test_a_question_refuses(changes: dict[str, object], field: str, problem: str) -> None:
    right = {"id": "q", "user": "u", "text": "Which?", "options": ("tea", "milk"), "gold": "b"}
    assert Question(**right).gold == "b"  # type: ignore[arg-type]
    with pytest.raises(InputError) as refused:
        Question(**right | changes)  # type: ignore[arg-type]
    assert (refused.value.field, refused.value.problem) == (field, problem)


def test_a_free_text_question_takes_any_gold() -> None:
    assert Question("q", "u", "When?", gold="7 May 2023").gold == "7 May 2023"


@pytest.mark.parametrize(
    ("options", "duplicate"),
    [((), False), (("tea", "milk"), False), (("green  tea", "milk", " green\ntea"), True)],
)
def test_options_are_the_same_after_whitespace_is_folded(
    options: tuple[str, ...], duplicate: bool
) -> None:
    assert Question("q", "u", "Which?", options).duplicate_options is duplicate


def test_letters() -> None:
    assert letters(4) == ("a", "b", "c", "d")
    assert letters(26)[-1] == "z"


def test_a_case_refuses_the_question_of_another_user() -> None:
    with pytest.raises(InputError) as refused:
        Case(pool(), (Question("q", "v", "Which?"),))
    assert str(refused.value) == "field 'user': question 'q' belongs to user 'v', not to 'u'"


def test_a_case_refuses_support_that_is_no_record_of_the_pool() -> None:
    labels = {"audited:me": frozenset({"r1", "r9", "r8"})}
    with pytest.raises(InputError) as refused:
        Case(pool(), (Question("q", "u", "Which?", labels=labels),))
    assert str(refused.value) == (
        "field 'support': question 'q' (audited:me) names the record 'r8', "
        "which user 'u' does not have"
    )


def test_a_benchmark_needs_a_pool() -> None:
    with pytest.raises(InputError, match="benchmark 'mine' has no pools"):
        Benchmark("mine", (), "")


# --- their error -----------------------------------------------------------------------------


def test_an_input_error_says_the_place_and_survives_the_way_from_a_worker() -> None:
    error = InputError("is odd", file="a.jsonl", line=3, field="id")
    repetition = pickle.loads(pickle.dumps(error))  # noqa: S301 (its own bytes)
    for item in (error, repetition):
        assert str(item) == "a.jsonl, line 3, field 'id': is odd"
        assert (item.problem, item.file, item.line, item.field) == ("is odd", "a.jsonl", 3, "id")
    assert str(InputError("is odd")) == "is odd"
