"""Send a request of a memory system's client on to the endpoint of its model."""

from __future__ import annotations

import base64
import json
import os
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.parse import unquote, urlsplit

from routeprism.models._loopback import Response
from routeprism.models._replies import UnreadableError, read_body
from routeprism.redaction import Redactor, address_secrets, bare_address

__all__ = ["LARGEST", "PUBLIC", "Upstream", "UpstreamError"]

PUBLIC = "https://api.openai.com/v1"
LARGEST = 16 * 2**20
"""The largest reply that is read, in bytes after decompression."""

_TIMEOUT = 300.0
"""Seconds that a request may take in all."""
_PASSED = ("retry-after", "retry-after-ms")
"""Headers of an error that the client reads."""


class UpstreamError(Exception):
    """A request without a reply; the client gets the response in its place."""

    def __init__(self, response: Response, message: str) -> None:
        super().__init__(message)
        self.response = response


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A prompt goes only to the address that was passed."""

    def http_error_302(self, *arguments: Any) -> None:
        """Follow nothing, and do not read the target, which may not be an address."""

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class Upstream:
    """The endpoint of a model."""

    base_url: str = ""
    api_key: str = field(default="", repr=False)
    """The key; empty for OPENAI_API_KEY."""

    @property
    def address(self) -> str:
        """The address: as given, or OPENAI_BASE_URL, or else OpenAI."""
        return self.base_url or os.environ.get("OPENAI_BASE_URL", "") or PUBLIC

    def post(self, path: str, body: Mapping[str, Any]) -> Response:
        """Send one request; raise `UpstreamError` if there is no reply."""
        key = self.api_key or os.environ.get("OPENAI_API_KEY", "").strip()
        redactor = Redactor.configured(key, *address_secrets(self.address))
        parts = urlsplit(self.address)
        query = f"?{parts.query}" if parts.query else ""
        request = urllib.request.Request(  # noqa: S310 (an address of the user's)
            f"{bare_address(self.address).rstrip('/')}/{path}{query}",
            json.dumps(body).encode(),
            {"Content-Type": "application/json", "Authorization": _authorize(self.address, key)},
        )
        try:
            content = _Exchange(request).run(_TIMEOUT)
        except urllib.error.HTTPError as error:
            raise _explain_status(error, redactor) from None
        except (OSError, HTTPException, ValueError) as error:  # ValueError: no usable address
            reason = type(getattr(error, "reason", error)).__name__
            raise _refuse(
                f"no connection to {bare_address(self.address)} ({reason})", "no_connection"
            ) from None
        if content is None:
            raise _refuse(f"no reply within {_TIMEOUT:g} seconds", "no_connection")
        if len(content) > LARGEST:
            raise _refuse(f"a reply of more than {LARGEST // 2**20} MiB", "too_long")
        try:
            text = read_body(content, path)
        except UnreadableError as error:
            raise _refuse(redactor.redact_line(str(error)), "no_reply") from None
        return Response(200, redactor.redact(text).encode())


class _Exchange:
    """One request and its reply, in a separate thread, so that it can be timed as a whole.

    A server that sends a byte now and then would be in time for each of them.
    """

    def __init__(self, request: urllib.request.Request) -> None:
        self._request = request
        self._content = b""
        self._error: BaseException | None = None

    def run(self, timeout: float) -> bytes | None:
        """Return the content of the reply, None if there is none in time; raise its error."""
        thread = threading.Thread(target=self._work, args=(timeout,), daemon=True)
        thread.start()
        thread.join(timeout)
        if thread.is_alive():
            return None
        if self._error is not None:
            raise self._error
        return self._content

    def _work(self, timeout: float) -> None:
        until = time.monotonic() + timeout
        pieces: list[bytes] = []
        size = 0
        try:
            opener = urllib.request.build_opener(_NoRedirects)
            with opener.open(self._request, timeout=timeout) as reply:
                while size <= LARGEST and time.monotonic() < until and (piece := reply.read1()):
                    pieces.append(piece)
                    size += len(piece)
                if size <= LARGEST and reply.length:
                    raise HTTPException("the reply ended before its stated length")
            self._content = b"".join(pieces)
        except BaseException as error:  # raised where the request was made
            self._error = error


def _refuse(message: str, code: str) -> UpstreamError:
    return UpstreamError(Response.error(502, message, code), message)


def _authorize(address: str, key: str) -> str:
    parts = urlsplit(address)
    if parts.username:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        return f"Basic {base64.b64encode(pair.encode()).decode()}"
    return f"Bearer {key or 'no-key-needed'}"


def _explain_status(error: urllib.error.HTTPError, redactor: Redactor) -> UpstreamError:
    """Pass the status on, with what the server says about it; name where it redirects to."""
    if error.code < 400:
        error.close()
        target = redactor.redact_line(error.headers["Location"] or "nowhere")
        return _refuse(
            f"HTTP {error.code}: the server redirects to {target}, and RoutePrism follows no "
            f"redirects",
            "no_reply",
        )
    with error:
        text = redactor.redact(error.read(LARGEST).decode(errors="replace"))
    headers = {name: error.headers[name] for name in _PASSED if name in error.headers}
    message = f"HTTP {error.code}: {redactor.redact_line(text)[:300]}"
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        text = Response.error(error.code, message, "no_reply").body.decode()
    return UpstreamError(Response(error.code, text.encode(), headers), message)
