"""How far a stage's asking has come, over all the portions that its prompts are made ready in."""

from __future__ import annotations

from dataclasses import replace

from routeprism.answers import Progress
from routeprism.experiments._stages import Asked

__all__ = ["Overall"]


class Overall:
    """Adds portions up, and reckons from their pools what those to come will take."""

    def __init__(self, asked: Asked, pools: int) -> None:
        self._asked = asked
        self._pools = pools
        self._ready = 0
        self._before: dict[str, int] = {}
        self._portion: dict[str, int] = {}

    def portion(self, pools: int) -> None:
        """Begin with a portion of so many pools."""
        for name, total in self._portion.items():
            self._before[name] = self._before.get(name, 0) + total
        self._portion = {}
        self._ready = min(self._pools, self._ready + pools)

    def __call__(self, name: str, now: Progress) -> None:
        """Tell how far all of it is."""
        before = self._before.get(name, 0)
        self._portion[name] = now.total
        known = before + now.total
        whole = round(known * self._pools / self._ready) if self._ready else known
        done = before + now.done
        left = (whole - done) / now.rate if now.rate else None
        self._asked(name, replace(now, done=done, total=whole, seconds_left=left))
