"""Work in this process, or in several of this machine."""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.reduction import ForkingPickler
from typing import Any, TypeVar

from routeprism.errors import RoutePrismError

__all__ = ["AHEAD", "available", "map_here", "map_in_processes"]

Setup = TypeVar("Setup")
Result = TypeVar("Result")

AHEAD = 4
"""Batches under way for each worker: enough to keep it busy, few enough to hold in memory."""

_context: Any = None


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
    for index in range(count):
        yield work(context, index)


def map_in_processes(
    work: Callable[[Setup, int], Result],
    setup: Callable[[], Setup],
    count: int,
    *,
    workers: int,
    batch: int,
) -> Iterator[Result]:
    """Work on batches of indices in processes of their own."""
    _refuse_unshippable(work, setup)
    # A fresh interpreter for each worker: forking a process that has threads is unsafe.
    with ProcessPoolExecutor(
        min(workers, count),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_set_up,
        initargs=(setup,),
    ) as pool:
        waiting: deque[Future[list[Result]]] = deque()
        starts = iter(range(0, count, batch))
        try:
            for start in starts:
                waiting.append(pool.submit(_run, work, start, min(start + batch, count)))
                if len(waiting) >= workers * AHEAD:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        except BrokenProcessPool as error:
            raise RoutePrismError(
                "a worker process ended before its work was done: out of memory, killed, or of "
                "a script without an `if __name__ == '__main__':` guard; try one worker"
            ) from error
        finally:
            for future in waiting:
                future.cancel()


def _refuse_unshippable(*items: object) -> None:
    """Say at once, and in words, that something cannot be sent to another process."""
    try:
        ForkingPickler.dumps(items)
    except Exception as error:
        raise RoutePrismError(
            f"this cannot be sent to other processes ({error}); define the memory class in a "
            f"module that can be imported, or use one worker"
        ) from error


def _set_up(setup: Callable[[], Any]) -> None:
    global _context  # one for each worker process, set before any work
    _context = setup()


def _run(work: Callable[[Any, int], Result], start: int, stop: int) -> list[Result]:
    return [work(_context, index) for index in range(start, stop)]
