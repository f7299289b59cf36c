"""Memories with known races, and the same memories without them."""

from __future__ import annotations

import asyncio

from routeprism import Record


def make_records(number: int, texts: tuple[str, ...] = ()) -> tuple[Record, ...]:
    return tuple(
        Record(f"r{at}", at, texts[at] if at < len(texts) else f"text {at}") for at in range(number)
    )


class Base:
    offline = True

    def __init__(self) -> None:
        self.items: tuple[str, ...] = ()

    def retained(self) -> list[str]:
        return list(self.items)

    def expose(self, query: str) -> list[str]:
        return list(self.items)


class LostUpdate(Base):
    """Reads the list, waits, and writes it back with one more record."""

    async def add(self, record: Record) -> None:
        items = self.items
        await asyncio.sleep(0)
        self.items = (*items, record.id)


class CheckThenInsert(Base):
    """Looks whether a text is known, waits, and inserts it; equal texts are one record."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[str, str] = {}
        self.log: list[str] = []

    async def add(self, record: Record) -> None:
        is_known = record.text in self.texts
        await asyncio.sleep(0)
        if not is_known:
            self.log.append(record.text)
            self.texts[record.text] = record.text

    def retained(self) -> list[str]:
        return [f"id of {text}" for text in self.log]


class TornWrite(Base):
    """Writes the name and the value of the last record in two steps."""

    def __init__(self) -> None:
        super().__init__()
        self.name = self.value = ""

    async def add(self, record: Record) -> None:
        self.items = (*self.items, record.id)
        self.name = record.id
        await asyncio.sleep(0)
        self.value = record.text

    def retained(self) -> list[str]:
        return sorted(self.items)

    def state(self) -> dict[str, str]:
        return {"name": self.name, "value": self.value}


class ValueCheck(Base):
    """Swaps if the value is still the one that it read, although it may have changed and come back.

    The value is the number of records on loan, which adds take and give back (A, B, A).
    """

    def __init__(self) -> None:
        super().__init__()
        self.loans = 0

    async def add(self, record: Record) -> None:
        while True:
            items, loans = self.items, self.loans
            await asyncio.sleep(0)
            if self.loans == loans:
                break
        self.loans += 1
        self.items = (*items, record.id)
        self.loans -= 1


class DoubleEviction(Base):
    """Has room for two records; two adds that find it too full both make room for the same one."""

    async def add(self, record: Record) -> None:
        self.items = (*self.items, record.id)
        excess = max(len(self.items) - 2, 0)
        await asyncio.sleep(0)
        self.items = self.items[excess:]


class StaleCounter(Base):
    """Counts its records in a value that it reads before it waits."""

    def __init__(self) -> None:
        super().__init__()
        self.number = 0

    async def add(self, record: Record) -> None:
        number = self.number
        await asyncio.sleep(0)
        self.items = (*self.items, record.id)
        self.number = number + 1

    def retained(self) -> list[str]:
        return sorted(self.items)

    def state(self) -> int:
        return self.number


class FailingAdd(Base):
    """Raises an error if a second add begins before the first has ended."""

    busy = False

    async def add(self, record: Record) -> None:
        if self.busy:
            raise RuntimeError("the store is in use")
        self.busy = True
        await asyncio.sleep(0)
        self.items = (*self.items, record.id)
        self.busy = False


class Atomic(Base):
    """Waits before and after it writes, but not in between."""

    async def add(self, record: Record) -> None:
        await asyncio.sleep(0)
        self.items = (*self.items, record.id)
        await asyncio.sleep(0)

    def state(self) -> list[str]:
        return list(self.items)

    def key(self, state: list[str]) -> tuple[str, ...]:
        return tuple(sorted(state))


class Locked(LostUpdate):
    """The lost update, repaired by a lock."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = asyncio.Lock()

    async def add(self, record: Record) -> None:
        async with self.lock:
            await super().add(record)


class LockedCheck(CheckThenInsert):
    """The check and the insert, repaired by a lock."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = asyncio.Lock()

    async def add(self, record: Record) -> None:
        async with self.lock:
            await super().add(record)


class ThreeAwaits(Base):
    """Waits three times: before it reads, between reading and writing, and afterwards."""

    async def add(self, record: Record) -> None:
        await asyncio.sleep(0)
        items = self.items
        await asyncio.sleep(0)
        self.items = (*items, record.id)
        await asyncio.sleep(0)
