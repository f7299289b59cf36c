"""Tools of an MCP server: the TOML file that says which add, list and search, and a connection.

The official SDK is asynchronous. Each connection has its own thread with a loop, so calls from
several threads are in flight at the same time.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import hashlib
import json
import re
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn

from routeprism.errors import InputError, RouteError, SpecError, nearest
from routeprism.files import read_input
from routeprism.policies.adapters._profile import Wait
from routeprism.policies.adapters._templates import (
    LITERAL_ADVICE,
    VARIABLE,
    describe_value,
    fill_variables,
    list_texts,
    parse_toml,
    resolve_pointer,
)
from routeprism.redaction import Redactor, names_secret

_CLOSING = 10.0
"""Seconds that a server has to end."""
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_RECORD = ("id", "text", "user_text", "time", "memory")
"""What a call that adds a record may contain."""
_CALL_KEYS = ("tool", "arguments")
_ITEM_KEYS = ("items", "key", "text", "sort", "limit")
_KEYS: Mapping[str, tuple[str, ...]] = {
    "add": _CALL_KEYS,
    "bulk": (*_CALL_KEYS, "record"),
    "search": (*_CALL_KEYS, *_ITEM_KEYS, "query", "size"),
    "list": (*_CALL_KEYS, *_ITEM_KEYS),
    "reset": _CALL_KEYS,
    "wait": ("interval", "patience", "limit"),
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
    """The number of items that a question is shown at most."""

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

    def resolve_environment(self) -> tuple[dict[str, str], tuple[str, ...]]:
        """Return the server's variables with their values, and the secrets among them."""
        return fill_variables(self.environment, f"{self.name}: [environment]")

    def check_separation(self) -> None:
        """Refuse a profile whose builds would meet on a running server."""
        if not self.by_namespace:
            if self.reset is None:
                _refuse(
                    self.name,
                    "add",
                    "nothing separates one build from the next on a running server: use {memory} "
                    "in its arguments, or add a table [reset]",
                )
            return
        for name, listing in (("list", self.list), ("search", self.search)):
            if "memory" not in list_placeholders(listing.call.arguments):
                _refuse(self.name, name, "it reads all memories: use {memory}, as [add] does")


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
    tables = parse_toml(file, text)
    _check_keys(file, "", tables, _KEYS)
    for name, table in tables.items():
        if not isinstance(table, Mapping):
            _refuse(file, name, "expected a table")
        if name != "environment":
            _check_keys(file, name, table, _KEYS[name])
    wait = None
    if (times := tables.get("wait")) is not None:
        defaults = {"interval": 0.1, "patience": 1.0, "limit": 30.0}
        interval, patience, limit = (float(times.get(*default)) for default in defaults.items())
        wait = Wait(interval=interval, patience=patience, limit=limit)
    profile = ToolProfile(
        file,
        hashlib.sha256(text.encode()).hexdigest(),
        _read_call(file, tables, "add", _RECORD),
        _read_listing(file, tables, "list", ("memory",)),
        _read_listing(file, tables, "search", ("query", "memory")),
        _read_call(file, tables, "bulk", ("records", *_RECORD)) if "bulk" in tables else None,
        _read_call(file, tables, "reset", ("keys", "memory")) if "reset" in tables else None,
        {key: str(value) for key, value in tables.get("environment", {}).items()},
        wait,
    )
    for name, value in profile.environment.items():
        _check_placeholders(file, "environment", VARIABLE.sub("", value), ("directory",))
        if names_secret(name) and not VARIABLE.search(value):
            _refuse(file, "environment", f"{name}: {LITERAL_ADVICE}")
    return profile


def _read_call(
    file: str, tables: Mapping[str, Any], name: str, placeholders: Collection[str]
) -> ToolCall:
    table = tables.get(name)
    if table is None:
        _refuse(file, name, "this table is missing")
    if not isinstance(table.get("tool"), str):
        _refuse(file, name, "expected the name of a tool, tool = '…'")
    if not isinstance(table.get("arguments", {}), Mapping):
        _refuse(file, name, "expected a table of arguments")
    call = ToolCall(table["tool"], table.get("arguments", {}), table.get("record"))
    _check_placeholders(file, name, [call.arguments, call.record], placeholders)
    return call


def _read_listing(
    file: str, tables: Mapping[str, Any], name: str, placeholders: Collection[str]
) -> ToolListing:
    call = _read_call(file, tables, name, placeholders)
    table = tables[name]
    for key in ("items", "key", "text"):
        pointer = table.get(key)
        if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
            _refuse(file, name, f"expected {key} = a JSON pointer such as '/{key}'")
    if table.get("query", "text") not in ("text", "words"):
        _refuse(file, name, f"expected query = 'text' or 'words' but got {table['query']!r}")
    return ToolListing(
        call,
        table["items"],
        table["key"],
        table["text"],
        bool(table.get("sort", False)),
        int(table.get("limit", 0)),
        table.get("query") == "words",
        int(table.get("size", 10)),
    )


def _check_keys(file: str, table: str, entries: Mapping[str, Any], keys: Collection[str]) -> None:
    for key in entries:
        if key not in keys:
            _refuse(file, table, f"there is no key '{key}'. {nearest(key, keys)}")


def _check_placeholders(file: str, table: str, value: Any, placeholders: Collection[str]) -> None:
    for name in list_placeholders(value):
        if name not in placeholders:
            _refuse(
                file,
                table,
                f"there is no placeholder {{{name}}} here. {nearest(name, placeholders)}",
            )


def _refuse(file: str, table: str, problem: str) -> NoReturn:
    place = f"[{table}] " if table else ""
    raise SpecError(f"{file}: {place}{problem}")


def list_placeholders(value: Any) -> Iterator[str]:
    """Yield the names of all placeholders in a template."""
    for text in list_texts(value):
        yield from _PLACEHOLDER.findall(text)


def fill_template(template: Any, values: Mapping[str, Any]) -> Any:
    """Replace the placeholders of a template; a placeholder alone keeps the type of its value."""
    if isinstance(template, str):
        alone = _PLACEHOLDER.fullmatch(template)
        if alone and alone[1] in values:
            return values[alone[1]]
        return _PLACEHOLDER.sub(lambda match: str(values.get(match[1], match[0])), template)
    if isinstance(template, Mapping):
        return {key: fill_template(inner, values) for key, inner in template.items()}
    if isinstance(template, list):
        return [fill_template(inner, values) for inner in template]
    return template


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
        self._thread.start()
        try:
            self._opened.result(timeout)
        except Exception as error:
            self.close()
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
