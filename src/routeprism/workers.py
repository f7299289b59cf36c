"""On how many cores: an ordered map over indices, in this process or in several.

Nothing else in the package knows which. Work is shipped as an index, not as data: each process
sets itself up once and fetches its own piece, and results come back in order, so that the outcome
does not depend on the number of workers.
"""

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

__all__ = ["available", "ordered_map"]

Setup = TypeVar("Setup")
Result = TypeVar("Result")

_AHEAD = 4
"""Batches under way for each worker: enough to keep it busy, few enough to hold in memory."""

_context: Any = None


def available() -> int:
    """Count the cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def ordered_map(
    work: Callable[[Setup, int], Result],
    setup: Callable[[], Setup],
    count: int,
    *,
    workers: int = 1,
    batch: int = 8,
) -> Iterator[Result]:
    """Give `work(setup(), index)` for each index below `count`, in order.

    With more than one worker, `work` and `setup` must be importable or picklable.
    """
    if workers <= 1 or count <= 1:
        context = setup()
        for index in range(count):
            yield work(context, index)
        return
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
                if len(waiting) >= workers * _AHEAD:
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
