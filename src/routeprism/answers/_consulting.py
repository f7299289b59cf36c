"""Replies one at a time, through the ledger: what a policy needs that asks while it builds.

Within a build each request waits for the one before, so several builds run at once, in threads;
the requests of all of them share one event loop, one pace and one ledger.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from types import TracebackType

from routeprism.answers._calls import GRACE, ModelCaller, Pace, answer_entry, failure_entry, shift
from routeprism.answers._cells import Cost, key_of, money
from routeprism.errors import ModelError
from routeprism.models import Allowance, Ask, Model
from routeprism.runs import Ledger, Request, Run
from routeprism.text import tokens
from routeprism.workers import RayCluster, call_home


def _number_draws(reply: Callable[[str, int], str]) -> Callable[[str], str]:
    """Return the function of one build, which counts how often it asks a prompt."""
    counts: Counter[str] = Counter()

    def ask(prompt: str) -> str:
        draw = counts[prompt]
        counts[prompt] += 1
        return reply(prompt, draw)

    return ask


@dataclass(frozen=True, slots=True)
class DistantConsultant:
    """A consultant of the first process, in a worker: every prompt is sent there."""

    name: str

    def consult(self, batch: str, *, user: str, route: str) -> Callable[[str], str]:
        """Return the function that one build asks with; a prompt it repeats is another draw."""
        place = {"batch": batch, "user": user, "route": route}
        return _number_draws(partial(call_home, self.name, "reply", **place))


class Consultant:
    """Asks one model for the builds of one run; use it as a context.

    With `dry_run` no model is asked: what the ledger does not have is counted, and the reply is
    empty, so that a policy continues as it does after a reply that it cannot use.
    """

    def __init__(
        self,
        run: Run,
        model: Model,
        *,
        dry_run: bool = False,
        pace: Pace | None = None,
        allowance: Allowance | None = None,
        cluster: RayCluster | None = None,
        name: str = "",
        tick: Callable[[], None] | None = None,
    ) -> None:
        self._tick = tick
        self._run, self._model, self._dry_run = run, model, dry_run
        self._pace = pace or Pace(None)
        self._cluster = cluster
        self.name = name
        """Its name among the objects that workers call."""
        self._allowance = allowance
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="consultant", daemon=True)
        self._opened: Future[None] = Future()
        self._ledger: Ledger
        self._caller: ModelCaller
        self.asked = 0
        """Replies that were asked for now."""
        self._kept = self._missing = self._tokens = 0
        self._stopped = False

    def __enter__(self) -> Consultant:
        self._thread.start()
        self._opened.result()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def stop(self) -> None:
        """Take no more requests; those under way may be paid for, and get a moment to come in."""
        self._stopped = True
        self._loop.call_soon_threadsafe(self._loop.call_later, GRACE, self._give_up)

    def _give_up(self) -> None:
        for task in asyncio.all_tasks(self._loop):
            task.cancel()

    def consult(self, batch: str, *, user: str, route: str) -> Callable[[str], str]:
        """Return the function that one build asks with; a prompt it repeats is another draw."""
        return _number_draws(partial(self.reply, batch=batch, user=user, route=route))

    def reply(self, prompt: str, draw: int, *, batch: str, user: str, route: str) -> str:
        """Return the reply to a prompt, once it is in the ledger."""
        if self._stopped:
            raise CancelledError
        reply = self._reply(Ask(prompt, "", "", (), draw), batch, user, route)
        text = asyncio.run_coroutine_threadsafe(reply, self._loop).result()
        if self._tick is not None:
            self._tick()
        return text

    def __reduce__(self) -> tuple[object, ...]:
        """Stay in this process: a worker calls it here."""
        return DistantConsultant, (self.name,)

    def plan(self) -> Cost:
        """List what was missing, after a dry run."""
        cost, most = money(self._model, self._missing, self._tokens)
        return Cost(
            self._kept + self._missing,
            self._kept,
            self._missing,
            self._tokens,
            cost,
            most,
            "an estimate: later prompts can depend on earlier replies",
            estimated=True,
        )

    def _serve(self) -> None:
        """Own the event loop and, because SQLite requires one thread, the ledger."""
        asyncio.set_event_loop(self._loop)
        try:
            self._ledger = self._run.ledger()
            self._caller = ModelCaller(
                self._model, self._allowance, None if self._dry_run else self._cluster
            )
        except BaseException as error:
            self._loop.close()
            self._opened.set_exception(error)
            return
        self._opened.set_result(None)
        try:
            self._loop.run_forever()
            under_way = asyncio.all_tasks(self._loop)
            for task in under_way:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*under_way, return_exceptions=True))
            self._loop.run_until_complete(self._caller.close())
        finally:
            self._ledger.close()
            self._loop.close()

    async def _reply(self, ask: Ask, batch: str, user: str, route: str) -> str:
        key = key_of(self._model, ask, batch)
        answer = self._ledger.answers([key]).get(key)
        if answer is not None:
            self._kept += 1
            return answer.raw
        if self._dry_run:
            self._missing += 1
            self._tokens += tokens.count(ask.text)
            return ""
        request = Request(key, ask.text, user, route)
        (submission,) = await asyncio.wrap_future(
            self._ledger.reserve(self._model.settings, [request])
        )
        await self._pace.turn()
        asked_at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        begun = time.monotonic()
        try:
            reply = await self._caller.reply(replace(ask, draw=ask.draw + shift(batch)))
        except ModelError as error:
            failure = failure_entry(submission, error, asked_at, time.monotonic() - begun)
            await asyncio.wrap_future(self._ledger.put(failure))
            raise
        entry = answer_entry(submission, reply, (), asked_at, time.monotonic() - begun)
        await asyncio.wrap_future(self._ledger.put(entry))
        self.asked += 1
        return reply.raw
