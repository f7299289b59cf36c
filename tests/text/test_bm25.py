"""BM25, against rank_bm25 with its idf table replaced by ours, and against numbers by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from routeprism.text.bm25 import (
    Ranker,
    TermStatistics,
    bm25,
    idf_overlap,
    inverse_frequency,
    order_by_score,
)

WORD = st.sampled_from("ant bee cat dog eel fox gnu hen".split())
DOCUMENTS = st.lists(st.lists(WORD, min_size=1, max_size=12), min_size=1, max_size=6)


def counts(document: list[str]) -> dict[str, int]:
    return {term: document.count(term) for term in document}


@given(DOCUMENTS, st.lists(WORD, max_size=8))
def test_scores_equal_rank_bm25_with_our_idf(documents: list[list[str]], query: list[str]) -> None:
    peer = BM25Okapi(documents, k1=1.5, b=0.75)
    counted = [counts(document) for document in documents]
    statistics = TermStatistics.of(counted)
    peer.idf = {term: statistics.idf(term) for document in documents for term in document}
    ours = bm25(query, counted, [len(document) for document in documents], statistics)
    assert ours == pytest.approx(peer.get_scores(query).tolist(), abs=1e-12)


def test_statistics_may_come_from_a_larger_collection() -> None:
    # Three documents of 2, 4 and 6 tokens (mean 4); "cat" is in two of them. Ranked: the first.
    pool = [
        counts("cat dog".split()),
        counts("cat cat eel fox".split()),
        counts(["gnu"] * 6),
    ]
    statistics = TermStatistics.of(pool)
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    norm = 1 - 0.75 + 0.75 * 2 / 4
    by_hand = idf * (1 * 2.5) / (1 + 1.5 * norm)
    assert bm25(["cat"], pool[:1], [2], statistics) == [pytest.approx(by_hand, abs=1e-15)]
    # Its own statistics would give another number.
    assert bm25(["cat"], pool[:1], [2], TermStatistics.of(pool[:1])) != [pytest.approx(by_hand)]


@given(DOCUMENTS, WORD)
def test_counting_when_asked_gives_the_same_statistics(
    documents: list[list[str]], term: str
) -> None:
    counted = [counts(document) for document in documents]
    whole = TermStatistics.of(counted)
    lazy = TermStatistics.when_asked(counted, [len(document) for document in documents])
    assert (lazy.documents, lazy.mean_length) == (whole.documents, whole.mean_length)
    assert lazy.idf(term) == whole.idf(term)


@pytest.mark.slow
@given(DOCUMENTS, st.lists(WORD, max_size=8))
def test_a_ranker_has_the_statistics_of_its_own_documents(
    documents: list[list[str]], query: list[str]
) -> None:
    counted, lengths = [counts(document) for document in documents], list(map(len, documents))
    expected = bm25(query, counted, lengths, TermStatistics.of(counted))
    assert Ranker(counted, lengths)(query) == expected


def test_repeated_query_terms_count_each_time() -> None:
    document = [counts("cat dog".split())]
    statistics = TermStatistics.of(document)
    once = bm25(["cat"], document, [2], statistics)[0]
    assert bm25(["cat", "cat"], document, [2], statistics)[0] == pytest.approx(2 * once)


def test_idf_is_never_negative() -> None:
    assert inverse_frequency(5, 5) == pytest.approx(math.log(1 + 0.5 / 5.5))
    assert inverse_frequency(5, 5) > 0


def test_ties_have_a_total_order() -> None:
    assert order_by_score([1.0, 2.0, 1.0, 2.0], [7, 9, 3, 8]) == [3, 1, 2, 0]


def test_idf_overlap_sums_distinct_terms() -> None:
    pool = [counts("cat dog".split()), counts("cat".split())]
    statistics = TermStatistics.of(pool)
    expected = [statistics.idf("cat") + statistics.idf("dog"), statistics.idf("cat")]
    assert idf_overlap(["cat", "cat", "dog", "owl"], pool, statistics) == pytest.approx(expected)


def test_an_empty_collection_has_no_mean() -> None:
    assert TermStatistics.of([]) == TermStatistics(0, {}, 0.0)
