"""The verdict from rows and findings made by hand: 40 questions of 10 users, under reversal."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest

from routeprism.judge import (
    ADVICE,
    ALWAYS_WRONG,
    DEPTHS,
    INCONCLUSIVE,
    MISSING,
    OBSERVED,
    PROMISE_FAILED,
    Baseline,
    Promise,
    Verdict,
    decide_depth,
    differs_by_chance,
    judge,
    list_arms,
    list_asides,
    read_observed,
    read_verdicts,
    scale_depth,
)
from routeprism.runs import EstimateRow, Finding, Rows

from .rows import (
    Values,
    count_evidence,
    make_cause,
    make_group,
    make_results,
    make_row,
    make_rows,
    make_verdict,
)

PROMISE = Promise("torn", 2, 8, "overlap:k=2", "writes a, b")
NO_CHANGE: Values = {"V_changed": 0.0, "V_changed_count": 0.0, "C_changed": 0.0}


# How deep one order reaches.


def test_the_scale_goes_from_the_mildest_to_the_most_severe() -> None:
    assert DEPTHS == (
        "stable",
        "internal only",
        "text only",
        "different records",
        "evidence moves",
        "evidence lost",
        "answers worse",
    )


@pytest.mark.parametrize(
    ("values", "depth"),
    [
        ({}, "stable"),
        ({"states": 0.1}, "internal only"),
        ({"texts": 0.1, "states": 0.1}, "text only"),
        ({"records": 0.1, "texts": 0.1}, "different records"),
        ({"records": 0.1}, "different records"),
    ],
)
def test_what_differs_without_evidence(values: Any, depth: str) -> None:
    assert scale_depth(**values) == depth


@pytest.mark.parametrize(
    ("values", "depth"),
    [
        (NO_CHANGE, "stable"),
        ({"I_changed": 0.1}, "internal only"),
        ({"I_changed": 0.1, "C_changed": 0.1}, "text only"),
        ({"C_changed": 0.1, "V_changed": 0.1}, "different records"),
        ({"C_changed": 0.1, "retained_changed": 0.1}, "different records"),
        ({"V_changed": 0.1, "retained_changed": 0.1}, "different records"),
        ({"V_changed": None, "C_changed": 0.1}, "text only"),
        ({**count_evidence(0, 0), "V_changed": 0.1}, "different records"),
        # One is lost, and nothing is gained: a witnessed loss is a fact.
        (count_evidence(1, 0), "evidence lost"),
        ({**count_evidence(1, 0), "evidence.net": (-0.025, -0.1, 0.05)}, "evidence lost"),
        (count_evidence(0, 1), "evidence moves"),
        (count_evidence(1, 1), "evidence moves"),
        (count_evidence(9, 1), "evidence moves"),
        ({**count_evidence(9, 1), "evidence.net": (-0.2, -0.3, -0.01)}, "evidence lost"),
        ({**count_evidence(9, 1), "evidence.net": (-0.2, -0.3, 0.0)}, "evidence moves"),
        ({**count_evidence(9, 1), "evidence.net": (-0.2, None, None)}, "evidence moves"),
        # 59 of 60 gain and one loses.
        ({**count_evidence(1, 59), "evidence.net": (0.97, 0.9, 1.0)}, "evidence moves"),
    ],
)
def test_the_depth_of_one_order(values: Values, depth: str) -> None:
    assert decide_depth(make_group(values)) == depth


WORSE: Values = {"Delta_rep": (-0.2, -0.3, -0.1)}
BETTER: Values = {"Delta_rep": (0.2, 0.1, 0.3)}


@pytest.mark.parametrize(
    ("answers", "depth"),
    [
        ([WORSE], "answers worse"),
        ([BETTER, WORSE], "answers worse"),  # any model whose answers get worse
        ([{**WORSE, "p_holm.Delta_rep": 0.2}], "evidence lost"),
        ([{"Delta_rep": (-0.2, -0.3, 0.1)}], "evidence lost"),
        ([{"accuracy.route": 0.5}], "evidence lost"),
        # No verdict contradicts a change of accuracy that is shown.
        ([BETTER], "evidence moves"),
        ([{"accuracy.route": 0.5}, BETTER], "evidence moves"),
        ([{**BETTER, "p_holm.Delta_rep": 0.2}], "evidence lost"),
    ],
)
def test_answers_decide_before_evidence(answers: list[Values], depth: str) -> None:
    groups = [make_group(values, model="reader") for values in answers]
    assert decide_depth(make_group(count_evidence(4, 0)), groups) == depth


def test_answers_that_improve_do_not_deepen_what_is_stable() -> None:
    assert decide_depth(make_group(NO_CHANGE), [make_group(BETTER)]) == "stable"
    assert decide_depth(make_group(NO_CHANGE), [make_group(WORSE)]) == "answers worse"


# One memory.


def test_several_orders_combine_by_their_maximum() -> None:
    verdict = make_verdict(
        {"replay": "text only", "late-batch": "evidence moves", "jitter": "stable"}
    )
    assert verdict.depth == verdict.level == "evidence moves"
    assert make_verdict({}).depth == "stable"


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_depth_is_harmful_from_lost_evidence_on(depth: str) -> None:
    verdict = make_verdict(depth)
    assert verdict.is_harmful is verdict.is_red is (depth in ("evidence lost", "answers worse"))
    assert verdict.level == depth


NEVER_KEPT = make_cause("never kept", schedules=("forward",))


@pytest.mark.parametrize(
    ("depth", "more", "level"),
    [
        # A harmful depth comes before everything else.
        ("evidence lost", {"promises": (PROMISE,), "inconclusive": "few"}, "evidence lost"),
        ("evidence lost", {"baseline": Baseline(outdated=1)}, "evidence lost"),
        ("evidence moves", {"promises": (PROMISE,), "inconclusive": "few"}, PROMISE_FAILED),
        ("stable", {"promises": (PROMISE,), "baseline": Baseline(outdated=1)}, PROMISE_FAILED),
        ("stable", {"inconclusive": "few", "baseline": Baseline(outdated=1)}, INCONCLUSIVE),
        ("different records", {"baseline": Baseline(outdated=1)}, ALWAYS_WRONG),
        ("stable", {"causes": (NEVER_KEPT,)}, ALWAYS_WRONG),
    ],
)
def test_the_level_takes_the_most_severe_first(depth: str, more: Any, level: str) -> None:
    assert make_verdict(depth, **more).level == level


@pytest.mark.parametrize(
    ("more", "wrong"),
    [
        ({}, False),
        ({"baseline": Baseline(outdated=1)}, True),
        ({"baseline": Baseline(questions=4, lacking=4, never_kept=4)}, False),  # a capacity
        ({"causes": (make_cause("never kept"),)}, True),
        ({"causes": (make_cause("refused"),)}, True),
        ({"causes": (make_cause("full"), make_cause("not retrievable"))}, True),
        ({"causes": (make_cause("never kept", explained=0),)}, False),  # not tested
        ({"causes": (make_cause("full"), make_cause("overwritten"))}, False),
    ],
)
def test_what_is_wrong_in_every_order(more: Any, wrong: bool) -> None:
    assert make_verdict("text only", **more).is_always_wrong is wrong
    assert make_verdict("text only", **more).is_red is wrong


@pytest.mark.parametrize(
    ("depth", "counts", "level"),
    [
        ("stable", (2, 1), "stable"),  # half of six questions
        ("stable", (2, 2), ALWAYS_WRONG),
        ("different records", (0, 4), ALWAYS_WRONG),
        ("different records", (4, 0), ALWAYS_WRONG),
        ("evidence moves", (2, 2), "evidence moves"),
    ],
)
def test_most_evidence_is_missing_in_every_order(
    depth: str, counts: tuple[int, int], level: str
) -> None:
    never_kept, never_shown = counts
    baseline = Baseline(questions=6, lacking=6, never_kept=never_kept, never_shown=never_shown)
    assert make_verdict(depth, baseline=baseline).level == level


LABELS = count_evidence(0, 0)


@pytest.mark.parametrize(
    ("depth", "values", "more", "severity"),
    [
        ("stable", LABELS, {}, "good"),
        ("internal only", LABELS, {}, "good"),
        ("text only", LABELS, {}, "info"),
        ("different records", LABELS, {}, "info"),
        ("different records", {"V_changed": 0.1}, {}, "warning"),  # lost evidence is not seen
        ("text only", {"V_changed": 0.0}, {}, "info"),
        ("evidence moves", LABELS, {}, "warning"),
        ("evidence lost", LABELS, {}, "problem"),
        ("answers worse", LABELS, {}, "problem"),
        ("evidence lost", LABELS, {"inconclusive": "few"}, "problem"),
        ("stable", LABELS, {"inconclusive": "few"}, "warning"),  # never green
        ("stable", LABELS, {"promises": (PROMISE,)}, "problem"),
        ("stable", LABELS, {"baseline": Baseline(questions=4, lacking=2)}, "good"),
        ("stable", LABELS, {"baseline": Baseline(questions=4, lacking=3)}, "warning"),
        ("stable", LABELS, {"baseline": Baseline(updates=4, outdated=1)}, "problem"),
        (
            "stable",
            LABELS,
            {"inconclusive": "few", "baseline": Baseline(updates=4, outdated=1)},
            "problem",
        ),
    ],
)
def test_the_severity(depth: str, values: Values, more: Any, severity: str) -> None:
    assert make_verdict(depth, values, **more).severity == severity


def test_flags_of_its_numbers_are_read_from_rows_and_answers() -> None:
    rows = {"replay": make_group({"J": 1.0}, flags="few;synthetic")}
    answers = {"replay": make_group({"Delta_rep": 0.0}, flags="scripted")}
    verdict = Verdict("memory", {"replay": "stable"}, rows, answers)
    assert verdict.flags == ("synthetic", "scripted")
    assert make_verdict("stable", {"J": 1.0}).flags == ()


@pytest.mark.parametrize(
    ("replay", "jitter", "decisive"),
    [
        (("evidence lost", count_evidence(1)), ("evidence moves", count_evidence(5, 9)), "replay"),
        (("evidence lost", count_evidence(1)), ("evidence lost", count_evidence(2)), "jitter"),
        # As many lose: the order in which more gain.
        (
            ("evidence moves", count_evidence(2, 3)),
            ("evidence moves", count_evidence(2, 1)),
            "replay",
        ),
        (
            ("evidence moves", count_evidence(1, 9)),
            ("evidence moves", count_evidence(2, 1)),
            "jitter",
        ),
        (
            ("different records", {"V_changed_count": 3.0, "C_changed_count": 3.0}),
            ("different records", {"V_changed_count": 2.0, "C_changed_count": 9.0}),
            "replay",
        ),
        (
            ("text only", {"C_changed_count": 3.0}),
            ("text only", {"C_changed_count": 9.0}),
            "jitter",
        ),
        (("stable", {}), ("stable", {}), "replay"),
    ],
)
def test_the_decisive_order_is_the_deepest_and_then_the_one_that_changes_most(
    replay: Any, jitter: Any, decisive: str
) -> None:
    verdict = make_verdict(
        {"replay": replay[0], "jitter": jitter[0]}, {"replay": replay[1], "jitter": jitter[1]}
    )
    assert verdict.decisive == decisive


def test_counts_are_those_of_the_decisive_order() -> None:
    values = {"replay": count_evidence(1.5, 2), "jitter": count_evidence(3, 0)}
    verdict = make_verdict({"replay": "evidence lost", "jitter": "stable"}, values)
    assert (verdict.lost, verdict.gained, verdict.questions) == (1.5, 2, 40)
    assert verdict.is_labelled
    unlabelled = make_verdict("stable", {"V_changed": 0.0})
    assert (unlabelled.lost, unlabelled.gained, unlabelled.questions) == (0, 0, 40)
    assert not unlabelled.is_labelled
    assert make_verdict("stable", {"replay": {}, "jitter": LABELS}).is_labelled
    assert make_verdict("stable").questions == make_verdict({}).questions == 0
    assert make_verdict({}).decisive == ""


def test_questions_with_labels_are_counted_where_some_have_none() -> None:
    rows = {
        "replay": {
            **make_group({"V_changed": 0.0}, queries=40),
            **make_group({"evidence.lost": 0.0}, queries=12),
        }
    }
    assert Verdict("memory", {"replay": "stable"}, rows).questions == 12


def test_a_verdict_names_its_reference() -> None:
    assert make_verdict().reference == "source order"
    assert make_verdict().base == "in source order"
    restarts = make_verdict({"restart vs bulk": "stable"})
    assert restarts.base == f"under {restarts.reference}"


def test_a_quantity_without_order_is_found_in_any_group() -> None:
    verdict = make_verdict("stable", {"replay": {}, "jitter": {"kept.forward": 0.5}})
    row = verdict.find("kept.forward")
    assert row is not None and row.estimate == 0.5
    assert verdict.find("kept.route") is None


def test_a_verdict_in_json() -> None:
    verdict = make_verdict(
        "evidence moves",
        count_evidence(2, 3),
        promises=(PROMISE,),
        baseline=Baseline(questions=4, lacking=1),
        causes=(make_cause(),),
        repair="rebuild(memory)",
        advice="helps",
        command="routeprism audit",
        is_incomplete=True,
    )
    value = json.loads(json.dumps(verdict.to_json()))
    (promise,) = value.pop("promises")
    assert promise == {
        "promise": "torn",
        "failed": 2,
        "of": 8,
        "schedule": "overlap:k=2",
        "witness": "writes a, b",
    }
    baseline = value.pop("baseline")
    assert (baseline["questions"], baseline["lacking"], baseline["outdated"]) == (4, 1, 0)
    (cause,) = value.pop("causes")
    assert (cause["cause"], cause["tested"], cause["explained"], cause["cases"]) == (
        "overwritten",
        3,
        2,
        5,
    )
    assert value == {
        "policy": "memory",
        "level": "promise failed",
        "depth": "evidence moves",
        "severity": "problem",
        "inconclusive": "",
        "incomplete": True,
        "depths": {"replay": "evidence moves"},
        "lost": 2,
        "gained": 3,
        "questions": 40,
        "repair": "rebuild(memory)",
        "advice": "helps",
        "command": "routeprism audit",
    }
    assert repr(verdict) == "<Verdict on memory: promise failed (incomplete)>"
    assert "promise failed" in str(verdict)


# From rows and findings to verdicts.

SOUND: Values = {
    **NO_CHANGE,
    "retained_changed": 0.0,
    "context_length.forward": 100.0,
    "context_length.route": 100.0,
    "kept.forward": 1.0,
    "kept.route": 1.0,
    **LABELS,
}


def observe(policy: str = "memory", **value: Any) -> Finding:
    return Finding(name=OBSERVED, policy=policy, value=value)


def judge_one(rows: list[EstimateRow], *findings: Finding, incomplete: bool = False) -> Verdict:
    (verdict,) = judge(make_results(rows, *findings, incomplete=incomplete))
    return verdict


def test_a_sound_memory_is_stable_and_good() -> None:
    verdict = judge_one(make_rows(SOUND))
    assert (verdict.policy, verdict.level, verdict.severity) == ("memory", "stable", "good")
    assert (verdict.inconclusive, verdict.is_incomplete, verdict.questions) == ("", False, 40)
    assert set(verdict.rows["replay"]) == set(SOUND)
    assert (verdict.repair, verdict.advice, verdict.command) == ("", "", "")


@pytest.mark.parametrize(
    ("changes", "columns", "observed", "words"),
    [
        ({"count.failed_pairs": 40.0}, {}, {}, "failed on 40 of 80 pairs"),
        ({"count.failed_pairs": 39.0}, {}, {}, ""),
        ({"context_length.forward": 0.0, "context_length.route": 0.0}, {}, {}, "shows nothing"),
        ({"context_length.forward": 0.0}, {}, {}, ""),
        ({"context_length.route": 0.0}, {}, {}, ""),
        ({"kept.forward": 0.0, "kept.route": 0.0}, {}, {}, "keeps no record"),
        ({"kept.forward": 0.0}, {}, {}, ""),
        ({}, {}, {"pools": 3, "single_record_pools": 3}, "one record"),
        ({}, {}, {"pools": 3, "single_record_pools": 2}, ""),
        ({}, {}, {"pools": 1, "single_record_pools": 1}, "one record"),
        ({}, {}, {"pools": 0, "single_record_pools": 0}, ""),
        ({}, {}, {"single_record_pools": 1}, ""),
        ({"C_changed": 0.5}, {}, {"unsourced": 1}, "names no records"),
        ({"C_changed": 0.5}, {}, {"unsourced": 0}, ""),
        ({}, {}, {"unsourced": 1}, ""),  # the text is the same
        ({}, {"queries": 4}, {}, "4 questions cannot show"),
        ({}, {"queries": 1}, {}, "1 question cannot show"),
        ({}, {"queries": 5}, {}, ""),
        ({"V_changed": 0.5}, {"queries": 4}, {}, "4 questions"),
        # What was seen is a fact, however few were asked.
        (count_evidence(0, 1), {"queries": 4}, {}, ""),
        (count_evidence(1, 0), {"queries": 4}, {}, ""),
    ],
)
def test_every_reason_for_no_conclusion(
    changes: Values, columns: Any, observed: Any, words: str
) -> None:
    rows = make_rows({**SOUND, **changes}, **columns)
    verdict = judge_one(rows, observe(**observed))
    assert words in verdict.inconclusive
    assert bool(verdict.inconclusive) is bool(words)


def test_the_most_basic_reason_comes_first() -> None:
    nothing = {"context_length.forward": 0.0, "context_length.route": 0.0, "kept.forward": 0.0}
    rows = make_rows({**SOUND, **nothing, "kept.route": 0.0}, queries=4)
    assert "shows nothing" in judge_one(rows, incomplete=True).inconclusive
    failed = make_row("count.failed_pairs", 4.0)
    assert "failed on 4 of 8 pairs" in judge_one([*rows, failed]).inconclusive


def test_failed_pairs_are_summed_over_orders() -> None:
    """Two orders with 40 pairs each: 79 failures are fewer than what was compared, 80 are not."""
    rows = [*make_rows(SOUND), *make_rows(SOUND, schedule="jitter")]
    failures = [
        make_row("count.failed_pairs", 40.0),
        make_row("count.failed_pairs", 39.0, schedule="jitter"),
    ]
    assert judge_one([*rows, *failures]).inconclusive == ""
    failures[1] = make_row("count.failed_pairs", 40.0, schedule="jitter")
    assert "80 of 160" in judge_one([*rows, *failures]).inconclusive


def test_a_memory_that_cannot_perform_an_order_compares_nothing() -> None:
    verdict = judge_one([make_row("count.not_applicable", 10.0)])
    assert "nothing was compared" in verdict.inconclusive
    assert (verdict.level, verdict.severity) == (INCONCLUSIVE, "warning")


def test_what_is_known_of_some_orders_alone_is_no_doubt() -> None:
    """One order keeps nothing, the other one all; a quantity without rows is not zero."""
    rows = [
        *make_rows({**NO_CHANGE, "kept.forward": 0.0, "kept.route": 0.0}),
        *make_rows({**NO_CHANGE, "kept.route": 0.5}, schedule="jitter"),
    ]
    assert judge_one(rows).inconclusive == ""
    assert judge_one(make_rows(NO_CHANGE)).inconclusive == ""


def test_a_few_questions_in_one_order_are_no_doubt_if_another_has_enough() -> None:
    rows = [*make_rows(SOUND, queries=3), *make_rows(SOUND, schedule="jitter", queries=5)]
    assert judge_one(rows).inconclusive == ""


def test_an_incomplete_run_allows_no_conclusion() -> None:
    verdict = judge_one(make_rows(SOUND), incomplete=True)
    assert (verdict.inconclusive, verdict.is_incomplete) == (MISSING, True)
    assert verdict.severity == "warning"
    verdict = judge_one(make_rows({**SOUND, **count_evidence(3)}), incomplete=True)
    assert verdict.level == "evidence lost"


def test_overlapping_writes_are_not_compared_with_source_order() -> None:
    """Four questions, different records: what counts is whether some serial order fits."""
    columns = {"V_changed": 0.5, "kept.forward": 1.0, "kept.route": 1.0, "anomaly": 0.0}
    rows = make_rows(columns, schedule="overlap:k=2", queries=4)
    verdict = judge_one(rows)
    assert (verdict.depths, verdict.inconclusive, verdict.level) == ({}, "", "stable")
    nothing = make_rows(
        columns | {"kept.forward": 0.0, "kept.route": 0.0}, schedule="overlap:k=2", queries=4
    )
    assert judge_one(nothing).inconclusive == "the memory keeps no record in any order"
    assert "anomaly" in verdict.rows["overlap:k=2"]
    failed = make_row("count.failed_pairs", 4.0, schedule="overlap:k=2")
    assert "4 of 8 pairs" in judge_one([*rows, failed]).inconclusive


CHANCE: Values = {**SOUND, **count_evidence(5), "C_within": 0.2, "D_build": (0.1, -0.1, 0.3)}


@pytest.mark.parametrize(
    ("changes", "observed", "words"),
    [
        ({}, {}, "differ more than builds of the same order"),
        ({"D_build": (0.2, 0.1, 0.3)}, {}, ""),  # order changes more than chance
        ({"D_build": (0.2, 0.1, 0.3), "p_holm.D_build": 0.3}, {}, "differ more than"),
        ({"C_within": 0.0}, {"chance": True}, ""),  # repeated builds never differ
        ({"C_within": 0.0}, {"chance": False}, ""),
    ],
)
def test_chance(changes: Values, observed: Any, words: str) -> None:
    verdict = judge_one(make_rows({**CHANCE, **changes}), observe(**observed))
    assert words in verdict.inconclusive
    assert bool(verdict.inconclusive) is bool(words)
    assert verdict.depth == ("stable" if words else "evidence lost")
    assert verdict.level == (INCONCLUSIVE if words else "evidence lost")


def test_declared_chance_needs_several_builds() -> None:
    rows = make_rows({**SOUND, **count_evidence(5)})
    verdict = judge_one(rows, observe(chance=True))
    assert "--builds 3" in verdict.inconclusive
    assert verdict.depth == "stable"
    assert judge_one(rows, observe(chance=False)).level == "evidence lost"


def test_chance_is_read_of_the_memory_alone() -> None:
    rows = Rows.of(make_rows({"C_within": 0.2}, policy="another"))
    assert not differs_by_chance(rows, "memory", declared=False)
    assert differs_by_chance(rows, "another", declared=False)
    assert differs_by_chance(rows, "memory", declared=True)
    answers = Rows.of(make_rows({"C_within": 0.2}, model="reader"))
    assert not differs_by_chance(answers, "memory", declared=False)
    stratum = Rows.of(make_rows({"C_within": 0.2}, stratum="recent"))
    assert not differs_by_chance(stratum, "memory", declared=False)
    # A difference in one order of several is enough.
    two = [make_row("C_within", 0.0), make_row("C_within", 0.1, schedule="jitter")]
    assert differs_by_chance(Rows.of(two), "memory", declared=False)


def make_answers(unreadable: int, side: str, **columns: Any) -> list[EstimateRow]:
    values = {f"count.no_answer.{side}": unreadable, "Delta_rep": (0.0, -0.1, 0.1)}
    return make_rows(values, **{"model": "reader", "draws": 1, "queries": 16, **columns})


@pytest.mark.parametrize("side", ["forward", "route"])
def test_answers_none_of_which_can_be_read_allow_no_conclusion(side: str) -> None:
    rows = make_rows(SOUND)
    doubt = judge_one([*rows, *make_answers(16, side)]).inconclusive
    assert "none of 16 answers of reader" in doubt
    assert judge_one([*rows, *make_answers(15, side)]).inconclusive == ""
    assert judge_one([*rows, *make_answers(0, side, queries=0)]).inconclusive == ""


def test_the_model_whose_answers_get_worse_is_shown() -> None:
    rows = make_rows(SOUND)
    same = make_rows({"Delta_rep": (0.0, -0.1, 0.1)}, model="first")
    worse = make_rows({"Delta_rep": (-0.2, -0.3, -0.1)}, model="second")
    verdict = judge_one([*rows, *same, *worse])
    assert verdict.level == "answers worse"
    assert verdict.answers["replay"]["Delta_rep"].model == "second"
    verdict = judge_one([*rows, *same])
    assert verdict.answers["replay"]["Delta_rep"].model == "first"
    assert verdict.level == "stable"


# Promises.


def find_anomaly(name: str, trials: int, **value: Any) -> Finding:
    return Finding(
        name=f"anomaly.{name}",
        policy="memory",
        schedule="overlap:k=2",
        value={"trials": trials, "writes": ["a", "b"], **value},
    )


def test_anomalies_are_failed_promises_with_a_witness() -> None:
    rows = [
        *make_rows(SOUND),
        *make_rows({"V_changed": 0.0, "anomaly": 0.5}, schedule="overlap:k=2", queries=8),
    ]
    findings = [
        find_anomaly("stale", 1),
        find_anomaly("torn", 3, steps=["a reads", "b writes"]),
        Finding(
            name="anomaly.lost",
            policy="another",
            schedule="overlap:k=2",
            value={"trials": 1, "writes": []},
        ),
    ]
    verdict = judge_one(rows, *findings)
    assert verdict.promises == (
        Promise("torn", 3, 8, "overlap:k=2", "writes a, b: a reads; b writes"),
        Promise("stale", 1, 8, "overlap:k=2", "writes a, b"),
    )
    assert (verdict.depth, verdict.level, verdict.severity) == ("stable", PROMISE_FAILED, "problem")
    assert verdict.depths == {"replay": "stable"}


def test_the_most_severe_anomaly_comes_first() -> None:
    rows = make_rows({"V_changed": 0.0}, schedule="overlap:k=2")
    names = ("stale", "torn", "duplicated", "lost", "error")
    verdict = judge_one(rows, *(find_anomaly(name, 1) for name in names))
    assert [promise.promise for promise in verdict.promises] == [*names[::-1]]
    assert {promise.of for promise in verdict.promises} == {None}  # no row has the trials


def find_leak(user: str, policy: str = "memory", **more: Any) -> Finding:
    value = {"record": "n3", "owner": "ben", "user": user, "question": "", **more}
    return Finding(name="leaks", policy=policy, value=value, user=user)


def test_a_leak_is_a_failed_promise() -> None:
    verdict = judge_one(make_rows(SOUND), find_leak("ada"), find_leak("cleo"), find_leak("d", "x"))
    (promise,) = verdict.promises
    assert (promise.promise, promise.failed, promise.of, promise.schedule) == (
        "leaked",
        2,
        None,
        "",
    )
    for word in ("n3", "ben", "ada", "retained"):
        assert word in promise.witness
    # One that a question shows is the better example; each counts its routes.
    answer_leak = find_leak("dag", question="Where?", routes=4)
    (promise,) = judge_one(make_rows(SOUND), find_leak("ada"), answer_leak).promises
    assert promise.failed == 5
    assert "dag" in promise.witness and "Where?" in promise.witness
    assert judge_one(make_rows(SOUND), find_leak("d", "x")).promises == ()


# What a run counted, and causes.


def test_the_baseline_is_what_the_run_counted() -> None:
    value = {"questions": 9, "lacking": 2, "updates": 4, "outdated": 3, "data": "own", "pools": 2}
    verdict = judge_one(make_rows(SOUND), observe("another", lacking=9), observe(**value))
    assert verdict.baseline == Baseline(questions=9, lacking=2, updates=4, outdated=3)
    assert (verdict.level, verdict.severity) == (ALWAYS_WRONG, "problem")
    assert judge_one(make_rows(SOUND)).baseline == Baseline(0, 0, 0, 0, 0, 0, 0, 0)


def test_what_a_run_counted_is_found_by_memory() -> None:
    results = make_results([], observe("another", pools=1), observe(pools=2))
    assert read_observed(results, "memory") == {"pools": 2}
    assert read_observed(results, "unknown") == {}


def store_causes(*causes: Any, policy: str = "memory") -> Finding:
    return Finding(name="causes", policy=policy, value=[asdict(cause) for cause in causes])


def test_frequent_causes_come_first_and_what_takes_no_record_last() -> None:
    display = make_cause("order of blocks", record="", explained=9)
    rare = make_cause("full", explained=1)
    usual = make_cause("overwritten", explained=4)
    verdict = judge_one(make_rows(SOUND), store_causes(display, rare, usual))
    assert verdict.causes == (usual, rare, display)
    assert judge_one(make_rows(SOUND), store_causes(usual, policy="another")).causes == ()


def test_untested_cases_are_a_cause_only_where_nothing_was_tested() -> None:
    tested = make_cause("full", explained=1)
    untested = make_cause("untested", explained=0)
    baseline = make_cause("untested", explained=0, schedules=("forward",))
    verdict = judge_one(make_rows(SOUND), store_causes(tested, untested, baseline))
    assert verdict.causes == (tested, baseline)
    verdict = judge_one(make_rows(SOUND), store_causes(untested))
    assert verdict.causes == (untested,)


# Which policies are judged.


def test_repairs_arms_and_source_orders_are_no_subjects() -> None:
    policies = ("memory", "rebuild(memory)", "memory+writes", "source-order(memory)", "other")
    rows = [row for policy in policies for row in make_rows(SOUND, policy=policy)]
    repair = Finding(
        name="repair", policy="rebuild(memory)", value={"memory": "memory", "action": "rebuilding"}
    )
    arms = Finding(
        name="arms", policy="memory", value=[{"policy": "memory"}, {"policy": "memory+writes"}]
    )
    results = make_results(rows, repair, arms)
    assert list_arms(results) == {"memory+writes"}
    assert list_asides(results) == {"memory+writes", "rebuild(memory)"}
    assert [verdict.policy for verdict in judge(results)] == ["memory", "other"]


def test_a_run_of_nothing_but_source_orders_judges_them() -> None:
    rows = make_rows(SOUND, policy="source-order(memory)")
    assert judge_one(rows).policy == "source-order(memory)"


def test_rows_of_an_arm_are_left_out() -> None:
    rows = [*make_rows(SOUND), *make_rows({"V_changed": 1.0, **count_evidence(9)}, arm="writes")]
    assert judge_one(rows).level == "stable"


def test_counts_beside_rows_of_other_strata_are_left_out() -> None:
    rows = [*make_rows(SOUND), make_row("count.failed_pairs", 99.0, stratum="recent")]
    assert judge_one(rows).inconclusive == ""


def test_explored_orders_are_judged_by_what_they_keep() -> None:
    columns = {"experiment": "orders"}
    rows = [
        *make_rows({"order_change": 0.25}, schedule="jitter", **columns),
        *make_rows({"order_change": 0.0, "order_failed": 0.49}, schedule="replay", **columns),
        *make_rows({"order_change": 0.9}, schedule="", **columns),
    ]
    verdict = judge_one(rows)
    assert verdict.depths == {"jitter": "different records", "replay": "stable"}
    assert (verdict.inconclusive, verdict.command, verdict.repair, verdict.advice) == ("",) * 4
    assert not verdict.is_incomplete
    failed = make_row("order_failed", 0.5, schedule="jitter", **columns)
    verdict = judge_one([*rows, failed], incomplete=True)
    assert "error in most orders" in verdict.inconclusive
    assert verdict.is_incomplete


def test_a_run_without_numbers_has_no_verdict() -> None:
    assert judge(make_results([])) == []
    assert judge(make_results([make_row("order_change", 0.5, experiment="another")])) == []


# Repairs that an audit tried, or that were measured.


def test_the_repair_that_an_audit_tried_has_a_command() -> None:
    advice = Finding(
        name=ADVICE, policy="memory", value={"repair": "hold:w=2(memory)", "text": "t"}
    )
    another = Finding(name=ADVICE, policy="another", value={"repair": "no", "text": "no"})
    observation = observe(data="own data", command="routeprism remedy")
    verdict = judge_one(make_rows({**SOUND, **count_evidence(1)}), another, advice, observation)
    assert (verdict.repair, verdict.advice) == ("hold:w=2(memory)", "t")
    assert verdict.command == "routeprism audit 'own data' --policy 'hold:w=2(memory)'"
    verdict = judge_one(make_rows({**SOUND, **count_evidence(1)}), another, observation)
    assert (verdict.repair, verdict.advice, verdict.command) == ("", "", "routeprism remedy")


# A stored run.


class Stored:
    """A stored run with a loss, an anomaly, a leak and a count."""

    missing: tuple[str, ...] = ()

    def estimates(self) -> list[EstimateRow]:
        overlap = make_rows({"V_changed": 0.0, "anomaly": 0.5}, schedule="overlap:k=2", queries=8)
        return [*make_rows({**SOUND, **count_evidence(3)}), *overlap]

    def shortfall(self) -> tuple[str, ...]:
        return self.missing

    def findings(self, experiment: str) -> list[Finding]:
        return {
            "overlap": [find_anomaly("torn", 4)],
            "leaks": [find_leak("ada")],
            "causes": [store_causes(make_cause())],
            OBSERVED: [observe(lacking=2, questions=8)],
            ADVICE: [Finding(name=ADVICE, policy="memory", value={"repair": "r", "text": "t"})],
        }.get(experiment, [])


def test_a_stored_run_is_judged_from_its_rows_and_findings() -> None:
    stored: Any = Stored()
    (verdict,) = read_verdicts(stored)
    assert (verdict.level, verdict.lost, verdict.is_incomplete) == ("evidence lost", 3, False)
    assert [(p.promise, p.failed, p.of) for p in verdict.promises] == [
        ("torn", 4, 8),
        ("leaked", 1, None),
    ]
    assert verdict.baseline.lacking == 2
    assert [cause.cause for cause in verdict.causes] == ["overwritten"]
    assert verdict.repair == "r"
    stored.missing = ("answers",)
    (verdict,) = read_verdicts(stored)
    assert (verdict.inconclusive, verdict.is_incomplete) == (MISSING, True)
