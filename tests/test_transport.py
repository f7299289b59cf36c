"""Requests over HTTP: when connections are reused, when a request is repeated, and when it ends."""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from email.utils import formatdate
from types import SimpleNamespace
from typing import Any

import pytest

from routeprism import transport
from routeprism.transport import AttemptError, Connections, HttpRequest, Repeat, check_status

from .faults import fault_endpoint
from .faults.fault_endpoint import hangs_up, reply, says, sends, silent

OK = sends(reply(b"{}"))
LONG = 60.0
"""Seconds that no test waits."""


@pytest.fixture(autouse=True)
def no_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport.JITTER, "uniform", lambda low, high: 0.0)


class Service:
    """A server that replies to its requests in turn, the last reply again and again."""

    def __init__(self, *responds: Any) -> None:
        self._responds = list(responds)
        self.connections: list[socket.socket] = []
        self.endpoint = fault_endpoint.Endpoint({"": self.answer})

    def answer(self, connection: socket.socket, request: Any) -> None:
        self.connections.append(connection)
        respond = self._responds.pop(0) if len(self._responds) > 1 else self._responds[0]
        respond(connection, request)

    @property
    def requests(self) -> int:
        return len(self.connections)

    @property
    def links(self) -> int:
        return len(set(map(id, self.connections)))

    @property
    def url(self) -> str:
        return f"http://{self.endpoint.origin}/"


@pytest.fixture
def serve() -> Iterator[Callable[..., Service]]:
    running: list[Service] = []

    def start(*responds: Any) -> Service:
        running.append(Service(*responds))
        return running[-1]

    yield start
    for service in running:
        service.endpoint.__exit__(None, None, None)


def send(connections: Connections, url: str, *, safe: bool, **options: Any) -> Any:
    request = HttpRequest(url, body=b"{}", safe=safe)
    settings: dict[str, Any] = {"timeout": LONG, "largest": 1000, **options}
    return connections.send(request, check_status, **settings)


def fail(connections: Connections, url: str, *, safe: bool = True, **options: Any) -> AttemptError:
    with pytest.raises(AttemptError) as caught:
        send(connections, url, safe=safe, **options)
    return caught.value


def test_requests_that_are_safe_share_a_connection(serve: Callable[..., Service]) -> None:
    service, connections = serve(OK), Connections()
    for _ in range(5):
        assert send(connections, service.url, safe=True).content == b"{}"
    assert (service.requests, service.links) == (5, 1)
    send(pickle.loads(pickle.dumps(connections)), service.url, safe=True)  # noqa: S301
    assert service.links == 2


def test_writes_share_a_connection_once_the_service_has_kept_one_open(
    serve: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service may be closing one that was idle for long, and nobody knows what it performed."""
    moment = 0.0
    monkeypatch.setattr(transport, "time", SimpleNamespace(monotonic=lambda: moment))
    service, connections = serve(OK), Connections()
    send(connections, service.url, safe=False)
    send(connections, service.url, safe=False)
    assert service.links == 2  # whether it keeps connections open is not known yet
    send(connections, service.url, safe=True)
    send(connections, service.url, safe=False)
    assert service.links == 2
    moment += 1.0
    send(connections, service.url, safe=False)
    assert service.links == 3
    moment += 1.0
    send(connections, service.url, safe=True)
    assert service.links == 3


@pytest.mark.parametrize("safe", [True, False])
def test_writes_share_no_connection_of_a_service_that_closes_them_unannounced(
    serve: Callable[..., Service], monkeypatch: pytest.MonkeyPatch, safe: bool
) -> None:
    """It closes one as soon as the third request arrives on it, which a write may not repeat."""
    monkeypatch.setattr(transport, "time", SimpleNamespace(monotonic=lambda: 0.0))
    service, connections = serve(OK, OK, hangs_up(b""), OK), Connections()
    for _ in range(2):
        send(connections, service.url, safe=True)
    if safe:
        send(connections, service.url, safe=True)
    else:
        assert fail(connections, service.url, safe=False, retries=0).kind == "broken"
    assert service.requests == (4 if safe else 3)
    links = service.links
    for number in range(3):
        send(connections, service.url, safe=False)
        assert service.links == links + number + 1


def test_a_connection_that_the_service_closed_is_opened_again(
    serve: Callable[..., Service],
) -> None:
    """It closes each connection after its reply, and does not say so."""
    service, connections = serve(hangs_up(reply(b"{}"))), Connections()
    for safe in (True, False, True, False):
        send(connections, service.url, safe=safe, retries=0)
    assert (service.requests, service.links) == (4, 4)


def test_a_connection_that_ends_under_a_safe_request_is_opened_again(
    serve: Callable[..., Service],
) -> None:
    service = serve(OK, hangs_up(b""), OK)
    connections = Connections()
    send(connections, service.url, safe=True)
    send(connections, service.url, safe=True, retries=0)
    assert (service.requests, service.links) == (3, 2)


def test_a_request_that_is_sent_again_on_a_new_connection_is_counted(
    serve: Callable[..., Service],
) -> None:
    """The service may have performed it before it closed the connection, and may charge for it."""
    service, counted = serve(OK, hangs_up(b""), OK), []
    connections = Connections()
    for _ in range(2):
        send(connections, service.url, safe=True, before_repetition=lambda: counted.append(1))
    assert (service.requests, len(counted)) == (3, 1)


@pytest.mark.parametrize("answers_others", [True, False])
def test_a_refused_request_has_more_patience_while_the_service_answers_others(
    serve: Callable[..., Service], answers_others: bool
) -> None:
    """Seven requests if nothing else is answered, and up to four times six more otherwise."""
    connections = Connections()

    def answer_another() -> None:
        if answers_others:
            send(connections, f"{service.url}/other", safe=True)

    def respond(connection: socket.socket, request: Any) -> None:
        refused = b"/other" not in request.raw
        connection.sendall(reply(b"{}", "429 Slow") if refused else reply(b"{}"))

    service = serve(respond)
    error = fail(connections, service.url, note=lambda _: answer_another())
    assert error.attempts == (1 + 6 * 4 if answers_others else 1 + 6)


@pytest.mark.parametrize(
    ("respond", "safe", "requests"),
    [
        (says({}, "503 Busy"), False, 2),  # it states that it did not perform the request
        (says({}, "429 Slow"), False, 2),
        (says({}, "500 Oops"), False, 1),  # it may have
        (says({}, "500 Oops"), True, 2),
        (says({}, "502 Oops"), False, 1),
        (says({}, "404 No"), True, 1),
        (hangs_up(b""), False, 1),
        (hangs_up(b""), True, 2),
        (hangs_up(b"BANANA\r\n\r\n"), True, 2),
        (says({}, "503 Busy", "Retry-After: 301\r\n"), True, 1),  # longer than anyone waits
    ],
)
def test_a_request_is_repeated_where_that_is_safe(
    serve: Callable[..., Service], respond: Any, safe: bool, requests: int
) -> None:
    service, counted = serve(respond, OK), []
    notes: list[AttemptError] = []
    options: dict[str, Any] = {"before_repetition": lambda: counted.append(1), "note": notes.append}
    if requests == 2:
        send(Connections(), service.url, safe=safe, **options)
    else:
        fail(Connections(), service.url, safe=safe, **options)
    assert (service.requests, len(counted), len(notes)) == (requests, requests - 1, 1)


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [("7", 7, 7), ("DATE", 100, 250), ("soon", 0, 0)],
    ids=["seconds", "date", "words"],
)
def test_every_request_waits_for_as_long_as_the_service_asks(
    serve: Callable[..., Service],
    monkeypatch: pytest.MonkeyPatch,
    header: str,
    least: float,
    most: float,
) -> None:
    waits: list[float] = []
    moment = time.monotonic()

    def pass_time(stopped: threading.Event, seconds: float) -> bool:
        nonlocal moment
        waits.append(seconds)
        moment += seconds
        return False

    monkeypatch.setattr(transport, "pause", pass_time)
    monkeypatch.setattr(transport, "time", SimpleNamespace(monotonic=lambda: moment))
    header = header.replace("DATE", formatdate(time.time() + 250, usegmt=True))
    service = serve(says({}, "503 Busy", f"Retry-After: {header}\r\n"), OK)
    send(Connections(), service.url, safe=False)
    assert least <= waits[0] <= most


def test_a_service_that_never_recovers_is_left_alone(
    serve: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some time and ten failures it gets one request now and then."""
    moment = 0.0
    monkeypatch.setattr(transport, "pause", lambda stopped, seconds: False)
    monkeypatch.setattr(transport, "time", SimpleNamespace(monotonic=lambda: moment))
    service, connections = serve(says({}, "503 Busy")), Connections()
    assert fail(connections, service.url).attempts == 1 + transport.RETRIES
    moment += transport.PATIENCE + 1
    fail(connections, service.url)
    requests = service.requests
    assert requests == transport.FEWEST  # 7, and 3 more
    error = fail(connections, service.url)
    assert (error.kind, service.requests) == ("gone", requests)
    assert "10 requests in a row failed within 5 minutes" in error.detail
    moment += transport.PROBE
    fail(connections, service.url)
    assert service.requests == requests + 1


def test_a_service_that_does_not_run_is_reported_at_once(serve: Callable[..., Service]) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/"
        error = fail(Connections(), url)
    assert (error.kind, error.attempts, error.repeat) == ("connection", 1, Repeat.ALWAYS)
    error = fail(Connections(), "http://name.invalid/")
    assert (error.kind, error.attempts) == ("connection", 1)


@pytest.mark.parametrize(
    "respond",
    [
        silent,
        sends(b"HTTP/1.1 200 OK\r\n"),
        fault_endpoint.trickles(b"HTTP/1.1 200 OK\r\nX: "),
        fault_endpoint.trickles(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n"),
        fault_endpoint.trickles(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ],
    ids=["nothing", "headers", "slow headers", "slow body", "slow chunk"],
)
def test_one_time_limit_covers_the_whole_request(
    serve: Callable[..., Service], respond: Any
) -> None:
    assert fail(Connections(), serve(respond).url, retries=0, timeout=0.4).kind == "timeout"


def test_a_look_up_has_the_same_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    def look_up(*arguments: Any, flags: int = 0, **options: Any) -> Any:
        if not flags:
            ended.wait(LONG)
        raise socket.gaierror("no name")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    error = fail(Connections(), "http://name.invalid/", timeout=0.2)
    ended.set()
    assert error.kind == "timeout"


@pytest.mark.parametrize(
    "respond",
    [
        fault_endpoint.trickles(b"HTTP/1.1 401 No\r\nContent-Length: 99999\r\n\r\nwhy"),
        sends(b"HTTP/1.1 401 No\r\nContent-Length: 99999\r\n\r\nwhy"),
        hangs_up(b"HTTP/1.1 401 No\r\nContent-Length: 99999\r\n\r\nwhy"),
    ],
    ids=["slow", "stalled", "cut"],
)
def test_a_refusal_counts_although_its_body_does_not_come(
    serve: Callable[..., Service], respond: Any
) -> None:
    error = fail(Connections(), serve(respond).url, timeout=0.4)
    assert error.reply is not None
    assert (error.kind, error.reply.status) == ("status", 401)
    assert error.reply.content.strip() == b"why"


def test_only_the_beginning_of_a_refusal_is_read(serve: Callable[..., Service]) -> None:
    service, connections = serve(sends(reply(b"x" * 10**6, "400 No")), OK), Connections()
    error = fail(connections, service.url, largest=10**9)
    assert error.reply is not None
    assert error.reply.content == b"x" * 2**16
    send(connections, service.url, safe=True)
    assert service.links == 2  # the rest was not read


def test_a_reply_that_unpacks_to_more_than_the_limit_is_refused(
    serve: Callable[..., Service],
) -> None:
    import gzip

    packed = reply(gzip.compress(b" " * 10**6), headers="Content-Encoding: gzip\r\n")
    assert fail(Connections(), serve(sends(packed)).url).kind == "oversize"


def test_a_reply_in_several_parts_is_read_whole(serve: Callable[..., Service]) -> None:
    """Early hints come before it, and gzip allows one part after the other (RFC 1952, 2.2)."""
    import gzip

    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n"
    parts = gzip.compress(b'{"items": ') + gzip.compress(b"[]}")
    packed = reply(parts, headers="Content-Encoding: gzip\r\n")
    service, connections = serve(sends(hints + hints + packed)), Connections()
    for _ in range(2):
        assert send(connections, service.url, safe=True).content == b'{"items": []}'
    assert service.links == 1


@pytest.mark.parametrize("status", ["200 OK", "503 Busy"], ids=["request", "wait"])
def test_ctrl_c_ends_a_request_and_a_wait(serve: Callable[..., Service], status: str) -> None:
    """The server presses it, and then says nothing, or asks to wait for longer than a test may."""

    def interrupt(connection: socket.socket, request: Any) -> None:
        if status.startswith("503"):
            connection.sendall(reply(b"{}", status, "Retry-After: 250\r\n"))
        os.kill(os.getpid(), signal.SIGINT)

    service = serve(interrupt)
    with pytest.raises(KeyboardInterrupt):
        send(Connections(), service.url, safe=True, timeout=250)
    assert service.requests == 1


@pytest.mark.parametrize("reused", [False, True])
def test_a_cancelled_request_of_an_event_loop_breaks_its_connection(
    serve: Callable[..., Service], reused: bool
) -> None:
    arrived, broken = threading.Event(), threading.Event()

    def hold(connection: socket.socket, request: Any) -> None:
        arrived.set()
        if connection.recv(1) == b"":
            broken.set()

    service, connections = serve(*[OK] * reused, hold), Connections()
    if reused:
        send(connections, service.url, safe=True)

    async def cancel() -> None:
        request = HttpRequest(service.url, body=b"{}", safe=True)
        options = {"timeout": 250.0, "largest": 1000}
        task = asyncio.create_task(connections.send_async(request, check_status, **options))
        await asyncio.to_thread(arrived.wait, LONG)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(broken.wait, LONG)

    asyncio.run(cancel())
    connections.close()
    for thread in threading.enumerate():
        if thread.name.startswith("transport"):
            thread.join(LONG)
            assert not thread.is_alive()
    assert service.requests == reused + 1  # it is not repeated
    assert service.links == 1


def test_closing_ends_waits(serve: Callable[..., Service]) -> None:
    replied = threading.Event()

    def busy(connection: socket.socket, request: Any) -> None:
        connection.sendall(reply(b"{}", "503 Busy", "Retry-After: 250\r\n"))
        replied.set()

    service, connections = serve(busy), Connections()
    errors: list[AttemptError] = []
    thread = threading.Thread(target=lambda: errors.append(fail(connections, service.url)))
    thread.start()
    assert replied.wait(LONG)
    connections.close()
    thread.join(LONG)
    assert [error.kind for error in errors] == ["status"]
    assert service.requests == 1


def test_connections_are_closed_when_nobody_has_them(serve: Callable[..., Service]) -> None:
    """Also in a cycle of objects; a warning about an unclosed socket fails the test."""
    service = serve(OK)
    owner = SimpleNamespace(connections=Connections())
    owner.owner = owner
    send(owner.connections, service.url, safe=True)
    (connection,) = service.connections
    del owner
    gc.collect()
    with suppress(OSError):  # the server has seen it, and closed its own side
        connection.settimeout(LONG)
        assert connection.recv(1) == b""


def test_a_proxy_is_used_except_for_this_machine(
    serve: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[bytes] = []

    def note(connection: socket.socket, request: Any) -> None:
        requests.append(request.raw)
        connection.sendall(reply(b'{"by": "proxy"}'))

    proxy = fault_endpoint.Endpoint(
        dict.fromkeys(("", "there.invalid"), note) | {"there.invalid:443": note}
    )
    monkeypatch.setenv("http_proxy", f"http://me:sesame@{proxy.origin}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with proxy:
        connections = Connections()
        assert b"proxy" in send(connections, "http://there.invalid/a?b=c", safe=True).content
        assert b"proxy" not in send(connections, serve(OK).url, safe=True).content
    (raw,) = requests
    assert raw.startswith(b"POST http://there.invalid/a?b=c HTTP/1.1\r\nHost: there.invalid\r\n")
    assert b"Proxy-Authorization: Basic bWU6c2VzYW1l\r\n" in raw  # me:sesame


def test_only_this_machine_is_reached_past_the_web_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "a.example")
    transport.bypass_proxy("far.example")
    assert {os.environ["no_proxy"], os.environ["NO_PROXY"]} == {"a.example"}
