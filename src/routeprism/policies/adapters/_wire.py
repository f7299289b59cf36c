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
from typing import Any, get_args
from urllib.parse import urljoin, urlsplit

from routeprism.errors import RouteError, RoutePrismError, SpecError
from routeprism.policies._contracts import Block, Event, EventKind, JsonValue
from routeprism.policies.adapters._systems import count_verbatim
from routeprism.records import Record
from routeprism.redaction import Redactor, hide_credentials, is_web_address
from routeprism.transport import (
    RETRIES,
    AttemptError,
    Connections,
    HttpReply,
    HttpRequest,
    Repeat,
    refuse_status,
)

LARGEST = 64 * 2**20
"""The largest reply in bytes."""
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")

Call = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
"""(verb, its content) → the reply."""

EVENT_KINDS: tuple[EventKind, ...] = get_args(EventKind)


OUTSIDE_LIMIT = 3600.0
"""Seconds that overlapping writes to a system outside this process may take.

The setting `timeout` limits each request, which is repeated only so often.
"""


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
        self,
        url: str,
        timeout: float,
        headers: Mapping[str, str],
        redactor: Redactor,
        connections: Connections | None = None,
        retries: int = RETRIES,
    ) -> None:
        self.url, self.timeout, self.redactor = url, timeout, redactor
        self._headers, self._retries = headers, retries
        self._connections = connections or Connections()

    def send(
        self,
        action: str,
        method: str,
        path: str,
        body: bytes | None,
        *,
        accepted: Collection[int] = (200,),
        headers: Mapping[str, str] | None = None,
        safe: bool = False,
        retries: int | None = None,
    ) -> bytes:
        """Send a request, and give the content of its reply; `action` names it in errors.

        A request that is `safe` is repeated although the service may have performed it.
        """
        base = urlsplit(self.url)
        url = f"{base.scheme}://{base.netloc}{base.path.rstrip('/')}{path}"
        request = HttpRequest(url, method, body, {**self._headers, **(headers or {})}, safe)

        def read(reply: HttpReply) -> bytes:
            if reply.status not in accepted:
                raise refuse_status(reply)
            return reply.content

        try:
            return self._connections.send(
                request,
                read,
                timeout=self.timeout,
                largest=LARGEST,
                retries=self._retries if retries is None else retries,
            )
        except AttemptError as error:
            repeated = f" (after {error.attempts} attempts)" if error.attempts > 1 else ""
            status = None if error.reply is None else error.reply.status
            if error.repeat is Repeat.IF_SAFE and not safe:
                repeated = (
                    " (not repeated, because the service may have performed it; if that does no "
                    "harm, declare it idempotent)"
                )
            message = f"{action}: {self._explain(error)}{repeated}"
            raise ServiceError(message, action, status) from None

    def _explain(self, error: AttemptError) -> str:
        """Describe a failure; a redirection is named, and not followed."""
        if error.kind == "timeout":
            return f"no reply within {self.timeout:g} seconds"
        reply = error.reply
        if reply is None:
            return f"{self.url} cannot be asked: {self.redactor.redact_line(error.detail)}"
        if 300 <= reply.status < 400 and (target := reply.headers.get("location", "")):
            with suppress(ValueError):
                target = urljoin(self.url, target)
            return (
                f"the service redirects ({reply.status}) to {self.redactor.redact_line(target)}, "
                f"and RoutePrism follows no redirects; if that is the right address, pass it as url"
            )
        detail = reply.content.decode(errors="replace")
        return self.redactor.redact_line(
            f"the service replied {reply.status} {reply.reason}: {detail}"
        )


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


Fail = Callable[[str], RoutePrismError]
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
            raise fail(f"{place} names the source {quoted}, which never arrived").naming(
                str(source)
            )
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
            raise RouteError(f"add: an event is about {quoted}, which never arrived").naming(
                str(whom)
            )
        events.append(Event(kind, whom, record.id, at))
    return events


def _quote(value: Any, redactor: Redactor) -> str:
    """Quote a value briefly; redacted first, because a secret cut in two would not be found."""
    return redactor.redact(repr(value))[:80]


class RemoteMemory:
    """An open memory of a service or a program."""

    concurrent = True
    write_limit = OUTSIDE_LIMIT

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

    def add(self, record: Record) -> Mapping[str, Any]:
        """Add a record; several may be added at once."""
        with self._lock:
            at, self._number = self._number, self._number + 1
            self._arrived[record.id] = record
        reply = self._call("add", {"record": describe_record(record)})
        with self._lock:
            arrived = frozenset(self._arrived)
            self._log.extend(read_events(reply, record, at, arrived, self._redactor))
        return reply

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
