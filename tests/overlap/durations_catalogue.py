"""Memories with requests, locks, queues, tasks and timeouts: some lose writes, the others do not.

`sleep` stands for a request. The tests replace it to run the same memories with other durations.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio import sleep
from concurrent.futures import ThreadPoolExecutor

from overlap_toys import Base


class Request(Base):
    """Reads, waits for a request, and writes what it read with one more record."""

    async def add(self, record) -> None:
        items = self.items
        await sleep(0.01)
        self.items = (*items, record.id)

    def store(self, record) -> None:
        self.items = (*self.items, record.id)


class RequestBefore(Base):
    """Loses records only if one request ends between two steps of another add."""

    async def add(self, record) -> None:
        await sleep(0.05)
        items = self.items
        await sleep(0)
        self.items = (*items, record.id)


class RequestBeforeOnly(Request):
    async def add(self, record) -> None:
        await sleep(0.05)
        self.store(record)


class RequestAfter(Request):
    async def add(self, record) -> None:
        self.store(record)
        await sleep(0.05)


class Lengths(Base):
    """Its requests have different lengths."""

    async def add(self, record) -> None:
        await sleep(0.01 * (record.position + 1))
        items = self.items
        await sleep(0.03)
        self.items = (*items, record.id)


class Lock(Request):
    def __init__(self) -> None:
        super().__init__()
        self.lock: object = asyncio.Lock()

    async def add(self, record) -> None:
        async with self.lock:
            await super().add(record)


class ShortLock(Lock):
    """Releases its lock between reading and writing."""

    async def add(self, record) -> None:
        async with self.lock:
            items = self.items
            await sleep(0.01)
        async with self.lock:
            self.items = (*items, record.id)


class Semaphore(Lock):
    def __init__(self) -> None:
        super().__init__()
        self.lock = asyncio.Semaphore(1)


class WideSemaphore(Lock):
    def __init__(self) -> None:
        super().__init__()
        self.lock = asyncio.Semaphore(2)


class Polling(Request):
    """Looks again and again whether it may write."""

    busy = False

    async def add(self, record) -> None:
        while self.busy:
            await sleep(0.01)
        self.busy = True
        await super().add(record)
        self.busy = False

    async def wait(self) -> None:
        await sleep(0.01)


class Yielding(Polling):
    async def wait(self) -> None:
        await sleep(0)


class TwoPauses(Polling):
    async def wait(self) -> None:
        await sleep(0.01)
        await sleep(0.02)


class LatePolling(Request):
    """Looks whether it may write, and waits before it takes its turn."""

    busy = False

    async def add(self, record) -> None:
        while self.busy:
            await sleep(0.01)
        await sleep(0.01)
        self.busy = True
        await super().add(record)
        self.busy = False


class Optimistic(Base):
    """Repeats its request if another add has written meanwhile."""

    version = 0

    async def add(self, record) -> None:
        while True:
            items, version = self.items, self.version
            await sleep(0.01)
            if version == self.version:
                break
        self.items, self.version = (*items, record.id), version + 1


class Worker(Request):
    """One task, which outlives the adds, stores what they put into a queue."""

    workers = 1

    def __init__(self) -> None:
        super().__init__()
        self.queue: object = None
        self.tasks: list[object] = []

    async def add(self, record) -> None:
        if self.queue is None:
            self.queue = asyncio.Queue()
            self.tasks = [asyncio.create_task(self.work()) for _ in range(self.workers)]
        await self.queue.put(record)

    async def work(self) -> None:
        while True:
            await Request.add(self, await self.queue.get())


class TwoWorkers(Worker):
    workers = 2


class Flushing(Request):
    """A task that outlives the adds stores what they have collected, again and again."""

    def __init__(self) -> None:
        super().__init__()
        self.collected: tuple[str, ...] = ()
        self.task: object = None

    async def add(self, record) -> None:
        if self.task is None:
            self.task = asyncio.create_task(self.flush_always())
        await sleep(0.01)
        self.collected = (*self.collected, record.id)

    async def flush_always(self) -> None:
        while True:
            await sleep(0.002)
            self.items, self.collected = (*self.items, *self.collected), ()

    def retained(self):
        return sorted((*self.items, *self.collected))


class LateFlushing(Flushing):
    """Forgets what was collected while it stored."""

    async def flush_always(self) -> None:
        while True:
            await sleep(0.002)
            items = (*self.items, *self.collected)
            await sleep(0.001)
            self.items, self.collected = items, ()


class Left(RequestBeforeOnly):
    """Returns before a task has stored the record."""

    def __init__(self) -> None:
        super().__init__()
        self.tasks: set[object] = set()

    async def add(self, record) -> None:
        task = asyncio.create_task(super().add(record))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)


class LeftRacing(Left):
    async def add(self, record) -> None:
        self.tasks.add(asyncio.create_task(Request.add(self, record)))


class Function(Request):
    async def add(self, record) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.store, record)


class ReadingFunction(Request):
    async def add(self, record) -> None:
        items = await asyncio.get_running_loop().run_in_executor(None, lambda: self.items)
        self.items = (*items, record.id)


class OneThread(Request):
    """Relies on one thread for all its functions."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = ThreadPoolExecutor(1)
        self.begun: tuple[str, ...] = ()

    async def add(self, record) -> None:
        self.begun = (*self.begun, record.id)
        await asyncio.get_running_loop().run_in_executor(self.pool, self.store, record)

    def state(self) -> bool:
        return self.begun == self.items

    def close(self) -> None:
        self.pool.shutdown()


class LimitedRequest(Lock):
    """Each request has a time limit of its own."""

    async def add(self, record) -> None:
        async with self.lock:
            await asyncio.wait_for(Request.add(self, record), 0.0015)


class LimitedAdd(Lock):
    """Waiting for the other add counts for the time limit."""

    async def add(self, record) -> None:
        await asyncio.wait_for(super().add(record), 0.0015)


class LimitedTurn(Lock):
    """Gives up if the lock is not free in time."""

    async def add(self, record) -> None:
        await asyncio.wait_for(self.lock.acquire(), 0.0015)
        try:
            await Request.add(self, record)
        finally:
            self.lock.release()


class Prepared(Request):
    """Waits until a task has prepared the memory."""

    def __init__(self) -> None:
        super().__init__()
        self.prepared = asyncio.Event()
        self.task: object = None

    async def add(self, record) -> None:
        if self.task is None:
            self.task = asyncio.create_task(self.prepare())
        await self.prepared.wait()
        self.store(record)

    async def prepare(self) -> None:
        await sleep(0.01)
        self.items = ()
        self.prepared.set()


class Turns(Request):
    busy = False

    def __init__(self) -> None:
        super().__init__()
        self.free = asyncio.Condition()

    async def add(self, record) -> None:
        async with self.free:
            await self.free.wait_for(lambda: not self.busy)
            self.busy = True
        await super().add(record)
        async with self.free:
            self.busy = False
            self.free.notify()


class Chained(Request):
    """Each add waits for the one before."""

    def __init__(self) -> None:
        super().__init__()
        self.last: object = None

    async def add(self, record) -> None:
        before, self.last = self.last, asyncio.get_running_loop().create_future()
        ended = self.last
        if before is not None:
            await before
        await super().add(record)
        ended.set_result(None)


class Gathering(Request):
    """Two requests of one add run at once; the order in which they end is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.log: tuple[str, ...] = ()

    async def add(self, record) -> None:
        await asyncio.gather(self.ask(record, "tags"), self.ask(record, "links"))
        self.store(record)

    async def ask(self, record, topic) -> None:
        await sleep(0.01)
        self.log = (*self.log, f"{record.id} {topic}")

    def state(self):
        return sorted(self.log, key=lambda entry: entry.partition(" ")[0])


class GatheringRacing(Request):
    async def add(self, record) -> None:
        items, _ = await asyncio.gather(self.read(), sleep(0.01))
        self.items = (*items, record.id)

    async def read(self):
        return self.items


class Later(Base):
    """A function that the loop calls later writes what the add has read."""

    async def add(self, record) -> None:
        loop, items = asyncio.get_running_loop(), self.items
        done = loop.create_future()

        def write() -> None:
            self.items = (*items, record.id)
            done.set_result(None)

        loop.call_later(0.001, write)
        await done


class Grouped(Gathering):
    async def add(self, record) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.ask(record, "tags"))
        self.store(record)


RACING = {
    **dict.fromkeys([Request, RequestBefore, Lengths, ShortLock, WideSemaphore], "lost"),
    **dict.fromkeys([LatePolling, TwoWorkers, LateFlushing, LeftRacing], "lost"),
    **dict.fromkeys([ReadingFunction, GatheringRacing, Later], "lost"),
    **dict.fromkeys([LimitedAdd, LimitedTurn], "error"),
}
"""Memory → an anomaly that it has."""
SAFE = (
    *(RequestBeforeOnly, RequestAfter, Lock, Semaphore, Polling, Yielding, TwoPauses, Optimistic),
    *(Worker, Flushing, Left, Function, OneThread, LimitedRequest, Prepared, Turns, Chained),
    *(Gathering, *([Grouped] if sys.version_info >= (3, 11) else [])),
)
STEPPING = (
    *(Request, RequestBefore, RequestBeforeOnly, RequestAfter, Lengths, Polling, Yielding),
    *(TwoPauses, LatePolling, Optimistic),
)
"""Memories that only wait for requests, so that their adds can be run by hand."""
