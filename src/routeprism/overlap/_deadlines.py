"""The order in which timeouts may end while durations of requests are unknown.

The possible times form a zone of differences (Dill, Timing Assumptions and Verification of
Finite-State Concurrent Systems, 1989): an upper bound for each difference of two moments, which
are the present and the deadlines. Times are whole microseconds, so that sums are exact.
"""

from __future__ import annotations

_NOW = -1
"""Stands for the present among the numbers of the timeouts."""


class Deadlines:
    """The deadlines of pending timeouts; each is named by a number, in the order of creation."""

    def __init__(self) -> None:
        self._most: dict[tuple[int, int], int] = {(_NOW, _NOW): 0}
        """(first moment, second moment) → the largest possible first minus second."""

    def add(self, timeout: int, seconds: float) -> None:
        """Begin a timeout that ends some seconds from now."""
        delay = round(max(seconds, 0.0) * 1e6)
        for moment in self._list_moments():
            self._most[timeout, moment] = self._most[_NOW, moment] + delay
            self._most[moment, timeout] = self._most[moment, _NOW] - delay
        self._most[timeout, timeout] = 0

    def pass_time(self) -> None:
        """Let an unknown time pass, at most until the first deadline."""
        moments = [moment for moment in self._list_moments() if moment != _NOW]
        for moment in moments:
            self._most[_NOW, moment] = min(
                0, *(self._most[deadline, moment] for deadline in moments)
            )

    def may_end(self, timeout: int) -> bool:
        """Whether it can be the first to end; of equal deadlines, the one that was set first is."""
        return all(
            self._most[moment, timeout] >= (0 if moment > timeout else 1)
            for moment in self._list_moments()
            if moment not in (timeout, _NOW)
        )

    def end(self, timeout: int) -> None:
        """Let the present be the deadline of a timeout, before all others."""
        moments = self._list_moments()
        for first in moments:
            for second in moments:
                through = min(self._most[moment, second] for moment in moments if moment != _NOW)
                self._most[first, second] = min(
                    self._most[first, second], self._most[first, timeout] + through
                )
        for moment in moments:
            self._most[_NOW, moment] = self._most[timeout, moment]
            self._most[moment, _NOW] = self._most[moment, timeout]
        self._most[_NOW, _NOW] = 0
        self.remove(timeout)

    def remove(self, timeout: int) -> None:
        """Forget a timeout that ended or was cancelled."""
        self._most = {pair: most for pair, most in self._most.items() if timeout not in pair}

    def _list_moments(self) -> list[int]:
        return sorted({first for first, _ in self._most})
