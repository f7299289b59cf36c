"""Settings as data: each option is declared once, with its type, default, help, group and role.

A part is a frozen dataclass whose fields are made by `option`. `compose` joins parts into the
settings of one command. The command line, the signature and the documentation of the Python
function, the name of the run and the command that resumes it are derived from that class.
"""

from __future__ import annotations

import dataclasses
import inspect
import textwrap
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from routeprism.errors import SpecError, nearest
from routeprism.redaction import hide_credentials
from routeprism.specs import EXTENSIONS, SIZES

__all__ = [
    "ANSWERS",
    "ARRIVALS",
    "EXECUTION",
    "GROUPS",
    "MONEY",
    "OUTPUT",
    "RESEARCH",
    "STATISTICS",
    "SUBJECT",
    "Option",
    "answer_option",
    "arrival_option",
    "compose",
    "describe_options",
    "limit_options",
    "make_settings",
    "money_option",
    "option",
    "options_of",
    "output_option",
    "place_option",
    "read_command",
    "reply_option",
    "signature_of",
    "statistic_option",
    "take",
    "write_command",
]

Part = TypeVar("Part")

SUBJECT = "What to audit"
ARRIVALS = "Arrivals"
ANSWERS = "Answers"
STATISTICS = "Statistics"
MONEY = "Money"
EXECUTION = "Execution"
OUTPUT = "Output"
RESEARCH = "Research"
GROUPS = (SUBJECT, ARRIVALS, ANSWERS, STATISTICS, MONEY, EXECUTION, OUTPUT, RESEARCH)
"""The groups of options in the order in which help shows them."""

_KEY = "help"
"""The entry of a field's metadata that makes it an option."""


@dataclass(frozen=True, slots=True)
class Option:
    """One setting of a command."""

    name: str
    """The keyword argument of the Python function."""
    kind: Any
    """The type on the command line."""
    default: Any
    """The value without the option; `dataclasses.MISSING` for a required one."""
    help: str
    """One plain sentence."""
    group: str
    """The heading in help."""
    flag: str = ""
    """The option on the command line; empty for a positional argument."""
    short: str = ""
    """The one-letter option."""
    identity: bool = True
    """Whether a different value makes a different run."""
    minimum: float | None = None
    maximum: float | None = None
    metavar: str = ""
    """The placeholder for the value in help."""
    accepts: str = ""
    """The type in Python, where it accepts more than the command line."""
    environment: str = ""
    """The environment variable that replaces the option."""
    needs_model: bool = False
    """Whether the option is refused if no model answers."""
    resume: bool = False
    """Whether the command that resumes the run has it although it names no different run."""
    python: bool = True
    """Whether the Python function has it."""
    terminal: bool = True
    """Whether the command line has it."""
    python_default: Any = ...
    """The default in Python, where it differs."""
    python_help: str = ""
    """The sentence of the Python function, where it differs."""

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is dataclasses.MISSING

    @property
    def is_sequence(self) -> bool:
        """Whether it may be repeated."""
        return typing.get_origin(self.kind) in (Sequence, tuple)

    @property
    def word_kind(self) -> Any:
        """The type that one word of a command line is converted to."""
        return _plain_kind(typing.get_args(self.kind)[0] if self.is_sequence else self.kind)

    @property
    def keyword_default(self) -> Any:
        """Return the default of the Python function."""
        return self.default if self.python_default is ... else self.python_default


def option(
    default: Any = dataclasses.MISSING, *, help: str, group: str = SUBJECT, **details: Any
) -> Any:
    """Declare a field of a part; `details` are the further fields of `Option`."""
    unknown = details.keys() - {field.name for field in dataclasses.fields(Option)}
    if unknown:
        raise TypeError(f"option() has no '{min(unknown)}'")
    metadata = {_KEY: help, "group": group, **details}
    return dataclasses.field(default=default, kw_only=True, metadata=metadata)


def limit_options(name: str) -> Mapping[str, Any]:
    """Return the smallest and the largest value of a size."""
    least, most = SIZES[name]
    return {"minimum": least, "maximum": most}


answer_option = partial(option, group=ANSWERS)
reply_option = partial(option, group=ANSWERS, needs_model=True)
arrival_option = partial(option, group=ARRIVALS)
statistic_option = partial(option, group=STATISTICS)
money_option = partial(option, group=MONEY, identity=False)
place_option = partial(option, group=EXECUTION, identity=False)
output_option = partial(option, group=OUTPUT, identity=False)


def options_of(settings: Any) -> tuple[Option, ...]:
    """Return the options of a part, or of the settings of a command, in order."""
    kinds = typing.get_type_hints(settings)
    return tuple(
        _option(field, kinds[field.name])
        for field in dataclasses.fields(settings)
        if _KEY in field.metadata
    )


def _option(field: dataclasses.Field[Any], kind: Any) -> Option:
    names = {item.name for item in dataclasses.fields(Option)}
    declared = {"group": SUBJECT, **{k: v for k, v in field.metadata.items() if k in names}}
    flag = declared.pop("flag", f"--{field.name.replace('_', '-')}")
    return Option(field.name, kind, field.default, flag=flag, **declared)


def compose(
    name: str,
    *parts: type,
    defaults: Mapping[str, Any] | None = None,
    without: Iterable[str] = (),
    subject: str = SUBJECT,
) -> type[Any]:
    """Join parts into one frozen dataclass.

    `defaults` replaces some of their default values, and `subject` is the heading in help of the
    options that belong to no other group.
    """
    changed, left_out = dict(defaults or {}), set(without)
    fields: dict[str, tuple[str, Any, Any]] = {}
    for part in parts:
        kinds = typing.get_type_hints(part)
        for field in dataclasses.fields(part):
            if field.name in left_out or _KEY not in field.metadata:
                continue  # a field without help reads an option of a different part
            if field.name in fields:
                raise TypeError(f"two parts of {name} declare '{field.name}'")
            default = changed.pop(field.name, field.default)
            metadata = dict(field.metadata)
            if metadata["group"] == SUBJECT:
                metadata["group"] = subject
            copy = dataclasses.field(default=default, kw_only=True, metadata=metadata)
            fields[field.name] = (field.name, kinds[field.name], copy)
    if changed:
        raise TypeError(f"{name} has no '{min(changed)}'")
    return dataclasses.make_dataclass(name, fields.values(), frozen=True, slots=True)


def take(part: type[Part], settings: Any) -> Part:
    """Return one part of a command's settings, with its types."""
    names = (field.name for field in dataclasses.fields(part))  # type: ignore[arg-type]
    return part(**{name: getattr(settings, name) for name in names if hasattr(settings, name)})


def make_settings(settings: type[Any], values: Mapping[str, Any]) -> Any:
    """Make the settings of a command from keyword arguments, and check them."""
    options = {item.name: item for item in options_of(settings)}
    for name in values:
        if name not in options:
            raise TypeError(f"There is no argument '{name}'. {nearest(name, options)}")
    missing = [name for name, item in options.items() if item.required and name not in values]
    if missing:
        raise TypeError(f"The argument '{missing[0]}' is missing")
    return settings(**{name: _check(options[name], value) for name, value in values.items()})


def _check(item: Option, value: Any) -> Any:
    if item.is_sequence and not isinstance(value, Mapping):
        single = isinstance(value, (str, Path)) or not isinstance(value, Iterable)
        value = (value,) if single else tuple(value)
    for number in value if isinstance(value, tuple) else (value,):
        if number is None or isinstance(number, (str, bool)):
            continue
        # Written so that "not a number" is outside every range.
        above = item.minimum is None or number >= item.minimum
        below = item.maximum is None or number <= item.maximum
        if not (above and below):
            raise SpecError(f"Expected {_write_range(item)} but got {item.name}={number}")
    return value


def _write_range(item: Option) -> str:
    if item.maximum is None:
        return f"{item.name} of {item.minimum:,} or more"
    if item.minimum is None:
        return f"{item.name} of {item.maximum:,} or less"
    return f"from {item.minimum} to {item.maximum:,} {item.name}"


def write_command(command: str, settings: Any, *, resume: bool = True) -> list[str]:
    """Return the words of the command that does what these settings say, without secrets.

    Settings that do not belong to the run's identity are left out: where the work is done, what
    it may cost, and where the run is kept. To `resume` a run, files that it reads are named.
    """
    words = [command]
    for extension in EXTENSIONS.get():
        words += ["--use", extension.text] if extension.text else []
    options = [item for item in options_of(type(settings)) if item.terminal]
    for item in sorted(options, key=lambda item: item.flag != ""):
        value = getattr(settings, item.name)
        if value != item.default and (item.identity or (resume and item.resume)):
            words += _write_option(item, value)
    return [hide_credentials(word) for word in words]


def read_command(settings: type[Any], words: Sequence[str]) -> Any:
    """Make the settings that `write_command` wrote as words behind the name of the command."""
    options = [item for item in options_of(settings) if item.terminal]
    flags = {item.flag: item for item in options if item.flag}
    positional = iter([item for item in options if not item.flag])
    values: dict[str, Any] = {}
    remaining = iter(words)
    for word in remaining:
        item = flags.get(word) or next(positional)
        if item.flag and item.word_kind is bool:
            values[item.name] = True
            continue
        text = next(remaining) if item.flag else word
        value = item.word_kind(text) if item.word_kind in (int, float, Path) else text
        values[item.name] = (*values.get(item.name, ()), value) if item.is_sequence else value
    return make_settings(settings, values)


def _plain_kind(kind: Any) -> Any:
    """Return the first type of a union; `None` is only ever a default."""
    kinds = [part for part in typing.get_args(kind) if part is not type(None)]
    if not kinds:
        return kind
    return str if all(isinstance(part, str) for part in kinds) else _plain_kind(kinds[0])


def _write_option(item: Option, value: Any) -> Iterator[str]:
    if isinstance(value, bool):
        if value:
            yield item.flag
        return
    for single in value if isinstance(value, (tuple, list, Mapping)) else (value,):
        if single is not None:
            yield from filter(None, (item.flag, _write_value(single)))


def _write_value(value: Any) -> str:
    """Write a value as it is named on the command line."""
    if isinstance(value, (str, int, float, Path)):
        return str(value)
    name = getattr(value, "name", None)
    if isinstance(name, str):
        details = getattr(value, "settings", None)
        url = details.get("base_url") if isinstance(details, Mapping) else None
        return f"{name},base_url={url}" if url and ":" in name else name
    owner = value if hasattr(value, "__qualname__") else type(value)
    return f"{owner.__module__}:{owner.__qualname__}"


def signature_of(
    settings: type[Any],
    leading: Sequence[inspect.Parameter] = (),
    trailing: Sequence[inspect.Parameter] = (),
    *,
    returns: Any = inspect.Signature.empty,
) -> inspect.Signature:
    """Return the signature of the Python function with these settings as keyword arguments."""
    names = {parameter.name for parameter in (*leading, *trailing)}
    keywords = [
        inspect.Parameter(
            item.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if item.required else item.keyword_default,
            annotation=item.accepts or write_kind(item.kind),
        )
        for item in options_of(settings)
        if item.python and item.name not in names
    ]
    return inspect.Signature([*leading, *keywords, *trailing], return_annotation=returns)


def write_kind(kind: Any) -> str:
    """Write a type as source code does."""
    if kind is type(None):
        return "None"
    if kind is Path:
        return "str | Path"
    if isinstance(kind, type) and not typing.get_args(kind):
        return kind.__name__
    if typing.get_origin(kind) is typing.Literal:
        return "str"
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
        return " | ".join(map(write_kind, typing.get_args(kind)))
    kinds = [write_kind(part) for part in typing.get_args(kind) if part is not ...]
    return f"Sequence[{', '.join(kinds)}]" if kinds else str(kind)


def describe_options(settings: type[Any], more: Mapping[str, str] | None = None) -> str:
    """Write the `Args` section of the Python function's documentation."""
    meanings = {
        item.name: item.python_help or item.help for item in options_of(settings) if item.python
    }
    lines = [
        textwrap.fill(f"{name}: {meaning}", 96, initial_indent=" " * 4, subsequent_indent=" " * 8)
        for name, meaning in {**meanings, **(more or {})}.items()
    ]
    return "\n".join(["Args:", *lines])
