"""What profiles in TOML files share: tables, templates of requests, and JSON pointers into replies.

A template contains placeholders such as `{text}`; `{{` and `}}` are plain braces. Values are
encoded for the place where they appear, so no record text can change a path, a query or a body.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NoReturn
from urllib.parse import quote

from routeprism.errors import RouteError, SpecError, nearest
from routeprism.redaction import Redactor, names_secret

VARIABLE = re.compile(r"\$\{(\w+)\}")
"""An environment variable in a header, or in the environment of a server."""
_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{(\w+)\}")
_MISSING = object()
"""In place of a value that is left out of a request."""

Values = Mapping[str, Any]
"""Placeholder → its value; None if there is none."""


class PointerError(RouteError):
    """A JSON pointer that does not lead to a usable value."""

    def __init__(self, message: str, action: str) -> None:
        super().__init__(message)
        self.action = action
        """The name of the request whose reply was read."""


class ProfileTables:
    """The tables of a profile; every complaint names the file, the table and the key."""

    def __init__(self, file: str, text: str, keys: Mapping[str, Collection[str]]) -> None:
        self.file = file
        self.sha256 = hashlib.sha256(text.encode()).hexdigest()
        self._keys = keys
        self._tables = _parse_toml(file, text)
        self._check_keys("", self._tables, (*keys[""], *(name for name in keys if name)))

    def __contains__(self, table: str) -> bool:
        return table in self._tables

    def refuse(self, table: str, key: str, problem: str) -> NoReturn:
        """Raise the error about a key."""
        place = f"[{table}] {key}".strip() if table else key
        raise SpecError(f"{self.file}: {place}: {problem}")

    def _check_keys(self, table: str, entries: Mapping[str, Any], keys: Collection[str]) -> None:
        for key in entries:
            if key not in keys:
                self.refuse(table, key, f"there is no such key. {nearest(key, keys)}")

    def read(self, table: str) -> Mapping[str, Any]:
        """Return a table; the name of the top level is empty, and so is that of free keys."""
        if not table:
            return self._tables
        entries = self._tables.get(table)
        if not isinstance(entries, Mapping):
            problem = "this table is missing" if entries is None else "expected a table"
            self.refuse(table, "", problem)
        if self._keys[table]:
            self._check_keys(table, entries, self._keys[table])
        return entries

    def read_text(self, table: str, key: str, default: str | None = None) -> str:
        """Return a text."""
        value = self.read(table).get(key, default)
        if not isinstance(value, str):
            problem = "it is missing" if value is None else f"got {value!r}"
            self.refuse(table, key, f"expected a text, but {problem}")
        return value

    def read_texts(self, table: str, key: str) -> Mapping[str, str]:
        """Return a table of texts inside a table; empty if it is missing."""
        texts = self.read(table).get(key, {})
        if not isinstance(texts, Mapping) or not all(
            isinstance(text, str) for text in texts.values()
        ):
            self.refuse(table, key, "expected a table of texts")
        return texts

    def read_pointer(self, table: str, key: str) -> str:
        """Return a JSON pointer."""
        pointer = self.read_text(table, key)
        self.check_pointer(table, key, pointer)
        return pointer

    def check_pointer(self, table: str, key: str, pointer: str) -> None:
        """Refuse a text that is not a JSON pointer."""
        if pointer and not pointer.startswith("/"):
            self.refuse(
                table, key, f"expected a JSON pointer such as '/{pointer}' but got '{pointer}'"
            )

    def read_number(self, table: str, key: str, default: float) -> float:
        """Return a number of 0 or more."""
        value = self.read(table).get(key, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e6:
            self.refuse(table, key, f"expected a number of 0 or more but got {value!r}")
        return value

    def read_choice(self, table: str, key: str, *, default: bool) -> bool:
        """Return true or false."""
        value = self.read(table).get(key, default)
        if not isinstance(value, bool):
            self.refuse(table, key, f"expected true or false but got {value!r}")
        return value

    def read_times(self, limit: float) -> tuple[float, float, float, float]:
        """Return interval, stable, patience and limit of `[wait]`; `limit` is the default."""
        interval = self.read_number("wait", "interval", 0.1)
        stable = self.read_number("wait", "stable", 5 * interval)
        patience = self.read_number("wait", "patience", 1.0)
        limit = self.read_number("wait", "limit", limit)
        if stable > limit:
            self.refuse("wait", "stable", f"expected no more than the limit of {limit:g} seconds")
        return interval, stable, patience, limit

    def check_placeholders(self, table: str, template: Any, names: Collection[str]) -> None:
        """Refuse a template with a placeholder that has no value here."""
        for name in list_placeholders(template):
            if name not in names:
                advice = f"there is no such placeholder here. {nearest(name, names)}"
                self.refuse(table, f"{{{name}}}", advice)

    def check_secret(self, table: str, key: str, template: str) -> None:
        """Refuse a secret that is written down."""
        if names_secret(key) and not VARIABLE.search(template):
            self.refuse(
                table,
                key,
                "a secret does not belong in a file: set an environment variable, and write "
                "${ITS_NAME} here",
            )


def _parse_toml(file: str, text: str) -> Mapping[str, Any]:
    toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        tables: Mapping[str, Any] = toml.loads(text)
    except toml.TOMLDecodeError as error:
        raise SpecError(f"{file} is not TOML: {error}") from None
    return tables


PERMISSION = "ROUTEPRISM_PROFILE_ENV"
"""The environment variable with the names of those that profiles and the like may read."""


def fill_variables(
    templates: Mapping[str, str], place: str, permitted: str
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return texts with the values of environment variables in them, and these values."""
    filled: dict[str, str] = {}
    values: dict[str, str] = {}
    for name, template in templates.items():
        for variable in VARIABLE.findall(template):
            values[variable] = read_variable(variable, f"{place} {name}", permitted)
        filled[name] = VARIABLE.sub(lambda match: values[match[1]], template)
    return filled, tuple(sorted(set(values.values())))


def read_variable(variable: str, place: str, permitted: str) -> str:
    """Return the value of an environment variable that a file names.

    The file may come from someone else, so only variables that the user names are read.
    """
    names = re.split(r"[+,\s]+", f"{permitted} {os.environ.get(PERMISSION, '')}")
    if variable not in names:
        raise SpecError(
            f"{place} reads the environment variable {variable}. If the service that this file "
            f"names may have its value, add env={variable} to the policy, or set "
            f"{PERMISSION}={variable}"
        )
    value = os.environ.get(variable, "").strip()
    if not value:
        raise SpecError(f"{place} needs the environment variable {variable}, which is not set")
    return value


def list_placeholders(template: Any) -> Iterator[str]:
    """Yield the names of all placeholders in a template."""
    if isinstance(template, str):
        yield from filter(None, _PLACEHOLDER.findall(template))
    elif isinstance(template, (Mapping, list)):
        for part in template.values() if isinstance(template, Mapping) else template:
            yield from list_placeholders(part)


def fill_value(template: Any, values: Values) -> Any:
    """Fill a body: a text that is one placeholder becomes its value, with its type.

    A value that does not exist is left out of its object or list.
    """
    filled = _fill(template, values)
    return None if filled is _MISSING else filled


def _fill(template: Any, values: Values) -> Any:
    if isinstance(template, str):
        whole = _PLACEHOLDER.fullmatch(template)
        if whole and whole[1]:
            value = values.get(whole[1])
            return _MISSING if value is None else value
        return _fill_text(template, values)
    if isinstance(template, Mapping):
        pairs = ((key, _fill(value, values)) for key, value in template.items())
        return {key: value for key, value in pairs if value is not _MISSING}
    if isinstance(template, list):
        return [value for part in template if (value := _fill(part, values)) is not _MISSING]
    return template


def _fill_text(template: str, values: Values, *, encoded: bool = False) -> str:
    def replace(match: re.Match[str]) -> str:
        if not match[1]:
            return match[0][0]
        value = values.get(match[1])
        text = "" if value is None else str(value)
        return quote(text, safe="") if encoded else text

    return _PLACEHOLDER.sub(replace, template)


def fill_pointer(template: str, values: Values) -> str:
    """Fill a JSON pointer; a value stays one part of it."""
    escaped = {
        name: str(value).replace("~", "~0").replace("/", "~1")
        for name, value in values.items()
        if value is not None
    }
    return _fill_text(template, escaped)


def fill_path(template: str, values: Values, role: str) -> str:
    """Fill a path and its query; a query parameter without a value is left out."""
    path, _, query = template.partition("?")
    segments = [_fill_segment(segment, values, role) for segment in path.split("/")]
    parameters = [
        f"{name}{equals}{_fill_text(value, values, encoded=True)}"
        for name, equals, value in (part.partition("=") for part in query.split("&") if part)
        if _fill(value, values) is not _MISSING
    ]
    return "/".join(segments) + ("?" + "&".join(parameters) if parameters else "")


def _fill_segment(template: str, values: Values, role: str) -> str:
    """Fill one part of a path, which no value can leave."""
    segment = _fill_text(template, values, encoded=True)
    if segment == template:
        return segment
    if not segment:
        raise RouteError(f"{role}: the path needs {template}, which has no value here")
    return segment.replace(".", "%2E") if not segment.strip(".") else segment


def resolve_pointer(
    document: Any, pointer: str, redactor: Redactor, *, action: str, place: str
) -> Any:
    """Follow a JSON pointer (RFC 6901); report what is there if it leads to nothing.

    Args:
        document: the reply, or an item of it.
        pointer: the pointer.
        redactor: removes secrets from what is quoted.
        action: the name of the request.
        place: which part of the reply is read, and for what, such as `item 0: id`.

    """
    value = document
    walked = ""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            whole = "item" if place.startswith("item ") else "reply"
            top = f"at '{walked}'" if walked else "at its top"
            raise PointerError(
                f"{action}: {place}: '{pointer}' leads to nothing; the {whole} has {top} "
                f"{redactor.redact_line(describe_value(value))}",
                action,
            )
        walked += f"/{part}"
    return value


def describe_value(value: Any) -> str:
    """Name a JSON value in words: an object by its keys, a list by its length."""
    if isinstance(value, Mapping):
        keys = ", ".join(f"'{key}'" for key in list(value)[:12])
        return f"an object with the keys {keys}" if keys else "an empty object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    return f"the {'text' if isinstance(value, str) else 'number'} {value!r}"
