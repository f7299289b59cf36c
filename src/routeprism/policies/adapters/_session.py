"""One build of a memory behind an existing API, with the requests of a profile."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from routeprism.errors import RouteError
from routeprism.policies._contracts import Block
from routeprism.policies._lineage import Lineage
from routeprism.policies.adapters._exchange import Transport
from routeprism.policies.adapters._profile import ItemRequest, Profile, ProfileRequest, Wait
from routeprism.policies.adapters._settling import settle
from routeprism.policies.adapters._systems import AdaptedMemory
from routeprism.policies.adapters._templates import (
    PointerError,
    fill_path,
    fill_pointer,
    fill_value,
    resolve_pointer,
)
from routeprism.policies.adapters._wire import decode_json
from routeprism.records import Record
from routeprism.redaction import Redactor

__all__ = ["Item", "ServiceSession", "build_session"]

_MOST_PAGES = 10_000
_SUCCESS = frozenset(range(200, 300))


@dataclass(frozen=True, slots=True)
class Item:
    """What a service lists or finds."""

    key: str
    text: str
    sources: tuple[str, ...] | None = None
    """The records that the service reports; None if it reports none."""
    time: str = ""


class ServiceSession:
    """Sends the requests of a profile, under a name that no other build has."""

    def __init__(self, profile: Profile, timeout: float) -> None:
        headers, secrets = profile.resolve_headers()
        self.profile = profile
        self.redactor = Redactor.configured(*secrets)
        self.transport = Transport(profile.url, timeout, headers, self.redactor)
        self.values: dict[str, Any] = {"memory": f"routeprism-{uuid.uuid4().hex}"}
        self.lineage = Lineage(profile.kind, redactor=self.redactor)
        self.record_ids: dict[str, str] = {}
        """What the service calls a record, or its own id → the record's id."""

    def send(self, step: ProfileRequest, more: Mapping[str, Any]) -> Any:
        """Send a request; give its reply, and keep what it captures."""
        values = {**self.values, **more}
        content, kind = _encode_body(step, values)
        path = fill_path(step.path, values, step.name)
        raw = self.transport.send(
            step.name,
            step.method,
            path,
            content,
            accepted=_SUCCESS | {*step.accept},
            headers={"Content-Type": kind, "Accept": "application/json"},
        )
        reply = decode_json(raw, step.name, self.redactor) if raw.strip() else None
        for name, pointer in step.capture.items():
            self.values[name] = self._resolve(reply, pointer, f"{step.name}: capture {name}")
        return reply

    def _resolve(self, document: Any, pointer: str, role: str) -> Any:
        return resolve_pointer(document, pointer, role, self.redactor)

    # --- the steps of a build ------------------------------------------------------------------

    def open(self) -> None:
        """Begin with an empty memory; refuse one that is not."""
        if self.profile.isolation == "reset":
            self.reset()
        if self.profile.open is not None:
            self.send(self.profile.open, {})
        if items := self.dump():
            raise RouteError(
                f"list: {len(items)} items are there before any record was added, so builds are "
                f"not separate. Use {{memory}} in every path or body, or a table [reset]"
            )

    def add(self, record: Record) -> None:
        """Add a record, wait until it is ingested, and observe what it did."""
        before = self._texts()
        self.write(record)
        self.lineage.observe(record, self.wait(before, record), before=before)

    def write(self, record: Record) -> None:
        """Send a record."""
        values = show_record(record)
        self.record_ids[record.id] = record.id
        reply = self.send(self.profile.add, values)
        if self.profile.add.id is not None:
            identity = self._resolve(reply, self.profile.add.id, "add: id")
            for name in identity if isinstance(identity, list) else [identity]:
                self.record_ids[str(name)] = record.id
        if self.profile.commit is not None:
            self.send(self.profile.commit, values)

    def wait(self, before: Mapping[str, str], record: Record) -> Mapping[str, str]:
        """Wait until ingestion has ended; give all items."""
        wait = self.profile.wait
        if wait is None:
            return self._texts()
        if wait.step is not None:
            self._poll(wait, wait.step, show_record(record))
            return self._texts()
        return settle(
            self._texts,
            before=before,
            interval=wait.interval,
            patience=wait.patience,
            limit=wait.limit,
        )

    def _poll(self, wait: Wait, step: ProfileRequest, values: Mapping[str, Any]) -> None:
        until = time.monotonic() + wait.limit
        while True:
            reply = self.send(step, values)
            value = self._resolve(reply, fill_pointer(wait.done, self.values), "wait: done")
            if value in wait.values:
                return
            quoted = self.redactor.redact_line(repr(value))
            if value in wait.failed:
                raise RouteError(f"wait: ingestion failed: '{wait.done}' is {quoted}")
            if time.monotonic() >= until:
                expected = ", ".join(map(repr, wait.values))
                raise RouteError(
                    f"wait: '{wait.done}' is still {quoted} after {wait.limit:g} seconds, and not "
                    f"{expected}"
                )
            time.sleep(wait.interval)

    def reset(self) -> None:
        """Let the service forget the memory, if the profile has a request for it."""
        if self.profile.reset is not None:
            self.send(self.profile.reset, {})

    # --- items ---------------------------------------------------------------------------------

    def dump(self) -> list[Item]:
        """Read all items, page by page, the oldest first."""
        listing = self.profile.list
        items: list[Item] = []
        last: list[Any] = []
        cursor: Any = None
        for number in range(_MOST_PAGES):
            place = {
                "page": listing.first + number,
                "offset": listing.size * number,
                "cursor": cursor,
                "size": listing.size,
            }
            reply = self.send(listing.step, place)
            raw = self._find_list(reply, listing)
            if listing.pages and raw and raw == last:
                raise RouteError(
                    f"list: page {number + 1} repeats page {number}; is {{{listing.pages}}} what "
                    f"this service expects?"
                )
            last = raw
            page = (self._read_item(raw_item, listing, at) for at, raw_item in enumerate(raw))
            items.extend(item for item in page if item is not None)
            cursor = self._find_cursor(reply, raw, listing)
            if not raw or not self._has_more(listing, raw, cursor):
                break
        if listing.id is not None:  # what is written between two pages moves items to the next
            items = [*{item.key: item for item in items}.values()]
        return sorted(_name_apart(items), key=lambda item: (item.time, item.text))

    def _has_more(self, listing: ItemRequest, raw: Sequence[Any], cursor: Any) -> bool:
        if listing.pages == "cursor":
            if listing.next is None and len(raw) < listing.size:
                return False
            return cursor not in (None, "", False)
        return bool(listing.pages) and len(raw) >= listing.size

    def _find_cursor(self, reply: Any, raw: Sequence[Any], listing: ItemRequest) -> Any:
        if listing.pages != "cursor":
            return None
        if listing.next is not None:
            with suppress(PointerError):  # no key for a next page means that there is none
                return self._resolve(reply, listing.next, "list: next")
            return None
        return self._resolve(raw[-1], listing.id or "", "list: id") if raw else None

    def _find_list(self, reply: Any, listing: ItemRequest) -> list[Any]:
        raw = self._resolve(reply, listing.items, f"{listing.step.name}: items")
        if raw is None:
            return []
        if not isinstance(raw, list):
            raise PointerError(
                f"{listing.step.name}: '{listing.items}' leads to {type(raw).__name__}, and not "
                f"to a list of items"
            )
        return raw

    def _read_item(self, raw: Any, listing: ItemRequest, at: int) -> Item | None:
        """Read an item with its pointers; None if it is of a kind that is left out."""
        role = f"{listing.step.name}: item {at}"
        for pointer, expected in listing.only.items():
            with suppress(PointerError):
                if self._resolve(raw, pointer, role) == expected:
                    continue
            return None
        text = self._resolve(raw, listing.text, f"{role}: text")
        if not isinstance(text, str):
            raise PointerError(
                f"{role}: '{listing.text}' leads to {type(text).__name__}, and not to a text"
            )
        key = "" if listing.id is None else str(self._resolve(raw, listing.id, f"{role}: id"))
        moment = ""
        if listing.time is not None:
            moment = _sortable(self._resolve(raw, listing.time, f"{role}: time"))
        return Item(key, text, self._read_sources(raw, listing, role), moment)

    def _read_sources(self, raw: Any, listing: ItemRequest, role: str) -> tuple[str, ...] | None:
        if listing.sources is None:
            return None
        names = self._resolve(raw, listing.sources, f"{role}: sources")
        sources = []
        for name in names if isinstance(names, list) else [names]:
            record = self.record_ids.get(str(name))
            if record is None:
                display = self.redactor.redact_line(repr(name))
                raise RouteError(f"{role} names the source {display}, which never arrived")
            sources.append(record)
        if not sources:
            raise RouteError(f"{role} names no sources")
        return tuple(sources)

    def _texts(self) -> Mapping[str, str]:
        return {item.key: item.text for item in self.dump()}

    def list_blocks(self) -> list[Block]:
        """Return all items with their sources; refuse items that were not seen being written."""
        items = {item.key: item for item in self.dump()}
        if self.profile.list.sources is not None:
            return [self._make_reported(item) for item in items.values()]
        observed = {key: block.text for key, block in self.lineage.items.items()}
        texts = {key: item.text for key, item in items.items()}
        if changed := sorted(
            key for key in {*observed, *texts} if observed.get(key) != texts.get(key)
        ):
            raise RouteError(
                f"list: {len(changed)} items changed after the last record had been ingested. "
                f"Raise [wait] patience, or does searching write?"
            )
        return self.lineage.blocks(texts)

    def search(self, query: str) -> list[Block]:
        """Search for a question's text."""
        listing = self.profile.search
        reply = self.send(listing.step, {"query": query, "size": listing.size})
        items = (
            self._read_item(raw_item, listing, at)
            for at, raw_item in enumerate(self._find_list(reply, listing))
        )
        return [
            self._make_reported(item) if item.sources else self.lineage.block(item.key, item.text)
            for item in items
            if item is not None
        ]

    def _make_reported(self, item: Item) -> Block:
        text = self.redactor.redact(item.text)
        return Block(self.profile.kind, text, frozenset(item.sources or ()))


def build_session(profile: Profile, arrivals: Sequence[Record], timeout: float) -> AdaptedMemory:
    """Add every arrival to a new memory behind the API."""
    session = ServiceSession(profile, timeout)

    def end() -> None:
        with suppress(RouteError):  # a service that is gone has nothing left to forget
            session.reset()

    try:
        session.open()
        for record in arrivals:
            session.add(record)
        session.list_blocks()  # a list that cannot be used is found before any question is asked
    except BaseException:
        end()
        raise
    return AdaptedMemory(
        list_blocks=session.list_blocks,
        search=session.search,
        log=tuple(session.lineage.events),
        end=end,
        counters=session.lineage.counts(),
        arrivals=arrivals,
    )


def show_record(record: Record) -> Mapping[str, Any]:
    """Return what a request may contain of a record: not its source position."""
    return {
        "id": record.id,
        "text": record.text,
        "user_text": record.user_text,
        "time": record.timestamp,
        "messages": [{"role": turn.role, "content": turn.text} for turn in record.turns]
        or [{"role": "user", "content": record.text}],
        "turns": [{"role": turn.role, "text": turn.text} for turn in record.turns],
    }


def _sortable(value: Any) -> str:
    """Write a time so that it sorts: numbers with leading zeros, texts as they are."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e18:
        return f"{value:030.9f}"
    return "" if value is None else str(value)


def _name_apart(items: Sequence[Item]) -> list[Item]:
    """Give items without an id their text as a key, and number those with the same key."""
    counts: dict[str, int] = {}
    names = []
    for item in items:
        key = item.key or item.text
        counts[key] = number = counts.get(key, 0) + 1
        name = key if number == 1 else f"{key} ({number})"
        names.append(Item(name, item.text, item.sources, item.time))
    return names


def _encode_body(step: ProfileRequest, values: Mapping[str, Any]) -> tuple[bytes | None, str]:
    """Encode a body as JSON, or as a form with files."""
    if not step.form and not step.files:
        body = None if step.body is None else json.dumps(fill_value(step.body, values)).encode()
        return body, "application/json"
    parts = [(name, "", fill_value(text, values)) for name, text in step.form.items()]
    parts += [(name, "record.txt", fill_value(text, values)) for name, text in step.files.items()]
    boundary = uuid.uuid4().hex
    lines: list[bytes] = []
    for name, file, value in parts:
        if value is None:
            continue
        text = value if isinstance(value, str) else json.dumps(value)
        disposition = (
            f'; filename="{file}"\r\nContent-Type: text/plain; charset=utf-8' if file else ""
        )
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"{disposition}\r\n\r\n'
        lines += [head.encode(), text.encode(errors="replace"), b"\r\n"]
    lines.append(f"--{boundary}--\r\n".encode())
    return b"".join(lines), f"multipart/form-data; boundary={boundary}"
