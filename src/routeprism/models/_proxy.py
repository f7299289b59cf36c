"""The two sides of a proxy: an HTTP server on the loopback address, and the endpoint of a model.

The server answers JSON requests of clients in this process or its children, at a port that the
system chooses. Clients show a token that is drawn for each server, so that no other user of the
machine can make requests through it.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from routeprism.models._replies import UnreadableError, read_body
from routeprism.redaction import Redactor, address_secrets, bare_address, basic_authorization

GRACE = 30.0
"""Seconds that a request under way gets to end: it may be paid for."""
LARGEST_REQUEST = 64 * 2**20
"""Bytes of the longest request that is read."""
PUBLIC = "https://api.openai.com/v1"
LARGEST = 16 * 2**20
"""The largest reply that is read, in bytes after decompression."""

_TIMEOUT = 300.0
"""Seconds that a request may take in all."""
_PASSED = ("retry-after", "retry-after-ms")
"""Headers of an error that the client reads."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request of a client."""

    path: str
    """Without the server's own prefix, such as `chat/completions`."""
    scope: str
    """The first part of the path, which distinguishes the clients of one server."""
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Response:
    """The answer to a call."""

    status: int
    body: bytes
    """JSON."""
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, value: Any, status: int = 200) -> Response:
        """Write a value as JSON."""
        return cls(status, json.dumps(value, ensure_ascii=False).encode())

    @classmethod
    def error(cls, status: int, message: str, code: str) -> Response:
        """Write an error as OpenAI-compatible endpoints do."""
        return cls.of({"error": {"message": message, "type": "routeprism", "code": code}}, status)


Answer = Callable[[Call], Response]


class LoopbackServer(ThreadingHTTPServer):
    """Serves until it is closed; each connection has a thread of its own."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, answer: Answer, *, port: int = 0, token: str | None = None) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.answer = answer
        self.token = secrets.token_urlsafe(16) if token is None else token
        """What clients send as their key; empty if any key is accepted."""
        self._connections: dict[threading.Thread, Any] = {}
        self._thread = threading.Thread(
            target=self.serve_forever, args=(0.02,), name="loopback", daemon=True
        )
        self._thread.start()

    def base_url(self, scope: str = "any") -> str:
        """Return the address for clients of one scope."""
        return f"http://127.0.0.1:{self.server_address[1]}/{scope}/v1"

    def close(self) -> None:
        """Stop serving, and end the connections that clients keep open."""
        self.shutdown()
        self._thread.join()
        self.server_close()
        for thread, connection in list(self._connections.items()):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RD)  # a reply under way is still written
            thread.join(GRACE)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve one connection, and remember it while it is open."""
        self._connections[threading.current_thread()] = request
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._connections.pop(threading.current_thread(), None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore connections that a client gave up."""


class _Handler(BaseHTTPRequestHandler):
    server: LoopbackServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        try:
            response = self._respond()
        except Exception as error:  # a client must get an answer, whatever is wrong here
            response = Response.error(500, type(error).__name__, "internal_error")
        with suppress(OSError):
            self.send_response(response.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(response.body)))
            for name, value in response.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(response.body)

    def _respond(self) -> Response:
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > LARGEST_REQUEST:
            self.close_connection = True
            return Response.error(413, "a request without a length, or too long", "too_long")
        content = self.rfile.read(int(length))
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if self.server.token and not secrets.compare_digest(
            token.encode(), self.server.token.encode()
        ):
            return Response.error(401, "this endpoint serves only its own clients", "no_access")
        scope, _, path = self.path.lstrip("/").partition("/v1/")
        try:
            body = json.loads(content)
        except (ValueError, RecursionError):
            return Response.error(400, "the request is not valid JSON", "no_json")
        if not isinstance(body, dict) or not path:
            return Response.error(404, "there is nothing at this address", "not_found")
        return self.server.answer(Call(path.partition("?")[0], scope, body))

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing: requests contain records."""


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
            {
                "Content-Type": "application/json",
                "Authorization": basic_authorization(self.address)
                or f"Bearer {key or 'no-key-needed'}",
            },
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
