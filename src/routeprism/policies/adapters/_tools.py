"""The TOML file that names the tools of an MCP server that add, list and search."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn

from routeprism.errors import InputError, RouteError, SpecError, nearest
from routeprism.inputs import read_input
from routeprism.policies.adapters._profile import LITERAL_ADVICE, VARIABLE, fill_variables
from routeprism.policies.adapters._templates import describe_value, resolve_pointer
from routeprism.redaction import Redactor, names_secret

__all__ = ["ToolCall", "ToolListing", "ToolProfile", "fill_template", "load_tool_profile"]

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
    wait: Mapping[str, float] | None = None
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


def _parse(file: str, text: str) -> Mapping[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        tables: Mapping[str, Any] = tomllib.loads(text)
        return tables
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{file} is not TOML: {error}") from None


@lru_cache(maxsize=16)
def _read_profile(file: str, text: str) -> ToolProfile:
    tables = _parse(file, text)
    _check_keys(file, "", tables, _KEYS)
    for name, table in tables.items():
        if not isinstance(table, Mapping):
            _refuse(file, name, "expected a table")
        if name != "environment":
            _check_keys(file, name, table, _KEYS[name])
    wait = tables.get("wait")
    profile = ToolProfile(
        file,
        hashlib.sha256(text.encode()).hexdigest(),
        _read_call(file, tables, "add", _RECORD),
        _read_listing(file, tables, "list", ("memory",)),
        _read_listing(file, tables, "search", ("query", "memory")),
        _read_call(file, tables, "bulk", ("records", *_RECORD)) if "bulk" in tables else None,
        _read_call(file, tables, "reset", ("keys", "memory")) if "reset" in tables else None,
        {key: str(value) for key, value in tables.get("environment", {}).items()},
        None if wait is None else {key: float(value) for key, value in wait.items()},
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
    if isinstance(value, str):
        yield from _PLACEHOLDER.findall(value)
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from list_placeholders(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from list_placeholders(inner)


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
