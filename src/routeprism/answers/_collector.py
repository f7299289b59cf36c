"""Collect answers: request those that are missing, several at once, and store each before use."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from routeprism.answers._calls import (
    GRACE,
    ModelCaller,
    Pace,
    answer_entry,
    cancel_on_interrupt,
    failure_entry,
    shift,
)
from routeprism.answers._cells import Cell, key_of, requests
from routeprism.errors import LimitError, MissingExtraError, ModelError, SpecError, UnansweredError
from routeprism.models import Allowance, Model
from routeprism.runs import Answer, Failure, Key, Ledger, Run
from routeprism.workers import RayCluster

_APART = 0.003
"""Seconds between the first requests: sent together, they and all later ones come back together,
and wait for each other."""
_NEWS = 0.1
"""Seconds between two reports of progress."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far answers have been collected."""

    done: int
    """The number of stored answers, including those from before."""
    total: int
    failed: int
    rate: float
    """Answers a second, since this collecting began."""
    cost: float | None
    """The cost of the answers that were collected now, where it is known."""
    seconds_left: float | None


AnswerProgress = Callable[[str, Progress], None]
"""Progress callback for answer collection, called with a model's name and its progress."""


@dataclass(frozen=True, slots=True)
class Collected:
    """The stored answers to the cells, and the requests that failed."""

    model: Model
    batch: str
    answers: Mapping[Key, Answer]
    failures: Mapping[Key, Failure]
    """The requests that failed now; the next call repeats them."""
    new_requests: int
    """The number of answers that were requested now; the others were stored before."""
    cost: float | None
    seconds: float

    def of(self, cell: Cell) -> Answer | None:
        """Return a cell's answer, or None where it failed."""
        return self.answers.get(key_of(self.model, cell.ask, self.batch))

    @property
    def outcomes(self) -> Mapping[str, int]:
        """Count `answered`, `refused`, `unparsable` and `failed`."""
        counts = Counter[str](answer.outcome for answer in self.answers.values())
        counts["failed"] = len(self.failures)
        return {name: counts[name] for name in ("answered", "refused", "unparsable", "failed")}


def collect(
    run: Run | None,
    model: Model,
    cells: Sequence[Cell],
    *,
    batch: str = "",
    pools: Mapping[str, int] | None = None,
    progress: Callable[[Progress], None] | None = None,
    rate_limit: float | None = None,
    concurrency: int | None = None,
    allowance: Allowance | None = None,
    cluster: RayCluster | None = None,
) -> Collected:
    """Return an answer for each cell, asking for those that the run's ledger does not have.

    Args:
        run: the run whose ledger is used; without one, answers are not stored.
        model: the model that answers.
        cells: the answers to get; equal requests are made once, different draws never share.
        batch: names another, independent realisation of the same requests.
        pools: the number of the pool of each question, which decides the route that begins.
        progress: called from time to time, and at the end.
        rate_limit: requests a minute at most, evenly spaced.
        concurrency: requests at once, where it should differ from the model's own number.
        allowance: what may still be spent; where it ends, `LimitError` is raised, and the answers
            that came in are kept.
        cluster: where a model that computes in this process answers instead.

    """
    pace = Pace(rate_limit)
    if concurrency is not None and concurrency < 1:
        raise SpecError(f"Expected a concurrency of 1 or more but got concurrency={concurrency}")

    def work() -> Collected:
        with ExitStack() as stack:
            if run is None:
                where = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "run.sqlite"
                ledger = stack.enter_context(Ledger(where))
            else:
                ledger = stack.enter_context(run.ledger())
            collector = _Collector(ledger, model, cells, batch, pools, progress, allowance, cluster)
            try:
                asyncio.run(collector.run(concurrency, pace))
            except asyncio.CancelledError:
                raise KeyboardInterrupt from None
            collected = collector.collected()
            if run is not None:
                run.note_unanswered({k: failure.error for k, failure in collected.failures.items()})
            return collected

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    with ThreadPoolExecutor(1) as beside:  # called from a notebook, which has a loop of its own
        return beside.submit(work).result()


class _Collector:
    """The state of one collection."""

    def __init__(
        self,
        ledger: Ledger,
        model: Model,
        cells: Sequence[Cell],
        batch: str,
        pools: Mapping[str, int] | None,
        progress: Callable[[Progress], None] | None,
        allowance: Allowance | None = None,
        cluster: RayCluster | None = None,
    ) -> None:
        self._ledger, self._model, self._batch, self._progress = ledger, model, batch, progress
        self._wanted = requests(model, cells, batch, pools)
        self._kept = ledger.answers(self._wanted)
        self._missing = [key for key in self._wanted if key not in self._kept]
        # Written down while the first requests are already under way.
        self._reserved = ledger.reserve(
            model.settings, [self._wanted[key][0] for key in self._missing]
        )
        self._failures: dict[Key, Failure] = {}
        self._cost: float | None = None
        self._asked = self._in_a_row = 0
        self._patience = 0
        self._stopping = False
        self._broken: ModelError | None = None
        self._shift = shift(batch)
        self._began = self._told = time.monotonic()
        self._caller = ModelCaller(model, allowance, cluster if self._missing else None)
        self._limit: LimitError | None = None
        self._written: deque[asyncio.Future[None]] = deque()
        self._waking = False

    async def run(self, concurrency: int | None, pace: Pace) -> None:
        """Ask for everything that is missing."""
        cancel_on_interrupt()
        concurrency = concurrency or self._caller.concurrency
        self._patience = max(5, concurrency)
        todo = iter(enumerate(self._missing))
        number = min(concurrency, len(self._missing))
        apart = 0.0 if self._caller.instant else _APART
        workers = [asyncio.create_task(self._work(todo, pace, n * apart)) for n in range(number)]
        try:
            if workers:
                await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
        except asyncio.CancelledError:  # Ctrl-C
            self._stopping = True
            await asyncio.wait(workers, timeout=GRACE)
            raise
        finally:
            self._stopping = True
            for worker in workers:
                worker.cancel()
            ends = await asyncio.gather(*workers, return_exceptions=True)
            await self._caller.close()
        errors = [end for end in ends if isinstance(end, BaseException)]
        # Workers that were cancelled because one failed say nothing of why it did.
        for error in sorted(errors, key=lambda end: isinstance(end, asyncio.CancelledError)):
            raise error
        if self._broken is not None:
            raise self._broken
        if self._limit is not None:
            raise LimitError(
                f"{self._limit}. {len(self._kept):,} of {len(self._wanted):,} answers of "
                f"{self._model.name} are in the run; run the same command again, or with a higher "
                f"limit, to collect the rest"
            )
        self._tell(last=True)

    async def _work(self, todo: Iterator[tuple[int, Key]], pace: Pace, after: float) -> None:
        if after:
            await asyncio.sleep(after)
        for place, key in todo:
            await pace.turn()
            if self._stopping:
                return
            cell = self._wanted[key][1]
            ask = cell.ask
            if self._shift:
                ask = replace(ask, draw=ask.draw + self._shift, batch=self._batch)
            asked_at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
            begun = time.monotonic()
            try:
                reply = await self._caller.reply(ask)
            except LimitError as error:
                self._limit, self._stopping = error, True
                return
            except MissingExtraError as error:  # no further request can succeed
                self._broken, self._stopping = error, True
                return
            except ModelError as error:
                latency = time.monotonic() - begun
                await self._failed(key, place, error, asked_at, latency)
                continue
            latency = time.monotonic() - begun
            submission = await self._submission(place)
            entry = answer_entry(submission, reply, ask.options, asked_at, latency)
            await self._store_durably(entry)
            self._kept[key] = entry
            self._asked += 1
            self._in_a_row = 0
            if entry.cost is not None:
                self._cost = (self._cost or 0.0) + entry.cost
            self._tell()

    async def _failed(
        self, key: Key, place: int, error: ModelError, asked_at: str, latency: float
    ) -> None:
        entry = failure_entry(await self._submission(place), error, asked_at, latency)
        await self._store_durably(entry)
        self._failures[key] = entry
        self._in_a_row += 1
        if self._in_a_row >= self._patience and not self._stopping:
            # Nothing gets through: a wrong key, a wrong name, a server that is down.
            self._stopping = True
            self._broken = UnansweredError(
                f"{self._in_a_row} requests in a row failed; the last error was: {error}"
                + (
                    f". The {len(self._kept):,} answers already collected are kept; run the same "
                    f"command to request the others"
                    if self._kept
                    else ""
                ),
                attempts=error.attempts,
            )
        self._tell()

    async def _submission(self, place: int) -> int:
        await self._wait_for(self._reserved)
        return self._reserved.result()[place]

    async def _store_durably(self, entry: Answer | Failure) -> None:
        stored = self._ledger.put(entry)
        await self._wait_for(stored)
        stored.result()

    async def _wait_for(self, work: Future[Any]) -> None:
        """Wait until the ledger has done some work, which goes on if this task is cancelled.

        The error stays in the future of the work: asyncio would print one that it handed to a task
        which is cancelled in the same moment.
        """
        if work.done():
            return
        loop = asyncio.get_running_loop()
        acknowledgement: asyncio.Future[None] = loop.create_future()
        work.add_done_callback(lambda _: self._acknowledge(loop, acknowledgement))
        await acknowledgement

    def _acknowledge(
        self, loop: asyncio.AbstractEventLoop, acknowledgement: asyncio.Future[None]
    ) -> None:
        """Wake the loop, once for all that a commit wrote; called in the ledger's thread."""
        self._written.append(acknowledgement)
        if not self._waking:
            self._waking = True
            with suppress(RuntimeError):  # after Ctrl-C the loop may be closed, and nobody waits
                loop.call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
        self._waking = False
        while self._written:
            acknowledgement = self._written.popleft()
            if not acknowledgement.done():
                acknowledgement.set_result(None)

    def _tell(self, *, last: bool = False) -> None:
        now = time.monotonic()
        if self._progress is None or (now - self._told < _NEWS and not last):
            return
        self._told = now
        rate = self._asked / max(now - self._began, 1e-9)
        left = len(self._wanted) - len(self._kept) - len(self._failures)
        self._progress(
            Progress(
                done=len(self._kept),
                total=len(self._wanted),
                failed=len(self._failures),
                rate=rate,
                cost=self._cost,
                seconds_left=left / rate if rate else None,
            )
        )

    def collected(self) -> Collected:
        """Return the answers in the order in which they were wanted."""
        return Collected(
            model=self._model,
            batch=self._batch,
            answers={key: self._kept[key] for key in self._wanted if key in self._kept},
            failures=dict(self._failures),
            new_requests=self._asked,
            cost=self._cost,
            seconds=time.monotonic() - self._began,
        )
