"""Gates and comparisons, on two versions of one memory: the last two records, the last three."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

import routeprism
from routeprism.errors import RunError, SpecError
from routeprism.review.comparison import compare_runs
from routeprism.review.gates import check_run, parse_gate
from routeprism.runs import Run, StoredRun


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    base = tmp_path_factory.mktemp("runs")
    for name, policies in (("two", ["recent:k=2", "raw"]), ("three", ["recent:k=3", "raw"])):
        routeprism.audit(
            "sample",
            *policies,
            schedules=["replay"],
            comparators=name == "two",
            resamples=200,
            run=base / name,
        )
    return {name: base / name for name in ("two", "three")}


@pytest.mark.parametrize(
    ("text", "quantity", "limit", "sign", "bound", "where", "baseline"),
    [
        ("J>=0.9", "J", "estimate", ">=", 0.9, {}, False),
        ("J.estimate > 1", "J", "estimate", ">", 1.0, {}, False),
        ("restored-absent.lower<=0.1", "restored-absent", "lower", "<=", 0.1, {}, False),
        ("accuracy.route<-1e-3", "accuracy.route", "estimate", "<", -0.001, {}, False),
        ("J>=baseline", "J", "estimate", ">=", 0.0, {}, True),
        ("J.upper>=baseline-0.02", "J", "upper", ">=", -0.02, {}, True),
        ("arm=:H<=0.2", "H", "estimate", "<=", 0.2, {"arm": ""}, False),
        (
            "policy=focal:cluster=source,survivor=first-arrival,schedule=random:seed=7:J>=0.9",
            *("J", "estimate", ">=", 0.9),
            {"policy": "focal:cluster=source,survivor=first-arrival", "schedule": "random:seed=7"},
            False,
        ),
    ],
)
def test_a_gate_is_read(
    text: str,
    quantity: str,
    limit: str,
    sign: str,
    bound: float,
    where: dict[str, str],
    baseline: bool,
) -> None:
    gate = parse_gate(text)
    assert (gate.quantity, gate.limit, gate.operator) == (quantity, limit, sign)
    assert (gate.bound, gate.where, gate.baseline) == (bound, where, baseline)


@pytest.mark.parametrize("text", ["", "J", "J>=", "J=0.9", ">=0.9", "J>=1.2.3", "J>=high"])
def test_what_is_no_gate_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match="Expected a"):
        parse_gate(text)


def test_an_unknown_column_is_refused_with_the_nearest() -> None:
    with pytest.raises(SpecError, match="Did you mean 'policy'"):
        parse_gate("polcy=focal:J>=0.9")


@pytest.mark.slow
def test_a_gate_speaks_of_every_policy_but_comparators(runs: Mapping[str, Path]) -> None:
    outcome = check_run(runs["two"], ["J>=0.9"])
    assert [(v.row.policy, v.passed) for v in outcome.verdicts] == [
        ("recent:k=2", False),
        ("raw", True),
    ]
    comparator_check = check_run(runs["two"], ["policy=source-order(recent:k=2):J>=1"])
    assert [v.passed for v in comparator_check.verdicts] == [True]


def test_the_sentence_names_the_gate_the_row_and_the_questions(runs: Mapping[str, Path]) -> None:
    failed = check_run(runs["three"], ["policy=recent:k=3:J>=0.16"]).verdicts[0]
    with StoredRun(runs["three"]) as stored:
        (values,) = stored.per_question(
            experiment="routes", policy="recent:k=3", quantity="J"
        ).values()
        below = {q for user in values.values() for q, value in user.items() if value < 0.16}
    assert {question.id for question in failed.questions} == below
    assert failed.sentence.startswith(
        "recent:k=3, replay: policy=recent:k=3:J>=0.16 fails: J is 0.15 ["
    )
    assert f"required >= 0.16. {len(below)} of 165 questions are beyond it: u" in failed.sentence
    assert failed.questions[0].text


def test_limits_of_the_interval_are_gates_too(runs: Mapping[str, Path]) -> None:
    row = check_run(runs["three"], ["policy=recent:k=3:J<=1"]).verdicts[0].row
    assert row.lower is not None and row.upper is not None
    lower, upper = round(row.lower - 1e-3, 6), round(row.upper + 1e-3, 6)
    outcome = check_run(
        runs["three"],
        [f"policy=recent:k=3:J.lower>={lower}", f"policy=recent:k=3:J.upper<={upper}"],
    )
    assert outcome.passed
    assert not check_run(runs["three"], [f"policy=recent:k=3:J.upper<={lower}"]).passed


def test_counts_name_the_questions_that_were_counted(runs: Mapping[str, Path]) -> None:
    verdict = check_run(runs["two"], ["policy=recent:k=2:V_changed_count<=3"]).verdicts[0]
    assert verdict.value == 165 == len(verdict.questions)


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        ("JJ>=0.9", "Did you mean 'J'"),
        ("policy=recent:k=4:J>=0.9", "Did you mean 'recent:k="),
        ("stratum=nothing:J>=0.9", "no J has stratum 'nothing'"),
        ("J>=baseline", "give the run that is the baseline"),
    ],
)
def test_a_gate_without_a_row_is_a_wrong_call(
    runs: Mapping[str, Path], gate: str, message: str
) -> None:
    with pytest.raises(SpecError, match=message):
        check_run(runs["two"], [gate])


@pytest.mark.slow
def test_no_worse_than_a_baseline(runs: Mapping[str, Path], tmp_path: Path) -> None:
    """Three records overlap more and hold more support than two, question by question."""
    for name, policy in (("a", "recent:k=2"), ("b", "recent:k=3")):
        routeprism.audit("sample", policy, schedules=["replay"], resamples=200, run=tmp_path / name)
    better = check_run(tmp_path / "b", [], tmp_path / "a")
    assert [v.gate for v in better.verdicts] == ["J>=baseline", "recall.exposed.route>=baseline"]
    assert better.passed
    worse = check_run(tmp_path / "a", [], tmp_path / "b")
    assert [v.passed for v in worse.verdicts] == [False, False]
    assert f"0.150 in {tmp_path / 'b'}: a change of -0.150" in worse.verdicts[0].sentence
    assert all(question.value < 0 for question in worse.verdicts[0].questions)
    limited = check_run(tmp_path / "a", ["J>=0"], tmp_path / "b")
    assert [v.passed for v in limited.verdicts] == [True, False, False]
    assert check_run(tmp_path / "a", ["J>=baseline-0.2"], tmp_path / "b").passed
    # Of two records of one pool none stays, of three one may: the interval excludes no change.
    assert not check_run(tmp_path / "a", ["J.upper>=baseline"], tmp_path / "b").passed
    with pytest.raises(SpecError, match="its own baseline"):
        check_run(tmp_path / "a", [], tmp_path / "a")


def test_a_comparison_is_paired_by_question(runs: Mapping[str, Path]) -> None:
    comparison = compare_runs(runs["two"], runs["three"], [("recent:k=2", "recent:k=3")])
    (change,) = [
        difference
        for difference in comparison.differences
        if difference.column.quantity == "J" and not difference.column.arm
    ]
    assert (change.before, change.after) == (0, pytest.approx(0.15))
    assert change.difference.value == pytest.approx(change.after - change.before)
    assert (change.difference.queries, change.difference.units) == (165, 30)
    assert change.flags == "synthetic"
    # What recent:k=2 holds recent:k=3 holds, too: no question can lose support.
    assert comparison.support and not any(difference.lost for difference in comparison.support)
    with StoredRun(runs["two"]) as before, StoredRun(runs["three"]) as after:
        for difference in comparison.support[:20]:
            source_sets = [
                stored.exposure(policy, "budget", difference.schedule, difference.question).sources
                for stored, policy in ((before, "recent:k=2"), (after, "recent:k=3"))
            ]
            labels = after.questions()[difference.question].labels[comparison.labels]
            assert set(difference.kept) == (source_sets[1] - source_sets[0]) & labels


def test_policies_are_matched_by_name(runs: Mapping[str, Path]) -> None:
    comparison = compare_runs(runs["two"], runs["three"])
    assert comparison.pairs == (("raw", "raw"),)
    assert all(difference.difference.value == 0 for difference in comparison.differences)
    assert "recent:k=2" in comparison.notes[0] and "recent:k=3" in comparison.notes[0]
    with pytest.raises(SpecError, match="the second run has no policy 'recent:k=2'"):
        compare_runs(runs["two"], runs["three"], [("raw", "recent:k=2")])


def test_other_questions_are_refused_with_the_difference(
    runs: Mapping[str, Path], tmp_path: Path
) -> None:
    with StoredRun(runs["two"]) as stored:
        kind = next(iter(stored.questions().values())).kind
    routeprism.audit("sample", "raw", kinds=[kind], resamples=100, run=tmp_path / "one")
    with pytest.raises(SpecError, match=rf"kinds: \[\] and \[\"{kind}\"\]"):
        compare_runs(runs["two"], tmp_path / "one")


def test_a_run_that_is_not_finished_says_how_to_go_on(tmp_path: Path) -> None:
    with Run.open(tmp_path / "half", {}, inputs={}) as run, run.writing():
        pass
    with pytest.raises(RunError, match="half is not finished; run the same command"):
        check_run(tmp_path / "half", ["J>=0.9"])
    with pytest.raises(RunError, match="contains no run"):
        check_run(tmp_path / "none", ["J>=0.9"])


@pytest.mark.parametrize(
    ("word", "quantity"),
    [
        ("jaccard", "J"),
        ("overlap", "J"),
        ("Jaccard_index", "J"),
        ("jacard", "J"),
        ("recall", "recall.exposed.route"),
        ("recal", "recall.exposed.route"),
        ("recall.retained.rout", "recall.retained.route"),
        ("lostEvidence", "evidence.lost"),
        ("token_count", "context_length.route"),
    ],
)
def test_a_quantity_is_suggested_by_its_meaning(word: str, quantity: str, tmp_path: Path) -> None:
    routeprism.audit(
        "sample", "raw", schedules=["replay"], resamples=100, workers=1, run=tmp_path / "run"
    )
    with pytest.raises(SpecError, match=f"Did you mean '{quantity}'"):
        check_run(tmp_path / "run", [f"{word}>=0.9"])


@pytest.mark.slow
def test_a_gate_on_a_mask_names_the_questions_of_the_mask(tmp_path: Path) -> None:
    # Under replay, `recent:k=2` keeps other records of every pool of the sample than forward.
    masks = {"some": ["u01-q0", "u01-q1", "u02-q0"]}
    run = tmp_path / "run"
    routeprism.audit(
        "sample", "recent:k=2", schedules=["replay"], masks=masks, resamples=100, run=run
    )
    (verdict,) = check_run(run, ["mask=some:V_changed<=0"]).verdicts
    assert verdict.value == 1
    assert {question.id for question in verdict.questions} == set(masks["some"])
    assert "3 of 3 questions are beyond it" in verdict.sentence
    (outside,) = check_run(run, ["mask=outside-some:V_changed<=0"]).verdicts
    assert len(outside.questions) == outside.row.queries == 165 - 3
