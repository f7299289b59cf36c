"""What is read out of an answer, and what is not."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routeprism.answers import parse, parse_text
from routeprism.records import normalise

OPTIONS = ("a red bicycle", "The blue kettle", "I can't answer that", "A garden, on Sundays.")


@pytest.mark.parametrize(
    ("raw", "letter"),
    [
        ("b", "b"),
        ("B", "b"),
        (" b\n", "b"),
        ("(b)", "b"),
        ("[b]", "b"),
        ("b.", "b"),
        ("b)", "b"),
        ("**b**", "b"),
        ("`b`", "b"),
        ('"B"', "b"),
        ("$\\boxed{b}$", "b"),
        ("B) because the kettle was mentioned", "b"),
        ("B because it was mentioned", "b"),
        ("b: The blue kettle", "b"),
        ("(a) a red bicycle", "a"),
        ("a - it was red", "a"),
        ("Option b.", "b"),
        ("Answer: b", "b"),
        ("**Answer:** (B)", "b"),
        ("The answer is b.", "b"),
        ("The correct option is (d).", "d"),
        ("Final answer: D) A garden, on Sundays.", "d"),
        ("I would choose b.", "b"),
        ("I'd go with option d, since gardens were mentioned.", "d"),
        ("The user spoke of kettles.\n\nb", "b"),
        ("a) is old. \nb) is new.\nThe answer is b", "b"),
        ("The blue kettle", "b"),
        ("the  blue kettle.", "b"),
        ("I can't answer that", "c"),
        ("A garden, on Sundays", "d"),
        ("I'm sorry, I was wrong before. Answer: b", "b"),
    ],
)
def test_a_stated_letter_is_read(raw: str, letter: str) -> None:
    assert parse(raw, OPTIONS) == ("answered", letter)


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "   ",
        "e",
        "e) none of them",
        "a or b",
        "a, b",
        "a/b",
        "Answer: a or b",
        "The answer is a and d.",
        "a) no\nb) yes",
        "B) because of this. Answer: a",
        "Answer: a\nAnswer: b",
        "A good choice would be the kettle",
        "the answer is a matter of taste",
        "It depends on the day.",
        "b) a red bicycle",
        "ab",
        "kettle",
        "I would not choose b",
        "yes",
    ],
)
def test_what_is_ambiguous_or_missing_is_no_guess(raw: str) -> None:
    assert parse(raw, OPTIONS) == ("unparsable", None)


@pytest.mark.parametrize(
    "raw",
    [
        "I cannot answer this question.",
        "I can't answer.",
        "I'm sorry, but I can't help with that.",
        "I’m sorry, but I can’t assist with this request.",
        "Sorry, I am unable to answer.",
        "As an AI, I cannot know what the user likes.",
        "I won't answer.",
        "[refused] content_filter",
    ],
)
def test_a_refusal_is_its_own_outcome(raw: str) -> None:
    assert parse(raw, OPTIONS) == ("refused", None)


def test_equal_options_cannot_be_told_apart_by_their_text() -> None:
    assert parse("same", ("same", "Same", "other")).outcome == "unparsable"
    assert parse("b", ("same", "same", "other")) == ("answered", "b")


def test_an_option_that_is_another_options_letter_is_ambiguous() -> None:
    assert parse("a", ("b", "a")).outcome == "unparsable"
    assert parse("a", ("a", "b")) == ("answered", "a")


@pytest.mark.slow
@given(st.text(max_size=200), st.integers(1, 26))
def test_an_answer_is_always_one_of_the_letters_or_none(raw: str, count: int) -> None:
    outcome, letter = parse(raw, [f"option number {n}" for n in range(count)])
    if outcome == "answered":
        assert letter in string.ascii_lowercase[:count]
    else:
        assert letter is None


@given(st.integers(1, 26), st.data())
def test_every_letter_is_read_in_every_plain_form(count: int, data: st.DataObject) -> None:
    letter = data.draw(st.sampled_from(string.ascii_lowercase[:count]))
    options = [f"option number {n}" for n in range(count)]
    for form in ("{}", "({})", "{}.", "{})", "Answer: {}", "**{}**", "{}) because of it"):
        for content in (letter, letter.upper()):
            assert parse(form.format(content), options) == ("answered", letter)


@pytest.mark.parametrize(
    ("raw", "parsed"),
    [
        ("  She moved\n to Bern. ", ("answered", "She moved to Bern.")),
        ("", ("unparsable", None)),
        ("I'm sorry, but I can't help with that.", ("refused", None)),
        ("[refused] no", ("refused", None)),
        # Not in the records: an answer that a judge may find right.
        ("I cannot answer this from the records.", None),
        ("I don't know.", None),
    ],
)
def test_free_text(raw: str, parsed: tuple[str, str | None] | None) -> None:
    assert parse_text(raw) == (parsed or ("answered", raw))
    assert parse(raw, ()) == parse_text(raw)


def test_normalised_texts_compare() -> None:
    assert normalise("The  Cat’s café, at 5!") == "cats café at 5"
    assert normalise("An apple a day") == normalise("apple, day")
