"""What a verdict says of causes, repairs and doubts; the truth of many memories is in judge/zoo."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.errors import SpecError
from routeprism.experiments import Audit
from routeprism.judge import list_outcomes
from routeprism.pytest_plugin import assert_order_stable
from routeprism.records import Benchmark, Record, load_benchmark

from . import order_faults as faults


def audit(benchmark: Benchmark, memory: Any, **more: Any) -> Audit:
    return routeprism.audit(benchmark, memory, resamples=100, workers=1, **more)


@pytest.mark.slow
def test_rebuilding_gives_full_overlap_on_every_arrival() -> None:
    sample = load_benchmark("sample")
    result = audit(replace(sample, cases=sample.cases[:8]), "rebuild(recent:k=3)")
    overlaps = result.rows.where(quantity="J", experiment="routes", stratum="all")
    assert [row.schedule for row in overlaps] == ["jitter:w=2", "late-batch", "replay"]
    assert {row.estimate for row in overlaps} == {1.0}


class SingleRecord(faults.AppendOnly):
    """Has room for one record."""

    def add(self, record: Record) -> None:
        self.held = [record]


class RefusesLate(faults.AppendOnly):
    """Discards a record that is older than the newest one it has seen."""

    def add(self, record: Record) -> None:
        if not self.held or record.position > self.held[-1].position:
            self.held.append(record)


def write_desk(directory: Path, days: Sequence[str | None]) -> Benchmark:
    """Write six updates of two facts for each of three users, the last ones with questions."""
    records, questions = [], []
    for user in ("ann", "ben", "eva"):
        for at, day in enumerate(days):
            fact = ("plan", "city")[at % 2]
            record = {"user": user, "id": f"t{at}", "text": f"{fact}: value number {at}"}
            records.append(record | ({"timestamp": day} if day else {}))
        for fact, at in (("plan", len(days) - 2), ("city", len(days) - 1)):
            question = {"user": user, "id": f"{user}-{fact}", "text": f"Which {fact}?"}
            questions.append(question | {"gold": f"value number {at}", "support": [f"t{at}"]})
    for name, lines in (("records", records), ("questions", questions)):
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (directory / f"{name}.jsonl").write_text(text, "utf-8")
    return load_benchmark(str(directory), None)


DAYS = [f"2025-03-0{day}" for day in range(1, 7)]


@pytest.mark.parametrize(
    ("memory", "cause", "record", "by", "test"),
    [
        (
            *(SingleRecord, "full", "t5", "t4"),
            "an unrelated record in place of 't4' pushes 't5' out as well",
        ),
        (*(RefusesLate, "late", "t4", "t5"), "after older records alone, the memory keeps 't4'"),
    ],
)
def test_a_cause_names_record_question_and_arrival(
    memory: Any, cause: str, record: str, by: str, test: str, tmp_path: Path
) -> None:
    """Nine losses: one or two records of three users, under three orders of arrival."""
    result = audit(write_desk(tmp_path, DAYS), memory)
    (verdict,) = result.verdicts
    first = verdict.causes[0]
    assert (first.cause, first.record, first.by, first.user) == (cause, record, (by,), "ann")
    assert first.question == ("ann-city" if record == "t5" else "ann-plan")
    assert first.schedules == ("jitter:w=2", "late-batch", "replay")
    assert (first.tested, first.explained, first.cases) == (9, 9, 9)
    assert first.example.test == test
    (sentence,) = [str(statement) for statement in result.statements if statement.kind == "causes"]
    texts = {"t4": "“plan: value number 4”", "t5": "“city: value number 5”"}
    question = "“Which city?”" if record == "t5" else "“Which plan?”"
    for part in (f"'{record}' ({texts[record]})", f"'{by}'", test, f"'ann', question {question}"):
        assert part in sentence


def test_a_memory_that_shows_nothing_gets_no_verdict_about_order(tmp_path: Path) -> None:
    """Six questions for three users, whose six records each are never kept."""
    result = audit(write_desk(tmp_path, DAYS), faults.ForgetsAll)
    (verdict,) = result.verdicts
    assert (verdict.level, verdict.depth, verdict.severity) == ("inconclusive", "stable", "problem")
    assert verdict.inconclusive == "the memory shows nothing to any question"
    baseline = verdict.baseline
    assert (baseline.records, baseline.kept) == (18, 0)
    assert (baseline.questions, baseline.lacking, baseline.never_kept) == (6, 6, 6)
    assert [cause.cause for cause in verdict.causes] == ["never kept"]
    assert verdict.causes[0].action.startswith("check that `add` stores records")


class LastOfFact(faults.AppendOnly):
    """The last arrival about a fact replaces the earlier one."""

    def add(self, record: Record) -> None:
        fact = record.text.partition(":")[0]
        self.held = [*(r for r in self.held if not r.text.startswith(fact)), record]


@pytest.mark.slow
@pytest.mark.parametrize("days", [DAYS, [None, *DAYS[1:4], None, None], [None] * 6])
def test_missing_timestamps_do_not_turn_a_repair_into_a_loss(
    days: Sequence[str | None], tmp_path: Path
) -> None:
    remedies = routeprism.remedy(write_desk(tmp_path, days), LastOfFact, resamples=100, workers=1)
    for repair in ("hold:w=2", "rebuild", "checkpoint:every=8"):
        row = remedies.value(
            "recall.exposed.route", policy=f"{repair}(LastOfFact)", schedule="jitter:w=2"
        )
        assert row.estimate == 1


def test_a_repair_that_loses_evidence_in_source_order_is_not_recommended(tmp_path: Path) -> None:
    """The file is not in event order: rebuilding by time drops what source order shows."""
    days = [*DAYS[:4], "2025-01-01", "2025-01-02"]
    remedies = routeprism.remedy(write_desk(tmp_path, days), LastOfFact, resamples=100, workers=1)
    unrepaired, *repaired = list_outcomes("LastOfFact", remedies.results)
    outcomes = {outcome.repair.label: outcome for outcome in repaired}
    assert unrepaired.evidence["forward"] == 1
    for label in ("rebuild", "checkpoint:every=8"):
        assert outcomes[label].evidence["forward"] == 0
        assert not outcomes[label].is_never_worse(unrepaired)
    log = outcomes["log-fallback:k=3"]
    assert set(log.evidence.values()) == {1.0}
    (advice,) = remedies.remedies()
    assert advice.repair == log.repair


@pytest.mark.slow
def test_a_repair_of_order_is_not_recommended_for_a_lack_of_evidence() -> None:
    """Held records are shown besides what is retrieved, but that is no larger memory."""
    sample = load_benchmark("sample")
    part = replace(sample, cases=sample.cases[:8])
    (advice,) = routeprism.remedy(part, "recent:k=1", resamples=100, workers=1).remedies()
    assert advice.repair is not None and not advice.repair.only_reorders


def test_where_source_order_shows_no_evidence_none_is_said_to_be_kept() -> None:
    """The support of every question is the first record; the memory keeps the last two."""
    whole = load_benchmark("sample")
    cases = tuple(
        replace(
            case,
            questions=tuple(
                replace(q, labels={whole.labels[0]: frozenset({case.pool.ids[0]})})
                for q in case.questions
            ),
        )
        for case in whole.cases[:6]
    )
    result = audit(replace(whole, cases=cases), "recent:k=2", schedules=["replay"])
    (verdict,) = result.verdicts
    questions = sum(len(case.questions) for case in cases)
    assert verdict.baseline.lacking == verdict.baseline.questions == questions
    # Reversed, the first record is among the last two: evidence is gained, and none was there.
    assert (verdict.level, verdict.lost, verdict.gained) == ("evidence moves", 0, questions)
    assert verdict.severity == "warning"
    text = str(verdict)
    assert f"{questions} of {questions} questions lack evidence in source order already" in text
    assert "No difference" not in text


def test_pools_of_one_record_give_no_all_clear() -> None:
    whole = load_benchmark("sample")
    cases = tuple(
        replace(case, pool=replace(case.pool, records=case.pool.records[:1]), questions=())
        for case in whole.cases[:3]
    )
    questions = [(replace(case.questions[0], labels={}),) for case in whole.cases[:3]]
    single = [replace(case, questions=own) for case, own in zip(cases, questions, strict=True)]
    result = audit(replace(whole, cases=tuple(single), labels=()), "recent:k=2")
    (verdict,) = result.verdicts
    assert (verdict.level, verdict.severity) == ("inconclusive", "warning")
    assert verdict.inconclusive == "every pool has one record and so one order"
    assert "No difference" not in str(result)


class Costly(LastOfFact):
    costly = True


def test_a_single_schedule_has_a_cause_as_well(tmp_path: Path) -> None:
    """Six questions whose record two older ones displace, each of which would be enough."""
    result = audit(write_desk(tmp_path, DAYS), LastOfFact, schedules=["replay"])
    (cause,) = result.verdicts[0].causes
    assert (cause.cause, cause.schedules) == ("overwritten", ("replay",))
    assert (cause.record, cause.by) == ("t4", ("t2", "t0"))
    assert (cause.tested, cause.explained, cause.cases) == (6, 6, 6)
    assert cause.example.test == "exchanging 't2' and 't0' brings 't4' back"


def test_a_costly_memory_has_an_untested_cause_with_the_price_of_testing(tmp_path: Path) -> None:
    result = audit(write_desk(tmp_path, DAYS), Costly, schedules=["replay"])
    (verdict,) = result.verdicts
    (cause,) = verdict.causes
    assert (verdict.level, verdict.repair) == ("evidence lost", "")
    assert (cause.cause, cause.tested, cause.explained, cause.cases) == ("untested", 0, 0, 6)
    assert cause.price == "about 3 builds × 6 adds each"
    assert cause.sentence.startswith("Likely cause under reversal: not tested (6 of 6 cases")
    assert cause.price in cause.sentence


def test_an_assertion_about_no_evidence_is_refused() -> None:
    with pytest.raises(SpecError, match="empty evidence"):
        assert_order_stable(LastOfFact, [["plan: a", "plan: b"]], evidence=[])
