"""An event loop that decides at every await which of several writes continues.

The loop has no sockets and no clock. When several writes could continue, a `choose` function picks
one of them, so the same choices always give the same interleaving.
"""

from __future__ import annotations

import asyncio
import sys
import sysconfig
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any, TypeVar

T = TypeVar("T")

Choose = Callable[[Sequence[int]], int]
"""(writes that can continue, by number) → the write that continues."""
Watch = Callable[[int, Callable[[], None]], None]
"""(number of a write, its next step) → runs the step and observes it."""

_WRITE: ContextVar[int | None] = ContextVar("routeprism_write", default=None)
"""The write that a callback belongs to."""
_SAME_MOMENT = 1.0
"""Sleeps that end within this many seconds of each other may end in any order."""
LIBRARY = sysconfig.get_paths()["stdlib"]
"""The folder of Python's own modules."""
_DIRECTORY = __file__.replace("\\", "/").rpartition("/")[0]
_MOST_STEPS = 100_000
"""Steps after which a write is taken to wait forever."""
_MOST_BACKGROUND_STEPS = 1_000
"""Steps that tasks which the writes left behind may take."""


class UncontrolledError(Exception):
    """The memory used something of an event loop that cannot be controlled, such as a socket."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of an interleaving: a write ran until its next await, or to its end."""

    write: int
    """The number of the write, in the order of its record's arrival."""
    place: str
    """File, line and code of the await that it reached; `end` if it ended, and `background` for a
    step of a task that it left behind."""


@dataclass(slots=True)
class _Timer:
    when: float
    handle: asyncio.Handle
    sleeps: bool
    """Whether it ends an `asyncio.sleep`."""


_AbstractLoop: Any = asyncio.AbstractEventLoop
"""Without its signatures: operations of sockets and processes stay abstract."""


class ControlledLoop(_AbstractLoop):  # type: ignore[misc]
    """Runs the writes of one memory, one step at a time."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._ready: deque[asyncio.Handle] = deque()
        self._waiting: dict[int, deque[asyncio.Handle]] = {}
        """Number of a write → its next steps."""
        self._timers: list[_Timer] = []
        self._now = 0.0
        self._running = self._closed = False
        self._choose: Choose = min
        self._watch: Watch = _run_step
        self._tasks: dict[int, asyncio.Task[Any]] = {}

    # --- Writes ----------------------------------------------------------------------------

    def overlap(
        self,
        writes: Sequence[Callable[[], Coroutine[Any, Any, Any]]],
        choose: Choose,
        watch: Watch | None = None,
    ) -> list[BaseException | None]:
        """Run writes at once, and give what each raised, if anything.

        A write that can never continue, such as one that waits for a lock that is not released,
        gives a TimeoutError. Tasks that the writes leave behind run until they wait for a timer.
        """
        self.steps, self._choose = [], choose
        self._watch = watch or _run_step
        tasks = []
        for number, write in enumerate(writes):
            context = copy_context()
            context.run(_WRITE.set, number)
            tasks.append(context.run(self.create_task, _enter(write)))
        self._tasks = dict(enumerate(tasks))
        try:
            self._spin(lambda: all(task.done() for task in tasks))
            self._spin(lambda: False, most=_MOST_BACKGROUND_STEPS, timers=False)
        except BaseException:
            self._choose, self._watch = min, _run_step
            for task in tasks:
                task.cancel()
            self._spin(lambda: all(task.done() for task in tasks))
            raise
        self._choose, self._watch = min, _run_step
        return [self._outcome(task) for task in tasks]

    def _outcome(self, task: asyncio.Task[Any]) -> BaseException | None:
        if not task.done():
            task.cancel()
            self._spin(task.done)
            return TimeoutError("the write never ended")
        if task.cancelled():
            return asyncio.CancelledError("the write was cancelled")
        return task.exception()

    def _spin(
        self, finished: Callable[[], bool], *, most: int = _MOST_STEPS, timers: bool = True
    ) -> None:
        """Run what does not belong to a choice at once, then one chosen step, until the end."""
        before = events._get_running_loop()
        events._set_running_loop(self)
        self._running = True
        try:
            for _ in range(most):
                while self._ready:
                    self._ready.popleft()._run()
                if finished():
                    return
                enabled = sorted(number for number, queue in self._waiting.items() if queue)
                if enabled:
                    self._advance(self._choose(enabled))
                elif not (timers and self._end_timer()):
                    return
        finally:
            self._running = False
            events._set_running_loop(before)

    def _advance(self, number: int) -> None:
        handle = self._waiting[number].popleft()
        if handle.cancelled():
            return
        task = self._tasks.get(number)
        ended = task is not None and task.done()
        self._watch(number, handle._run)
        if task is not None:
            place = "end" if task.done() else _find_place(task.get_coro())
            self.steps.append(Step(number, "background" if ended else place))

    def _end_timer(self) -> bool:
        """Let a timer end when nothing else can continue; close sleeps end in any order.

        A sleep often stands for a request, whose duration varies. A timeout ends at its time.
        """
        self._timers = [timer for timer in self._timers if not timer.handle.cancelled()]
        if not self._timers:
            return False
        timers = sorted(self._timers, key=lambda timer: timer.when)
        close: dict[int, _Timer] = {}
        for timer in timers if timers[0].sleeps else timers[:1]:
            number = _number_of(timer.handle)
            if timer is timers[0] or (timer.sleeps and timer.when <= timers[0].when + _SAME_MOMENT):
                close.setdefault(-1 if number is None else number, timer)
        numbers = sorted(close)
        index = close[self._choose(numbers)]
        self._timers.remove(index)
        self._now = max(self._now, index.when)
        self._ready.append(index.handle)
        return True

    # --- What asyncio calls ----------------------------------------------------------------

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Queue a callback: a step of a write waits to be chosen, anything else runs at once."""
        handle = asyncio.Handle(callback, args, self, context)
        number = _number_of(handle)
        steps = isinstance(getattr(callback, "__self__", None), asyncio.Task)
        if number is not None and (steps or callback is _run_function):
            self._waiting.setdefault(number, deque()).append(handle)
        else:
            self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # nothing here runs on another thread

    def call_later(
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Queue a timer; time passes only when nothing else can continue."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Queue a timer for a moment of the loop's own time."""
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        sleeps = getattr(callback, "__name__", "") == "_set_result_unless_cancelled"
        self._timers.append(_Timer(when, handle, sleeps))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Do nothing: cancelled timers are left out when timers end."""

    def time(self) -> float:
        """Return the loop's own time, in seconds."""
        return self._now

    def create_future(self) -> asyncio.Future[Any]:
        """Make a future of this loop."""
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        """Make a task of this loop; it belongs to the write that makes it."""
        return asyncio.Task(coro, loop=self, **options)

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:
        """Run a function as a step of its own instead of on another thread."""
        future = self.create_future()
        self.call_soon(_run_function, future, func, args)
        return future

    def run_until_complete(self, future: Any) -> Any:
        """Run one awaitable to its end."""
        task = asyncio.ensure_future(future, loop=self)
        self._spin(task.done)
        if not task.done():
            task.cancel()
            self._spin(task.done)
            raise TimeoutError("the memory waits for something that never happens")
        return task.result()

    def is_running(self) -> bool:
        """Whether a callback is being run."""
        return self._running

    def is_closed(self) -> bool:
        """Whether the loop was closed."""
        return self._closed

    def close(self) -> None:
        """Forget what still waits."""
        self._ready.clear()
        self._waiting.clear()
        self._timers.clear()
        self._closed = True

    def get_debug(self) -> bool:
        """Debugging is off."""
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Ignore: what a write raises is reported as its outcome."""

    async def shutdown_asyncgens(self) -> None:
        """Do nothing: asynchronous generators end with their writes."""

    def __getattribute__(self, name: str) -> Any:
        """Name the operations that cannot be controlled."""
        if name in _UNCONTROLLED:
            raise UncontrolledError(f"the memory uses loop.{name}, which cannot be controlled")
        return super().__getattribute__(name)


_UNCONTROLLED = frozenset(
    name
    for name in dir(asyncio.AbstractEventLoop)
    if name.startswith(("sock_", "create_connection", "create_server", "create_datagram"))
    or name.startswith(("subprocess_", "connect_", "add_reader", "add_writer", "getaddrinfo"))
)
"""Methods that need a socket or a process."""


async def _enter(write: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return await write()


def _run_step(number: int, run: Callable[[], None]) -> None:
    run()


def _run_function(future: asyncio.Future[Any], func: Callable[..., Any], args: Any) -> None:
    if future.cancelled():
        return
    try:
        future.set_result(func(*args))
    except Exception as error:
        future.set_exception(error)


def _number_of(handle: asyncio.Handle) -> int | None:
    context: Context = handle._context  # type: ignore[attr-defined]
    return context.get(_WRITE)


def _find_place(coroutine: Any) -> str:
    """Name the innermost line outside asyncio at which a write waits."""
    place: FrameType | None = None
    inner = coroutine
    while inner is not None:
        frame = getattr(inner, "cr_frame", None) or getattr(inner, "gi_frame", None)
        if frame is not None and not is_machinery(frame.f_code):
            place = frame
        inner = getattr(inner, "cr_await", None) or getattr(inner, "gi_yieldfrom", None)
    return "await" if place is None else name_place(place)


def name_place(frame: FrameType) -> str:
    """Name the file, line and function of a frame."""
    file = frame.f_code.co_filename.replace("\\", "/").rpartition("/")[2]
    return f"{file}:{frame.f_lineno} in {frame.f_code.co_name}"


def is_machinery(code: CodeType) -> bool:
    """Whether code belongs to asyncio or to this package rather than to a memory."""
    folder = code.co_filename.replace("\\", "/").rpartition("/")[0]
    return folder == _DIRECTORY or folder.endswith("/asyncio")


@lru_cache(maxsize=256)
def is_foreign(module: str) -> bool:
    """Whether a module belongs neither to Python nor to RoutePrism."""
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    library = file.startswith(LIBRARY) and "site-packages" not in file
    return bool(file) and not library and module.partition(".")[0] != "routeprism"
