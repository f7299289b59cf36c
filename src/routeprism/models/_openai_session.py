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

    Each request under way has a client with one connection. One client for all would search its
    connections for every request: at 64 of them that was most of the time, and seven times as much
    with httpx as with its successor.
    """

    def __init__(self, make: Callable[[], Any], response_type: Any, secrets: Sequence[str]) -> None:
        self.gate = Gate()
        self._make = make
        self._response_type = response_type
        self._idle: list[Any] = []
        self._clients: list[Any] = []
        self._secrets = sorted(filter(None, secrets), key=len, reverse=True)

    async def post(self, path: str, body: Mapping[str, Any]) -> bytes:
        """Send one request; give the bytes of its answer."""
        if not self._idle:
            self._idle.append(self._make())
            self._clients.append(self._idle[-1])
        client = self._idle.pop()
        try:
            response = await client.post(path, cast_to=self._response_type, body=body)
        finally:
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
    limits = type(openai.DEFAULT_CONNECTION_LIMITS)
    http = sys.modules[limits.__module__.partition(".")[0]]  # httpx, or its successor
    trust = http.create_ssl_context()  # slow to make, so one for all

    def make() -> Any:
        return openai.AsyncOpenAI(
            api_key=key or _PLACEHOLDER,
            base_url=bare(address),
            max_retries=0,
            timeout=timeout,
            default_headers=headers,
            default_query=query,
            http_client=_transport(openai, verify=trust, timeout=timeout),
        )

    return Session(make, http.Response, secrets)


def _transport(openai: Any, **settings: Any) -> Any:
    """Give the faster of the SDK's own transports that is installed."""
    try:
        return openai.DefaultAioHttpClient(**settings)
    except RuntimeError:  # the SDK's extra `aiohttp` is not there
        return openai.DefaultAsyncHttpxClient(**settings)
