"""When to ask again, and how long to wait: exponential backoff, jitter, and `Retry-After`."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

__all__ = ["AGAIN", "LONGEST_WAIT", "Gate", "backoff", "retry_after"]

AGAIN = frozenset({408, 409, 429, *range(500, 600)})
"""The HTTP statuses that another attempt can cure."""
LONGEST_WAIT = 300.0
"""Seconds; a server that asks for more is not waited for."""

_FIRST, _CEILING = 0.5, 30.0


def backoff(number: int) -> float:
    """Give the seconds to wait after failed attempt `number` (from 0), with jitter."""
    # Retries of several requests must not come back in step; nothing measured depends on this.
    return min(_CEILING, _FIRST * 2.0**number) * random.uniform(0.5, 1.0)  # noqa: S311


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Read how long the server asks to wait: milliseconds, seconds or an HTTP date."""
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        text = headers.get(name)
        if text is None:
            continue
        try:
            return max(0.0, float(text) / scale)
        except ValueError:
            pass
        try:
            then = parsedate_to_datetime(text)
        except (TypeError, ValueError):
            continue
        if then.tzinfo is None:
            then = then.replace(tzinfo=timezone.utc)
        return max(0.0, (then - (now or datetime.now(timezone.utc))).total_seconds())
    return None


class Gate:
    """Holds back all requests of a model while its server asks for a pause."""

    def __init__(self) -> None:
        self._opens = 0.0

    def shut(self, seconds: float) -> None:
        """Let nothing pass for so long; a longer pause that is set already stays."""
        self._opens = max(self._opens, asyncio.get_running_loop().time() + seconds)

    async def passed(self) -> None:
        """Wait until the gate is open."""
        while (wait := self._opens - asyncio.get_running_loop().time()) > 0:
            await asyncio.sleep(wait)
