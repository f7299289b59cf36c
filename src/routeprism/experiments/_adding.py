"""Progress of memories whose `add` is slow: records added so far, and how many are left."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from routeprism.answers import AnswerProgress, Progress

__all__ = ["AddProgress"]

_PATIENCE = 1.0
"""Seconds before the first report: most memories are built by then."""
_APART = 0.2
"""Seconds between two reports."""


class AddProgress:
    """Counts the records that are added to memories in this process, and estimates the rest.

    The first estimate is the number of orders that are planned. Once a pool is complete, the adds
    that each of its records took are used instead.
    """

    def __init__(
        self,
        report: AnswerProgress,
        sizes: Sequence[int],
        builds: int,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._report, self._sizes, self._builds, self._clock = report, sizes, builds, clock
        self._added = self._pools = 0
        self._began = self._told = clock()

    def __call__(self) -> None:
        """Count a record that was added."""
        self._added += 1
        now = self._clock()
        if now - self._began < _PATIENCE or now - self._told < _APART:
            return
        self._told = now
        rate = self._added / (now - self._began)
        total = max(self._estimate_total(), self._added)
        left = (total - self._added) / rate
        self._report("records added", Progress(self._added, total, 0, rate, None, left))

    def end_pool(self) -> None:
        """Count a pool that is complete; use its adds for the estimate."""
        self._pools += 1
        done = sum(self._sizes[: self._pools])
        if self._added and done:
            self._builds = max(1, round(self._added / done))

    def _estimate_total(self) -> int:
        return self._builds * sum(self._sizes)

    def __reduce__(self) -> tuple[Any, ...]:
        """Stay in this process: in another one, nothing is reported."""
        return type(None), ()
