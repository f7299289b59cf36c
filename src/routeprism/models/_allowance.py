"""Limits on calls and money for one command, counted before a request is sent.

A call is one request for one reply; a repeated request counts again. Models inside this process and
recorded answers cost nothing and are not counted.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from routeprism.errors import LimitError, SpecError
from routeprism.models._contracts import Model
from routeprism.workers import call_home

ALLOWANCE = "allowance"
"""The name of a command's allowance among the objects that workers call."""
_CALLED_METHODS = ("check", "expect", "count", "take", "settle")
"""The methods of an allowance that workers call."""

_current: ContextVar[Allowance | None] = ContextVar("allowance", default=None)


class Allowance:
    """Counts the calls and the cost of one command, and refuses a call beyond a limit.

    Several threads may share it.
    """

    def __init__(self, max_calls: int | None = None, max_cost: float | None = None) -> None:
        if max_calls is not None and max_calls < 0:
            raise SpecError(f"Expected max_calls of 0 or more but got {max_calls=}")
        if max_cost is not None and not 0 <= max_cost < math.inf:
            raise SpecError(f"Expected max_cost of 0 or more but got {max_cost=}")
        self.max_calls, self.max_cost = max_calls, max_cost
        self.calls = 0
        """Requests that were sent."""
        self.cost = 0.0
        """Their cost, as far as prices are known."""
        self.input_tokens = 0
        """Input tokens that the replies to a memory system's own client report."""
        self._reserved = 0.0
        self._under_way = 0
        self._excess = 0.0
        """The largest excess of a call's cost over its price: its output is not known before, and a
        model may count more tokens than RoutePrism does."""
        self._refusal = ""
        self._lock = threading.Lock()

    @property
    def limited(self) -> bool:
        """Whether there is a limit."""
        return self.max_calls is not None or self.max_cost is not None

    @property
    def reached(self) -> bool:
        """Whether a call was refused."""
        return bool(self._refusal)

    def check(self) -> None:
        """Raise `LimitError` if a call was refused before."""
        if self._refusal:
            raise LimitError(self._refusal)

    def expect(self) -> None:
        """Raise `LimitError` unless one more call fits."""
        with self._lock:
            self._refuse_beyond(1)

    def count(self, calls: int = 1) -> None:
        """Count calls of unknown price; raise `LimitError` if they do not fit."""
        with self._lock:
            self._refuse_beyond(calls)
            self.calls += calls

    def take(self, price: float = 0.0) -> None:
        """Count a call that is about to be sent; raise `LimitError` if it does not fit.

        `settle` later replaces the price by the cost.
        """
        with self._lock:
            self._refuse_beyond(1, price)
            self.calls += 1
            self._under_way += 1
            self._reserved += price

    def _refuse_beyond(self, calls: int, price: float = 0.0) -> None:
        """Raise `LimitError` if calls do not fit, and for every call from then on.

        Otherwise prices would decide which of the later answers are collected.
        """
        self.check()
        if self.max_calls is not None and self.calls + calls > self.max_calls:
            self._refusal = f"the limit of {self.max_calls:,} calls (max_calls) is reached"
        unknown = (self._under_way + 1) * self._excess
        total = self.cost + self._reserved + price + unknown
        if self.max_cost is not None and total > self.max_cost * (1 + 1e-9):
            self._refusal = (
                f"the limit of {self.max_cost:g} (max_cost) is reached: {self.cost:.4g} is "
                f"spent, calls under way may cost {self._reserved:.4g}, and the next call "
                f"{price + self._excess:.4g}"
            )
        self.check()

    def settle(self, price: float, cost: float | None, *, input_tokens: int = 0) -> None:
        """Replace the price of a call by its cost, if that is known."""
        with self._lock:
            self.input_tokens += input_tokens
            self._under_way -= 1
            self._reserved -= price
            self.cost += price if cost is None else cost
            if cost is not None:
                self._excess = max(self._excess, cost - price)

    def __reduce__(self) -> tuple[object, ...]:
        """Stay in this process: a worker counts here."""
        return DistantAllowance, (self.max_calls, self.max_cost)

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count the requests that a model repeats within this context."""
        before = _current.set(self)
        try:
            yield
        finally:
            _current.reset(before)


class DistantAllowance:
    """The allowance of the first process, in a worker: every call is counted there."""

    def __init__(self, max_calls: int | None, max_cost: float | None) -> None:
        self.max_calls, self.max_cost = max_calls, max_cost

    def __getattr__(self, name: str) -> Any:
        if name not in _CALLED_METHODS:
            raise AttributeError(name)
        return partial(call_home, ALLOWANCE, name)


def count_repetition() -> None:
    """Count a repeated request; a model calls this before each repetition."""
    allowance = _current.get()
    if allowance is not None:
        allowance.count()


def costs_money(model: Model) -> bool:
    """Whether a request may cost money: the model is not on this machine."""
    if model.embedded or not model.settings.get("remote", hasattr(model, "base_url")):
        return False
    return is_remote(str(model.settings.get("base_url") or ""))


def is_remote(address: str) -> bool:
    """Whether an address is on another machine, or unknown."""
    return urlsplit(address).hostname not in ("localhost", "127.0.0.1", "::1")


def make_allowance(
    models: Iterable[Model], max_calls: int | None, max_cost: float | None
) -> Allowance | None:
    """Make the allowance of a command; None without a limit.

    A limit on money requires prices, so a model that may cost money and has no price is refused.
    """
    if max_calls is None and max_cost is None:
        return None
    if max_cost is not None:
        for model in models:
            if costs_money(model) and getattr(model, "price_in", None) is None:
                raise SpecError(
                    f"max_cost needs prices, and {model.name} has none; add price_in=… and "
                    f"price_out=… (for a million tokens) to it, or use max_calls"
                )
    return Allowance(max_calls, max_cost)
