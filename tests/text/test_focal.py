"""The focal tokeniser, against Appendix D.4's rules worked by hand."""

import re
from collections import Counter

from hypothesis import example, given
from hypothesis import strategies as st

from routeprism.records import Record, Turn
from routeprism.text.focal import (
    focal_set,
    focal_words,
    has_focal_tokens,
    preference_score,
    record_focal_counts,
    record_word_counts,
    similarities,
    similarity,
    words,
)


def record(text: str) -> Record:
    return Record("r", 0, text)


def test_words_follow_the_published_pattern() -> None:
    # A token starts with a letter and has at least two characters; digits and ' may follow.
    assert words("I can't re-do 3D at x2 by A's") == ["can't", "re", "do", "at", "x2", "by", "a's"]


@given(st.text() | st.text(st.sampled_from("aBcdKİé0129' -_.\n\u212a\u0660\ud800")))
@example("3rd 'tis 12'ab the '' a1 'The 0the it's İstanbul \u212aelvin x2y ſt 5'' a'")
def test_words_are_those_that_the_pattern_finds(text: str) -> None:
    assert words(text) == [item.lower() for item in re.findall(r"[A-Za-z][A-Za-z0-9']+", text)]


def test_similarity_tokens_lose_stopwords_and_short_words() -> None:
    assert focal_words("We LOVED the old mill at Ox, it is x2 there") == ["loved", "old", "mill"]


def test_only_user_turns_count() -> None:
    marked = record("[SYSTEM] persona walnut\n\n[USER] User: apples\n\n[ASSISTANT] pears")
    # The literal "User:" stays in (PROTOCOL §3).
    assert record_word_counts(marked) == {"user": 1, "apples": 1}
    assert marked.user_text == "User: apples"


def test_markers_are_found_in_any_case_and_only_at_line_starts() -> None:
    marked = record("[user] one\nmore [ASSISTANT] words\n\n[User] two")
    assert marked.user_text == "one\nmore [ASSISTANT] words\n\ntwo"


def test_unmarked_text_counts_whole_and_stripped() -> None:
    assert record("  plain words \n").user_text == "plain words"


def test_given_turns_are_not_read_again_from_their_text() -> None:
    turns = (Turn("user", "first\n\n[ASSISTANT] quoted by the user"), Turn("assistant", "no"))
    result = Record.from_turns("r", 0, turns)
    assert result.user_text == "first\n\n[ASSISTANT] quoted by the user"


def test_preference_score_counts_occurrences() -> None:
    assert preference_score(record("I love it, love it, and hate nothing; beloved, LIKE")) == 4


def test_similarity_of_empty_sets_is_zero() -> None:
    assert similarity(frozenset(), frozenset()) == 0
    assert similarity({"ab"}, {"ab", "cd"}) == 0.5


def test_text_without_latin_letters_has_no_tokens() -> None:
    assert not has_focal_tokens(record("日本語だけの記録です。"))
    assert has_focal_tokens(record("日本語 with words"))


@given(st.text(), st.text())
def test_similarity_is_symmetric_and_bounded(first: str, second: str) -> None:
    a, b = frozenset(focal_words(first)), frozenset(focal_words(second))
    assert similarity(a, b) == similarity(b, a)
    assert 0 <= similarity(a, b) <= 1


def test_a_record_is_tokenised_once(monkeypatch) -> None:
    import routeprism.text.focal as focal

    calls = []
    original = focal._runs
    monkeypatch.setattr(focal, "_runs", lambda text: calls.append(text) or original(text))
    item = record("[USER] I love walnut bread")
    for _ in range(3):
        has_focal_tokens(item)
        record_word_counts(item)
        focal_set(item)
        preference_score(item)
    assert len(calls) == 1


@given(st.text(st.sampled_from("aBcdKİé0129' -_.\n\u212a\u0660"), min_size=1).map("x".__add__))
@example("3rd 'tis 12'ab the '' a1 'The 0the it's İstanbul \u212aelvin x2y")
def test_counting_a_record_cuts_as_the_tokeniser_does(text: str) -> None:
    first, second = record(text), record(text)
    expected = Counter(focal_words(first.user_text))
    assert record_focal_counts(first) == expected
    assert record_word_counts(second) == Counter(words(second.user_text))
    assert record_focal_counts(second) == expected  # read from the counts of all words
    assert has_focal_tokens(second) == bool(expected)


@given(st.lists(st.frozensets(st.sampled_from("abcdefgh")), max_size=6))
def test_many_sets_are_compared_as_two_are(sets: list[frozenset[str]]) -> None:
    assert similarities(sets) == [[similarity(first, second) for second in sets] for first in sets]


def test_the_pattern_is_matched_before_letters_are_made_small() -> None:
    """The lower case of `İ` is i with a dot, that of the Kelvin sign is k: neither is published."""
    assert words("xİy abİcd") == ["ab", "cd"]
    assert words("5\u212am to\u212ayo") == ["to", "yo"]
    assert words("ISTANBUL İstanbul") == ["istanbul", "stanbul"]
