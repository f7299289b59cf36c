"""The commands: their names and summaries, how their words are parsed, and their help."""

from __future__ import annotations

import dataclasses
import inspect
import json
import shutil
import textwrap
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from routeprism.errors import SpecError, nearest

if TYPE_CHECKING:
    from cyclopts import App

    from routeprism.settings import Option


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """One command, before anything that it needs is imported."""

    name: str
    group: str
    summary: str
    handler: str
    """The module of this package and the function that runs it, with its settings."""
    details: str = ""
    examples: tuple[tuple[str, str], ...] = ()
    """Command lines without the program's name, each with what it does."""


def _read_commands() -> Iterator[CommandEntry]:
    text = Path(__file__).with_name("commands.json").read_text(encoding="utf-8")
    for entry in json.loads(text):
        yield CommandEntry(**{**entry, "examples": tuple(map(tuple, entry["examples"]))})


COMMANDS: Mapping[str, CommandEntry] = {command.name: command for command in _read_commands()}

_NEXT = """\
RoutePrism reports whether an agent memory loses evidence because of the order
of arrival.

  routeprism demo                                 audit five sample memories
  routeprism audit sample -p focal                audit one built-in policy
  routeprism audit sample -p my_module:Memory     audit your own class
  routeprism audit my_data -p focal               use your own data
  routeprism check RUN -g 'evidence.lost<=0.02'   fail a build that loses it

`routeprism --help` lists the commands. `routeprism --install-completion`
completes them with the tab key. README.md and docs/ explain the numbers.
"""
_HELP = ("--help", "-h")
_USE = "--use"
_FLAGS = {
    "--use package.module:Name": "Use your own experiment, coordinate or procedure in a command.",
    "--help, -h": "Show this help and exit; after a command, show its options.",
    "--version": "Show the version and exit.",
    "--install-completion [SHELL]": "Install completion for bash, zsh, fish or powershell.",
    "--show-completion [SHELL]": "Print the completion script.",
}
_ENVIRONMENT = {
    "ROUTEPRISM_DATA=DIR": "Directory with the benchmark files.",
    "ROUTEPRISM_LOG=1": "Also show what the libraries of models and memories log.",
}


def run_command(words: Sequence[str]) -> None:
    """Run the command that these words name, with the extensions that they name."""
    if _USE not in words:
        _run_command(words)
        return
    from routeprism.api import use_extensions

    if words[-1] == _USE:
        raise SpecError(f"{_USE} needs the name of an extension: {_USE} package.module:Name")
    places = [at for at, word in enumerate(words) if word == _USE]
    used = {*places, *(at + 1 for at in places)}
    with use_extensions(*(words[at + 1] for at in places)):
        _run_command([word for at, word in enumerate(words) if at not in used])


def _run_command(words: Sequence[str]) -> None:
    if not words:
        print(_NEXT, end="")
        return
    name, *rest = words
    if name in _HELP:
        print(_write_overview(), end="")
    elif name == "--version":
        from importlib.metadata import version

        print(f"routeprism {version('routeprism')}")
    elif name in ("--install-completion", "--show-completion"):
        _complete(name, rest[0] if rest else None)
    elif name not in COMMANDS:
        kind = "option" if name.startswith("-") else "command"
        raise SpecError(
            f"There is no {kind} '{name}'. {nearest(name, COMMANDS)}\n"
            "Usage: routeprism COMMAND [OPTIONS]"
        )
    elif any(word in _HELP for word in rest):
        print(_write_help(COMMANDS[name]), end="")
    else:
        load_handler(COMMANDS[name])(parse(name, rest))


def load_handler(command: CommandEntry) -> Callable[[Any], None]:
    """Import the function that runs a command."""
    module, _, function = command.handler.partition(":")
    handler: Callable[[Any], None] = getattr(import_module(f"{__package__}.{module}"), function)
    return handler


def parse(name: str, words: Sequence[str]) -> Any:
    """Make the settings of a command from the words behind its name."""
    from cyclopts import CycloptsError

    from routeprism.api.settings import settings_for
    from routeprism.settings import make_settings, options_of

    declared = settings_for(name)
    try:
        _, bound, _ = _make_app(name, declared).parse_args(
            list(words), print_error=False, exit_on_error=False
        )
    except CycloptsError as error:
        message = " ".join(str(error).split()).rstrip(".")
        unknown = [w for w in words if w.startswith("--") and w.partition("=")[0] in message]
        if "Unknown option" in message and unknown:
            flags = [item.flag for item in options_of(declared) if item.flag]
            message = f"There is no option '{unknown[0]}'. {nearest(unknown[0], flags)}"
        raise SpecError(
            f"{message}\nUsage: {usage(name, options_of(declared))}\n"
            f"`routeprism {name} --help` explains the options."
        ) from None
    return make_settings(declared, dict(bound.arguments))


def _make_app(name: str, declared: type) -> App:
    """Return the parser of one command."""
    from cyclopts import App, Parameter

    from routeprism.settings import options_of

    def command(*_: Any, **__: Any) -> None:
        """Hold the signature; the settings are all that is read."""

    parameters = []
    for item in options_of(declared):
        if not item.terminal:
            continue
        names = [text for text in (item.flag, item.short) if text]
        detail = Parameter(
            name=names or item.name.upper(),
            help=item.help,
            negative=(),
            env_var=item.environment or None,
            json_list=False,
            allow_repeating=None if item.is_sequence else True,
        )
        kind = inspect.Parameter.KEYWORD_ONLY if item.flag else inspect.Parameter.POSITIONAL_ONLY
        # The defaults are those of the settings; None stands for an option that is not given.
        parsed = _parsed_kind(item) if item.required else _parsed_kind(item) | None
        annotation = typing.cast(Any, Annotated)[parsed, detail]
        default = inspect.Parameter.empty if item.required else None
        parameters.append(
            inspect.Parameter(item.name, kind, default=default, annotation=annotation)
        )
    parameters.sort(key=lambda parameter: parameter.kind)
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    summary = COMMANDS[name].summary
    return App(name=name, help=summary, default_command=command, help_flags=[], version_flags=[])


def _parsed_kind(item: Option) -> Any:
    """Return the type that the words of an option are converted to."""
    return types.GenericAlias(list, (item.word_kind,)) if item.is_sequence else item.word_kind


def _complete(flag: str, shell: str | None) -> None:
    """Install or print the completion of all commands."""
    from cyclopts import App

    from routeprism.api.settings import settings_for

    app = App(name="routeprism", help="Audit agent memories.")
    for name in COMMANDS:
        app.command(_make_app(name, settings_for(name)))
    if shell not in (None, "bash", "zsh", "fish", "powershell"):
        shells = ("bash", "zsh", "fish", "powershell")
        raise SpecError(f"There is no shell '{shell}'. {nearest(str(shell), shells)}")
    try:
        if flag == "--show-completion":
            print(app.generate_completion(shell=shell))  # type: ignore[arg-type]
            return
        print(f"Completion is installed in {app.install_completion(shell=shell)}")  # type: ignore[arg-type]
    except RuntimeError as error:  # the shell is not known
        raise SpecError(f"{error}; name the shell: routeprism {flag} bash") from error


# --- help ------------------------------------------------------------------------------------

_KINDS = {str: "TEXT", int: "N", float: "NUMBER", Path: "PATH"}
_NAMES = 28
"""Columns for the names of options."""


def _write_overview() -> str:
    lines = ["Usage: routeprism COMMAND [OPTIONS]", ""]
    lines += ["Find out whether arrival order makes an agent memory lose evidence."]
    for group in dict.fromkeys(command.group for command in COMMANDS.values()):
        lines += ["", f"{group}:"]
        lines += _columns(
            ((entry.name, entry.summary) for entry in COMMANDS.values() if entry.group == group), 15
        )
    lines += ["", "Options:", *_columns(_FLAGS.items(), 30)]
    lines += ["", "Environment:", *_columns(_ENVIRONMENT.items(), 30)]
    return "\n".join(lines) + "\n"


def _write_help(command: CommandEntry) -> str:
    from routeprism.api.settings import settings_for
    from routeprism.settings import options_of

    options = [item for item in options_of(settings_for(command.name)) if item.terminal]
    about = " ".join(filter(None, (command.summary, command.details)))
    lines = [f"Usage: {usage(command.name, options)}", "", *textwrap.wrap(about, _width())]
    for group, items in group_options(options).items():
        lines += ["", f"{group}:"]
        lines += _columns(((label_option(item), describe_option(item)) for item in items), _NAMES)
    lines += ["", "Examples:"]
    for words, meaning in command.examples:
        lines += [f"  # {meaning}", f"  routeprism {words}"]
    return "\n".join(lines) + "\n"


def usage(name: str, options: Iterable[Option]) -> str:
    """Write the usage line of a command."""
    required = [label_option(item, short=False) for item in options if item.flag and item.required]
    labels = [label_option(item) for item in options if not item.flag]
    return " ".join(["routeprism", name, *labels, *required, "[OPTIONS]"])


def group_options(options: Sequence[Option]) -> dict[str, list[Option]]:
    """Return options by group, in the order of help: the subject of the command comes first.

    Groups that experiments add follow the answers.
    """
    from routeprism.settings import ANSWERS, GROUPS

    groups = dict.fromkeys(item.group for item in options)
    place = GROUPS.index(ANSWERS) + 1
    subject, *further = [options[0].group, *(group for group in groups if group not in GROUPS)]
    order = dict.fromkeys((subject, *GROUPS[:place], *further, *GROUPS[place:]))
    return {
        group: [item for item in options if item.group == group]
        for group in order
        if group in groups
    }


def label_option(item: Option, *, short: bool = True) -> str:
    """Write the names of an option and the placeholder of its value."""
    if not item.flag:
        label = item.metavar or item.name.upper()
        return label if item.required else f"[{label}]"
    names = ", ".join(filter(None, (item.short if short else "", item.flag)))
    kind = item.word_kind
    return names if kind is bool else f"{names} {item.metavar or _KINDS.get(kind, 'TEXT')}"


def describe_option(item: Option) -> str:
    """Write what an option does, with its default."""
    default = item.default
    if isinstance(default, (tuple, list)):
        default = ", ".join(map(str, default))
    has_default = default not in (None, False, "", dataclasses.MISSING) and not item.required
    notes = [f"default: {default}"] if has_default else []
    notes += ["required"] if item.required and item.flag else []
    notes += [f"or set {item.environment}"] if item.environment else []
    # Where a command has a value, the sentence about the general default does not apply.
    sentence = item.help.partition(" Default:")[0] if has_default else item.help
    return f"{sentence} [{'; '.join(notes)}]" if notes else sentence


def _columns(rows: Iterable[tuple[str, str]], first: int) -> list[str]:
    """Write names and meanings side by side."""
    lines: list[str] = []
    for name, meaning in rows:
        wrapped = textwrap.wrap(meaning, _width() - first - 2, break_on_hyphens=False) or [""]
        if len(name) > first - 2:
            lines.append(f"  {name}")
        else:
            lines.append(f"  {name:<{first}}{wrapped.pop(0)}".rstrip())
        lines += [f"{'':{first + 2}}{line}" for line in wrapped]
    return lines


def _width() -> int:
    return max(40, min(100, shutil.get_terminal_size().columns))
