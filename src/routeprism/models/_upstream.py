"""Send a request of a memory system's client on to the endpoint of its model."""

from __future__ import annotations

import base64
import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from routeprism.models._loopback import Response
from routeprism.redaction import Redactor, address_secrets, bare_address

__all__ = ["LARGEST", "PUBLIC", "Upstream", "UpstreamError"]

PUBLIC = "https://api.openai.com/v1"
LARGEST = 16 * 2**20
"""The largest reply that is read, in bytes after decompression."""

_TIMEOUT = 300.0
"""Seconds that a server may stay silent."""
_PASSED = ("retry-after", "retry-after-ms")
"""Headers of an error that the client reads."""


class UpstreamError(Exception):
    """A request without a reply; the client gets the response in its place."""

    def __init__(self, response: Response, message: str) -> None:
        super().__init__(message)
        self.response = response


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A prompt goes only to the address that was passed."""

    def redirect_request(self, *arguments: Any) -> None:
        """Follow nothing."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """The endpoint of a model."""

    base_url: str = ""

    @property
    def address(self) -> str:
        """The address: as given, or OPENAI_BASE_URL, or else OpenAI."""
        return self.base_url or os.environ.get("OPENAI_BASE_URL", "") or PUBLIC

    def post(self, path: str, body: Mapping[str, Any]) -> Response:
        """Send one request; raise `UpstreamError` if there is no reply."""
        key = os.environ.get("OPENAI_API_KEY", "").strip()
        redactor = Redactor.configured(key, *address_secrets(self.address))
        parts = urlsplit(self.address)
        query = f"?{parts.query}" if parts.query else ""
        request = urllib.request.Request(  # noqa: S310 (an address of the user's)
            f"{bare_address(self.address).rstrip('/')}/{path}{query}",
            json.dumps(body).encode(),
            {"Content-Type": "application/json", "Authorization": _authorize(self.address, key)},
        )
        opener = urllib.request.build_opener(_NoRedirects)
        try:
            with opener.open(request, timeout=_TIMEOUT) as reply:
                content = reply.read(LARGEST + 1)
        except urllib.error.HTTPError as error:
            raise _explain_status(error, redactor) from None
        except (OSError, ValueError) as error:  # ValueError: no usable address
            reason = type(getattr(error, "reason", error)).__name__
            message = f"no connection to {bare_address(self.address)} ({reason})"
            raise UpstreamError(Response.error(502, message, "no_connection"), message) from None
        if len(content) > LARGEST:
            message = f"a reply of more than {LARGEST // 2**20} MiB"
            raise UpstreamError(Response.error(502, message, "too_long"), message)
        return Response(200, redactor.redact(content.decode(errors="replace")).encode())


def _authorize(address: str, key: str) -> str:
    parts = urlsplit(address)
    if parts.username:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        return f"Basic {base64.b64encode(pair.encode()).decode()}"
    return f"Bearer {key or 'no-key-needed'}"


def _explain_status(error: urllib.error.HTTPError, redactor: Redactor) -> UpstreamError:
    """Pass the status on, with what the server says about it."""
    with error:
        text = redactor.redact(error.read(LARGEST).decode(errors="replace"))
    headers = {name: error.headers[name] for name in _PASSED if name in error.headers}
    message = f"HTTP {error.code}: {redactor.redact_line(text)[:300]}"
    status = error.code if error.code >= 400 else 502
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        text = Response.error(status, message, "no_reply").body.decode()
    return UpstreamError(Response(status, text.encode(), headers), message)
