"""How one model is asked: awaited or called, at which pace, and with which seeds."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

from routeprism.models import Ask, Model, Reply
from routeprism.models.recorded import Recorded

__all__ = ["GRACE", "Asking", "Pace", "cancel_on_interrupt", "responsive", "shift"]

GRACE = 3.0
"""Seconds that requests under way get after Ctrl-C: they may be paid for already."""
_TURN = 0.001
"""Seconds until a busy thread lets another go on; with Python's 5 ms the rate was 5% lower."""


class Asking:
    """Asks a model: awaits it, calls it here, or calls it in threads of its own.

    A plain method is called here where the model is in this process anyway, or takes one request
    at a time.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._threads: ThreadPoolExecutor | None = None
        self.instant = model.embedded or isinstance(model, Recorded)
        here = self.instant or model.concurrency == 1
        if not here and not inspect.iscoroutinefunction(model.answer):
            self._threads = ThreadPoolExecutor(model.concurrency, thread_name_prefix="model")

    async def reply(self, ask: Ask) -> Reply:
        """Give the model's reply."""
        if self._threads is not None:
            loop = asyncio.get_running_loop()
            given = await loop.run_in_executor(self._threads, self._model.answer, ask)
        else:
            given = self._model.answer(ask)
        return given if isinstance(given, Reply) else await given

    async def close(self) -> None:
        """Let go of threads, and of what the model holds for this event loop."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
        close: Callable[[], Awaitable[None]] | None = getattr(self._model, "aclose", None)
        if close is not None:
            await close()


class Pace:
    """Spaces requests evenly under a rate limit."""

    def __init__(self, per_minute: float | None) -> None:
        self._interval = 0.0 if per_minute is None else 60.0 / per_minute
        self._next = 0.0

    async def turn(self) -> None:
        """Wait for this request's turn."""
        if self._interval:
            now = time.monotonic()
            mine = max(self._next, now)
            self._next = mine + self._interval
            await asyncio.sleep(mine - now)


def shift(batch: str) -> int:
    """Give what another batch adds to the draws that a model takes its seeds from.

    Without it a seeded model would repeat the first batch word for word.
    """
    if not batch:
        return 0
    return (int.from_bytes(hashlib.sha256(batch.encode()).digest()[:3], "big") + 1) << 20


def cancel_on_interrupt() -> None:
    """Make Ctrl-C cancel this task alone, as later Pythons do: 3.10 would cancel every request."""
    task = asyncio.current_task()
    if sys.version_info < (3, 11) and task is not None:
        with suppress(NotImplementedError, RuntimeError, ValueError):  # not the main thread
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, task.cancel)


@contextmanager
def responsive() -> Iterator[None]:
    """Let the ledger's thread have its turn soon: an answer counts only when it is through."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, _TURN))
    try:
        yield
    finally:
        sys.setswitchinterval(before)
