"""streaming: what is learned, what is held, and that order decides nothing else."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routeprism.errors import ContractError, SpecError
from routeprism.policies import Incremental, Learned, make_policy
from routeprism.policies.streaming import Predictor, Streaming, fit_predictor
from routeprism.records import Pool, Record, load_benchmark
from routeprism.routes import hash_state
from routeprism.text.focal import focal_set, similarity


def record(at: int, text: str, user: str = "u") -> Record:
    return Record(f"{user}{at}", at, text)


def flat(**weights: float) -> Streaming:
    """A policy whose prediction for a record of one known word is that word's weight."""
    return Streaming(bonus=0, predictor=Predictor(0, {w: (1.0, v) for w, v in weights.items()}, ""))


def test_it_is_learned_and_incremental_and_says_what_it_is_called() -> None:
    policy = make_policy("streaming")
    assert isinstance(policy, Learned)
    assert isinstance(policy, Incremental)
    assert policy.name == "streaming"
    assert make_policy("streaming:k=4,penalty=10").name == "streaming:k=4,penalty=10.0"
    with pytest.raises(SpecError, match="no parameter 'predictor'"):
        make_policy("streaming:predictor=x")
    with pytest.raises(SpecError, match="penalty above 0"):
        make_policy("streaming:penalty=0")


def test_it_does_not_build_unfitted() -> None:
    with pytest.raises(ContractError, match="has to be fitted before it builds"):
        make_policy("streaming").build([record(0, "walnut bread")])


def test_a_ridge_with_a_huge_penalty_predicts_the_mean_overlap() -> None:
    # Overlaps of {oak ash elm}, {oak ash}, {fir}: 2/3, 0, 0 → means 1/3, 1/3, 0; over all 2/9.
    texts = ("oak ash elm", "oak ash", "fir")
    pool = Pool("u", tuple(record(at, text) for at, text in enumerate(texts)))
    result = fit_predictor([pool], penalty=1e9)
    assert result.intercept == pytest.approx(2 / 9, abs=1e-6)
    assert set(result.terms) == {"oak", "ash", "elm", "fir"}
    # scikit-learn's smoothed idf: ln((1 + 3)/(1 + df)) + 1.
    assert result.terms["oak"][0] == pytest.approx(math.log(4 / 3) + 1)
    assert result.terms["fir"][0] == pytest.approx(math.log(4 / 2) + 1)


def test_predictions_are_those_of_scikit_learn() -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import Ridge

    pools = [case.pool for case in load_benchmark("sample").cases[:6]]
    records = [first for pool in pools for first in pool.records]
    targets = []
    for pool in pools:
        for first in pool.records:
            values = [second for second in pool.records if second is not first]
            overlaps = [similarity(focal_set(first), focal_set(second)) for second in values]
            targets.append(sum(overlaps) / len(overlaps))
    result = fit_predictor(pools)
    vectorizer = TfidfVectorizer(
        vocabulary=list(result.terms),
        token_pattern=r"[a-z][a-z0-9']+",  # noqa: S106 (no password)
    )
    features = vectorizer.fit_transform([first.user_text for first in records]).toarray()
    expected = Ridge(solver="cholesky").fit(features, targets).predict(features)
    assert [result.score(first) for first in records] == pytest.approx(expected.tolist(), abs=1e-9)


def test_pools_that_teach_nothing_are_refused() -> None:
    with pytest.raises(SpecError, match="two records or more"):
        fit_predictor([Pool("u", (record(0, "walnut"),))])


def test_it_drops_the_lowest_score_and_never_takes_it_back() -> None:
    policy = flat(oak=0.4, ash=0.3, elm=0.2, fir=0.1)
    oak, ash, elm, fir = (record(at, w) for at, w in enumerate(("oak", "ash", "elm", "fir")))
    memory = policy.build([fir, elm, ash, oak])
    assert memory.retained() == {"u0", "u1", "u2"}
    assert [(e.kind, e.record, e.by, e.at) for e in memory.events()][-1] == ("evict", "u3", "u0", 3)
    repetition = policy.build([fir, elm, ash, oak, fir])
    assert repetition.retained() == memory.retained()
    assert repetition.events()[-1].kind == "skip"


def test_different_tokens_are_worth_their_logarithm() -> None:
    # Equal scores: one record repeats what others say, so the buffer is best without it.
    policy = Streaming(k=2, predictor=Predictor(0.1, {}, ""))
    pool = [record(0, "oak ash"), record(1, "oak ash"), record(2, "elm fir")]
    assert policy.build(pool).retained() == {"u0", "u2"}
    # A score can outweigh it: 0.35·(ln 5 − ln 3) = 0.179 is less than 0.2.
    heavy = Streaming(k=2, predictor=Predictor(0, {"oak": (1, 0.2), "ash": (1, 0.2)}, ""))
    assert heavy.build(pool).retained() == {"u0", "u1"}


def test_of_equals_the_smallest_ids_stay() -> None:
    policy = flat()
    same = [record(at, "oak ash") for at in range(5)]
    for order in itertools.permutations(same):
        assert policy.build(order).retained() == {"u0", "u1", "u2"}


def test_what_was_learned_is_part_of_the_state() -> None:
    cases = load_benchmark("sample").cases
    pool = cases[0].pool
    first = Streaming().fit([case.pool for case in cases[1:11]]).build(pool.records)
    second = Streaming().fit([case.pool for case in cases[11:21]]).build(pool.records)
    repetition = Streaming().fit([case.pool for case in cases[1:11]]).build(pool.records)
    assert first.state()["retained"] == sorted(first.retained())
    assert hash_state(first.state()) == hash_state(repetition.state()) != hash_state(second.state())


CASES = load_benchmark("sample").cases
FITTED = Streaming().fit([case.pool for case in CASES[:20]])


@given(st.sampled_from(CASES[20:]), st.data())
def test_equal_keys_mean_equal_futures(case, data) -> None:
    """Any two orders of the same prefix with the same key end in the same memory."""
    order = data.draw(st.permutations(case.pool.records))
    cut = data.draw(st.integers(1, len(order)))
    second = data.draw(st.permutations(order[:cut]))
    ends = []
    for prefix in (order[:cut], second):
        state = FITTED.start()
        for first in prefix:
            state = FITTED.step(state, first)
        key = FITTED.key(state)
        for first in order[cut:]:
            state = FITTED.step(state, first)
        memory = FITTED.finish(state)
        contexts = [memory.expose(question.text).context for question in case.questions]
        ends.append((key, memory.retained(), hash_state(memory.state()), contexts))
    if ends[0][0] == ends[1][0]:
        assert ends[0][1:] == ends[1][1:]
