"""Work in this process, or in several of this machine."""

from __future__ import annotations

import gc
import logging
import multiprocessing.util
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures import wait as wait_for
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from importlib import import_module
from multiprocessing.reduction import ForkingPickler
from typing import Any, TypeVar

from routeprism.endings import finish, forget, leave, note
from routeprism.errors import RoutePrismError

Setup = TypeVar("Setup")
Result = TypeVar("Result")

AHEAD = 4
"""Batches under way for each worker: enough to keep it busy, few enough to hold in memory."""

_GRACE = 5.0
"""Seconds that a worker has to close what it opened after its parent is gone."""

_POLL = 0.2
"""Seconds between two looks at what workers count, and at signals."""

_ticks: Any = None
"""In a worker: the number of ticks of all workers, which the first process reads."""
_work: Any = None
_context: Any = None
_busy = _leaving = False
_code = 0
"""The exit code of a worker that is to end: 128 + the number of the signal."""


def available() -> int:
    """Count the cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def map_here(
    work: Callable[[Setup, int], Result], setup: Callable[[], Setup], count: int
) -> Iterator[Result]:
    """Work on one index after the other, here."""
    context = setup()
    with _set_heap_aside():
        for index in range(count):
            yield work(context, index)


@contextmanager
def _set_heap_aside() -> Iterator[None]:
    """Let the garbage collector look only at objects that are made from now on.

    A benchmark in memory is large, lives on anyway, and would be looked at several times.
    """
    if gc.get_freeze_count():  # someone else has set it aside, and may need it to stay there
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class Crew:
    """Processes that start, and import what they will need, while their work is being prepared.

    Use it as a context manager: processes that received no work end with it.
    """

    def __init__(self, workers: int, importing: str = "") -> None:
        # A fresh interpreter for each worker: forking a process that has threads is unsafe.
        context = multiprocessing.get_context("spawn")
        self.workers = workers
        self._waiting = 0
        # The first queue starts a process of its own.
        with _hold_signals(), _isolate_interpreters():
            self._jobs: Any = context.Queue()
            self._jobs.cancel_join_thread()  # a worker that died leaves its job unread
            self._ticks: Any = context.Value("q", 0)
            arguments = (self._jobs, importing, logging.root.manager.disable, self._ticks)
            self._pool = ProcessPoolExecutor(
                workers, mp_context=context, initializer=_set_up, initargs=arguments
            )
        note(self, lambda: finish(lambda: self._close(call_off=True)))

    def begin(self) -> Crew:
        """Start the processes; each is ready when it has received its task."""
        try:
            with _hold_signals(), _isolate_interpreters():
                for _ in range(self.workers - self._waiting):
                    self._waiting += 1
                    self._pool.submit(_do_nothing)
        except BrokenProcessPool as error:
            raise _ended_early() from error
        return self

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        stops = kind is not None and not issubclass(kind, Exception)  # nobody waits for results now
        try:
            finish(lambda: self._close(call_off=stops))
        finally:
            forget(self)

    def _close(self, *, call_off: bool) -> None:
        processes = list((self._pool._processes or {}).values())
        self._tell(b"")
        for process in processes if call_off and _CAN_BLOCK else []:
            if process.pid is not None and process.is_alive():
                os.kill(process.pid, signal.SIGUSR1)
        self._pool.shutdown(cancel_futures=True)
        for process in processes:  # one whose start was interrupted belongs to no pool
            process.terminate()

    def map(
        self,
        work: Callable[[Setup, int], Result],
        setup: Callable[[], Setup],
        count: int,
        *,
        batch: int,
        observe: Callable[[int], None] | None = None,
    ) -> Iterator[Result]:
        """Work on batches of indices; once in the life of a crew.

        `observe` is called with the ticks that workers count (`count_ticks`), from time to time.
        """
        job = _shippable(work, setup)
        self.begin()._tell(job)
        under_way: deque[Future[list[Result]]] = deque()
        try:
            for start in range(0, count, batch):
                under_way.append(self._pool.submit(_run, start, min(start + batch, count)))
                if len(under_way) >= self.workers * AHEAD:
                    yield from self._wait(under_way.popleft(), observe)
            while under_way:
                yield from self._wait(under_way.popleft(), observe)
        except BrokenProcessPool as error:
            raise _ended_early() from error
        # What is under way is called off where the crew ends, by the thread that watches the
        # workers: before Python 3.12, that thread fails on a future that someone else cancelled.

    def _wait(self, future: Future[Any], observe: Callable[[int], None] | None) -> Any:
        # Of two signals at once, another thread may receive both; that wakes no endless wait here.
        while not wait_for([future], timeout=_POLL).done:
            if observe is not None:
                observe(self._take_ticks())
        if observe is not None:
            observe(self._take_ticks())  # those that were counted since the last look
        return future.result()

    def _take_ticks(self) -> int:
        with self._ticks.get_lock():
            ticks, self._ticks.value = int(self._ticks.value), 0
        return ticks

    def _tell(self, job: bytes) -> None:
        for _ in range(self._waiting):
            self._jobs.put(job)
        self._waiting = 0


_CAN_BLOCK = hasattr(signal, "pthread_sigmask")


@contextmanager
def _hold_signals() -> Iterator[None]:
    """Hold Ctrl-C and SIGHUP back, here for a moment, and in processes that are started meanwhile.

    Both reach all processes of a terminal at once. Workers are called off by SIGUSR1 instead of
    Ctrl-C; that and SIGHUP wait until they can hear it.
    """
    signals = {signal.SIGINT, signal.SIGHUP, signal.SIGUSR1} if _CAN_BLOCK else set()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals) if _CAN_BLOCK else ()
    try:
        yield
    finally:
        if _CAN_BLOCK:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _isolate_interpreters() -> Iterator[None]:
    """Keep the interpreters that start meanwhile from importing files of the current directory.

    Each searches that directory first until it has received the paths of this process. Python 3.10
    can only be kept from it together with the variables `PYTHON…`.
    """
    util: Any = multiprocessing.util
    before = util._args_from_interpreter_flags
    option = "-P" if sys.version_info >= (3, 11) else "-I"
    util._args_from_interpreter_flags = lambda: [*before(), option]
    try:
        yield
    finally:
        util._args_from_interpreter_flags = before


def _ended_early() -> RoutePrismError:
    return RoutePrismError(
        "a worker process ended before its work was done: out of memory, killed, or of "
        "a script without an `if __name__ == '__main__':` guard; try one worker"
    )


def _shippable(*items: object) -> bytes:
    """Pack what goes to other processes, or say at once, and in words, that it cannot go."""
    try:
        return bytes(ForkingPickler.dumps(items))
    except Exception as error:
        raise RoutePrismError(
            f"this cannot be sent to other processes ({error}); define the memory class in a "
            f"module that can be imported, or use one worker"
        ) from error


def count_ticks(number: int) -> None:
    """Count in a worker what the first process observes."""
    if _ticks is not None:
        with _ticks.get_lock():
            _ticks.value += number


def _set_up(jobs: Any, importing: str, hidden_logs: int, ticks: Any) -> None:
    """In a worker: get ready, then wait for the first task; nothing at all for no bytes."""
    global _work, _context, _ticks  # one for each worker process, set before any work
    _ticks = ticks
    logging.disable(hidden_logs)
    if _CAN_BLOCK:
        signal.signal(signal.SIGUSR1, _leave)
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:  # as nohup makes it
                signal.signal(number, _terminate)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP, signal.SIGUSR1})
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    if importing:
        import_module(importing)
    if job := jobs.get():
        _work, setup = ForkingPickler.loads(job)
        _context = setup()


class _StoppedError(KeyboardInterrupt):
    """Ends the current work, so that what it opened is closed."""


def _leave(*_: object) -> None:
    """Do no more work; a process that ends while it hands a result over would block its parent.

    The parent and a signal to the whole group may both ask for it. It is raised once, so that the
    second request does not interrupt the closing.
    """
    global _leaving
    is_first, _leaving = not _leaving, True
    if _busy and is_first:
        raise _StoppedError


def _terminate(number: int, *_: object) -> None:
    """End at once where there is no work; else when what the work opened is closed."""
    global _code
    _code = _code or 128 + number
    if not _busy:
        leave(_code)
    _leave()


def _leave_with_parent() -> None:
    """End this process and the processes that it started when the parent is killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        if _CAN_BLOCK:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(_GRACE)
        leave(1)


def _do_nothing() -> None:
    """Stand for work until there is some: a process is started for what is submitted."""


def _run(start: int, stop: int) -> list[Any]:
    global _busy
    try:
        _busy = True
        results = []
        for index in range(start, stop):
            if _leaving:
                return []
            results.append(_work(_context, index))
        return results
    except _StoppedError:
        return []
    finally:
        _busy = False
        if _code:
            leave(_code)
