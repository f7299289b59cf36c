"""What the two prompts say, and what the provenance variants add."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

import pytest

from routeprism.errors import InputError, SpecError
from routeprism.policies import Block, Exposure
from routeprism.prompts import Draft, Matched, Provenance, categorical, free_text, match
from routeprism.records import Question

CHOICE = Question("q1", "ann", "Which tea do I like?", ("Green.", "Black.", "None."), "a")
OPEN = Question("q2", "ann", "Which tea do I like?", gold="green tea")
BLOCKS = tuple(
    Block("record", f"[session {position}]\nUser: words {position}", frozenset((f"r{position}",)))
    for position in range(5)
)


def text_of(draft: Draft) -> str:
    matched = match([draft], "none")
    assert isinstance(matched, Matched)
    return matched.prompts[0].text


def test_the_categorical_prompt_is_this() -> None:
    assert text_of(categorical(BLOCKS[:2], CHOICE)) == (
        "You answer questions for a user, with the help of the memory records below, which come "
        "from earlier sessions. Going by these records alone, pick the option that answers the "
        "question best. Reply with one lower-case letter and nothing else. "
        "Valid replies: a, b or c.\n"
        "\n"
        "<memory>\n"
        "records begin\n"
        "[session 0]\n"
        "User: words 0\n"
        "\n"
        "[session 1]\n"
        "User: words 1\n"
        "records end\n"
        "</memory>\n"
        "\n"
        "Question\n"
        "Which tea do I like?\n"
        "\n"
        "Options\n"
        "a) Green.\n"
        "b) Black.\n"
        "c) None.\n"
        "\n"
        "Your answer, one lower-case letter:"
    )


def test_the_free_text_prompt_has_dates_and_wants_personal_facts_from_the_records() -> None:
    draft = free_text(
        BLOCKS[1:3], OPEN, question_date="2023/05/30 (Tue) 22:10", dates={"r1": "2023/05/20"}
    )
    assert "must be found in these records" in draft.instruction
    assert "Only where the user asks for a recommendation" in draft.instruction
    assert text_of(draft).removeprefix(draft.instruction) == (
        "\n\n<memory>\nrecords begin\n"
        "[date 2023/05/20]\n[session 1]\nUser: words 1\n\n[session 2]\nUser: words 2\n"
        "records end\n</memory>\n\n"
        "Question date\n2023/05/30 (Tue) 22:10\n\n"
        "Question\nWhich tea do I like?\n\n"
        "Your answer:"
    )


def test_a_block_of_several_sources_is_shown_under_all_their_dates_in_source_order() -> None:
    block = Block("topic-summary", "Tea.", frozenset(("r2", "r0", "r1")))
    dates = {"r0": "Monday", "r1": "Friday", "r2": "Monday", "r3": "Sunday"}
    assert free_text([block], OPEN, dates=dates).context == "[date Monday, Friday]\nTea."


def test_options_of_a_question_asked_in_words_are_not_shown() -> None:
    draft = free_text("tea", CHOICE)
    assert draft.options == ()
    assert "Black." not in text_of(draft)


def test_text_and_blocks_give_the_same_draft() -> None:
    assert categorical(Exposure(BLOCKS).context, CHOICE) == categorical(BLOCKS, CHOICE)
    assert free_text(Exposure(BLOCKS).context, OPEN) == free_text(BLOCKS, OPEN)


@pytest.mark.parametrize("provenance", ["gated", "neutral", "placebo"])
def test_provenance_adds_one_rule_after_the_memory_field_and_changes_nothing_else(
    provenance: Provenance,
) -> None:
    draft = categorical(BLOCKS, CHOICE, provenance=provenance)
    preserved = categorical(BLOCKS, CHOICE)
    assert preserved.rule == ""
    assert draft.rule
    assert text_of(draft).replace(f"</memory>\n\n{draft.rule}\n\n", "</memory>\n\n") == text_of(
        preserved
    )


def test_the_rules_name_their_index() -> None:
    gated = categorical(BLOCKS, CHOICE, provenance="gated").rule
    neutral = categorical(BLOCKS, CHOICE, provenance="neutral").rule
    placebo = categorical(BLOCKS, CHOICE, provenance="placebo").rule
    assert "higher session number, as its header [session N] shows it" in gated
    assert "Do not infer from their order" in neutral
    assert "number" not in neutral
    assert re.search(r"catalogue numbers, in the order shown: \d(, \d){4}\.", placebo)
    assert "higher catalogue number" in placebo
    assert "session" not in placebo


def catalogue_numbers(blocks: Sequence[Block], user: str) -> list[int]:
    """Read the numbers that the placebo gives to the blocks."""
    rule = categorical(blocks, replace(CHOICE, user=user), provenance="placebo").rule
    numbers = re.search(r"in the order shown: ([\d, ]+)\.", rule)
    assert numbers is not None
    return [int(number) for number in numbers[1].split(", ")]


def test_catalogue_numbers_are_a_permutation_that_follows_the_block_not_its_place() -> None:
    numbers = dict(zip(BLOCKS, catalogue_numbers(BLOCKS, "ann"), strict=True))
    assert sorted(numbers.values()) == [1, 2, 3, 4, 5]
    for permutation in permutations(BLOCKS, 3):
        ranks = catalogue_numbers(permutation, "ann")
        assert sorted(ranks) == [1, 2, 3]
        # Two blocks stand in the same relation whatever is shown beside them.
        assert sorted(permutation, key=numbers.__getitem__) == [
            block
            for _, block in sorted(zip(ranks, permutation, strict=True), key=lambda pair: pair[0])
        ]


def test_catalogue_numbers_do_not_follow_the_benchmark_index() -> None:
    # Over 2,000 users and two records, the later one has the higher number about half the time
    # (expected 1000, standard deviation 22).
    later = sum(
        first < second
        for first, second in (catalogue_numbers(BLOCKS[:2], f"u{u}") for u in range(2000))
    )
    assert 890 < later < 1110


def test_equal_blocks_have_different_numbers() -> None:
    assert sorted(catalogue_numbers((BLOCKS[0], BLOCKS[0]), "ann")) == [1, 2]
    assert "in the order shown: none." in categorical((), CHOICE, provenance="placebo").rule


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: categorical("tea", OPEN), "question 'q2' has no options; ask it with free_text"),
        (
            lambda: categorical("tea", CHOICE, provenance="placebo"),
            "Expected the blocks of an exposure but got their text; the placebo's numbers",
        ),
        (lambda: free_text("tea", OPEN, dates={"r1": "Monday"}), "dates belong to blocks"),
        (lambda: categorical("tea \ud83d", CHOICE), "field 'context': character 4 is half of"),
    ],
)
def test_what_cannot_be_drafted_is_refused(make: object, message: str) -> None:
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        make()  # type: ignore[operator]


def test_an_unknown_provenance_names_the_nearest() -> None:
    with pytest.raises(SpecError, match="Did you mean 'gated'"):
        categorical("tea", CHOICE, provenance="gate")  # type: ignore[arg-type]
