"""What this process starts ends with it: programs with their groups, and connections to servers.

A signal raises an exception at any point of the main thread, also while an earlier signal is still
being handled. So what must not outlive this process is noted here, and is ended here at the latest.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")

_endings: dict[object, Callable[[], object]] = {}
"""What ends each thing that is open."""
_starting = threading.RLock()
"""Held while something starts; a process that leaves at once keeps it."""
_LOOK = 1.0
"""Seconds after which a wait looks again: a signal may come right behind what it waited for."""


def note(thing: object, end: Callable[[], object]) -> None:
    """Note what ends a thing; it may be called although the thing is about to end."""
    _endings[thing] = end


def forget(thing: object) -> None:
    """Note that a thing has ended."""
    _endings.pop(thing, None)


def start(begin: Callable[[], T], end: Callable[[T], object]) -> T:
    """Begin something and note what ends it; no signal comes between the two."""
    things: list[T] = []

    def run() -> None:
        with _starting:
            things.append(begin())
            note(things[0], lambda: end(things[0]))

    try:
        finish(run)
        return things[0]
    except BaseException:
        for thing in things:
            end(thing)
        raise


def finish(work: Callable[[], object]) -> None:
    """Do something to its end, in a thread; a signal that arrives meanwhile is raised afterwards.

    What waits for threads or processes has to be called like this. Before Python 3.13, a thread
    counts as ended when a wait for it was interrupted, and a second wait returns at once.
    """
    waiting = [work]
    errors: list[BaseException | None] = []
    interruption: BaseException | None = None
    running = threading.Lock()
    running.acquire()

    def run() -> None:
        if not waiting:  # a thread that was started before does it
            return
        error = None
        try:
            waiting.pop()()
        except BaseException as raised:  # it is raised where the caller waits
            error = raised
        errors.append(error)
        running.release()

    while not errors:
        try:
            if waiting:
                threading.Thread(target=run, name="finish").start()
            running.acquire(timeout=_LOOK)
        except BaseException as error:
            if isinstance(error, Exception):  # no signal, such as a system without threads
                raise
            interruption = error
    if (problem := interruption or errors[0]) is not None:
        raise problem


@atexit.register
def end_all() -> None:
    """End what is still open; a signal that arrives meanwhile interrupts nothing."""
    while _endings:
        with suppress(KeyboardInterrupt):
            for thing, end in list(_endings.items()):
                with suppress(Exception):
                    end()
                forget(thing)


def leave(code: int) -> None:
    """End this process at once, with everything that it started."""
    _starting.acquire()  # nothing starts any more
    end_all()
    os._exit(code)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_endings.clear)  # a fork does not own them
