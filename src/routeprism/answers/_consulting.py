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
from dataclasses import replace
from datetime import datetime, timezone
from types import TracebackType

from routeprism.answers._calls import GRACE, ModelCaller, Pace, shift
from routeprism.answers._cells import Cost, key_of, money
from routeprism.answers._results import answer_entry, failure_entry
from routeprism.errors import ModelError, SpecError
from routeprism.models import Allowance, Ask, Model
from routeprism.runs import Ledger, Request, Run
from routeprism.text import tokens

__all__ = ["Consultant"]


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
        rate_limit: float | None = None,
        allowance: Allowance | None = None,
    ) -> None:
        if rate_limit is not None and not rate_limit > 0:
            raise SpecError(f"Expected a rate limit above 0 but got rate_limit={rate_limit}")
        self._run, self._model, self._dry_run = run, model, dry_run
        self._pace = Pace(rate_limit)
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
        counts: Counter[str] = Counter()

        def ask(prompt: str) -> str:
            if self._stopped:
                raise CancelledError
            draw = counts[prompt]
            counts[prompt] += 1
            reply = self._reply(Ask(prompt, "", "", (), draw), batch, user, route)
            return asyncio.run_coroutine_threadsafe(reply, self._loop).result()

        return ask

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
            self._caller = ModelCaller(self._model, self._allowance)
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
