"""A write that blocks or waits forever ends its trial with an anomaly."""

from __future__ import annotations

import asyncio
import shlex
import signal
import sys
import threading
from dataclasses import replace

import pytest
from overlap_toys import Base, make_records

import routeprism
from routeprism.errors import ContractError
from routeprism.overlap import Trial, list_serial_outcomes
from routeprism.policies import own
from routeprism.policies.adapters.command import Command
from routeprism.policies.own import as_policy, find_own_memory
from routeprism.records import Case, Pool, Question

NEVER = "TimeoutError: the write never ended within 5 seconds"


class BlockingLock(Base):
    """Waits with a lock for threads inside `async` code, which blocks all tasks of the loop."""

    write_limit = 5.0

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    async def add(self, record) -> None:
        with self.lock:
            items = self.items
            await asyncio.sleep(0.01)
            self.items = (*items, record.id)


class WaitingLock(Base):
    """Takes two locks in an order that depends on the record."""

    def __init__(self) -> None:
        super().__init__()
        self.locks = asyncio.Lock(), asyncio.Lock()

    async def add(self, record) -> None:
        first, second = self.locks if record.position else self.locks[::-1]
        async with first:
            await asyncio.sleep(0.01)
            async with second:
                self.items = (*self.items, record.id)


class BlockingFunction(Base):
    """A function on another thread waits for something that never comes if two adds overlap."""

    write_limit = 5.0
    writing = 0

    async def add(self, record) -> None:
        self.writing += 1
        await asyncio.sleep(0.01)
        if self.writing > 1:
            await self.block()
        self.items = (*self.items, record.id)
        self.writing -= 1

    async def block(self) -> None:
        await asyncio.to_thread(threading.Event().wait)


class BlockingCallback(BlockingFunction):
    async def block(self) -> None:
        asyncio.get_running_loop().call_later(0.01, threading.Event().wait)
        await asyncio.sleep(0.02)
        self.items = ()


class BlockingSilently(BlockingFunction):
    """Catches everything."""

    async def block(self) -> None:
        try:
            threading.Event().wait()
        except BaseException:
            self.items = ()


class BlockingThreads(Base):
    """The second of two adds waits for something outside Python that never comes."""

    concurrent = True
    write_limit = 5.0
    writing = 0

    def __init__(self) -> None:
        super().__init__()
        self.never = threading.Event()

    def add(self, record) -> None:
        self.writing += 1
        if self.writing > 1:
            asyncio.run(asyncio.sleep(3600))
        self.items = (*self.items, record.id)
        self.writing -= 1


def make_trial(kind):
    return Trial(as_policy(kind), (), make_records(2))


@pytest.mark.parametrize(
    "kind", [BlockingLock, BlockingFunction, BlockingCallback, BlockingSilently, BlockingThreads]
)
def test_a_call_that_blocks_ends_at_the_limit(kind) -> None:
    trial = make_trial(kind)
    serial = list_serial_outcomes(trial)
    assert [outcome.errors for outcome in serial.outcomes] == [()]
    outcome = next(
        outcome for seed in range(50) for outcome in [trial.sample(seed).outcome] if outcome.errors
    )
    assert NEVER in outcome.errors
    assert serial.classify(outcome) == "error"


PROGRAM = """
import json, sys
records = []
for line in sys.stdin:
    request = json.loads(line)
    if request["do"] == "add":
        records.append(request["record"])
    items = [{"text": record["text"], "sources": [record["id"]]} for record in records]
    print(json.dumps({"items": items}), flush=True)
"""


class Settles(Base):
    settle = 100.0

    async def add(self, record) -> None:
        self.items = (*self.items, record.id)


def test_what_has_limits_of_its_own_is_not_interrupted_before(tmp_path, monkeypatch) -> None:
    """Reading waits until nothing changes, and a request to a system outside until it is over."""
    seconds: list[float] = []
    monkeypatch.setattr(signal, "setitimer", lambda _, limit, *interval: seconds.append(limit))
    monkeypatch.setattr(own, "settle", lambda *arguments, **options: None)
    assert make_trial(Settles).sample(0).outcome.errors == ()
    assert max(seconds) == 60 + 10 * 100
    (tmp_path / "program.py").write_text(PROGRAM)
    seconds.clear()
    program = Command(run=shlex.join([sys.executable, str(tmp_path / "program.py")]), timeout=120)
    outcome = Trial(find_own_memory(program), (), make_records(2)).sample(0).outcome
    assert (outcome.retained, outcome.errors) == (("r0", "r1"), ())
    assert min(limit for limit in seconds if limit) > 120


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf"), "5", True, None])
def test_a_limit_is_a_number_of_seconds(limit, monkeypatch) -> None:
    monkeypatch.setattr(WaitingLock, "write_limit", limit, raising=False)
    with pytest.raises(ContractError, match="Expected write_limit to be a number of seconds"):
        make_trial(WaitingLock).sample(0)


def test_locks_that_wait_for_each_other_need_no_limit() -> None:
    trial = make_trial(WaitingLock)
    serial = list_serial_outcomes(trial)
    outcomes = [trial.sample(seed).outcome for seed in range(20)]
    errors = {outcome.errors for outcome in outcomes}
    assert errors == {(), ("TimeoutError: the write never ended",) * 2}
    assert {serial.classify(outcome) for outcome in outcomes} == {None, "error"}


def test_an_audit_ends_although_a_memory_blocks() -> None:
    sample = routeprism.load_benchmark("sample")
    question = Question(id="q", user="u", text="text 1", kind="")
    cases = tuple(
        Case(Pool(user, make_records(2)), (replace(question, id=user, user=user),))
        for user in ("a", "b")
    )
    audit = routeprism.audit(
        replace(sample, cases=cases), BlockingLock, schedules=["overlap:k=2"], rebuilds=0
    )
    (row,) = (row for row in audit.rows if row.quantity == "anomaly.error")
    assert row.estimate > 0
    (statement,) = (item for item in audit.statements if item.kind == "overlap")
    assert statement.severity == "problem"


@pytest.mark.slow
def test_a_memory_without_a_route_is_described(cli, tmp_path) -> None:
    words = ("--schedule", "overlap:k=4", "--run", tmp_path / "run", "--overlap-trials", "20")
    outcome = cli("audit", "sample", "--policy", "test_limits:WaitingLock", *words)
    assert "trials with overlapping writes fail" in " ".join(outcome.out.split())
