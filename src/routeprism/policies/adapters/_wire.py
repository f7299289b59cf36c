"""The four verbs that a memory outside of this process speaks: reset, add, search, dump.

A reply that cannot be used is the service's failure on this route, and says which request it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from routeprism.errors import RouteError
from routeprism.policies._contracts import Block, Event, JsonValue
from routeprism.policies.adapters._adapted import Adapted
from routeprism.records import Record

__all__ = ["EVENT_KINDS", "Call", "build_over", "decoded"]

Call = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
"""(verb, what goes with it) → the reply."""

EVENT_KINDS = ("add", "merge", "overwrite", "evict", "skip")


def build_over(call: Call, arrivals: Sequence[Record], end: Callable[[], object]) -> Adapted:
    """Send every arrival; give the memory that answers searches and dumps."""
    arrived = frozenset(record.id for record in arrivals)
    log: list[Event] = []
    try:
        call("reset", {})
        for at, record in enumerate(arrivals):
            reply = call("add", {"record": _shown(record)})
            log.extend(_events(reply, record, at, arrived))
        dumped = call("dump", {})
        _items(dumped, "dump", arrived)  # a dump that cannot be used is found before any question
    except BaseException:
        end()
        raise
    return Adapted(
        held=lambda: _items(call("dump", {}), "dump", arrived),
        search=lambda query: _items(call("search", {"query": query}), "search", arrived),
        log=tuple(log),
        end=end,
        inside=lambda: _state(call("dump", {})),
    )


def decoded(line: str | bytes, verb: str) -> Mapping[str, Any]:
    """Read a reply."""
    try:
        reply = json.loads(line)
    except ValueError:
        raise RouteError(f"{verb}: the reply is no JSON: {line!r:.120}") from None
    if not isinstance(reply, Mapping):
        raise RouteError(f"{verb}: expected a JSON object but got {type(reply).__name__}")
    if problem := reply.get("error"):
        raise RouteError(f"{verb}: {problem!s:.300}")
    return reply


def _shown(record: Record) -> Mapping[str, JsonValue]:
    """Write a record as a service sees it: without its source position."""
    return {
        "id": record.id,
        "text": record.text,
        "turns": [{"role": turn.role, "text": turn.text} for turn in record.turns],
        "timestamp": record.timestamp,
    }


def _items(reply: Mapping[str, Any], verb: str, arrived: frozenset[str]) -> tuple[Block, ...]:
    items = reply.get("items")
    if not isinstance(items, list):
        raise RouteError(f"{verb}: expected a list 'items' but got {type(items).__name__}")
    return tuple(_block(item, f"{verb}: item {at}", arrived) for at, item in enumerate(items))


def _block(item: Any, where: str, arrived: frozenset[str]) -> Block:
    text = item.get("text") if isinstance(item, Mapping) else None
    if not isinstance(text, str):
        raise RouteError(f"{where}: expected an object with 'text' but got {item!r:.80}")
    sources = item.get("sources")
    if not isinstance(sources, list) or not sources:
        raise RouteError(f"{where} names no sources: every item lists the ids it came from")
    for source in sources:
        if not isinstance(source, str) or source not in arrived:
            raise RouteError(f"{where} names the source {source!r:.80}, which never arrived")
    return Block(str(item.get("kind") or "item"), text, frozenset(sources))


def _state(reply: Mapping[str, Any]) -> JsonValue:
    """Give the state that a dump declares, else its items as they are."""
    declared: JsonValue = reply.get("state")
    return declared if declared is not None else reply["items"]


def _events(
    reply: Mapping[str, Any], record: Record, at: int, arrived: frozenset[str]
) -> list[Event]:
    listed = reply.get("events") or []
    if not isinstance(listed, list):
        raise RouteError(f"add: expected a list 'events' but got {type(listed).__name__}")
    found = []
    for event in listed:
        kind = event.get("kind") if isinstance(event, Mapping) else None
        if kind not in EVENT_KINDS:
            raise RouteError(
                f"add: expected an event of {', '.join(EVENT_KINDS)} but got {event!r:.80}"
            )
        whom = event.get("record", record.id)
        if whom not in arrived:
            raise RouteError(f"add: an event is about {whom!r:.80}, which never arrived")
        found.append(Event(kind, whom, record.id, at))
    return found
