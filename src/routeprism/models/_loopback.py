"""A small HTTP server on the loopback address, at a port that the system chooses.

It answers JSON requests of clients in this process or its children. Clients show a token that is
drawn for each server, so that no other user of the machine can make requests through it.
"""

from __future__ import annotations

import json
import secrets
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

GRACE = 30.0
"""Seconds that a request under way gets to end: it may be paid for."""
LARGEST_REQUEST = 64 * 2**20
"""Bytes of the longest request that is read."""


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
        """Answer a request."""
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
