"""The sample with updates: what it promises."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

import routeprism
from routeprism.records import event_order, is_in_event_order, load_benchmark
from routeprism.records.sample_updates import DEFAULT_SEED, generate, load, name_fact

SAMPLE = load()
QUESTIONS = [(case, question) for case in SAMPLE.cases for question in case.questions]


def test_its_size() -> None:
    assert len(SAMPLE.cases) == 24
    assert len(QUESTIONS) == 144
    assert Counter(question.kind for _, question in QUESTIONS) == dict.fromkeys(
        ("current", "previous", "change"), 48
    )
    assert SAMPLE.labels == SAMPLE.updates == ("benchmark",)
    assert SAMPLE.synthetic


def test_chains_have_two_to_four_values_in_equal_numbers() -> None:
    lengths: Counter[int] = Counter()
    for case in SAMPLE.cases:
        facts = Counter(key for record in case.pool.records if (key := name_fact(record)))
        assert len(facts) == 2
        lengths.update(facts.values())
        small_talk = [record for record in case.pool.records if name_fact(record) is None]
        assert len(small_talk) in (2, 3)
    assert lengths == {2: 16, 3: 16, 4: 16}


def test_each_value_supersedes_the_one_before_and_dates_agree() -> None:
    for case in SAMPLE.cases:
        assert event_order(case.pool.records) == tuple(range(len(case.pool)))
        assert is_in_event_order(case.pool.records, case.supersedes)
        chains: dict[str, list[str]] = {}
        for record in case.pool.records:
            if key := name_fact(record):
                chains.setdefault(key, []).append(record.id)
        expected = {
            later: frozenset((earlier,))
            for chain in chains.values()
            for earlier, later in pairwise(chain)
        }
        assert case.supersedes == expected


def test_questions_name_current_and_outdated_evidence_and_answers() -> None:
    texts = {record.id: record.text for case in SAMPLE.cases for record in case.pool.records}
    for _, question in QUESTIONS:
        (current,) = question.labels["benchmark"]
        stale = question.stale["benchmark"]
        options = dict(zip("abcd", question.options, strict=True))
        assert question.gold is not None
        assert options[question.gold] in texts[current]
        assert not question.duplicate_options
        assert question.outdated or question.kind == "previous"
        for letter in question.outdated:
            assert any(options[letter] in texts[item] for item in stale)


def test_a_seed_gives_the_same_sample_and_another_seed_another() -> None:
    assert generate(DEFAULT_SEED) == SAMPLE.cases
    benchmark = load_benchmark("sample-updates:seed=7")
    assert benchmark.fingerprint != SAMPLE.fingerprint
    assert benchmark.cases != SAMPLE.cases


@pytest.mark.slow
def test_the_embedded_reader_solves_it_when_the_current_record_is_shown() -> None:
    """Measured: all 144 questions with the current record, 17 of 144 with the oldest one.

    Of those 17, 16 ask for the previous value of a fact with two values, which the first record
    also names.
    """
    audit = routeprism.audit(
        "sample-updates", "facts:by=arrival", models=["reader:temperature=0"], resamples=100
    )
    values = {
        row.quantity: row.estimate
        for row in audit.rows
        if row.stratum == "all" and row.model and not (row.mask or row.arm)
    }
    assert values["accuracy.forward"] == 1.0
    assert round((values["accuracy.route"] or 0) * 144) == 17
