"""The TOML file that maps a memory onto the requests of an existing API."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from routeprism.errors import InputError, SpecError
from routeprism.files import read_input
from routeprism.policies._lineage import count_dumps, settle
from routeprism.policies._wrappers import Waiting
from routeprism.policies.adapters._templates import (
    ProfileTables,
    fill_variables,
    list_placeholders,
)
from routeprism.policies.adapters._wire import check_service_address

T = TypeVar("T")
Pages = Literal["", "page", "offset", "cursor", "link"]

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_RECORD = ("id", "text", "user_text", "time", "messages", "turns")
"""What a request that adds a record may contain of it."""
_REQUEST_KEYS = ("request", "body", "form", "files", "accept", "idempotent")
_IDEMPOTENT_METHODS = ("GET", "PUT", "DELETE")
_IDEMPOTENT_TABLES = ("wait", "list", "search", "reset")
"""Their requests can be repeated, whatever their method."""
_ITEM_KEYS = ("items", "id", "text", "sources", "time", "only")
_TIMES = ("interval", "stable", "patience", "limit")
_KEYS: Mapping[str, tuple[str, ...]] = {
    "": ("url", "kind"),
    "headers": (),
    "open": (*_REQUEST_KEYS, "capture"),
    "add": (*_REQUEST_KEYS, "capture", "id"),
    "bulk": (*_REQUEST_KEYS, "record"),
    "commit": (*_REQUEST_KEYS, "capture"),
    "wait": (*_REQUEST_KEYS, "done", "values", "failed", *_TIMES),
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
    idempotent: bool = False
    """Whether sending it twice has the same effect as sending it once."""

    def placeholders(self) -> Iterator[str]:
        """Yield the placeholders of the request."""
        return list_placeholders([self.path, self.body, self.form, self.files, self.record])


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

    interval: float
    stable: float
    patience: float
    limit: float
    step: ProfileRequest | None = None
    """The request that is repeated until it is done; None to compare dumps."""
    done: str = ""
    values: tuple[Any, ...] = ()
    failed: tuple[Any, ...] = ()

    def settle(self, dump: Callable[[], T], before: T) -> T:
        """Dump until nothing changes any more; give the last dump."""
        return settle(
            dump,
            before=before,
            interval=self.interval,
            stable=self.stable,
            patience=self.patience,
            limit=self.limit,
            advice="Raise limit in [wait], or let nothing else write to this memory",
        )

    def plan(self, pages: int = 1) -> Waiting:
        """Describe what waiting takes, at least, if a list takes this number of requests."""
        if self.step is not None:
            return Waiting(1 + pages, 0.0)  # a poll that finds it done, and a list
        return Waiting(pages * count_dumps(self.interval, self.stable), self.stable)

    def advise(self) -> str:
        """Name the setting that is wrong if items change after ingestion has seemed to end."""
        if self.step is not None:
            return "Correct done and values in [wait]"
        return (
            "Raise stable in [wait] above the longest pause between two writes, and patience above "
            "the time until the first"
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
    def waiting(self) -> Waiting | None:
        """Describe what waiting for a record takes, at least; None if nothing is waited for."""
        if self.wait is None:
            return None
        return self.wait.plan(2 if self.list.pages in ("page", "offset") else 1)  # one is empty

    def advise_waiting(self) -> str:
        """Name what to change if items change after ingestion has seemed to end."""
        return "Add a table [wait]" if self.wait is None else self.wait.advise()

    @property
    def isolation(self) -> str:
        """Name how builds stay separate: `namespace` or `reset`."""
        names = {"memory", *(self.open.capture if self.open else ())}
        return "namespace" if names & {*self.add.placeholders()} else "reset"

    def resolve_headers(self, permitted: str) -> tuple[dict[str, str], tuple[str, ...]]:
        """Return the headers with the values of their permitted variables, and these values."""
        headers, secrets = fill_variables(self.headers, f"{self.file}: [headers]", permitted)
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
    return _Reader(ProfileTables(Path(file).name, text, _KEYS)).read(url)


class _Reader:
    """Turns the tables of a file into a profile."""

    def __init__(self, tables: ProfileTables) -> None:
        self._tables = tables
        self._known: set[str] = {"memory"}
        """The placeholders that have a value in every request from here on."""

    def read(self, url: str) -> Profile:
        """Read everything, in the order in which the requests are made."""
        tables = self._tables
        address = url or tables.read_text("", "url")
        check_service_address(address, "secrets belong in [headers] as ${VARIABLE}")
        opening = self._step("open") if "open" in tables else None
        add = self._step("add", _RECORD)
        commit = self._step("commit", _RECORD) if "commit" in tables else None
        wait = self._wait() if "wait" in tables else None
        reset = self._step("reset", ("item", "items")) if "reset" in tables else None
        profile = Profile(
            tables.file,
            tables.sha256,
            address,
            self._headers(),
            add,
            self._listing("list", ("page", "offset", "cursor", "size")),
            self._listing("search", ("query", "size")),
            tables.read_text("", "kind", "item"),
            opening,
            commit,
            wait,
            reset,
            self._bulk() if "bulk" in tables else None,
        )
        self._check_separation(profile)
        return profile

    def _bulk(self) -> ProfileRequest:
        record = self._tables.read("bulk").get("record")
        step = replace(self._step("bulk", ("records",)), record=record)
        if record is None:
            self._tables.refuse("bulk", "record", "expected the template of a record")
        if "records" not in step.placeholders():
            self._tables.refuse("bulk", "body", "it needs {records}, the list of all records")
        self._tables.check_placeholders("bulk", record, {*self._known, "records", *_RECORD})
        return step

    def _check_separation(self, profile: Profile) -> None:
        """Refuse requests that do not all read and write the same memory of a build."""
        refuse = self._tables.refuse
        if profile.isolation == "reset" and profile.reset is None:
            refuse(
                "add",
                "body",
                "nothing separates one build from the next: use {memory}, a fresh name for each "
                "build, in the path or the body, or add a table [reset]",
            )
        for listing in (profile.list, profile.search):
            step = listing.step
            if profile.isolation == "reset" and "memory" in step.placeholders():
                refuse("add", "body", f"[{step.name}] reads {{memory}}, but [add] has none")
            if profile.isolation == "namespace" and not self._known & {*step.placeholders()}:
                refuse(
                    step.name,
                    "request",
                    "it reads all memories: use {memory}, as [add] does, in the path or the body",
                )
        deleted = {"item", "items"} & {*(profile.reset.placeholders() if profile.reset else ())}
        if deleted and profile.list.id is None:
            refuse("reset", f"{{{min(deleted)}}}", "it needs [list] id, by which to delete")

    def _headers(self) -> Mapping[str, str]:
        if "headers" not in self._tables:
            return {}
        for name in (headers := self._tables.read("headers")):
            template = self._tables.read_text("headers", name)
            if not re.fullmatch(r"[\w-]+", name) or not (
                template.isprintable() and template.isascii()
            ):
                self._tables.refuse("headers", name, "a header cannot contain these characters")
            self._tables.check_secret("headers", name, template)
        return dict(headers)

    def _step(self, name: str, more: Sequence[str] = ()) -> ProfileRequest:
        """Read a request; later ones may use what it captures."""
        tables, entries = self._tables, self._tables.read(name)
        method, space, path = tables.read_text(name, "request").partition(" ")
        if method not in _METHODS or not space or not path.startswith("/"):
            tables.refuse(name, "request", "expected a method and a path, such as 'POST /memories'")
        if not (path.isascii() and path.isprintable() and " " not in path):
            tables.refuse(name, "request", "a path contains printable ASCII and no spaces")
        accept = entries.get("accept", [404] if name == "reset" else [])
        if not isinstance(accept, list) or not all(isinstance(code, int) for code in accept):
            tables.refuse(name, "accept", "expected a list of statuses such as [404]")
        is_known = method in _IDEMPOTENT_METHODS or name in _IDEMPOTENT_TABLES
        capture = tables.read_texts(name, "capture")
        for key, pointer in capture.items():
            tables.check_pointer(name, key, pointer)
        step = ProfileRequest(
            name,
            method,
            path,
            entries.get("body"),
            tables.read_texts(name, "form"),
            tables.read_texts(name, "files"),
            tuple(accept),
            capture,
            tables.read_pointer(name, "id") if name == "add" and "id" in entries else None,
            idempotent=tables.read_choice(name, "idempotent", default=is_known),
        )
        tables.check_placeholders(
            name, [step.path, step.body, step.form, step.files], {*self._known, *more}
        )
        self._known |= set(capture)
        return step

    def _listing(self, name: str, more: Sequence[str]) -> ItemRequest:
        tables, entries = self._tables, self._tables.read(name)
        step = self._step(name, more)
        pages = entries.get("pages", "")
        if pages not in ("", "page", "offset", "cursor", "link"):
            problem = f"expected page, offset, cursor or link but got {pages!r}"
            tables.refuse(name, "pages", problem)
        if pages not in ("", "link", *step.placeholders()):
            tables.refuse(name, "request", f"pages = '{pages}' needs {{{pages}}} in it or the body")
        optional = {
            key: tables.read_pointer(name, key) if key in entries else None
            for key in ("id", "sources", "time", "next")
        }
        if pages == "link" and optional["next"] is None:
            tables.refuse(name, "next", "a link needs a pointer to the address of the next page")
        if pages == "cursor" and optional["next"] is None and optional["id"] is None:
            tables.refuse(name, "next", "a cursor needs a pointer to the next one, or an id")
        only = entries.get("only", {})
        if not isinstance(only, Mapping) or not all(key.startswith("/") for key in only):
            tables.refuse(name, "only", "expected a table from JSON pointers to values")
        return ItemRequest(
            step,
            tables.read_pointer(name, "items"),
            tables.read_pointer(name, "text"),
            only=only,
            pages=pages,
            size=int(tables.read_number(name, "size", 10 if name == "search" else 100)) or 1,
            first=int(tables.read_number(name, "first", 1)),
            **optional,
        )

    def _wait(self) -> Wait:
        tables, entries = self._tables, self._tables.read("wait")
        times = tables.read_times(limit=60.0)
        if "request" not in entries:
            for key in ("done", "values", "failed"):
                if key in entries:
                    tables.refuse("wait", "request", f"'{key}' needs a request to read it from")
            return Wait(*times)
        values, failed = entries.get("values", [True]), entries.get("failed", [])
        for key, states in (("values", values), ("failed", failed)):
            if not isinstance(states, list):
                tables.refuse("wait", key, "expected a list of values")
        done = tables.read_pointer("wait", "done")
        step = self._step("wait", _RECORD)
        tables.check_placeholders("wait", done, self._known)
        return Wait(*times, step, done, tuple(values), tuple(failed))
