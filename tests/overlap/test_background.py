"""Records that a memory adds in the background are waited for, in every kind of build."""

from __future__ import annotations

import asyncio
import queue
import threading
import time

import pytest
from overlap_toys import Base, make_records

from routeprism.orders import parse_schedule
from routeprism.overlap import (
    Trial,
    build_by_procedure,
    explore_interleavings,
    list_serial_outcomes,
)
from routeprism.policies.own import as_policy, closing_memory

RECORDS = make_records(4)


class LeavesTasks(Base):
    """Returns from an add before its task has stored the record."""

    def __init__(self) -> None:
        super().__init__()
        self.tasks: set[asyncio.Task[None]] = set()

    async def add(self, record) -> None:
        self.tasks.add(asyncio.create_task(self.store(record)))

    async def store(self, record) -> None:
        await asyncio.sleep(0)
        self.items = (*self.items, record.id)


class LeavesRacingTasks(LeavesTasks):
    async def store(self, record) -> None:
        items = self.items
        await asyncio.sleep(0)
        self.items = (*items, record.id)


class LeavesTimers(LeavesTasks):
    settle = 3

    async def store(self, record) -> None:
        await asyncio.sleep(0.1)
        self.items = (*self.items, record.id)


class Worker(Base):
    """A thread stores each record a moment after its add."""

    concurrent = True
    settle = 3

    def __init__(self) -> None:
        super().__init__()
        self.queue: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self.work, daemon=True).start()

    def add(self, record) -> None:
        self.queue.put(record.id)

    def add_many(self, records) -> None:
        for record in records:
            self.add(record)

    def work(self) -> None:
        while (id := self.queue.get()) is not None:
            time.sleep(0.01)
            self.items = (*self.items, id)

    def close(self) -> None:
        self.queue.put(None)


@pytest.mark.parametrize(
    ("kind", "schedules"),
    [
        (LeavesTasks, ("forward", "twice", "overlap:k=4")),
        (LeavesTimers, ("forward", "twice", "overlap:k=4")),
        (Worker, ("forward", "twice", "bulk", "overlap:k=4")),
    ],
)
def test_a_delay_is_not_a_loss_in_any_build(kind, schedules) -> None:
    for name in schedules:
        schedule = parse_schedule(name)
        arrivals = [RECORDS[position] for position in schedule.order(len(RECORDS))]
        built = build_by_procedure(as_policy(kind), arrivals, schedule.procedure)
        with closing_memory(built) as memory:
            assert memory.retained() == {"r0", "r1", "r2", "r3"}, name


@pytest.mark.parametrize("kind", [LeavesTimers, pytest.param(LeavesTasks, marks=pytest.mark.slow)])
def test_tasks_that_a_write_leaves_behind_are_part_of_the_trial(kind) -> None:
    trial = Trial(as_policy(kind), (), RECORDS[:3])
    serial = list_serial_outcomes(trial)
    assert [outcome.retained for outcome in serial.outcomes] == [("r0", "r1", "r2")]
    exploration = explore_interleavings(trial)
    assert exploration.complete
    assert {serial.classify(execution.outcome) for execution in exploration.executions} == {None}


def test_a_race_between_tasks_that_writes_leave_behind_is_found() -> None:
    trial = Trial(as_policy(LeavesRacingTasks), (), RECORDS[:2])
    serial = list_serial_outcomes(trial)
    executions = explore_interleavings(trial).executions
    kinds = [serial.classify(execution.outcome) for execution in executions]
    assert set(kinds) == {None, "lost"}
    steps = executions[kinds.index("lost")].steps
    assert [step.place for step in steps[-2:]] == ["background", "background"]
