"""Tools of an MCP server: the profile that names those for adding and reading, and a connection.

The official SDK is asynchronous. Each connection has its own thread with a loop, so calls from
several threads are in flight at the same time.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from importlib import resources
from pathlib import Path
from typing import Any

from routeprism.endings import forget, note
from routeprism.errors import InputError, RouteError, SpecError
from routeprism.files import read_input
from routeprism.policies.adapters._profile import Wait
from routeprism.policies.adapters._templates import (
    VARIABLE,
    ProfileTables,
    describe_value,
    fill_variables,
    list_placeholders,
    resolve_pointer,
)
from routeprism.redaction import Redactor

_CLOSING = 10.0
"""Seconds that a server has to end."""
_RECORD = ("id", "text", "user_text", "time", "memory")
"""What a call that adds a record may contain."""
_CALL_KEYS = ("tool", "arguments")
_ITEM_KEYS = ("items", "key", "text", "sort", "limit")
_KEYS: Mapping[str, tuple[str, ...]] = {
    "": (),
    "add": _CALL_KEYS,
    "bulk": (*_CALL_KEYS, "record"),
    "search": (*_CALL_KEYS, *_ITEM_KEYS, "query", "size"),
    "list": (*_CALL_KEYS, *_ITEM_KEYS),
    "reset": _CALL_KEYS,
    "wait": ("interval", "stable", "patience", "limit"),
    "environment": (),
}


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Arguments with placeholders such as `{text}`."""
    record: Any = None
    """The template of each record in a call that adds several."""


@dataclass(frozen=True, slots=True)
class ToolListing:
    """A call of a tool whose result contains items."""

    call: ToolCall
    items: str
    """JSON pointer to the list of items."""
    key: str
    """JSON pointer inside an item to its key."""
    text: str
    """JSON pointer inside an item to its text, or to a list of texts."""
    sort: bool = False
    """Whether items are sorted by key, because the server gives them in no reliable order."""
    limit: int = 0
    """The most items that the server lists; 0 if there is no limit."""
    by_word: bool = False
    """Whether the words of a question are searched one by one."""
    size: int = 10
    """Maximum number of items that a question is shown."""

    def read(self, result: Any, tool: str, redactor: Redactor) -> dict[str, str]:
        """Return the items of a result: key → text."""
        resolve = partial(resolve_pointer, redactor=redactor, action=tool)
        entries = resolve(result, self.items, place="items")
        if not isinstance(entries, list):
            display = redactor.redact_line(describe_value(entries))
            raise RouteError(f"{tool}: '{self.items}' leads to {display}, and not to a list")
        if self.limit and len(entries) >= self.limit:
            raise RouteError(
                f"{tool}: the server lists {self.limit} items at most, and there may be more; use "
                f"pools with fewer records"
            )
        items: dict[str, str] = {}
        for at, item in enumerate(entries):
            key = str(resolve(item, self.key, place=f"item {at}: key"))
            text = _join_text(resolve(item, self.text, place=f"item {at}: text"))
            items[key if key not in items else f"{key} ({len(items)})"] = text
        return dict(sorted(items.items())) if self.sort else items


@dataclass(frozen=True, slots=True)
class ToolProfile:
    """How to use the tools of a server as a memory."""

    name: str
    sha256: str
    add: ToolCall
    list: ToolListing
    search: ToolListing
    bulk: ToolCall | None = None
    reset: ToolCall | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of the server; `{directory}` is a private directory."""
    wait: Wait | None = None
    """How to wait for ingestion in the background; None if adding is enough."""

    @property
    def by_namespace(self) -> bool:
        """Whether each build has a namespace of its own on a shared server."""
        return "memory" in list_placeholders(self.add.arguments)

    def resolve_environment(self, permitted: str) -> tuple[dict[str, str], tuple[str, ...]]:
        """Return the server's variables with their values, and the secrets among them."""
        return fill_variables(self.environment, f"{self.name}: [environment]", permitted)

    def check_separation(self) -> None:
        """Refuse a profile whose builds would meet on a running server."""
        if not self.by_namespace:
            if self.reset is None:
                raise SpecError(
                    f"{self.name}: [add] arguments: nothing separates one build from the next on a "
                    f"running server: use {{memory}} here, or add a table [reset]"
                )
            return
        for name, listing in (("list", self.list), ("search", self.search)):
            if "memory" not in list_placeholders(listing.call.arguments):
                raise SpecError(
                    f"{self.name}: [{name}] arguments: it reads all memories: use {{memory}}, as "
                    f"[add] does"
                )


def load_tool_profile(name: str) -> ToolProfile:
    """Read a profile that comes with RoutePrism, or a file."""
    shipped = _list_shipped()
    if name in shipped:
        return _read_profile(name, shipped[name])
    try:
        text = read_input(Path(name)).decode()
    except (InputError, OSError, UnicodeDecodeError) as error:
        raise SpecError(
            f"profile={name} cannot be read: {error}. RoutePrism has {', '.join(shipped)}"
        ) from None
    return _read_profile(Path(name).name, text)


@lru_cache(maxsize=1)
def _list_shipped() -> Mapping[str, str]:
    folder = resources.files("routeprism.policies.adapters") / "mcp_profiles"
    return {
        Path(file.name).stem: file.read_text(encoding="utf-8")
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        if file.name.endswith(".toml")
    }


@lru_cache(maxsize=16)
def _read_profile(file: str, text: str) -> ToolProfile:
    tables = ProfileTables(file, text, _KEYS)
    environment = tables.read("environment") if "environment" in tables else {}
    profile = ToolProfile(
        file,
        tables.sha256,
        _read_call(tables, "add", _RECORD),
        _read_listing(tables, "list", ("memory",)),
        _read_listing(tables, "search", ("query", "memory")),
        _read_bulk(tables) if "bulk" in tables else None,
        _read_call(tables, "reset", ("keys", "memory")) if "reset" in tables else None,
        {name: str(value) for name, value in environment.items()},
        Wait(*tables.read_times(limit=30.0)) if "wait" in tables else None,
    )
    for name, value in profile.environment.items():
        tables.check_placeholders("environment", VARIABLE.sub("", value), ("directory",))
        tables.check_secret("environment", name, value)
    return profile


def _read_call(tables: ProfileTables, name: str, placeholders: Sequence[str]) -> ToolCall:
    arguments = tables.read(name).get("arguments", {})
    if not isinstance(arguments, Mapping):
        tables.refuse(name, "arguments", "expected a table")
    tables.check_placeholders(name, arguments, placeholders)
    return ToolCall(tables.read_text(name, "tool"), arguments)


def _read_bulk(tables: ProfileTables) -> ToolCall:
    record = tables.read("bulk").get("record")
    if record is None:
        tables.refuse("bulk", "record", "expected the template of a record")
    tables.check_placeholders("bulk", record, _RECORD)
    return replace(_read_call(tables, "bulk", ("records", "memory")), record=record)


def _read_listing(tables: ProfileTables, name: str, placeholders: Sequence[str]) -> ToolListing:
    query = tables.read(name).get("query", "text")
    if query not in ("text", "words"):
        tables.refuse(name, "query", f"expected 'text' or 'words' but got {query!r}")
    return ToolListing(
        _read_call(tables, name, placeholders),
        tables.read_pointer(name, "items"),
        tables.read_pointer(name, "key"),
        tables.read_pointer(name, "text"),
        bool(tables.read(name).get("sort", False)),
        int(tables.read_number(name, "limit", 0)),
        query == "words",
        int(tables.read_number(name, "size", 10)),
    )


def _join_text(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join(map(_join_text, value))
    return value if isinstance(value, str) else json.dumps(value)


class ToolClient:
    """A connection to an MCP server."""

    def __init__(
        self, connect: Callable[[], Any], timeout: float, redactor: Redactor, log: Path | None
    ) -> None:
        self._connect, self._timeout, self._redactor, self._log = connect, timeout, redactor, log
        self._client: Any = None
        self._stop = asyncio.Event()
        self._opened: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="mcp", daemon=True)
        note(self, self.close)
        self._thread.start()
        try:
            self._opened.result(timeout)
        except BaseException as error:
            self.close()
            if not isinstance(error, Exception):
                raise
            raise RouteError(f"the MCP server cannot be used: {self._explain(error)}") from None

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Call a tool, and give its result as JSON."""
        work = self._client.call_tool(tool, dict(arguments))
        pending = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            result = pending.result(self._timeout)
        except concurrent.futures.TimeoutError:
            pending.cancel()
            raise RouteError(f"{tool}: no reply within {self._timeout:g} seconds") from None
        except Exception as error:
            raise RouteError(f"{tool}: {self._explain(error)}") from None
        return self._read_result(tool, result)

    def close(self) -> None:
        """End the connection, and the server if it is a process of this connection."""
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_CLOSING)
        forget(self)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as error:  # raised where the connection is used
            if not self._opened.done():
                self._opened.set_exception(error)
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        async with self._connect() as client:
            self._client = client
            self._opened.set_result(None)
            await self._stop.wait()

    def _explain(self, error: BaseException) -> str:
        while isinstance(inner := getattr(error, "exceptions", None), tuple) and inner:
            error = inner[0]
        words = str(error) or type(error).__name__
        if self._log is not None and self._log.exists():
            output = self._log.read_bytes()[-500:].decode(errors="replace").strip()
            words += f"; its error output ends with: {output}" if output else ""
        return self._redactor.redact_line(words)

    def _read_result(self, tool: str, result: Any) -> Any:
        text = "".join(getattr(part, "text", "") for part in result.content)
        if result.is_error:
            raise RouteError(f"{tool}: the server replied: {self._redactor.redact_line(text)}")
        if result.structured_content is not None:
            return result.structured_content
        try:
            return json.loads(text) if text else None
        except ValueError:
            return text
