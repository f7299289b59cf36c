"""One build of a memory behind an existing API, with the requests of a profile."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urljoin

from routeprism.errors import InapplicableError, RouteError
from routeprism.policies._contracts import Block, JsonValue
from routeprism.policies._lineage import Lineage
from routeprism.policies.adapters._profile import ItemRequest, Profile, ProfileRequest, Wait
from routeprism.policies.adapters._systems import AdaptedMemory, describe_blocks
from routeprism.policies.adapters._templates import (
    PointerError,
    describe_value,
    fill_path,
    fill_pointer,
    fill_value,
    resolve_pointer,
)
from routeprism.policies.adapters._wire import ServiceError, Transport, decode_json
from routeprism.printing import pluralise
from routeprism.records import Record
from routeprism.redaction import Redactor
from routeprism.transport import RETRIES, Connections

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

    def __init__(
        self,
        profile: Profile,
        timeout: float,
        connections: Connections,
        *,
        retries: int = RETRIES,
        discard: bool = False,
        variables: str = "",
    ) -> None:
        headers, secrets = profile.resolve_headers(variables)
        self.profile, self._discard = profile, discard
        self.redactor = Redactor.configured(*secrets)
        self.transport = Transport(
            profile.url, timeout, headers, self.redactor, connections, retries
        )
        self.values: dict[str, Any] = {"memory": f"routeprism-{uuid.uuid4().hex}"}
        self.lineage = Lineage(profile.kind, redactor=self.redactor)
        self.record_ids: dict[str, str] = {}
        """What the service calls a record, or its own id → the record's id."""

    def send(
        self, step: ProfileRequest, more: Mapping[str, Any], *, retries: int | None = None
    ) -> Any:
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
            safe=step.idempotent,
            retries=retries,
        )
        reply = decode_json(raw, step.name, self.redactor) if raw.strip() else None
        for name, pointer in step.capture.items():
            self.values[name] = self._resolve(reply, pointer, step.name, f"capture {name}")
        return reply

    def _resolve(self, document: Any, pointer: str, action: str, place: str) -> Any:
        return resolve_pointer(document, pointer, self.redactor, action=action, place=place)

    # --- the steps of a build ------------------------------------------------------------------

    def open(self) -> None:
        """Begin with an empty memory, after `clear`; refuse one that is not."""
        if self.profile.open is not None:
            self.send(self.profile.open, {})
        if items := self.dump():
            raise RouteError(
                f"list: it has {pluralise(len(items), 'item')} before any record was added, so "
                f"builds are not separate. Use {{memory}} in every path or body, or a table [reset]"
            )

    def clear(self) -> None:
        """Empty a memory that all builds share, unless it contains what may be someone's data."""
        if self.profile.isolation != "reset":
            return
        if not self._discard and (items := self.dump()):
            raise refuse_to_delete(len(items))
        self.reset()

    def add(self, record: Record) -> None:
        """Add a record, wait until it is ingested, and observe what it did."""
        before = self._texts()
        self.write(record)
        self.lineage.observe(record, self.wait(before, (record,)), before=before)

    def write(self, record: Record, number: int = 0) -> None:
        """Send a record."""
        values = show_record(record)
        self.record_ids[record.id] = record.id
        reply = self.send(self.profile.add, values)
        if self.profile.add.id is not None:
            identity = self._resolve(reply, self.profile.add.id, "add", "id")
            for name in identity if isinstance(identity, list) else [identity]:
                self.record_ids[str(name)] = record.id
        if self.profile.commit is not None:
            self.send(self.profile.commit, values)

    def write_all(self, records: Sequence[Record]) -> None:
        """Send several records in one request; not applicable if the profile has none."""
        step = self.profile.bulk
        if step is None:
            raise InapplicableError(f"{self.profile.file} has no table [bulk]")
        self.record_ids.update((record.id, record.id) for record in records)
        values = [
            fill_value(step.record, {**self.values, **show_record(record)}) for record in records
        ]
        self.send(step, {"records": values})
        if self.profile.commit is not None:
            for record in records:
                self.send(self.profile.commit, show_record(record))

    def wait(self, before: Mapping[str, str], records: Sequence[Record]) -> Mapping[str, str]:
        """Wait until these records are ingested; give all items."""
        wait = self.profile.wait
        if wait is None:
            return self._texts()
        if wait.step is None:
            return wait.settle(self._texts, before)
        for record in records:
            self._poll(wait, wait.step, show_record(record))
        return self._texts()

    def _poll(self, wait: Wait, step: ProfileRequest, values: Mapping[str, Any]) -> None:
        until = time.monotonic() + wait.limit
        while True:
            reply = self.send(step, values)
            value = self._resolve(reply, fill_pointer(wait.done, self.values), "wait", "done")
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

    def reset(self, *, retries: int | None = None) -> None:
        """Let the service forget the memory, if the profile has a request for it."""
        step = self.profile.reset
        if step is None:
            return
        names = {*step.placeholders()}
        if not names & {"item", "items"}:
            self.send(step, {}, retries=retries)
        elif keys := [item.key for item in self.dump()]:
            for value in keys if "item" in names else [keys]:
                self.send(step, {"item": value, "items": value}, retries=retries)

    def restart(self) -> None:
        """Refuse: the service is not a process of RoutePrism's."""
        raise InapplicableError("RoutePrism cannot restart a service that is running already")

    def end(self) -> None:
        """Let the service forget the memory, unless it is gone."""
        with suppress(RouteError):
            self.reset(retries=0)

    # --- items ---------------------------------------------------------------------------------

    def dump(self) -> list[Item]:
        """Read all items, page by page, the oldest first."""
        listing = self.profile.list
        items: list[Item] = []
        for raw in self._read_pages(listing):
            page = (self._read_item(raw_item, listing, at) for at, raw_item in enumerate(raw))
            items.extend(item for item in page if item is not None)
        if listing.id is not None:  # what is written between two pages moves items to the next
            items = [*{item.key: item for item in items}.values()]
        return sorted(_name_apart(items), key=lambda item: (item.time, item.text))

    def _read_pages(self, listing: ItemRequest) -> Iterator[list[Any]]:
        """Read page after page.

        Only an empty page, or the service's word, ends the list: a page that is shorter than
        `size` may be all that the service gives at once.
        """
        last: list[Any] = []
        cursor: Any = None
        offset = 0
        step = listing.step
        for number in range(_MOST_PAGES):
            place = {
                "page": listing.first + number,
                "offset": offset,
                "cursor": cursor,
                "size": listing.size,
            }
            try:
                reply = self.send(step, place)
            except ServiceError as error:
                if number and listing.pages == "page" and error.status == 404:
                    return  # some services have no page after the last
                raise
            raw = self._find_list(reply, listing)
            if listing.pages and raw and raw == last:
                if len(raw) < listing.size:
                    return  # some services give the last page again
                raise RouteError(
                    f"list: page {number + 1} repeats page {number}; is {{{listing.pages}}} what "
                    f"this service expects?"
                )
            yield raw
            last = raw
            offset += len(raw)
            cursor = self._find_cursor(reply, raw, listing)
            if not listing.pages or not raw:
                return
            if listing.pages in ("cursor", "link") and cursor in (None, "", False):
                return
            if listing.pages == "link":
                step = replace(step, path=self._follow_link(step, str(cursor)))

    def _follow_link(self, step: ProfileRequest, link: str) -> str:
        """Return the path of the next page as a template; refuse one on a different address."""
        base = self.profile.url.rstrip("/")
        target = urljoin(base + fill_path(step.path, self.values, step.name), link)
        if not target.startswith(f"{base}/"):
            display = self.redactor.redact_line(target)
            raise RouteError(f"list: the next page is at {display}, which is not below {base}")
        return target.removeprefix(base).replace("{", "{{").replace("}", "}}")

    def _find_cursor(self, reply: Any, raw: Sequence[Any], listing: ItemRequest) -> Any:
        if listing.pages not in ("cursor", "link"):
            return None
        if listing.next is not None:
            with suppress(PointerError):  # no key for a next page means that there is none
                return self._resolve(reply, listing.next, "list", "next")
            return None
        return self._resolve(raw[-1], listing.id or "", "list", "id") if raw else None

    def _find_list(self, reply: Any, listing: ItemRequest) -> list[Any]:
        action = listing.step.name
        raw = self._resolve(reply, listing.items, action, "items")
        if raw is None:
            return []
        if not isinstance(raw, list):
            raise self._make_mismatch(raw, listing.items, action, "items", "a list of items")
        return raw

    def _make_mismatch(
        self, value: Any, pointer: str, action: str, place: str, expected: str
    ) -> PointerError:
        """Make the error about a pointer that leads to a value of a different kind."""
        display = self.redactor.redact_line(describe_value(value))
        message = f"{action}: {place}: '{pointer}' leads to {display}, and not to {expected}"
        return PointerError(message, action)

    def _read_item(self, raw: Any, listing: ItemRequest, at: int) -> Item | None:
        """Read an item with its pointers; None if it is of a kind that is left out."""
        action = listing.step.name
        for pointer, expected in listing.only.items():
            with suppress(PointerError):
                if self._resolve(raw, pointer, action, f"item {at}: only") == expected:
                    continue
            return None
        text = self._resolve(raw, listing.text, action, f"item {at}: text")
        if not isinstance(text, str):
            raise self._make_mismatch(text, listing.text, action, f"item {at}: text", "a text")
        key = ""
        if listing.id is not None:
            key = str(self._resolve(raw, listing.id, action, f"item {at}: id"))
        moment = ""
        if listing.time is not None:
            moment = _sortable(self._resolve(raw, listing.time, action, f"item {at}: time"))
        return Item(key, text, self._read_sources(raw, listing, at), moment)

    def _read_sources(self, raw: Any, listing: ItemRequest, at: int) -> tuple[str, ...] | None:
        if listing.sources is None:
            return None
        action = listing.step.name
        names = self._resolve(raw, listing.sources, action, f"item {at}: sources")
        sources = []
        for name in names if isinstance(names, list) else [names]:
            record = self.record_ids.get(str(name))
            if record is None:
                display = self.redactor.redact_line(repr(name))
                raise RouteError(
                    f"{action}: item {at} names the source {display}, which never arrived"
                ).naming(str(name))
            sources.append(record)
        if not sources:
            raise RouteError(f"{action}: item {at} names no sources")
        return tuple(sources)

    def _texts(self) -> Mapping[str, str]:
        return {item.key: item.text for item in self.dump()}

    def read_blocks(self) -> list[Block]:
        """Return all items with their sources; those that came late are recorded as such."""
        if self.profile.list.sources is None:
            self.lineage.check(self._texts())
        return self.list_blocks()

    def describe_state(self, blocks: Sequence[Block]) -> JsonValue:
        """Return the same state, whichever procedure the memory was built by."""
        return describe_blocks(blocks)

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
                f"list: {pluralise(len(changed), 'item')} changed after the last record had been "
                f"ingested. {self.profile.advise_waiting()}; or does searching write?"
            )
        return self.lineage.blocks(texts)

    def search(self, query: str) -> list[Block]:
        """Search for a question's text; refuse hits that the list does not contain."""
        listing = self.profile.search
        reply = self.send(listing.step, {"query": query, "size": listing.size})
        items = (
            self._read_item(raw_item, listing, at)
            for at, raw_item in enumerate(self._find_list(reply, listing))
        )
        blocks = [
            self._make_reported(item) if item.sources else self.lineage.block(item.key, item.text)
            for item in items
            if item is not None
        ]
        if unlisted := [block.text for block in blocks if not block.sources]:
            raise RouteError(
                f"search: {len(unlisted)} of {len(blocks)} hits are not among the listed items, "
                f"neither by id nor by text, so their sources are unknown. Does [list] read every "
                f"page? If the service stores in the background: {self.profile.advise_waiting()}. "
                f"If these hits are of a different kind, leave them out with 'only'"
            ).naming(text=unlisted[0])
        return blocks

    def _make_reported(self, item: Item) -> Block:
        text = self.redactor.redact(item.text)
        return Block(self.profile.kind, text, frozenset(item.sources or ()))


def refuse_to_delete(number: int) -> RouteError:
    """Make the error about items that RoutePrism did not add, and a reset would delete."""
    return RouteError(
        f"reset: the memory contains {pluralise(number, 'item')} before any record was added, and "
        f"a reset would delete them. Use a memory that is empty. If they may be deleted, for "
        f"example because an interrupted audit left them, add discard=true to the policy"
    )


def build_session(session: ServiceSession, arrivals: Sequence[Record]) -> AdaptedMemory:
    """Add every arrival to a new memory behind the API."""
    session.clear()
    try:
        session.open()
        for record in arrivals:
            session.add(record)
        session.list_blocks()  # a list that cannot be used is found before any question is asked
    except BaseException:
        session.end()
        raise
    return AdaptedMemory(
        list_blocks=session.list_blocks,
        search=session.search,
        log=tuple(session.lineage.events),
        end=session.end,
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
