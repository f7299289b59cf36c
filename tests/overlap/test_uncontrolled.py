"""A memory that RoutePrism cannot control is not judged; the rest of an audit goes on."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from overlap_toys import Base, Locked, make_records

import routeprism
from routeprism.errors import InapplicableError
from routeprism.overlap import Trial
from routeprism.policies.own import as_policy
from routeprism.records import Case, Pool, Question


class Socket(Base):
    """Asks a service, and goes on without a reply if there is none."""

    async def add(self, record) -> None:
        try:
            await asyncio.open_connection("127.0.0.1", 9)
        except Exception:  # as many memories do
            await asyncio.sleep(0)
        self.items = (*self.items, record.id)


class OwnThread(Base):
    """A thread of its own reads what an add continues."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = ThreadPoolExecutor(1)

    async def add(self, record) -> None:
        items = await asyncio.wrap_future(self.pool.submit(lambda: self.items))
        self.items = (*items, record.id)

    def close(self) -> None:
        self.pool.shutdown()


class CallingThread(Base):
    """A thread calls the loop back."""

    async def add(self, record) -> None:
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()

        def finish() -> None:
            loop.call_soon_threadsafe(ended.set)

        thread = threading.Thread(target=finish)
        thread.start()
        thread.join()
        await ended.wait()
        self.items = (*self.items, record.id)


class SharedLock(Base):
    """All memories have the same lock."""

    lock = asyncio.Lock()

    async def add(self, record) -> None:
        async with self.lock:
            items = self.items
            await asyncio.sleep(0.01)
            self.items = (*items, record.id)


KINDS = {
    Socket: "loop.create_connection",
    OwnThread: "a thread that it started",
    CallingThread: "a thread that it started",
    SharedLock: "make the lock or queue in __init__",
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_memory_that_cannot_be_controlled_is_not_judged(kind) -> None:
    trial = Trial(as_policy(kind), (), make_records(2))
    with pytest.raises(InapplicableError, match=KINDS[kind]):
        for seed in range(50):
            trial.sample(seed)


@pytest.mark.parametrize("kind", [OwnThread, SharedLock])
def test_an_audit_goes_on_with_the_other_memories(kind) -> None:
    sample = routeprism.load_benchmark("sample")
    question = Question(id="q", user="u", text="text 1", kind="")
    cases = tuple(
        Case(Pool(user, make_records(4)), (replace(question, id=user, user=user),))
        for user in ("a", "b")
    )
    audit = routeprism.audit(
        replace(sample, cases=cases),
        kind,
        Locked,
        schedules=["overlap:k=2"],
        overlap_trials=20,
        rebuilds=0,
    )
    rows = [row for row in audit.rows if row.quantity == "anomaly"]
    assert {row.policy for row in rows} == {"Locked"}
    assert any("overlap:k=2 is not applicable to" in str(note) for note in audit.notes)
