"""What profiles in TOML files share: templates of requests, and JSON pointers into replies.

A template contains placeholders such as `{text}`; `{{` and `}}` are plain braces. Values are
encoded for the place where they appear, so no record text can change a path, a query or a body.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from routeprism.errors import RouteError, SpecError
from routeprism.redaction import Redactor

VARIABLE = re.compile(r"\$\{(\w+)\}")
"""An environment variable in a header, or in the environment of a server."""
LITERAL_ADVICE = (
    "a secret does not belong in a file: set an environment variable, and write ${ITS_NAME} here"
)
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


def parse_toml(file: str, text: str) -> Mapping[str, Any]:
    """Read the tables of a profile."""
    toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        tables: Mapping[str, Any] = toml.loads(text)
    except toml.TOMLDecodeError as error:
        raise SpecError(f"{file} is not TOML: {error}") from None
    return tables


def fill_variables(
    templates: Mapping[str, str], place: str
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return texts with the values of environment variables in them, and these values."""
    filled: dict[str, str] = {}
    values: set[str] = set()
    for name, template in templates.items():
        for variable in VARIABLE.findall(template):
            value = os.environ.get(variable, "").strip()
            if not value:
                raise SpecError(
                    f"{place} {name} needs the environment variable {variable}, which is not set"
                )
            values.add(value)
        filled[name] = VARIABLE.sub(lambda match: os.environ[match[1]].strip(), template)
    return filled, tuple(sorted(values))


def list_texts(template: Any) -> Iterator[str]:
    """Yield all texts in a template."""
    if isinstance(template, str):
        yield template
    elif isinstance(template, (Mapping, list)):
        for part in template.values() if isinstance(template, Mapping) else template:
            yield from list_texts(part)


def list_placeholders(template: Any) -> Iterator[str]:
    """Yield the names of all placeholders in a template."""
    for text in list_texts(template):
        yield from filter(None, _PLACEHOLDER.findall(text))


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
    """Follow a JSON pointer (RFC 6901); say what is there where it leads to nothing.

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
