"""The way in: all commands, and what becomes of an error."""

from __future__ import annotations

import io
import shlex
import sys
import traceback
from pathlib import Path

from routeprism.cli import _commands, _later_commands  # noqa: F401 (they add themselves)
from routeprism.cli._app import app
from routeprism.errors import RoutePrismError

__all__ = ["main"]

_STOPPED = (
    "routeprism: stopped. Answers that came in are kept in the run and are not asked for again; a "
    "new run without answers leaves nothing behind. To go on:"
)
_INTERRUPTED = 130
"""What typer makes of Ctrl-C."""


def main() -> None:
    """Run the command line: 0 fine, 1 a gate or finding failed, 2 the call or input was wrong."""
    # A memory class of the user's own is named as module:Name and lies where they are.
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    _print_whatever()
    try:
        app(prog_name="routeprism")
    except RoutePrismError as error:
        print(f"routeprism: {error}", file=sys.stderr)
        sys.exit(2)
    except SystemExit as end:
        if end.code == _INTERRUPTED:
            _say_how_to_go_on()
        raise
    except Exception:
        # A memory class of the user's own may raise anything; 1 would say that a gate failed.
        traceback.print_exc()
        _say_how_to_go_on()
        sys.exit(2)


def _print_whatever() -> None:
    """Write what an ASCII or Windows code page lacks, such as Δ, as its number."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _say_how_to_go_on() -> None:
    print(f"{_STOPPED}\n  {shlex.join(['routeprism', *sys.argv[1:]])}", file=sys.stderr)
