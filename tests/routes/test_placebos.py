"""Placebos are unrelated records of equal length and layout."""

from __future__ import annotations

import re

import pytest

from routeprism.records import Case, Pool, Question, Record, Turn
from routeprism.routes import Placebos, date_after, date_before

RECORD = Record("n1", 0, "Maya moved to Lisbon in 2024.", "2025-03-02")
CASE = Case(Pool("ada", (RECORD,)), (Question("q", "ada", "Where does Zed live?"),))


def make(record: Record = RECORD, number: int = 0, *, short: bool = False) -> Record:
    return Placebos.of(CASE).make(record, number, short=short)


def read_words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def test_a_placebo_has_the_layout_and_place_but_no_word_of_its_record() -> None:
    placebo = make()
    assert re.sub(r"\w", "x", placebo.text) == re.sub(r"\w", "x", RECORD.text)
    assert [c.isupper() for c in placebo.text] == [c.isupper() for c in RECORD.text]
    assert [c.isdecimal() for c in placebo.text] == [c.isdecimal() for c in RECORD.text]
    assert (placebo.position, placebo.timestamp) == (0, "2025-03-02")
    assert not set(read_words(placebo.text)) & set(read_words(RECORD.text))


def test_a_placebo_is_made_of_syllables() -> None:
    word = read_words(make().text)[0]
    assert [letter in "aeiouy" for letter in word] == [False, True, False, True]


def test_a_word_that_repeats_has_one_placebo() -> None:
    text = make(Record("n1", 0, "tea and tea and TEA")).text.split()
    assert text[0] == text[2] and text[1] == text[3]
    assert len(set(text)) == 3


def test_placebos_of_a_record_differ_by_number_and_are_made_once() -> None:
    placebos = Placebos.of(CASE)
    first, second = (placebos.make(RECORD, number) for number in (0, 1))
    assert first.text != second.text and first.id != second.id
    assert placebos.make(RECORD, 0) is first
    assert Placebos.of(CASE).make(RECORD, 0) == first
    assert placebos.make(RECORD, 0, short=True) != first


def test_ids_are_new_and_as_long_where_that_is_possible() -> None:
    ids = {f"{letter}" for letter in "bcdfghjklmnpqrstvwxz"}
    placebos = Placebos(frozenset(), set(ids))
    placebo = placebos.make(Record("n", 0, "tea"), 0)
    assert placebo.id not in ids
    assert placebo.id in placebos.ids
    assert re.fullmatch(r"[a-z]\d+", placebo.id)
    assert len(make().id) == 2 and make().id[1].isdecimal()


def test_a_placebo_avoids_the_words_of_questions_as_well() -> None:
    """Of 20 consonants, all but one are words: twenty attempts nearly always find the last."""
    letters = "bcdfghjklmnpqrstvwx"
    case = Case(
        Pool("ada", (Record("n1", 0, "b c d f g h j k l"),)),
        (Question("q", "ada", "M N P Q R S T V W X"),),
    )
    placebos = Placebos.of(case)
    assert placebos.words == frozenset(letters)
    numbers = range(30)
    texts = [placebos.make(Record("n1", 0, "m"), number).text for number in numbers]
    assert texts.count("z") > 10  # 1 - 0.95 ** 20 = 0.64 of 30; else 1.5 of 30


def test_a_short_placebo_is_one_word() -> None:
    record = Record.from_turns("n1", 0, [Turn("user", "a long story"), Turn("assistant", "so")])
    placebo = make(record, short=True)
    assert re.fullmatch(r"[a-z]{2}", placebo.text)
    assert placebo.spoken == ()


def test_roles_are_unchanged() -> None:
    record = Record.from_turns(
        "n1", 0, [Turn("user", "a user's story"), Turn("narrator", "Indeed [sic]")]
    )
    placebo = make(record)
    assert placebo.text.startswith("[USER] ") and "[NARRATOR] " in placebo.text
    assert [turn.role for turn in placebo.spoken] == ["user", "narrator"]
    assert "story" not in placebo.text and "sic" not in placebo.text
    assert all(turn.text in placebo.text for turn in placebo.spoken)
    assert "Indeed" not in placebo.spoken[1].text
    plain = make(Record("n1", 0, "[USER] tea [other] [System] x"))
    assert plain.text.startswith("[USER] ") and "[System] " in plain.text
    assert "other" not in plain.text


@pytest.mark.parametrize(
    ("time", "times"),
    [
        ("2025-03-02", ["2025-02-28", "2025-03-01"]),  # two days before, one day before
        ("2025-03-02T10:30:00", ["2025-02-28T10:30:00", "2025-03-01T10:30:00"]),
        ("2025-03-02 10:30:00", ["2025-02-28 10:30:00", "2025-03-01 10:30:00"]),
        ("0001-01-01", ["0001-01-01", "0001-01-01"]),  # there is no day before
        ("some day", ["some day", "some day"]),
        ("20250302", ["20250302", "20250302"]),  # no format that event times have
        (None, [None, None]),
    ],
)
def test_records_move_before_another_one(time: str | None, times: list[str | None]) -> None:
    record = Record("n1", 3, "tea", time)
    earlier = [Record("n7", 7, "x", "2025-09-09"), Record("n5", 5, "y")]
    moved, dated = date_before(record, earlier)
    assert [item.timestamp for item in dated] == times
    assert [(item.id, item.position, item.text) for item in dated] == [
        ("n7", 0, "x"),
        ("n5", 1, "y"),
    ]
    assert (moved.position, moved.timestamp, moved.id) == (5, time, "n1")


@pytest.mark.parametrize(
    ("time", "later"), [("2025-02-28", "2025-03-30"), ("9999-12-31", "9999-12-31"), (None, None)]
)
def test_a_record_moves_behind_the_newest_one(time: str | None, later: str | None) -> None:
    moved = date_after(Record("n9", 9, "tea", time), Record("n5", 5, "y", "2025-01-01"), 30)
    assert (moved.id, moved.position, moved.text, moved.timestamp) == ("n5", 39, "y", later)
