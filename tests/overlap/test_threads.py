"""Races between threads are found, named and repeated; memories without a race raise no alarm."""

from __future__ import annotations

import threading
import time

import pytest
from overlap_toys import make_records
from thread_toys import (
    Background,
    CheckThenInsert,
    Deadlock,
    DoubleEviction,
    Locked,
    LostUpdate,
    Queued,
    SharedLock,
    Signalled,
    StaleCounter,
    TornWrite,
    ValueCheck,
)

from routeprism.orders import parse_schedule
from routeprism.overlap import (
    Trial,
    build_by_procedure,
    describe_anomaly,
    list_serial_outcomes,
    shrink_anomaly,
)
from routeprism.policies.own import as_policy

SCHEDULES = 50
"""Within how many sampled schedules each race must show."""
SAME = ("the same", "the same", "different")


def make_trial(kind, number=3, *, prior=0, texts=()):
    records = make_records(number + prior, texts)
    return Trial(as_policy(kind), records[:prior], records[prior:])


RACES = [
    (LostUpdate, {}, "lost"),
    (CheckThenInsert, {"texts": SAME}, "duplicated"),
    (TornWrite, {}, "torn"),
    (ValueCheck, {}, "lost"),
    (DoubleEviction, {"prior": 2}, "lost"),
    (StaleCounter, {}, "stale"),
    (Deadlock, {}, "error"),
]
SAFE = [Locked, SharedLock, Signalled, Queued]


@pytest.mark.parametrize(("kind", "options", "expected"), RACES)
def test_a_race_is_found_named_and_repeated(kind, options, expected) -> None:
    trial = make_trial(kind, **options)
    assert trial.manner == "threads"
    serial = list_serial_outcomes(trial)
    executions = [trial.sample(seed) for seed in range(SCHEDULES)]
    kinds = [serial.classify(execution.outcome) for execution in executions]
    assert set(kinds) <= {expected, None}
    seed = kinds.index(expected)
    execution = executions[seed]
    assert execution.controlled
    assert trial.sample(seed) == execution
    assert trial.replay(execution.choices) == execution
    smallest = shrink_anomaly(describe_anomaly(trial, serial, execution, expected, seed))
    assert len(smallest.trial.writes) == 2
    assert smallest.trial.sample(smallest.seed) == smallest.execution
    assert any("stops before" in step for step in smallest.list_steps())


@pytest.mark.parametrize("kind", SAFE)
def test_a_memory_without_a_race_raises_no_alarm(kind) -> None:
    check_schedules(kind, 200)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Locked])
def test_no_false_alarm_in_ten_thousand_schedules(kind) -> None:
    check_schedules(kind, 10_000)


def check_schedules(kind, number) -> None:
    trial = make_trial(kind)
    serial = list_serial_outcomes(trial)
    for seed in range(number):
        execution = trial.sample(seed)
        assert serial.classify(execution.outcome) is None
        assert execution.controlled


def test_a_thread_of_the_memory_itself_is_not_controlled() -> None:
    trial = make_trial(Background)
    serial = list_serial_outcomes(trial)
    executions = [trial.sample(seed) for seed in range(5)]
    assert {serial.classify(execution.outcome) for execution in executions} == {None}
    assert not all(execution.controlled for execution in executions)


def test_writes_can_overlap_without_control() -> None:
    trial = Trial(as_policy(Locked), (), make_records(4), controlled=False)
    serial = list_serial_outcomes(trial)
    execution = trial.sample(0)
    assert not execution.controlled
    assert serial.classify(execution.outcome) is None


def test_a_route_with_overlapping_writes_is_the_same_each_time() -> None:
    schedule = parse_schedule("overlap:k=3")
    states = [
        build_by_procedure(
            as_policy(LostUpdate), make_records(6), schedule.procedure, seed="u"
        ).retained()
        for _ in range(3)
    ]
    assert states[0] == states[1] == states[2]
    assert len(states[0]) < 6


def test_the_locks_of_python_are_put_back() -> None:
    before = threading.Lock, threading.RLock, time.sleep, threading._allocate_lock
    make_trial(Signalled).sample(0)
    assert (threading.Lock, threading.RLock, time.sleep, threading._allocate_lock) == before
