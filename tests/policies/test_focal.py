"""The focal compactor, against the published pseudocode written out plainly."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routeprism.errors import SpecError
from routeprism.policies import Operational, SourceOrder, fold, make_policy
from routeprism.policies.focal import Focal, cluster_records, count_ties
from routeprism.records import Record, load_benchmark
from routeprism.text.focal import focal_set, preference_score, similarity

SAMPLE = load_benchmark("sample")
POOLS = [case.pool.records for case in SAMPLE.cases]


def pseudocode(order: list[Record], threshold: float) -> list[list[Record]]:
    """Appendix D.4, line by line."""
    clusters: list[list[Record]] = []
    for record in order:
        k, best = None, 0.0
        for j, cluster in enumerate(clusters):
            rep = max(cluster, key=preference_score)  # max gives the first maximum
            score = similarity(focal_set(record), focal_set(rep))
            if score > best:
                k, best = j, score
        if k is None or best < threshold:
            clusters.append([record])
        else:
            clusters[k].append(record)
    return clusters


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from("like mill pond oak elm ash".split())), min_size=14),
    st.sampled_from([0.0, 0.055, 0.3, 1.0]),
)
def test_a_build_is_the_fold_of_its_arrivals(spoken: list[list[str]], threshold: float) -> None:
    # From 16 records on, all of them are compared at once.
    def fresh() -> list[Record]:
        return [Record(f"r{at}", at, " ".join(["-", *text])) for at, text in enumerate(spoken)]

    policy = Focal(threshold=threshold)
    for order in (fresh(), fresh()[::-1]):
        assert policy.build(order).state() == fold(policy, order).state()
        clusters = [list(cluster.members) for cluster in cluster_records(order, threshold)]
        assert clusters == pseudocode(order, threshold)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_clusters_and_survivors_are_the_pseudocodes(data: st.DataObject) -> None:
    pool = data.draw(st.sampled_from(POOLS))
    order = data.draw(st.permutations(pool))
    threshold = data.draw(st.sampled_from([0.0, 0.025, 0.055, 0.1, 0.3]))
    expected = pseudocode(order, threshold)
    assert [list(c.members) for c in cluster_records(order, threshold)] == expected
    at = {record.id: place for place, record in enumerate(order)}
    for rule, key in (
        ("last-arrival", lambda r: at[r.id]),
        ("first-arrival", lambda r: -at[r.id]),
        ("source-position", lambda r: r.position),
    ):
        retained_ids = Focal(threshold=threshold, survivor=rule).build(order).retained()
        assert retained_ids == {max(cluster, key=key).id for cluster in expected}


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_canonical_arm_is_the_comparator(data: st.DataObject) -> None:
    pool = data.draw(st.sampled_from(POOLS))
    order = data.draw(st.permutations(pool))
    focal = Focal()
    canonical = focal.fixed("clustering").fixed("survivor")
    assert canonical.build(order).retained() == SourceOrder(focal).build(order).retained()
    assert canonical.build(order).retained() == focal.build(pool).retained()


def test_operations_are_those_that_still_follow_arrival() -> None:
    focal = Focal()
    assert isinstance(focal, Operational)
    assert focal.operations == ("clustering", "survivor")
    assert focal.fixed("clustering").operations == ("survivor",)
    assert focal.fixed("survivor").name == "focal:survivor=source-position"
    assert focal.fixed("survivor").fixed("clustering").operations == ()
    with pytest.raises(SpecError, match="Did you mean 'survivor'"):
        focal.fixed("survivors")


def test_a_new_representative_must_score_strictly_higher() -> None:
    words = "walnut bread oven kitchen morning"
    first = Record("a", 0, f"{words} love")
    second = Record("b", 1, f"{words} like")
    third = Record("c", 2, f"{words} love like")
    (cluster,) = cluster_records([first, second, third], 0.055)
    assert cluster.representative == third
    (cluster,) = cluster_records([first, second], 0.055)
    assert cluster.representative == first


def test_ties_are_counted_by_hand() -> None:
    # a and b share a cluster and a score, so comparing c meets one representative tie; c has the
    # same overlap with nothing else.
    words = "walnut bread oven kitchen morning"
    a, b = Record("a", 0, f"{words} love"), Record("b", 1, f"{words} like")
    c = Record("c", 2, words)
    ties = count_ties([a, b, c])
    assert (ties.representative, ties.assignment) == (1, 0)
    # x and y are apart; z overlaps both equally.
    x, y = Record("x", 0, "apple pear plum fig"), Record("y", 1, "oak elm ash yew")
    z = Record("z", 2, "apple pear oak elm")
    assert count_ties([x, y, z]).assignment == 1


def test_records_without_tokens_stay_alone() -> None:
    records = [Record("a", 0, "日本語"), Record("b", 1, "日本語")]
    assert Focal().build(records).retained() == {"a", "b"}
    assert Focal().unseen(records[0])


def test_events_tell_what_each_arrival_did() -> None:
    words = "walnut bread oven kitchen morning"
    a, b = Record("a", 0, words), Record("b", 1, words)
    alternative = Record("c", 2, "oak elm ash yew")
    reports = [(e.kind, e.record, e.by) for e in Focal().build([a, alternative, b]).events()]
    assert reports == [
        ("add", "a", "a"),
        ("add", "c", "c"),
        ("merge", "b", "b"),
        ("overwrite", "a", "b"),
    ]
    first = Focal(survivor="first-arrival").build([a, alternative, b]).events()
    assert [(e.kind, e.record) for e in first][-1] == ("skip", "b")


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_equal_keys_promise_equal_futures(data: st.DataObject) -> None:
    """For every policy with states: merge what shares a key, then finish in every later order."""
    spec = data.draw(
        st.sampled_from(
            [
                "focal",
                "focal:survivor=first-arrival",
                "focal:survivor=source-position",
                "focal:cluster=source",
                "focal:cluster=source,survivor=source-position",
                "recent:k=2",
                "utility:k=2",
                "raw",
            ]
        )
    )
    policy = make_policy(spec)
    pool = data.draw(st.sampled_from(POOLS))[:5]
    early, late = pool[:3], pool[3:]
    states: dict[object, list[object]] = {}
    for order in itertools.permutations(early):
        state = policy.start()
        for record in order:
            state = policy.step(state, record)
        states.setdefault(policy.key(state), []).append(state)
    for alike in states.values():
        for rest in itertools.permutations(late):
            ends = set()
            for state in alike:
                for record in rest:
                    state = policy.step(state, record)
                memory = policy.finish(state)
                ends.add((memory.retained(), memory.expose("Where is it?")))
            assert len(ends) == 1


def test_bad_parameters_are_refused() -> None:
    with pytest.raises(SpecError, match="Expected a threshold from 0 to 1"):
        make_policy("focal:threshold=2")
    with pytest.raises(SpecError, match="Expected one of last-arrival, first-arrival"):
        make_policy("focal:survivor=last")
    with pytest.raises(SpecError, match="Expected a number but got threshold=high"):
        make_policy("focal:threshold=high")
