"""Specs, the names of things on a command line: `name:key=value,…`, `package.module:Name`."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import PathFinder
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_args, get_origin

from routeprism.errors import SpecError, nearest
from routeprism.frames import OWN_ERRORS, describe_error

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = [
    "EXTENSIONS",
    "SIZES",
    "Extension",
    "NoSuchModuleError",
    "Registration",
    "Spec",
    "arguments",
    "check_sizes",
    "check_timeout",
    "construct",
    "find_extension",
    "fulfils",
    "hints",
    "load_object",
    "parameters",
    "parse",
    "positive",
    "registered",
    "write_spec",
]

T = TypeVar("T")

_NAME = re.compile(r"[A-Za-z][\w-]*\Z")
_COMMA = re.compile(r",(?![^()]*\))")
"""A comma outside parentheses, which hold a value that has parameters of its own."""
_BRACKETED = re.compile(r"\A\((.*)\)\Z", re.DOTALL)
_OBJECT = re.compile(r"([A-Za-z_]\w*(?:\.\w+)*):([A-Za-z_]\w*)(?::(.*))?\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Spec:
    """A parsed name with its parameters, still as text."""

    text: str
    """The text as the user wrote it."""
    name: str
    """The registered name, or `package.module:Name`."""
    values: Mapping[str, str] = dataclasses.field(hash=False)
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


class NoSuchModuleError(SpecError):
    """An own class was named, and its module does not exist; the name may be misspelt."""


def load_object(path: str) -> Any:
    """Import `package.module:Name`; this runs the module's code.

    The current directory is searched last, so that a file there never replaces a module of the
    standard library or of an installed package, and only if the module is not found without it.
    """
    module, _, name = path.partition(":")
    directory = str(Path.cwd())
    if directory not in sys.path and not _is_installed(module):
        sys.path.append(directory)  # it stays there: worker processes import the class again
    try:
        loaded = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(error.name + ".")):
            raise NoSuchModuleError(
                f"There is no module '{error.name}' to load '{path}' from; "
                f"run from its directory or install it"
            ) from None
        raise SpecError(f"'{path}' needs the module '{error.name}', which is missing") from None
    except OWN_ERRORS as error:
        raise describe_error(error, f"importing {module}") from None
    try:
        return getattr(loaded, name)
    except AttributeError:
        if hidden := _hidden_file(module, loaded):
            raise SpecError(
                f"'{module}' is a module of Python or of an installed package, which has no "
                f"'{name}'; rename {hidden} so that it can be imported"
            ) from None
        public = [word for word in vars(loaded) if not word.startswith("_")]
        raise SpecError(f"'{module}' has no '{name}'. {nearest(name, public)}") from None


def _is_installed(module: str) -> bool:
    """Whether Python finds a module's package; directories without `__init__.py` do not count."""
    places = None
    for name in accumulate(module.split("."), "{}.{}".format):
        spec = PathFinder.find_spec(name, places)
        if spec is None or spec.origin is not None:
            return spec is not None
        places = spec.submodule_search_locations
    return False


def _hidden_file(module: str, loaded: types.ModuleType) -> str | None:
    """Name the file of the current directory that a module imported from elsewhere hides."""
    file = Path.cwd() / f"{module.replace('.', '/')}.py"
    origin = getattr(loaded, "__file__", None)
    return file.name if file.is_file() and (not origin or Path(origin) != file) else None


class _Unknown:
    """The type of a parameter that neither an annotation nor a default declares."""


@lru_cache(maxsize=256)
def parameters(factory: Callable[..., Any]) -> Mapping[str, Any]:
    """Return the parameters that a user may write for a factory, with their types."""
    annotations = hints(factory)
    kinds = {
        name: annotations.get(name, _kind_of(parameter.default))
        for name, parameter in inspect.signature(factory).parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }
    return {name: kind for name, kind in kinds.items() if _convertible(kind) or kind is _Unknown}


def _kind_of(default: Any) -> Any:
    """Read the type of a parameter that declares none from its default."""
    return type(default) if isinstance(default, (bool, int, float, str)) else _Unknown


def hints(factory: Callable[..., Any]) -> Mapping[str, Any]:
    """Resolve annotations one by one, past names that are imported for type checkers only.

    An annotation that cannot be resolved is not a plain type, so a user cannot write it anyway.
    """
    function = factory.__init__ if inspect.isclass(factory) else factory
    resolved: dict[str, Any] = {}
    for name, annotation in getattr(function, "__annotations__", {}).items():
        holder = types.SimpleNamespace(__annotations__={name: annotation})
        try:
            resolved |= typing.get_type_hints(holder, getattr(function, "__globals__", {}))
        except NameError:
            resolved[name] = object
    return resolved


def arguments(factory: Callable[..., Any], spec: Spec) -> dict[str, Any]:
    """Convert a spec's parameters to the types that a factory declares."""
    names = parameters(factory)
    converted: dict[str, Any] = {}
    for key, value in spec.values.items():
        if key not in names:
            raise SpecError(
                f"'{spec.name}' has no parameter '{key}'. {nearest(key, names)}"
                if names
                else f"'{spec.name}' takes no parameters, but got '{key}'"
            )
        if names[key] is _Unknown:
            raise SpecError(
                f"the type of parameter '{key}' of '{spec.name}' is unknown, so {key}={value} "
                f"cannot be read. Annotate it, such as {key}: int, or give it a default of its type"
            )
        converted[key] = _convert(spec, key, value, names[key])
    return converted


def construct(factory: Callable[..., T], spec: Spec, **overrides: Any) -> T:
    """Call a factory with a spec's parameters converted to their declared types."""
    converted = {**overrides, **arguments(factory, spec)}
    try:
        return factory(**converted)
    except SpecError:
        raise
    except (TypeError, ValueError) as error:
        raise SpecError(f"'{spec.text}' cannot be set up: {error}") from error


def fulfils(value: object, protocol: type) -> bool:
    """Check that an object has every member of a protocol, delegated ones included.

    From Python 3.12 on, `isinstance` does not see the members that `__getattr__` gives.
    """
    return all(hasattr(value, name) for name in dir(protocol) if not name.startswith("_"))


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


def write_spec(name: str, item: Any) -> str:
    """Write a dataclass back as a spec: its name and what is not at its default."""
    parts = []
    kind: Any = type(item)
    for key, default in _list_fields(kind):
        value = getattr(item, key)
        if value != default:
            text = str(value).lower() if isinstance(value, bool) else f"{value}"
            parts.append(f"{key}={text}")
    return f"{name}:{','.join(parts)}" if parts else name


@lru_cache(maxsize=256)
def _list_fields(kind: Any) -> tuple[tuple[str, Any], ...]:
    """List the fields of a dataclass that a spec names, with their defaults."""
    names = parameters(kind)
    return tuple(
        (part.name, part.default)
        for part in dataclasses.fields(kind)
        if part.name in names and part.metadata.get("named", True)
    )


class SpecName:
    """The attribute `name` of a dataclass: its spec, as every output shows it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, item: Any, owner: Any = None) -> str:
        return self.name if item is None else write_spec(self.name, item)


def positive(name: str, **values: float) -> None:
    """Refuse parameters below 1."""
    for key, value in values.items():
        if value < 1:
            raise SpecError(f"Expected {key} of 1 or more but got {key}={value} in '{name}'")


def find_extension(group: str, spec: Spec) -> Any | None:
    """Find the object that a spec names beyond the built-in names, or None.

    That is an object of the user's own (`package.module:Name`), or one that an installed package
    registers in the entry-point group `routeprism.GROUP`.
    """
    if spec.is_object:
        return load_object(spec.name)
    point = registered(group).get(spec.name)
    return None if point is None else point.load()


SIZES: Mapping[str, tuple[int, int]] = {
    "builds": (1, 10_000),
    "bundle_tokens": (1, 100_000_000),
    "concurrency": (1, 4_096),
    "disorder": (1, 1_000),
    "drawn": (1, 10_000_000),
    "draws": (1, 10_000),
    "max_calls": (0, 10**12),
    "most_drawn": (1, 10_000_000),
    "most_states": (0, 100_000_000),
    "orders": (1, 10_000_000),
    "overlap_trials": (1, 100_000),
    "resamples": (100, 1_000_000),
    "retries": (0, 100),
}
"""The least and the most; numbers beyond would fill the memory or never end."""


def check_sizes(**values: float | None) -> None:
    """Refuse numbers that no machine can work with, before anything is read or started."""
    for name, value in values.items():
        least, most = SIZES[name]
        if value is not None and not least <= value <= most:
            raise SpecError(f"Expected from {least} to {most:,} {name} but got {name}={value}")


def check_timeout(seconds: float) -> None:
    """Refuse a time-out that is not a positive number of seconds."""
    if not 0 < seconds <= _LONGEST_TIMEOUT:
        raise SpecError(
            f"Expected a timeout above 0 and up to {_LONGEST_TIMEOUT} seconds "
            f"but got timeout={seconds}"
        )


_LONGEST_TIMEOUT = 7 * 86_400
"""A week, in seconds."""


@dataclass(frozen=True, slots=True, eq=False)
class Extension:
    """An object that counts as registered in a group, although no installed package does so."""

    group: str
    name: str
    value: Any
    text: str = ""
    """How the command line names it; empty for an object from Python."""

    def load(self) -> Any:
        """Return the object, as an entry point does."""
        return self.value


Registration: TypeAlias = "EntryPoint | Extension"
"""An object that can be named: registered by an installed package, or by the caller."""

EXTENSIONS: ContextVar[tuple[Extension, ...]] = ContextVar("EXTENSIONS", default=())
"""The objects that count as registered where this code runs; see `routeprism.use_extensions`."""


def registered(group: str) -> Mapping[str, Registration]:
    """List the entry points of installed packages in `routeprism.GROUP`, by name.

    Objects that the caller extends RoutePrism with follow.
    """
    return {
        **_list_entry_points(group, tuple(sys.path)),
        **{extension.name: extension for extension in EXTENSIONS.get() if extension.group == group},
    }


@lru_cache(maxsize=32)
def _list_entry_points(group: str, path: tuple[str, ...]) -> Mapping[str, EntryPoint]:
    """Read the entry points of every package on the path, once: there can be hundreds."""
    from importlib.metadata import entry_points  # takes long, and workers need none

    return {point.name: point for point in sorted(entry_points(group=f"routeprism.{group}"))}
