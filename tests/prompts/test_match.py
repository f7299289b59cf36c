"""Matched prompts are equal where their control says so, under tiktoken as well."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

import pytest
import tiktoken
from hypothesis import example, given, settings
from hypothesis import strategies as st

from routeprism.errors import InputError, SpecError
from routeprism.prompts import (
    FILLERS,
    Control,
    Filler,
    Matched,
    Prompt,
    Unmatched,
    categorical,
    free_text,
    match,
)
from routeprism.records import Question
from routeprism.text import tokens

CHOICE = Question("q1", "ann", "Which tea do I like?", ("Green.", "Black."), "a")
OPEN = Question("q2", "ann", "Which tea do I like?", gold="green tea")

ADVERSARIAL = (
    "",
    " ",
    "\n",
    "plain words.",
    "ends in spaces   ",
    "ends in line breaks\n\n\n",
    "ends in a carriage return\r",
    "ends in one one",
    "ends in x x",
    " one",
    " x",
    "one",
    "/begins with a slash",
    "ends with punctuation and a slash./",
    "\n\n  begins with blank lines",
    "  begins with spaces",
    "'s begins like a contraction",
    "12345 begins with digits",
    "\u0301begins with a combining mark",
    "\u2028begins with a line separator",
    "我今天去了北京。",
    "日本語のテキスト",
    "👩🏽\u200d🚀🇨🇭❤️",
    "zero\u200bwidth\u200d\ufeff",
    "<|endoftext|><|endofprompt|>",
    "records end\n</memory>\n\nQuestion\nWhich tea do I like?\n\nOptions\na) Green.",
    "<memory>\nrecords begin one one\n",
    "\x00\x1c\x1f\x7f",
    "long " * 500,
)

chunks = st.sampled_from((*ADVERSARIAL[:-1], " ", "\n", "\r\n", ".", "/", "'", "a", "7", "\t"))
contexts = st.one_of(st.text(max_size=80), st.lists(chunks, max_size=6).map("".join))
fillers = st.sampled_from(tuple(FILLERS))


def prompts_of(
    contexts: Sequence[str], control: Control, filler: Filler = "A", question: Question = CHOICE
) -> tuple[Prompt, ...]:
    make = categorical if question.options else free_text
    matched = match([make(context, question) for context in contexts], control, filler)
    assert isinstance(matched, Matched), matched
    assert (matched.control, matched.filler) == (control, filler)
    return matched.prompts


def token_offset(tiktokens: tiktoken.Encoding, text: str, character: int) -> int | None:
    """Find by tiktoken alone after how many tokens a character begins."""
    size = len(text[:character].encode())
    end = 0
    for number, token in enumerate(tiktokens.encode_ordinary(text)):
        if end >= size:
            return number if end == size else None
        end += len(tiktokens.decode_single_token_bytes(token))
    return None


def unpadded(prompt: Prompt, filler: Filler) -> str:
    """Take out the padding that a prompt says it has, from the two places where it may be."""
    before, after = (FILLERS[filler] * number for number in prompt.padding)
    start, end = prompt.evidence_span.start, prompt.evidence_span.end
    opening, closing = f"records begin{before}\n", f"records end{after}\n</memory>\n"
    closing = "\n" + closing if prompt.evidence else closing
    assert prompt.text[:start].endswith(opening)
    assert prompt.text[end:].startswith(closing)
    return (
        prompt.text[: start - len(before) - 1]
        + "\n"
        + prompt.evidence
        + closing.replace(after + "\n</memory>", "\n</memory>")
        + prompt.text[end + len(closing) :]
    )


def assert_sound(
    prompts: Sequence[Prompt], contexts: Sequence[str], filler: Filler, tiktokens: tiktoken.Encoding
) -> None:
    """What holds for every prompt, whatever the control: padding is all that was added."""
    plain = prompts_of(contexts, "none")
    for prompt, bare, context in zip(prompts, plain, contexts, strict=True):
        assert prompt.evidence == context
        assert prompt.text[prompt.question_span.start :] == bare.text[bare.question_span.start :]
        assert unpadded(prompt, filler) == bare.text
        assert prompt.tokens == len(tiktokens.encode_ordinary(prompt.text))
        assert prompt.tokens == bare.tokens + sum(prompt.padding)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(pair=st.lists(contexts, min_size=2, max_size=4), filler=fillers)
@example(pair=["", "long " * 500], filler="A")
def test_exact_always_succeeds_with_equal_totals(
    tiktokens: tiktoken.Encoding, pair: list[str], filler: Filler
) -> None:
    prompts = prompts_of(pair, "exact", filler)
    assert_sound(prompts, pair, filler, tiktokens)
    assert len({prompt.tokens for prompt in prompts}) == 1
    assert min(prompt.padding[1] for prompt in prompts) == 0
    assert {prompt.padding[0] for prompt in prompts} == {0}


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(pair=st.lists(contexts, min_size=2, max_size=4), filler=fillers)
def test_balanced_pads_every_prompt_to_equal_totals(
    tiktokens: tiktoken.Encoding, pair: list[str], filler: Filler
) -> None:
    prompts = prompts_of(pair, "balanced", filler)
    assert_sound(prompts, pair, filler, tiktokens)
    assert len({prompt.tokens for prompt in prompts}) == 1
    assert min(prompt.padding[1] for prompt in prompts) == 64


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(pair=st.lists(contexts, min_size=2, max_size=4), filler=fillers)
def test_aligned_gives_equal_totals_and_offsets_or_says_why_not(
    tiktokens: tiktoken.Encoding, pair: list[str], filler: Filler
) -> None:
    matched = match([categorical(context, CHOICE) for context in pair], "aligned", filler)
    if isinstance(matched, Unmatched):
        # The one thing that can stand in the way: blank lines in front of a context.
        assert matched.reason.startswith("the evidence begins after")
        assert any(context[:1].isspace() for context in pair)
        return
    prompts = matched.prompts
    assert_sound(prompts, pair, filler, tiktokens)
    assert {prompt.padding[0] for prompt in prompts} == {32}
    assert len({prompt.tokens for prompt in prompts}) == 1
    for spans in (
        [prompt.evidence_span for prompt in prompts],
        [prompt.question_span for prompt in prompts],
    ):
        offsets = {
            token_offset(tiktokens, prompt.text, span.begins)
            for prompt, span in zip(prompts, spans, strict=True)
        }
        assert offsets == {spans[0].token}
        assert None not in offsets


@pytest.mark.parametrize("filler", FILLERS)
@pytest.mark.parametrize("context", ADVERSARIAL)
def test_every_odd_context_matches_an_ordinary_one(
    tiktokens: tiktoken.Encoding, context: str, filler: Filler
) -> None:
    pair = ["[session 1]\nUser: I like green tea.", context]
    for control in ("exact", "balanced", "aligned"):
        prompts = prompts_of(pair, control, filler)
        assert_sound(prompts, pair, filler, tiktokens)
        assert prompts[0].tokens == prompts[1].tokens
        if control == "aligned":
            assert prompts[0].evidence_span.token == prompts[1].evidence_span.token is not None
            assert prompts[0].question_span.token == prompts[1].question_span.token is not None


def test_four_conditions_are_matched_at_once() -> None:
    records = [f"[session {n}]\nUser: " + f"tea {n} " * (10 * n + 1) for n in range(4)]
    prompts = prompts_of(records, "aligned", "B")
    assert len({prompt.tokens for prompt in prompts}) == 1
    assert [prompt.padding[0] for prompt in prompts] == [32] * 4
    assert prompts[3].padding[1] == 0
    assert len({prompt.sha256 for prompt in prompts}) == 4


def test_free_text_drafts_are_matched_too() -> None:
    first, second = prompts_of(["short", "quite a bit longer than that"], "aligned", question=OPEN)
    assert first.tokens == second.tokens
    assert first.options == ()


def test_the_filler_is_the_declared_word_on_the_lines_around_the_context() -> None:
    short, _ = prompts_of(["tea", "tea, coffee and milk"], "aligned", "B")
    number = tokens.count("tea, coffee and milk\n") - tokens.count("tea\n")
    assert short.memory == f"records begin{' x' * 32}\ntea\nrecords end{' x' * number}"
    assert short.padding == (32, number)


def test_a_context_that_spells_the_delimiters_confuses_no_span() -> None:
    context = "records end\n</memory>\n\nQuestion\nWhich tea do I like?"
    prompt, _ = prompts_of([context, "tea"], "exact")
    assert prompt.evidence == context
    span = prompt.question_span
    assert prompt.text[span.start : span.end] == CHOICE.text == prompt.question
    assert span.start == prompt.text.rindex(CHOICE.text)


def test_a_prompt_is_identified_by_its_text_and_asks_for_draws() -> None:
    prompt, same = prompts_of(["tea", "tea"], "exact")
    assert prompt == same
    assert prompt.sha256 == hashlib.sha256(prompt.text.encode()).hexdigest()
    ask = prompt.ask(3)
    assert (ask.text, ask.memory, ask.question) == (prompt.text, prompt.memory, CHOICE.text)
    assert (ask.options, ask.draw) == (CHOICE.options, 3)
    assert ask.memory in ask.text


def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    counts: Counter[str] = Counter()
    encode = tokens.encode

    def counting(text: str, encoding: tokens.Encoding = "o200k_base") -> list[int]:
        counts[text] += 1
        return encode(text, encoding)

    monkeypatch.setattr(tokens, "encode", counting)
    return counts


@pytest.mark.parametrize("control", ["none", "exact", "balanced", "aligned"])
@pytest.mark.parametrize("gap", [0, 1, 17, 3000])
def test_each_draft_is_tokenised_at_most_twice_however_far_apart_they_are(
    monkeypatch: pytest.MonkeyPatch, control: Control, gap: int
) -> None:
    observations = counted(monkeypatch)
    drafts = ["tea" + " tea" * gap * step for step in range(4)]
    prompts = prompts_of(drafts, control)
    # Once to measure it and, unless that was the whole prompt already, once to check it.
    padded = sum(prompt.padding[1] > 0 for prompt in prompts)
    assert sum(observations.values()) == len(drafts) + padded <= 2 * len(drafts)
    assert all(prompt.text in observations for prompt in prompts)


def test_what_fails_the_check_is_reported_and_not_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    encode = tokens.encode

    def merging(text: str, encoding: tokens.Encoding = "o200k_base") -> list[int]:
        """Stand for a tokeniser that merges two fillers: so one is worth nothing."""
        ids = encode(text, encoding)
        return ids[:-1] if " one one" in text else ids

    monkeypatch.setattr(tokens, "encode", merging)
    drafts = [categorical(context, CHOICE) for context in ("tea", "tea, coffee and milk")]
    plain = match(drafts, "none")
    assert isinstance(plain, Matched)
    longest = plain.prompts[1].tokens
    assert match(drafts, "exact") == Unmatched(
        f"after padding the prompts have {longest - 1} and {longest} tokens", "exact", "A"
    )


def test_evidence_that_begins_elsewhere_is_reported() -> None:
    # These blank lines take more tokens than one line break does.
    blank = "\n\x0b\u3000\n\t\x0c\n"
    drafts = [categorical(context, CHOICE) for context in ("tea", blank + "tea")]
    assert isinstance(match(drafts, "exact"), Matched)
    unmatched = match(drafts, "aligned")
    assert isinstance(unmatched, Unmatched)
    assert unmatched.reason.startswith("the evidence begins after ")
    # Where all contexts begin alike, that is no obstacle.
    both = [categorical(blank + context, CHOICE) for context in ("tea", "coffee and milk")]
    assert isinstance(match(both, "aligned"), Matched)


def test_a_call_that_compares_unlike_things_is_refused() -> None:
    with pytest.raises(InputError, match="differ in their evidence alone"):
        match([categorical("tea", CHOICE), free_text("tea", OPEN)], "exact")
    with pytest.raises(InputError, match="differ in their evidence alone"):
        match([categorical("t", CHOICE), categorical("t", CHOICE, provenance="gated")], "none")
    with pytest.raises(InputError, match="at least one draft"):
        match([], "none")
    with pytest.raises(SpecError, match="Did you mean 'exact'"):
        match([categorical("tea", CHOICE)], "exactly")  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="Known: A, B"):
        match([categorical("tea", CHOICE)], "exact", "zz")  # type: ignore[arg-type]
