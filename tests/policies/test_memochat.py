"""`memochat` as PROTOCOL §5 describes it: windows, names, summaries, ranking, exposure."""

from __future__ import annotations

import math
import zlib
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import routeprism
from routeprism import Audit
from routeprism.errors import SpecError
from routeprism.orders import parse_schedule
from routeprism.policies import make_policy
from routeprism.policies.memochat import (
    MemoChat,
    embedding,
    keywords,
    most_frequent,
    ranked,
    summary_of,
)
from routeprism.records import Record, load_benchmark, only_kinds
from routeprism.routes import trace_case


def record(at: int, text: str, timestamp: str | None = None) -> Record:
    return Record(f"r{at}", at, text, timestamp)


def long(at: int, word: str) -> Record:
    """More words than a buffer holds."""
    return record(at, f"{word} " * 1030)


# --- windows ---------------------------------------------------------------------------------


def test_long_records_overlap_in_windows_of_three() -> None:
    words = ("alpha", "beta", "gamma", "delta", "epsilon")
    memory = MemoChat().build([long(at, word) for at, word in enumerate(words)])
    state = memory.state()
    assert isinstance(state, dict)
    windows = [entry["dialogs"] for entries in state["topics"].values() for entry in entries]
    assert windows == [
        ["r0"],
        ["r0", "r1"],
        ["r0", "r1", "r2"],
        ["r1", "r2", "r3"],
        ["r2", "r3", "r4"],
    ]
    assert state["recent"] == ["r3", "r4"]
    assert memory.retained() == {"r0", "r1", "r2", "r3", "r4"}


def test_short_records_wait_for_the_tenth() -> None:
    nine = [record(at, f"short words number {at}") for at in range(9)]
    waiting = MemoChat().build(nine)
    assert waiting.state() == {"topics": {}, "recent": [f"r{at}" for at in range(9)]}
    exposure = waiting.expose("short?")
    assert [block.kind for block in exposure.blocks] == ["recent-dialog"] * 2
    assert exposure.sources == {"r7", "r8"}
    full = MemoChat().build([*nine, record(9, "short words number 9")])
    state = full.state()
    assert isinstance(state, dict)
    assert state["recent"] == ["r8", "r9"]
    assert list(state["topics"]) == ["memorychunk, short, words"]
    assert full.expose("short?").sources == {f"r{at}" for at in range(10)}


@pytest.mark.parametrize(("words", "summarised"), [(1019, False), (1020, True)])
def test_the_words_of_the_whole_line_count(words: int, summarised: bool) -> None:
    """`MemoryChunk:` is one word and `[Time: None, ID: dialog_000001]` four; 1,024 do not pass."""
    memory = MemoChat().build([record(0, "w " * words)])
    assert bool(memory.state()["topics"]) is summarised  # type: ignore[index, call-overload]


@pytest.mark.parametrize(("words", "summarised"), [(506, False), (507, True)])
def test_so_does_what_joins_two_lines(words: int, summarised: bool) -> None:
    """2 × (words + 5) and one ` ### `."""
    memory = MemoChat().build([record(0, "w " * words), record(1, "w " * (words + 1))])
    assert bool(memory.state()["topics"]) is summarised  # type: ignore[index, call-overload]


# --- texts -----------------------------------------------------------------------------------


def test_a_dialog_has_its_time_and_the_number_of_its_arrival() -> None:
    built = MemoChat().build([record(4, "one"), record(2, "two", "May 3"), record(4, "one")])
    assert [block.text for block in built.expose("?").blocks] == [
        "MemoryChunk: two [Time: May 3, ID: dialog_000002]",
        "MemoryChunk: one [Time: None, ID: dialog_000003]",
    ]
    assert built.retained() == {"r4", "r2"}


def test_keywords_are_ordered_by_count_then_first_occurrence() -> None:
    assert keywords("The cat and a DOG, the dog; bird_1 (cat) ox in it") == ("cat", "dog", "bird_1")
    many = " ".join(f"word{at}" for at in range(20))
    assert keywords(many) == tuple(f"word{at}" for at in range(16))


def test_a_summary_ends_with_a_sentence_or_is_cut() -> None:
    assert summary_of("short") == "short"
    assert summary_of("x" * 320) == "x" * 320
    assert summary_of("x" * 321) == "x" * 317 + "..."
    sentence = "x" * 160 + ". "
    assert summary_of(sentence + "y" * 300) == "x" * 160 + "."
    assert summary_of("x" * 159 + ". " + "y" * 300) == "x" * 159 + ". " + "y" * 156 + "..."
    assert summary_of(sentence + "y" * 100 + ". " + "z" * 300) == sentence + "y" * 100 + "."


def test_the_embedding_counts_words_and_neighbours_in_stable_buckets() -> None:
    expected: Counter[int] = Counter()
    for token, weight in (("red", 1), ("tea", 1), ("red", 1), ("red::tea", 0.5), ("tea::red", 0.5)):
        expected[zlib.crc32(token.encode()) % 1024] += weight  # type: ignore[assignment]
    norm = math.sqrt(sum(value * value for value in expected.values()))
    vector = embedding("Red tea: RED!")
    assert {at: value for at, value in enumerate(vector.tolist()) if value} == pytest.approx(
        {at: value / norm for at, value in expected.items()}
    )
    assert not embedding("…").any()


# --- retrieval -------------------------------------------------------------------------------


def test_a_question_is_shown_the_best_four_topics_and_two_recents() -> None:
    words = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta")
    memory = MemoChat().build([long(at, word) for at, word in enumerate(words)])
    exposure = memory.expose("zeta epsilon")
    kinds = Counter(block.kind for block in exposure.blocks)
    assert kinds == {"topic-summary": 4, "topic-dialog": 4, "recent-dialog": 2}
    # A summary is the beginning of its window, so the topics that begin with a word win.
    assert [sorted(block.sources) for block in exposure.blocks[:2]] == [
        ["r4", "r5", "r6"],
        ["r3", "r4", "r5"],
    ]
    for summary, dialog in zip(exposure.blocks[:4], exposure.blocks[4:8], strict=True):
        assert dialog.sources <= summary.sources
        assert len(dialog.sources) == min(2, len(summary.sources))
    assert exposure.sources == frozenset().union(*(block.sources for block in exposure.blocks))


def test_topics_of_one_name_stand_together_where_the_first_stood() -> None:
    """Equal scores then keep that order: same name, same beginning, so the same text."""
    same = [record(at, "alpha beta gamma " * 400) for at in range(2)]
    alternative = record(2, "delta epsilon zeta " * 2000)
    memory = MemoChat().build([*same, alternative, record(3, "alpha beta gamma " * 4000)])
    state = memory.state()
    assert isinstance(state, dict)
    windows = {name: [e["dialogs"] for e in entries] for name, entries in state["topics"].items()}
    assert windows == {
        "alpha, beta, gamma": [["r0"], ["r0", "r1"], ["r1", "r2", "r3"]],
        "delta, epsilon, zeta": [["r0", "r1", "r2"]],
    }
    exposure = memory.expose("nothing alike")
    assert [sorted(block.sources) for block in exposure.blocks[:4]] == [
        ["r0"],
        ["r0", "r1"],
        ["r1", "r2", "r3"],
        ["r0", "r1", "r2"],
    ]


def test_specs() -> None:
    assert make_policy("memochat").name == "memochat"
    assert make_policy("memochat:k=2,words=100").name == "memochat:k=2,words=100"
    with pytest.raises(SpecError, match="Expected k of 1 or more but got k=0"):
        make_policy("memochat:k=0")


@given(st.permutations(range(6)), st.integers(1, 5))
@settings(max_examples=30)
def test_steps_are_the_build(order: list[int], split: int) -> None:
    policy = MemoChat(words=40, lines=3)
    records = [record(at, f"alpha{at} beta gamma{at % 2} " * 4) for at in order]
    state = policy.start()
    for item in records[:split]:
        state = policy.step(state, item)
    before = policy.finish(state).state()
    for item in records[split:]:
        policy.step(state, item)  # goes on from the same state, which stays as it was
    assert policy.finish(state).state() == before == policy.build(records[:split]).state()
    assert policy.key(state) == policy.key(_folded(policy, records[:split]))
    assert policy.key(state) != policy.key(_folded(policy, records))


def _folded(policy: MemoChat, records: list[Record]) -> object:
    state = policy.start()
    for item in records:
        state = policy.step(state, item)
    return state


def test_events_say_who_was_merged_by_whom() -> None:
    memory = MemoChat(lines=2).build([record(at, f"word{at}") for at in range(2)])
    events = [(e.kind, e.record, e.by, e.at) for e in memory.events()]  # type: ignore[attr-defined]
    assert events == [
        ("add", "r0", "r0", 0),
        ("add", "r1", "r1", 1),
        ("merge", "r0", "r1", 1),
        ("merge", "r1", "r1", 1),
    ]


# --- PersonaMem ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fact_recall(data: Path) -> Audit:
    return routeprism.audit("personamem", "memochat", kinds=["fact-recall"], data=data)


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("quantity", "expected"),
    [
        ("V_changed_count", 2),  # PROTOCOL §5; published on its 63: 1, 63, 0.995
        ("C_changed_count", 146),
        ("I_changed_count", 146),
        ("retained_changed_count", 0),
        ("J", 0.996139),
    ],
)
def test_fact_recall_on_replay(fact_recall: Audit, quantity: str, expected: float) -> None:
    row = fact_recall.value(quantity, policy="memochat", schedule="replay")
    assert row.estimate == pytest.approx(expected, abs=5e-7)
    assert (row.queries, row.units) == (146, 37)


@pytest.mark.realdata
def test_with_the_same_sources_texts_differ_and_not_only_in_their_order(data: Path) -> None:
    """Appendix K.6's stratum: 144 of the 146 pairs here, 62 of the 63 published."""
    benchmark = only_kinds(load_benchmark("personamem", data), ["fact-recall"])
    fixed = contexts = 0
    multisets: Counter[str] = Counter()
    for case in benchmark.cases:
        forward, replay = trace_case(case, [MemoChat()], [parse_schedule("replay")])
        for first, second in zip(forward.exposures, replay.exposures, strict=True):
            if first.sources == second.sources:
                fixed += 1
                contexts += first.context_sha256 != second.context_sha256
                for kind in ("topic-summary", "topic-dialog", "recent-dialog"):
                    texts = [
                        sorted(block.text for block in side.blocks if block.kind == kind)
                        for side in (first, second)
                    ]
                    multisets[kind] += texts[0] != texts[1]
    assert (fixed, contexts) == (144, 144)
    assert multisets == {"topic-summary": 129, "topic-dialog": 144, "recent-dialog": 144}


@given(
    st.lists(st.lists(st.sampled_from("ant bee cow dog elk fox".split())), min_size=1, max_size=4),
    st.integers(1, 7),
)
def test_the_most_frequent_words_of_parts_are_those_of_the_whole(
    parts: list[list[str]], number: int
) -> None:
    """Ties by first occurrence, as a Counter of all words has them."""
    whole = Counter(word for part in parts for word in part)
    expected = tuple(word for word, _ in whole.most_common(number))
    assert most_frequent([ranked(" ".join(part)) for part in parts], number) == expected
