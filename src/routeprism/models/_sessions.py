"""Connections to an OpenAI-compatible endpoint for one event loop, and when to repeat a request."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any, Generic, TypeVar
from urllib.parse import parse_qsl, urlsplit
from weakref import WeakKeyDictionary

from routeprism.errors import ModelError
from routeprism.models._proxy import LARGEST, PUBLIC
from routeprism.redaction import Redactor, address_secrets, bare_address, basic_authorization

T = TypeVar("T")

_PLACEHOLDER = "no-key-needed"


class LoopCache(Generic[T]):
    """A value for each event loop; a copy in another process starts empty."""

    def __init__(self) -> None:
        self._values: WeakKeyDictionary[asyncio.AbstractEventLoop, T] = WeakKeyDictionary()

    def __reduce__(self) -> tuple[type[LoopCache[T]], tuple[()]]:
        return type(self), ()

    def get(self, make: Callable[[], T]) -> T:
        """Return this event loop's value; make it if there is none."""
        loop = asyncio.get_running_loop()
        if loop not in self._values:
            self._values[loop] = make()
        return self._values[loop]

    def pop(self) -> T | None:
        """Remove this event loop's value."""
        return self._values.pop(asyncio.get_running_loop(), None)


class OversizeError(Exception):
    """A reply that is longer than any answer."""


class Session:
    """The SDK's clients for one event loop, and the secrets to redact.

    With the SDK's aiohttp transport there is one client. With its httpx transport each pending
    request has a client with one connection, because searching a pool of 64 connections for every
    request took most of the time.
    """

    def __init__(
        self,
        make: Callable[[], Any],
        response_type: Any,
        *,
        shared: bool,
        redactor: Redactor,
    ) -> None:
        self.gate = RequestGate()
        self.redactor = redactor
        self._make = make
        self._response_type = response_type
        self._shared = shared
        self._idle: list[Any] = []
        self._clients: list[Any] = []

    async def post(self, path: str, body: Mapping[str, Any]) -> bytes:
        """Send one request and read its answer."""
        if not self._idle:
            self._idle.append(self._make())
            self._clients.append(self._idle[-1])
        client = self._idle[-1] if self._shared else self._idle.pop()
        try:
            response = await client.post(path, cast_to=self._response_type, body=body)
        finally:
            if not self._shared:
                self._idle.append(client)
        content: bytes = response.content
        return content

    async def close(self) -> None:
        """Close all connections."""
        for client in self._clients:
            await client.close()


def connect(address: str, timeout: float) -> Session:
    """Make the session for an address; connections are opened when needed."""
    import openai

    parts = urlsplit(address)
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    if not key and bare_address(address) == PUBLIC:
        raise ModelError(
            "OPENAI_API_KEY is not set; set it, or pass the address of a server as base_url"
        )
    if not (key.isascii() and key.isprintable()):
        raise ModelError("OPENAI_API_KEY contains characters that a header cannot contain")
    basic = basic_authorization(address)
    headers = {"Authorization": basic} if basic else {}
    http = _http(openai)
    limits = http.Limits()  # none: the caller decides how many requests are made at once
    # Slow to create, so all clients share one; none without encryption.
    trust = http.create_ssl_context() if parts.scheme == "https" else False
    transport, shared = _transport(openai)

    def make() -> Any:
        return openai.AsyncOpenAI(
            api_key=key or _PLACEHOLDER,
            base_url=bare_address(address),
            max_retries=0,
            timeout=timeout,
            default_headers=headers,
            default_query=dict(parse_qsl(parts.query)),
            http_client=transport(
                verify=trust,
                timeout=timeout,
                limits=limits,
                follow_redirects=False,  # a prompt goes only to the address that was passed
                event_hooks={"response": [_read_body]},
            ),
        )

    redactor = Redactor.configured(key, *address_secrets(address))
    return Session(make, http.Response, shared=shared, redactor=redactor)


async def _read_body(response: Any) -> None:
    """Read a reply up to a limit, before the SDK reads all of it."""
    pieces: list[bytes] = []
    size = 0
    async for piece in response.aiter_bytes():
        size += len(piece)
        if size > LARGEST:
            raise OversizeError
        pieces.append(piece)
    response._content = b"".join(pieces)


def _http(openai: Any) -> Any:
    """Find the HTTP package that the SDK uses: httpx, or its successor."""
    return sys.modules[type(openai.DEFAULT_CONNECTION_LIMITS).__module__.partition(".")[0]]


def _transport(openai: Any) -> tuple[Callable[..., Any], bool]:
    """Choose a transport of the SDK, and whether requests share a client."""
    try:
        openai.DefaultAioHttpClient()
    except RuntimeError:  # the SDK's extra `aiohttp` is not installed
        return openai.DefaultAsyncHttpxClient, False
    return openai.DefaultAioHttpClient, True


RETRIED = frozenset({408, 409, 429, *range(500, 600)})
"""The HTTP statuses after which another attempt can succeed."""
LONGEST_WAIT = 300.0
"""Seconds; if a server asks for a longer pause, the request fails."""

_FIRST, _CEILING = 0.5, 30.0


def compute_backoff(number: int) -> float:
    """Compute the seconds to wait after failed attempt `number` (from 0), with jitter."""
    # Repeated requests must not arrive at the same moment; no measurement depends on this.
    return min(_CEILING, _FIRST * 2.0**number) * random.uniform(0.5, 1.0)  # noqa: S311


def read_retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Read the pause that the server asks for: milliseconds, seconds or an HTTP date."""
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        text = headers.get(name)
        if text is None:
            continue
        try:
            return max(0.0, float(text) / scale)
        except ValueError:
            pass
        try:
            then = parsedate_to_datetime(text)
        except (TypeError, ValueError, IndexError, OverflowError):
            continue
        if then.tzinfo is None:
            then = then.replace(tzinfo=timezone.utc)
        return max(0.0, (then - (now or datetime.now(timezone.utc))).total_seconds())
    return None


class RequestGate:
    """Delays all requests of a model while its server asks for a pause."""

    def __init__(self) -> None:
        self._opens = 0.0

    def shut(self, seconds: float) -> None:
        """Close the gate for some seconds; a longer pause that is already set stays."""
        self._opens = max(self._opens, asyncio.get_running_loop().time() + seconds)

    async def wait(self) -> None:
        """Wait until the gate is open."""
        while (wait := self._opens - asyncio.get_running_loop().time()) > 0:
            await asyncio.sleep(wait)
