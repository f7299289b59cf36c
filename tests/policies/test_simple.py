"""raw, recent, utility and lexical on small pools worked by hand."""

from collections import Counter

import pytest

from routeprism.policies import make_policy
from routeprism.policies.lexical import Lexical
from routeprism.policies.utility import salience
from routeprism.records import Record, load_benchmark
from routeprism.routes import hash_state

POOL = [Record(f"r{at}", at, f"record number {at} about things") for at in range(5)]


def test_raw_keeps_everything_in_arrival_order() -> None:
    memory = make_policy("raw").build(POOL[::-1])
    assert memory.retained() == {"r0", "r1", "r2", "r3", "r4"}
    assert memory.state() == ["r4", "r3", "r2", "r1", "r0"]


def test_recent_keeps_the_last_k_and_tells_who_pushed_whom() -> None:
    memory = make_policy("recent:k=3").build(POOL)
    assert memory.retained() == {"r2", "r3", "r4"}
    evicted = [(e.record, e.by, e.at) for e in memory.events() if e.kind == "evict"]
    assert evicted == [("r0", "r3", 3), ("r1", "r4", 4)]
    assert make_policy("recent:k=9").build(POOL).retained() == {r.id for r in POOL}


def test_salience_counts_different_preference_words() -> None:
    assert salience(Record("r", 0, "I love love love it, and I prefer it")) == 2


def test_utility_keeps_the_most_salient_and_ties_go_to_the_earlier_arrival() -> None:
    low = Record("low", 0, "nothing here")
    item, two = Record("one", 1, "I love it"), Record("two", 2, "I hate it")
    high = Record("high", 3, "I love and hate it")
    keep = make_policy("utility:k=2")
    assert keep.build([low, item, two, high]).retained() == {"one", "high"}
    assert keep.build([high, two, item, low]).retained() == {"two", "high"}


def test_lexical_ties_follow_insertion_order() -> None:
    same = [Record(f"r{at}", at, "oak and ash") for at in range(3)]
    index = Lexical(k=1)
    assert index.build(same).expose("oak").sources == {"r0"}
    assert index.build(same[::-1]).expose("oak").sources == {"r2"}


def test_lexical_state_is_the_index_order() -> None:
    index = Lexical()
    forward, replay = index.build(POOL), index.build(POOL[::-1])
    assert hash_state(forward.state()) != hash_state(replay.state())
    assert sorted(forward.state()["index"]) == sorted(replay.state()["index"])
    assert hash_state(index.build(POOL).state()) == hash_state(forward.state())


def test_lexical_cuts_windows_and_shows_the_best_by_rank() -> None:
    long = Record("long", 0, "filler words go here " * 40 + "the walnut tree " + "then more " * 40)
    short = Record("short", 1, "walnut walnut walnut")
    exposure = Lexical(k=2, window=50).build([long, short]).expose("walnut")
    assert [block.sources for block in exposure.blocks] == [{"short"}, {"long"}]
    assert "walnut" in exposure.blocks[1].text
    assert len(exposure.blocks[1].text) < len(long.text) / 2


def test_lexical_scores_equal_the_shared_bm25() -> None:
    from routeprism.text.bm25 import TermStatistics, bm25
    from routeprism.text.focal import words

    case = load_benchmark("sample").cases[0]
    memory = Lexical(k=1000, window=40).build(case.pool.records)
    documents = [Counter(words(window.block.text)) for window in memory.windows]
    lengths = [document.total() for document in documents]
    for question in case.questions:
        expected = bm25(words(question.text), documents, lengths, TermStatistics.of(documents))
        result = memory.scores(question.text)[memory.places].tolist()
        assert result == pytest.approx(expected, abs=1e-12)
