"""One way to speak over a network: HTTP requests with one time limit for everything that they need.

`Connections.send` reuses connections, follows no redirects, and repeats a request where that is
safe: where the service did not perform it, or where performing it twice changes nothing.
"""

from __future__ import annotations

import asyncio
import contextvars
import io
import os
import random
import socket
import ssl
import threading
import time
import weakref
import zlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from enum import Enum
from functools import partial
from http.client import (
    HTTPConnection,
    HTTPException,
    HTTPResponse,
    HTTPSConnection,
    RemoteDisconnected,
    parse_headers,
)
from typing import Any, Literal, TypeVar
from urllib.parse import SplitResult, urlsplit

from routeprism.redaction import bare_address, basic_authorization

T = TypeVar("T")

RETRIES = 6
"""How often a request is repeated, unless the user sets it."""
LONGEST_WAIT = 300.0
"""Seconds; if a service asks for a longer pause, the request fails."""
CROWD = 4
"""How many times as often a refused request is repeated while the service answers others."""
PATIENCE, FEWEST = 300.0, 10
"""Seconds, and failed attempts in a row, after which a service counts as gone."""
PROBE = 30.0
"""Seconds between two requests to a service that counts as gone."""
JITTER = random.Random()  # noqa: S311 (its own generator: a memory may rely on the shared one)
_FRESH = 1.0
"""Seconds for which a service that keeps connections open does so at least."""
_FIRST, _CEILING = 0.5, 30.0
_BLOCK = 2**16
_LARGEST_ERROR = 2**16
"""Bytes of a refusal that are read."""
_MOST_THREADS = 4096


class Repeat(Enum):
    """When a failed request may be repeated."""

    NEVER = "never"
    IF_SAFE = "if safe"
    """Where performing it twice changes nothing: the service may have performed it."""
    ALWAYS = "always"
    """The service did not perform it."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request."""

    url: str
    """Without user and password."""
    method: str = "POST"
    body: bytes | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    safe: bool = False
    """Whether performing it twice has the same effect as performing it once."""


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A reply, whatever its status."""

    status: int
    reason: str
    headers: Mapping[str, str]
    """Names in lower case."""
    content: bytes
    """Decompressed; of a refusal, no more than its beginning."""


class AttemptError(Exception):
    """A request that failed."""

    def __init__(
        self,
        kind: Literal["connection", "timeout", "broken", "oversize", "status", "reply", "gone"],
        detail: str,
        repeat: Repeat,
        *,
        cause: str = "",
        reply: HttpReply | None = None,
        after: float | None = None,
    ) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.repeat = kind, detail, repeat
        self.cause = cause
        """The name of the error behind it."""
        self.reply = reply
        """The refusal, if it is one."""
        self.after = after
        """Seconds that the service asks to wait."""
        self.attempts = 1


def check_status(reply: HttpReply) -> HttpReply:
    """Return a reply with a status from 200 to 299; raise `AttemptError` for a different one."""
    if 200 <= reply.status < 300:
        return reply
    raise refuse_status(reply)


def refuse_status(reply: HttpReply) -> AttemptError:
    """Make the error about a refusal.

    429 and 503 state that the service did not perform the request, and will later (RFC 6585
    section 4, RFC 9110 section 15.6.4). The other temporary ones leave that open.
    """
    status = reply.status
    repeat = Repeat.NEVER
    if status in (429, 503):
        repeat = Repeat.ALWAYS
    elif status in (408, 409) or 500 <= status < 600:
        repeat = Repeat.IF_SAFE
    after = None if repeat is Repeat.NEVER else read_retry_after(reply.headers)
    if after is not None and after > LONGEST_WAIT:
        repeat = Repeat.NEVER
    return AttemptError("status", f"{status} {reply.reason}", repeat, reply=reply, after=after)


def compute_backoff(number: int) -> float:
    """Compute the seconds to wait after failed attempt `number` (from 0), with jitter."""
    # Repeated requests must not arrive at the same moment; no measurement depends on this.
    return min(_CEILING, _FIRST * 2.0**number) * JITTER.uniform(0.5, 1.0)


def read_retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Read the pause that the service asks for: milliseconds, seconds or an HTTP date."""
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


def pause(stopped: threading.Event, seconds: float) -> bool:
    """Wait; return whether the wait was ended from outside."""
    return stopped.wait(seconds)


class _Ticket:
    """A request under way, which another thread can end."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        self.link: _Link | None = None

    def abort(self) -> None:
        """End a wait, and break the connection."""
        self.stopped.set()
        if (link := self.link) is not None:
            link.abort()


@dataclass(slots=True)
class _Service:
    """What is known about one service."""

    idle: list[_Link] = field(default_factory=list)
    reusable: bool = False
    """Whether a second request on a connection was answered."""
    drops: bool = False
    """Whether it closed a connection that was used a moment ago, without announcing it."""
    answered: bool = False
    answers: int = 0
    """How many requests it has answered for good."""
    opens: float = 0.0
    """Until then the service asked for a pause."""
    failures: int = 0
    """Failed attempts in a row."""
    failing_since: float = 0.0
    tried: float = 0.0

    @property
    def is_gone(self) -> bool:
        return self.failures >= FEWEST and time.monotonic() - self.failing_since > PATIENCE

    def note_answer(self) -> None:
        self.answered, self.failures = True, 0
        self.answers += 1

    def note_failure(self) -> None:
        if not self.failures:
            self.failing_since = time.monotonic()
        self.failures += 1


class Connections:
    """The connections of one user of the network; several threads may share them.

    A copy in another process starts without any.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._services: dict[tuple[str, str], _Service] = {}
        self._tickets: set[_Ticket] = set()
        self._threads: ThreadPoolExecutor | None = None
        self._trust: ssl.SSLContext | None = None
        # Unlike `__del__`, this comes before the sockets complain that nobody closed them.
        weakref.finalize(self, _close_idle, self._services)

    def __reduce__(self) -> tuple[type[Connections], tuple[()]]:
        return type(self), ()

    def send(
        self,
        request: HttpRequest,
        read: Callable[[HttpReply], T],
        *,
        timeout: float,
        largest: int,
        retries: int = RETRIES,
        before_repetition: Callable[[], object] | None = None,
        note: Callable[[AttemptError], object] | None = None,
        ticket: _Ticket | None = None,
    ) -> T:
        """Send a request until it succeeds, fails for good, or the repetitions are used up.

        Args:
            request: the request.
            read: makes the result from a reply, or raises `AttemptError`.
            timeout: seconds for one whole attempt.
            largest: bytes of the longest reply that is read.
            retries: how often the request is repeated at most; four times as often if it is
                refused (429 or 503) while the service answers others.
            before_repetition: called before each repetition, which it prevents by an exception.
            note: called with each failure.
            ticket: by which another thread ends the request.

        Raises:
            AttemptError: the last failure.

        """
        service = self._find_service(request.url)
        ticket = ticket or _Ticket()
        with self._lock:
            self._tickets.add(ticket)
        try:
            answers = service.answers
            for number in range(CROWD * retries + 1):
                self._await_turn(service, ticket)
                if number and before_repetition is not None:
                    before_repetition()
                try:
                    reply = self._exchange(
                        service, request, timeout, largest, ticket, before_repetition
                    )
                    result = read(reply)
                except AttemptError as error:
                    failure = error
                else:
                    service.note_answer()
                    return result
                failure.attempts = number + 1
                if note is not None:
                    note(failure)
                if not _may_repeat(service, request, failure):
                    break
                # Where many requests share a rate limit, some are refused again and again.
                is_crowded = failure.reply is not None and service.answers > answers
                if number >= retries and not (is_crowded and failure.repeat is Repeat.ALWAYS):
                    break
                answers = service.answers
                if failure.after:
                    service.opens = max(service.opens, time.monotonic() + failure.after)
                if pause(ticket.stopped, max(failure.after or 0.0, compute_backoff(number))):
                    break
            raise failure
        finally:
            with self._lock:
                self._tickets.discard(ticket)

    async def send_async(
        self, request: HttpRequest, read: Callable[[HttpReply], T], **options: Any
    ) -> T:
        """Send a request from an event loop; cancelling it breaks the connection."""
        ticket = _Ticket()
        with self._lock:
            self._threads = self._threads or ThreadPoolExecutor(_MOST_THREADS, "transport")
        # The thread counts what it sends for the same command.
        send = partial(self.send, request, read, ticket=ticket, **options)
        work = partial(contextvars.copy_context().run, send)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except asyncio.CancelledError:
            ticket.abort()
            raise

    def close(self) -> None:
        """Close idle connections, and repeat none of the requests that are under way."""
        with self._lock:
            threads, self._threads = self._threads, None
            for ticket in self._tickets:
                ticket.stopped.set()
            _close_idle(self._services)
        if threads is not None:
            threads.shutdown(wait=False)

    def _find_service(self, url: str) -> _Service:
        parts = urlsplit(url)
        with self._lock:
            return self._services.setdefault((parts.scheme, parts.netloc), _Service())

    def _await_turn(self, service: _Service, ticket: _Ticket) -> None:
        """Wait while the service asks for a pause; refuse a request to one that is gone."""
        while (wait := service.opens - time.monotonic()) > 0:
            if pause(ticket.stopped, wait):
                break
        now = time.monotonic()
        if service.is_gone and now - service.tried < PROBE:
            raise AttemptError(
                "gone",
                f"{service.failures} requests in a row failed within "
                f"{(now - service.failing_since) / 60:.0f} minutes, so RoutePrism sends no more",
                Repeat.NEVER,
            )
        service.tried = now

    def _exchange(
        self,
        service: _Service,
        request: HttpRequest,
        timeout: float,
        largest: int,
        ticket: _Ticket,
        before_repetition: Callable[[], object] | None,
    ) -> HttpReply:
        """Send a request once, or twice if the service had closed the connection meanwhile."""
        until = time.monotonic() + timeout
        while True:
            link = self._take_idle(service, request)
            reused = link is not None
            if link is None:
                link = _Link(request.url, self._get_trust)
            is_fresh = link.is_fresh
            link.until, ticket.link = until, link
            try:
                if ticket.stopped.is_set():  # by a thread that found no connection to break
                    link.open = False
                    raise AttemptError("broken", "the request was ended", Repeat.NEVER)
                reply = link.exchange(request, largest)
            except AttemptError as error:
                if ticket.stopped.is_set() or not (reused and link.was_dropped(error)):
                    raise
                service.drops |= is_fresh
                if not request.safe:
                    raise
                if before_repetition is not None:
                    before_repetition()  # the service may have performed it
                continue
            finally:
                ticket.link = None
                if not link.open:
                    link.close()
            with self._lock:
                if link.open and not ticket.stopped.is_set():
                    service.reusable |= reused
                    link.idle_since = time.monotonic()
                    service.idle.append(link)
                    return reply
            link.close()
            return reply

    def _take_idle(self, service: _Service, request: HttpRequest) -> _Link | None:
        """Take an open connection that the service did not close.

        Some services close connections without announcing it. Whether they performed what was just
        sent is then unknown, so what is not safe to repeat waits until a connection was reused, and
        uses none that was idle for long, or that belongs to a service which closes fresh ones.
        """
        while True:
            with self._lock:
                if not service.idle:
                    return None
                link = service.idle[-1]
                is_sound = service.reusable and not service.drops and link.is_fresh
                if not (request.safe or is_sound):
                    return None
                service.idle.pop()
            if not link.was_closed():
                return link
            service.drops |= link.is_fresh
            link.close()

    def _get_trust(self) -> ssl.SSLContext:
        with self._lock:  # slow to make
            self._trust = self._trust or ssl.create_default_context()
            return self._trust


def _close_idle(services: dict[tuple[str, str], _Service]) -> None:
    """Close the connections that no request uses, and forget what is known about services."""
    for service in services.values():
        while service.idle:
            service.idle.pop().close()
    services.clear()


def _may_repeat(service: _Service, request: HttpRequest, failure: AttemptError) -> bool:
    """Note a failure; return whether the request may be repeated."""
    service.answered = service.answered or failure.reply is not None
    if failure.repeat is Repeat.NEVER:
        if failure.reply is not None:
            service.note_answer()
        return False
    service.note_failure()
    if failure.repeat is Repeat.IF_SAFE and not request.safe:
        return False
    if failure.kind == "connection" and not service.answered:
        return False  # it is not running, or the address is wrong
    return not service.is_gone


_CLOSED = (
    "RemoteDisconnected",
    "ConnectionResetError",
    "BrokenPipeError",
    "ConnectionAbortedError",
)
"""The errors of a connection that the other side closed."""


class _Link:
    """One connection; everything that a request needs ends at the same moment."""

    def __init__(self, url: str, trust: Callable[[], ssl.SSLContext]) -> None:
        parts = urlsplit(url)
        self.until = 0.0
        self.open = False
        """Whether another request may use it."""
        self.replied = False
        """Whether something of the last reply arrived."""
        self.reading_head = False
        self.idle_since = 0.0
        """When its last reply had come."""
        self._sock: socket.socket | None = None
        self._proxy = _find_proxy(parts)
        self._tunnelled = bool(self._proxy) and parts.scheme == "https"
        place = urlsplit(self._proxy) if self._proxy else parts
        host, port = place.hostname or "", place.port
        if parts.scheme == "https":
            self._http: HTTPConnection = HTTPSConnection(host, port, context=trust())
        else:
            self._http = HTTPConnection(host, port)
        self._credentials = basic_authorization(self._proxy) if self._proxy else ""
        if self._tunnelled:
            headers = {"Proxy-Authorization": self._credentials} if self._credentials else {}
            self._http.port = port or 80
            self._http.set_tunnel(parts.hostname or "", parts.port or 443, headers)
        # These are the places where the standard library lets time limits in.
        self._http._create_connection = self._connect  # type: ignore[attr-defined]
        self._http.response_class = self._make_response  # type: ignore[assignment]

    @property
    def is_fresh(self) -> bool:
        """Whether it was used a moment ago, so that a service may be expected to keep it open."""
        return time.monotonic() - self.idle_since < _FRESH

    def remaining(self) -> float:
        """Return the seconds that are left; raise TimeoutError if there are none."""
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def exchange(self, request: HttpRequest, largest: int) -> HttpReply:
        """Send a request and read its reply."""
        self.open = self.replied = False
        try:
            if self._http.sock is None:
                self._http.connect()
        except TimeoutError as error:
            raise AttemptError("timeout", "", Repeat.ALWAYS, cause=type(error).__name__) from None
        except (OSError, HTTPException, ValueError) as error:
            certain = isinstance(error, ssl.SSLCertVerificationError)
            repeat = Repeat.NEVER if certain else Repeat.ALWAYS
            raise AttemptError(
                "connection", _describe(error), repeat, cause=type(error).__name__
            ) from None
        self._sock = self._http.sock
        try:
            return self._converse(request, largest)
        except TimeoutError:
            raise AttemptError("timeout", "", Repeat.IF_SAFE, cause="TimeoutError") from None
        except (OSError, HTTPException, ValueError, zlib.error) as error:
            raise AttemptError(
                "broken", _describe(error), Repeat.IF_SAFE, cause=type(error).__name__
            ) from None

    def _converse(self, request: HttpRequest, largest: int) -> HttpReply:
        parts = urlsplit(request.url)
        target = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
        headers = {"User-Agent": "routeprism", **request.headers}
        if self._proxy and not self._tunnelled:
            target = f"{bare_address(f'{parts.scheme}://{parts.netloc}')}{target}"
            if self._credentials:
                headers["Proxy-Authorization"] = self._credentials
        body = None
        if request.body is not None:
            headers["Content-Length"] = str(len(request.body))
            body = self._split_body(request.body)
        self._http.sock.settimeout(self.remaining())
        self.reading_head = True
        self._http.request(request.method, target, body, headers)
        response = self._http.getresponse()
        self.reading_head = False
        try:
            if response.msg.defects:
                raise HTTPException("a header of the reply is malformed")
            content = self._read(response, largest)
        finally:
            response.close()
        names = {name.lower(): value for name, value in response.headers.items()}
        return HttpReply(response.status, response.reason, names, content)

    def _split_body(self, body: bytes) -> Iterator[bytes]:
        for at in range(0, len(body), _BLOCK):
            self._http.sock.settimeout(self.remaining())
            yield body[at : at + _BLOCK]

    def _read(self, response: HTTPResponse, largest: int) -> bytes:
        """Read a reply up to a limit; of a refusal only the beginning, as far as it comes."""
        if not 200 <= response.status < 300:
            content = bytearray()
            with suppress(OSError, HTTPException, zlib.error):  # the status is known anyway
                self.open = self._receive(response, content, _LARGEST_ERROR)
            return bytes(content[:_LARGEST_ERROR])
        content = bytearray()
        self.open = self._receive(response, content, largest)
        if len(content) > largest:
            raise AttemptError("oversize", f"a reply of more than {largest} bytes", Repeat.NEVER)
        return bytes(content)

    def _receive(self, response: HTTPResponse, content: bytearray, limit: int) -> bool:
        """Read content, decompressed; return whether the connection can be used again.

        A reply that ends before its stated length is none.
        """
        stated = response.headers.get("Content-Length")
        if stated is not None and not response.chunked and not stated.strip().isdecimal():
            raise HTTPException("the reply states no usable length")
        encoding = response.headers.get("Content-Encoding", "").lower()
        is_packed = encoding in ("gzip", "x-gzip", "deflate")
        decoder = zlib.decompressobj(47) if is_packed else None  # either format
        while piece := response.read1(_BLOCK):
            while decoder is not None and piece:
                if decoder.eof:  # a file of gzip may have several parts
                    decoder = zlib.decompressobj(47)
                content += decoder.decompress(piece, limit + 1)
                piece = decoder.unused_data
            content += piece
            if len(content) > limit:
                return False
        if response.length or (decoder is not None and not decoder.eof):
            raise RemoteDisconnected("the reply ended before its stated length")
        return not response.will_close

    def was_dropped(self, failure: AttemptError) -> bool:
        """Whether the service closed the connection instead of replying."""
        return failure.cause in _CLOSED and not self.replied

    def was_closed(self) -> bool:
        """Whether the service closed the connection, or sent more than it was asked for."""
        sock = self._http.sock
        try:
            sock.setblocking(False)
            # Of the connection itself: with TLS, `sock.recv` knows no flags.
            socket.socket.recv(sock, 1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            pass
        return True

    def close(self) -> None:
        """Close the connection."""
        with suppress(OSError):
            self._http.close()

    def abort(self) -> None:
        """Break the connection off, in whatever it is used for."""
        self.until = 0.0
        if self._sock is not None:
            with suppress(OSError):
                self._sock.shutdown(socket.SHUT_RDWR)

    def _connect(self, address: tuple[str, int], *_: object) -> socket.socket:
        """Connect to the first address of a host that accepts; each gets its share of the time."""
        places = self._look_up(*address)
        failure: OSError = OSError("the name has no address")
        for number, (family, kind, protocol, _name, place) in enumerate(places):
            self._sock = sock = socket.socket(family, kind, protocol)
            try:
                sock.settimeout(self.remaining() / (len(places) - number))
                sock.connect(place)
                sock.settimeout(self.remaining())
                return sock
            except OSError as error:
                failure = error
                sock.close()
        raise failure

    def _look_up(self, host: str, port: int) -> list[Any]:
        """Look a name up, in a thread because a look-up has no time limit."""
        look = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        with suppress(OSError):
            return look(flags=socket.AI_NUMERICHOST)
        results: list[Any] = []
        errors: list[Exception] = []
        done = threading.Event()

        def work() -> None:
            try:
                results.extend(look())
            except (OSError, UnicodeError) as error:
                errors.append(error)
            done.set()

        threading.Thread(target=work, daemon=True, name="look-up").start()
        if not done.wait(self.remaining()):
            raise TimeoutError
        if errors:
            raise errors[0]
        return results

    def _make_response(self, sock: socket.socket, *arguments: Any, **options: Any) -> HTTPResponse:
        return _Response(_Source(self, sock), *arguments, **options)  # type: ignore[arg-type]


class _Response(HTTPResponse):
    """A reply; what comes before it (102 Processing, 103 Early Hints) is not one."""

    def _read_status(self) -> tuple[str, int, str]:
        while True:
            line: tuple[str, int, str] = super()._read_status()  # type: ignore[misc]
            if line[1] not in (102, 103):  # the standard library skips 100
                return line
            parse_headers(self.fp)


class _Source:
    """The socket of a response, as far as the standard library uses it."""

    def __init__(self, link: _Link, sock: socket.socket) -> None:
        self._link, self._sock = link, sock

    def makefile(self, mode: str) -> io.BufferedReader:
        return _ReplyFile(_TimedReader(self._link, self._sock), self._link)


class _TimedReader(io.RawIOBase):
    """Reads from a socket for as long as the request has time."""

    def __init__(self, link: _Link, sock: socket.socket) -> None:
        self._link, self._sock = link, sock
        self._raw = sock.makefile("rb", buffering=0)  # keeps the socket open while it is read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(self._link.remaining())
        size: int | None = self._raw.readinto(buffer)
        self._link.replied = self._link.replied or bool(size)
        return size

    def close(self) -> None:
        self._raw.close()
        super().close()


class _ReplyFile(io.BufferedReader):
    """A reply whose head must be complete: the standard library takes any end for its end."""

    def __init__(self, raw: io.RawIOBase, link: _Link) -> None:
        super().__init__(raw)
        self._link = link

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        if not line and self._link.reading_head:
            raise RemoteDisconnected("Remote end closed connection without response")
        return line


def _describe(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def bypass_proxy(host: str) -> None:
    """Let the clients of libraries in this process reach a host directly, if it is this machine.

    Otherwise they would send records and tokens to the proxy that HTTP_PROXY names.
    """
    if not _is_local(host):
        return
    variables = ("no_proxy", "NO_PROXY")  # some libraries read only one of them
    lists = ",".join(os.environ.get(name, "") for name in variables).split(",")
    hosts = dict.fromkeys(name.strip() for name in (*lists, host) if name.strip())
    # The standard library takes "*" only alone.
    os.environ.update(dict.fromkeys(variables, "*" if "*" in hosts else ",".join(hosts)))


def _is_local(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def _find_proxy(parts: SplitResult) -> str:
    """Return the proxy that the environment names for an address; this machine needs none."""
    from urllib.request import getproxies, proxy_bypass  # only for the first connection

    if _is_local(parts.hostname or ""):
        return ""
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all") or ""
    if not proxy or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return ""
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if not proxy.startswith("http://"):
        raise AttemptError("connection", "a proxy must be one of HTTP (http://…)", Repeat.NEVER)
    return proxy
