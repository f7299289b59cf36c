"""The two sides of a proxy: an HTTP server on the loopback address, and the endpoint of a model.

The server answers JSON requests of clients in this process or its children, at a port that the
system chooses. Clients show a token that is drawn for each server, so that no other user of the
machine can make requests through it, or fill its memory.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from routeprism.models._replies import UnreadableError, read_body
from routeprism.redaction import Redactor, address_secrets, bare_address, basic_authorization
from routeprism.transport import (
    RETRIES,
    AttemptError,
    Connections,
    HttpRequest,
    bypass_proxy,
    check_status,
)

_HOST = "127.0.0.1"
GRACE = 30.0
"""Seconds that a request under way gets to end: it may be paid for."""
LARGEST_REQUEST = 64 * 2**20
"""Bytes of the longest request that is read."""
PUBLIC = "https://api.openai.com/v1"
LARGEST = 16 * 2**20
"""The largest reply that is read, in bytes after decompression."""

TIMEOUT = 300.0
"""Seconds that one attempt of a request to a model may take in all."""
_NO_REPETITION = {"x-should-retry": "false"}
"""Tells OpenAI's clients that the request was repeated already."""
_REFUSED_BODY = 2**20
"""Bytes of a request that are thrown away if its sender may not make any."""


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
        super().__init__((_HOST, port), _Handler)
        bypass_proxy(_HOST)
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
        return f"http://{_HOST}:{self.server_address[1]}/{scope}/v1"

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
            if self.close_connection:
                self._discard_body()

    def _discard_body(self) -> None:
        """Throw a refused request away: a connection that ends before may lose the reply."""
        self.connection.settimeout(1)
        left = _REFUSED_BODY
        while left > 0 and (piece := self.rfile.read1(min(left, 2**16))):
            left -= len(piece)

    def _respond(self) -> Response:
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if self.server.token and not secrets.compare_digest(
            token.encode(), self.server.token.encode()
        ):
            self.close_connection = True  # its body is not read
            return Response.error(401, "this endpoint serves only its own clients", "no_access")
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > LARGEST_REQUEST:
            self.close_connection = True
            return Response.error(413, "a request without a length, or too long", "too_long")
        content = self.rfile.read(int(length))
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

    def post(
        self,
        path: str,
        body: Mapping[str, Any],
        connections: Connections,
        *,
        timeout: float = TIMEOUT,
        retries: int = RETRIES,
        before_repetition: Callable[[], object] | None = None,
    ) -> Response:
        """Send a request until there is a reply; raise `UpstreamError` if there is none."""
        key = self.api_key or os.environ.get("OPENAI_API_KEY", "").strip()
        redactor = Redactor.configured(key, *address_secrets(self.address))
        query = urlsplit(self.address).query
        request = HttpRequest(
            f"{bare_address(self.address)}/{path}{f'?{query}' if query else ''}",
            body=json.dumps(body).encode(),
            headers={
                "Content-Type": "application/json",
                "Authorization": basic_authorization(self.address)
                or f"Bearer {key or 'no-key-needed'}",
            },
            safe=True,
        )
        try:
            reply = connections.send(
                request,
                check_status,
                timeout=timeout,
                largest=LARGEST,
                retries=retries,
                before_repetition=before_repetition,
            )
            text = read_body(reply.content, path)
        except AttemptError as error:
            raise self._explain(error, timeout, redactor) from None
        except UnreadableError as error:
            raise _refuse(redactor.redact_line(str(error)), "no_reply") from None
        return Response(200, redactor.redact(text).encode())

    def _explain(self, error: AttemptError, timeout: float, redactor: Redactor) -> UpstreamError:
        """Pass a refusal on, with what the server says about it; name where it redirects to."""
        if error.reply is None:
            place = bare_address(self.address)
            messages = {
                "timeout": f"no reply within {timeout:g} seconds",
                "oversize": f"a reply of more than {LARGEST // 2**20} MiB",
                "gone": f"{place}: {error.detail}",
            }
            unreached = f"no connection to {place} ({error.cause})"
            code = "too_long" if error.kind == "oversize" else "no_connection"
            return _refuse(messages.get(error.kind, unreached), code)
        status = error.reply.status
        if status < 400:
            target = redactor.redact_line(error.reply.headers.get("location") or "nowhere")
            return _refuse(
                f"HTTP {status}: the server redirects to {target}, and RoutePrism follows no "
                f"redirects",
                "no_reply",
            )
        text = redactor.redact(error.reply.content.decode(errors="replace"))
        message = f"HTTP {status}: {redactor.redact_line(text)[:300]}"
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            text = Response.error(status, message, "no_reply").body.decode()
        return UpstreamError(Response(status, text.encode(), _NO_REPETITION), message)


def _refuse(message: str, code: str) -> UpstreamError:
    response = Response.error(502, message, code)
    return UpstreamError(Response(502, response.body, _NO_REPETITION), message)
