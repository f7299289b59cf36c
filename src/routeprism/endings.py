"""What this process starts ends with it: programs with their groups, and connections to servers.

A signal raises an exception at any point of the main thread, also while an earlier signal is still
being handled. So what must not outlive this process is noted here, and is ended here at the latest.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")

_endings: dict[object, Callable[[], object]] = {}
"""What ends each thing that is open."""
_starting = threading.RLock()
"""Held while something starts; a process that leaves at once keeps it."""


def note(thing: object, end: Callable[[], object]) -> None:
    """Note what ends a thing; it may be called although the thing is about to end."""
    _endings[thing] = end


def forget(thing: object) -> None:
    """Note that a thing has ended."""
    _endings.pop(thing, None)


def start(begin: Callable[[], T], end: Callable[[T], object]) -> T:
    """Begin something and note what ends it, in a thread: no signal comes between the two."""
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            with _starting:
                thing = begin()
                note(thing, lambda: end(thing))
        except BaseException as error:  # raised where the caller waits
            outcome.set_exception(error)
        else:
            outcome.set_result(thing)

    try:
        threading.Thread(target=run, name="start").start()
        return outcome.result()
    except BaseException:
        outcome.add_done_callback(lambda done: done.exception() or end(done.result()))
        raise


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
