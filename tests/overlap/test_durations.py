"""A request may take any time: what really happens is explored, and nothing that cannot happen."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import types
from contextlib import asynccontextmanager

import durations_catalogue
import pytest
from durations_catalogue import RACING, SAFE, STEPPING, Polling, RequestBefore, Yielding
from overlap_toys import Base, make_records

from routeprism.overlap import (
    Outcome,
    Trial,
    describe_anomaly,
    explore_interleavings,
    find_simplest,
    list_serial_outcomes,
    shrink_anomaly,
)
from routeprism.policies.own import as_policy

RUNS = 12
"""How often the real event loop runs each memory."""
TURNS = 12
"""Longest requests for which tasks that outlive the adds are waited for."""
HEAVY = {"LateFlushing", "Flushing", "TwoWorkers", "GatheringRacing", "Gathering", "LimitedAdd"}


def mark(kinds):
    return [
        pytest.param(kind, marks=pytest.mark.slow) if kind.__name__ in HEAVY else kind
        for kind in kinds
    ]


def make_trial(kind, number=2):
    return Trial(as_policy(kind), (), make_records(number))


def explore(kind, number=2, **options):
    exploration = explore_interleavings(make_trial(kind, number), **options)
    assert exploration.complete
    return exploration


def list_outcomes(exploration):
    return {repr(execution.outcome) for execution in exploration.executions}


# --- Verdicts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", mark(RACING))
def test_a_race_is_found_in_two_writes(kind) -> None:
    serial = list_serial_outcomes(make_trial(kind))
    assert serial.complete
    kinds = {serial.classify(each.outcome) for each in explore(kind).executions}
    assert RACING[kind] in kinds


@pytest.mark.parametrize("kind", mark(SAFE))
def test_a_memory_without_a_race_raises_no_alarm(kind) -> None:
    serial = list_serial_outcomes(make_trial(kind))
    assert serial.complete
    assert {serial.classify(each.outcome) for each in explore(kind).executions} == {None}


# --- Real executions -----------------------------------------------------------------------------


def run_for_real(kind, seed, monkeypatch) -> Outcome:
    """Add two records with `asyncio.gather`; requests take between 0 and 3 milliseconds."""
    durations = random.Random(seed)  # noqa: S311

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(durations.choice((0.0, 0.001, 0.002, 0.003)) if seconds else 0)

    async def run() -> Outcome:
        memory = kind()
        raised = await asyncio.gather(*map(memory.add, make_records(2)), return_exceptions=True)
        for _ in range(TURNS):  # at least one request of each task ends in each, however busy it is
            await asyncio.sleep(0.003)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        errors = sorted(f"{type(error).__name__}: {error}" for error in raised if error)
        state = memory.state() if hasattr(memory, "state") else None
        return Outcome(tuple(sorted(memory.retained())), state, tuple(errors))

    monkeypatch.setattr(durations_catalogue, "sleep", sleep)
    outcome = asyncio.run(run())
    monkeypatch.undo()
    return outcome


@pytest.mark.parametrize("kind", mark([*RACING, *SAFE]))
def test_every_outcome_that_occurs_is_explored(kind, monkeypatch) -> None:
    real = {repr(run_for_real(kind, seed, monkeypatch)) for seed in range(RUNS)}
    assert real <= list_outcomes(explore(kind))


# --- Brute force ---------------------------------------------------------------------------------


@types.coroutine
def wait(seconds: float):
    yield


def step_by_hand(kind, order) -> tuple[Base, list[int]]:
    """Run adds without an event loop, in an order of steps; also list those that go on."""
    memory = kind()
    adds = dict(enumerate(memory.add(record) for record in make_records(2)))
    for number in order:
        try:
            adds[number].send(None)
        except StopIteration:
            del adds[number]
    for add in adds.values():
        add.close()
    return memory, list(adds)


def list_by_hand(kind, most: int = 9) -> set[str]:
    """List the outcomes of every order of steps of two adds, up to a number of steps."""
    outcomes, orders = set(), [()]
    while orders:
        order = orders.pop()
        memory, remaining = step_by_hand(kind, order)
        if not remaining:
            outcomes.add(repr(Outcome(tuple(sorted(memory.retained())))))
        elif len(order) < most:
            orders += [(*order, number) for number in remaining]
    return outcomes


@pytest.mark.parametrize("kind", STEPPING)
def test_the_outcomes_are_those_of_brute_force(kind, monkeypatch) -> None:
    monkeypatch.setattr(durations_catalogue, "sleep", wait)
    expected = list_by_hand(kind)
    monkeypatch.undo()
    assert list_outcomes(explore(kind)) == expected
    assert list_outcomes(explore(kind, prune=False)) == expected


@pytest.mark.parametrize("kind", mark([*RACING, *SAFE]))
def test_pruning_loses_no_outcome(kind) -> None:
    brute = explore_interleavings(make_trial(kind), prune=False, limit=3_000)
    assert list_outcomes(brute) <= list_outcomes(explore(kind))


# --- Numbers of interleavings --------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Polling, Yielding])
def test_a_polling_lock_has_finitely_many_interleavings(kind) -> None:
    # By hand: the first of two adds takes the lock. The second begins after it (1), or finds it
    # taken and looks again afterwards (1) or once more before (1): 2 · 3. An add that looks again
    # without a change waits until another add has run.
    assert len(explore(kind).executions) == 6
    assert len(explore(kind, prune=False).executions) == 6


class CountingLooks(Polling):
    """Changes the memory each time that it looks."""

    looks = 0

    async def add(self, record) -> None:
        while self.busy:
            self.looks += 1
            await asyncio.sleep(0.01)
        self.busy = True
        await durations_catalogue.Request.add(self, record)
        self.busy = False


@pytest.mark.slow
def test_a_bound_names_the_loop_of_a_write() -> None:
    assert explore(CountingLooks).bounds == ("a write passes an await in a loop at most 100 times",)


class Connecting(Polling):
    """Looks again and again inside a context manager."""

    async def add(self, record) -> None:
        async with self.connect():
            await durations_catalogue.Request.add(self, record)

    @asynccontextmanager
    async def connect(self):
        while self.busy:
            await asyncio.sleep(0.01)
        self.busy = True
        yield
        self.busy = False


class Awaitable(Polling):
    """Looks again and again inside an object that is awaited."""

    async def add(self, record) -> None:
        await self
        await durations_catalogue.Request.add(self, record)
        self.busy = False

    def __await__(self):
        return self.take_turn().__await__()

    async def take_turn(self) -> None:
        while self.busy:
            await asyncio.sleep(0.01)
        self.busy = True


class Nested(Polling):
    """Its values are deeper than Python's limit for recursion."""

    def __init__(self) -> None:
        super().__init__()
        self.nested: object = None
        for _ in range(2000):
            self.nested = [self.nested]


@pytest.mark.parametrize("kind", [Connecting, Awaitable, Nested])
def test_a_polling_lock_may_be_anywhere(kind) -> None:
    assert len(explore(kind).executions) == 6  # as above


class Streaming(Base):
    """Reads while a reply arrives piece by piece."""

    async def stream(self):
        for piece in range(2):
            await asyncio.sleep(0.01)
            yield piece

    async def add(self, record) -> None:
        async for piece in self.stream():
            items = items if piece else self.items  # noqa: F821 (the first piece is 0)
        self.items = (*items, record.id)


def test_a_reply_may_arrive_piece_by_piece() -> None:
    expected = {repr(Outcome(retained)) for retained in [("r0", "r1"), ("r0",), ("r1",)]}
    assert list_outcomes(explore(Streaming)) == expected
    # Two adds with two requests and a step before each: 6! / (3! 3!) = 20.
    assert len(explore(Streaming, prune=False).executions) == 20


LEFT = {"number": 0}


class Draining(Base):
    """Removes four jobs, one after each request, before it stores the first record."""

    def begin(self) -> None:
        LEFT["number"] = 4

    def count(self) -> int:
        return LEFT["number"]

    def remove(self) -> None:
        LEFT["number"] -= 1

    async def add(self, record) -> None:
        items = self.items
        if record.position:
            await asyncio.sleep(0.01)
        else:
            self.begin()
            while self.count():
                await asyncio.sleep(0.01)
                self.remove()
            items = self.items
        self.items = (*items, record.id)


class DrainingClass(Draining):
    left = 0

    def begin(self) -> None:
        DrainingClass.left = 4

    def count(self) -> int:
        return DrainingClass.left

    def remove(self) -> None:
        DrainingClass.left -= 1


class DrainingDatabase(Draining):
    def __init__(self) -> None:
        super().__init__()
        self.database = sqlite3.connect(":memory:")
        self.database.execute("CREATE TABLE jobs (number)")

    def begin(self) -> None:
        self.database.executemany("INSERT INTO jobs VALUES (?)", [(at,) for at in range(4)])

    def count(self) -> int:
        return int(self.database.execute("SELECT count(*) FROM jobs").fetchone()[0])

    def remove(self) -> None:
        self.database.execute("DELETE FROM jobs WHERE number = (SELECT max(number) FROM jobs)")

    def close(self) -> None:
        self.database.close()


@pytest.mark.parametrize("kind", [Draining, DrainingClass, DrainingDatabase])
def test_a_loop_may_change_what_is_no_part_of_the_memory(kind) -> None:
    # The second add may read before the first one stores its record, and write after it.
    expected = {repr(Outcome(retained)) for retained in [("r0", "r1"), ("r1",)]}
    assert list_outcomes(explore(kind)) == expected
    # The first add begins and has four requests, the second one begins and has one: 7! / (5! 2!).
    assert len(explore(kind, prune=False).executions) == 21


class LeftEarly(Base):
    """Leaves a generator before its end; the generator releases its lock after an await."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = asyncio.Lock()

    async def stream(self):
        await self.lock.acquire()
        try:
            while True:
                await asyncio.sleep(0.01)
                yield self.items
        finally:
            await asyncio.sleep(0)
            self.lock.release()

    async def add(self, record) -> None:
        async for items in self.stream():
            self.items = (*items, record.id)
            break


def test_a_generator_that_is_left_early_ends() -> None:
    trial = make_trial(LeftEarly)
    assert [outcome.retained for outcome in list_serial_outcomes(trial).outcomes] == [("r0", "r1")]
    assert list_outcomes(explore(LeftEarly)) == {repr(Outcome(("r0", "r1")))}


class Counter(Base):
    number = 0


class Counting(Base):
    """Ends when the second of its counters has counted to 300."""

    def __init__(self) -> None:
        super().__init__()
        self.counters = Counter(), Counter()

    async def add(self, record) -> None:
        while self.counters[1].number < 300:
            self.counters[1].number += 1
            await asyncio.sleep(0)
        self.items = (*self.items, record.id)


def test_a_change_in_any_object_is_a_change() -> None:
    assert make_trial(Counting).run_in_order((0, 1)) == Outcome(("r0", "r1"))


@pytest.mark.slow
def test_a_polling_lock_of_three_writes() -> None:
    # 318 is what a state machine of this lock counts if an add that looked in vain may look again
    # after any step of another add that was not in vain. Sleep sets that try the lowest number
    # first leave 150; if steps come before requests, they leave 126, one for each class.
    assert len(explore(Polling, 3).executions) == 150
    assert len(explore(Polling, 3, prune=False).executions) == 318


class Forever(Base):
    """Waits for something that never happens, and counts how often it has looked."""

    looks = 0

    async def add(self, record) -> None:
        while True:
            self.looks += 1
            await asyncio.sleep(0.01)


class Waiting(Base):
    async def add(self, record) -> None:
        while True:
            await asyncio.sleep(0.01)


class Dated(Base):
    """Waits until a moment of the loop's clock."""

    async def add(self, record) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + 0.5
        while loop.time() < end:
            await asyncio.sleep(0.01)
        self.items = (*self.items, record.id)


def test_a_write_that_looks_forever_ends_as_an_anomaly() -> None:
    trial = make_trial(Waiting)
    outcome = trial.sample(0).outcome
    assert outcome.errors == ("TimeoutError: the write never ended",) * 2
    assert list_serial_outcomes(trial).classify(outcome) == "error"


@pytest.mark.slow
def test_a_write_that_counts_forever_ends_as_an_anomaly() -> None:
    assert make_trial(Forever).sample(0).outcome.never_ended


def test_a_clock_goes_on_while_nothing_else_can() -> None:
    assert make_trial(Dated).sample(0).outcome.retained == ("r0", "r1")


# --- Conditions ----------------------------------------------------------------------------------


class Overtaken(Base):
    """The older add replaces what the newer one wrote, if its request takes longer."""

    async def add(self, record) -> None:
        items = (*self.items, record.id)
        await asyncio.sleep(0.01)
        if record.position == 0 or "r0" in self.items:
            self.items = items
        else:
            self.items = (*self.items, record.id)


def find(kind):
    trial = make_trial(kind)
    serial = list_serial_outcomes(trial)
    return find_simplest(trial, serial, explore(kind).executions)


def test_an_anomaly_names_the_durations_that_it_needs() -> None:
    assert find(RequestBefore).list_conditions() == [
        "the request of r1 takes longer than the request of r0",
        "the request of r1 ends while r0 is between two steps",
    ]
    assert find(durations_catalogue.LimitedTurn).list_conditions() == [
        "the request of r0 lasts until the timeout of 0.0015 seconds of r1"
    ]


def test_a_drawn_anomaly_of_two_writes_names_no_more_durations_than_it_needs() -> None:
    trial = make_trial(RequestBefore)
    serial = list_serial_outcomes(trial)
    executions = {seed: trial.sample(seed) for seed in range(50)}
    anomalies = [
        describe_anomaly(trial, serial, execution, kind, seed)
        for seed, execution in executions.items()
        if (kind := serial.classify(execution.outcome)) is not None
    ]
    assert len({tuple(anomaly.list_conditions()) for anomaly in anomalies}) > 1
    assert {tuple(shrink_anomaly(anomaly).list_conditions()) for anomaly in anomalies} == {
        tuple(find(RequestBefore).list_conditions())
    }
