"""The SDK's clients for one event loop: where it connects, with what, and what is never shown."""

from __future__ import annotations

import base64
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from routeprism.errors import ModelError
from routeprism.models._retries import Gate

__all__ = ["PUBLIC", "Session", "bare", "connect"]

PUBLIC = "https://api.openai.com/v1"

_PLACEHOLDER = "no-key-needed"
_LOOKS_SECRET = re.compile(r"(?i)\b(?:sk-|bearer\s+|basic\s+)[\w.*+/=~-]+")


class Session:
    """The SDK's clients for one event loop, and what must never be shown.

    With the SDK's transport on aiohttp there is one client. With the one on httpx each request
    under way has its own, with one connection: a pool there is searched for every request, and at
    64 connections that was most of the time.
    """

    def __init__(
        self,
        make: Callable[[], Any],
        response_type: Any,
        *,
        shared: bool,
        secrets: Sequence[str],
    ) -> None:
        self.gate = Gate()
        self._make = make
        self._response_type = response_type
        self._shared = shared
        self._idle: list[Any] = []
        self._clients: list[Any] = []
        self._secrets = sorted(filter(None, secrets), key=len, reverse=True)

    async def post(self, path: str, body: Mapping[str, Any]) -> bytes:
        """Send one request; give the bytes of its answer."""
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

    def hidden(self, text: str, shortest: int = 8) -> str:
        """Take our own secrets out of a text; a short one may be somebody's word."""
        for secret in self._secrets:
            if len(secret) >= shortest:
                text = text.replace(secret, "[hidden]")
        return text

    def scrubbed(self, text: str) -> str:
        """Make one short line of a server's message, without anything that looks like a key."""
        short = " ".join(_LOOKS_SECRET.sub("[hidden]", self.hidden(text, shortest=3)).split())
        return short if len(short) <= 200 else short[:199] + "…"


def bare(address: str) -> str:
    """Give an address without user, password, query and fragment."""
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path.rstrip('/')}"


def connect(address: str, timeout: float) -> Session:
    """Make the session for an address; connections are opened when they are needed."""
    import openai

    parts = urlsplit(address)
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    if not key and bare(address) == PUBLIC:
        raise ModelError("OPENAI_API_KEY is not set; set it, or name a server with --base-url")
    headers, secrets = {}, [key]
    if parts.username:
        # In a header, because an address is printed by other people's logging.
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        basic = base64.b64encode(pair.encode()).decode()
        headers["Authorization"] = f"Basic {basic}"
        secrets += [basic, unquote(parts.password or ""), parts.password or ""]
    query = dict(parse_qsl(parts.query))
    secrets += query.values()
    http = _http(openai)
    limits = http.Limits()  # none: whoever asks decides how many requests there are at once
    # Slow to make, so one for all, and none where nothing is encrypted.
    trust = http.create_ssl_context() if parts.scheme == "https" else False
    transport, shared = _transport(openai)

    def make() -> Any:
        return openai.AsyncOpenAI(
            api_key=key or _PLACEHOLDER,
            base_url=bare(address),
            max_retries=0,
            timeout=timeout,
            default_headers=headers,
            default_query=query,
            http_client=transport(verify=trust, timeout=timeout, limits=limits),
        )

    return Session(make, http.Response, shared=shared, secrets=secrets)


def _http(openai: Any) -> Any:
    """Give the package that the SDK speaks HTTP with: httpx, or its successor."""
    return sys.modules[type(openai.DEFAULT_CONNECTION_LIMITS).__module__.partition(".")[0]]


def _transport(openai: Any) -> tuple[Callable[..., Any], bool]:
    """Choose among the SDK's own transports; say whether one client serves many requests well."""
    try:
        openai.DefaultAioHttpClient()
    except RuntimeError:  # the SDK's extra `aiohttp` is not there
        return openai.DefaultAsyncHttpxClient, False
    return openai.DefaultAioHttpClient, True
