"""`openai:MODEL`: any OpenAI-compatible chat endpoint, through the official SDK.

RoutePrism repeats failed requests itself, so that each failure reaches the ledger. The key is read
from OPENAI_API_KEY when the first request is made; no field, setting or message contains it.
"""

from __future__ import annotations

import asyncio
import math
import os
import sys
import time
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from importlib.util import find_spec
from typing import Any, ClassVar
from urllib.parse import urljoin

from routeprism.errors import MissingExtraError, ModelError, SpecError
from routeprism.models._allowance import count_repetition
from routeprism.models._contracts import Ask, Reply, Usage
from routeprism.models._proxy import LARGEST, PUBLIC
from routeprism.models._replies import FILTERED, REFUSED, UnreadableError, read_chat
from routeprism.models._sessions import (
    LONGEST_WAIT,
    RETRIED,
    LoopCache,
    OversizeError,
    Session,
    compute_backoff,
    connect,
    read_retry_after,
)
from routeprism.redaction import bare_address, hide_credentials, is_web_address
from routeprism.specs import check_sizes, check_timeout

__all__ = ["PUBLIC", "OpenAI"]

_HOPELESS = frozenset({"insufficient_quota", "billing_not_active"})


@dataclass(frozen=True)
class OpenAI:
    """A model behind an OpenAI-compatible endpoint."""

    model: str
    """The name of the model at the endpoint."""
    base_url: str | None = field(default=None, repr=False)
    """The address of the endpoint; by default OPENAI_BASE_URL, or else OpenAI."""
    effort: str | None = None
    """The reasoning effort, if the model has one."""
    temperature: float | None = None
    seed: int | None = None
    """Draw n uses seed + n, so that seeded draws still differ."""
    max_tokens: int | None = None
    """The longest answer, reasoning included."""
    concurrency: int = 16
    timeout: float = 120
    """Seconds for one whole attempt."""
    retries: int = 6
    """How often a request is repeated after a temporary failure."""
    price_in: float | None = None
    """Price of a million input tokens."""
    price_out: float | None = None
    """Price of a million output tokens."""
    _sessions: LoopCache[Session] = field(
        default_factory=LoopCache, init=False, repr=False, compare=False
    )

    embedded: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.model:
            raise SpecError("Expected a model's name behind 'openai:'")
        if find_spec("openai") is None:
            raise MissingExtraError(f"openai:{self.model}", "openai")
        check_sizes(concurrency=self.concurrency, retries=self.retries)
        lowest = {"max_tokens": 1, "price_in": 0, "price_out": 0}
        for name, least in lowest.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise SpecError(f"Expected {name} of {least} or more but got {name}={value}")
        for name in ("temperature", "price_in", "price_out"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise SpecError(f"Expected a finite {name} but got {name}={value}")
        check_timeout(self.timeout)
        if (self.price_in is None) != (self.price_out is None):
            raise SpecError("Expected both price_in and price_out, or neither")
        _check_address(self.base_url, self._address)

    @property
    def name(self) -> str:
        """The spec."""
        return f"openai:{self.model}"

    @property
    def settings(self) -> Mapping[str, str | int | float | bool | None]:
        """Everything that can change an answer; the endpoint without credentials."""
        return {
            "base_url": bare_address(self._address),
            "effort": self.effort,
            "temperature": self.temperature,
            "seed": self.seed,
            "max_tokens": self.max_tokens,
        }

    async def answer(self, ask: Ask, /) -> Reply:
        """Repeat the request until it succeeds, fails for good, or the attempts are used up."""
        session = self._sessions.get(lambda: connect(self._address, self.timeout))
        history: list[str] = []
        for number in range(self.retries + 1):
            await session.gate.wait()
            if number:
                count_repetition()
            result = await self._attempt(session, ask, tuple(history))
            if isinstance(result, Reply):
                return result
            history.append(result.line)
            if not result.temporary or number == self.retries:
                break
            if result.after is not None:
                session.gate.shut(result.after)
            await asyncio.sleep(max(result.after or 0.0, compute_backoff(number)))
        reason = history[-1].partition(" ")[2]
        tried = "1 attempt" if len(history) == 1 else f"{len(history)} attempts"
        raise ModelError(
            f"{self.name} gave no answer after {tried}: {reason}", attempts=tuple(history)
        )

    async def aclose(self) -> None:
        """Close this event loop's connections; the collector calls this at the end."""
        session = self._sessions.pop()
        if session is not None:
            await session.close()

    async def _attempt(
        self, session: Session, ask: Ask, history: tuple[str, ...]
    ) -> Reply | _Failure:
        import openai

        begun = time.monotonic()
        try:
            request = session.post("/chat/completions", self._body(ask))
            content = await _await_within(self.timeout, request)
            return self._read_reply(session, content, history)
        except (openai.APITimeoutError, asyncio.TimeoutError):
            if time.monotonic() - begun < 0.9 * self.timeout:
                # Transports also report a time-out if no server listens at the address.
                return _failure(f"no connection to {bare_address(self._address)}", temporary=True)
            return _failure(f"no answer within {self.timeout:g} s", temporary=True)
        except openai.APIConnectionError as error:
            cause = type(error.__cause__ or error).__name__
            return _failure(f"the connection failed ({cause})", temporary=True)
        except openai.APIStatusError as error:
            return self._refusal_or_failure(session, error, history)
        except OversizeError:
            return _failure(f"an answer of more than {LARGEST // 2**20} MiB", temporary=False)
        except UnreadableError as error:
            return _failure(session.redactor.redact_line(str(error)), temporary=True)
        except Exception as error:
            # Its text or its attributes may contain a header.
            return _failure(
                f"the request could not be made ({type(error).__name__})", temporary=False
            )

    def _read_reply(self, session: Session, content: bytes, history: tuple[str, ...]) -> Reply:
        chat = read_chat(content)
        usage = replace(chat.usage, cost=self._cost(chat.usage))
        # An endpoint that echoes the request headers must not get them into the ledger.
        raw = session.redactor.redact(chat.text)
        return Reply(raw, usage, attempts=history, marks=chat.marks)

    def _refusal_or_failure(
        self, session: Session, error: Any, history: tuple[str, ...]
    ) -> Reply | _Failure:
        code = str(error.code or "")
        status: int = error.status_code
        if status == 400 and code in FILTERED:
            return Reply(f"{REFUSED} {code}", attempts=history)
        if 300 <= status < 400:
            return _failure(f"HTTP {status}: {_redirection(session, error)}", temporary=False)
        body = error.body if isinstance(error.body, Mapping) else {}
        words = session.redactor.redact_line(
            str(body.get("message") or error.response.reason_phrase)
        )
        after = read_retry_after(error.response.headers) if status in RETRIED else None
        hopeless = code in _HOPELESS or (after is not None and after > LONGEST_WAIT)
        if after is not None and after > LONGEST_WAIT:
            words += f" (it asks to wait {after:.0f} s)"
        return _failure(
            f"HTTP {status}: {words}", temporary=status in RETRIED and not hopeless, after=after
        )

    def _body(self, ask: Ask) -> dict[str, Any]:
        # OpenAI's reasoning models accept only the newer name, most other servers only the older.
        limit = "max_completion_tokens" if bare_address(self._address) == PUBLIC else "max_tokens"
        options = {
            "temperature": self.temperature,
            "seed": None if self.seed is None else self.seed + ask.draw,
            "reasoning_effort": self.effort,
            limit: self.max_tokens,
        }
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "user", "content": ask.text}],
        }
        body.update((name, value) for name, value in options.items() if value is not None)
        return body

    def _cost(self, usage: Usage) -> float | None:
        if self.price_in is None or self.price_out is None or usage.input_tokens is None:
            return None
        output = usage.output_tokens or 0
        return (usage.input_tokens * self.price_in + output * self.price_out) / 1e6

    @property
    def _address(self) -> str:
        if self.base_url is not None:
            return self.base_url
        return os.environ.get("OPENAI_BASE_URL", PUBLIC)


def _check_address(base_url: str | None, address: str) -> None:
    """Refuse an invalid address; an empty one does not mean the public service."""
    if not is_web_address(address):
        source = "base_url" if base_url is not None else "OPENAI_BASE_URL"
        display = hide_credentials(address) if address.strip() else "an empty text"
        raise SpecError(
            f"Expected {source} to be an address such as http://127.0.0.1:8000/v1 but got {display}"
        )


def _redirection(session: Session, error: Any) -> str:
    """Name the address that a server redirects to; RoutePrism sends nothing there."""
    location = str(error.response.headers.get("location", ""))
    if not location:
        return "the server redirects, and names no address"
    with suppress(ValueError):  # else it is shown as it came
        location = urljoin(str(error.request.url), location)
    target = session.redactor.redact_line(location)
    return (
        f"the server redirects to {target}, and RoutePrism follows no redirects; if that is the "
        f"right address, pass it as base_url"
    )


async def _await_within(seconds: float, request: Coroutine[Any, Any, bytes]) -> bytes:
    """Await a request for some seconds at most, all its phases together."""
    if sys.version_info >= (3, 11):
        async with asyncio.timeout(seconds):  # without an extra task for each request
            return await request
    else:
        return await asyncio.wait_for(request, seconds)


@dataclass(frozen=True, slots=True)
class _Failure:
    """One attempt without an answer."""

    line: str
    """The UTC time, and what happened."""
    temporary: bool
    """Whether another attempt can succeed."""
    after: float | None


def _failure(reason: str, *, temporary: bool, after: float | None = None) -> _Failure:
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return _Failure(f"{now} {reason}", temporary, after)
