"""Thread-safe memories with known races, and the same memories without them.

Each race is between two lines, so that it also shows where threads switch between lines only.
"""

from __future__ import annotations

import queue
import threading
import time
from threading import Lock, RLock
from time import sleep

from routeprism import Record

SHARED = Lock()
"""A lock that was made before any memory."""


class Base:
    concurrent = True
    offline = True

    def __init__(self) -> None:
        self.items: tuple[str, ...] = ()

    def retained(self) -> list[str]:
        return list(self.items)

    def expose(self, query: str) -> list[str]:
        return list(self.items)


class LostUpdate(Base):
    def add(self, record: Record) -> None:
        items = self.items
        self.items = (*items, record.id)


class CheckThenInsert(Base):
    def __init__(self) -> None:
        super().__init__()
        self.log: list[str] = []

    def add(self, record: Record) -> None:
        is_known = record.text in self.log
        if not is_known:
            self.log.append(record.text)

    def retained(self) -> list[str]:
        return [f"id of {text}" for text in self.log]


class TornWrite(Base):
    def __init__(self) -> None:
        super().__init__()
        self.log: list[str] = []
        self.name = self.value = ""

    def add(self, record: Record) -> None:
        self.log.append(record.id)
        self.name = record.id
        self.value = record.text

    def retained(self) -> list[str]:
        return sorted(self.log)

    def state(self) -> dict[str, str]:
        return {"name": self.name, "value": self.value}


class ValueCheck(Base):
    """Compares and swaps by a value that can change and come back (A, B, A)."""

    def __init__(self) -> None:
        super().__init__()
        self.loans = 0
        self.lock = threading.Lock()

    def add(self, record: Record) -> None:
        while True:
            items = self.items
            loans = self.loans
            new = (*items, record.id)
            with self.lock:
                if self.loans == loans:
                    self.loans += 1
                    self.items = new
                    self.loans -= 1
                    return


class DoubleEviction(Base):
    """Has room for two; two adds that find it too full both make room for the same one."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[str] = []

    def add(self, record: Record) -> None:
        self.log.append(record.id)
        excess = max(len(self.log) - 2, 0)
        del self.log[:excess]

    def retained(self) -> list[str]:
        return list(self.log)


class StaleCounter(Base):
    def __init__(self) -> None:
        super().__init__()
        self.log: list[str] = []
        self.number = 0

    def add(self, record: Record) -> None:
        number = self.number
        self.log.append(record.id)
        self.number = number + 1

    def retained(self) -> list[str]:
        return sorted(self.log)

    def state(self) -> int:
        return self.number


class Deadlock(Base):
    """Takes two locks in an order that depends on the record."""

    def __init__(self) -> None:
        super().__init__()
        self.locks = threading.Lock(), threading.Lock()

    def add(self, record: Record) -> None:
        first, second = self.locks if record.position else self.locks[::-1]
        with first, second:
            self.items = (*self.items, record.id)


class Locked(LostUpdate):
    def __init__(self) -> None:
        super().__init__()
        self.lock = RLock()  # imported by name

    def add(self, record: Record) -> None:
        with self.lock, self.lock:
            super().add(record)


class SharedLock(LostUpdate):
    def add(self, record: Record) -> None:
        with SHARED:
            super().add(record)


class Signalled(LostUpdate):
    """One add at a time, by a condition; waits in between."""

    def __init__(self) -> None:
        super().__init__()
        self.free = threading.Condition()
        self.busy = False

    def add(self, record: Record) -> None:
        with self.free:
            while self.busy:
                self.free.wait()
            self.busy = True
        sleep(0.5)  # takes no time: the scheduler decides when it ends
        super().add(record)
        with self.free:
            self.busy = False
            self.free.notify()


class Queued(LostUpdate):
    """Adds hand over to whoever empties the queue."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: queue.Queue[Record] = queue.Queue()
        self.writer = threading.Lock()

    def add(self, record: Record) -> None:
        self.waiting.put(record)
        with self.writer:
            while not self.waiting.empty():
                super().add(self.waiting.get())


class Background(LostUpdate):
    """Writes on a thread of its own, which RoutePrism does not control."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def add(self, record: Record) -> None:
        thread = threading.Thread(target=self.write, args=(record,))
        thread.start()
        thread.join()

    def write(self, record: Record) -> None:
        with self.lock:
            time.sleep(0.001)
            super().add(record)
