"""Waits until a system that ingests in the background has finished."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from routeprism.errors import RouteError

__all__ = ["settle"]

T = TypeVar("T")


def settle(
    dump: Callable[[], T],
    *,
    before: T | None = None,
    interval: float = 0.1,
    patience: float = 0.0,
    limit: float = 30.0,
    sleep: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> T:
    """Dump until two consecutive dumps agree, and give the last one.

    A dump that equals `before` may mean that ingestion has not begun. It counts as settled only
    after `patience` seconds, so choose a patience that is longer than the lag of the system.

    Args:
        dump: reads everything that the system contains.
        before: the dump before the write, if you have it.
        interval: seconds between two dumps.
        patience: seconds to wait for a first change from `before`.
        limit: seconds after which the route fails.
        sleep: waits some seconds.
        clock: gives the time in seconds.

    Raises:
        RouteError: the dumps still change at the limit.

    """
    patience = min(patience, limit)
    start = clock()
    last = dump()
    dumps = 1
    while True:
        sleep(interval)
        current = dump()
        dumps += 1
        waited = clock() - start
        if current == last and (before is None or current != before or waited >= patience):
            return current
        if waited >= limit:
            raise RouteError(
                f"ingestion did not end within {limit:g} seconds: {dumps} dumps, {interval:g} "
                f"seconds apart, and the last two still differ. Raise the limit, or let nothing "
                f"else write to this memory"
            )
        last = current
