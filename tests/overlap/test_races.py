"""Known races are found and named within 50 schedules; memories without a race raise no alarm."""

from __future__ import annotations

import math

import pytest
from overlap_toys import (
    Atomic,
    CheckThenInsert,
    DoubleEviction,
    FailingAdd,
    Locked,
    LockedCheck,
    LostUpdate,
    StaleCounter,
    ThreeAwaits,
    TornWrite,
    ValueCheck,
    make_records,
)

from routeprism.overlap import (
    Trial,
    describe_anomaly,
    explore_interleavings,
    find_overlap,
    list_serial_outcomes,
    shrink_anomaly,
)
from routeprism.policies import make_policy
from routeprism.policies.own import as_policy

SCHEDULES = 50
"""Within how many sampled schedules each race must show."""


def make_trial(kind, number=3, *, prior=0, texts=()):
    records = make_records(number + prior, texts)
    return Trial(as_policy(kind), records[:prior], records[prior:])


RACES = [
    (LostUpdate, {}, "lost"),
    (CheckThenInsert, {"texts": ("the same", "the same", "different")}, "duplicated"),
    (TornWrite, {}, "torn"),
    (ValueCheck, {}, "lost"),
    (DoubleEviction, {"prior": 2}, "lost"),
    (StaleCounter, {}, "stale"),
    (FailingAdd, {}, "error"),
]


@pytest.mark.parametrize(("kind", "options", "expected"), RACES)
def test_a_race_is_found_and_named(kind, options, expected) -> None:
    trial = make_trial(kind, **options)
    serial = list_serial_outcomes(trial)
    assert serial.complete
    kinds = [serial.classify(trial.sample(seed).outcome) for seed in range(SCHEDULES)]
    assert expected in kinds
    assert set(kinds) <= {expected, None}


@pytest.mark.parametrize(("kind", "options", "expected"), RACES)
def test_two_writes_are_enough_and_the_interleaving_can_be_repeated(
    kind, options, expected
) -> None:
    trial = make_trial(kind, **options)
    serial = list_serial_outcomes(trial)
    seed, execution = next(
        (seed, execution)
        for seed in range(SCHEDULES)
        for execution in [trial.sample(seed)]
        if serial.classify(execution.outcome)
    )
    assert trial.sample(seed) == execution
    assert trial.replay(execution.choices) == execution
    smallest = shrink_anomaly(describe_anomaly(trial, serial, execution, expected, seed))
    assert smallest.kind == expected
    assert len(smallest.trial.writes) == 2
    assert smallest.trial.replay(smallest.execution.choices) == smallest.execution
    steps = smallest.list_steps()
    assert steps[0].startswith("1. r")
    assert any("toys.py:" in step for step in steps)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (Atomic, {}),
        (Locked, {}),
        (LockedCheck, {"texts": ("the same", "the same", "different")}),
    ],
)
def test_no_false_alarm_in_ten_thousand_schedules(kind, options) -> None:
    trial = make_trial(kind, **options)
    serial = list_serial_outcomes(trial)
    kinds = {serial.classify(trial.sample(seed).outcome) for seed in range(10_000)}
    assert kinds == {None}


@pytest.mark.slow
def test_pruned_exploration_agrees_with_brute_force(capsys) -> None:
    trial = make_trial(ThreeAwaits)
    pruned = explore_interleavings(trial)
    brute = explore_interleavings(trial, limit=100_000, prune=False)
    # Three adds of four steps each: 12! / (4!)³ interleavings.
    assert brute.performed == math.factorial(12) // math.factorial(4) ** 3 == 34_650
    assert pruned.complete
    assert brute.complete
    assert {e.outcome for e in pruned.executions} == {e.outcome for e in brute.executions}
    assert pruned.performed < brute.performed / 10
    with capsys.disabled():
        print(f"\n{pruned.performed} executions with pruning, {brute.performed} without")


@pytest.mark.parametrize(("kind", "options", "expected"), RACES)
def test_pruning_loses_no_outcome(kind, options, expected) -> None:
    trial = make_trial(kind, 2 if kind is not CheckThenInsert else 3, **options)
    pruned = explore_interleavings(trial)
    brute = explore_interleavings(trial, prune=False)
    assert {str(e.outcome) for e in pruned.executions} == {str(e.outcome) for e in brute.executions}
    assert pruned.performed <= brute.performed


def test_an_exploration_beyond_its_limit_is_not_complete() -> None:
    exploration = explore_interleavings(make_trial(ThreeAwaits), limit=10)
    assert (exploration.performed, exploration.complete) == (10, False)


def test_serial_outcomes_of_merged_states_are_those_of_all_orders() -> None:
    merged = list_serial_outcomes(make_trial(Atomic, 4))
    # Every set of 4 writes is extended by each missing one: 4 · 2³ builds.
    assert (merged.builds, merged.complete) == (32, True)
    assert {outcome.retained for outcome in merged.outcomes} == {("r0", "r1", "r2", "r3")}


def test_of_many_writes_only_sure_losses_count() -> None:
    trial = make_trial(LostUpdate, 8)
    serial = list_serial_outcomes(trial)
    assert not serial.complete
    assert serial.classify(trial.sample(0).outcome) == "lost"
    assert serial.classify(trial.run_in_order(range(8))) is None


def test_a_memory_that_takes_one_write_at_a_time_is_not_applicable() -> None:
    from routeprism.errors import InapplicableError

    with pytest.raises(InapplicableError, match="concurrent = True"):
        find_overlap(make_policy("raw"))
