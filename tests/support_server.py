"""An OpenAI-compatible server on loopback that misbehaves on request and ends by itself.

Run as a script it serves and prints its port; `Loopback` starts it as a process and talks to it.

An answer is a function of the prompt and the seed alone. What else happens is written into the
prompt as `[[fault:times]]`: the first `times` requests for that prompt and seed meet the fault, the
following are answered. `[[429{Retry-After: 7|Name: value}:times]]` has headers of its own.
`[[say:words]]` sets the answer's words.

`Loopback.hold(n)` lets the n requests that came first be answered; later ones wait for `release`.
A test that kills or interrupts a client uses it, so that the client cannot run ahead of the test.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import math
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from types import TracebackType
from typing import Any

FAULT = re.compile(
    r"\[\[(429|429\{.*?\}|500|401|400|drop|hang|empty|malformed|refusal|echo):(\d+)\]\]"
)
SAY = re.compile(r"\[\[say:(.*?)\]\]", re.DOTALL)
LENGTH = re.compile(rb"content-length:\s*(\d+)", re.IGNORECASE)
PATIENCE = 120.0
"""Seconds for what takes a moment on a machine that is not busy."""
AUTHORIZATION = re.compile(rb"authorization:\s*([^\r\n]*)", re.IGNORECASE)


def answer(prompt: str, seed: int | None, letters: str = "abcd") -> str:
    """Give the letter that prompt and seed determine."""
    digest = hashlib.sha256(f"{seed}\0{prompt}".encode()).digest()
    return letters[digest[0] % len(letters)]


class State:
    """What the server saw, shared by its connections."""

    def __init__(self, latency: float) -> None:
        self.latency = latency
        self.seen: Counter[str] = Counter()
        self.bodies: list[dict[str, Any]] = []
        self.authorizations: set[str] = set()
        self.in_flight = self.peak = 0
        self.limit: float = math.inf
        self.waiting: list[Callable[[], None]] = []

    @property
    def total(self) -> int:
        return sum(self.seen.values())

    def hold(self, limit: float) -> None:
        """Answer no request beyond the limit; let those that waited continue if it is lifted."""
        self.limit = limit
        if limit == math.inf:
            waiting, self.waiting = self.waiting, []
            for reply in waiting:
                reply()


class Connection(asyncio.Protocol):
    """One keep-alive connection."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while True:
            head, end, rest = self.buffer.partition(b"\r\n\r\n")
            if not end:
                return
            length = LENGTH.search(head)
            size = int(length[1]) if length else 0
            if len(rest) < size:
                return
            self.buffer = rest[size:]
            self.handle(head, rest[:size])

    def handle(self, head: bytes, body: bytes) -> None:
        if head.startswith(b"GET /seen"):
            state = self.state
            counts = {
                "total": state.total,
                "seen": state.seen,
                "in_flight": state.in_flight,
                "peak": state.peak,
                "authorizations": sorted(state.authorizations),
                "bodies": state.bodies[-50:],
            }
            self.send(200, json.dumps(counts).encode())
            return
        if head.startswith(b"GET /hold/"):
            self.state.hold(float(head.split()[1].rpartition(b"/")[2]))
            self.send(200, b"{}")
            return
        request = json.loads(body)
        prompt = request["messages"][-1]["content"]
        seed = request.get("seed")
        key = hashlib.sha256(f"{seed}\0{prompt}".encode()).hexdigest()
        self.state.seen[key] += 1
        self.state.bodies.append({k: v for k, v in request.items() if k != "messages"})
        authorization = AUTHORIZATION.search(head)
        if authorization:
            self.state.authorizations.add(authorization[1].decode())
        self.state.in_flight += 1
        self.state.peak = max(self.state.peak, self.state.in_flight)
        loop = asyncio.get_running_loop()
        reply = partial(self.reply, prompt, seed, self.state.seen[key])
        if self.state.total > self.state.limit:
            self.state.waiting.append(reply)
        else:
            loop.call_later(self.state.latency, reply)

    def reply(self, prompt: str, seed: int | None, times: int) -> None:
        self.state.in_flight -= 1
        if self.transport.is_closing():
            return
        for kind, number in FAULT.findall(prompt):
            if times <= int(number):
                self.fail(kind)
                return
            times -= int(number)
        words = SAY.search(prompt)
        self.complete(words[1] if words else answer(prompt, seed))

    def fail(self, kind: str) -> None:
        secret = " ".join(self.state.authorizations)
        error = json.dumps({"error": {"message": f"trouble with {secret}", "code": "made_up"}})
        if kind == "429":
            self.send(429, error.encode(), "Retry-After: 0.3\r\n")
        elif kind.startswith("429{"):
            headers = [line for line in kind[4:-1].split("|") if line]
            self.send(429, error.encode(), "".join(f"{line}\r\n" for line in headers))
        elif kind in ("500", "401", "400"):
            self.send(int(kind), error.encode())
        elif kind == "drop":
            self.transport.write(b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"choices": [')
            self.transport.close()
        elif kind == "empty":
            usage = {"prompt_tokens": 7, "completion_tokens": 0}
            self.send(200, json.dumps({"choices": [], "usage": usage}).encode())
        elif kind == "malformed":
            self.send(200, b'{"choices": [{"message": {"content": "b"')
        elif kind == "refusal":
            self.complete(None, refusal="That is nothing I do.")
        elif kind == "echo":
            self.complete(f"You sent {secret}")
        # hang: nothing ever comes back

    def complete(self, content: str | None, **more: object) -> None:
        body = {
            "id": "loopback",
            "object": "chat.completion",
            "created": 0,
            "model": "loopback",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": content, **more},
                }
            ],
            "usage": {"prompt_tokens": 11, "completion_tokens": 1, "total_tokens": 12},
        }
        self.send(200, json.dumps(body).encode())

    def send(self, status: int, body: bytes, headers: str = "") -> None:
        head = (
            f"HTTP/1.1 {status} Status\r\nContent-Type: application/json\r\n{headers}"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        self.transport.write(head.encode() + body)


async def serve(latency: float, seconds: float) -> None:
    """Serve for so many seconds at most, or until standard input closes."""
    loop = asyncio.get_running_loop()
    state = State(latency)
    server = await loop.create_server(lambda: Connection(state), "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    closed = loop.run_in_executor(None, sys.stdin.read)
    await asyncio.wait([closed], timeout=seconds)
    server.close()


class Loopback:
    """A running server process."""

    def __init__(self, *, latency: float = 0.0, seconds: float = 3600.0) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__)), str(latency), str(seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    @property
    def url(self) -> str:
        """What to give as base URL."""
        return f"http://127.0.0.1:{self.port}/v1"

    def read_counts(self) -> Mapping[str, Any]:
        """Ask what came in so far."""
        return self._get("/seen")

    def hold(self, total: int) -> None:
        """Leave every request after so many without a reply, until `release`."""
        self._get(f"/hold/{total}")

    def release(self) -> None:
        """Answer the requests that were held, and all that follow."""
        self._get("/hold/inf")

    def wait_for(self, total: int) -> None:
        """Wait until so many requests have come in."""
        deadline = time.monotonic() + PATIENCE
        while self.read_counts()["total"] < total:
            assert time.monotonic() < deadline, f"the server never saw {total} requests"
            time.sleep(0.01)

    def settle(self) -> int:
        """Count the requests after a client has ended, including those it sent last.

        The server reads connections in the order in which they came: when it answers a second
        call, it has read whatever the client sent before the first one.
        """
        self.read_counts()
        return int(self.read_counts()["total"])

    def _get(self, path: str) -> Mapping[str, Any]:
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)) as connection:
            connection.request("GET", path)
            values: Mapping[str, Any] = json.load(connection.getresponse())
        return values

    def __enter__(self) -> Loopback:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("latency", type=float)
    parser.add_argument("seconds", type=float)
    arguments = parser.parse_args()
    asyncio.run(serve(arguments.latency, arguments.seconds))
