"""The proxy for memory systems' own clients: every reply is stored once, and paid for once."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import urllib.error
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.errors import LimitError
from routeprism.models import Allowance
from routeprism.models.gateway import Gateway, Line

from . import asking_memory

PROGRAM = Path(__file__).with_name("asking_memory.py")
SMALL, ask = asking_memory.SMALL, asking_memory.ask
NEEDED = 2 * 2 * sum(len(case.pool) for case in SMALL.cases)
"""Two routes and two builds of each: a call for each record."""
KEY = "sk-proxy-secret-0123456789"


class Upstream(ThreadingHTTPServer):
    """A model on loopback that numbers its replies, so that no two of them are the same."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answered: list[str] = []
        self.headers: list[str] = []
        self.victim: subprocess.Popen[str] | None = None
        self.kill_before = 0
        self.status = 200
        self.lock = threading.Lock()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: Any, address: Any) -> None:
        """Ignore connections of a program that was killed."""

    def stop(self) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: Upstream
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server = self.server
        with server.lock:
            server.headers.append(str(self.headers))
            if server.victim is not None and len(server.answered) + 1 == server.kill_before:
                server.victim.send_signal(signal.SIGKILL)
                server.victim.wait()
                raise ConnectionError  # the reply is never given
            if server.status == 200:
                server.answered.append(json.dumps(document["messages"]))
            number = len(server.answered)
        message = {"role": "assistant", "content": f"reply {number}, key {KEY}"}
        usage = {"prompt_tokens": 10, "completion_tokens": 5}
        body = json.dumps({"choices": [{"message": message}], "usage": usage}).encode()
        self.send_response(server.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing."""


@pytest.fixture
def upstream(monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = Upstream()
    yield server
    server.stop()


def start(run: Path, upstream: Upstream, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(PROGRAM), str(run), upstream.url, *more]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ})


def finish(program: subprocess.Popen[str]) -> int:
    _, words = program.communicate(timeout=120)
    assert program.returncode in (0, -signal.SIGKILL), words[-2000:]
    return program.returncode


def contents(run: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file())


@pytest.mark.slow
def test_no_call_is_paid_for_twice_wherever_the_audit_is_killed(
    upstream: Upstream, tmp_path: Path
) -> None:
    """Killed before a reply and after one, several times, then finished: each call is paid once.

    A reply that the model gave, but that had not reached this machine's disk when the process was
    killed, cannot be known. Both kinds of kill points here are outside of that moment.
    """
    run = tmp_path / "run"
    killed = 0
    for more in (("1",), (), ("17",), (), ("30",)):
        program = start(run, upstream, *more)
        if not more:  # the model kills it when the next-but-one new request comes in
            upstream.victim, upstream.kill_before = program, len(upstream.answered) + 2
        killed += finish(program) == -signal.SIGKILL
        upstream.victim = None
    assert killed == 5
    assert finish(start(run, upstream)) == 0
    assert len(upstream.answered) == NEEDED
    assert set(Counter(upstream.answered).values()) == {4}  # each record: two routes, two builds
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["status"] == "complete"
    with closing(sqlite3.connect(run / "run.sqlite")) as store:
        (stored,) = store.execute("SELECT count(*) FROM answers").fetchone()
    assert stored == NEEDED
    before = (run / "estimates.csv").read_bytes()
    assert finish(start(run, upstream)) == 0
    assert len(upstream.answered) == NEEDED
    assert (run / "estimates.csv").read_bytes() == before


def test_the_key_reaches_the_model_and_nothing_else(upstream: Upstream, tmp_path: Path) -> None:
    policy = asking_memory.Asking(upstream.url)
    routeprism.audit(SMALL, policy, run=tmp_path / "run", resamples=100)
    assert all(f"Bearer {KEY}" in headers for headers in upstream.headers)
    assert b"reply 1, key " in contents(tmp_path / "run")
    assert KEY.encode() not in contents(tmp_path / "run")


@pytest.mark.slow
def test_limits_hold_and_the_same_call_goes_on(upstream: Upstream, tmp_path: Path) -> None:
    """A reply costs 10 · 1,000 / 10⁶ + 5 · 10,000 / 10⁶ = 0.06."""
    one_build = NEEDED // 2
    settings: dict[str, Any] = {"run": tmp_path / "run", "resamples": 100}
    policy = asking_memory.Asking(upstream.url, price_in=1_000, price_out=10_000)
    (cost,) = routeprism.audit(SMALL, policy, dry_run=True).costs.values()
    assert cost.calls == one_build and upstream.answered == []
    with pytest.raises(LimitError, match="max_calls"):
        routeprism.audit(SMALL, policy, max_calls=5, **settings)
    assert len(upstream.answered) == 5
    with pytest.raises(LimitError, match="max_cost"):
        routeprism.audit(SMALL, policy, max_cost=0.5, **settings)
    assert 5 < len(upstream.answered) < 5 + 0.5 / 0.06
    (cost,) = routeprism.audit(SMALL, policy, dry_run=True, **settings).costs.values()
    assert (cost.kept, cost.calls) == (len(upstream.answered), one_build - len(upstream.answered))
    routeprism.audit(SMALL, policy, **settings)
    assert len(upstream.answered) == one_build
    with closing(sqlite3.connect(tmp_path / "run" / "run.sqlite")) as store:
        (spent,) = store.execute("SELECT sum(cost) FROM answers").fetchone()
    assert spent == pytest.approx(0.06 * one_build)


def test_a_failure_is_passed_on_and_its_draw_is_free_again(upstream: Upstream) -> None:
    allowance = Allowance(max_calls=2)
    with Gateway(allowance, retries=0).serving() as gateway:
        address = gateway.connect(Line("p", [("r", "t")], upstream.url))
        upstream.status = 500
        with pytest.raises(urllib.error.HTTPError, match="500"):
            ask(*address, "Hello.")
        upstream.status = 200
        assert ask(*address, "Hello.").startswith("reply 1")
        with pytest.raises(urllib.error.HTTPError, match="403"):
            ask(*address, "More.")
    assert allowance.reached and len(upstream.answered) == 1


def test_nobody_else_is_served(upstream: Upstream) -> None:
    with Gateway().serving() as gateway:
        url, key = gateway.connect(Line("p", [], upstream.url))
        with pytest.raises(urllib.error.HTTPError, match="401"):
            ask(url, "another key", "Hello.")
        scope = url.split("/")[-2]
        with pytest.raises(urllib.error.HTTPError, match="404"):
            ask(url.replace(scope, "nobody"), key, "Hello.")
    assert upstream.answered == []


def test_a_stranger_is_refused_before_the_request_is_read(upstream: Upstream) -> None:
    """Reading it would take up to 64 MiB of memory for each connection."""
    with Gateway().serving() as gateway:
        url, _ = gateway.connect(Line("p", [], upstream.url))
        host, port = url.split("/")[2].split(":")
        with socket.create_connection((host, int(port)), timeout=60) as stranger:
            stranger.sendall(
                b"POST /x/v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
                b"Authorization: Bearer guessed\r\nContent-Length: 67108864\r\n\r\n"
            )
            assert b" 401 " in stranger.recv(1000)  # although the body has not begun


def test_a_server_that_is_not_there_is_named_without_its_password(tmp_path: Path) -> None:
    with Gateway().serving() as gateway:
        url, key = gateway.connect(Line("p", [], "http://me:secret@127.0.0.1:9/v1"))
        with pytest.raises(urllib.error.HTTPError) as error:
            ask(url, key, "Hello.")
    words = error.value.read().decode()
    assert "no connection to http://127.0.0.1:9/v1" in words and "secret" not in words
