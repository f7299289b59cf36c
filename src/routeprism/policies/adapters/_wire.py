"""The four verbs that a memory outside this process speaks: reset, add, search, dump.

A reply that cannot be used is the service's failure on this route, and says which request it was.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from routeprism.errors import RouteError
from routeprism.policies._contracts import Block, Event, JsonValue
from routeprism.policies.adapters._systems import AdaptedMemory
from routeprism.records import Record
from routeprism.redaction import Redactor

LARGEST = 64 * 2**20
"""The largest reply in bytes."""
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")

Call = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
"""(verb, its content) → the reply."""

EVENT_KINDS = ("add", "merge", "overwrite", "evict", "skip")


def build_remote(
    call: Call, arrivals: Sequence[Record], end: Callable[[], object], redactor: Redactor
) -> AdaptedMemory:
    """Send every arrival; give the memory that searches and dumps read."""
    arrived = frozenset(record.id for record in arrivals)
    log: list[Event] = []
    try:
        call("reset", {})
        for at, record in enumerate(arrivals):
            reply = call("add", {"record": describe_record(record)})
            log.extend(read_events(reply, record, at, arrived, redactor))
        # A dump that cannot be used is found before any question is asked.
        read_items(call("dump", {}), "dump", arrived, redactor)
    except BaseException:
        end()
        raise
    return AdaptedMemory(
        list_blocks=lambda: read_items(call("dump", {}), "dump", arrived, redactor),
        search=lambda query: read_items(
            call("search", {"query": query}), "search", arrived, redactor
        ),
        log=tuple(log),
        end=end,
        arrivals=arrivals,
        read_state=lambda: read_state(call("dump", {}), arrived, redactor),
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


def read_items(
    reply: Mapping[str, Any], verb: str, arrived: frozenset[str], redactor: Redactor
) -> tuple[Block, ...]:
    items = reply.get("items")
    if not isinstance(items, list):
        raise RouteError(f"{verb}: expected a list 'items' but got {type(items).__name__}")
    return tuple(
        _block(item, f"{verb}: item {at}", arrived, redactor) for at, item in enumerate(items)
    )


def _block(item: Any, where: str, arrived: frozenset[str], redactor: Redactor) -> Block:
    text = item.get("text") if isinstance(item, Mapping) else None
    if not isinstance(text, str):
        quoted = _quote(item, redactor)
        raise RouteError(f"{where}: expected an object with 'text' but got {quoted}")
    kind = item.get("kind") or "item"
    if not isinstance(kind, str):
        raise RouteError(f"{where}: expected a text 'kind' but got {type(kind).__name__}")
    sources = item.get("sources")
    if not isinstance(sources, list) or not sources:
        raise RouteError(f"{where} names no sources: every item lists the ids it came from")
    for source in sources:
        if not isinstance(source, str) or source not in arrived:
            quoted = _quote(source, redactor)
            raise RouteError(f"{where} names the source {quoted}, which never arrived")
    return Block(redactor.redact(kind), redactor.redact(text), frozenset(sources))


def read_state(reply: Mapping[str, Any], arrived: frozenset[str], redactor: Redactor) -> JsonValue:
    """Return the state that a dump declares, else its items as they are."""
    read_items(reply, "dump", arrived, redactor)  # refuse a dump that cannot be used
    declared: JsonValue = reply.get("state")
    state: JsonValue = declared if declared is not None else reply["items"]
    try:
        json.dumps(state)
    except (RecursionError, ValueError):
        raise RouteError("dump: the state is nested too deeply") from None
    return state


def read_events(
    reply: Mapping[str, Any], record: Record, at: int, arrived: frozenset[str], redactor: Redactor
) -> list[Event]:
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
