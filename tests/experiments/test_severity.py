"""Severity, cause and remedy of twelve memories with one known fault or none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from routeprism.experiments.repairs import compare_repairs, read_repairs
from routeprism.experiments.severity import decide_verdicts

import routeprism
from routeprism.errors import SpecError
from routeprism.experiments import Audit
from routeprism.policies import Policy, as_policy
from routeprism.policies.remedies import parse_remedy
from routeprism.pytest_plugin import assert_order_stable
from routeprism.records import Benchmark, Record, load_benchmark

from . import order_faults as faults

HOLD = "hold:w=2"
LOG = "log-fallback:k=3"
CAPACITY = "different records, evidence kept"
CASES = [
    (faults.OverwritesByArrival, "evidence lost", "overwritten", HOLD),
    (faults.ShortWindow, "evidence lost", "full", HOLD),
    (faults.MergesIntoFirst, "evidence lost", "merged", HOLD),
    (faults.MergesIntoLongest, "evidence lost", "merged", HOLD),
    (faults.BreaksTiesByArrival, "evidence lost", "tie or ranking", HOLD),
    (faults.ShowsByArrival, "text only", "order of blocks", HOLD),
    (faults.CountsArrivals, "internal only", "state only", None),
    (faults.ForgetsAll, "stable", "never kept", LOG),
    (
        faults.DeduplicatesUpdates,  # which shows no evidence in source order
        "different records, evidence unknown",
        "duplicate",
        LOG,
    ),
    (faults.ResolvesByTime, "stable", None, None),
    (faults.AppendOnly, "stable", None, None),
    (faults.KeepsAtRandom, "chance, order not shown", None, None),
]
ABOUT_UPDATES = (faults.OverwritesByArrival, faults.DeduplicatesUpdates, faults.ResolvesByTime)


def load_part(memory: Any) -> Benchmark:
    """Load a third of the sample, or of the one about updates."""
    whole = load_benchmark("sample-updates" if memory in ABOUT_UPDATES else "sample", None)
    first = 8 if memory is faults.MergesIntoLongest else 0
    return replace(whole, cases=whole.cases[first : first + 8])


def audit(benchmark: Benchmark, memory: Any, **more: Any) -> Audit:
    return routeprism.audit(benchmark, memory, resamples=100, workers=1, **more)


@pytest.mark.parametrize(("memory", "level", "cause", "remedy"), CASES)
def test_severity_and_cause(memory: Any, level: str, cause: str | None, remedy: str | None) -> None:
    builds = {"builds": 3} if memory is faults.KeepsAtRandom else {}
    result = audit(load_part(memory), memory, **builds)
    (verdict,) = decide_verdicts(result.rows)
    assert verdict.ordinary_level == level
    assert verdict.lacks_evidence is (remedy == LOG)
    kinds = [statement.kind for statement in result.statements]
    assert kinds[0] == ("sanity" if remedy == LOG else "source order")
    losses = [loss for f in result.findings if f.name == "losses" for loss in f.value]
    if cause is None:
        assert losses == []
        return
    first = next(s for s in result.statements if s.kind == "causes")
    own = [loss for loss in losses if loss["schedule"] == first.schedule]
    lost = [loss for loss in own if loss["record"]] or own
    assert {loss["cause"] for loss in lost} == set(cause.split(" or "))
    assert all(loss["test"] and loss["builds"] >= 0 for loss in lost if loss["record"])


@pytest.mark.slow
@pytest.mark.parametrize(("memory", "level", "cause", "remedy"), CASES)
def test_the_recommended_remedy_works(
    memory: Any, level: str, cause: str | None, remedy: str | None
) -> None:
    benchmark = load_part(memory)
    remedies = routeprism.remedy(benchmark, memory, resamples=100, workers=1)
    (advice,) = [s for s in remedies.statements if s.kind == "recommendation"]
    if remedy is None:
        assert advice.next_step == ""
        assert str(advice).startswith(f"{memory.__name__}: Recommended: nothing to repair.")
        return
    spec = f"{remedy}({memory.__name__})"
    assert advice.next_step == f"routeprism audit {benchmark.name} --policy '{spec}'"
    repaired = parse_remedy(spec, lambda _: as_policy(memory))
    assert isinstance(repaired, Policy)
    repetition = audit(benchmark, repaired)
    (verdict,) = decide_verdicts(repetition.rows)
    assert not verdict.lacks_evidence
    (recommended,) = remedies.remedies()
    if remedy == HOLD:
        assert verdict.levels["jitter:w=2"] == "stable"
        assert repetition.value("J", schedule="jitter:w=2").estimate == 1
        assert recommended.levels == verdict.levels  # late batch and reversal, as promised
        assert recommended.thorough is not None
        thorough = parse_remedy(recommended.thorough.policy, lambda _: as_policy(memory))
        (whole,) = audit(benchmark, thorough).verdicts
        assert set(whole.levels.values()) == {"stable"}
    else:
        row = repetition.value("all_covered.exposed.forward", schedule="jitter:w=2")
        assert row.estimate == 1


def test_rebuilding_gives_full_overlap_on_every_arrival() -> None:
    result = audit(load_part(faults.ShortWindow), "rebuild(recent:k=3)")
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
    ("memory", "cause", "test"),
    [
        (
            SingleRecord,
            "the memory was full, and 't5' (“city: value number 5”) had to leave",
            "an unrelated record in place of 't4' pushes 't5' out as well",
        ),
        (
            RefusesLate,
            "'t4' (“plan: value number 4”) arrived too late, because 't5' (“city: value number "
            "5”), a newer record, had arrived before",
            "after older records alone, the memory keeps 't4'",
        ),
    ],
)
def test_a_cause_names_record_question_and_arrival(
    memory: Any, cause: str, test: str, tmp_path: Path
) -> None:
    result = audit(write_desk(tmp_path, DAYS), memory)
    texts = [s.text for s in result.statements if s.kind == "causes" and s.schedule != "forward"]
    assert f": {cause}: {test}" in texts[0]
    assert "(tested in 9 of 9 losses). User 'ann', question “Which" in texts[0]


def test_a_memory_that_shows_nothing_gets_no_verdict_about_order(tmp_path: Path) -> None:
    result = audit(write_desk(tmp_path, DAYS), faults.ForgetsAll)
    texts = {statement.kind: statement.text for statement in result.statements}
    assert texts["severity"] == "Nothing is shown, so order has nothing to change"
    assert "Next: check that `add` stores records" in texts["causes"]


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


def test_a_repair_that_loses_evidence_in_source_order_prevents_nothing(tmp_path: Path) -> None:
    """The file is not in event order: rebuilding by time drops what source order shows."""
    days = [*DAYS[:4], "2025-01-01", "2025-01-02"]
    remedies = routeprism.remedy(write_desk(tmp_path, days), LastOfFact, resamples=100, workers=1)
    outcomes = {
        outcome.repair.label: outcome
        for outcome in compare_repairs(remedies.rows, read_repairs(remedies.results))
        if outcome.schedule == "jitter:w=2"
    }
    rebuilt = outcomes["rebuild"]
    assert rebuilt.forfeited == 1
    assert rebuilt.prevented is not None and rebuilt.prevented < 0
    (advice,) = remedies.remedies()
    assert advice.repair is not None and not advice.repair.label.startswith(("rebuild", "check"))


@pytest.mark.slow
def test_a_repair_of_order_is_not_recommended_for_a_lack_of_evidence() -> None:
    """Held records are shown besides what is retrieved, but that is no larger memory."""
    remedies = routeprism.remedy(
        load_part(faults.ShortWindow), "recent:k=1", resamples=100, workers=1
    )
    (advice,) = remedies.remedies()
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
    assert verdict.level == "different records, evidence unknown"
    (sentence,) = [
        str(statement) for statement in result.statements if statement.kind == "severity"
    ]
    assert "and source order shows no evidence that could be lost" in sentence


def test_pools_of_one_record_give_no_all_clear() -> None:
    whole = load_benchmark("sample")
    cases = tuple(
        replace(case, pool=replace(case.pool, records=case.pool.records[:1]), questions=())
        for case in whole.cases[:3]
    )
    questions = [(replace(case.questions[0], labels={}),) for case in whole.cases[:3]]
    single = [replace(case, questions=own) for case, own in zip(cases, questions, strict=True)]
    result = audit(replace(whole, cases=tuple(single), labels=()), "recent:k=2")
    (sentence,) = [
        str(statement) for statement in result.statements if statement.kind == "severity"
    ]
    assert "Every pool has one record and so one order: nothing can be concluded" in sentence
    assert "Order changes nothing" not in str(result)


class Costly(LastOfFact):
    costly = True


@pytest.mark.parametrize(
    ("memory", "cause"),
    [
        (
            LastOfFact,
            "Under reversal: 't2' (“plan: value number 2”) and 't0' (“plan: value number 0”) "
            "overwrote 't4' (“plan: value number 4”): exchanging 't2' and 't0' brings 't4' back; "
            "in the opposite order of the two it is there (tested in 6 of 6 losses).",
        ),
        (
            Costly,
            "Likely cause under reversal: not tested (6 of 6 cases were not tested; testing them "
            "takes about 3 builds × 6 adds each).",
        ),
    ],
)
def test_a_single_schedule_has_a_cause_as_well(memory: Any, cause: str, tmp_path: Path) -> None:
    result = audit(write_desk(tmp_path, DAYS), memory, schedules=["replay"])
    (statement,) = [s for s in result.statements if s.kind == "causes"]
    assert statement.text.startswith(cause)


def test_an_assertion_about_no_evidence_is_refused() -> None:
    with pytest.raises(SpecError, match="empty evidence"):
        assert_order_stable(LastOfFact, [["plan: a", "plan: b"]], evidence=[])
