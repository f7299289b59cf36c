"""Progress of memories whose `add` is slow: records added so far, and how many are left."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import fmean
from typing import Any

from routeprism.answers import AnswerProgress, Progress
from routeprism.records import Case
from routeprism.workers import report_ticks

PATIENCE = 1.0
"""Seconds before the first report: most memories are built by then."""
_APART = 0.2
"""Seconds between two reports."""


MANY = 200
"""Pools whose records are counted; the others are assumed to have as many on average."""


def estimate_sizes(cases: Sequence[Case]) -> list[int]:
    """Count the records of each pool, or estimate them where there are many pools."""
    sizes = [len(cases[place].pool) for place in range(min(MANY, len(cases)))]
    return [*sizes, *[round(fmean(sizes))] * (len(cases) - len(sizes))] if sizes else []


class AddProgress:
    """Counts the records that are added to memories, and estimates the rest.

    The first estimate is the number of orders that are planned. Once a pool is complete, the adds
    that each of its records took are used instead. While `watching`, it also reports if the first
    add takes longer than two seconds.
    """

    def __init__(
        self,
        report: AnswerProgress,
        sizes: Sequence[int],
        builds: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        patience: float = PATIENCE,
        name: str = "records added",
    ) -> None:
        self._name = name
        self._patience = patience
        self._report, self._sizes, self._builds, self._clock = report, sizes, builds, clock
        self._added = self._pools = 0
        self._began = self._told = clock()
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def __call__(self, number: int = 1) -> None:
        """Count records that were added."""
        with self._lock:
            self._added += number
            self._tell()

    def _tell(self) -> None:
        now = self._clock()
        if now - self._began < self._patience or now - self._told < min(_APART, self._patience):
            return
        self._told = now
        rate = self._added / (now - self._began)
        total = max(round(self._builds * sum(self._sizes)), self._added)
        left = (total - self._added) / rate if rate else None
        self._report(self._name, Progress(self._added, total, 0, rate, None, left))

    def end_pool(self) -> None:
        """Count a pool that is complete; use its adds for the estimate."""
        with self._lock:
            self._pools += 1
            done = sum(self._sizes[: self._pools])
            if self._added and done:
                self._builds = self._added / done

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Report from time to time, also while an add takes long."""
        self._began = self._told = self._clock()
        self._ended.clear()
        thread = threading.Thread(target=self._watch, name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(self._patience):
            with self._lock:
                self._tell()

    def __reduce__(self) -> tuple[Any, ...]:
        """Stay in this process: a worker sends what it counts."""
        return DistantAddProgress, ()


class DistantAddProgress:
    """Counts in a worker, and reports to the first process from time to time."""

    def __init__(self) -> None:
        self._added = 0
        self._told = time.monotonic()

    def __call__(self, number: int = 1) -> None:
        """Count records that were added."""
        self._added += number
        now = time.monotonic()
        if now - self._told >= _APART:
            report_ticks(self._added)
            self._added, self._told = 0, now
