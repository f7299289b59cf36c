"""An OpenAI-compatible endpoint on loopback, and a catalogue of what it can do wrong.

Each `Fault` has a name, a description, the outcome that a user sees and the exit code of the
command. The name is the first part of the path, so one server serves all of them:
`--base-url http://127.0.0.1:PORT/NAME/v1`. To add a fault, add it to `FAULTS` and print the table
of docs/reliability.md again: `python tests/faults/fault_endpoint.py`.
"""

from __future__ import annotations

import gzip
import json
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any

ANSWER, MARKED = "answered", "answered, marked"
REFUSED, UNREADABLE = "refused", "unparsable"
MISSING = "missing"
CODES = {ANSWER: 0, MARKED: 0, REFUSED: 0, UNREADABLE: 0, MISSING: 3}
"""The exit code of an audit all of whose answers have this outcome."""


@dataclass(frozen=True)
class Request:
    """One request as it came in."""

    path: str
    headers: Mapping[str, str]
    raw: bytes
    number: int
    """Which request for this fault and prompt it is, from 1."""


Respond = Callable[[socket.socket, Request], None]


@dataclass(frozen=True)
class Fault:
    """One thing that an endpoint can do wrong."""

    name: str
    text: str
    """What it does, for the table."""
    outcome: str
    respond: Respond
    reason: str = ""
    """What the terminal, the report and the manifest say."""
    retries: int = 0
    timeout: float = 20.0
    """Seconds for an attempt; short where nothing comes in time."""

    @property
    def code(self) -> int:
        return CODES[self.outcome]


def completion(content: Any = "a", **more: Any) -> dict[str, Any]:
    """Write a chat completion; `more` replaces fields of the body."""
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    usage = {"prompt_tokens": 11, "completion_tokens": 1, "total_tokens": 12}
    return {"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage, **more}


def refusal(text: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": None, "refusal": text}
    return completion(choices=[{"finish_reason": "stop", "message": message}])


def reply(
    body: bytes, status: str = "200 OK", headers: str = "", kind: str = "application/json"
) -> bytes:
    """Write a reply with its length."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{headers}Content-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


def says(value: Any, status: str = "200 OK", headers: str = "") -> Respond:
    """Reply with a value as JSON."""
    return sends(reply(json.dumps(value).encode(), status, headers))


def sends(content: bytes) -> Respond:
    """Send bytes, and keep the connection."""
    return lambda connection, _: connection.sendall(content)


def hangs_up(content: bytes, *, reset: bool = False) -> Respond:
    """Send bytes, and end the connection."""

    def respond(connection: socket.socket, request: Request) -> None:
        connection.sendall(content)
        if reset:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()

    return respond


def first(fault: Respond, then: Respond) -> Respond:
    """Meet the first request for a prompt with a fault, and the following ones with a reply."""

    def respond(connection: socket.socket, request: Request) -> None:
        (fault if request.number == 1 else then)(connection, request)

    return respond


def trickles(content: bytes, pause: float = 0.05) -> Respond:
    """Send one byte at a time, for ever: each comes in time, all of them never do."""

    def respond(connection: socket.socket, request: Request) -> None:
        stopped = threading.Event()
        with suppress(OSError):
            connection.sendall(content)
            while not stopped.wait(pause):
                connection.sendall(b" ")

    return respond


def never_ends(connection: socket.socket, request: Request) -> None:
    """Send chunks for as long as they are read."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    chunk = b"40000\r\n" + b" " * 0x40000 + b"\r\n"
    with suppress(OSError):
        while True:
            connection.sendall(chunk)


def silent(connection: socket.socket, request: Request) -> None:
    """Send nothing."""


OK = says(completion())
GOOD = json.dumps(completion()).encode()
ELSEWHERE = "http://elsewhere.invalid/v1/chat/completions"
_NO_JSON = "an answer that cannot be read (it is not valid JSON)"
_NO_CHOICE = "an answer that cannot be read (no choice with a message)"
_NO_TEXT = "an answer that cannot be read (its content is not text)"
_FAILED = "gave no answer after 1 attempt: "


def _statuses() -> list[Fault]:
    names = {
        400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden",
        404: "Not Found", 405: "Method Not Allowed", 408: "Request Timeout", 409: "Conflict",
        413: "Content Too Large", 418: "Teapot", 422: "Unprocessable", 429: "Too Many Requests",
        451: "Unavailable For Legal Reasons", 500: "Internal Server Error",
        501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable",
        504: "Gateway Timeout", 529: "Overloaded", 599: "Unknown",
    }  # fmt: skip
    return [
        Fault(
            f"status-{status}",
            f"status {status} {name}",
            MISSING,
            says({"error": {"message": "made up", "code": "x"}}, f"{status} {name}"),
            f"{_FAILED}HTTP {status}: made up",
        )
        for status, name in names.items()
    ]


def _redirections() -> list[Fault]:
    target = f"the server redirects to {ELSEWHERE}"
    return [
        *(
            Fault(
                f"redirect-{status}",
                f"status {status} with another host as target",
                MISSING,
                says({}, f"{status} Moved", f"Location: {ELSEWHERE}\r\n"),
                target,
            )
            for status in (300, 301, 302, 303, 307, 308)
        ),
        Fault(
            "redirect-path",
            "status 307 with a path of the same host as target",
            MISSING,
            says({}, "307 Moved", "Location: /elsewhere\r\n"),
            "the server redirects to http://127.0.0.1",
        ),
        Fault(
            "redirect-nowhere",
            "status 302 without a target",
            MISSING,
            says({}, "302 Moved"),
            "the server redirects, and names no address",
        ),
        Fault(
            "redirect-broken",
            "status 302 with a target that is not an address",
            MISSING,
            says({}, "302 Moved", "Location: http://[half\r\n"),
            "the server redirects to http://[half",
        ),
        Fault(
            "not-modified", "status 304", MISSING, sends(b"HTTP/1.1 304 Not\r\n\r\n"), "HTTP 304"
        ),
    ]


def _retries() -> list[Fault]:
    values = {"error": {"message": "made up"}}
    return [
        *(
            Fault(f"once-{name}", f"{text} once, then an answer", ANSWER, first(fault, OK), "", 1)
            for name, text, fault in (
                ("429", "status 429", says(values, "429 Slow", "Retry-After: 0\r\n")),
                ("500", "status 500", says(values, "500 Oops")),
                ("malformed", "broken JSON", sends(reply(b'{"choices": ['))),
                ("closed", "a closed connection", hangs_up(b"")),
            )
        ),
        Fault(
            "retry-after-hours",
            "status 429 with `Retry-After` of an hour",
            MISSING,
            says(values, "429 Slow", "Retry-After: 3600\r\n"),
            "HTTP 429: made up (it asks to wait 3600 s)",
            1,
        ),
        *(
            Fault(
                f"retry-after-{name}",
                f"status 429 with `Retry-After: {value}` once, then an answer",
                ANSWER,
                first(says(values, "429 Slow", f"Retry-After: {value}\r\n"), OK),
                "",
                1,
            )
            for name, value in (("garbage", "soon"), ("negative", "-5"), ("nan", "nan"))
        ),
        Fault(
            "no-quota",
            "status 429 with code `insufficient_quota`",
            MISSING,
            says({"error": {"message": "pay", "code": "insufficient_quota"}}, "429 Slow"),
            f"{_FAILED}HTTP 429: pay",
            1,
        ),
    ]


def _refusals() -> list[Fault]:
    filtered = {"finish_reason": "content_filter", "message": {"content": None}}
    return [
        Fault("refusal", "a refusal in place of an answer", REFUSED, says(refusal("No."))),
        Fault(
            "filtered",
            "finish reason `content_filter`, no text",
            REFUSED,
            says(completion(choices=[filtered])),
        ),
        Fault(
            "filtered-400",
            "status 400 with code `content_filter`",
            REFUSED,
            says({"error": {"message": "no", "code": "content_filter"}}, "400 Bad"),
        ),
        Fault("content-null", "content null", UNREADABLE, says(completion(None))),
        Fault("content-empty", "empty content", UNREADABLE, says(completion(""))),
        Fault("content-nul", "content with a zero character", UNREADABLE, says(completion("\0"))),
        Fault(
            "content-long", "content of a million words", UNREADABLE, says(completion("x " * 10**6))
        ),
        Fault(
            "finish-reason-list",
            "a finish reason that is a list, no text",
            UNREADABLE,
            says(completion(choices=[{"finish_reason": [], "message": {"content": None}}])),
        ),
        Fault(
            "tool-call",
            "a tool call in place of text",
            UNREADABLE,
            says(completion(choices=[{"message": {"content": None, "tool_calls": [{}]}}])),
        ),
    ]


def _marked() -> list[Fault]:
    counts = {
        "huge": 10**30, "text": "11", "negative": -1, "fraction": 1.5, "list": [1], "true": True,
    }  # fmt: skip
    return [
        Fault(
            "surrogate", "half a surrogate pair in the answer", MARKED, says(completion("a\ud800"))
        ),
        *(
            Fault(
                f"usage-{name}",
                f"`usage.prompt_tokens` of {value!r}".replace("10" + "0" * 29, "10^30"),
                MARKED,
                says(completion(usage={"prompt_tokens": value, "completion_tokens": 1})),
            )
            for name, value in counts.items()
        ),
        Fault("usage-array", "`usage` that is a list", MARKED, says(completion(usage=[1, 2]))),
        Fault("usage-null", "`usage` null", ANSWER, says(completion(usage=None))),
        Fault(
            "usage-absent",
            "`usage` without counts",
            ANSWER,
            says(completion(usage={})),
        ),
        Fault(
            "surrogate-refusal",
            "half a surrogate pair in a refusal",
            REFUSED,
            says(refusal("No \udc00.")),
        ),
        Fault(
            "surrogate-error",
            "half a surrogate pair in an error's text",
            MISSING,
            says({"error": {"message": "half \ud800 here"}}, "401 No"),
            f"{_FAILED}HTTP 401: half \ufffd here",
        ),
    ]


def _bodies() -> list[Fault]:
    raw: dict[str, tuple[str, bytes, str]] = {
        "body-empty": ("an empty body", b"", "it is empty"),
        "body-blank": ("a body of blanks", b"  \n", "it is empty"),
        "body-html": ("an HTML page", b"<html>Log in</html>", "it is HTML or XML"),
        "body-text": ("plain text", b"OK", "it is not valid JSON"),
        "body-cut": ("JSON that is cut off", GOOD[:-9], "it is not valid JSON"),
        "body-deep": ("JSON nested 100,000 deep", b"[" * 100_000, "it is not valid JSON"),
        "body-latin-1": ("bytes that are not UTF-8", b'{"a": "\xe9"}', "it is not valid JSON"),
        "body-long-number": ("a number of 5,000 digits", b"1" * 5000, "it is no"),
        "body-null": ("JSON null", b"null", "it is not a JSON object"),
        "body-number": ("a JSON number", b"42", "it is not a JSON object"),
        "body-list": ("a JSON list", b"[1]", "it is not a JSON object"),
        "body-stream": ("server-sent events", b"data: {}\n\n", "it is not valid JSON"),
    }
    shapes: dict[str, tuple[str, Any, str]] = {
        "choices-absent": ("no `choices`", {}, _NO_CHOICE),
        "choices-null": ("`choices` null", {"choices": None}, _NO_CHOICE),
        "choices-empty": ("`choices` empty", {"choices": []}, _NO_CHOICE),
        "choices-object": ("`choices` an object", {"choices": {"0": 1}}, _NO_CHOICE),
        "choices-text": ("`choices` a text", {"choices": "a"}, _NO_CHOICE),
        "choice-null": ("a choice that is null", {"choices": [None]}, _NO_CHOICE),
        "message-absent": ("a choice without message", {"choices": [{}]}, _NO_CHOICE),
        "message-list": ("a message that is a list", {"choices": [{"message": []}]}, _NO_CHOICE),
        "content-number": ("content that is a number", completion(5), _NO_TEXT),
        "content-object": ("content that is an object", completion({"a": 1}), _NO_TEXT),
        "content-odd-parts": ("content of parts without text", completion([{"x": 1}]), _NO_TEXT),
        "error-object": ("an error with status 200", {"error": {"message": "down"}}, "down"),
        "error-text": ("an error as text with status 200", {"error": "down"}, "down"),
    }
    fine = {
        "content-parts": ("content in parts", json.dumps(completion([{"text": "a"}])).encode()),
        "body-bom": ("a byte-order mark before JSON", b"\xef\xbb\xbf" + GOOD),
        "body-utf-16": ("JSON in UTF-16", GOOD.decode().encode("utf-16")),
        "body-more-fields": ("unknown fields", json.dumps(completion(extra=[1])).encode()),
    }
    return [
        *(Fault(n, t, MISSING, sends(reply(b)), reason) for n, (t, b, reason) in raw.items()),
        *(Fault(n, t, MISSING, says(v), reason) for n, (t, v, reason) in shapes.items()),
        *(Fault(n, t, ANSWER, sends(reply(b))) for n, (t, b) in fine.items()),
        Fault(
            "body-17-megabytes",
            "a body of 17 MiB",
            MISSING,
            sends(reply(b" " * (17 * 2**20))),
            "an answer of more than 16 MiB",
        ),
        Fault(
            "body-endless",
            "a body without end",
            MISSING,
            never_ends,
            "an answer of more than 16 MiB",
        ),
        Fault(
            "no-content",
            "status 204",
            MISSING,
            sends(b"HTTP/1.1 204 None\r\n\r\n"),
            "it is empty",
        ),
        Fault("created", "status 201 with an answer", ANSWER, says(completion(), "201 Made")),
    ]


def _connections() -> list[Fault]:
    ok = b"HTTP/1.1 200 OK\r\n"
    unread = "gave no answer after 1 attempt: "
    cut: dict[str, tuple[str, bytes]] = {
        "closed-at-once": ("the connection closed without a reply", b""),
        "closed-in-status": ("… closed in the status line", b"HTTP/1."),
        "closed-in-headers": ("… closed in the headers", ok + b"Content-Type: applic"),
        "closed-in-body": ("… closed in the body", ok + b"Content-Length: 900\r\n\r\n" + GOOD),
        "closed-in-chunk": (
            "… closed in a chunk",
            ok + b"Transfer-Encoding: chunked\r\n\r\nff\r\n" + GOOD[:40],
        ),
        "chunk-garbage": (
            "a chunk's size that is not a number",
            ok + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n" + GOOD,
        ),
        "length-garbage": (
            "a length that is not a number",
            ok + b"Content-Length: x\r\n\r\n" + GOOD,
        ),
        "length-negative": ("a negative length", ok + b"Content-Length: -5\r\n\r\n" + GOOD),
        "status-garbage": ("a malformed status line", b"BANANA\r\n\r\n"),
        "status-text": ("a status that is not a number", b"HTTP/1.1 abc OK\r\n\r\n"),
        "no-http": ("bytes that are not HTTP", b"\x15\x03\x01\x00\x02\x02\x0a"),
        "header-garbage": ("a header without a colon", ok + b"banana\r\n\r\n"),
        "header-endless": ("a header of a megabyte", ok + b"X: " + b"x" * 10**6 + b"\r\n\r\n"),
        "gzip-garbage": (
            "a body that claims to be gzip",
            reply(b"no gzip at all", headers="Content-Encoding: gzip\r\n"),
        ),
    }
    late: dict[str, tuple[str, Respond]] = {
        "stall": ("nothing at all", silent),
        "stall-in-headers": ("nothing after the status line", sends(ok)),
        "stall-in-body": ("nothing after half of the body", sends(reply(GOOD)[:-20])),
        "trickle-headers": ("headers byte by byte, for ever", trickles(ok + b"X: ")),
        "trickle-body": (
            "a body byte by byte, for ever",
            trickles(ok + b"Content-Length: 99999\r\n\r\n"),
        ),
    }
    zipped = gzip.compress(GOOD)
    return [
        *(Fault(n, t, MISSING, hangs_up(b), unread) for n, (t, b) in cut.items()),
        Fault("reset", "the connection reset", MISSING, hangs_up(b"", reset=True), unread),
        *(
            Fault(n, t, MISSING, respond, "no answer within 0.4 s", timeout=0.4)
            for n, (t, respond) in late.items()
        ),
        Fault(
            "gzip",
            "a gzipped body",
            ANSWER,
            sends(reply(zipped, headers="Content-Encoding: gzip\r\n")),
        ),
        Fault(
            "chunked",
            "a body in chunks",
            ANSWER,
            sends(
                ok + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(GOOD), GOOD)
            ),
        ),
        Fault(
            "close",
            "a connection closed after each answer",
            ANSWER,
            hangs_up(reply(GOOD, headers="Connection: close\r\n")),
        ),
    ]


FAULTS: tuple[Fault, ...] = (
    *_statuses(),
    *_redirections(),
    *_retries(),
    *_refusals(),
    *_marked(),
    *_bodies(),
    *_connections(),
)
BY_NAME = {fault.name: fault for fault in FAULTS}


class Endpoint:
    """A running server; each connection has a thread."""

    def __init__(self, respond: Mapping[str, Respond] | None = None) -> None:
        self._respond = respond or {fault.name: fault.respond for fault in FAULTS}
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self._seen: Counter[tuple[str, bytes]] = Counter()
        self._connections: list[socket.socket] = []
        self.requests: list[Request] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def origin(self) -> str:
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def url(self, name: str) -> str:
        """Give the base URL at which a fault happens."""
        return f"http://{self.origin}/{name}/v1"

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.close()
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._connections.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        buffer = b""
        with connection, suppress(OSError, ValueError):  # it is gone, or was closed on purpose
            while piece := connection.recv(65536):
                buffer += piece
                head, blank, rest = buffer.partition(b"\r\n\r\n")
                lines = head.decode("latin-1").split("\r\n")
                headers = {
                    k.lower(): v.strip() for k, _, v in (x.partition(":") for x in lines[1:])
                }
                length = int(headers.get("content-length", 0))
                if blank and len(rest) >= length:
                    buffer = rest[length:]
                    self._answer(connection, lines[0].split(" ")[1], headers, head, rest[:length])

    def _answer(
        self,
        connection: socket.socket,
        path: str,
        headers: Mapping[str, str],
        head: bytes,
        body: bytes,
    ) -> None:
        name = path.split("/")[1]
        self._seen[name, body] += 1
        request = Request(path, headers, head + b"\r\n\r\n" + body, self._seen[name, body])
        self.requests.append(request)
        self._respond[name](connection, request)


def fault_table() -> str:
    """Write the table of docs/reliability.md."""
    lines = [
        "| fault | the endpoint sends | the answer is | exit code |",
        "| --- | --- | --- | --- |",
    ]
    lines += [
        f"| `{fault.name}` | {fault.text} | {fault.outcome} | {fault.code} |" for fault in FAULTS
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(fault_table(), end="")
