"""Agreement of two label passes on whether the exposed support of a pair changed."""

from __future__ import annotations

import pytest

import routeprism
from routeprism.labels import with_labels
from routeprism.records import Benchmark, Case, Pool, Question, Record


def benchmark() -> Benchmark:
    """Two users with four records; recent:k=2 shows r2 r3 forward and r0 r1 on replay."""
    cases = []
    for user in ("a", "b"):
        records = tuple(Record(f"{user}{at}", at, f"note {at}") for at in range(4))
        questions = tuple(Question(f"{user}q{at}", user, f"What of {at}?") for at in range(4))
        cases.append(Case(Pool(user, records), questions))
    return Benchmark("tiny", tuple(cases), "0" * 64, interface="all")


def passes(second: dict[str, set[str]]) -> Benchmark:
    first = {f"{user}q{at}": frozenset({f"{user}{at}"}) for user in "ab" for at in range(4)}
    item = with_labels(benchmark(), "audited:one", first)
    return with_labels(item, "audited:two", {key: frozenset(v) for key, v in second.items()})


def test_agreement_and_kappa_by_hand() -> None:
    # Pass one names one record for each question, so support changes in all eight pairs.
    # Pass two says "none" for aq0 and all records for bq3 (r2 r3 against r0 r1: changed), and
    # another record that changes, too, for aq1; bq0 it has not read.
    second = {
        "aq0": set(),
        "aq1": {"a2"},
        "aq2": {"a2"},
        "aq3": {"a3"},
        "bq1": {"b1"},
        "bq2": set(),
        "bq3": {"b0", "b1", "b2", "b3"},
    }
    result = routeprism.audit(
        passes(second), "recent:k=2", "raw", labels="audited:one", resamples=100
    )
    where = {"arm": "support-change", "experiment": "support", "policy": "recent:k=2"}
    row = result.value("agreement", **where)
    assert (row.estimate, row.queries, row.units) == (pytest.approx(5 / 7), 7, 2)
    assert row.labels == "audited:one~audited:two"
    assert result.value("count.changed~changed", **where).estimate == 5
    assert result.value("count.changed~preserved", **where).estimate == 2
    assert result.value("count.preserved~preserved", **where).estimate == 0
    # One pass only says "changed": agreement is what chance gives, and κ is 0.
    assert result.value("kappa", **where).estimate == 0
    # raw exposes everything on both routes: both passes say "preserved", and κ is undefined.
    still = {**where, "policy": "raw"}
    assert result.value("agreement", **still).estimate == 1
    assert result.value("kappa", **still).estimate is None
    assert any(
        "agree on whether the exposed support changed in 0.714" in s for s in result.sentences
    )


def test_kappa_where_both_passes_say_both() -> None:
    # Pass one: preserved for questions it gives no record. Two agreements each, one difference.
    first = {"aq0": {"a0"}, "aq1": {"a1"}, "aq2": set(), "bq0": set(), "bq1": {"b1"}}
    second = {"aq0": {"a3"}, "aq1": {"a1"}, "aq2": set(), "bq0": set(), "bq1": set()}
    loaded = benchmark()
    for name, labels in (("one", first), ("two", second)):
        sets = {key: frozenset(value) for key, value in labels.items()}
        loaded = with_labels(loaded, f"audited:{name}", sets)
    result = routeprism.audit(loaded, "recent:k=2", labels="audited:one", resamples=100)
    # 4 of 5 agree; by chance (3·2 + 2·3)/25 = 12/25; κ = (20 − 12)/(25 − 12).
    assert result.value("agreement", arm="support-change").estimate == pytest.approx(4 / 5)
    assert result.value("kappa", arm="support-change").estimate == pytest.approx(8 / 13)


def test_masks_cut_it_and_one_pass_has_none() -> None:
    second = {f"{user}q{at}": {f"{user}{at}"} for user in "ab" for at in range(4)}
    result = routeprism.audit(
        passes(second),
        "recent:k=2",
        labels="audited:one",
        masks={"few": {"aq0", "bq0"}},
        resamples=100,
    )
    sizes = {
        mask: result.value("agreement", arm="support-change", mask=mask).queries
        for mask in ("", "few", "outside-few")
    }
    assert sizes == {"": 8, "few": 2, "outside-few": 6}
    single = with_labels(benchmark(), "audited:one", {"aq0": frozenset({"a0"})})
    alone = routeprism.audit(single, "recent:k=2", resamples=100)
    assert not [row for row in alone.rows if row.arm == "support-change"]


@pytest.mark.slow
def test_restoration_has_it_too() -> None:
    sample = routeprism.load_benchmark("sample")
    labels = {
        question.id: question.labels["benchmark"]
        for case in sample.cases
        for question in case.questions
        if "benchmark" in question.labels
    }
    for name in ("one", "two"):
        sample = with_labels(sample, f"audited:{name}", labels)
    restoration = routeprism.restore(
        sample, "focal", models=["reader"], labels="audited:two", draws=1, resamples=100
    )
    row = restoration.value("agreement", arm="support-change")
    assert (row.estimate, row.flags) == (1, "synthetic;degenerate")
    assert restoration.value("kappa", arm="support-change").estimate == 1
