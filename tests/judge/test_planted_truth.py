"""The memories of the zoo do what they are planted to do: counted from rows, without a verdict."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from routeprism import Case
from routeprism.policies.own import as_policy, closing_memory

from .zoo import ARRIVALS, BY_NAME, ZOO, Planted, audit_once, read_row

NAMES = [pytest.param(p.name, marks=[pytest.mark.slow] if p.slow else []) for p in ZOO]


@pytest.mark.parametrize("name", NAMES)
def test_losses_and_gains_are_those_of_the_plan(name: str) -> None:
    planted = BY_NAME[name]
    result = audit_once(name)
    for side, counts in (("lost", planted.lost), ("gained", planted.gained)):
        for schedule, number in counts.items():
            row = read_row(result, f"evidence.{side}_count", schedule)
            assert row.estimate == number, (side, schedule)


@pytest.mark.parametrize("name", NAMES)
def test_the_depth_follows_from_the_rows(name: str) -> None:
    """The definition, applied to the counts; chance, overlap and missing rows aside."""
    planted = BY_NAME[name]
    if planted.inconclusive or planted.schedules[0] not in ARRIVALS:
        return
    result = audit_once(name)
    depths = []
    for schedule in planted.schedules:
        lost, gained, records, retention, text = (
            read_row(result, quantity, schedule).estimate
            for quantity in (
                "evidence.lost_count",
                "evidence.gained_count",
                "V_changed",
                "retained_changed",
                "C_changed",
            )
        )
        net = read_row(result, "evidence.net", schedule)
        if lost and (not gained or (net.upper is not None and net.upper < 0)):
            depths.append(5)
        elif lost or gained:
            depths.append(4)
        elif records or retention:
            depths.append(3)
        else:
            depths.append(2 if text else 0)
    names = ("stable", "internal only", "text only", "different records")
    depth = (*names, "evidence moves", "evidence lost")[max(depths)]
    truth = {"stable" if level == "internal only" else level for level in planted.depths}
    assert {depth} == truth


def list_lacking(planted: Planted) -> Iterator[tuple[Case, str]]:
    """Name the questions whose evidence a build in source order does not show."""
    policy = as_policy(planted.memory)
    for case in planted.benchmark().cases:
        with closing_memory(policy.build(case.pool.records)) as memory:
            for question in case.questions:
                (evidence,) = question.labels.values()
                if not evidence <= memory.expose(question.text).sources:
                    yield case, question.id


@pytest.mark.parametrize("name", NAMES)
def test_the_baseline_is_that_of_the_plan(name: str) -> None:
    planted = BY_NAME[name]
    if isinstance(planted.memory, str) or "lacking" in planted.open_counts:
        return
    lacking = len(list(list_lacking(planted)))
    assert lacking == planted.baseline.get("lacking", 0)
