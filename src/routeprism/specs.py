"""How things are named on a command line: `name:key=value,…` and `package.module:Name`."""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin

from routeprism.errors import SpecError, nearest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = [
    "Spec",
    "construct",
    "hints",
    "parameters",
    "parse",
    "positive",
    "registered",
    "written",
]

T = TypeVar("T")

_NAME = re.compile(r"[A-Za-z][\w-]*\Z")
_COMMA = re.compile(r",(?![^()]*\))")
"""A comma outside of parentheses, which hold a value that has parameters of its own."""
_BRACKETED = re.compile(r"\A\((.*)\)\Z", re.DOTALL)
_OBJECT = re.compile(r"([A-Za-z_]\w*(?:\.\w+)*):([A-Za-z_]\w*)(?::(.*))?\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Spec:
    """A parsed name with its parameters, still as text."""

    text: str
    """What the user wrote."""
    name: str
    """The registered name, or `package.module:Name`."""
    values: Mapping[str, str]
    """The parameters."""

    @property
    def is_object(self) -> bool:
        """Whether it names a Python object rather than something registered."""
        return ":" in self.name


def parse(text: str) -> Spec:
    """Read `name` or `package.module:Name`, either with `:key=value,…` behind it."""
    text = text.strip()
    head, colon, tail = text.partition(":")
    looks_like_object = _OBJECT.match(text)
    if looks_like_object and "=" not in looks_like_object[2]:
        module, name, rest = looks_like_object.groups()
        return Spec(text, f"{module}:{name}", _values(text, rest) if rest else {})
    if not _NAME.match(head) or (colon and not tail):
        raise SpecError(f"Expected 'name' or 'name:key=value,…' but got {text!r}")
    return Spec(text, head, _values(text, tail) if tail else {})


def _values(text: str, tail: str) -> Mapping[str, str]:
    values: dict[str, str] = {}
    for part in _COMMA.split(tail):
        key, equals, value = part.partition("=")
        key = key.strip()
        if not equals or not key or not value.strip():
            raise SpecError(f"Expected key=value but got {part!r} in {text!r}")
        if key in values:
            raise SpecError(f"{text!r} gives '{key}' twice")
        values[key] = _BRACKETED.sub(r"\1", value.strip())
    return values


@lru_cache(maxsize=256)
def parameters(factory: Callable[..., Any]) -> Mapping[str, Any]:
    """Give the parameters that a user may write for a factory, with their types."""
    found = hints(factory)
    kinds = {
        name: found.get(name, _kind_of(parameter.default))
        for name, parameter in inspect.signature(factory).parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }
    return {name: kind for name, kind in kinds.items() if _convertible(kind)}


def _kind_of(default: Any) -> Any:
    """Read the type of a parameter that declares none from its default."""
    return type(default) if isinstance(default, (bool, int, float)) else str


def hints(factory: Callable[..., Any]) -> Mapping[str, Any]:
    """Resolve annotations one by one, past names that are imported for type checkers only.

    What cannot be resolved is no plain value, so a user cannot write it anyway.
    """
    function = factory.__init__ if inspect.isclass(factory) else factory
    found: dict[str, Any] = {}
    for name, annotation in getattr(function, "__annotations__", {}).items():
        one = types.SimpleNamespace(__annotations__={name: annotation})
        try:
            found |= typing.get_type_hints(one, getattr(function, "__globals__", {}))
        except NameError:
            found[name] = object
    return found


def construct(factory: Callable[..., T], spec: Spec, **given: Any) -> T:
    """Call a factory with a spec's parameters converted to their declared types."""
    known = parameters(factory)
    converted: dict[str, Any] = dict(given)
    for key, value in spec.values.items():
        if key not in known:
            raise SpecError(
                f"'{spec.name}' has no parameter '{key}'. {nearest(key, known)}"
                if known
                else f"'{spec.name}' takes no parameters, but got '{key}'"
            )
        converted[key] = _convert(spec, key, value, known[key])
    try:
        return factory(**converted)
    except SpecError:
        raise
    except (TypeError, ValueError) as error:
        raise SpecError(f"'{spec.text}' cannot be set up: {error}") from error


def _convertible(kind: Any) -> bool:
    if get_origin(kind) in (typing.Union, types.UnionType):
        return any(_convertible(part) for part in get_args(kind) if part is not type(None))
    return kind in (str, int, float, bool) or get_origin(kind) is Literal


def _convert(spec: Spec, key: str, value: str, kind: Any) -> Any:
    if get_origin(kind) in (typing.Union, types.UnionType):
        kind = next(part for part in get_args(kind) if part is not type(None))
    if get_origin(kind) is Literal:
        allowed = {str(choice): choice for choice in get_args(kind)}
        if value not in allowed:
            raise SpecError(
                f"Expected one of {', '.join(allowed)} but got {key}={value} in '{spec.text}'. "
                + nearest(value, allowed)
            )
        return allowed[value]
    if kind is bool:
        if value not in ("true", "false"):
            raise SpecError(f"Expected true or false but got {key}={value} in '{spec.text}'")
        return value == "true"
    try:
        return kind(value)
    except ValueError:
        noun = {int: "a whole number", float: "a number"}.get(kind, "text")
        raise SpecError(f"Expected {noun} but got {key}={value} in '{spec.text}'") from None


def written(name: str, item: Any) -> str:
    """Write a dataclass back as a spec: its name and what is not at its default."""
    parts = []
    kind: Callable[..., Any] = type(item)
    known = parameters(kind)
    for part in dataclasses.fields(item):
        value = getattr(item, part.name)
        if part.name in known and value != part.default:
            shown = str(value).lower() if isinstance(value, bool) else f"{value}"
            parts.append(f"{part.name}={shown}")
    return f"{name}:{','.join(parts)}" if parts else name


def positive(name: str, **values: float) -> None:
    """Refuse parameters below 1."""
    for key, value in values.items():
        if value < 1:
            raise SpecError(f"Expected {key} of 1 or more but got {key}={value} in '{name}'")


def registered(group: str) -> Mapping[str, EntryPoint]:
    """Give what installed packages offer as `routeprism.GROUP`, by name."""
    from importlib.metadata import entry_points  # takes long, and workers need none

    return {point.name: point for point in sorted(entry_points(group=f"routeprism.{group}"))}
