"""Windows give the text back, and have the words that the tokeniser finds in their texts."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from routeprism.text import tokens
from routeprism.text.focal import words
from routeprism.text.windows import Windows, cut_windows, token_word_numbers


def read_words(cut: Windows) -> list[list[str]]:
    """Spell the words of each window."""
    token_words = {number: word for word, number in token_word_numbers().items()}
    spelled = iter(
        token_words[number] if number >= 0 else cut.compounds[-1 - number]
        for number in cut.words.tolist()
    )
    windows = [list(islice(spelled, length)) for length in cut.lengths.tolist()]
    assert not list(spelled)
    return windows


def test_windows_hold_so_many_tokens_and_give_the_text_back() -> None:
    text = "The quick brown fox jumps over the lazy dog."
    parts = cut_windows(text, 4).texts
    assert parts == ("The quick brown fox", " jumps over the lazy", " dog.")
    assert [tokens.count(part, "cl100k_base") for part in parts] == [4, 4, 2]
    assert cut_windows("", 4).texts == ()


def test_a_window_that_begins_inside_a_character_takes_the_replacement_character() -> None:
    text = "\U00010400"  # four bytes and no token of its own
    assert tokens.count(text, "cl100k_base") > 1
    assert set("".join(cut_windows(text, 1).texts)) == {"\ufffd"}


def test_a_word_of_several_tokens_is_one_word_within_a_window() -> None:
    text = "He doesn't antidisestablish it"
    assert read_words(cut_windows(text, 100)) == [["he", "doesn't", "antidisestablish", "it"]]
    assert set(cut_windows(text, 100).compounds) == {"doesn't", "antidisestablish"}


PIECES = st.sampled_from(
    ("don't", " The", "x1'", "'", "2024", "fa\u00e7ade", "\u212a", "\u0130", ".\n", "<|endoftext|>")
)
TEXTS = st.lists(st.text(max_size=8) | PIECES, max_size=12).map("".join)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(text=TEXTS, size=st.integers(1, 6))
@example(text="fa\u00e7ade 'caf\u00e9s' 12ab", size=2)
def test_words_are_those_of_the_texts_of_windows(text: str, size: int) -> None:
    cut = cut_windows(text, size)
    assert read_words(cut) == [words(part) for part in cut.texts]
    ids = tokens.encode(text, "cl100k_base")
    lossy = tokens.find_tokenizer("cl100k_base").decode_lossy
    assert cut.texts == tuple(lossy(ids[at : at + size]) for at in range(0, len(ids), size))
