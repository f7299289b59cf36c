"""Memories with `async` methods, called one after the other as any memory is."""

from __future__ import annotations

import inspect
import time
import types
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any

from routeprism.errors import ContractError

if TYPE_CHECKING:
    import asyncio

    from routeprism.policies._contracts import Memory
    from routeprism.records import Record

_REAL_SLEEP = time.sleep
"""Not replaced while threads are controlled."""
_ROUNDS = 100
"""How often a task that a memory left behind may continue before the memory is read."""
_METHODS = "add add_many retained expose state events reopen snapshot revive".split()


def is_asynchronous(memory: Any) -> bool:
    """Whether some method of a memory is an `async` method."""
    kind: Any = type(memory)
    if _has_plain_methods(kind):
        return False
    return any(_is_async(getattr(memory, name, None)) for name in [*_METHODS, "close"])


@lru_cache(maxsize=256)
def _has_plain_methods(kind: Any) -> bool:
    """Whether objects of a class have the methods of their class alone, and none is `async`."""
    methods = [getattr(kind, name, None) for name in [*_METHODS, "close"]]
    return (
        kind.__dictoffset__ == 0
        and kind.__getattribute__ is object.__getattribute__
        and not hasattr(kind, "__getattr__")
        and all(method is None or isinstance(method, types.FunctionType) for method in methods)
        and not any(map(_is_async, methods))
    )


def _is_async(method: Any) -> bool:
    if method is None:
        return False
    function = getattr(method, "__func__", method)  # of all objects of a class, looked at once
    return _inspect(function) if isinstance(function, types.FunctionType) else _look(function)


def _look(method: Any) -> bool:
    plain = inspect.unwrap(method) if callable(method) else method
    return any(
        inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
        for function in (method, plain)
    )


_inspect = lru_cache(maxsize=1024)(_look)


class AwaitedMemory:
    """A memory whose `async` methods are called, and awaited to their end, on a loop of its own."""

    def __init__(self, inner: Any, loop: asyncio.AbstractEventLoop | None = None) -> None:
        import asyncio  # only where a memory needs it: every worker imports this module

        self.inner = inner
        self.loop = loop or asyncio.new_event_loop()

    def __getattr__(self, name: str) -> Any:
        if name in ("inner", "loop") or name.startswith("__"):  # while it is copied
            raise AttributeError(name)
        value = getattr(self.inner, name)
        return self._await_method(value) if name in _METHODS or _is_async(value) else value

    def _await_method(self, method: Any) -> Any:
        if not callable(method):
            return method

        @wraps(method)
        def call(*arguments: Any, **options: Any) -> Any:
            return _finish(method(*arguments, **options), self.loop)

        return call

    def close(self) -> None:
        """Close the memory, if it can be closed, and its loop."""
        try:
            close = getattr(self.inner, "close", None)
            if callable(close) and not self.loop.is_closed():
                _finish(close(), self.loop)
        finally:
            self.close_loop()

    def close_loop(self) -> None:
        """Cancel the tasks that are left, and close the loop; the memory is unchanged."""
        if not self.loop.is_closed():
            _run(self.loop, _end_tasks(self.loop))
            self.loop.close()


class MemoryLoop:
    """The one event loop of a memory, which exists from the first value that is awaited."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def finish(self, value: Any) -> Any:
        """Return a value, awaited if it is awaitable."""
        if not inspect.isawaitable(value):
            return value
        import asyncio

        self._loop = self._loop or asyncio.new_event_loop()
        return _finish(value, self._loop)

    def close(self) -> None:
        """Cancel the tasks that are left, and close the loop."""
        loop, self._loop = self._loop, None
        if loop is not None:
            _run(loop, _end_tasks(loop))
            loop.close()


@dataclass(frozen=True, slots=True)
class AwaitedPolicy:
    """A policy with `async def build`; each of its memories has a loop."""

    inner: Any
    name: str

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Await the inner policy's memory."""
        memory: Memory = wrap_asynchronous(self.inner.build(arrivals))
        return memory


def wrap_asynchronous(built: Any) -> Any:
    """Return what a policy built as a memory whose methods can be called; await it if necessary."""
    if isinstance(built, AwaitedMemory):
        return built
    if not inspect.isawaitable(built):
        return AwaitedMemory(built) if is_asynchronous(built) else built
    import asyncio

    loop = asyncio.new_event_loop()
    try:
        memory = _finish(built, loop)
    except BaseException:
        loop.close()
        raise
    return AwaitedMemory(memory, loop)


def await_now(value: Any) -> Any:
    """Return a value, awaited on a new loop if it is awaitable."""
    if not inspect.isawaitable(value):
        return value
    loop = MemoryLoop()
    try:
        return loop.finish(value)
    finally:
        loop.close()


def read_clock(memory: Any) -> float:
    """Return the time by which a memory works, in seconds: that of its loop, if it has one."""
    return memory.loop.time() if isinstance(memory, AwaitedMemory) else time.monotonic()


def pass_time(memory: Any, seconds: float) -> None:
    """Wait, and let the tasks of a memory run."""
    import asyncio

    if isinstance(memory, AwaitedMemory):
        _run(memory.loop, asyncio.sleep(seconds))
    else:
        _REAL_SLEEP(seconds)


def run_tasks(memory: Any) -> None:
    """Let the tasks that a memory left behind run until they wait for something."""
    if isinstance(memory, AwaitedMemory):
        _run(memory.loop, _yield_to_tasks(memory.loop))


async def _yield_to_tasks(loop: asyncio.AbstractEventLoop) -> None:
    import asyncio

    for _ in range(_ROUNDS):
        if not asyncio.all_tasks(loop) - {asyncio.current_task(loop)}:
            return
        await asyncio.sleep(0)


def refuse_awaitable(value: Any, name: str, method: str) -> None:
    """Refuse an awaitable from a method that does not declare itself as `async`."""
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise ContractError(
            f"{name}.{method} gave an awaitable, which nothing awaits. Expected `async def "
            f"{method}`, so that RoutePrism awaits it"
        )


def _finish(value: Any, loop: asyncio.AbstractEventLoop) -> Any:
    """Await a value on a loop, or collect an async generator."""
    if inspect.isasyncgen(value):
        return _run(loop, _collect(value))
    return _run(loop, value) if inspect.isawaitable(value) else value


async def _collect(items: Any) -> list[Any]:
    return [item async for item in items]


async def _end_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel the tasks that a memory left behind, as `asyncio.run` does."""
    import asyncio

    tasks = asyncio.all_tasks(loop) - {asyncio.current_task(loop)}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await loop.shutdown_asyncgens()


def _run(loop: asyncio.AbstractEventLoop, work: Awaitable[Any]) -> Any:
    """Await some work, on a thread of its own if this one runs a loop, as a notebook does."""
    from asyncio import events

    if events._get_running_loop() is None:
        return loop.run_until_complete(work)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1, thread_name_prefix="memory") as pool:
        return pool.submit(loop.run_until_complete, work).result()
