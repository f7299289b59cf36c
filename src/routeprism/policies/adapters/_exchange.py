"""One HTTP request and its reply: timed as a whole, limited in size, never redirected."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from socket import SHUT_RDWR
from urllib.parse import urljoin, urlsplit

from routeprism.errors import RouteError, SpecError
from routeprism.policies.adapters._wire import LARGEST
from routeprism.redaction import Redactor, hide_credentials

__all__ = ["ServiceError", "Transport", "check_service_address", "read_token"]


class ServiceError(RouteError):
    """A request that the service refused, or that did not reach it."""

    def __init__(self, message: str, action: str, status: int | None = None) -> None:
        super().__init__(message)
        self.action = action
        """The name of the request."""
        self.status = status
        """The status of the refusal; None if the service cannot be reached."""


def check_service_address(url: str, instead: str) -> None:
    """Refuse an address that is none, and one with credentials; `instead` says where they go."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a port that is no number
        usable = False
    if not usable:
        display = hide_credentials(url)
        raise SpecError(f"Expected an address such as http://127.0.0.1:8080 but got {display}")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise SpecError(f"Expected an address without user, password and query; {instead}")


def read_token(variable: str) -> str:
    """Read a bearer token; refuse one that is missing, or that no header can contain."""
    if not variable:
        return ""
    token = os.environ.get(variable, "").strip()
    if not token:
        raise SpecError(f"token={variable}: this environment variable is not set")
    if not (token.isascii() and token.isprintable()):
        raise SpecError(
            f"token={variable}: the value of this environment variable contains characters that a "
            f"header cannot contain"
        )
    return token


class Transport:
    """Sends requests to a service, each within the time that it may take in all."""

    def __init__(
        self, url: str, timeout: float, headers: Mapping[str, str], redactor: Redactor
    ) -> None:
        self.url, self.timeout, self.redactor = url, timeout, redactor
        self._headers = headers

    def send(
        self,
        action: str,
        method: str,
        path: str,
        body: bytes | None,
        *,
        accepted: Collection[int] = (200,),
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Send one request, and give the content of its reply; `what` names it in errors."""
        exchange = _Exchange(self.url, method, path, body, {**self._headers, **(headers or {})})
        try:
            finished = exchange.run(self.timeout)
        except (OSError, HTTPException, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            detail = self.redactor.redact_line(reason)
            message = f"{action}: {self.url} cannot be asked: {detail}"
            raise ServiceError(message, action) from None
        if not finished:
            raise ServiceError(f"{action}: no reply within {self.timeout:g} seconds", action)
        if exchange.status not in accepted:
            raise ServiceError(f"{action}: {self._refusal(exchange)}", action, exchange.status)
        return exchange.content

    def _refusal(self, exchange: _Exchange) -> str:
        """Describe the service's refusal; a redirection is named, and not followed."""
        if exchange.location:
            with suppress(ValueError):
                exchange.location = urljoin(self.url, exchange.location)
            target = self.redactor.redact_line(exchange.location)
            return (
                f"the service redirects ({exchange.status}) to {target}, and RoutePrism follows no "
                f"redirects; if that is the right address, pass it as url"
            )
        detail = exchange.content.decode(errors="replace")
        return self.redactor.redact_line(
            f"the service replied {exchange.status} {exchange.reason}: {detail}"
        )


class _Exchange:
    """One request and its reply, in a separate thread.

    Looking the name up, connecting, sending, and waiting for status line, headers and body cannot
    be timed together from inside: each of them may take its own time again.
    """

    def __init__(
        self, url: str, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> None:
        parts = urlsplit(url)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._connection = kind(parts.hostname or "", parts.port)
        self._method, self._path = method, f"{parts.path.rstrip('/')}{path}"
        self._body, self._headers = body, headers
        self._error: BaseException | None = None
        self.status = 0
        self.reason = self.location = ""
        self.content = b""

    def run(self, timeout: float) -> bool:
        """Wait for the reply; False if there is none in time. Raises the error of the request."""
        self._connection.timeout = timeout
        thread = threading.Thread(target=self._work, name="memory service", daemon=True)
        thread.start()
        try:
            thread.join(timeout)
        finally:
            late = thread.is_alive()
            if late:  # also after Ctrl-C
                self._break_off()
        if not late and self._error is not None:
            if isinstance(self._error, TimeoutError):
                return False
            raise self._error
        return not late

    def _break_off(self) -> None:
        sock = self._connection.sock
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(SHUT_RDWR)

    def _work(self) -> None:
        try:
            self._connection.request(self._method, self._path, self._body, dict(self._headers))
            reply = self._connection.getresponse()
            self.content = _read_content(reply)
            self.status, self.reason = reply.status, reply.reason
            if 300 <= reply.status < 400:
                self.location = reply.getheader("Location") or ""
        except BaseException as error:  # raised where the request was made
            self._error = error
        finally:
            self._connection.close()


def _read_content(reply: HTTPResponse) -> bytes:
    """Read a reply up to a limit; one that ends before its stated length is none."""
    pieces: list[bytes] = []
    size = 0
    while piece := reply.read1(65536):
        pieces.append(piece)
        size += len(piece)
        if size > LARGEST:
            raise HTTPException(f"a reply of more than {LARGEST} bytes")
    if reply.length:
        raise HTTPException("the reply ended before its stated length")
    return b"".join(pieces)
