"""How a memory outside this process is reached: HTTP requests, and four verbs in JSON.

The verbs are reset, add, search and dump. A reply that cannot be used is the service's failure on
this route, and says which request it was.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from socket import SHUT_RDWR
from typing import Any, get_args
from urllib.parse import urljoin, urlsplit

from routeprism.errors import RouteError, SpecError
from routeprism.policies._contracts import Block, Event, EventKind, JsonValue
from routeprism.policies.adapters._systems import count_verbatim
from routeprism.records import Record
from routeprism.redaction import Redactor, hide_credentials, is_web_address

LARGEST = 64 * 2**20
"""The largest reply in bytes."""
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")

Call = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
"""(verb, its content) → the reply."""

EVENT_KINDS: tuple[EventKind, ...] = get_args(EventKind)


class ServiceError(RouteError):
    """A request that the service refused, or that did not reach it."""

    def __init__(self, message: str, action: str, status: int | None = None) -> None:
        super().__init__(message)
        self.action = action
        """The name of the request."""
        self.status = status
        """The status of the refusal; None if the service cannot be reached."""


def check_service_address(url: str, instead: str) -> None:
    """Refuse what is not an address, and one with credentials; `instead` says where they go."""
    if not is_web_address(url):
        display = hide_credentials(url)
        raise SpecError(f"Expected an address such as http://127.0.0.1:8080 but got {display}")
    parts = urlsplit(url)
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
        """Send one request, and give the content of its reply; `action` names it in errors."""
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


def decode_json(line: str | bytes, verb: str, redactor: Redactor) -> Any:
    """Read the JSON of a reply; refuse what cannot be stored."""
    text = line.decode(errors="replace") if isinstance(line, bytes) else line
    try:
        reply = json.loads(line)
        if _ESCAPED_SURROGATE.search(text):
            json.dumps(reply, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise RouteError(f"{verb}: the reply contains half a surrogate pair") from None
    except RecursionError:
        raise RouteError(f"{verb}: the reply is nested too deeply") from None
    except ValueError:
        raise RouteError(
            f"{verb}: the reply is not JSON: {redactor.redact_line(text)!r:.120}"
        ) from None
    return reply


def decode_reply(line: str | bytes, verb: str, redactor: Redactor) -> Mapping[str, Any]:
    """Read a reply to one of the four verbs, a JSON object."""
    reply = decode_json(line, verb, redactor)
    if not isinstance(reply, Mapping):
        raise RouteError(f"{verb}: expected a JSON object but got {type(reply).__name__}")
    if problem := reply.get("error"):
        words = problem if isinstance(problem, str) else json.dumps(problem)
        raise RouteError(f"{verb}: {redactor.redact_line(words)}")
    return reply


def describe_record(record: Record) -> Mapping[str, JsonValue]:
    """Write a record as a service sees it: without its source position."""
    return {
        "id": record.id,
        "text": record.text,
        "turns": [{"role": turn.role, "text": turn.text} for turn in record.turns],
        "timestamp": record.timestamp,
    }


Fail = Callable[[str], Exception]
"""Makes the error about a problem in words."""


def read_blocks(
    items: Any, arrived: Collection[str], redactor: Redactor, fail: Fail
) -> tuple[Block, ...]:
    """Read a list of items with `text`, `sources` and, optionally, `kind`."""
    if not isinstance(items, list):
        raise fail(f"expected a list 'items' but got {type(items).__name__}")
    return tuple(
        _read_block(item, f"item {at}", arrived, redactor, fail) for at, item in enumerate(items)
    )


def _read_block(
    item: Any, place: str, arrived: Collection[str], redactor: Redactor, fail: Fail
) -> Block:
    text = item.get("text") if isinstance(item, Mapping) else None
    if not isinstance(text, str):
        raise fail(f"{place}: expected an object with 'text' but got {_quote(item, redactor)}")
    kind = item.get("kind") or "item"
    if not isinstance(kind, str):
        raise fail(f"{place}: expected a text 'kind' but got {type(kind).__name__}")
    sources = item.get("sources")
    if not isinstance(sources, list) or not sources:
        raise fail(f"{place} names no sources: every item lists the ids it came from")
    for source in sources:
        if not isinstance(source, str) or source not in arrived:
            quoted = _quote(source, redactor)
            raise fail(f"{place} names the source {quoted}, which never arrived")
    return Block(redactor.redact(kind), redactor.redact(text), frozenset(sources))


def read_events(
    reply: Mapping[str, Any], record: Record, at: int, arrived: frozenset[str], redactor: Redactor
) -> list[Event]:
    """Read what the reply to an add reports about records that arrived."""
    entries = reply.get("events") or []
    if not isinstance(entries, list):
        raise RouteError(f"add: expected a list 'events' but got {type(entries).__name__}")
    events = []
    for event in entries:
        kind = event.get("kind") if isinstance(event, Mapping) else None
        if kind not in EVENT_KINDS:
            quoted = _quote(event, redactor)
            raise RouteError(f"add: expected an event of {', '.join(EVENT_KINDS)} but got {quoted}")
        whom = event.get("record", record.id)
        if not isinstance(whom, str) or whom not in arrived:
            quoted = _quote(whom, redactor)
            raise RouteError(f"add: an event is about {quoted}, which never arrived")
        events.append(Event(kind, whom, record.id, at))
    return events


def _quote(value: Any, redactor: Redactor) -> str:
    """Quote a value briefly; redacted first, because a secret cut in two would not be found."""
    return redactor.redact(repr(value))[:80]


class RemoteMemory:
    """An open memory of a service or a program."""

    concurrent = True

    def __init__(
        self,
        call: Call,
        end: Callable[[], object],
        redactor: Redactor,
        settle: float = 0.0,
    ) -> None:
        self._call, self._end, self._redactor = call, end, redactor
        self._lock = threading.Lock()
        self._arrived: dict[str, Record] = {}
        """The records that replies may name, by id."""
        self._log: list[Event] = []
        self._number = 0
        self.settle = settle or None
        """Seconds within which the system stores what it was given; None if it does so at once."""
        call("reset", {})

    def add(self, record: Record) -> None:
        """Add a record; several may be added at once."""
        with self._lock:
            at, self._number = self._number, self._number + 1
            self._arrived[record.id] = record
        reply = self._call("add", {"record": describe_record(record)})
        with self._lock:
            arrived = frozenset(self._arrived)
            self._log.extend(read_events(reply, record, at, arrived, self._redactor))

    def add_many(self, records: Sequence[Record]) -> None:
        """Add several records in one request."""
        with self._lock:
            self._arrived.update((record.id, record) for record in records)
            self._number += len(records)
        self._call("add_many", {"records": [describe_record(record) for record in records]})

    def retained(self) -> list[str]:
        """Return the ids of the records that the items came from, once for each item."""
        return [id for block in self.list_blocks() for id in sorted(block.sources)]

    def list_blocks(self) -> Sequence[Block]:
        """Return all items."""
        return self._read_items(self._call("dump", {}), "dump")

    def state(self) -> JsonValue:
        """Return the declared state, otherwise the items as they are."""
        reply = self._call("dump", {})
        self._read_items(reply, "dump")  # refuse a dump that cannot be used
        declared: JsonValue = reply.get("state")
        state: JsonValue = declared if declared is not None else reply["items"]
        try:
            json.dumps(state)
        except (RecursionError, ValueError):
            raise RouteError("dump: the state is nested too deeply") from None
        return state

    def expose(self, query: str) -> Sequence[Block]:
        """Search for a question's text."""
        return self._read_items(self._call("search", {"query": query}), "search")

    def events(self) -> Sequence[Event]:
        """Return what each arrival did."""
        return tuple(sorted(self._log, key=lambda event: event.at))

    def counts(self) -> Mapping[str, int]:
        """Count the items, and those that repeat their records."""
        return count_verbatim(self.list_blocks(), list(self._arrived.values()))

    def close(self) -> None:
        """End the program, or let the service forget the memory."""
        self._end()

    def _read_items(self, reply: Mapping[str, Any], verb: str) -> tuple[Block, ...]:
        def fail(problem: str) -> RouteError:
            return RouteError(f"{verb}: {problem}")

        return read_blocks(reply.get("items"), frozenset(self._arrived), self._redactor, fail)
