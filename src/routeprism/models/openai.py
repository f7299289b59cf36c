"""`openai:MODEL`: any OpenAI-compatible chat endpoint, through the official SDK.

Retries are ours, so that each failed attempt reaches the ledger. The key is read from
OPENAI_API_KEY when the first request is made; it is in no field, setting, message or line of
history.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timezone
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from routeprism.errors import ModelError, SpecError
from routeprism.models._contracts import Ask, Reply, Usage
from routeprism.models._openai_session import PUBLIC, Session, bare, connect
from routeprism.models._retries import AGAIN, LONGEST_WAIT, backoff, retry_after

__all__ = ["OpenAI"]

REFUSED = "[refused]"
"""Begins the raw text where the provider said, outside the answer's text, that there is none."""

_FILTERED = frozenset({"content_filter", "content_policy_violation"})
_HOPELESS = frozenset({"insufficient_quota", "billing_not_active"})


@dataclass(frozen=True)
class OpenAI:
    """A model behind an OpenAI-compatible endpoint."""

    model: str
    """The endpoint's name for it."""
    base_url: str | None = field(default=None, repr=False)
    """Where it is served; else OPENAI_BASE_URL, else OpenAI."""
    effort: str | None = None
    """The reasoning effort, where the model has one."""
    temperature: float | None = None
    seed: int | None = None
    """Draw n is asked with seed + n, so that seeded draws still differ."""
    max_tokens: int | None = None
    """The longest answer, reasoning included."""
    concurrency: int = 16
    timeout: float = 120
    """Seconds for one attempt, all of it."""
    retries: int = 6
    """How often a request is repeated after a failure that can pass."""
    price_in: float | None = None
    """For a million input tokens."""
    price_out: float | None = None
    """For a million output tokens."""
    _sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, Session] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if not self.model:
            raise SpecError("Expected a model's name behind 'openai:'")
        lowest = {"concurrency": 1, "retries": 0, "max_tokens": 1, "price_in": 0, "price_out": 0}
        for name, least in lowest.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise SpecError(f"Expected {name} of {least} or more but got {name}={value}")
        if not self.timeout > 0:
            raise SpecError(f"Expected a timeout above 0 but got timeout={self.timeout}")
        if (self.price_in is None) != (self.price_out is None):
            raise SpecError("Expected both price_in and price_out, or neither")
        parts = urlsplit(self._address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SpecError("Expected a base_url such as http://127.0.0.1:8000/v1")

    def __getstate__(self) -> dict[str, Any]:
        """Travel to another process without connections."""
        return {part.name: getattr(self, part.name) for part in fields(self) if part.init}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_sessions", WeakKeyDictionary())

    @property
    def name(self) -> str:
        """The spec."""
        return f"openai:{self.model}"

    @property
    def embedded(self) -> bool:
        """Nothing of it is in this package."""
        return False

    @property
    def settings(self) -> Mapping[str, str | int | float | bool | None]:
        """All that can change an answer, the endpoint without credentials."""
        return {
            "base_url": bare(self._address),
            "effort": self.effort,
            "temperature": self.temperature,
            "seed": self.seed,
            "max_tokens": self.max_tokens,
        }

    async def answer(self, ask: Ask, /) -> Reply:
        """Ask until there is an answer, the failure is final, or the attempts are used up."""
        session = self._session()
        history: list[str] = []
        for number in range(self.retries + 1):
            await session.gate.passed()
            got = await self._attempt(session, ask, tuple(history))
            if isinstance(got, Reply):
                return got
            history.append(got.line)
            if not got.again or number == self.retries:
                break
            if got.after is not None:
                session.gate.shut(got.after)
            await asyncio.sleep(max(got.after or 0.0, backoff(number)))
        what = history[-1].partition(" ")[2]
        tried = "1 attempt" if len(history) == 1 else f"{len(history)} attempts"
        raise ModelError(
            f"{self.name} gave no answer after {tried}: {what}", attempts=tuple(history)
        )

    async def aclose(self) -> None:
        """Close this event loop's connections; the collector does when it is done."""
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()

    async def _attempt(
        self, session: Session, ask: Ask, history: tuple[str, ...]
    ) -> Reply | _Failure:
        import openai

        begun = time.monotonic()
        try:
            request = session.post("/chat/completions", self._body(ask))
            content = await _within(self.timeout, request)
            return self._read(session, content, history)
        except (openai.APITimeoutError, asyncio.TimeoutError):
            if time.monotonic() - begun < 0.9 * self.timeout:
                # Transports also call it a time-out when nobody listens at the address.
                return _failure(f"no connection to {bare(self._address)}", again=True)
            return _failure(f"no answer within {self.timeout:g} s", again=True)
        except openai.APIConnectionError as error:
            cause = type(error.__cause__ or error).__name__
            return _failure(f"the connection failed ({cause})", again=True)
        except openai.APIStatusError as error:
            return self._refusal_or_failure(session, error, history)
        except ValueError as error:
            # JSON that is none, or has another shape; the body itself may hold anything.
            return _failure(f"an answer that cannot be read ({type(error).__name__})", again=True)
        except Exception as error:
            # Whatever it is, its text or its objects may hold a header.
            return _failure(f"the request could not be made ({type(error).__name__})", again=False)

    def _read(self, session: Session, content: bytes, history: tuple[str, ...]) -> Reply:
        try:
            body = json.loads(content)
            choice = body["choices"][0]
            message = choice["message"]
            said, refusal = message.get("content"), message.get("refusal")
            usage = body.get("usage") or {}
            tokens = usage.get("prompt_tokens"), usage.get("completion_tokens")
        except (KeyError, IndexError, TypeError, AttributeError):
            raise ValueError from None
        if not said and (refusal or choice.get("finish_reason") in _FILTERED):
            said = f"{REFUSED} {refusal or choice['finish_reason']}"
        # An endpoint that repeats our headers must not get them into the ledger.
        raw = session.hidden(str(said or ""))
        return Reply(raw, Usage(*tokens, cost=self._cost(*tokens)), attempts=history)

    def _refusal_or_failure(
        self, session: Session, error: Any, history: tuple[str, ...]
    ) -> Reply | _Failure:
        code = str(error.code or "")
        status: int = error.status_code
        if status == 400 and code in _FILTERED:
            return Reply(f"{REFUSED} {code}", attempts=history)
        body = error.body if isinstance(error.body, Mapping) else {}
        words = session.scrubbed(str(body.get("message") or error.response.reason_phrase))
        after = retry_after(error.response.headers) if status in AGAIN else None
        hopeless = code in _HOPELESS or (after is not None and after > LONGEST_WAIT)
        if after is not None and after > LONGEST_WAIT:
            words += f" (it asks to wait {after:.0f} s)"
        return _failure(
            f"HTTP {status}: {words}", again=status in AGAIN and not hopeless, after=after
        )

    def _body(self, ask: Ask) -> dict[str, Any]:
        # OpenAI's reasoning models know only the newer name, most other servers only the older.
        limit = "max_completion_tokens" if bare(self._address) == PUBLIC else "max_tokens"
        given = {
            "temperature": self.temperature,
            "seed": None if self.seed is None else self.seed + ask.draw,
            "reasoning_effort": self.effort,
            limit: self.max_tokens,
        }
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "user", "content": ask.text}],
        }
        body.update((name, value) for name, value in given.items() if value is not None)
        return body

    def _cost(self, input_tokens: int | None, output_tokens: int | None) -> float | None:
        if self.price_in is None or self.price_out is None or input_tokens is None:
            return None
        return (input_tokens * self.price_in + (output_tokens or 0) * self.price_out) / 1e6

    @property
    def _address(self) -> str:
        return self.base_url or os.environ.get("OPENAI_BASE_URL") or PUBLIC

    def _session(self) -> Session:
        """Give this event loop's connections."""
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None:
            session = self._sessions[loop] = connect(self._address, self.timeout)
        return session


async def _within(seconds: float, request: Coroutine[Any, Any, bytes]) -> bytes:
    """Await a request for so long at most, all its phases together."""
    if sys.version_info >= (3, 11):
        async with asyncio.timeout(seconds):  # without a task of its own for each request
            return await request
    else:
        return await asyncio.wait_for(request, seconds)


@dataclass(frozen=True, slots=True)
class _Failure:
    """One attempt without an answer."""

    line: str
    """The UTC time, and what happened."""
    again: bool
    after: float | None


def _failure(what: str, *, again: bool, after: float | None = None) -> _Failure:
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return _Failure(f"{now} {what}", again, after)
