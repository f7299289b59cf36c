"""A limit for calls of a memory that never return."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from routeprism.overlap._loop import NEVER_ENDED

_INTERVAL = 1.0
"""Seconds after which a call that ignored the first interruption is interrupted again."""


class OverLimitError(BaseException):
    """A call of the memory took longer than the limit; code that catches errors lets it pass."""


def explain_limit(seconds: float) -> str:
    """Describe a write that took longer than its limit."""
    return f"{NEVER_ENDED} within {seconds:g} seconds"


@contextmanager
def limit_time(seconds: float) -> Iterator[None]:
    """Interrupt whatever runs after some seconds, also a call that blocks.

    Python interrupts calls in its main thread only, and not on Windows; elsewhere there is no
    limit. A call that catches the interruption, and goes on, has exceeded the limit as well.
    """
    alarm = getattr(signal, "SIGALRM", None)
    if alarm is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    is_over = False

    def interrupt(number: int, frame: object) -> None:
        nonlocal is_over
        is_over = True
        raise OverLimitError(explain_limit(seconds))

    before = signal.signal(alarm, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds, _INTERVAL)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(alarm, before)
    if is_over:
        raise OverLimitError(explain_limit(seconds))
