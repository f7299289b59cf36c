"""Which outcomes count as an anomaly, what pruning may leave out, and what an audit reports."""

from __future__ import annotations

import asyncio
import cProfile
import gc
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
from overlap_toys import Base, LostUpdate, make_records

import routeprism
from routeprism.errors import InapplicableError
from routeprism.overlap import (
    Trial,
    describe_anomaly,
    explore_interleavings,
    list_serial_outcomes,
    shrink_anomaly,
)
from routeprism.policies.own import as_policy
from routeprism.records import Benchmark, Case, Pool, Question


def make_trial(kind, number=3, *, prior=0):
    records = make_records(number + prior)
    return Trial(as_policy(kind), records[:prior], records[prior:])


def classify_all(trial, seeds=50):
    serial = list_serial_outcomes(trial)
    return {serial.classify(trial.sample(seed).outcome) for seed in range(seeds)}


class Evicts(Base):
    """Has room for three records; two adds may choose the same record to evict."""

    async def add(self, record) -> None:
        if len(self.items) >= 3:
            oldest = self.items[0]
            await asyncio.sleep(0)
            self.items = tuple(id for id in self.items if id != oldest)
        self.items = (*self.items, record.id)


def test_a_record_that_every_serial_order_evicts_is_stale() -> None:
    assert classify_all(make_trial(Evicts, prior=3)) == {None, "stale"}


class Newest(Base):
    """Keeps the newest records, in one step."""

    concurrent = True
    room = 18

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def add(self, record) -> None:
        with self.lock:
            self.items = (*self.items, record.id)[-self.room :]


class Few(Newest):
    room = 2


class Losing(Newest):
    """Reads and writes under two locks."""

    room = 6

    def add(self, record) -> None:
        with self.lock:
            items = self.items
        with self.lock:
            self.items = (*items, record.id)[-self.room :]


class Full(Newest):
    """Refuses records beyond its room."""

    def add(self, record) -> None:
        with self.lock:
            if len(self.items) >= self.room:
                raise ValueError(f"no room for {record.id}")
            self.items = (*self.items, record.id)


@pytest.mark.parametrize(
    "kind",
    [
        Newest,
        pytest.param(Few, marks=pytest.mark.slow),
        pytest.param(Full, marks=pytest.mark.slow),
    ],
)
def test_an_order_that_was_not_drawn_is_no_anomaly(kind) -> None:
    # Of 20 writes, 50 serial orders are drawn. Each order keeps different records.
    trial = make_trial(kind, 20)
    assert not list_serial_outcomes(trial).complete
    assert classify_all(trial, 100) == {None}


@pytest.mark.slow
def test_a_loss_is_found_although_serial_orders_keep_different_records() -> None:
    assert "lost" in classify_all(make_trial(Losing, 20))


class Chance(Base):
    """Numbers its states, so that no two builds are equal."""

    deterministic = False
    builds: ClassVar[list[int]] = []

    def __init__(self) -> None:
        super().__init__()
        self.builds.append(0)
        self.number = len(self.builds)

    async def add(self, record) -> None:
        await asyncio.sleep(0)
        self.items = (*self.items, record.id)

    def state(self) -> int:
        return self.number


def test_chance_is_no_anomaly() -> None:
    assert classify_all(make_trial(Chance)) == {None}


class AddressInError(Base):
    """Raises an error with the address of an object, in every order."""

    async def add(self, record) -> None:
        await asyncio.sleep(0)
        raise ValueError(object())


def test_addresses_in_errors_are_not_compared() -> None:
    assert classify_all(make_trial(AddressInError)) == {None}


class OwnKey(LostUpdate):
    """Has a method `key` of its own that has nothing to do with states."""

    def key(self, record) -> str:
        return record.text


def test_a_method_key_without_state_is_not_called() -> None:
    assert classify_all(make_trial(OwnKey)) == {None, "lost"}


class Shelf:
    def __init__(self) -> None:
        self.rows: tuple[str, ...] = ()


class SharedParts(Base):
    """Two attributes lead to the same object."""

    def __init__(self) -> None:
        self.shelf = self.index = Shelf()

    async def add(self, record) -> None:
        if record.position % 2:
            rows = self.shelf.rows
            await asyncio.sleep(0)
            self.shelf.rows = (*rows, record.id)
        else:
            rows = self.index.rows
            await asyncio.sleep(0)
            self.index.rows = (*rows, record.id)

    def retained(self):
        return list(self.shelf.rows)


class NamedVariable(Base):
    number = 0

    def __init__(self) -> None:
        NamedVariable.number = 0

    async def add(self, record) -> None:
        number = NamedVariable.number
        await asyncio.sleep(0)
        NamedVariable.number = number + 1

    def retained(self):
        return [f"r{at}" for at in range(NamedVariable.number)]


class TypeVariable(Base):
    number = 0

    def __init__(self) -> None:
        type(self).number = 0

    async def add(self, record) -> None:
        number = type(self).number
        await asyncio.sleep(0)
        type(self).number = number + 1

    def retained(self):
        return [f"r{at}" for at in range(type(self).number)]


class KeptMethods(Base):
    """Reads and writes its shelf by methods that it keeps instead of the shelf."""

    def __init__(self) -> None:
        rows: list[str] = []
        self.read, self.write = rows.copy, BoundWrite(rows).write

    async def add(self, record) -> None:
        await asyncio.sleep(0.01)
        rows = self.read()
        await asyncio.sleep(0.01)
        self.write([*rows, record.id])

    def retained(self):
        return self.read()

    def expose(self, query):
        return self.read()


class BoundWrite:
    def __init__(self, rows: list[str]) -> None:
        self.rows = rows

    def write(self, rows) -> None:
        self.rows[:] = rows


class Frozen(Base):
    """Refuses to set attributes, except by `object.__setattr__`."""

    def __init__(self) -> None:
        object.__setattr__(self, "items", ())

    def __setattr__(self, name, value) -> None:
        raise AttributeError(name)

    async def add(self, record) -> None:
        items = self.items
        await asyncio.sleep(0)
        object.__setattr__(self, "items", (*items, record.id))


@pytest.mark.parametrize("kind", [SharedParts, NamedVariable, TypeVariable, KeptMethods, Frozen])
def test_pruning_sees_what_writes_share(kind) -> None:
    trial = make_trial(kind)
    pruned = explore_interleavings(trial)
    brute = explore_interleavings(trial, prune=False)
    assert {execution.outcome for execution in pruned.executions} == {
        execution.outcome for execution in brute.executions
    }


class Assigns(Base):
    """Sets an attribute in its first step, and then only waits."""

    async def add(self, record) -> None:
        self.items = (*self.items, record.id)
        await asyncio.sleep(0)
        await asyncio.sleep(0)


def test_writes_are_compared_while_a_profiler_runs() -> None:
    expected = explore_interleavings(make_trial(LostUpdate, 2))
    profiler = cProfile.Profile()
    profiler.enable()
    exploration = explore_interleavings(make_trial(LostUpdate, 2))
    sorted(range(3))
    profiler.disable()
    assert exploration == expected
    # It has seen what came after the comparison.
    assert any("sorted" in str(entry.code) for entry in profiler.getstats())


class Finalised:
    """Uses a file when it is collected."""

    def __init__(self) -> None:
        self.cycle = self

    def __del__(self) -> None:
        Path(os.devnull).read_bytes()


class Litters(LostUpdate):
    """Leaves something in its steps that Python collects at some time."""

    async def add(self, record) -> None:
        Finalised()
        await super().add(record)


def test_the_number_of_interleavings_does_not_depend_on_collections() -> None:
    thresholds = gc.get_threshold()
    gc.disable()
    try:
        expected = explore_interleavings(make_trial(Litters))
        gc.set_threshold(1)
        gc.enable()
        assert explore_interleavings(make_trial(Litters)) == expected
    finally:
        gc.set_threshold(*thresholds)
        gc.enable()


@pytest.mark.slow
def test_a_step_after_an_assignment_is_independent() -> None:
    pruned = explore_interleavings(make_trial(Assigns))
    brute = explore_interleavings(make_trial(Assigns), prune=False)
    assert brute.performed == 1680  # 9! / (3!)³
    assert pruned.performed < 100
    assert {execution.outcome for execution in pruned.executions} == {
        execution.outcome for execution in brute.executions
    }


class Patient(Base):
    """Waits for a lock for half a second; each add holds it for a hundredth of a second."""

    seconds = 0.5

    def __init__(self) -> None:
        super().__init__()
        self.lock = asyncio.Lock()

    async def add(self, record) -> None:
        await asyncio.wait_for(self.store(record), self.seconds)

    async def store(self, record) -> None:
        async with self.lock:
            items = self.items
            await asyncio.sleep(0.01)
            self.items = (*items, record.id)


class Separate(Patient):
    """Limits each request instead of the whole add, so that waiting for the lock does not count."""

    async def add(self, record) -> None:
        async with self.lock:
            await asyncio.wait_for(self.request(record), self.seconds)

    async def request(self, record) -> None:
        items = self.items
        await asyncio.sleep(0.01)
        self.items = (*items, record.id)


def test_waiting_for_other_adds_may_exceed_a_timeout() -> None:
    assert classify_all(make_trial(Patient)) == {None, "error"}


def test_a_request_that_is_too_slow_alone_is_no_anomaly() -> None:
    assert classify_all(make_trial(Separate)) == {None}


class Late(Base):
    """Loses a record only if another add begins and ends between its first two steps."""

    async def add(self, record) -> None:
        before = self.items
        await asyncio.sleep(0)
        changed = self.items != before
        for _ in range(8):
            await asyncio.sleep(0)
        if not changed:
            self.items = (*self.items, record.id)


def test_a_race_that_needs_a_long_turn_is_found_and_reduced_to_two_writes() -> None:
    trial = make_trial(Late, 4)
    serial = list_serial_outcomes(trial)
    seed, execution = next(
        (seed, execution)
        for seed in range(200)
        for execution in [trial.sample(seed)]
        if serial.classify(execution.outcome)
    )
    smallest = shrink_anomaly(describe_anomaly(trial, serial, execution, "lost", seed))
    assert len(smallest.trial.writes) == 2
    assert smallest.trial.replay(smallest.execution.choices) == smallest.execution


class Crowded(Base):
    """Drops a record if three adds are in flight."""

    def __init__(self) -> None:
        super().__init__()
        self.flying = 0

    async def add(self, record) -> None:
        self.flying += 1
        await asyncio.sleep(0)
        if self.flying < 3:
            self.items = (*self.items, record.id)
        self.flying -= 1


def test_three_writes_are_the_smallest_set_if_two_are_not_enough() -> None:
    trial = make_trial(Crowded, 8)
    serial = list_serial_outcomes(trial)
    execution = trial.sample(0)
    assert serial.classify(execution.outcome) == "lost"
    smallest = shrink_anomaly(describe_anomaly(trial, serial, execution, "lost", 0))
    assert len(smallest.trial.writes) == 3


class Threads(Base):
    concurrent = True

    def add(self, record) -> None:
        self.items = (*self.items, record.id)


def test_exploring_threads_is_refused_in_words() -> None:
    with pytest.raises(InapplicableError, match="only if `add` is `async`"):
        explore_interleavings(make_trial(Threads))


class Mixed(Base):
    """Loses a record, or fails, depending on the interleaving."""

    concurrent = True
    busy = 0

    def add(self, record) -> None:
        self.busy += 1
        if self.busy > 2:
            self.busy -= 1
            raise RuntimeError("too many adds")
        items = self.items
        self.items = (*items, record.id)
        self.busy -= 1


class Rare(Base):
    """Fails for one interleaving among very many."""

    def __init__(self) -> None:
        super().__init__()
        self.log = ""

    async def add(self, record) -> None:
        for _ in range(4):
            self.log += record.id[-1]
            await asyncio.sleep(0)
        if "10101010" not in self.log:
            self.items = (*self.items, record.id)


def make_benchmark(*sizes: int) -> Benchmark:
    sample = routeprism.load_benchmark("sample")
    cases = []
    for user, size in zip("abc", sizes, strict=False):
        question = Question(id=f"q{user}", user=user, text="text 1", kind="")
        cases.append(Case(Pool(user, make_records(size)), (question,)))
    return replace(sample, cases=tuple(cases))


@pytest.mark.slow
def test_two_kinds_of_anomaly_in_one_pool_are_both_reported(tmp_path) -> None:
    audit = routeprism.audit(
        make_benchmark(4, 4), Mixed, schedules=["overlap:k=4"], run=tmp_path / "run", rebuilds=0
    )
    rates = {row.quantity: row.estimate for row in audit.rows if row.experiment == "overlap"}
    assert rates["anomaly.lost"] > 0
    assert rates["anomaly.error"] > 0
    routeprism.write_report(tmp_path / "run")
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "Interleavings" in page


def test_an_anomaly_that_only_the_search_finds_fails_the_gate(tmp_path) -> None:
    audit = routeprism.audit(
        make_benchmark(2),
        Rare,
        schedules=["overlap:k=2"],
        overlap_trials=2,
        run=tmp_path / "run",
        rebuilds=0,
    )
    (row,) = (row for row in audit.rows if row.quantity == "anomaly")
    assert row.estimate == pytest.approx(1 / 3)  # two drawn trials, and the one that was found
    (statement,) = (item for item in audit.statements if item.kind == "overlap")
    assert statement.severity == "problem"
    assert not routeprism.check(tmp_path / "run", gates=["anomaly<=0"]).passed


def test_the_numbers_of_kept_records_are_those_of_the_largest_pool() -> None:
    audit = routeprism.audit(
        make_benchmark(2, 5), LostUpdate, schedules=["overlap:k=5"], rebuilds=0
    )
    (statement,) = (item for item in audit.statements if item.kind == "overlap")
    assert "Of 5 records added at once, 1 to 5 are kept (5 of 5 when added one by one)" in str(
        statement
    )


class Holding(Base):
    """A task that began with an earlier add still has the list."""

    def __init__(self) -> None:
        self.rows: list[str] = []
        self.begun = asyncio.Event()
        self.task: object = None

    async def add(self, record) -> None:
        if self.task is None:
            self.task = asyncio.create_task(self.work(self.rows, self.begun))
        elif record.position == 1:
            self.begun.set()
        else:
            size = len(self.rows)
            await asyncio.sleep(0.01)
            self.rows[size:] = [record.id]

    @staticmethod
    async def work(rows, begun) -> None:
        await begun.wait()
        await asyncio.sleep(0.01)
        rows.append("done")

    def retained(self):
        return self.rows

    def expose(self, query):
        return self.rows


def test_pruning_sees_what_an_earlier_task_has() -> None:
    records = make_records(3)
    trial = Trial(as_policy(Holding), records[:1], records[1:])
    outcomes = [
        {
            str(execution.outcome)
            for execution in explore_interleavings(trial, prune=prune).executions
        }
        for prune in (True, False)
    ]
    assert outcomes[0] == outcomes[1]
    assert len(outcomes[0]) == 2


class Waiting(LostUpdate):
    """Waits for a request before an add that cannot lose anything."""

    async def add(self, record) -> None:
        await asyncio.sleep(0.01)
        self.items = (*self.items, record.id)


def test_a_request_is_independent_of_the_steps_of_others() -> None:
    # Of the 4! / (2! 2!) orders of two steps each, only the order of the last steps matters.
    assert len(explore_interleavings(make_trial(Waiting, 2), prune=False).executions) == 6
    assert len(explore_interleavings(make_trial(Waiting, 2)).executions) == 2
