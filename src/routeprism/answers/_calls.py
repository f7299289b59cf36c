"""How one model is called, at which pace and with which seeds, and what the ledger keeps of it."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

from routeprism.answers._cells import money
from routeprism.answers._parse import parse
from routeprism.errors import ModelError, RoutePrismError, SpecError
from routeprism.models import (
    Allowance,
    Ask,
    Model,
    Replayed,
    Reply,
    clean_reply,
    count_repetition,
)
from routeprism.models.recorded import Recorded
from routeprism.redaction import Redactor, repair_text
from routeprism.runs import Answer, Failure
from routeprism.text import tokens
from routeprism.workers import RayCluster, Replicas

GRACE = 3.0
"""Seconds that requests under way get after Ctrl-C: they may be paid for already."""


class ModelCaller:
    """Calls a model: awaits it, calls it here, or calls it in threads of its own.

    A plain method is called here where the model is in this process anyway, or takes one request
    at a time.
    """

    def __init__(
        self, model: Model, allowance: Allowance | None = None, cluster: RayCluster | None = None
    ) -> None:
        self._model = model
        self._replicas = None if cluster is None else _replicate(model, cluster)
        self._threads: ThreadPoolExecutor | None = None
        self.instant = model.embedded or isinstance(model, Recorded)
        self._allowance = None if self.instant else allowance
        self._redactor = Redactor() if self.instant else Redactor.configured()
        self.concurrency = model.concurrency
        """Requests at once, unless the user sets their number."""
        if self._replicas is not None:
            self.concurrency = self._replicas.number
            self._places = asyncio.Semaphore(self._replicas.number)
            return
        in_caller = self.instant or model.concurrency == 1
        if not in_caller and not inspect.iscoroutinefunction(model.answer):
            self._threads = ThreadPoolExecutor(model.concurrency, thread_name_prefix="model")

    async def reply(self, ask: Ask) -> Reply:
        """Return the model's reply; raise `LimitError` where the command may spend no more."""
        allowance = self._allowance
        if allowance is None:
            return await self._reply(ask)
        price = 0.0 if allowance.max_cost is None else highest_price(self._model, ask.text)
        allowance.take(price)
        cost: float | None = None  # unless it is known, a request under way counts as paid for
        try:
            with allowance.counting():
                reply = await self._reply(ask)
            cost = reply.usage.cost
            return reply
        except ModelError:
            cost = 0.0
            raise
        finally:
            allowance.settle(price, cost)

    async def _reply(self, ask: Ask) -> Reply:
        """Return the model's reply, as far as it can be stored; whatever it raises is a failure."""
        try:
            raw: object
            if self._replicas is not None:
                async with self._places:
                    raw = await self._replicas.call("answer", ask, repeat=count_repetition)
            elif self._threads is not None:
                loop = asyncio.get_running_loop()
                raw = await loop.run_in_executor(self._threads, self._model.answer, ask)
            else:
                raw = self._model.answer(ask)
            reply = clean_reply(await raw if inspect.isawaitable(raw) else raw, self._model.name)
            return replace(
                reply,
                raw=self._redactor.redact(reply.raw),
                attempts=tuple(map(self._redactor.redact, reply.attempts)),
            )
        except ModelError as error:
            error.args = tuple(self._redactor.redact(str(words)) for words in error.args)
            error.attempts = tuple(map(self._redactor.redact, error.attempts))
            raise
        except RoutePrismError:
            raise
        except Exception as error:  # a model of the user's own may raise anything
            words = self._redactor.redact_line(f"{type(error).__name__}: {error}")
            raise ModelError(f"{self._model.name} gave no answer: {words}") from error

    async def close(self) -> None:
        """Release threads, and the model's resources for this event loop."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
        close: Callable[[], Awaitable[None]] | None = getattr(self._model, "aclose", None)
        if close is not None:
            await close()


def _replicate(model: Model, cluster: RayCluster) -> Replicas | None:
    """Copy a model that computes to workers; one that awaits a server stays here, as do files."""
    if inspect.iscoroutinefunction(model.answer) or isinstance(model, (Recorded, Replayed)):
        return None
    # One request at a time means that an answer uses the whole machine.
    whole = model.concurrency == 1 and not model.embedded
    return cluster.replicate(model, on_each="machine" if whole else "core")


def answer_entry(
    submission: int, reply: Reply, options: Sequence[str], asked_at: str, latency: float
) -> Answer:
    """Make the entry of a reply for the ledger, with the option or text that it states."""
    outcome, answer = parse(reply.raw, options)
    return Answer(
        submission=submission,
        outcome=outcome,
        answer=answer,
        raw=reply.raw,
        scores=reply.scores,
        input_tokens=reply.usage.input_tokens,
        output_tokens=reply.usage.output_tokens,
        cost=reply.usage.cost,
        asked_at=asked_at,
        latency=latency,
        attempts=tuple(map(repair_text, reply.attempts)),
        correct=reply.correct,
        order=reply.order,
        marks=reply.marks,
    )


def failure_entry(submission: int, error: ModelError, asked_at: str, latency: float) -> Failure:
    """Make the entry of a failed request for the ledger."""
    return Failure(
        submission=submission,
        error=repair_text(str(error)),
        asked_at=asked_at,
        latency=latency,
        attempts=tuple(map(repair_text, error.attempts)),
    )


def highest_price(model: Model, text: str) -> float:
    """Return what one call costs at most, or at least where the longest answer is not known."""
    least, most = money(model, 1, tokens.count(text))
    return (most if most is not None else least) or 0.0


class Pace:
    """Spaces requests evenly under a rate limit, which several threads may share."""

    def __init__(self, per_minute: float | None) -> None:
        if per_minute is not None and not per_minute > 0:
            raise SpecError(f"Expected a rate limit above 0 but got rate_limit={per_minute}")
        self._lock = threading.Lock()
        self._interval = 0.0 if per_minute is None else 60.0 / per_minute
        self._next = 0.0

    async def turn(self) -> None:
        """Wait for this request's turn."""
        if self._interval:
            with self._lock:
                now = time.monotonic()
                start = max(self._next, now)
                self._next = start + self._interval
            await asyncio.sleep(start - now)


def shift(batch: str) -> int:
    """Return what another batch adds to the draws that a model takes its seeds from.

    Without it a seeded model would repeat the first batch word for word.
    """
    if not batch:
        return 0
    return (int.from_bytes(hashlib.sha256(batch.encode()).digest()[:3], "big") + 1) << 20


def cancel_on_interrupt() -> None:
    """Make Ctrl-C cancel this task alone, as later Pythons do: 3.10 would cancel every request."""
    task = asyncio.current_task()
    if sys.version_info < (3, 11) and task is not None:
        # Signal handlers exist in the main thread only, and not on every platform's event loop.
        with suppress(NotImplementedError, RuntimeError, ValueError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, task.cancel)
