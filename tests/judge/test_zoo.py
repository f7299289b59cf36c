"""Severity, baseline, cause with its intervention, and repair of every memory of the zoo."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from routeprism.policies import Policy, as_policy, make_policy
from routeprism.policies.remedies import parse_remedy

from .zoo import (
    BY_NAME,
    DEPTHS,
    ZOO,
    Planted,
    audit_once,
    is_red,
    measure_total,
    read_count,
)


def name_those(choose: Callable[[Planted], bool] = lambda planted: True) -> list[Any]:
    """Name the memories of the zoo for which something is true, the slow ones marked."""
    return [
        pytest.param(p.name, marks=[pytest.mark.slow] if p.slow else []) for p in ZOO if choose(p)
    ]


def judge(name: str) -> Any:
    """Return the one verdict of a memory's audit."""
    (verdict,) = audit_once(name).verdicts
    return verdict


def list_ids(ids: Any) -> list[str]:
    """List the ids of what displaced a record: one, or several of a joint cause."""
    if not ids:
        return []
    return [ids] if isinstance(ids, str) else list(ids)


@pytest.mark.parametrize("name", name_those())
def test_severity(name: str) -> None:
    planted, verdict = BY_NAME[name], judge(name)
    assert verdict.depth in planted.depths
    assert verdict.level in planted.levels
    assert bool(verdict.inconclusive) is planted.inconclusive
    if planted.red is not None and not planted.inconclusive:
        assert is_red(verdict) is planted.red


@pytest.mark.parametrize("name", name_those())
def test_counts_of_lost_and_gained_fit_the_depth(name: str) -> None:
    planted, verdict = BY_NAME[name], judge(name)
    questions = sum(len(case.questions) for case in planted.benchmark().cases)
    assert 0 <= verdict.lost <= verdict.questions <= questions
    assert 0 <= verdict.gained <= verdict.questions
    if planted.inconclusive or planted.promises:
        return
    assert (verdict.lost > 0 or verdict.gained > 0) is (
        DEPTHS.index(verdict.depth) >= DEPTHS.index("evidence moves")
    )
    if verdict.depth == "evidence lost":
        assert verdict.lost > 0


@pytest.mark.parametrize("name", name_those())
def test_failed_promises_have_a_count_and_a_witness(name: str) -> None:
    planted, verdict = BY_NAME[name], judge(name)
    failed = {promise.promise for promise in verdict.promises if promise.failed}
    assert failed == planted.promises
    for promise in verdict.promises:
        assert 0 <= promise.failed <= promise.of
        assert bool(promise.witness) or not promise.failed


@pytest.mark.parametrize("name", name_those())
def test_baseline(name: str) -> None:
    planted, verdict = BY_NAME[name], judge(name)
    for count in ("lacking", "never_kept", "never_shown", "outdated"):
        if count not in planted.open_counts:
            assert read_count(verdict.baseline, count) == planted.baseline.get(count, 0), count


@pytest.mark.parametrize("name", name_those(lambda planted: bool(planted.causes)))
def test_the_most_frequent_cause(name: str) -> None:
    planted, verdict = BY_NAME[name], judge(name)
    first = verdict.causes[0]
    assert first.cause in planted.causes
    of_records = [cause.explained for cause in verdict.causes if cause.record]
    assert first.explained == max(of_records or [first.explained])
    assert 0 <= first.explained <= first.tested <= first.cases
    if first.cause not in ("untested", "state only", "order of blocks", "rewritten"):
        assert first.tested > 0
    # A cause that a memory cannot have is named nowhere, however rarely.
    never = {"late", "full"} - planted.causes
    assert not never & {cause.cause for cause in verdict.causes}


@pytest.mark.parametrize("name", name_those(lambda planted: planted.displaces is not None))
def test_the_intervention_names_two_records_that_belong_together(name: str) -> None:
    planted, verdict = BY_NAME[name], judge(name)
    assert planted.displaces is not None
    for cause in verdict.causes:
        if cause.cause in planted.causes - {"untested"}:
            lost = planted.find_record(cause.record)
            rivals = [planted.find_record(id) for id in list_ids(cause.by)]
            assert rivals or cause.cause == "late"  # many newer ones, none alone
            assert all(planted.displaces(lost, by) for by in rivals)


@pytest.mark.parametrize("name", name_those(lambda planted: planted.sound))
def test_a_memory_without_a_fault_gets_no_finding(name: str) -> None:
    planted, verdict = BY_NAME[name], judge(name)
    assert verdict.level in planted.depths
    assert not verdict.inconclusive
    assert not [promise for promise in verdict.promises if promise.failed]
    assert list(verdict.causes) == []
    assert not verdict.repair


def apply_repair(planted: Planted, policy: Any, spec: str) -> Policy:
    """Put a repair, which names the memory or not, around it."""
    inner = make_policy(policy) if isinstance(policy, str) else as_policy(policy)
    repaired = parse_remedy(spec if "(" in spec else f"{spec}({inner.name})", lambda _: inner)
    assert repaired is not None, spec
    return repaired


@pytest.mark.parametrize(
    "name", name_those(lambda planted: planted.repair is not None and planted.repair.required)
)
def test_a_memory_that_can_be_repaired_has_a_repair(name: str) -> None:
    verdict = judge(name)
    assert verdict.repair
    assert verdict.command.startswith("routeprism ")


@pytest.mark.slow
@pytest.mark.parametrize("name", name_those(lambda planted: planted.repair is not None))
def test_the_recommended_repair_is_better_in_total(name: str) -> None:
    planted, verdict = BY_NAME[name], judge(name)
    assert planted.repair is not None
    if not verdict.repair:
        assert not planted.repair.required
        return
    with planted.open() as policy:
        repetition = planted.audit(apply_repair(planted, policy, verdict.repair))
    (repaired,) = repetition.verdicts
    assert DEPTHS.index(repaired.depth) <= DEPTHS.index(verdict.depth)
    if planted.promises:  # serial orders may show less than a failed promise does
        assert not [promise for promise in repaired.promises if promise.failed]
        return
    before, after = (
        measure_total(result, planted.schedules) for result in (audit_once(name), repetition)
    )
    assert after[0] >= before[0] - 1e-9  # as many questions with all their evidence
    assert after[1] <= before[1] + 1e-9  # as few that end with an outdated value
    assert after != before or repaired.depth != verdict.depth
    assert read_count(repaired.baseline, "outdated") <= read_count(verdict.baseline, "outdated")
    if planted.repair.required:
        questions = sum(len(case.questions) for case in planted.benchmark().cases)
        assert after == pytest.approx((questions * (1 + len(planted.schedules)), 0))


@pytest.mark.parametrize(
    "name", name_those(lambda planted: planted.repair is not None and bool(planted.repair.never))
)
def test_no_repair_contradicts_the_cause(name: str) -> None:
    planted, verdict = BY_NAME[name], judge(name)
    assert planted.repair is not None
    assert re.split(r"[:(]", verdict.repair)[0] not in planted.repair.never


def list_sentences(result: Any) -> Iterable[str]:
    return (str(statement).lower() for statement in result.statements)


@pytest.mark.parametrize(
    "name",
    [
        "keyed-overwrite",
        "http-overwrite",
        "replaced-by-import",
        "replaced-by-night",
        "soft-delete",
        "soft-delete-unlisted",
        "colliding-slots",
        "similarity-eviction",
    ],
)
def test_no_larger_window_is_advised_where_nothing_was_full(name: str) -> None:
    for sentence in list_sentences(audit_once(name)):
        assert "memory was full" not in sentence
        assert "enlarge the window" not in sentence


@pytest.mark.parametrize(
    "name", name_those(lambda planted: bool(planted.baseline) and planted.repair is not None)
)
def test_nothing_to_repair_is_not_said_where_evidence_lacks(name: str) -> None:
    assert not any("nothing to repair" in sentence for sentence in list_sentences(audit_once(name)))
