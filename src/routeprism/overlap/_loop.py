"""An event loop that decides at every await which of several writes continues.

The loop has no sockets and no clock. When several things could happen next, a `choose` function
picks one of them, so the same choices always give the same interleaving.

A sleep stands for a request of unknown duration, and so does a function on another thread: it may
end before or after any step of another write. Timeouts end in the order of their deadlines, once
nothing but requests can continue. Two rules keep this finite: a task that returns to the same await
without a change is not repeated until another task has run, and a loop that goes on changing
something passes an await only so often while others can continue.
"""

from __future__ import annotations

import asyncio
import sys
import sysconfig
import threading
from asyncio import events
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from types import CodeType, FrameType
from typing import Any, TypeVar

from routeprism.overlap._deadlines import Deadlines
from routeprism.overlap._progress import digest_progress, is_in_loop, list_frames

T = TypeVar("T")

Choose = Callable[[Sequence[int]], int]
"""(what can happen next) → what happens; `find_write` names the write of each."""
Watch = Callable[[int, Callable[[], bool]], None]
"""(number of a write, its next step) → runs the step and observes it.

The step returns whether it has affected when other writes can continue.
"""

_WRITE: ContextVar[tuple[int, int]] = ContextVar("routeprism_write")
"""The call of `overlap`, and its write, that a callback belongs to."""
_BASE = 1 << 16
BACKGROUND = _BASE - 1
"""The number of the tasks that were there before the writes."""
NOBODY = -1
"""The number of a write that does nothing in a step: a request has ended, but others go first."""
LIBRARY = sysconfig.get_paths()["stdlib"]
"""The folder of Python's own modules."""
_DIRECTORY = __file__.replace("\\", "/").rpartition("/")[0]
_MOST_STEPS = 20_000
"""Steps after which a write is taken to wait forever."""
_MOST_RETURNS = 200
"""How often writes that cannot change anything return to an await before they wait forever."""
_MOST_PASSES = 100
"""How often a write may pass the same await while others can continue."""
_BACKGROUND_PASSES = 3
"""The same for a task that a write starts."""
_REMAINING_PASSES = 10
"""How often a task that outlives its write passes an await in all, for each write."""
NEVER_ENDED = "the write never ended"
_THREADS = "the memory waits for a thread that it started, which cannot be controlled"


def find_write(choice: int) -> int:
    """Return the number of the write to which a choice belongs."""
    return choice % _BASE


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


@dataclass(frozen=True, slots=True)
class Pause:
    """A sleep, or a function on another thread, of a write."""

    write: int
    number: int
    """From 1, among the requests of the write."""
    began: int
    """How many requests and timeouts had ended when it began."""
    ended: int | None = None
    """Its own place in the order in which requests and timeouts ended; None if it did not."""
    between: tuple[int, ...] = ()
    """Writes that were between two steps when it ended."""
    unbegun: tuple[int, ...] = ()
    """Writes that had not begun when it ended."""


@dataclass(frozen=True, slots=True)
class Timeout:
    """A timeout that ended."""

    write: int
    seconds: float
    ended: int


@dataclass(slots=True)
class _Request:
    handle: asyncio.Handle
    when: float
    """When it would end by its own duration."""
    index: int = 0
    """Its place among the requests of this trial."""
    task: asyncio.Task[Any] | None = None
    """The task that sleeps; None for a function on another thread."""
    thread: int = 0
    """The executor of the function, if that has one thread for all its functions."""

    @property
    def is_pending(self) -> bool:
        arguments: Any = self.handle._args
        return not self.handle.cancelled() and not arguments[0].done()


@dataclass(slots=True)
class _Timer:
    handle: asyncio.TimerHandle
    seconds: float
    serial: int
    """Its place in the order in which timeouts were set."""
    write: int = BACKGROUND
    delayed: bool = False
    """Whether its write has waited for something other than a request of its own."""


_AbstractLoop: Any = asyncio.AbstractEventLoop
"""Without its signatures: operations of sockets and processes stay abstract."""


class ControlledLoop(_AbstractLoop):  # type: ignore[misc]
    """Runs the writes of one memory, one step at a time."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.requests: list[Pause] = []
        self.timeouts: list[Timeout] = []
        self.slow: set[int] = set()
        """Writes with a request of their own that took longer than a timeout."""
        self.intruded = False
        """Whether a task that outlives a write went on while the write could continue."""
        self._early: set[int] = set()
        """Tasks with a request that ended while something else could continue."""
        self.bounds: set[str] = set()
        """What limits the interleavings, in words."""
        self._ready: deque[asyncio.Handle] = deque()
        """What runs at once, because no write can see when it does."""
        self._queues: dict[int, deque[tuple[int, asyncio.Handle]]] = {}
        """Number of a write → its next steps, each with its choice."""
        self._requests: dict[int, _Request] = {}
        self._timers: dict[int, _Timer] = {}
        self._deadlines = Deadlines()
        self._choices: dict[asyncio.Task[Any], int] = {}
        self._counts: Counter[int] = Counter()
        """Number of a write → how many choices it was given."""
        self._unchanged: set[int] = set()
        """Tasks that have returned to the same await, and wait until another task has run."""
        self._visited: set[tuple[int, int]] = set()
        """Tasks with digests of all that they could reach at an await."""
        self._latest: tuple[int, int | None] = (NOBODY, None)
        """The task that has run last, with the digest of what it could reach then."""
        self._places: dict[int, str] = {}
        """Task → the await inside a loop at which it is."""
        self._passes: Counter[tuple[int, str]] = Counter()
        """How often a task was at an await inside a loop."""
        self._returns: Counter[int] = Counter()
        """How often a task was repeated because nothing else could continue."""
        self._numbers: Counter[int] = Counter()
        """How many requests each write has begun."""
        self._begun: set[int] = set()
        """Writes that have begun."""
        self._serial = 0
        """How many timeouts were set."""
        self._ended = 0
        """How many requests and timeouts have ended."""
        self._crossed = False
        """Whether the current step has affected when other writes can continue."""
        self._current = BACKGROUND
        """The write whose step runs."""
        self._overlap = 0
        """The number of the current call of `overlap`."""
        self._now = 0.0
        self._is_timed = False
        """Whether the memory has read the time."""
        self._running = self._closed = self._interleaving = False
        self._watch: Watch = _run_step
        self._tasks: dict[int, asyncio.Task[Any]] = {}
        self._stuck: set[asyncio.Task[Any]] = set()
        """Writes that could not continue."""
        self._threads = set(threading.enumerate())
        """Those that are older than the memory."""
        self._thread = threading.current_thread()
        """The one that runs the loop."""
        self.obstacle = ""
        """What the memory used that cannot be controlled; it may have caught the error."""

    # --- Writes ----------------------------------------------------------------------------

    def overlap(
        self,
        writes: Sequence[Callable[[], Coroutine[Any, Any, Any]]],
        choose: Choose,
        watch: Watch | None = None,
    ) -> list[BaseException | None]:
        """Run writes at once, and give what each raised, if anything.

        A write that can never continue, such as one that waits for a lock that is not released,
        gives a TimeoutError. Tasks that the writes leave behind run until nothing changes.
        """
        self.steps, self.requests, self.timeouts = [], [], []
        self.slow, self.bounds, self._early, self.intruded = set(), set(), set(), False
        self._watch = watch or _run_step
        self._overlap += 1
        self._interleaving = True
        self._tasks = {}
        self._adopt()
        try:
            for number, write in enumerate(writes):
                context = copy_context()
                context.run(_WRITE.set, (self._overlap, number))
                self._tasks[number] = context.run(self.create_task, _enter(write))
            with _running(self):
                self._interleave(choose)
        except BaseException:
            self._leave()
            raise
        self._leave()
        return [self._outcome(task) for task in self._tasks.values()]

    def _leave(self) -> None:
        """Go back to one call at a time; end the writes that did not."""
        self._interleaving, self._watch = False, _run_step
        unfinished = [task for task in self._tasks.values() if not task.done()]
        if unfinished and not self._threads.issuperset(threading.enumerate()):
            self.obstacle = self.obstacle or _THREADS
        for task in unfinished:
            self._stuck.add(task)
            task.cancel()
        self._spin(lambda: all(task.done() for task in unfinished))

    def _outcome(self, task: asyncio.Task[Any]) -> BaseException | None:
        if self.obstacle:
            return UncontrolledError(self.obstacle)
        if task in self._stuck:
            return TimeoutError(NEVER_ENDED)
        if task.cancelled():
            return asyncio.CancelledError("the write was cancelled")
        return task.exception()

    def choose_due(self, choices: Sequence[int]) -> int:
        """Choose a step, or what ends first by its own duration."""
        due = {choice: request.when for choice, request in self._requests.items()}
        due |= {choice: timer.handle.when() for choice, timer in self._timers.items()}
        return min(choices, key=lambda choice: (due.get(choice, -1.0), choice))

    def _adopt(self) -> None:
        """Forget the writes of an earlier call; what they left behind is in the background."""
        self._counts.clear()
        self._latest, self._is_timed = (NOBODY, None), False
        self._numbers.clear()
        self._begun.clear()
        for choices in (self._unchanged, self._visited, self._places, self._passes, self._returns):
            choices.clear()
        steps = [handle for queue in self._queues.values() for _, handle in queue]
        requests, timers = [*self._requests.values()], [*self._timers.values()]
        self._choices = {
            task: self._number(BACKGROUND) for task in self._choices if not task.done()
        }
        for task, choice in self._choices.items():
            self._note_place(choice, _name_loop(task))
        self._queues, self._requests, self._timers = {}, {}, {}
        self._deadlines = Deadlines()
        for handle in steps:
            self._queue(handle)
        for request in requests:
            choice = -1 if request.task is None else self._choices.get(request.task, -1)
            self._add_request(self._number(BACKGROUND) if choice < 0 else choice, request)
        for timer in timers:
            self._add_timer(timer)

    def _number(self, write: int) -> int:
        """Make the number of something that can happen next; it depends on its write alone."""
        choice = self._counts[write] * _BASE + write
        self._counts[write] += 1
        return choice

    def _interleave(self, choose: Choose) -> None:
        """Let one thing after the other happen, until nothing can change any more."""
        for _ in range(_MOST_STEPS):
            self._drain()
            choices = self._list_choices()
            choice = choose(choices) if choices else self._find_repetition()
            if choice is None:
                return
            self._note_intrusion(choice, choices)
            self._perform(choice)

    def _note_intrusion(self, choice: int, choices: Sequence[int]) -> None:
        """Note what goes on beside a write that could continue as well."""
        if all(find_write(rest) == BACKGROUND or rest == choice for rest in choices):
            return
        if find_write(choice) == BACKGROUND:
            self.intruded = True
        elif choice in self._requests:
            self._early.add(choice)

    def _list_choices(self) -> list[int]:
        """List what can happen next: steps and ends of requests; without steps, timeouts also."""
        self._forget_cancelled()
        steps = [choice for queue in self._queues.values() for choice, _ in queue]
        possible = [*self._list_steps(), *self._list_requests()]
        choices = [choice for choice in possible if not self._is_held(choice)]
        for choice in filter(self._is_repetitive, possible if choices else ()):
            is_write = choice < len(self._tasks)
            name, most = ("a write", _MOST_PASSES) if is_write else ("a task", _BACKGROUND_PASSES)
            self.bounds.add(f"{name} passes an await in a loop at most {most} times")
        if not any(choice in steps for choice in choices):
            choices += [c for c, t in self._timers.items() if self._deadlines.may_end(t.serial)]
        return sorted(choices)

    def _forget_cancelled(self) -> None:
        self._requests = {c: r for c, r in self._requests.items() if r.is_pending}
        for choice in [c for c, timer in self._timers.items() if timer.handle.cancelled()]:
            self._deadlines.remove(self._timers.pop(choice).serial)

    def _list_steps(self) -> Iterator[int]:
        """Yield the next step of each write: that of its first task, unless that one is held."""
        for queue in self._queues.values():
            choices = [choice for choice, handle in queue if not handle.cancelled()]
            yield from [c for c in choices if self._is_held(c)]
            yield from [c for c in choices if not self._is_held(c)][:1]

    def _list_requests(self) -> Iterator[int]:
        """Yield the requests that may end; functions on one thread end one after the other."""
        threads: set[int] = set()
        for choice, request in self._requests.items():
            if not request.thread or request.thread not in threads:
                yield choice
            threads.add(request.thread)

    def _is_held(self, choice: int) -> bool:
        """Whether a task waits until nothing else can continue."""
        return choice in self._unchanged or self._is_repetitive(choice)

    def _is_repetitive(self, choice: int) -> bool:
        """Whether a task has passed its await as often as it may while others can continue."""
        is_write = choice < len(self._tasks)
        passes = self._passes[choice, self._places.get(choice, "")]
        return passes > (_MOST_PASSES if is_write else _BACKGROUND_PASSES)

    def _find_repetition(self) -> int | None:
        """Choose a task that repeats itself, if nothing else can continue; None at the end."""
        is_over = all(task.done() for task in self._tasks.values())

        def may_repeat(choice: int) -> bool:
            if choice in self._unchanged:
                # Only a clock can still change what it does.
                return not is_over and (self._is_timed or self._returns[choice] < _MOST_RETURNS)
            most = _REMAINING_PASSES * len(self._tasks)
            passes = self._passes[choice, self._places.get(choice, "")]
            return choice < len(self._tasks) or passes <= most

        choices = filter(may_repeat, [*self._list_steps(), *self._list_requests()])
        choice = min(choices, key=lambda choice: (self._returns[choice], choice), default=None)
        if choice is not None:
            self._returns[choice] += 1
        return choice

    def _perform(self, choice: int) -> None:
        """Let something happen."""
        write = find_write(choice)
        if choice in self._timers:
            self._end_timeout(choice)
        elif choice not in self._requests:
            self._advance(choice)
        elif self._requests[choice].task is None:
            request = self._end_request(choice)
            self._observe(write, write, partial(self._run, request.handle))
            self._unchanged.clear()
            self._latest = NOBODY, None
            self.steps.append(Step(write, "function"))
        elif self._queues.get(write) or self._count_tasks(write) > 1:
            # The task continues after what its write has to do before.
            request = self._end_request(choice)
            self._observe(NOBODY, write, partial(self._run, request.handle))
        else:
            self._current = write
            self._run(self._end_request(choice).handle)
            self._advance(choice)

    def _observe(self, observed: int, write: int, run: Callable[[], None]) -> None:
        """Run a step; its place among the others matters while a timeout is pending."""

        def run_step() -> bool:
            is_timed, self._crossed, self._current = bool(self._timers), False, write
            run()
            return self._crossed or is_timed or bool(self._timers)

        self._watch(observed, run_step)

    def _run(self, handle: asyncio.Handle) -> None:
        handle._run()
        self._drain()

    def _drain(self) -> None:
        while self._ready:
            self._ready.popleft()._run()

    def _advance(self, choice: int) -> None:
        """Let a task, or a function of the memory that the loop calls, run its next step."""
        write = find_write(choice)
        handle = self._take_step(choice)
        task = _find_task(handle)
        main = self._tasks.get(write)
        is_over = main is None or main.done()
        is_compared, before = self._find_progress(choice, task)
        self._places.pop(choice, None)
        self._begun.add(write)
        self._observe(write, write, partial(self._run, handle))
        waiting = main if task is None or task.done() else task
        reached = "background" if is_over or waiting is None else _find_place(waiting)
        self.steps.append(Step(write, reached))
        if task is main and reached == "end":
            remaining = {number for each, number in self._choices.items() if not each.done()}
            self.intruded = self.intruded or not self._early.isdisjoint(remaining)
        self._note_progress(choice, task, before, is_compared=is_compared)

    def _take_step(self, choice: int) -> asyncio.Handle:
        queue = self._queues[find_write(choice)]
        at = [number for number, _ in queue].index(choice)
        handle = queue[at][1]
        del queue[at]
        return handle

    def _find_progress(
        self, choice: int, task: asyncio.Task[Any] | None
    ) -> tuple[bool, int | None]:
        """Find whether a task in a loop is compared, and the digest of its progress.

        One that has changed something very often is held anyway.
        """
        is_compared = choice in self._unchanged or not self._is_repetitive(choice)
        if task is None or choice not in self._places or not is_compared:
            return is_compared, None
        latest, digest = self._latest  # nothing has happened since
        return is_compared, digest if latest == choice else digest_progress(task)

    def _note_progress(
        self,
        choice: int,
        task: asyncio.Task[Any] | None,
        before: int | None,
        *,
        is_compared: bool,
    ) -> None:
        """Note whether a task has returned to an await without a change."""
        after = None
        if task and self._note_place(choice, _name_loop(task)) and is_compared:
            after = digest_progress(task)
        self._latest = choice, after
        if after is not None and (after == before or (choice, after) in self._visited):
            self._unchanged.add(choice)
            return
        self._unchanged.clear()
        if after is not None:
            self._visited.add((choice, after))

    def _note_place(self, choice: int, place: str) -> bool:
        """Note that a task has reached an await; return whether it is inside a loop."""
        if place:
            self._places[choice] = place
            self._passes[choice, place] += 1
        return bool(place)

    def _count_tasks(self, write: int) -> int:
        return sum(
            find_write(choice) == write and not task.done()
            for task, choice in self._choices.items()
        )

    # --- Requests and timeouts -------------------------------------------------------------

    def _add_request(self, choice: int, request: _Request) -> None:
        write = find_write(choice)
        self._numbers[write] += 1
        request.index = len(self.requests)
        self.requests.append(Pause(write, self._numbers[write], self._ended))
        self._requests[choice] = request

    def _add_timer(self, timer: _Timer) -> None:
        if self._interleaving:
            self._deadlines.add(timer.serial, timer.handle.when() - self._now)
        timer.write = self._find_owner(timer.handle)
        self._timers[self._number(timer.write)] = timer

    def _end_request(self, choice: int) -> _Request:
        """End a request; writes that wait for something else have waited for an unknown time."""
        write = find_write(choice)
        self._pass_time()
        self._deadlines.pass_time()
        request = self._requests.pop(choice)
        steps = {find_write(c) for c in self._list_steps() if not self._is_held(c)}
        begun = self._begun
        self.requests[request.index] = replace(
            self.requests[request.index],
            ended=self._ended,
            between=tuple(sorted((steps & begun) - {write, BACKGROUND})),
            unbegun=tuple(sorted(self._tasks.keys() - begun)),
        )
        self._now = max(self._now, request.when)
        return request

    def _end_timeout(self, choice: int) -> None:
        timer = self._timers[choice]
        self._pass_time()
        if not timer.delayed:
            self.slow.add(timer.write)
        del self._timers[choice]
        self._deadlines.end(timer.serial)
        self.timeouts.append(Timeout(timer.write, timer.seconds, self._ended))
        self._now = max(self._now, timer.handle.when())
        self._unchanged.clear()
        self._latest = NOBODY, None
        self._current = timer.write
        self._run(timer.handle)
        self.steps.append(Step(timer.write, "timeout"))

    def _pass_time(self) -> None:
        """Note which writes wait for something other than a request of their own."""
        self._ended += 1
        busy = {find_write(choice) for choice in self._requests}
        for timer in self._timers.values():
            timer.delayed = timer.delayed or timer.write not in busy

    # --- One call at a time ----------------------------------------------------------------

    def _spin(self, finished: Callable[[], bool]) -> None:
        """Run everything in its order; requests end by their own durations."""
        with _running(self):
            for _ in range(_MOST_STEPS):
                self._drain()
                self._forget_cancelled()
                if finished():
                    return
                if queue := next(filter(None, self._queues.values()), None):
                    queue.popleft()[1]._run()  # a cancelled handle is of no effect
                elif not self._end_first():
                    return

    def _end_first(self) -> bool:
        """End the request or the timeout that is due first, if there is any."""
        if not (self._requests or self._timers):
            return False
        choice = self.choose_due([*self._requests, *self._timers])
        if (timer := self._timers.pop(choice, None)) is not None:
            self._now = max(self._now, timer.handle.when())
            self._ready.append(timer.handle)
        else:
            request = self._requests.pop(choice)
            self._now = max(self._now, request.when)
            self._ready.append(request.handle)
        return True

    # --- What asyncio calls ----------------------------------------------------------------

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Queue a callback: a step of a write waits to be chosen, anything else runs at once."""
        handle = asyncio.Handle(callback, args, self, context)
        if _find_task(handle) is not None or _is_own(callback):
            self._queue(handle)
        else:
            self._ready.append(handle)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Queue a callback; one of a thread that the memory started is left out."""
        if threading.current_thread() is self._thread:
            return self.call_soon(callback, *args, context=context)
        self.obstacle = _THREADS
        return asyncio.Handle(callback, args, self, context)

    def _queue(self, handle: asyncio.Handle) -> None:
        task = _find_task(handle)
        choice = self._choices.get(task) if task is not None else None
        if choice is None:
            choice = self._number(self._find_owner(handle))
            if task is not None:
                self._choices[task] = choice
        write = find_write(choice)
        self._crossed = self._crossed or write != self._current
        self._queues.setdefault(write, deque()).append((choice, handle))

    def _find_owner(self, handle: asyncio.Handle) -> int:
        """Find the write that a callback belongs to."""
        context: Context = handle._context  # type: ignore[attr-defined]
        overlap, write = context.get(_WRITE, (0, BACKGROUND))
        return write if self._interleaving and overlap == self._overlap else BACKGROUND

    def call_later(
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Queue a timer."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Queue a timer for a moment of the loop's own time; a sleep is a request."""
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        task = asyncio.current_task(self)
        is_sleep = getattr(callback, "__name__", "") == "_set_result_unless_cancelled"
        if is_sleep and task is not None and task in self._choices:
            self._add_request(self._choices[task], _Request(handle, when, task=task))
        else:
            self._serial += 1
            self._add_timer(_Timer(handle, when - self._now, self._serial))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Do nothing: cancelled timers are left out when timers end."""

    def time(self) -> float:
        """Return the loop's own time, in seconds."""
        self._is_timed = True
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
        handle = asyncio.Handle(_run_function, (future, func, args), self, None)
        request = _Request(handle, self._now)
        if getattr(executor, "_max_workers", None) == 1:
            request.thread = id(executor)
            self._crossed = True
        else:
            self.bounds.add("functions on other threads run one after the other")
        self._add_request(self._number(self._find_owner(handle)), request)
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
        self._queues.clear()
        self._requests.clear()
        self._timers.clear()
        self._closed = True

    def get_debug(self) -> bool:
        """Debugging is off."""
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Ignore errors: what a write raises is its outcome. An interruption ends the trial."""
        error: Any = context.get("exception")
        if "handle" in context and not isinstance(error, (Exception, asyncio.CancelledError)):
            raise error

    def close_generator(self, generator: Any) -> None:
        """Run the cleanup of an asynchronous generator that is no longer iterated."""
        if not self._closed:
            self.create_task(generator.aclose())

    async def shutdown_asyncgens(self) -> None:
        """Do nothing: asynchronous generators end with their writes."""


_UNCONTROLLED = (
    *("sock_", "create_connection", "create_server", "create_datagram", "subprocess_"),
    *("connect_", "add_reader", "add_writer", "getaddrinfo"),
)
"""Beginnings of the names of methods that need a socket or a process."""


def _refuse(name: str) -> property:
    def refuse(loop: ControlledLoop) -> None:
        loop.obstacle = f"the memory uses loop.{name}, which cannot be controlled"
        raise UncontrolledError(loop.obstacle)

    return property(refuse)


for _name in dir(asyncio.AbstractEventLoop):
    if _name.startswith(_UNCONTROLLED):
        setattr(ControlledLoop, _name, _refuse(_name))


async def _enter(write: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return await write()


def _run_step(number: int, run: Callable[[], bool]) -> None:
    run()


@contextmanager
def _running(loop: ControlledLoop) -> Iterator[None]:
    before, hooks = events._get_running_loop(), sys.get_asyncgen_hooks()
    events._set_running_loop(loop)
    sys.set_asyncgen_hooks(finalizer=loop.close_generator)
    loop._running, loop._thread = True, threading.current_thread()
    try:
        yield
    finally:
        loop._running = False
        sys.set_asyncgen_hooks(*hooks)
        events._set_running_loop(before)


def _run_function(future: asyncio.Future[Any], func: Callable[..., Any], args: Any) -> None:
    if future.cancelled():
        return
    try:
        future.set_result(func(*args))
    except Exception as error:
        future.set_exception(error)


def _find_task(handle: asyncio.Handle) -> asyncio.Task[Any] | None:
    """Find the task whose next step a handle is."""
    owner = getattr(handle._callback, "__self__", None)  # type: ignore[attr-defined]
    return owner if isinstance(owner, asyncio.Task) else None


def _is_own(callback: Any) -> bool:
    """Whether a callback is code of the memory rather than of Python."""
    while isinstance(callback, partial):
        callback = callback.func
    code = getattr(getattr(callback, "__func__", callback), "__code__", None)
    return isinstance(code, CodeType) and not is_machinery(code) and not is_library(code)


def _find_place(task: asyncio.Task[Any]) -> str:
    """Name the innermost line outside asyncio at which a task waits; `end` if it has ended."""
    if task.done():
        return "end"
    frames = [frame for _, frame in list_frames(task) if not is_machinery(frame.f_code)]
    return name_place(frames[-1]) if frames else "await"


def _name_loop(task: asyncio.Task[Any]) -> str:
    """Name the await at which a task waits, if it is in a loop of the memory; else empty."""
    if task.done():
        return ""
    frames = [frame for _, frame in list_frames(task)]
    own = [frame for frame in frames if not is_machinery(frame.f_code)]
    if not any(is_in_loop(frame.f_code, frame.f_lasti) for frame in own):
        return ""
    return " ".join(f"{name_place(frame)}+{frame.f_lasti}" for frame in frames)


def name_place(frame: FrameType) -> str:
    """Name the file, line and function of a frame."""
    file = frame.f_code.co_filename.replace("\\", "/").rpartition("/")[2]
    return f"{file}:{frame.f_lineno} in {frame.f_code.co_name}"


def is_machinery(code: CodeType) -> bool:
    """Whether code belongs to asyncio or to this package rather than to a memory."""
    folder = code.co_filename.replace("\\", "/").rpartition("/")[0]
    return folder == _DIRECTORY or folder.endswith("/asyncio")


@lru_cache(maxsize=1024)
def is_library(code: CodeType) -> bool:
    """Whether code belongs to Python itself."""
    name = code.co_filename
    return name.startswith(("<frozen", LIBRARY)) and "site-packages" not in name


@lru_cache(maxsize=256)
def is_foreign(module: str) -> bool:
    """Whether a module belongs neither to Python nor to RoutePrism."""
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    library = file.startswith(LIBRARY) and "site-packages" not in file
    return bool(file) and not library and module.partition(".")[0] != "routeprism"
