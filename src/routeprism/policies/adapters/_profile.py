"""The TOML file that maps a memory onto the requests of an existing API."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar

from routeprism.errors import InputError, SpecError, nearest
from routeprism.files import read_input
from routeprism.policies._lineage import settle
from routeprism.policies.adapters._templates import (
    LITERAL_ADVICE,
    VARIABLE,
    fill_variables,
    list_placeholders,
    parse_toml,
)
from routeprism.policies.adapters._wire import check_service_address
from routeprism.redaction import names_secret

T = TypeVar("T")
Pages = Literal["", "page", "offset", "cursor", "link"]

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_RECORD = ("id", "text", "user_text", "time", "messages", "turns")
"""What a request that adds a record may contain of it."""
_REQUEST_KEYS = ("request", "body", "form", "files", "accept")
_ITEM_KEYS = ("items", "id", "text", "sources", "time", "only")
_KEYS: Mapping[str, tuple[str, ...]] = {
    "open": (*_REQUEST_KEYS, "capture"),
    "add": (*_REQUEST_KEYS, "capture", "id"),
    "bulk": (*_REQUEST_KEYS, "record"),
    "commit": (*_REQUEST_KEYS, "capture"),
    "wait": (*_REQUEST_KEYS, "done", "values", "failed", "interval", "patience", "limit"),
    "list": (*_REQUEST_KEYS, *_ITEM_KEYS, "pages", "size", "first", "next"),
    "search": (*_REQUEST_KEYS, *_ITEM_KEYS, "size"),
    "reset": _REQUEST_KEYS,
}


@dataclass(frozen=True, slots=True)
class ProfileRequest:
    """One request of a profile."""

    name: str
    method: str
    path: str
    body: Any = None
    form: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    accept: tuple[int, ...] = ()
    """Statuses that do not count as failures, in addition to 200 to 299."""
    capture: Mapping[str, str] = field(default_factory=dict)
    """Placeholder → pointer to its value in the reply."""
    id: str | None = None
    """Pointer to the id by which items name the added record as their source."""
    record: Any = None
    """Template of each record in a request that adds several."""

    def placeholders(self) -> Iterator[str]:
        """Yield the placeholders of the request."""
        for part in (self.path, self.body, dict(self.form), dict(self.files), self.record):
            yield from list_placeholders(part)


@dataclass(frozen=True, slots=True)
class ItemRequest:
    """A request whose reply contains items."""

    step: ProfileRequest
    items: str
    """Pointer to the list of items."""
    text: str
    """Pointer inside an item to its text; empty if the item is a text."""
    id: str | None = None
    """Pointer inside an item to its id; None if it has none."""
    sources: str | None = None
    """Pointer inside an item to the records it came from; None if they are observed."""
    time: str | None = None
    """Pointer inside an item to its time, by which items are ordered."""
    only: Mapping[str, Any] = field(default_factory=dict)
    """Pointer inside an item → the value that it must have."""
    pages: Pages = ""
    size: int = 100
    first: int = 1
    next: str | None = None
    """Pointer to the next cursor; None for the id of the last item."""


@dataclass(frozen=True, slots=True)
class Wait:
    """How to find out that ingestion has ended."""

    step: ProfileRequest | None = None
    """The request that is repeated until it is done; None to compare dumps."""
    done: str = ""
    values: tuple[Any, ...] = ()
    failed: tuple[Any, ...] = ()
    interval: float = 0.1
    patience: float = 1.0
    limit: float = 60.0

    def settle(self, dump: Callable[[], T], before: T) -> T:
        """Dump until nothing changes any more; give the last dump."""
        return settle(
            dump,
            before=before,
            interval=self.interval,
            patience=self.patience,
            limit=self.limit,
        )


@dataclass(frozen=True, slots=True)
class Profile:
    """How to speak to an existing API."""

    file: str
    sha256: str
    url: str
    headers: Mapping[str, str]
    add: ProfileRequest
    list: ItemRequest
    search: ItemRequest
    kind: str = "item"
    open: ProfileRequest | None = None
    commit: ProfileRequest | None = None
    wait: Wait | None = None
    reset: ProfileRequest | None = None
    bulk: ProfileRequest | None = None

    @property
    def isolation(self) -> str:
        """Name how builds stay separate: `namespace` or `reset`."""
        names = {"memory", *(self.open.capture if self.open else ())}
        return "namespace" if names & {*self.add.placeholders()} else "reset"

    def resolve_headers(self) -> tuple[dict[str, str], tuple[str, ...]]:
        """Return the headers with the values of their variables, and these values."""
        headers, secrets = fill_variables(self.headers, f"{self.file}: [headers]")
        for name, value in headers.items():
            if not (value.isascii() and value.isprintable()):
                raise SpecError(
                    f"{self.file}: [headers] {name}: the value of a variable contains characters "
                    f"that a header cannot contain"
                )
        return headers, secrets


def load_profile(file: str, url: str = "") -> Profile:
    """Read and check a profile; an address that is passed replaces that of the file."""
    try:
        text = read_input(Path(file)).decode()
    except (InputError, OSError, UnicodeDecodeError) as error:
        raise SpecError(f"profile={file} cannot be read: {error}") from None
    return _Reader(file, parse_toml(file, text), text).read(url)


class _Reader:
    """Turns the tables of a file into a profile; every complaint names the table and the key."""

    def __init__(self, file: str, tables: Mapping[str, Any], text: str) -> None:
        self.file, self.tables, self.text = Path(file).name, tables, text
        self.known: set[str] = {"memory"}

    def read(self, url: str) -> Profile:
        """Read everything, in the order in which the requests are made."""
        self._check_keys("", self.tables, ("url", "kind", "headers", *_KEYS))
        address = url or self._text("", self.tables, "url")
        check_service_address(address, "secrets belong in [headers] as ${VARIABLE}")
        opening = self._step("open", ()) if "open" in self.tables else None
        self._learn(opening)
        record = (*_RECORD,)
        add = self._step("add", record)
        self._learn(add)
        commit = self._step("commit", record) if "commit" in self.tables else None
        self._learn(commit)
        wait = self._wait(record) if "wait" in self.tables else None
        reset = self._step("reset", ("item", "items")) if "reset" in self.tables else None
        profile = Profile(
            self.file,
            hashlib.sha256(self.text.encode()).hexdigest(),
            address,
            self._headers(),
            add,
            self._listing("list", ("page", "offset", "cursor", "size")),
            self._listing("search", ("query", "size")),
            self._text("", self.tables, "kind", "item"),
            opening,
            commit,
            wait,
            reset,
            self._bulk() if "bulk" in self.tables else None,
        )
        self._check_separation(profile)
        return profile

    def _bulk(self) -> ProfileRequest:
        step = replace(self._step("bulk", ("records",)), record=self._table("bulk").get("record"))
        if step.record is None:
            self._refuse("bulk", "record", "expected the template of a record")
        if "records" not in step.placeholders():
            self._refuse("bulk", "body", "it needs {records}, the list of all records")
        self._check_placeholders(step, ("records", *_RECORD))
        return step

    def _check_separation(self, profile: Profile) -> None:
        """Refuse requests that do not all read and write the same memory of a build."""
        if profile.isolation == "reset" and profile.reset is None:
            self._refuse(
                "add",
                "body",
                "nothing separates one build from the next: use {memory}, a fresh name for each "
                "build, in the path or the body, or add a table [reset]",
            )
        for listing in (profile.list, profile.search):
            step = listing.step
            if profile.isolation == "reset" and "memory" in step.placeholders():
                self._refuse("add", "body", f"[{step.name}] reads {{memory}}, but [add] has none")
            if profile.isolation == "namespace" and not self.known & {*step.placeholders()}:
                self._refuse(
                    step.name,
                    "request",
                    "it reads all memories: use {memory}, as [add] does, in the path or the body",
                )
        deleted = {"item", "items"} & {*(profile.reset.placeholders() if profile.reset else ())}
        if deleted and profile.list.id is None:
            self._refuse("reset", f"{{{min(deleted)}}}", "it needs [list] id, by which to delete")

    def _learn(self, step: ProfileRequest | None) -> None:
        self.known |= set(step.capture) if step else set()

    def _refuse(self, table: str, key: str, problem: str) -> NoReturn:
        place = f"[{table}] {key}".strip() if table else key
        raise SpecError(f"{self.file}: {place}: {problem}")

    def _check_keys(self, table: str, entries: Mapping[str, Any], keys: Collection[str]) -> None:
        for key in entries:
            if key not in keys:
                self._refuse(table, key, f"there is no such key. {nearest(key, keys)}")

    def _table(self, name: str) -> Mapping[str, Any]:
        table = self.tables.get(name)
        if not isinstance(table, Mapping):
            self._refuse(name, "", "this table is missing" if table is None else "expected a table")
        self._check_keys(name, table, _KEYS[name])
        return table

    def _text(
        self, table: str, entries: Mapping[str, Any], key: str, default: str | None = None
    ) -> str:
        value = entries.get(key, default)
        if not isinstance(value, str):
            problem = "it is missing" if value is None else f"got {value!r}"
            self._refuse(table, key, f"expected a text, but {problem}")
        return value

    def _pointer(self, table: str, entries: Mapping[str, Any], key: str) -> str:
        pointer = self._text(table, entries, key)
        if pointer and not pointer.startswith("/"):
            self._refuse(
                table, key, f"expected a JSON pointer such as '/{pointer}' but got '{pointer}'"
            )
        return pointer

    def _number(self, table: str, entries: Mapping[str, Any], key: str, default: float) -> float:
        value = entries.get(key, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e6:
            self._refuse(table, key, f"expected a number of 0 or more but got {value!r}")
        return value

    def _headers(self) -> Mapping[str, str]:
        headers = self.tables.get("headers", {})
        if not isinstance(headers, Mapping):
            self._refuse("headers", "", "expected a table of names and texts")
        for name, value in headers.items():
            template = self._text("headers", headers, name)
            if not re.fullmatch(r"[\w-]+", name) or not (
                template.isprintable() and template.isascii()
            ):
                self._refuse("headers", name, "a header cannot contain these characters")
            if names_secret(name) and not VARIABLE.search(value):
                self._refuse("headers", name, LITERAL_ADVICE)
        return dict(headers)

    def _step(self, name: str, more: Sequence[str]) -> ProfileRequest:
        entries = self._table(name)
        method, space, path = self._text(name, entries, "request").partition(" ")
        if method not in _METHODS or not space or not path.startswith("/"):
            self._refuse(name, "request", "expected a method and a path, such as 'POST /memories'")
        if not (path.isascii() and path.isprintable() and " " not in path):
            self._refuse(name, "request", "a path contains printable ASCII and no spaces")
        accept = entries.get("accept", [404] if name == "reset" else [])
        if not isinstance(accept, list) or not all(isinstance(code, int) for code in accept):
            self._refuse(name, "accept", "expected a list of statuses such as [404]")
        capture = self._texts(name, entries, "capture")
        for key in capture:
            self._pointer(name, capture, key)
        step = ProfileRequest(
            name,
            method,
            path,
            entries.get("body"),
            self._texts(name, entries, "form"),
            self._texts(name, entries, "files"),
            tuple(accept),
            capture,
            self._pointer(name, entries, "id") if name == "add" and "id" in entries else None,
        )
        self._check_placeholders(step, more)
        return step

    def _texts(self, table: str, entries: Mapping[str, Any], key: str) -> Mapping[str, str]:
        texts = entries.get(key, {})
        if not isinstance(texts, Mapping) or not all(
            isinstance(text, str) for text in texts.values()
        ):
            self._refuse(table, key, "expected a table of texts")
        return texts

    def _check_placeholders(self, step: ProfileRequest, more: Sequence[str]) -> None:
        names = {*self.known, *more}
        for name in step.placeholders():
            if name not in names:
                self._refuse(
                    step.name,
                    f"{{{name}}}",
                    f"there is no such placeholder here. {nearest(name, names)}",
                )

    def _listing(self, name: str, more: Sequence[str]) -> ItemRequest:
        entries = self._table(name)
        step = self._step(name, more)
        pages = entries.get("pages", "")
        if pages not in ("", "page", "offset", "cursor", "link"):
            self._refuse(name, "pages", f"expected page, offset, cursor or link but got {pages!r}")
        if pages not in ("", "link", *step.placeholders()):
            self._refuse(name, "request", f"pages = '{pages}' needs {{{pages}}} in it or the body")
        optional = {
            key: self._pointer(name, entries, key) if key in entries else None
            for key in ("id", "sources", "time", "next")
        }
        if pages == "link" and optional["next"] is None:
            self._refuse(name, "next", "a link needs a pointer to the address of the next page")
        if pages == "cursor" and optional["next"] is None and optional["id"] is None:
            self._refuse(name, "next", "a cursor needs a pointer to the next one, or an id")
        only = entries.get("only", {})
        if not isinstance(only, Mapping) or not all(key.startswith("/") for key in only):
            self._refuse(name, "only", "expected a table from JSON pointers to values")
        return ItemRequest(
            step,
            self._pointer(name, entries, "items"),
            self._pointer(name, entries, "text"),
            only=only,
            pages=pages,
            size=int(self._number(name, entries, "size", 10 if name == "search" else 100)) or 1,
            first=int(self._number(name, entries, "first", 1)),
            **optional,
        )

    def _wait(self, more: Sequence[str]) -> Wait:
        entries = self._table("wait")
        interval, patience, limit = (
            float(self._number("wait", entries, key, default))
            for key, default in (("interval", 0.1), ("patience", 1.0), ("limit", 60.0))
        )
        if "request" not in entries:
            for key in ("done", "values", "failed"):
                if key in entries:
                    self._refuse("wait", "request", f"'{key}' needs a request to read it from")
            return Wait(interval=interval, patience=patience, limit=limit)
        values = entries.get("values", [True])
        failed = entries.get("failed", [])
        for key, states in (("values", values), ("failed", failed)):
            if not isinstance(states, list):
                self._refuse("wait", key, "expected a list of values")
        done = self._pointer("wait", entries, "done")
        step = self._step("wait", more)
        self._check_placeholders(replace(step, path=done, body=None, form={}, files={}), ())
        return Wait(step, done, tuple(values), tuple(failed), interval, patience, limit)
