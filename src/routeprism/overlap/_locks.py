"""Locks whose holder can be stopped: a write that has to wait lets another write continue."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

_REAL_LOCK: Callable[[], Any] = threading.Lock
_REAL_SLEEP = time.sleep
_MOMENT = 0.0005
_LIMIT = 10.0
"""Seconds after which a lock that should be free is taken to be held forever."""


class Turns(Protocol):
    """Decides which write continues."""

    def find_number(self) -> int | None:
        """Return the write that the current thread performs; None if it runs freely."""

    def pause(self, place: str) -> None:
        """Let another write continue before this one does, if it is chosen."""

    def wait(self, ready: Callable[[], bool], *, timed: bool, place: str) -> bool:
        """Let other writes continue until a condition holds; False if the time ends before."""


class TurnLock:
    """A lock like `threading.Lock`."""

    def __init__(self, turns: Turns) -> None:
        self._turns, self._held = turns, False
        self._guard = _REAL_LOCK()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take the lock; False if it is not free in time."""
        if self._turns.find_number() is not None:
            self._turns.pause("taking a lock")
            if not blocking:
                return self._take()
            while not self._take():
                if not self._turns.wait(self._is_free, timed=timeout >= 0, place="taking a lock"):
                    break
            else:
                return True
            if timeout >= 0:
                return self._take()
        return self._take_by_waiting(blocking, timeout)

    def _take_by_waiting(self, blocking: bool, timeout: float) -> bool:
        """Wait in real time, as a thread that is not controlled does."""
        deadline = time.monotonic() + (timeout if timeout >= 0 else _LIMIT)
        while not self._take():
            if not blocking:
                return False
            if time.monotonic() > deadline:
                if timeout >= 0:
                    return False
                raise TimeoutError("a lock of the memory was never released")
            _REAL_SLEEP(_MOMENT)
        return True

    def _take(self) -> bool:
        with self._guard:
            free, self._held = not self._held, True
            return free

    def _is_free(self) -> bool:
        return not self._held

    def release(self) -> None:
        """Let another write take the lock."""
        if not self._held:
            raise RuntimeError("release unlocked lock")
        self._held = False

    def locked(self) -> bool:
        """Whether the lock is taken."""
        return self._held

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *raised: object) -> None:
        self.release()

    def _at_fork_reinit(self) -> None:
        self._held = False


class TurnRLock:
    """A lock like `threading.RLock`, which its holder may take again."""

    def __init__(self, turns: Turns) -> None:
        self._lock = TurnLock(turns)
        self._owner: int | None = None
        self._count = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take the lock; False if it is not free in time."""
        if self._is_owned():
            self._count += 1
            return True
        acquired = self._lock.acquire(blocking, timeout)
        if acquired:
            self._owner, self._count = threading.get_ident(), 1
        return acquired

    def release(self) -> None:
        """Release the lock once; it is free after as many releases as acquisitions."""
        if not self._is_owned():
            raise RuntimeError("cannot release un-acquired lock")
        self._count -= 1
        if not self._count:
            self._owner = None
            self._lock.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *raised: object) -> None:
        self.release()

    # What `threading.Condition` calls.

    def _is_owned(self) -> bool:
        return self._owner == threading.get_ident()

    def _release_save(self) -> tuple[int, int | None]:
        saved = self._count, self._owner
        self._count, self._owner = 0, None
        self._lock.release()
        return saved

    def _acquire_restore(self, saved: tuple[int, int | None]) -> None:
        self._lock.acquire()
        self._count, self._owner = saved

    def _at_fork_reinit(self) -> None:
        self._owner, self._count = None, 0
        self._lock._at_fork_reinit()
