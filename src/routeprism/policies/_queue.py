"""A write queue around any memory: adds wait for each other."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from routeprism.errors import SpecError
from routeprism.policies._contracts import Memory, Policy
from routeprism.policies.own import OwnMemory, find_own_memory
from routeprism.records import Record


@dataclass(frozen=True, slots=True)
class Queue:
    """Lets adds to its policy's memory wait for each other."""

    inner: Policy
    """A memory class of your own, or the adapter of a server."""

    def __post_init__(self) -> None:
        if find_own_memory(self.inner) is None:
            raise SpecError(
                f"Expected a class with add(record) or the adapter of a server in queue(…) but got "
                f"{self.inner.name}"
            )

    @property
    def _own(self) -> OwnMemory:
        own = find_own_memory(self.inner)
        assert own is not None  # noqa: S101 (checked above)
        return own

    @property
    def name(self) -> str:
        """The spec in every output."""
        return f"queue({self.inner.name})"

    @property
    def deterministic(self) -> bool:
        """Whether its policy declares that it is deterministic."""
        return getattr(self.inner, "deterministic", True) is not False

    @property
    def outside(self) -> bool:
        """Whether its policy stands for a system outside this process."""
        return self._own.outside

    @property
    def procedures(self) -> tuple[str, ...] | None:
        """The procedures that its policy can perform, if it declares them."""
        return self._own.procedures

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Build its policy: adds that are made one by one need no queue."""
        return self.inner.build(arrivals)

    def open(self) -> Any:
        """Return an empty memory behind a queue."""
        memory = self._own.factory()
        waits = inspect.iscoroutinefunction(getattr(memory, "add", None))
        return _AsyncQueuedMemory(memory) if waits else QueuedMemory(memory)


class QueuedMemory:
    """A memory whose adds wait for each other; you can use it in your own code."""

    concurrent = True

    def __init__(self, memory: Any) -> None:
        self.memory = memory
        self._writing = threading.Lock()

    def add(self, record: Any) -> None:
        """Add a record when no other add is going on."""
        with self._writing:
            self.memory.add(record)

    def retained(self) -> Any:
        """Return what the memory retains."""
        return self.memory.retained()

    def expose(self, query: str) -> Any:
        """Return what the memory exposes."""
        return self.memory.expose(query)

    def __getattr__(self, name: str) -> Any:
        if name == "memory" or name.startswith("__"):  # while it is copied
            raise AttributeError(name)
        return getattr(self.memory, name)


class _AsyncQueuedMemory(QueuedMemory):
    """The same for a memory with `async def add`."""

    def __init__(self, memory: Any) -> None:
        import asyncio

        super().__init__(memory)
        self._turn = asyncio.Lock()

    async def add(self, record: Any) -> None:  # type: ignore[override]
        async with self._turn:
            await self.memory.add(record)
